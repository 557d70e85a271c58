use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use pingsix_translate::DataPlaneKey;
use pingsix_translate::crd::{ExternalTrafficPolicy, ServiceType};
use pingsix_translate::infrastructure::{
    DisruptionLimit, INGRESS_PORTS, InfrastructurePort, ManagedParameters, RequestedAddress,
    RequestedAddressKind, StreamInfrastructure,
};
use pingsix_translate::stream::{FRONT_SLOTS, front_address};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use super::*;

pub(crate) fn installation() -> Installation {
    Installation {
        controller_name: "pingsix.io/gateway-controller".to_owned(),
        root: "/pingsix".to_owned(),
        feed: vec!["https://pingsix-gateway-feed.pingsix-system.svc:2379".to_owned()],
        image: "pingsix:0.1.0".to_owned(),
        sidecar_image: "pingsix-gateway-sidecar:0.1.0".to_owned(),
        responder: ([127, 0, 0, 1], 8089).into(),
    }
}

/// Gateway `infra/web` with these ports; those whose number ends with 443 have TLS.
pub(crate) fn gateway(ports: &[u16]) -> Infrastructure {
    let gateway = ObjectName::new("infra", "web");
    let port = |port: u16| InfrastructurePort {
        protocol: if port % 1000 == 443 { PortProtocol::Tls } else { PortProtocol::Plaintext },
        data_plane: DataPlaneKey::Gateway { gateway: gateway.clone(), port: Some(port) },
    };
    Infrastructure {
        owner: Arc::new(ObjectKey { kind: Kind::Gateway, name: gateway.clone() }),
        uid: Some("4a1c8f06-0000-4000-8000-000000000001".into()),
        namespace: "infra".into(),
        class: "pingsix".into(),
        ports: ports.iter().map(|number| (*number, port(*number))).collect(),
        streams: Some(StreamInfrastructure {
            data_plane: DataPlaneKey::Stream { gateway },
            tcp: BTreeSet::new(),
            udp: BTreeSet::new(),
        }),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        addresses: Vec::new(),
        parameters: Arc::default(),
    }
}

pub(crate) fn material(owner: &ObjectKey) -> PlaneSecrets {
    let text = |what: &str| format!("-- {what} --\n");
    let key = InstallationKey::new(&[7; 32]).unwrap();
    PlaneSecrets {
        identity: Some(identity(&text("ca"), &text("certificate"), &text("key"))),
        diagnostics: key.diagnostics(owner),
        keys: KeyRecord::default(),
    }
}

/// Processes are to have these keys, and have all of them.
fn with_keys(material: PlaneSecrets, keys: &[&str]) -> PlaneSecrets {
    let keyring = Keyring(keys.iter().map(|key| (*key).to_owned()).collect());
    PlaneSecrets { keys: KeyRecord { edition: 1, deployed: keyring.clone(), keyring }, ..material }
}

fn identity(ca: &str, certificate: &str, key: &str) -> FeedIdentity {
    let entries = [("ca.crt", ca), ("tls.crt", certificate), ("tls.key", key)];
    let entry =
        |(name, text): (&str, &str)| (name.to_owned(), k8s_openapi::ByteString(text.as_bytes().to_vec()));
    FeedIdentity::from_data(&entries.into_iter().map(entry).collect()).unwrap()
}

fn made(infrastructure: &Infrastructure) -> Objects {
    objects(infrastructure, &installation(), &material(&infrastructure.owner)).unwrap()
}

fn all(objects: &Objects) -> impl Iterator<Item = &Child> {
    objects.children.iter().chain(&objects.certificate)
}

/// The object of a kind; of the Secrets, that with what processes are configured with.
fn of_kind(objects: &Objects, kind: ChildKind) -> &Value {
    &objects.children.iter().rfind(|child| child.kind == kind).unwrap().object
}

fn template(infrastructure: &Infrastructure) -> Value {
    of_kind(&made(infrastructure), ChildKind::Deployment)["spec"]["template"].clone()
}

fn containers(infrastructure: &Infrastructure) -> BTreeMap<String, Value> {
    let template = template(infrastructure);
    let containers = template["spec"]["containers"].as_array().unwrap().iter();
    containers.map(|container| (container["name"].as_str().unwrap().to_owned(), container.clone())).collect()
}

