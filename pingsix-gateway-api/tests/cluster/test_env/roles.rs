//! The permissions of a controller, as roles that can be bound separately.

use k8s_openapi::api::rbac::v1::PolicyRule;
use pingsix_gateway_api::controller::ControllerOptions;
use pingsix_gateway_api::permissions::permissions;
use serde_json::json;

/// The role of everything that a controller asks for but one resource.
pub(crate) const OTHER_RESOURCES_ROLE: &str = "rest";
/// The role of that resource.
pub(crate) const SINGLE_RESOURCE_ROLE: &str = "apart";

/// Both roles, [`OTHER_RESOURCES_ROLE`] and [`SINGLE_RESOURCE_ROLE`], for the whole cluster.
pub(crate) fn split_roles(resource: &str, options: &ControllerOptions) -> String {
    let (mut rest, mut split_roles) = (Vec::new(), Vec::new());
    for rule in permissions(options).cluster {
        for named in rule.resources.iter().flatten() {
            let is_apart = named.split('/').next() == Some(resource);
            let one = PolicyRule { resources: Some(vec![named.clone()]), ..rule.clone() };
            if is_apart { split_roles.push(one) } else { rest.push(one) }
        }
    }
    let role = |name: &str, rules: &[PolicyRule]| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name}, "rules": rules,
        })
    };
    format!("{}\n---\n{}", role(OTHER_RESOURCES_ROLE, &rest), role(SINGLE_RESOURCE_ROLE, &split_roles))
}
