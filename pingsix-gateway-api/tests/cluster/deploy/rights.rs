//! What the roles allow, against what the library says it asks for.

use std::collections::BTreeSet;
use std::fmt;

use k8s_openapi::api::rbac::v1::PolicyRule;
use pingsix_gateway_api::permissions::permissions;
use serde_json::Value;

use super::manifests::Manifests;

/// One thing that may be asked, or was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Right {
    /// Where; nothing for everywhere.
    pub(crate) namespace: Option<String>,
    pub(crate) group: String,
    /// With the part of it, as `gateways/status`.
    pub(crate) resource: String,
    pub(crate) verb: String,
    /// The only object it is for.
    pub(crate) name: Option<String>,
}

impl Right {
    /// The same, wherever and of whatever object.
    pub(crate) fn anywhere(&self) -> Self {
        Self { namespace: None, name: None, ..self.clone() }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, group, resource, verb, name } = self;
        let (namespace, name) = (namespace.as_deref().unwrap_or("*"), name.as_deref().unwrap_or("*"));
        write!(f, "{verb} {resource}.{group} {namespace}/{name}")
    }
}

/// What is in one and not in the other, to be read.
pub(crate) fn without(one: &BTreeSet<Right>, other: &BTreeSet<Right>) -> Vec<String> {
    one.difference(other).map(Right::to_string).collect()
}

fn rights_of(namespace: Option<&str>, rules: &[PolicyRule]) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    for rule in rules {
        assert!(rule.non_resource_urls.is_none(), "paths are not asked for: {rule:?}");
        let names: Vec<Option<String>> = match &rule.resource_names {
            None => vec![None],
            Some(names) => names.iter().cloned().map(Some).collect(),
        };
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                for verb in &rule.verbs {
                    rights.extend(names.iter().map(|name| Right {
                        namespace: namespace.map(str::to_owned),
                        group: group.clone(),
                        resource: resource.clone(),
                        verb: verb.clone(),
                        name: name.clone(),
                    }));
                }
            }
        }
    }
    rights
}

/// What the bindings give the account of the controller.
pub(crate) fn granted(manifests: &Manifests) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    for kind in ["ClusterRoleBinding", "RoleBinding"] {
        for binding in manifests.of_kind(kind) {
            let account = &binding["subjects"][0];
            assert_eq!(binding["subjects"].as_array().unwrap().len(), 1);
            assert_eq!(account["kind"], "ServiceAccount");
            let (name, namespace) = (account["name"].as_str().unwrap(), account["namespace"].as_str());
            assert_eq!(manifests.get("ServiceAccount", name)["metadata"]["namespace"].as_str(), namespace);
            let reference = &binding["roleRef"];
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let role = manifests.get(&text(&reference["kind"]), &text(&reference["name"]));
            assert!(
                role["metadata"]["namespace"].is_null()
                    || role["metadata"]["namespace"] == binding["metadata"]["namespace"]
            );
            let rules: Vec<PolicyRule> = serde_json::from_value(role["rules"].clone()).unwrap();
            let place = binding["metadata"]["namespace"].as_str();
            assert_eq!(place.is_some(), kind == "RoleBinding");
            for right in rights_of(place, &rules) {
                assert!(rights.insert(right.clone()), "{right} is granted twice");
            }
        }
    }
    rights
}

/// What the library asks for.
fn needed(manifests: &Manifests) -> BTreeSet<Right> {
    let permissions = permissions(&manifests.options());
    let mut rights = rights_of(None, &permissions.cluster);
    for (namespace, rules) in &permissions.namespaces {
        rights.extend(rights_of(Some(namespace), rules));
    }
    rights
}

fn compare(manifests: &Manifests) {
    let (granted, needed) = (granted(manifests), needed(manifests));
    assert_eq!(without(&needed, &granted), [""; 0], "is needed and not granted");
    assert_eq!(without(&granted, &needed), [""; 0], "is granted and not needed");
}

#[test]
fn roles_for_the_whole_cluster_are_what_the_library_asks_for() {
    compare(&Manifests::cluster_wide());
}

#[test]
fn roles_for_one_namespace_are_what_the_library_asks_for() {
    let manifests = Manifests::namespaced();
    compare(&manifests);
    let everywhere = granted(&manifests).into_iter().filter(|right| right.namespace.is_none());
    let resources: BTreeSet<String> = everywhere.map(|right| right.resource).collect();
    let scopeless = [
        "customresourcedefinitions",
        "gatewayclasses",
        "gatewayclasses/status",
        "ingressclasses",
        "namespaces",
    ];
    assert!(resources.iter().eq(scopeless), "{resources:?}");
}

#[test]
fn every_role_is_bound_and_none_has_a_wildcard() {
    for manifests in [Manifests::cluster_wide(), Manifests::namespaced()] {
        let mut bound = BTreeSet::new();
        for kind in ["ClusterRoleBinding", "RoleBinding"] {
            bound.extend(manifests.of_kind(kind).map(|binding| binding["roleRef"]["name"].to_string()));
        }
        for kind in ["ClusterRole", "Role"] {
            for role in manifests.of_kind(kind) {
                assert!(bound.contains(&role["metadata"]["name"].to_string()), "{role}");
                assert!(!role["rules"].to_string().contains('*'), "{role}");
            }
        }
    }
}
