use std::collections::BTreeSet;

use k8s_openapi::api::rbac::v1::PolicyRule;
use pingsix_translate::{ObjectName, Options};

use super::{Permissions, permissions};
use crate::controller::{ControllerOptions, ProvisioningOptions, PublishedAddresses};
use crate::leader::LeaseOptions;
use crate::pki::AuthorityOptions;
use crate::provision::Installation;
use crate::watch::Namespaces;

fn options() -> ControllerOptions {
    ControllerOptions::new(Options::default(), "test")
}

fn only(namespaces: &[&str]) -> Namespaces {
    Namespaces::Only(namespaces.iter().map(|name| (*name).to_owned()).collect())
}

/// The permissions as lines such as `list gateways` or `update leases/name`.
fn lines(rules: &[PolicyRule]) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for rule in rules {
        for resource in rule.resources.iter().flatten() {
            for verb in &rule.verbs {
                let names = rule.resource_names.clone().unwrap_or_else(|| vec![String::new()]);
                lines.extend(names.iter().map(|name| format!("{verb} {resource} {name}").trim().to_owned()));
            }
        }
    }
    lines
}

fn namespaces(permissions: &Permissions) -> Vec<&str> {
    permissions.namespaces.keys().map(String::as_str).collect()
}

#[test]
fn statuses_and_events_alone_are_written_everywhere() {
    let permissions = permissions(&options());
    assert!(permissions.namespaces.is_empty());
    for line in lines(&permissions.cluster) {
        let (verb, resource) = line.split_once(' ').unwrap();
        match verb {
            "list" | "watch" => {}
            "patch" => assert!(resource.ends_with("/status") || resource == "events", "{line}"),
            "create" => assert_eq!(resource, "events"),
            "get" => assert!(!["secrets", "configmaps", "services"].contains(&resource), "{line}"),
            _ => panic!("{line}"),
        }
    }
}

#[test]
fn in_some_namespaces_only_cluster_scoped_kinds_are_read_everywhere() {
    let mut options = options();
    options.watch.namespaces = only(&["shop"]);
    let permissions = permissions(&options);
    let read = ["customresourcedefinitions", "gatewayclasses", "ingressclasses", "namespaces"];
    let mut everywhere: BTreeSet<String> =
        read.iter().flat_map(|kind| [format!("list {kind}"), format!("watch {kind}")]).collect();
    everywhere.extend(["get gatewayclasses".to_owned(), "patch gatewayclasses/status".to_owned()]);
    assert_eq!(lines(&permissions.cluster), everywhere);
    // Events on classes are in `default`, which is not watched.
    assert_eq!(namespaces(&permissions), ["default", "shop"]);
    assert_eq!(lines(&permissions.namespaces["default"]).len(), 3);
    assert!(lines(&permissions.namespaces["shop"]).contains("list secrets"));
}

#[test]
fn leases_are_named_except_where_they_are_created() {
    let mut options = options();
    options.lease = Some(LeaseOptions::new("home", "pingsix.io/gateway-controller", "pod"));
    let permissions = permissions(&options);
    let lease = [
        "create leases",
        "get leases pingsix-io-gateway-controller",
        "get leases pingsix-io-gateway-controller-revisions",
        "list leases pingsix-io-gateway-controller-replicas",
        "list leases pingsix-io-gateway-controller-revisions",
        "patch leases pingsix-io-gateway-controller-replicas",
        "update leases pingsix-io-gateway-controller",
        "update leases pingsix-io-gateway-controller-revisions",
        "watch leases pingsix-io-gateway-controller-replicas",
        "watch leases pingsix-io-gateway-controller-revisions",
    ];
    assert_eq!(namespaces(&permissions), ["home"]);
    assert!(lines(&permissions.namespaces["home"]).iter().eq(lease));
}

#[test]
fn data_planes_are_written_where_gateways_are_and_nowhere_else() {
    let mut options = options();
    let everywhere = lines(&permissions(&options).cluster);
    options.provisioning = Some(provisioning());
    let added: BTreeSet<String> =
        lines(&permissions(&options).cluster).difference(&everywhere).cloned().collect();
    let written = ["secrets", "services", "serviceaccounts", "deployments", "poddisruptionbudgets"];
    for resource in written {
        for verb in ["create", "delete", "get", "patch"] {
            assert!(added.contains(&format!("{verb} {resource}")), "{verb} {resource}");
        }
    }
    assert!(added.iter().all(|line| written.contains(&line.split_once(' ').unwrap().1)), "{added:?}");

    options.watch.namespaces = only(&["shop"]);
    let permissions = permissions(&options);
    assert_eq!(namespaces(&permissions), ["default", "home", "shop"]);
    let of_key = ["create secrets", "list secrets status-key", "watch secrets status-key"];
    assert!(lines(&permissions.namespaces["home"]).iter().eq(of_key));
    assert!(lines(&permissions.namespaces["shop"]).contains("delete deployments"));
    assert!(!lines(&permissions.cluster).contains("list deployments"));
}

fn provisioning() -> ProvisioningOptions {
    let installation = Installation {
        controller_name: "pingsix.io/gateway-controller".to_owned(),
        root: "/pingsix".to_owned(),
        feed: Vec::new(),
        image: String::new(),
        sidecar_image: String::new(),
        responder: ([127, 0, 0, 1], 8089).into(),
    };
    ProvisioningOptions { installation, key: ObjectName::new("home", "status-key") }
}

#[test]
fn the_authority_of_the_feed_is_one_secret_by_its_name() {
    let mut options = options();
    options.feed_authority =
        Some(AuthorityOptions::new(ObjectName::new("home", "feed-authority"), "pingsix-gateway-feed"));
    let permissions = permissions(&options);
    let expected = [
        "create secrets",
        "list secrets feed-authority",
        "update secrets feed-authority",
        "watch secrets feed-authority",
    ];
    assert_eq!(namespaces(&permissions), ["home"]);
    assert!(lines(&permissions.namespaces["home"]).iter().eq(expected));
}

#[test]
fn a_published_service_outside_what_is_watched_is_asked_for_by_its_name() {
    let mut options = options();
    options.addresses = PublishedAddresses::Service(ObjectName::new("edge", "pingsix"));
    assert!(permissions(&options).namespaces.is_empty());
    options.watch.namespaces = only(&["edge"]);
    assert_eq!(namespaces(&permissions(&options)), ["default", "edge"]);
    options.watch.namespaces = only(&["shop"]);
    let permissions = permissions(&options);
    assert!(
        lines(&permissions.namespaces["edge"]).iter().eq(["list services pingsix", "watch services pingsix"])
    );
}
