//! References to CA certificates, of whichever generated type.

use crate::model::{Kind, ObjectName};

/// A caCertificateRef of a Gateway, of whichever generated type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuthorityRef<'a> {
    pub(crate) group: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: &'a str,
}

impl AuthorityRef<'_> {
    pub(crate) fn is_config_map(&self) -> bool {
        self.group.is_empty() && self.kind == Kind::ConfigMap.as_str()
    }

    /// The name of the referent, for a reference in an object of `namespace`.
    pub(crate) fn target(&self, namespace: &str) -> ObjectName {
        ObjectName::new(self.namespace.unwrap_or(namespace), self.name)
    }
}
