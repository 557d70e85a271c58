//! Events with random objects.

use std::sync::LazyLock;

use kube_runtime::watcher;
use pingsix_translate::Kind;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use super::Event;
use crate::fixture::objects::{self, Pairs};

macro_rules! kinds {
    ($($kind:ident)+) => {
        /// An event of a kind, with objects as the API server would send them.
        pub(crate) fn event_of(kind: Kind, event: watcher::Event<Value>) -> Event {
            match kind {
                $(Kind::$kind => Event::$kind(match event {
                    watcher::Event::Init => watcher::Event::Init,
                    watcher::Event::InitDone => watcher::Event::InitDone,
                    watcher::Event::InitApply(object) => {
                        watcher::Event::InitApply(serde_json::from_value(object).unwrap())
                    }
                    watcher::Event::Apply(object) => watcher::Event::Apply(serde_json::from_value(object).unwrap()),
                    watcher::Event::Delete(object) => watcher::Event::Delete(serde_json::from_value(object).unwrap()),
                }),)+
            }
        }
    };
}

kinds! {
    GatewayClass Gateway ListenerSet HttpRoute GrpcRoute TlsRoute TcpRoute UdpRoute BackendTlsPolicy ReferenceGrant
    IngressClass Ingress Service EndpointSlice Secret ConfigMap Namespace
}

/// An object of a kind, with the metadata that an API server adds; the same name often means another content.
pub(crate) fn object(kind: Kind, version: u32, random: &mut StdRng) -> Value {
    static PAIRS: LazyLock<Pairs> = LazyLock::new(Pairs::new);
    let (key, mut object) = objects::object(kind, random, &PAIRS);
    let metadata = &mut object["metadata"];
    metadata["resourceVersion"] = json!(version.to_string());
    metadata["generation"] = json!(version);
    metadata["creationTimestamp"] = json!(format!("2026-01-0{}T00:00:00Z", key.name.name.len().min(9)));
    object
}