fn patch(parameters: Value) -> serde_json::Map<String, Value> {
    let Value::Object(patch) = parameters else { panic!("a mapping") };
    patch
}

fn decoded(object: &Value, key: &str) -> String {
    let bytes: k8s_openapi::ByteString = serde_json::from_value(object["data"][key].clone()).unwrap();
    String::from_utf8(bytes.0).unwrap()
}

/// As a person reads it: what Secrets hold is not encoded.
fn readable(objects: &Objects) -> String {
    let mut text = String::new();
    for child in all(objects) {
        let mut object = child.object.clone();
        let keys: Vec<String> =
            object["data"].as_object().into_iter().flat_map(|data| data.keys().cloned()).collect();
        for key in keys {
            object["data"][&key] = decoded(&child.object, &key).into();
        }
        writeln!(text, "---\n{}", serde_saphyr::to_string(&object).unwrap().trim_end()).unwrap();
    }
    text
}

/// Compares with a file beside this one. Where they are to differ, take the new text over by
/// `UPDATE_SCENARIOS=1 cargo test -p pingsix-gateway-api --features controller --lib provision`, and read what has changed.
fn is_golden(name: &str, objects: &Objects) {
    let path = format!("{}/src/provision/tests/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    let text = readable(objects);
    if std::env::var_os("UPDATE_SCENARIOS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == expected, "{path} says something else; now it is\n{text}");
}

#[test]
fn a_gateway_with_one_port_becomes_this() {
    is_golden("plaintext", &made(&gateway(&[80])));
}

#[test]
fn a_gateway_that_says_everything_becomes_this() {
    let mut infrastructure = gateway(&[80, 443]);
    let text = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    infrastructure.labels = text(&[("team", "shop"), ("app.kubernetes.io/name", "mine")]);
    infrastructure.annotations = text(&[("contact", "shop@example.com")]);
    infrastructure.addresses = vec![RequestedAddress {
        index: 0,
        kind: RequestedAddressKind::IpAddress,
        value: Some("192.0.2.7".to_owned()),
    }];
    let mut parameters = ManagedParameters {
        image: Some("registry.example/pingsix:1".to_owned()),
        replicas: Some(3),
        resources: Some(serde_json::from_value(json!({"requests": {"cpu": "1"}})).unwrap()),
        disruption_budget: Some(DisruptionLimit::MinAvailable(serde_json::from_value(json!("50%")).unwrap())),
        service_account_name: Some("edge".to_owned()),
        pod_template_patch: Some(patch(json!({
            "metadata": {"labels": {"app.kubernetes.io/instance": "other", "extra": "yes"}},
            "spec": {
                "containers": [{"name": "pingsix-80", "env": [{"name": "TZ", "value": "UTC"}]}],
                "hostAliases": [{"ip": "192.0.2.9", "hostnames": ["backend.example"]}],
                "topologySpreadConstraints": null,
            },
        }))),
        sidecar_image: Some("registry.example/sidecar:1".to_owned()),
        ..ManagedParameters::default()
    };
    parameters.service.kind = ServiceType::LoadBalancer;
    parameters.service.annotations = text(&[("contact", "net@example.com"), ("lb.example/pool", "public")]);
    parameters.service.load_balancer_class = Some("lb.example/fast".to_owned());
    parameters.service.external_traffic_policy = Some(ExternalTrafficPolicy::Local);
    parameters.scheduling.node_selector = text(&[("edge", "yes")]);
    parameters.scheduling.tolerations =
        serde_json::from_value(json!([{"key": "edge", "operator": "Exists"}])).unwrap();
    parameters.scheduling.priority_class_name = Some("high".to_owned());
    parameters.process.threads = Some(4);
    parameters.process.metrics_port = Some(9091);
    parameters.process.stale_after_seconds = Some(60);
    parameters.process.fail_readiness_when_stale = true;
    infrastructure.parameters = Arc::new(parameters);
    let material = with_keys(material(&infrastructure.owner), &["new", "old"]);
    is_golden("everything", &objects(&infrastructure, &installation(), &material).unwrap());
}

#[test]
fn a_gateway_whose_sidecar_terminates_tls_becomes_this() {
    let mut infrastructure = gateway(&[80, 443]);
    infrastructure.parameters =
        ManagedParameters { sidecar_https: true, ..ManagedParameters::default() }.into();
    infrastructure.ports.get_mut(&443).unwrap().protocol = PortProtocol::Fronted;
    infrastructure.streams.as_mut().unwrap().tcp.insert(443);
    let mut objects = made(&infrastructure);
    let config =
        objects.children.iter_mut().find(|child| child.object["data"]["443.yaml"].is_string()).unwrap();
    let file = decoded(&config.object, "443.yaml");
    let process: Value = serde_saphyr::from_str(&file).unwrap();
    let listeners = process["pingsix"]["listeners"].as_array().unwrap();
    let listener = |slot: u8| json!({ "address": front_address(443, slot), "offer_h2c": true });
    assert_eq!(*listeners, (1..=FRONT_SLOTS).map(listener).collect::<Vec<_>>());
    // One listener is enough for the file.
    config.object["data"]["443.yaml"] = encoded(&format!("{:#}\n", {
        let mut process = process.clone();
        process["pingsix"]["listeners"].as_array_mut().unwrap().truncate(1);
        process
    }));
    is_golden("sidecar_https", &objects);
}

#[test]
fn an_ingress_class_with_a_feed_without_tls_becomes_this() {
    let ports = INGRESS_PORTS.map(|(port, protocol)| {
        let data_plane = DataPlaneKey::Ingress { class: "public".into(), port: Some(port) };
        (port, InfrastructurePort { protocol, data_plane })
    });
    let infrastructure = Infrastructure {
        owner: Arc::new(ObjectKey::new(Kind::IngressClass, "", "public")),
        class: "public".into(),
        ports: ports.into(),
        streams: None,
        ..gateway(&[])
    };
    let installation = Installation { feed: vec!["http://10.0.0.1:2379".to_owned()], ..installation() };
    let material = PlaneSecrets { identity: None, ..material(&infrastructure.owner) };
    is_golden("ingress_class", &objects(&infrastructure, &installation, &material).unwrap());
}

#[test]
fn without_a_port_there_is_nothing_to_run() {
    let infrastructure = gateway(&[]);
    assert_eq!(objects(&infrastructure, &installation(), &material(&infrastructure.owner)), None);
}

#[test]
fn h2c_is_never_offered_beside_tls_and_each_process_has_its_own_prefix() {
    let objects = made(&gateway(&[80, 443, 8443]));
    let config = of_kind(&objects, ChildKind::Secret);
    for port in [80, 443, 8443] {
        let file = decoded(config, &format!("{port}.yaml"));
        let process: Value = serde_saphyr::from_str(&file).unwrap();
        let listeners = process["pingsix"]["listeners"].as_array().unwrap();
        assert_eq!(listeners.len(), 1);
        assert_eq!(listeners[0].get("offer_h2c").is_some(), port == 80, "{file}");
        assert_eq!(listeners[0].get("tls").is_some(), port != 80, "{file}");
        assert_eq!(process["pingsix"]["etcd"]["prefix"], format!("/pingsix/infra/web:{port}"));
    }
}

#[test]
fn another_port_changes_no_other_container() {
    let mut random = StdRng::seed_from_u64(1);
    for _ in 0..300 {
        let mut ports: Vec<u16> =
            (0..random.random_range(1..8)).map(|_| random.random_range(1..9_000)).collect();
        ports.sort_unstable();
        ports.dedup();
        let added = ports.remove(random.random_range(0..ports.len()));
        if ports.is_empty() {
            continue;
        }
        let (before, other) = (gateway(&ports), gateway(&[&ports[..], &[added]].concat()));
        let (before_config, after_config) = (made(&before), made(&other));
        let now = containers(&other);
        for (name, container) in containers(&before) {
            assert_eq!(now[&name], container, "{ports:?} and {added}");
        }
        for port in &ports {
            let key = format!("{port}.yaml");
            let config = |objects: &Objects| decoded(of_kind(objects, ChildKind::Secret), &key);
            assert_eq!(config(&before_config), config(&after_config));
        }
    }
}

#[test]
fn pods_are_replaced_only_for_settings_that_they_read_at_their_start() {
    let infrastructure = gateway(&[80, 443]);
    let usual = material(&infrastructure.owner);
    let template = |material: &PlaneSecrets| {
        let objects = objects(&infrastructure, &installation(), material).unwrap();
        of_kind(&objects, ChildKind::Deployment)["spec"]["template"].clone()
    };
    let mut rotated = usual.clone();
    rotated.identity = Some(identity("new", "new", "new"));
    assert_eq!(template(&usual), template(&rotated), "certificates are read when a process connects");
    let mut encrypted = with_keys(usual.clone(), &["CANARY"]);
    assert_ne!(template(&usual), template(&encrypted));
    encrypted.keys.deployed = Keyring::default();
    assert_eq!(template(&encrypted), template(&with_keys(usual, &["CANARY"])), "that others have it too");
    assert!(!template(&encrypted).to_string().contains("CANARY"), "digests alone are shown");
}

/// On clusters that choose users, such as `OpenShift` with `restricted-v2`, Pods must not name one.
#[test]
fn a_patch_leaves_users_and_groups_to_the_cluster() {
    let mut infrastructure = gateway(&[80]);
    infrastructure.parameters = Arc::new(ManagedParameters {
        pod_template_patch: Some(patch(json!({
            "spec": {"securityContext": {"runAsUser": null, "runAsGroup": null, "fsGroup": null}},
        }))),
        ..ManagedParameters::default()
    });
    let context = &template(&infrastructure)["spec"]["securityContext"];
    assert_eq!(*context, json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}}));
}

