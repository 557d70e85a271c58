//! The chart of Helm, which is the same as the manifests.

use std::collections::BTreeMap;
use std::process::{Command, Output};

use pingsix_test_cluster::{TestCluster, tool_or_skip};
use serde_json::{Value, json};

use super::manifests::{Manifests, folder};

/// The ConfigMap of options for data planes, which the chart has in the one of the controller.
const OPTIONS_OF_DATA_PLANES: &str = "pingsix-gateway-controller-data-planes";

/// Runs helm on the chart. `None` without helm.
fn helm(arguments: &[&str]) -> Option<Output> {
    let mut command = Command::new(tool_or_skip("helm")?);
    let (subcommand, rest) = arguments.split_first().unwrap();
    command.arg(subcommand).arg(folder().join("charts/pingsix-gateway")).args(rest);
    // Without the kubeconfig and the settings of the user.
    Some(command.env("HOME", "/nonexistent").env_remove("KUBECONFIG").output().unwrap())
}

fn template(namespace: &str, values: &[&str]) -> Option<Result<String, String>> {
    let settings: Vec<&str> = values.iter().flat_map(|value| ["--set", value]).collect();
    let output = helm(&[&["template", "--namespace", namespace], &*settings].concat())?;
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Some(if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) })
}

/// Objects by kind, namespace and name.
fn by_name<'a>(objects: impl IntoIterator<Item = &'a Value>) -> BTreeMap<String, Value> {
    let name = |object: &Value| {
        let metadata = &object["metadata"];
        format!("{} {} {}", object["kind"], metadata["namespace"], metadata["name"])
    };
    objects.into_iter().map(|object| (name(object), object.clone())).collect()
}

/// The objects of a kustomization without what the chart leaves to helm, and with all options in one ConfigMap.
fn of_kustomization(manifests: &Manifests) -> BTreeMap<String, Value> {
    let mut options = serde_json::Map::new();
    for map in manifests.of_kind("ConfigMap") {
        options.extend(map["data"].as_object().unwrap().clone());
    }
    let mut objects: Vec<Value> = manifests.all().cloned().collect();
    objects.retain(|object| match object["kind"].as_str().unwrap() {
        "Namespace" => false,
        "ConfigMap" => object["metadata"]["name"] != OPTIONS_OF_DATA_PLANES,
        _ => true,
    });
    for object in &mut objects {
        match object["kind"].as_str().unwrap() {
            "ConfigMap" => object["data"] = options.clone().into(),
            "Deployment" => {
                let sources = &mut object["spec"]["template"]["spec"]["containers"][0]["envFrom"];
                let optional = sources.as_array_mut().unwrap().pop().unwrap();
                assert_eq!(optional["configMapRef"]["optional"], true);
            }
            _ => {}
        }
    }
    by_name(&objects)
}

/// The objects of the chart without the annotations that are for helm.
fn of_chart(text: &str) -> BTreeMap<String, Value> {
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    for object in &mut objects {
        if object["kind"] == "CustomResourceDefinition" {
            let annotations = object["metadata"]["annotations"].as_object_mut().unwrap();
            assert_eq!(annotations.remove("helm.sh/resource-policy"), Some("keep".into()));
            if annotations.is_empty() {
                object["metadata"].as_object_mut().unwrap().remove("annotations");
            }
        }
        if let Some(annotations) = object.pointer_mut("/spec/template/metadata/annotations") {
            assert!(annotations.as_object_mut().unwrap().remove("checksum/options").is_some());
        }
    }
    by_name(&objects)
}

#[test]
fn the_chart_renders_the_objects_of_each_kustomization() {
    let managed = "dataPlanes.enabled=true";
    let second = [
        managed,
        "nameSuffix=-payments",
        "controller.name=pingsix.io/payments",
        "controller.watchNamespaces={payments}",
        "controller.options.PINGSIX_GATEWAY_LEADER_LEASE=pingsix-io-gateway-controller",
        "crds.install=false",
    ];
    let own = [
        managed,
        "image.repository=registry.example/pingsix-gateway-controller",
        "dataPlanes.image=registry.example/pingsix:0.1.0",
        "dataPlanes.sidecarImage=registry.example/pingsix-gateway-sidecar:0.1.0",
        "controller.options.PINGSIX_GATEWAY_WATCH_SECRETS=all",
    ];
    let external_feed = [
        "feed.names={feed.example.com}",
        "feed.clients[0].secret=edge-feed",
        "feed.clients[0].dataPlanes={edge/web}",
        "feed.external.enabled=true",
        "feed.external.networks={192.0.2.0/24}",
    ];
    let shapes: [(&str, &str, &[&str]); 6] = [
        (".", "pingsix-system", &[]),
        ("managed", "pingsix-system", &[managed]),
        ("namespaced", "pingsix-system", &[managed, "controller.watchNamespaces={shop}"]),
        ("second", "pingsix-payments", &second),
        ("own", "pingsix-system", &own),
        ("external-feed", "pingsix-system", &external_feed),
    ];
    for (name, namespace, values) in shapes {
        let Some(rendered) = template(namespace, values) else { return };
        let Some(manifests) = Manifests::built(name) else { return };
        let (chart, kustomization) = (of_chart(&rendered.unwrap()), of_kustomization(&manifests));
        let names = |objects: &BTreeMap<String, Value>| objects.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&chart), names(&kustomization), "{name}");
        for (object, expected) in kustomization {
            assert_eq!(chart[&object], expected, "{name}: {object}");
        }
    }
}

