//! Events of whatever kind, from objects as they are written.
//!
//! The contract tests use this file too.

use kube_runtime::watcher;
use pingsix_translate::Kind;
use serde_json::Value;

use super::Event;

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
    IngressClass Ingress Service EndpointSlice Secret ConfigMap Namespace PingsixProxy
}
