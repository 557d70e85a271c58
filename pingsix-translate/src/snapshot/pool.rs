//! What many objects say alike, held once.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::endpoint_slice::EndpointPort;
use super::service::ServicePort;
use crate::model::{ObjectName, ParentRef};

/// What many objects have in common: the name of their namespace, the Gateway of thousands of routes, a Service that routes
/// and EndpointSlices name. Whoever holds many objects has them [share](super::Identified::share) it through one of these.
/// What nobody holds any more is forgotten.
#[derive(Debug, Default)]
pub struct Pool {
    texts: Common<Arc<str>>,
    names: Common<ObjectName>,
    parent_refs: Common<Arc<[ParentRef]>>,
    service_ports: Common<Arc<[ServicePort]>>,
    endpoint_ports: Common<Arc<[EndpointPort]>>,
}

impl Pool {
    /// Makes a text the one that others have who say the same.
    pub fn text(&mut self, text: &mut Arc<str>) {
        self.texts.share(text);
    }

    /// Makes a name the one that others have who name the same object.
    pub fn name(&mut self, name: &mut ObjectName) {
        if let Some(parts) = name.get_mut() {
            self.texts.share(&mut parts.namespace);
        }
        self.names.share(name);
    }

    /// Makes parentRefs those that others have who say the same.
    pub fn parent_refs(&mut self, parent_refs: &mut Arc<[ParentRef]>) {
        self.parent_refs.share(parent_refs);
    }

    /// Makes ports those of other Services that have the same.
    pub fn service_ports(&mut self, ports: &mut Arc<[ServicePort]>) {
        self.service_ports.share(ports);
    }

    /// Makes ports those of other EndpointSlices that have the same.
    pub fn endpoint_ports(&mut self, ports: &mut Arc<[EndpointPort]>) {
        self.endpoint_ports.share(ports);
    }
}

/// What can be held by several.
trait Poolable: Ord + Clone {
    /// Whether it is.
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
struct Common<V> {
    known: BTreeSet<V>,
    /// How many there may be before those that nobody has any more are looked for.
    limit: usize,
}

/// Fewer are not worth a look.
const FEW: usize = 1_000;

impl<V> Default for Common<V> {
    fn default() -> Self {
        Self { known: BTreeSet::new(), limit: FEW }
    }
}

impl<V: Poolable> Common<V> {
    fn share(&mut self, value: &mut V) {
        if let Some(known) = self.known.get(value) {
            value.clone_from(known);
            return;
        }
        if self.known.len() >= self.limit {
            self.known.retain(Poolable::is_shared);
            // Each is looked at as often as one like it is added.
            self.limit = FEW.max(self.known.len() * 2);
        }
        self.known.insert(value.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::NameParts;

    #[test]
    fn what_nobody_has_any_more_is_forgotten() {
        let mut pool = Pool::default();
        let mut kept: Arc<str> = "kept".into();
        pool.text(&mut kept);
        for number in 0..10 * FEW {
            pool.text(&mut number.to_string().into());
        }
        assert!(pool.texts.known.len() <= 2 * FEW, "{}", pool.texts.known.len());
        let mut again: Arc<str> = "kept".into();
        pool.text(&mut again);
        assert!(Arc::ptr_eq(&kept, &again));
    }

    #[test]
    fn a_name_is_held_once() {
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