#[test]
fn a_patch_cannot_separate_pods_from_what_selects_them() {
    let mut infrastructure = gateway(&[80]);
    let patches = [
        json!({"metadata": null}),
        json!({"metadata": {"labels": null, "annotations": null}}),
        json!({"metadata": {"labels": {"app.kubernetes.io/name": "other"}}}),
        json!({"metadata": "none", "spec": 7}),
    ];
    for patched in patches {
        infrastructure.parameters = Arc::new(ManagedParameters {
            pod_template_patch: Some(patch(patched)),
            ..ManagedParameters::default()
        });
        let objects = made(&infrastructure);
        let spec = &of_kind(&objects, ChildKind::Deployment)["spec"];
        for (label, value) in spec["selector"]["matchLabels"].as_object().unwrap() {
            assert_eq!(spec["template"]["metadata"]["labels"][label], *value);
        }
        assert!(spec["template"]["metadata"]["annotations"][CONFIGURATION].is_string());
    }
}

#[test]
fn everything_is_owned_labelled_and_named_as_it_should() {
    for name in ["web", "a.b", &"g".repeat(253)] {
        let mut infrastructure = gateway(&[80, 443]);
        let gateway = ObjectName::new("infra", name);
        infrastructure.owner = Arc::new(ObjectKey { kind: Kind::Gateway, name: gateway });
        infrastructure.labels.insert("team".to_owned(), "shop".to_owned());
        infrastructure.annotations.insert("contact".to_owned(), "shop".to_owned());
        // Kubernetes counts with it, and would count on against us.
        let revision = "deployment.kubernetes.io/revision";
        infrastructure.annotations.insert(revision.to_owned(), "7".to_owned());
        let objects = made(&infrastructure);
        let mut names = std::collections::BTreeSet::new();
        for child in all(&objects) {
            let metadata = &child.object["metadata"];
            assert_eq!(metadata["ownerReferences"][0]["name"], name);
            assert_eq!(metadata["ownerReferences"][0]["uid"], **infrastructure.uid.as_ref().unwrap());
            assert_eq!(metadata["labels"][MANAGED_BY], "pingsix.io-gateway-controller");
            if child.kind == ChildKind::ServiceAccount {
                assert_eq!(
                    metadata["annotations"],
                    Value::Null,
                    "annotations of an account can give it rights"
                );
                assert_eq!(metadata["labels"]["team"], Value::Null);
                assert_eq!(metadata["labels"][GATEWAY_NAME], Value::Null);
            } else {
                assert_eq!(metadata["labels"]["team"], "shop");
                assert_eq!(metadata["annotations"], json!({"contact": "shop"}));
                let gateway = metadata["labels"][GATEWAY_NAME].as_str().unwrap();
                assert!(gateway.len() <= 63 && (gateway == name || name.len() > 63), "{gateway}");
            }
            assert!(names.insert((child.kind, metadata["name"].to_string())), "{child}");
            assert_eq!(metadata["name"], *child.name.name);
        }
        let pods = &of_kind(&objects, ChildKind::Deployment)["spec"]["template"]["metadata"];
        assert_eq!(
            (&pods["labels"]["team"], &pods["annotations"]["contact"]),
            (&json!("shop"), &json!("shop"))
        );
    }
}