#[test]
fn helm_finds_no_fault_in_the_chart() {
    let Some(output) = helm(&["lint", "--strict"]) else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn the_schema_refuses_what_the_chart_does_not_know_and_names_the_field() {
    for (value, field) in [
        ("replica=3", "replica"),
        ("replicas=many", "/replicas"),
        ("controller.options.WATCH_SECRETS=all", "WATCH_SECRETS"),
        ("controller.watchNamespaces={Shop}", "/controller/watchNamespaces/0"),
        ("nameSuffix=payments", "/nameSuffix"),
        ("feed.external.enabled=true", "/feed/external/networks"),
        ("feed.clients[0].secret=Edge", "/feed/clients/0"),
        ("feed.clients[0].secret=edge,feed.clients[0].dataPlanes={q}", "/feed/clients/0/dataPlanes/0"),
        ("feed.authority=false,feed.names={feed.example.com}", "feed.authority"),
        ("controller.options.PINGSIX_GATEWAY_WATCH_NAMESPACES=shop", "PINGSIX_GATEWAY_WATCH_NAMESPACES"),
        ("controller.options.PINGSIX_GATEWAY_LEADER_NAMESPACE=x", "PINGSIX_GATEWAY_LEADER_NAMESPACE"),
        (
            "controller.options.PINGSIX_GATEWAY_RESPONDER=false",
            "/controller/options/PINGSIX_GATEWAY_RESPONDER",
        ),
        ("controller.extraVolumes[0].name=feed-tls", "/controller/extraVolumes/0/name"),
        ("nameSuffix=-payments", "controller.name"),
        ("podLabels.app\\.kubernetes\\.io/name=x", "app.kubernetes.io/name"),
        ("gatewayClass.name=Foo", "/gatewayClass/name"),
        ("autoscaling.enabled=true,autoscaling.minReplicas=9", "autoscaling.maxReplicas"),
        ("monitoring.podMonitor.interval=soon", "/monitoring/podMonitor/interval"),
    ] {
        let Some(rendered) = template("pingsix-system", &[value]) else { return };
        let message = rendered.unwrap_err();
        assert!(message.contains(field), "{value}: {message}");
    }
}

/// The objects of the chart with a file of values.
fn with_values(values: &Value) -> Option<Vec<Value>> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, values.to_string()).unwrap();
    let output = helm(&["template", "--namespace", "2024", "--values", file.path().to_str().unwrap()])?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_saphyr::from_multiple(&String::from_utf8(output.stdout).unwrap()).unwrap())
}

#[test]
fn numbers_of_a_file_stay_as_they_are_and_names_stay_texts() {
    let values = json!({
        "controller": {
            "options": {"PINGSIX_GATEWAY_BUDGET_BYTES": 4_000_000, "PINGSIX_GATEWAY_LEADER_ELECT": true},
            "watchNamespaces": ["2025"],
        },
        "dataPlanes": {"enabled": true},
        "feed": {"clients": [{"secret": "123", "dataPlanes": ["edge/web"]}]},
        "gatewayClass": {"name": "456"},
        "networkPolicy": {"dataPlanes": {"namespaces": ["2025"]}},
        "monitoring": {"dashboard": {"enabled": true, "labels": {"grafana_dashboard": null}}},
    });
    let Some(objects) = with_values(&values) else { return };
    let options = objects.iter().find(|object| object["kind"] == "ConfigMap").unwrap();
    assert_eq!(options["data"]["PINGSIX_GATEWAY_BUDGET_BYTES"], "4000000");
    assert_eq!(options["data"]["PINGSIX_GATEWAY_LEADER_ELECT"], "true");
    for object in &objects {
        let metadata = &object["metadata"];
        assert!(metadata["name"].is_string(), "{object}");
        assert!(metadata.get("namespace").is_none_or(Value::is_string), "{object}");
        for rule in object["rules"].as_array().into_iter().flatten() {
            let names = rule["resourceNames"].as_array().into_iter().flatten();
            assert!(names.into_iter().all(Value::is_string), "{object}");
        }
    }
}

