//! The permissions of the roles, against the permissions that the library needs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::api::rbac::v1::PolicyRule;
use pingsix_gateway_api::controller::ControllerOptions;
use pingsix_gateway_api::permissions::permissions;
use serde_json::Value;

use super::manifests::Manifests;

/// One permission or request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Right {
    /// The namespace; `None` for all.
    pub(crate) namespace: Option<String>,
    pub(crate) group: String,
    /// With the part of it, as `gateways/status`.
    pub(crate) resource: String,
    pub(crate) verb: String,
    /// The only object of the permission.
    pub(crate) name: Option<String>,
}

impl Right {
    /// The permission for all namespaces and objects.
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

/// The differences of two sets, as text.
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

/// The permissions that the bindings give the account of the controller.
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

/// The permissions that the library needs.
fn needed(options: &ControllerOptions) -> BTreeSet<Right> {
    let permissions = permissions(options);
    let mut rights = rights_of(None, &permissions.cluster);
    for (namespace, rules) in &permissions.namespaces {
        rights.extend(rights_of(Some(namespace), rules));
    }
    rights
}

fn compare(manifests: &Manifests) {
    compare_with(manifests, &manifests.options());
}

fn compare_with(manifests: &Manifests, options: &ControllerOptions) {
    let (granted, needed) = (granted(manifests), needed(options));
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

/// Watches of provisioned objects are as wide as all others, so a role binding in some namespaces would not help.
#[test]
fn without_data_planes_only_statuses_and_own_objects_may_be_written() {
    let manifests = Manifests::without_data_planes();
    let options = manifests.options();
    assert!(options.provisioning.is_none());
    compare_with(&manifests, &options);
    let writes = |right: &Right| !["get", "list", "watch"].contains(&right.verb.as_str());
    for right in granted(&manifests).iter().filter(|right| writes(right)) {
        let is_status = right.resource.ends_with("/status") || right.resource == "events";
        assert!(is_status || right.namespace.as_deref() == Some("pingsix-system"), "{right}");
    }
    assert!(Manifests::cluster_wide().options().provisioning.is_some());
}

#[test]
fn a_second_installation_has_its_rights_and_no_object_of_the_first() {
    let Some(second) = Manifests::built("second") else { return };
    compare(&second);
    let names = |manifests: &Manifests| -> BTreeSet<String> {
        let name = |object: &Value| {
            let of = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
            format!("{} {}/{}", object["kind"], of("namespace"), of("name"))
        };
        manifests.all().map(name).collect()
    };
    let own = names(&second);
    for first in [Manifests::cluster_wide(), Manifests::namespaced()] {
        let shared: Vec<String> = names(&first).intersection(&own).cloned().collect();
        assert_eq!(shared, [""; 0]);
        assert_ne!(first.options().translation.controller_name, second.options().translation.controller_name);
    }
    let class = second.get("GatewayClass", "pingsix-payments");
    assert_eq!(class["spec"]["controllerName"], *second.options().translation.controller_name);
    // The Pods have this account and these options.
    let pod = &second.of_kind("Deployment").next().unwrap()["spec"]["template"]["spec"];
    second.get("ServiceAccount", pod["serviceAccountName"].as_str().unwrap());
    let config = pod["containers"][0]["envFrom"][0]["configMapRef"]["name"].as_str().unwrap();
    assert_eq!(second.get("ConfigMap", config)["metadata"]["namespace"], "pingsix-payments");
    assert!(!second.text().contains("pingsix-system"), "nothing of the first is named");
}

#[test]
fn an_installation_with_external_readers_writes_their_secrets_by_name() {
    let Some(manifests) = Manifests::built("external-feed") else { return };
    compare(&manifests);
    let named = |right: &Right| right.name.as_deref() == Some("edge-feed");
    let verbs: Vec<String> = granted(&manifests).into_iter().filter(named).map(|right| right.verb).collect();
    assert_eq!(verbs, ["get", "update"]);
}

#[test]
fn an_overlay_changes_its_images_and_its_options_alone() {
    let Some(mut own) = Manifests::built("own") else { return };
    let mut expected = Manifests::cluster_wide();
    let image = "registry.example/pingsix-gateway-controller:0.1.0";
    let container = "/spec/template/spec/containers/0/image";
    expected.set("Deployment", "pingsix-gateway-controller", container, image.into());
    let config = expected.get("ConfigMap", "pingsix-gateway-controller");
    let mut variables: BTreeMap<String, String> = serde_json::from_value(config["data"].clone()).unwrap();
    for (name, value) in [
        ("DATA_PLANE_IMAGE", "registry.example/pingsix:0.1.0"),
        ("DATA_PLANE_SIDECAR_IMAGE", "registry.example/pingsix-gateway-sidecar:0.1.0"),
        ("WATCH_SECRETS", "all"),
    ] {
        assert!(variables.insert(format!("PINGSIX_GATEWAY_{name}"), value.to_owned()).is_none());
    }
    expected.set("ConfigMap", "pingsix-gateway-controller", "/data", serde_json::json!(variables));
    // Kustomize writes the numbers of a schema in another way.
    for plural in [
        "backendtrafficpolicies",
        "httproutefilters",
        "pingsixproxies",
        "securitypolicies",
        "trafficpolicies",
    ] {
        let definition = format!("{plural}.pingsix.io");
        expected.drop("CustomResourceDefinition", &definition);
        own.drop("CustomResourceDefinition", &definition);
    }
    let texts = |manifests: &Manifests| manifests.all().map(Value::to_string).collect::<BTreeSet<_>>();
    let (own, expected) = (texts(&own), texts(&expected));
    assert_eq!(own.symmetric_difference(&expected).collect::<Vec<_>>(), [""; 0]);
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
