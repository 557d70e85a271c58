//! An API server that answers by a script, for problems that a real one cannot be made to have.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::Manifests;

/// A request: its target, and its credentials.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) target: String,
    pub(super) authorization: String,
}

impl Asked {
    /// A parameter of the query, as it is encoded.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let (_, query) = self.target.split_once('?')?;
        query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }
}

/// The status and the body of an answer to the list of Services; `None` for an empty list.
type Script = dyn Fn(&Asked) -> Option<(u16, String)> + Send + Sync;

/// A server with namespaces and Services. It lives as long as the process.
pub(super) struct Scripted {
    pub(super) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Scripted {
    /// Starts a server that asks the script about lists of Services.
    pub(super) fn start(script: impl Fn(&Asked) -> Option<(u16, String)> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (seen, script): (_, Arc<Script>) = (asked.clone(), Arc::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, script) = (seen.clone(), script.clone());
                // A client that has read enough goes away.
                std::thread::spawn(move || serve(&stream, &seen, &*script));
            }
        });
        Self { address, asked }
    }

    /// The requests for lists of Services so far.
    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// A folder with the file `config.yaml`, whose user has these fields.
    pub(super) fn kubeconfig(&self, user: &Value) -> Manifests {
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "one",
            "contexts": [{ "name": "one", "context": { "cluster": "c", "user": "u" } }],
            "clusters": [{ "name": "c", "cluster": { "server": format!("http://{}", self.address) } }],
            "users": [{ "name": "u", "user": user }],
        });
        Manifests::new(&[("config.yaml", &config.to_string())])
    }
}

fn serve(stream: &TcpStream, seen: &Mutex<Vec<Asked>>, script: &Script) -> Option<()> {
    let mut lines = BufReader::new(stream).lines();
    let target = lines.next()?.ok()?.split(' ').nth(1)?.to_owned();
    let mut authorization = String::new();
    for line in lines.map_while(Result::ok).take_while(|line| !line.is_empty()) {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("authorization: ") {
            line[line.len() - value.len()..].clone_into(&mut authorization);
        }
    }
    let asked = Asked { target, authorization };
    let (status, body) = match asked.target.split('?').next()? {
        "/apis" => (200, json!({ "groups": [] }).to_string()),
        "/api/v1" => {
            let kind = |name: &str, kind: &str, namespaced: bool| json!({ "name": name, "kind": kind, "namespaced": namespaced, "verbs": ["list"] });
            let kinds = [kind("services", "Service", true), kind("namespaces", "Namespace", false)];
            (200, json!({ "resources": kinds }).to_string())
        }
        "/api/v1/services" => {
            seen.lock().unwrap().push(asked.clone());
            script(&asked).unwrap_or_else(|| (200, list(0..0, None)))
        }
        _ => (200, list(0..0, None)),
    };
    let head = format!(
        "HTTP/1.1 {status} Scripted\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    (&*stream).write_all(head.as_bytes()).ok()?;
    (&*stream).write_all(body.as_bytes()).ok()
}

/// A list of Services with these numbers, and the token of the next page.
pub(super) fn list(numbers: std::ops::Range<usize>, next: Option<&str>) -> String {
    let service = |number: usize| {
        json!({
            "metadata": { "namespace": "shop", "name": format!("s{number}") },
            "spec": { "ports": [{ "port": 80 }] },
        })
    };
    let metadata = json!({ "continue": next });
    json!({ "metadata": metadata, "items": numbers.map(service).collect::<Vec<_>>() }).to_string()
}