#[test]
fn the_authority_of_the_feed_can_be_named_and_left_out() {
    const OPTION: &str = "PINGSIX_GATEWAY_FEED_AUTHORITY_SECRET";
    let role = |objects: &[Value]| {
        let name = "pingsix-gateway-controller-feed-authority";
        objects.iter().find(|one| one["kind"] == "Role" && one["metadata"]["name"] == name).cloned()
    };
    let Some(named) = with_values(&json!({"controller": {"options": {OPTION: "mine"}}})) else { return };
    assert_eq!(role(&named).unwrap()["rules"][1]["resourceNames"], json!(["mine"]));
    let plaintext = json!({
        "controller": {"options": {"PINGSIX_GATEWAY_FEED_ALLOW_PLAINTEXT": true}},
        "dataPlanes": {"enabled": true}, "feed": {"authority": false},
    });
    let without = with_values(&plaintext).unwrap();
    let options = &without.iter().find(|object| object["kind"] == "ConfigMap").unwrap()["data"];
    assert_eq!(options.get(OPTION), None);
    assert_eq!(options["PINGSIX_GATEWAY_FEED_ENDPOINT"], "http://pingsix-gateway-feed.2024.svc:2379");
    assert_eq!(
        role(&without).unwrap()["rules"].as_array().unwrap().len(),
        1,
        "to create the key of status pages"
    );
    let own = with_values(&json!({"feed": {"authority": false}})).unwrap();
    assert_eq!(role(&own), None);
}

#[test]
fn the_chart_takes_variables_and_files_and_leaves_the_user_to_the_cluster() {
    let variable =
        json!({"name": "PINGSIX_ADMIN_KEY", "valueFrom": {"secretKeyRef": {"name": "a", "key": "k"}}});
    let (volume, mount) = (
        json!({"name": "status", "secret": {"secretName": "s"}}),
        json!({"name": "status", "mountPath": "/s"}),
    );
    let values = json!({
        "enabled": true,
        "controller": {"extraEnv": [variable], "extraVolumes": [volume], "extraVolumeMounts": [mount]},
        "podSecurityContext": {"runAsUser": null, "runAsGroup": null, "fsGroup": null},
    });
    let Some(objects) = with_values(&values) else { return };
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    for (list, last) in
        [(&container["env"], variable), (&container["volumeMounts"], mount), (&pod["volumes"], volume)]
    {
        assert_eq!(list.as_array().unwrap().last(), Some(&last));
    }
    assert_eq!(
        pod["securityContext"],
        json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}})
    );
}

#[test]
fn optional_objects_are_rendered_where_they_are_asked_for() {
    let values = [
        "autoscaling.enabled=true",
        "monitoring.serviceMonitor.enabled=true",
        "monitoring.podMonitor.enabled=true",
        "monitoring.prometheusRule.enabled=true",
        "monitoring.prometheusRule.labels.release=prometheus",
        "monitoring.dashboard.enabled=true",
        "networkPolicy.enabled=false",
        "podDisruptionBudget.enabled=false",
        "gatewayClass.create=false",
        "priorityClassName=high",
        "nodeSelector.edge=yes",
        "imagePullSecrets[0].name=registry",
    ];
    let Some(rendered) = template("pingsix-system", &values) else { return };
    let objects: Vec<Value> = serde_saphyr::from_multiple(&rendered.unwrap()).unwrap();
    let of_kind = |kind: &str| objects.iter().filter(|object| object["kind"] == kind).collect::<Vec<_>>();
    for kind in ["NetworkPolicy", "PodDisruptionBudget", "GatewayClass"] {
        assert!(of_kind(kind).is_empty(), "{kind}");
    }
    for kind in ["HorizontalPodAutoscaler", "ServiceMonitor", "PodMonitor", "PrometheusRule"] {
        assert_eq!(of_kind(kind).len(), 1, "{kind}");
    }
    let file = |name: &str| std::fs::read_to_string(folder().join("monitoring").join(name)).unwrap();
    let alerts: Value = serde_saphyr::from_str(&file("alerts.yaml")).unwrap();
    let rule = of_kind("PrometheusRule")[0];
    assert_eq!(rule["spec"], alerts);
    assert_eq!(rule["metadata"]["labels"]["release"], "prometheus");
    let maps = of_kind("ConfigMap");
    let dashboard = maps.iter().find(|map| map["metadata"]["labels"]["grafana_dashboard"] == "1").unwrap();
    let shown: Value =
        serde_json::from_str(dashboard["data"]["pingsix-gateway.json"].as_str().unwrap()).unwrap();
    assert_eq!(shown, serde_json::from_str::<Value>(&file("dashboard.json")).unwrap());
    let deployment = of_kind("Deployment")[0];
    assert_eq!(deployment["spec"].get("replicas"), None, "the autoscaler has the number");
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["priorityClassName"], "high");
    assert_eq!(pod["nodeSelector"]["edge"], "yes");
    assert_eq!(pod["imagePullSecrets"][0]["name"], "registry");
}

