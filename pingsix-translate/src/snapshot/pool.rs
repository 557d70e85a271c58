//! Interners of values that many objects have in common.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::ports::{EndpointPort, ServicePort};
use crate::model::{ObjectName, ParentRef};

/// Interners of common values: the names of namespaces, the parentRefs of thousands of routes, the Services that routes and
/// EndpointSlices name. A store of many objects lets them [share](super::Identified::share) values through one pool. Values
/// without other references are dropped.
#[derive(Debug, Default)]
pub struct Pool {
    texts: Interner<Arc<str>>,
    names: Interner<ObjectName>,
    parent_refs: Interner<Arc<[ParentRef]>>,
    service_ports: Interner<Arc<[ServicePort]>>,
    endpoint_ports: Interner<Arc<[EndpointPort]>>,
}

impl Pool {
    /// Interns a text.
    pub fn text(&mut self, text: &mut Arc<str>) {
        self.texts.share(text);
    }

    /// Interns a name.
    pub fn name(&mut self, name: &mut ObjectName) {
        if let Some(parts) = name.get_mut() {
            self.texts.share(&mut parts.namespace);
        }
        self.names.share(name);
    }

    /// Interns parentRefs.
    pub fn parent_refs(&mut self, parent_refs: &mut Arc<[ParentRef]>) {
        self.parent_refs.share(parent_refs);
    }

    /// Interns the ports of a Service.
    pub fn service_ports(&mut self, ports: &mut Arc<[ServicePort]>) {
        self.service_ports.share(ports);
    }

    /// Interns the ports of an EndpointSlice.
    pub fn endpoint_ports(&mut self, ports: &mut Arc<[EndpointPort]>) {
        self.endpoint_ports.share(ports);
    }
}

/// A reference-counted value.
trait Poolable: Ord + Clone {
    /// Whether there are other references.
    fn is_shared(&self) -> bool;
}

impl<T: Ord + ?Sized> Poolable for Arc<T> {
    fn is_shared(&self) -> bool {
        Self::strong_count(self) > 1
    }
}

impl Poolable for ObjectName {
    fn is_shared(&self) -> bool {
        Self::is_shared(self)
    }
}

#[derive(Debug)]
struct Interner<V> {
    known: BTreeSet<V>,
    /// The number of values at which those without other references are dropped.
    limit: usize,
}

/// The smallest limit of an interner.
const MIN_LIMIT: usize = 1_000;

impl<V> Default for Interner<V> {
    fn default() -> Self {
        Self { known: BTreeSet::new(), limit: MIN_LIMIT }
    }
}

impl<V: Poolable> Interner<V> {
    fn share(&mut self, value: &mut V) {
        if let Some(known) = self.known.get(value) {
            value.clone_from(known);
            return;
        }
        if self.known.len() >= self.limit {
            self.known.retain(Poolable::is_shared);
            // The limit doubles, so the cost for each added value is constant.
            self.limit = MIN_LIMIT.max(self.known.len() * 2);
        }
        self.known.insert(value.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::NameParts;

    #[test]
    fn values_without_other_references_are_dropped() {
        let mut pool = Pool::default();
        let mut kept: Arc<str> = "kept".into();
        pool.text(&mut kept);
        for number in 0..10 * MIN_LIMIT {
            pool.text(&mut number.to_string().into());
        }
        assert!(pool.texts.known.len() <= 2 * MIN_LIMIT, "{}", pool.texts.known.len());
        let mut again: Arc<str> = "kept".into();
        pool.text(&mut again);
        assert!(Arc::ptr_eq(&kept, &again));
    }

    #[test]
    fn equal_names_are_one_pointer() {
        let mut pool = Pool::default();
        let (mut one, mut other) = (ObjectName::new("shop", "cart"), ObjectName::new("shop", "cart"));
        let mut third = ObjectName::new("shop", "till");
        for name in [&mut one, &mut other, &mut third] {
            pool.name(name);
        }
        let (parts, same): (&NameParts, &NameParts) = (&one, &other);
        assert!(std::ptr::eq(parts, same));
        assert!(Arc::ptr_eq(&one.namespace, &third.namespace));
    }
}