#[test]
fn the_metadata_of_a_gateway_gives_way_to_its_class_and_to_the_selectors() {
    let mut infrastructure = gateway(&[80]);
    let labels =
        [("team", "gateway"), ("app.kubernetes.io/instance", "other"), (DATA_PLANE, "false"), ("own", "1")];
    infrastructure.labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let annotations = [("role", "admin"), ("sidecar", "no"), (CONFIGURATION, "0"), ("own", "1")];
    infrastructure.annotations = annotations.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let mut parameters = ManagedParameters::clone(&infrastructure.parameters);
    let patch =
        json!({"metadata": {"labels": {"team": "class"}, "annotations": {"role": "none", "sidecar": null}}});
    parameters.pod_template_patch = patch.as_object().cloned();
    parameters.service.annotations = [("role".to_owned(), "balancer".to_owned())].into();
    infrastructure.parameters = Arc::new(parameters);
    let objects = made(&infrastructure);
    let deployment = of_kind(&objects, ChildKind::Deployment);
    let pods = &deployment["spec"]["template"]["metadata"];
    assert_eq!((&pods["labels"]["team"], &pods["annotations"]["role"]), (&json!("class"), &json!("none")));
    assert_eq!((&pods["labels"]["own"], &pods["annotations"]["own"]), (&json!("1"), &json!("1")));
    assert_eq!(pods["annotations"]["sidecar"], Value::Null);
    assert_eq!(pods["labels"][DATA_PLANE], "true");
    assert_ne!(pods["annotations"][CONFIGURATION], "0");
    for (label, value) in deployment["spec"]["selector"]["matchLabels"].as_object().unwrap() {
        assert_eq!(pods["labels"][label], *value);
    }
    assert_eq!(of_kind(&objects, ChildKind::Service)["metadata"]["annotations"]["role"], "balancer");
}