#[tokio::test]
async fn the_prometheus_operator_accepts_the_objects_for_monitoring() {
    let values = ["serviceMonitor", "podMonitor", "prometheusRule"]
        .map(|kind| format!("monitoring.{kind}.enabled=true,monitoring.{kind}.labels.release=prometheus"));
    let Some(rendered) = template("pingsix-system", &values.each_ref().map(String::as_str)) else { return };
    let Some(cluster) = TestCluster::builder().crds(None).start_or_skip().await else { return };
    cluster.install_monitoring().await.unwrap();
    cluster.namespace("pingsix-system").await.unwrap();
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(&rendered.unwrap()).unwrap();
    objects.retain(|object| object["apiVersion"].as_str().unwrap().starts_with("monitoring.coreos.com/"));
    assert_eq!(objects.len(), 3);
    for mut object in objects {
        cluster.apply(&object.to_string()).await.unwrap();
        object["spec"]["misspelt"] = true.into();
        let refusal = cluster.apply(&object.to_string()).await.unwrap_err();
        assert!(format!("{refusal:?}").contains("spec.misspelt"), "{refusal:?}");
    }
}

#[test]
fn a_policy_of_data_planes_opens_the_named_ports_alone() {
    let open = |values: &[&str]| -> Option<Vec<(String, Vec<Value>)>> {
        let namespaces = ["networkPolicy.dataPlanes.namespaces={shop,payments}"];
        let rendered = template("pingsix-system", &[&namespaces, values].concat())?.unwrap();
        let objects: Vec<Value> = serde_saphyr::from_multiple(&rendered).unwrap();
        let policies = objects.iter().filter(|object| {
            object["kind"] == "NetworkPolicy" && object["metadata"]["namespace"] != "pingsix-system"
        });
        let rules = |policy: &Value| policy["spec"]["ingress"].as_array().unwrap().clone();
        Some(
            policies
                .map(|policy| (policy["metadata"]["namespace"].as_str().unwrap().to_owned(), rules(policy)))
                .collect(),
        )
    };
    let ports = |rule: &Value| -> Vec<String> {
        let ports = rule["ports"].as_array().unwrap().iter();
        ports.map(|port| format!("{} {}", port["protocol"].as_str().unwrap(), port["port"])).collect()
    };
    let Some(policies) = open(&["networkPolicy.dataPlanes.streamPorts={53,5432}"]) else { return };
    assert_eq!(policies.iter().map(|(namespace, _)| &**namespace).collect::<Vec<_>>(), ["shop", "payments"]);
    for (_, rules) in &policies {
        let of_clients =
            ["TCP \"port-80\"", "TCP \"port-443\"", "TCP 10053", "UDP 10053", "TCP 5432", "UDP 5432"];
        assert_eq!(ports(&rules[0]), of_clients);
        assert_eq!(ports(&rules[1]), ["TCP \"status-80\"", "TCP \"status-443\"", "TCP \"metrics-sidecar\""]);
        assert_eq!(rules.len(), 2, "nobody reads metrics");
        assert_eq!(rules[0].get("from"), None, "everyone");
    }
    let peers = open(&["networkPolicy.dataPlanes.clients[0].ipBlock.cidr=192.0.2.0/24"]).unwrap();
    assert_eq!(peers[0].1[0]["from"], json!([{"ipBlock": {"cidr": "192.0.2.0/24"}}]));
    // A rule without ports would open all of them.
    let none = [
        "networkPolicy.dataPlanes.httpPorts=null",
        "networkPolicy.dataPlanes.metricsClients[0].podSelector.matchLabels.app=prometheus",
    ];
    for (_, rules) in open(&none).unwrap() {
        assert!(rules.iter().all(|rule| !rule["ports"].as_array().unwrap().is_empty()), "{rules:?}");
    }
}
