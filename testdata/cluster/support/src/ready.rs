//! Readiness of processes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, Client};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// A look that takes longer than this is as good as a negative answer.
const LOOK_TIMEOUT: Duration = Duration::from_secs(2);

/// Whom to ask whether a process is ready.
pub(crate) enum Ready {
    /// No check: the process is ready as soon as it runs.
    Nobody,
    /// etcd, on its socket.
    Etcd(PathBuf),
    /// Something that speaks HTTPS and has a certificate of the cluster's authority.
    Https { client: Client, path: &'static str },
    /// The node, which says so in its object.
    Node(Client),
}

impl Ready {
    pub(crate) async fn holds(&self) -> bool {
        match self {
            Self::Nobody => true,
            Self::Etcd(socket) => {
                timeout(LOOK_TIMEOUT, etcd_is_healthy(socket)).await.is_ok_and(|answer| answer == Some(true))
            }
            Self::Node(client) => {
                let nodes = Api::<Node>::all(client.clone());
                timeout(LOOK_TIMEOUT, nodes.list(&ListParams::default()))
                    .await
                    .is_ok_and(|answer| answer.is_ok_and(|nodes| nodes.items.iter().any(is_ready)))
            }
            Self::Https { client, path } => {
                let Ok(request) = http::Request::get(*path).body(Vec::new()) else { return false };
                timeout(LOOK_TIMEOUT, client.request_text(request)).await.is_ok_and(|answer| answer.is_ok())
            }
        }
    }
}

impl std::fmt::Debug for Ready {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nobody => f.write_str("Nobody"),
            Self::Node(_) => f.write_str("Node"),
            Self::Etcd(socket) => f.debug_tuple("Etcd").field(socket).finish(),
            Self::Https { path, .. } => f.debug_struct("Https").field("path", path).finish_non_exhaustive(),
        }
    }
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

async fn etcd_is_healthy(socket: &Path) -> Option<bool> {
    let mut stream = UnixStream::connect(socket).await.ok()?;
    stream.write_all(b"GET /health HTTP/1.0\r\nHost: etcd\r\n\r\n").await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    Some(answer.contains(r#""health":"true""#))
}
