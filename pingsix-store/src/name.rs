//! The names of kube's resources.

use std::fmt;
use std::sync::Arc;

/// The namespace and name of a resource. Displays as `namespace/name`, or as `name` without a namespace. Clones share the
/// text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// The namespace; empty for cluster-scoped kinds.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl ObjectName {
    /// Names an object; for a cluster-scoped kind pass an empty namespace.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl AsRef<str>) -> Self {
        Self { namespace: namespace.into(), name: name.as_ref().into() }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, name } = self;
        if namespace.is_empty() { f.write_str(name) } else { write!(f, "{namespace}/{name}") }
    }
}
