//! A store of the objects of one kind, with secondary maps of their references.
//!
//! kube-runtime's reflector finds the object with a name. A controller for objects with references needs reverse
//! lookups at every event, too: the routes of a Gateway, the readers of a Secret, the objects that refer to a missing
//! Service. [`ReflectorStore`] reads the same events, and keeps secondary maps beside the objects. Edges declare the
//! maps:
//!
//! ```
//! use k8s_openapi::api::networking::v1::Ingress;
//! use kube_runtime::watcher::Event;
//! use pingsix_store::{Edge, ReflectorStore};
//!
//! // An Ingress depends on its class.
//! let class = Edge::depends_on("class", |ingress: &Ingress, targets| {
//!     targets.extend(ingress.spec.iter().filter_map(|spec| spec.ingress_class_name.clone()));
//! });
//!
//! let mut store = ReflectorStore::new([class]);
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
//! - Objects of kube's resources go by [`ObjectName`]; another [`StoredObject`] may have names of a type of its own.
//! - Targets are names. References to missing objects are in the maps, too, so a new object finds its referrers.
//! - A change has the targets of the old object and of the new one.
//! - The end of a relist reveals objects that were deleted meanwhile, for which the API server sends no event. An
//!   unfinished list changes nothing.
//! - The cost of an event is proportional to the targets of its object; [`Work`] counts it.
//! - The maps count the targets that dependents concern ([`concerned_through`](ReflectorStore::concerned_through)): a
//!   Service of thousands of routes leads to their few Gateways without a scan of the routes.
//!
//! Any stream of [`watcher::Event`](kube_runtime::watcher::Event)s feeds the store, from a cluster or from a test.
//! [`SharedStore`] is a store for several tasks, such as the parts of a kube-runtime `Controller`. The example
//! `reflector_store` watches Deployments and their configuration.

mod edge;
mod index;
mod name;
mod reader;
mod reflector;
mod shared;
#[cfg(test)]
mod tests;

pub use edge::{Direction, Edge, Target};
pub use name::ObjectName;
pub use reader::{Reader, StoredObject};
pub use reflector::{Change, ReflectorStore, Work};
pub use shared::{SharedStore, object_ref};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
