//! References of manifests lead to existing objects.

use std::collections::BTreeSet;

use serde_json::Value;

use super::manifests::Manifests;

fn all() -> [Manifests; 3] {
    [Manifests::cluster_wide(), Manifests::namespaced(), Manifests::example()]
}

fn template(manifests: &Manifests) -> &Value {
    &manifests.of_kind("Deployment").next().unwrap()["spec"]["template"]
}

fn containers(template: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["initContainers", "containers"].into_iter();
    lists.filter_map(|list| template["spec"][list].as_array()).flatten()
}

/// The names of the ports of a template.
fn ports(template: &Value) -> BTreeSet<&str> {
    let ports = containers(template).filter_map(|container| container["ports"].as_array()).flatten();
    ports.filter_map(|port| port["name"].as_str()).collect()
}

/// Whether labels match a selector.
fn are_selected(labels: &Value, selector: &Value) -> bool {
    let selector = selector.as_object().unwrap();
    !selector.is_empty() && selector.iter().all(|(label, value)| labels[label] == *value)
}

#[test]
fn selectors_choose_the_pods_of_the_deployment() {
    for manifests in all() {
        let labels = &template(&manifests)["metadata"]["labels"];
        for (kind, at) in [
            ("Deployment", "/spec/selector/matchLabels"),
            ("Service", "/spec/selector"),
            ("PodDisruptionBudget", "/spec/selector/matchLabels"),
            ("NetworkPolicy", "/spec/podSelector/matchLabels"),
        ] {
            for object in manifests.of_kind(kind) {
                assert!(are_selected(labels, object.pointer(at).unwrap()), "{object}");
            }
        }
    }
}

#[test]
fn ports_have_the_names_they_are_called_by() {
    for manifests in all() {
        let template = template(&manifests);
        let ports = ports(template);
        let mut named = BTreeSet::new();
        for service in manifests.of_kind("Service") {
            let ports = service["spec"]["ports"].as_array().unwrap().iter();
            named.extend(ports.map(|port| port["targetPort"].as_str().unwrap()));
        }
        for policy in manifests.of_kind("NetworkPolicy") {
            let rules = policy["spec"]["ingress"].as_array().unwrap().iter();
            let ports = rules.flat_map(|rule| rule["ports"].as_array().unwrap());
            named.extend(ports.map(|port| port["port"].as_str().unwrap()));
        }
        for container in containers(template) {
            let probes = ["startupProbe", "livenessProbe", "readinessProbe"].into_iter();
            let of_probes = probes.filter_map(|probe| container[probe].pointer("/httpGet/port"));
            named.extend(of_probes.map(|port| port.as_str().unwrap()));
        }
        assert!(!named.is_empty());
        for name in named {
            assert!(ports.contains(name), "{name} is none of {ports:?}");
        }
    }
}

#[test]
fn pingsix_of_the_example_may_reach_the_feed() {
    let (controller, example) = (Manifests::cluster_wide(), Manifests::example());
    let labels = &template(&example)["metadata"]["labels"];
    let policy = controller.get("NetworkPolicy", "pingsix-gateway-controller");
    let feed = policy["spec"]["ingress"].as_array().unwrap().iter();
    let feed: Vec<&Value> = feed.filter(|rule| rule["ports"][0]["port"] == "feed").collect();
    assert_eq!(feed.len(), 1);
    assert!(are_selected(labels, &feed[0]["from"][0]["podSelector"]["matchLabels"]));
    assert!(!are_selected(
        &template(&controller)["metadata"]["labels"],
        &feed[0]["from"][0]["podSelector"]["matchLabels"]
    ));

    // The example's responder is at the address that the controller uses.
    let responder = containers(template(&example)).find(|container| container["name"] == "sidecar").unwrap();
    let flag = format!("--responder-listen={}", controller.variables()["PINGSIX_GATEWAY_RESPONDER"]);
    assert!(responder["args"].as_array().unwrap().iter().any(|given| *given == flag), "{flag}");
}

#[test]
fn volumes_and_mounts_go_together() {
    for manifests in all() {
        let template = template(&manifests);
        let names = |list: &Value| -> BTreeSet<String> {
            list.as_array().unwrap().iter().map(|one| one["name"].to_string()).collect()
        };
        let mounts = containers(template).map(|container| &container["volumeMounts"]);
        let mounted: BTreeSet<String> = mounts.filter(|list| list.is_array()).flat_map(names).collect();
        assert_eq!(mounted, names(&template["spec"]["volumes"]));
        for volume in template["spec"]["volumes"].as_array().unwrap() {
            if let Some(config) = volume["configMap"]["name"].as_str() {
                manifests.get("ConfigMap", config);
            }
        }
    }
}

#[test]
fn metadata_holds_nothing_that_an_api_server_would_drop() {
    let known = ["name", "namespace", "labels", "annotations"];
    for manifests in all() {
        for object in manifests.all() {
            let keys = object["metadata"].as_object().unwrap().keys();
            let unknown: Vec<&String> = keys.filter(|key| !known.contains(&key.as_str())).collect();
            assert!(unknown.is_empty(), "{} {}: {unknown:?}", object["kind"], object["metadata"]["name"]);
        }
    }
}
