//! References of routes to Gateways and ListenerSets.

use std::sync::Arc;

use super::kind::{GATEWAY_GROUP, Kind};
use super::object::ObjectKey;

/// A reference to a parent, as written (Gateway API `ParentReference`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ParentRef {
    /// Index into `spec.parentRefs`.
    pub index: usize,
    /// `group`, when written.
    pub group: Option<String>,
    /// `kind`, when written.
    pub kind: Option<String>,
    /// `namespace`, when written.
    pub namespace: Option<String>,
    /// `name`
    pub name: String,
    /// `sectionName`, when written.
    pub section_name: Option<String>,
    /// `port`, when written.
    pub port: Option<i32>,
}

impl ParentRef {
    /// The parent it names, written in a route of `namespace`; `None` for a kind that is no parent of ours.
    pub fn target(&self, namespace: &Arc<str>) -> Option<ObjectKey> {
        let group = self.group.as_deref().unwrap_or(GATEWAY_GROUP);
        let kind = self.kind.as_deref().unwrap_or(Kind::Gateway.as_str());
        let kind = Kind::from_group_kind(group, kind)
            .filter(|kind| matches!(kind, Kind::Gateway | Kind::ListenerSet))?;
        let namespace = self.namespace.as_deref().map_or_else(|| namespace.clone(), Arc::from);
        Some(ObjectKey::new(kind, namespace, self.name.as_str()))
    }

    /// The name of the selected listeners; `None` is every name. An empty name counts as absent (Gateway API,
    /// `ParentReference.sectionName`).
    pub fn section(&self) -> Option<&str> {
        self.section_name.as_deref().filter(|name| !name.is_empty())
    }

    /// Whether it selects a listener of its parent with this name and this written port.
    pub fn selects(&self, listener: &str, port: i32) -> bool {
        self.section().is_none_or(|name| name == listener) && self.port.is_none_or(|wanted| wanted == port)
    }

    /// Whether it names this parent, written in a route of `namespace`.
    pub(crate) fn names(&self, namespace: &str, parent: &ObjectKey) -> bool {
        self.group.as_deref().unwrap_or(GATEWAY_GROUP) == parent.kind.group()
            && self.kind.as_deref().unwrap_or(Kind::Gateway.as_str()) == parent.kind.as_str()
            && self.namespace.as_deref().unwrap_or(namespace) == &*parent.name.namespace
            && self.name == *parent.name.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_section_name_selects_every_listener() {
        let selects = |section_name: Option<&str>, port| {
            let parent_ref = ParentRef {
                index: 0,
                group: None,
                kind: None,
                namespace: None,
                name: "web".to_owned(),
                section_name: section_name.map(str::to_owned),
                port,
            };
            [("http", 80), ("https", 443)].map(|(name, port)| parent_ref.selects(name, port))
        };
        assert_eq!(selects(None, None), [true, true]);
        assert_eq!(selects(Some(""), None), [true, true]);
        assert_eq!(selects(Some(""), Some(443)), [false, true]);
        assert_eq!(selects(Some("http"), None), [true, false]);
        assert_eq!(selects(Some("http"), Some(443)), [false, false]);
    }
}
