//! The choices of the user.

use std::collections::BTreeSet;

use pingsix_translate::ObjectName;

/// The choices of a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices {
    /// The Gateway of all routes that name none. Default: a new one.
    pub gateway: Option<ObjectName>,
    /// The class of a new Gateway, and of copies.
    pub gateway_class: String,
    /// The end of the names of copies, if Gateways of other controllers and their routes are copied.
    pub name_suffix: Option<String>,
    /// The certificate of hosts without one.
    pub default_certificate: Option<ObjectName>,
    /// Whether Ingresses keep their annotations.
    pub keep_ingress: bool,
    /// The class of Ingresses that keep their annotations.
    pub ingress_class: String,
    /// Objects that are written although they protect less than the original: kind, namespace and name.
    pub allow_weaker: BTreeSet<(String, ObjectName)>,
}

impl Choices {
    /// Whether the user wants the object although it protects less than the original.
    pub(crate) fn may_be_weaker(&self, kind: &str, name: &ObjectName) -> bool {
        self.allow_weaker.contains(&(kind.to_owned(), name.clone()))
    }
}

impl Default for Choices {
    fn default() -> Self {
        Self {
            gateway: None,
            gateway_class: "pingsix".to_owned(),
            name_suffix: None,
            default_certificate: None,
            keep_ingress: false,
            ingress_class: "pingsix".to_owned(),
            allow_weaker: BTreeSet::new(),
        }
    }
}
