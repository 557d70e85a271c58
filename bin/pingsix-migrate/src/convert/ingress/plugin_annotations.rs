//! The annotations of APISIX that stand for plugins.

use std::collections::BTreeMap;

use pingsix_translate::annotations::ignored;
use pingsix_translate::crd::AnnotationDialect;
use pingsix_translate::is_dns_subdomain;

use super::dialect::Dialect;

/// The annotations that are converted to plugins, although a class that keeps Ingresses does not honour them.
const NAMES: [&str; 10] = [
    AUTH_TYPE,
    "basic-auth-password",
    "basic-auth-username",
    "csrf-key",
    "enable-csrf",
    "key-auth-header",
    "key-auth-key",
    "key-auth-query",
    PLUGIN_CONFIG,
    SERVICE_NAMESPACE,
];

pub(super) const AUTH_TYPE: &str = "auth-type";
pub(super) const PLUGIN_CONFIG: &str = "plugin-config-name";
pub(super) const SERVICE_NAMESPACE: &str = "svc-namespace";

/// Whether an annotation is converted to plugins.
pub(super) fn is_plugin(dialect: &Dialect, name: &str) -> bool {
    dialect.annotations == AnnotationDialect::Apisix && NAMES.contains(&name)
}

/// The namespace of the backends, if an annotation names one.
pub(super) fn service_namespace(dialect: &Dialect, annotations: &BTreeMap<String, String>) -> Option<String> {
    let name = dialect.whole_name(SERVICE_NAMESPACE);
    let given_up = ignored(annotations);
    if !is_plugin(dialect, SERVICE_NAMESPACE)
        || given_up.contains(name.as_str())
        || given_up.contains(SERVICE_NAMESPACE)
    {
        return None;
    }
    annotations.get(&name).map(|namespace| namespace.trim().to_owned()).filter(|name| is_dns_subdomain(name))
}
