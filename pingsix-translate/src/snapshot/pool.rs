//! Interners of values that many objects have in common.

use std::sync::Arc;

use super::ports::{EndpointPort, ServicePort};
use crate::interner::{Counted, Interner};
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
        *text = self.texts.share(text.clone());
    }

    /// Interns a name.
    pub fn name(&mut self, name: &mut ObjectName) {
        if let Some(parts) = name.get_mut() {
            parts.namespace = self.texts.share(parts.namespace.clone());
        }
        *name = self.names.share(name.clone());
    }

    /// Interns parentRefs.
    pub fn parent_refs(&mut self, parent_refs: &mut Arc<[ParentRef]>) {
        *parent_refs = self.parent_refs.share(parent_refs.clone());
    }

    /// Interns the ports of a Service.
    pub fn service_ports(&mut self, ports: &mut Arc<[ServicePort]>) {
        *ports = self.service_ports.share(ports.clone());
    }

    /// Interns the ports of an EndpointSlice.
    pub fn endpoint_ports(&mut self, ports: &mut Arc<[EndpointPort]>) {
        *ports = self.endpoint_ports.share(ports.clone());
    }
}

impl Counted for ObjectName {
    fn is_shared(&self) -> bool {
        Self::is_shared(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::NameParts;

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
