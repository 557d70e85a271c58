//! The kind-neutral shape of a backendRef.

use std::sync::Arc;

use crate::model::{Kind, ObjectName};

/// A backend a rule refers to, not yet looked up.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BackendRef {
    /// Index into `spec.rules[].backendRefs`.
    pub(crate) index: usize,
    /// The kind of the reference, if it is not Service.
    pub(crate) other: Option<Box<OtherKind>>,
    /// The referenced object, by default in the route's own namespace.
    pub(crate) name: ObjectName,
    pub(crate) port: Option<BackendPort>,
    pub(crate) weight: u32,
}

/// The kind of a backend other than Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OtherKind {
    /// Empty for the core group.
    pub(crate) group: String,
    pub(crate) kind: String,
}

impl OtherKind {
    /// The kind of a reference; `None` for Service, which is the default.
    pub(super) fn of(group: Option<&str>, kind: Option<&str>) -> Option<Box<Self>> {
        let (group, kind) = (group.unwrap_or_default(), kind.unwrap_or(Kind::Service.as_str()));
        let is_service = group == Kind::Service.group() && kind == Kind::Service.as_str();
        (!is_service).then(|| Box::new(Self { group: group.to_owned(), kind: kind.to_owned() }))
    }
}

/// The port reference of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BackendPort {
    Number(i32),
    /// Ingress only.
    Name(Box<str>),
}

/// The name that is written in a route of `namespace`.
pub(super) fn name_of(namespace: &Arc<str>, written: Option<&str>, name: &str) -> ObjectName {
    ObjectName::new(written.map_or_else(|| namespace.clone(), Arc::from), name)
}