#[test]
fn the_time_to_end_covers_the_pause_and_what_pingsix_takes() {
    let infrastructure = gateway(&[80]);
    let objects = made(&infrastructure);
    let config: Value =
        serde_saphyr::from_str(&decoded(of_kind(&objects, ChildKind::Secret), "80.yaml")).unwrap();
    let pod = &template(&infrastructure)["spec"];
    let pause = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"].as_u64().unwrap();
    let seconds = |key: &str| config["pingora"][key].as_u64().unwrap();
    let needed = pause + seconds("grace_period_seconds") + seconds("graceful_shutdown_timeout_seconds");
    assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() > needed);
}

#[test]
fn status_ports_are_those_of_the_containers() {
    let infrastructure = gateway(&[80, 443]);
    let ports = status_ports(&infrastructure, &installation());
    let ports: BTreeMap<_, _> = ports.into_iter().map(|(plane, port)| (plane.port(), port)).collect();
    for (name, container) in containers(&infrastructure) {
        let listener: u16 = name.trim_start_matches("pingsix-").parse().unwrap();
        let open = container["ports"].as_array().unwrap();
        let status = open.iter().find(|port| port["name"] == format!("status-{listener}")).unwrap();
        assert_eq!(status["containerPort"], ports[&Some(listener)]);
    }
    let service = service_name(&infrastructure);
    assert_eq!(of_kind(&made(&infrastructure), ChildKind::Service)["metadata"]["name"], *service.name);
}

#[test]
fn secret_material_is_not_shown() {
    let infrastructure = gateway(&[80, 443]);
    let mut material = with_keys(material(&infrastructure.owner), &["CANARY"]);
    material.identity = Some(identity("", "", "CANARY"));
    let objects = objects(&infrastructure, &installation(), &material).unwrap();
    let encoded = encoded("CANARY");
    let shown = format!("{objects:?}{material:?}");
    assert!(!shown.contains("CANARY") && !shown.contains(encoded.as_str().unwrap()), "{shown}");
}
