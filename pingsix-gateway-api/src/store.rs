//! A live picture of one kind of objects, with secondary maps: who refers to what, kept exactly.
//!
//! kube-runtime's reflector answers one question, "what is the object with this name?".
//! A controller whose objects refer to each other has to answer others, at every event and without looking at every
//! object: which routes name this Gateway, who reads this Secret, who looked for a Service that was not there until now.
//! [`ReflectorStore`] reads the same events, and keeps maps for those questions beside the objects. Which there are is data:
//!
//! ```
//! use k8s_openapi::api::networking::v1::Ingress;
//! use kube_runtime::watcher::Event;
//! use pingsix_gateway_api::store::{Edge, ReflectorStore};
//!
//! // An Ingress has to be looked at again when its class changes.
//! static EDGES: &[Edge<Ingress, String>] = &[Edge::depends_on("class", |ingress, targets| {
//!     targets.extend(ingress.spec.iter().filter_map(|spec| spec.ingress_class_name.clone()));
//! })];
//!
//! let mut store = ReflectorStore::new(EDGES);
//! let mut ingress = Ingress::default();
//! ingress.metadata.name = Some("web".into());
//! ingress.metadata.namespace = Some("shop".into());
//! ingress.spec.get_or_insert_default().ingress_class_name = Some("pingsix".into());
//! let changes = store.apply(Event::Apply(ingress));
//!
//! assert_eq!(changes.len(), 1);
//! let readers: Vec<_> = store.dependents(&"pingsix".to_owned()).map(ToString::to_string).collect();
//! assert_eq!(readers, ["shop/web"]);
//! ```
//!
//! - A target is a name, not an object. What is named and not there is found as well as what is there, so an object
//!   that appears later finds those who waited for it.
//! - A change names the targets of the old object and of the new one: both have to be looked at.
//! - A relist that ends tells what vanished meanwhile, for which the API server sends no event. Until it ends nothing
//!   changes: a list that breaks off half way takes nothing away.
//! - An event touches the maps at the targets of its object and nowhere else; [`Work`] counts that.
//! - What those concern who depend on a target is counted as they come and go
//!   ([`concerned_through`](ReflectorStore::concerned_through)): a Service that thousands of routes share leads to their few
//!   Gateways without a look at any route.
//!
//! The store watches nothing itself: any stream of [`watcher::Event`](kube_runtime::watcher::Event)s will do, from a
//! cluster or from a test. The example `reflector_store` follows Deployments and what they are configured by.

mod edge;
mod index;
mod reader;
mod reflector;
#[cfg(test)]
mod tests;

pub use edge::{Direction, Edge, Target};
pub use pingsix_translate::ObjectName;
pub use reader::{Reader, StoredObject};
pub use reflector::{Change, ReflectorStore, Work};
