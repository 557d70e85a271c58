use serde_json::{Value, json};

use crate::crd::PingsixProxy;
use crate::fixture::{gateway, object, run};
use crate::infrastructure::{DisruptionLimit, InfrastructurePort, PortProtocol};
use crate::model::{ConditionType, Layout, Options};
use crate::pipeline::{Translation, translate_ingress};
use crate::snapshot::{IngressClass, Object, Objects, Proxies};
use crate::status::{StatusMerge, judge_gateway_class, judge_pingsix_proxy};

fn proxy(name: &str, spec: &Value) -> Value {
    let (namespace, name) = name.split_once('/').unwrap();
    json!({"metadata": {"namespace": namespace, "name": name, "generation": 4}, "spec": spec})
}

fn put_proxy(objects: &mut Objects, name: &str, spec: &Value) {
    objects.insert(Object::PingsixProxy(object(proxy(name, spec))));
}

fn put_class(objects: &mut Objects, reference: &Value) {
    objects.insert(Object::GatewayClass(object(json!({
        "metadata": {"name": "pingsix", "generation": 2},
        "spec": {"controllerName": "pingsix.io/gateway-controller", "parametersRef": reference},
    }))));
}

fn reference(name: &str) -> Value {
    json!({"group": "pingsix.io", "kind": "PingsixProxy", "namespace": "system", "name": name})
}

/// Gateway `infra/public` with two ports, and parameters `infra/own` if there are any.
fn world(class: Option<&Value>, own: Option<&Value>) -> Objects {
    let listeners = json!([
        {"name": "plain", "port": 80, "protocol": "HTTP"},
        {"name": "other", "port": 8080, "protocol": "HTTP"},
        {"name": "broken", "port": 443, "protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "none"}]}},
    ]);
    let mut objects = gateway(&listeners);
    if let Some(spec) = class {
        put_proxy(&mut objects, "system/all", spec);
        put_class(&mut objects, &reference("all"));
    } else {
        put_class(&mut objects, &Value::Null);
    }
    if let Some(spec) = own {
        put_proxy(&mut objects, "infra/own", spec);
        change_gateway(&mut objects, |spec| {
            spec["infrastructure"]["parametersRef"] =
                json!({"group": "pingsix.io", "kind": "PingsixProxy", "name": "own"});
        });
    }
    objects
}

fn change_gateway(objects: &mut Objects, change: impl FnOnce(&mut Value)) {
    let mut gateway = serde_json::to_value(&**objects.gateways().next().unwrap().1).unwrap();
    change(&mut gateway["spec"]);
    objects.insert(Object::Gateway(object(gateway)));
}

fn translated(class: Option<&Value>, own: Option<&Value>) -> Translation {
    run(&world(class, own), &Options::default())
}

/// For whom parameters may name a sink.
fn publishing_anywhere() -> Options {
    Options { attached_sinks: true, ..Options::default() }
}

/// The condition `Accepted` of the Gateway, as `status reason: message`.
fn accepted(translation: &Translation) -> String {
    let gateway = translation.verdicts.gateway.as_ref().unwrap();
    let accepted = gateway.conditions.get(ConditionType::Accepted).unwrap();
    format!("{} {}: {}", accepted.status.as_str(), accepted.reason.as_str(), accepted.message)
}

fn refused(class: Option<&Value>, own: Option<&Value>) -> String {
    let translation = translated(class, own);
    let said = accepted(&translation);
    let message = said.strip_prefix("False InvalidParameters: ").unwrap_or_else(|| panic!("{said}"));
    assert!(translation.has_unusable_parameters);
    assert!(translation.infrastructure.is_none() && translation.attached.is_none());
    assert!(translation.data_planes.values().all(|plane| plane.config.is_empty()));
    let problems = &translation.verdicts.problems;
    assert!(problems.iter().any(|problem| message == format!("{}: {}", problem.field, problem.message)));
    message.to_owned()
}

#[test]
fn without_parameters_the_options_count() {
    let translation = translated(None, None);
    assert!(translation.infrastructure.is_none() && translation.attached.is_none());
    assert_eq!(translation.data_planes.keys().map(ToString::to_string).collect::<Vec<_>>(), ["infra/public"]);
}

#[test]
fn managed_owners_have_a_data_plane_for_each_served_port() {
    let mut objects = world(Some(&json!({"managed": {}})), None);
    change_gateway(&mut objects, |spec| {
        spec["infrastructure"] = json!({"labels": {"team": "edge"}, "annotations": {"cost": "low"}});
        spec["addresses"] = json!([
            {"value": "192.0.2.1"}, {"type": "Hostname", "value": "*.example"}, {"type": "Hostname", "value": ""},
        ]);
    });
    let translation = run(&objects, &Options::default());
    let infrastructure = translation.infrastructure.unwrap();
    assert_eq!(infrastructure.owner.to_string(), "Gateway infra/public");
    assert_eq!((&*infrastructure.namespace, &*infrastructure.class), ("infra", "pingsix"));
    let ports = infrastructure.ports.iter();
    let ports: Vec<_> = ports.map(|(port, of)| (*port, of.protocol, of.data_plane.to_string())).collect();
    assert_eq!(
        ports,
        [
            (80, PortProtocol::Plaintext, "infra/public:80".to_owned()),
            (8080, PortProtocol::Plaintext, "infra/public:8080".to_owned()),
        ],
        "a port without a certificate is not served"
    );
    assert_eq!(infrastructure.labels["team"], "edge");
    assert_eq!(infrastructure.annotations["cost"], "low");
    let addresses: Vec<_> =
        infrastructure.addresses.iter().map(|address| (address.index, address.value.as_deref())).collect();
    assert_eq!(addresses, [(0, Some("192.0.2.1")), (2, None)], "no address is a wildcard");
    assert_eq!(translation.verdicts.gateway.unwrap().layout, Layout::PerPort);
}

#[test]
fn a_class_says_which_keys_of_metadata_gateways_may_set() {
    const ANNOTATIONS: &[&str] = &["cost", "example.com/a", "other.example/a"];
    const LABELS: &[&str] = &["example.com/b", "team"];
    let all = json!(["cost", "example.com/a", "example.com/b", "other.example/a", "team"]);
    let cases: [(Value, &[&str], &[&str], usize); 4] = [
        (Value::Null, ANNOTATIONS, LABELS, 0),
        (json!([]), &[], &[], 2),
        (json!(["cost", "example.com/*", "*"]), &["cost", "example.com/a"], &["example.com/b"], 2),
        (all, ANNOTATIONS, LABELS, 0),
    ];
    for (keys, annotations, labels, limited) in cases {
        let mut class = json!({"managed": {}, "overrideBounds": {"infrastructureKeys": keys}});
        if keys.is_null() {
            class = json!({"managed": {}});
        }
        let mut objects = world(Some(&class), None);
        change_gateway(&mut objects, |spec| {
            spec["infrastructure"] = json!({
                "labels": {"team": "edge", "example.com/b": "x"},
                "annotations": {"cost": "low", "example.com/a": "1", "other.example/a": "2"},
            });
        });
        let translation = run(&objects, &Options::default());
        let infrastructure = translation.infrastructure.unwrap();
        assert_eq!(infrastructure.annotations.keys().collect::<Vec<_>>(), annotations, "{keys}");
        assert_eq!(infrastructure.labels.keys().collect::<Vec<_>>(), labels, "{keys}");
        let problems = translation.verdicts.problems.iter();
        let fields = problems.filter(|problem| problem.field.to_string().starts_with("spec.infrastructure."));
        assert_eq!(fields.count(), limited, "{keys}");
    }
}

#[test]
fn a_gateway_overrides_its_class_field_by_field() {
    let class = json!({"managed": {
        "image": "pingsix:1", "replicas": 2,
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
        "service": {"annotations": {"a": "class", "b": "class"}, "externalTrafficPolicy": "Local"},
        "disruptionBudget": {"minAvailable": 1},
        "scheduling": {"nodeSelector": {"zone": "a"}, "tolerations": [{"key": "class"}]},
        "process": {"threads": 4, "dataEncryption": {"keyringSecretRef": {"name": "keys"}}},
    }, "allowOverrides": ["Replicas", "Resources", "Scheduling", "Service"]});
    let own = json!({"managed": {
        "replicas": 3,
        "resources": {"requests": {"cpu": 2}, "limits": {"memory": "2Gi"}},
        "service": {"annotations": {"b": "own"}, "type": "NodePort"},
        "disruptionBudget": {"maxUnavailable": "25%"},
        "scheduling": {"tolerations": [{"key": "own"}]},
        "process": {"logLevel": "Debug"},
    }});
    let parameters = translated(Some(&class), Some(&own)).infrastructure.unwrap().parameters.clone();
    assert_eq!((parameters.image.as_deref(), parameters.replicas), (Some("pingsix:1"), Some(3)));
    let resources = serde_json::to_value(&parameters.resources).unwrap();
    assert_eq!(resources, json!({"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"memory": "2Gi"}}));
    let service = &parameters.service;
    assert_eq!((service.kind.as_str(), service.annotations["a"].as_str()), ("NodePort", "class"));
    assert_eq!(service.annotations["b"], "own");
    assert_eq!(service.external_traffic_policy.map(crate::crd::ExternalTrafficPolicy::as_str), Some("Local"));
    assert!(matches!(parameters.disruption_budget, Some(DisruptionLimit::MaxUnavailable(_))));
    assert_eq!(parameters.scheduling.node_selector["zone"], "a");
    assert_eq!(parameters.scheduling.tolerations.len(), 1);
    assert_eq!((parameters.process.threads, parameters.process.log_level.as_str()), (Some(4), "debug"));
    let keyring = parameters.process.keyring.clone().unwrap();
    assert_eq!((keyring.secret.to_string().as_str(), keyring.key.as_str()), ("system/keys", "keyring"));
}

#[test]
fn a_gateway_has_its_own_sink_and_credentials_or_else_those_of_its_class() {
    let (class, own) = ("etcds://a:2379,b:2379", "etcd://etcd:2379");
    let mut of_class =
        json!({"attached": {"sink": {"url": class, "credentialsSecretRef": {"name": "login"}}}});
    let of_gateway = json!({"attached": {"sink": {"url": own, "allowPlaintext": true}}});
    let sink = |class: &Value, own: Option<&Value>| {
        let translation = run(&world(Some(class), own), &publishing_anywhere());
        translation.attached.unwrap().sink.clone().unwrap()
    };
    let held = sink(&of_class, None);
    assert_eq!((held.proxy.to_string().as_str(), held.url.as_str()), ("system/all", class));
    assert_eq!(held.credentials.unwrap().to_string(), "system/login");
    // A Gateway without the field inherits the field of its class.
    assert_eq!(sink(&of_class, Some(&json!({"attached": {"layout": "PerPort"}}))).url, class);
    of_class["allowOverrides"] = json!(["Sink"]);
    let held = sink(&of_class, Some(&of_gateway));
    assert_eq!((held.proxy.to_string().as_str(), held.url.as_str()), ("infra/own", own));
    assert!(held.allow_plaintext);
    assert_eq!(held.credentials, None, "those of the class are for its own sink alone");

    let refused = refused(Some(&of_class), None);
    let message = format!(
        "spec.gatewayClassName: The parameters of the class cannot be used: spec.parametersRef: PingsixProxy system/all cannot \
         be used: spec.attached.sink: This controller publishes to its own sinks alone, and not to {class}."
    );
    assert_eq!(refused, message, "nobody would publish there");
}

#[test]
fn the_secret_of_a_sink_is_among_those_that_parameters_name() {
    let spec = json!({"attached": {"sink": {"url": "etcds://a", "credentialsSecretRef": {"name": "login"}}}});
    let proxy: std::sync::Arc<PingsixProxy> = object(proxy("infra/own", &spec));
    let named = crate::snapshot::references_of_proxy(&proxy, &"infra".into());
    assert_eq!(named.iter().map(ToString::to_string).collect::<Vec<_>>(), ["Secret infra/login"]);
}

#[test]
fn some_fields_are_for_the_class_unless_it_allows_otherwise() {
    let fields = [
        ("Image", json!({"managed": {"image": "pingsix:2"}}), "managed.image"),
        ("Image", json!({"managed": {"sidecar": {"image": "sidecar:2"}}}), "managed.sidecar.image"),
        (
            "PodTemplatePatch",
            json!({"managed": {"podTemplatePatch": {"spec": {}}}}),
            "managed.podTemplatePatch",
        ),
        ("ServiceAccount", json!({"managed": {"serviceAccountName": "root"}}), "managed.serviceAccountName"),
        ("Sink", json!({"attached": {"sink": {"url": "etcd://127.0.0.1:2379"}}}), "attached.sink"),
    ];
    for (allowed, own, field) in fields {
        let mode = field.split('.').next().unwrap();
        let expected = format!(
            "spec.infrastructure.parametersRef: PingsixProxy infra/own sets spec.{field}, which only the class may do; its \
             spec.allowOverrides would have to have {allowed}."
        );
        assert_eq!(refused(Some(&json!({mode: {}})), Some(&own)), expected);
        assert_eq!(refused(None, Some(&own)), expected, "nor without parameters of the class");
        // An allowance in the Gateway's own parameters has no effect.
        let mut vain = own.clone();
        vain["allowOverrides"] = json!([allowed]);
        assert_eq!(refused(Some(&json!({mode: {}})), Some(&vain)), expected);
        let class = json!({mode: {}, "allowOverrides": [allowed]});
        let translation = run(&world(Some(&class), Some(&own)), &publishing_anywhere());
        assert!(accepted(&translation).starts_with("True "), "{field}");
    }
    let (class, own) = (json!({"managed": {}}), json!({"attached": {}}));
    assert_eq!(
        refused(Some(&class), Some(&own)),
        "spec.infrastructure.parametersRef: PingsixProxy infra/own has spec.attached where that of the class has \
         spec.managed; a Gateway cannot change who runs its data planes."
    );
    let class = json!({"managed": {"service": {"loadBalancerClass": "example.com/a"}}, "allowOverrides": ["Service"]});
    let own = json!({"managed": {"service": {"type": "ClusterIP"}}});
    assert!(refused(Some(&class), Some(&own)).contains(
        "spec.managed.service.loadBalancerClass of the Gateway and of its class \
             conflict"
    ));
}

/// The message of `pingsix.io/Limited` of the Gateway.
fn limited(translation: &Translation) -> Option<String> {
    let gateway = translation.verdicts.gateway.as_ref().unwrap();
    gateway.conditions.get(ConditionType::Limited).map(|limited| limited.message.clone())
}

#[test]
fn fields_for_the_class_alone_have_the_value_of_the_class() {
    let of_class = json!({
        "replicas": 2, "resources": {"requests": {"cpu": "1"}}, "sidecar": {"resources": {"limits": {"cpu": "1"}}},
        "scheduling": {"nodeSelector": {"zone": "a"}, "priorityClassName": "class"},
        "disruptionBudget": {"maxUnavailable": 1}, "service": {"type": "ClusterIP"},
    });
    let fields = [
        ("Replicas", "replicas", json!({"replicas": 3})),
        ("Resources", "resources", json!({"resources": {"requests": {"cpu": "9"}}})),
        ("Resources", "sidecar.resources", json!({"sidecar": {"resources": {"limits": {"cpu": "9"}}}})),
        (
            "PriorityClass",
            "scheduling.priorityClassName",
            json!({"scheduling": {"priorityClassName": "high"}}),
        ),
        ("Scheduling", "scheduling", json!({"scheduling": {"nodeSelector": {"zone": "b"}}})),
        ("Scheduling", "scheduling", json!({"scheduling": {"tolerations": [{"operator": "Exists"}]}})),
        ("Scheduling", "disruptionBudget", json!({"disruptionBudget": {"minAvailable": "100%"}})),
        ("Service", "service", json!({"service": {"annotations": {"example.com/scheme": "internet"}}})),
        ("Service", "service", json!({"service": {"type": "LoadBalancer"}})),
    ];
    let parameters =
        |translation: &Translation| (*translation.infrastructure.as_ref().unwrap().parameters).clone();
    for (needed, field, own) in fields {
        let own = json!({"managed": own});
        for class in [Some(json!({"managed": of_class})), None] {
            let translation = translated(class.as_ref(), Some(&own));
            assert!(accepted(&translation).starts_with("True "), "{field}");
            let expected = format!(
                "spec.infrastructure.parametersRef: PingsixProxy infra/own sets spec.managed.{field}, which is not used and the \
                 class's value counts: only the class may do that; its spec.allowOverrides would have to have {needed}."
            );
            assert_eq!(limited(&translation), Some(expected.clone()));
            let told = translation
                .verdicts
                .problems
                .iter()
                .map(|problem| format!("{}: {}", problem.field, problem.message));
            assert!(told.into_iter().any(|told| told == expected), "{field}");
            let without = translated(class.as_ref(), Some(&json!({"managed": {}})));
            assert_eq!(parameters(&translation), parameters(&without), "{field}");
        }
        let class = json!({"managed": of_class, "allowOverrides": [needed]});
        let translation = translated(Some(&class), Some(&own));
        assert_eq!(limited(&translation), None, "{field}");
        let without = translated(Some(&class), Some(&json!({"managed": {}})));
        assert_ne!(parameters(&translation), parameters(&without), "{field}");
    }
}

#[test]
fn an_override_that_is_allowed_keeps_to_the_bound_of_the_class() {
    let class = |bounds: Value| {
        json!({
            "managed": {"replicas": 2, "scheduling": {"priorityClassName": "class"}},
            "allowOverrides": ["Replicas", "PriorityClass"], "overrideBounds": bounds,
        })
    };
    let replicas = |own: i32, bounds: Value| {
        let translation = translated(Some(&class(bounds)), Some(&json!({"managed": {"replicas": own}})));
        (translation.infrastructure.as_ref().unwrap().parameters.replicas.unwrap(), limited(&translation))
    };
    assert_eq!(replicas(5, json!({"maxReplicas": 5})), (5, None));
    assert_eq!(replicas(900, json!({})), (900, None));
    let (counts, told) = replicas(6, json!({"maxReplicas": 5}));
    assert_eq!(counts, 2, "that of the class");
    assert!(told.unwrap().ends_with("6 is more than the 5 of the class's spec.overrideBounds.maxReplicas."));

    let priority = |own: &str, bounds: Value| {
        let own = json!({"managed": {"scheduling": {"priorityClassName": own}}});
        let translation = translated(Some(&class(bounds)), Some(&own));
        let scheduling = &translation.infrastructure.as_ref().unwrap().parameters.scheduling;
        (scheduling.priority_class_name.clone().unwrap(), limited(&translation).is_some())
    };
    let (system, names) =
        ("system-cluster-critical", json!({"priorityClassNames": ["high", "system-cluster-critical"]}));
    assert_eq!(priority("high", json!({})), ("high".to_owned(), false));
    assert_eq!(priority(system, json!({})), ("class".to_owned(), true));
    assert_eq!(priority("high", names.clone()), ("high".to_owned(), false));
    assert_eq!(priority(system, names.clone()), (system.to_owned(), false));
    assert_eq!(priority("low", names), ("class".to_owned(), true));
}

#[test]
fn attached_data_planes_have_the_layout_and_the_addresses_that_are_said() {
    let class = json!({"attached": {
        "addresses": [{"value": "192.0.2.1"}, {"type": "Hostname", "value": "lb.example"}],
        "statusUrls": [{"url": "http://10.0.0.9:7085"}],
    }});
    let attached = translated(Some(&class), None).attached.unwrap();
    assert_eq!((attached.addresses.len(), attached.status_pages_are_of_class), (2, true));
    let own = json!({"attached": {
        "layout": "PerPort", "statusUrls": [{"url": "http://edge.infra.svc:7085", "port": 80}],
    }});
    let translation = translated(Some(&class), Some(&own));
    let attached = translation.attached.unwrap();
    assert_eq!((attached.addresses.len(), attached.status_pages_are_of_class), (2, false));
    let pages: Vec<String> = attached.status_pages.keys().map(ToString::to_string).collect();
    assert_eq!(pages, ["infra/public:80"]);
    assert_eq!(translation.data_planes.len(), 3);
    assert!(translation.infrastructure.is_none());

    let message = refused(Some(&class), Some(&json!({"attached": {"layout": "PerPort"}})));
    assert!(
        message.contains("PingsixProxy system/all cannot be used: spec.attached.statusUrls[0].port: "),
        "{message}"
    );
    let ported = json!({"attached": {"statusUrls": [{"url": "http://10.0.0.8:7085", "port": 80}]}});
    assert!(refused(Some(&ported), None).contains("one process serves all ports"));
}

#[test]
fn a_status_url_outside_the_namespace_needs_the_permission_of_the_class() {
    let own = |url: &str| json!({"attached": {"statusUrls": [{"url": url}]}});
    let class = json!({"attached": {}});
    for url in [
        "http://edge.infra.svc:7085",
        "http://EDGE.infra.svc",
        "http://pod-0.edge.infra.svc.cluster.local:7085",
    ] {
        let attached = translated(Some(&class), Some(&own(url))).attached.unwrap();
        assert_eq!(attached.status_pages.len(), 1, "{url}");
    }
    let allowing = json!({"attached": {}, "allowOverrides": ["StatusUrls"]});
    for url in [
        "http://10.0.0.8:7085",
        "http://[::1]:7085",
        "http://localhost",
        "http://edge.other.svc:7085",
        "http://edge.infra:7085",
        "http://infra.svc:7085",
        "http://.infra.svc:7085",
        "http://edge.notinfra.svc:7085",
        "http://edge.infra.svc.example.com:7085",
    ] {
        let message = refused(Some(&class), Some(&own(url)));
        assert!(message.contains("spec.allowOverrides would have to have StatusUrls."), "{url}: {message}");
        let attached = translated(Some(&allowing), Some(&own(url))).attached.unwrap();
        assert_eq!((attached.status_pages.len(), attached.status_pages_are_of_class), (1, false), "{url}");
    }
}

#[test]
fn an_unusable_reference_is_reported_at_its_field() {
    let at_class = "spec.gatewayClassName: The parameters of the class cannot be used: spec.parametersRef";
    let mut objects = world(None, None);
    for (reference, said) in [
        (reference("none"), ": There is no PingsixProxy system/none that can be read."),
        (json!({"group": "pingsix.io", "kind": "PingsixProxy", "name": "all"}), ".namespace: "),
        (json!({"group": "pingsix.io", "kind": "Fleet", "name": "all"}), ".kind: Parameters of kind Fleet "),
        (json!({"group": "", "kind": "ConfigMap", "name": "all"}), ".group: Parameters of kind ConfigMap "),
    ] {
        put_class(&mut objects, &reference);
        let translation = run(&objects, &Options::default());
        assert!(
            accepted(&translation).starts_with(&format!("False InvalidParameters: {at_class}{said}")),
            "{}",
            accepted(&translation)
        );
        assert!(translation.has_unusable_parameters);
        let class = objects.gateway_classes().next().unwrap().1;
        let verdict = judge_gateway_class(class, &Proxies::new(), &Options::default()).unwrap();
        assert!(!verdict.is_accepted() && verdict.supported_features.is_empty());
        assert_eq!(verdict.generation, 2);
    }
    let mut objects = world(None, Some(&json!({"managed": {}})));
    change_gateway(&mut objects, |spec| spec["infrastructure"]["parametersRef"]["name"] = json!("gone"));
    assert_eq!(
        accepted(&run(&objects, &Options::default())),
        "False InvalidParameters: spec.infrastructure.parametersRef: There is no PingsixProxy infra/gone that can be read."
    );
}

#[test]
fn an_address_of_an_unknown_type_is_no_matter_of_parameters() {
    let mut objects = world(None, None);
    assert!(!run(&objects, &Options::default()).has_unusable_parameters);
    change_gateway(&mut objects, |spec| {
        spec["addresses"] = json!([{"type": "example.com/Name", "value": "a"}]);
    });
    let translation = run(&objects, &Options::default());
    assert!(
        accepted(&translation).starts_with("False UnsupportedAddress: ")
            && !translation.has_unusable_parameters
    );
}

#[test]
fn a_class_claims_what_its_parameters_give() {
    const CLAIMS: [&str; 3] = ["GatewayInfrastructure", "GatewayPort8080", "GatewayStaticAddresses"];
    for (spec, claimed) in [
        (json!({"managed": {}}), [true, true, true]),
        (json!({"managed": {"service": {"type": "ClusterIP"}}}), [true, true, false]),
        (json!({"attached": {"layout": "PerPort"}}), [false, true, false]),
        (json!({"attached": {}}), [false, false, false]),
    ] {
        let objects = world(Some(&spec), None);
        let proxies = objects.proxies().map(|(name, proxy)| (name.clone(), proxy.clone())).collect();
        let class = objects.gateway_classes().next().unwrap().1;
        let verdict = judge_gateway_class(class, &proxies, &Options::default()).unwrap();
        assert_eq!(CLAIMS.map(|name| verdict.supported_features.contains(&name)), claimed, "{spec}");
    }
}

#[test]
fn an_ingress_class_has_parameters_too() {
    let class = |spec: Value| -> Objects {
        let mut objects = Objects::default();
        objects.insert(Object::IngressClass(object::<IngressClass>(json!({
            "metadata": {"name": "web", "uid": "1-2"},
            "spec": {"controller": "pingsix.io/gateway-controller", "parameters": spec},
        }))));
        objects
    };
    let named = json!({
        "apiGroup": "pingsix.io", "kind": "PingsixProxy", "scope": "Namespace", "namespace": "system", "name": "all",
    });
    let run =
        |objects: &Objects| translate_ingress(&objects.ingress_snapshot("web").unwrap(), &Options::default());
    let mut objects = class(named.clone());
    put_proxy(&mut objects, "system/all", &json!({"managed": {"replicas": 2}, "feed": {"cpuPercent": 30}}));
    let translation = run(&objects);
    assert_eq!(translation.verdicts.problems.to_vec(), []);
    assert_eq!(translation.feed_cpu_percent, 30);
    let infrastructure = translation.infrastructure.unwrap();
    assert_eq!((&*infrastructure.namespace, infrastructure.uid.as_deref()), ("system", Some("1-2")));
    assert_eq!(infrastructure.ports.keys().collect::<Vec<_>>(), [&80, &443]);
    assert_eq!(infrastructure.ports[&443].protocol, PortProtocol::Tls);
    assert_eq!(infrastructure.parameters.replicas, Some(2));
    let run_by = |port: &InfrastructurePort| translation.data_planes.contains_key(&port.data_plane);
    assert!(infrastructure.ports.values().all(run_by) && translation.data_planes.len() == 2);

    let mut scopeless = named.clone();
    scopeless.as_object_mut().unwrap().remove("scope");
    for (reference, spec, field) in [
        (scopeless, json!({"managed": {}}), "spec.parameters.scope"),
        (named.clone(), json!({}), "spec.parameters"),
    ] {
        let mut objects = class(reference);
        put_proxy(&mut objects, "system/all", &spec);
        let translation = run(&objects);
        let problem = &translation.verdicts.problems.to_vec()[0];
        assert_eq!((problem.field.as_str(), problem.reason.as_str()), (field, "InvalidParameters"));
        assert!(translation.has_unusable_parameters);
        assert!(translation.infrastructure.is_none());
    }
}

/// The translation of an IngressClass whose parameters are attached.
fn ingress_class(attached: &Value, options: &Options) -> Translation {
    let mut objects = Objects::default();
    objects.insert(Object::IngressClass(object::<IngressClass>(json!({
        "metadata": {"name": "web"},
        "spec": {"controller": "pingsix.io/gateway-controller", "parameters": {
            "apiGroup": "pingsix.io", "kind": "PingsixProxy", "scope": "Namespace", "namespace": "system", "name": "all",
        }},
    }))));
    put_proxy(&mut objects, "system/all", &json!({"attached": attached}));
    translate_ingress(&objects.ingress_snapshot("web").unwrap(), options)
}

#[test]
fn the_layout_of_an_ingress_class_comes_from_parameters_before_options() {
    let keys = |attached: Value, layout| -> Vec<String> {
        let translation = ingress_class(&attached, &Options { layout, ..Options::default() });
        assert_eq!(translation.verdicts.problems.to_vec(), []);
        translation.data_planes.keys().map(ToString::to_string).collect()
    };
    let (one, two) = (["IngressClass/web"], ["IngressClass/web:80", "IngressClass/web:443"]);
    assert_eq!(keys(json!({}), Layout::Shared), one);
    assert_eq!(keys(json!({}), Layout::PerPort), two);
    assert_eq!(keys(json!({"layout": "PerPort"}), Layout::Shared), two);
    assert_eq!(keys(json!({"layout": "Shared"}), Layout::PerPort), one);
}

#[test]
fn status_pages_of_an_ingress_class_are_of_its_data_planes() {
    let pages = |attached: Value| -> Vec<String> {
        let attached = ingress_class(&attached, &Options::default()).attached.unwrap();
        attached.status_pages.keys().map(ToString::to_string).collect()
    };
    let url = "http://10.0.0.9:7085";
    assert_eq!(pages(json!({"statusUrls": [{"url": url}]})), ["IngressClass/web"]);
    let both = json!([{"url": url, "port": 443}, {"url": url, "port": 80}]);
    assert_eq!(
        pages(json!({"layout": "PerPort", "statusUrls": both})),
        ["IngressClass/web:80", "IngressClass/web:443"]
    );
}

#[test]
fn parameters_that_do_not_fit_the_ports_of_an_ingress_class_are_refused() {
    let url = "http://10.0.0.9:7085";
    let admin = json!({"url": "admin+http://127.0.0.1:9181", "credentialsSecretRef": {"name": "key"}});
    for (attached, expected) in [
        (
            json!({"layout": "PerPort", "sink": admin}),
            "spec.attached.sink.url: An Admin API holds one data plane, and with the layout PerPort an IngressClass has two.",
        ),
        (
            json!({"layout": "PerPort", "statusUrls": [{"url": url, "port": 80}, {"url": url, "port": 8080}]}),
            "spec.attached.statusUrls[1].port: An IngressClass has the ports 80 and 443.",
        ),
        (
            json!({"layout": "PerPort", "statusUrls": [{"url": url}]}),
            "spec.attached.statusUrls[0].port: With this layout, there is a process for each port, so that one has to be named.",
        ),
    ] {
        let translation = ingress_class(&attached, &publishing_anywhere());
        let [problem] = &translation.verdicts.problems.to_vec()[..] else { panic!("{attached}") };
        assert_eq!(
            (problem.field.as_str(), problem.reason.as_str()),
            ("spec.parameters", "InvalidParameters")
        );
        assert_eq!(problem.message, format!("PingsixProxy system/all cannot be used: {expected}"));
        assert!(translation.has_unusable_parameters && translation.attached.is_none());
    }
    let shared = ingress_class(&json!({"sink": admin}), &publishing_anywhere());
    assert_eq!(shared.verdicts.problems.to_vec(), []);
}

#[test]
fn every_refusal_names_its_field() {
    let refusals = [
        (json!({}), "spec"),
        (json!({"attached": {}, "managed": {}}), "spec"),
        (json!({"attached": {"addresses": [{"value": "lb.example"}]}}), "spec.attached.addresses[0].value"),
        (
            json!({"attached": {"addresses": [{"type": "Hostname", "value": "*.a"}]}}),
            "spec.attached.addresses[0].value",
        ),
        (json!({"attached": {"statusUrls": [{"url": "https://a:1"}]}}), "spec.attached.statusUrls[0].url"),
        (
            json!({"attached": {"statusUrls": [{"url": "http://a:1", "port": 0}]}}),
            "spec.attached.statusUrls[0].port",
        ),
        (json!({"attached": {"sink": {"url": "etcd://me:secret@a"}}}), "spec.attached.sink.url"),
        (json!({"attached": {"sink": {"url": "etcd://127.0.0.1,etcd"}}}), "spec.attached.sink.url"),
        (json!({"attached": {"sink": {"url": "admin+http://[::1],[::1]"}}}), "spec.attached.sink.url"),
        (
            json!({"attached": {"sink": {"url": "admin+http://[::1]:9181"}}}),
            "spec.attached.sink.credentialsSecretRef",
        ),
        (json!({"attached": {"sink": {"url": "etcds://etcd"}}}), "spec.attached.sink.credentialsSecretRef"),
        (
            json!({"attached": {"sink": {"url": "etcds://etcd", "allowPlaintext": true}}}),
            "spec.attached.sink.allowPlaintext",
        ),
        (json!({"managed": {"replicas": -1}}), "spec.managed.replicas"),
        (json!({"managed": {"image": "a b"}}), "spec.managed.image"),
        (json!({"managed": {"resources": {"limits": {"cpu": "much"}}}}), "spec.managed.resources.limits.cpu"),
        (
            json!({"managed": {"sidecar": {"resources": {"requests": {"memory": "1Q"}}}}}),
            "spec.managed.sidecar.resources.requests.memory",
        ),
        (
            json!({"managed": {"service": {"type": "NodePort", "loadBalancerClass": "a"}}}),
            "spec.managed.service.loadBalancerClass",
        ),
        (
            json!({"managed": {"service": {"type": "ClusterIP", "externalTrafficPolicy": "Local"}}}),
            "spec.managed.service.externalTrafficPolicy",
        ),
        (json!({"managed": {"disruptionBudget": {}}}), "spec.managed.disruptionBudget"),
        (
            json!({"managed": {"disruptionBudget": {"minAvailable": "101%"}}}),
            "spec.managed.disruptionBudget.minAvailable",
        ),
        (json!({"managed": {"serviceAccountName": "a_b"}}), "spec.managed.serviceAccountName"),
        (
            json!({"managed": {"scheduling": {"affinity": {"nodeAffinity": 7}}}}),
            "spec.managed.scheduling.affinity.nodeAffinity",
        ),
        (
            json!({"managed": {"podTemplatePatch": {"spec": {"containers": {}}}}}),
            "spec.managed.podTemplatePatch.spec.containers",
        ),
        (json!({"managed": {"process": {"threads": 0}}}), "spec.managed.process.threads"),
        (json!({"managed": {"process": {"metrics": {"port": 80}}}}), "spec.managed.process.metrics.port"),
        (
            json!({"managed": {"process": {"status": {"staleAfterSeconds": 0}}}}),
            "spec.managed.process.status.staleAfterSeconds",
        ),
        (
            json!({"managed": {"process": {"dataEncryption": {"keyringSecretRef": {"name": ""}}}}}),
            "spec.managed.process.dataEncryption.keyringSecretRef.name",
        ),
    ];
    for (spec, field) in refusals {
        let proxy: PingsixProxy = serde_json::from_value(proxy("infra/own", &spec)).unwrap();
        let verdict = judge_pingsix_proxy(&proxy);
        let found: Vec<String> = verdict.problems.iter().map(|problem| problem.field.to_string()).collect();
        assert_eq!(found, [field], "{:?}", verdict.problems);
        assert!(verdict.problems.iter().all(|problem| problem.message.ends_with('.')));
        assert!(!verdict.conditions.is_true(ConditionType::Accepted));
        assert!(!format!("{verdict:?}").contains("secret@"), "what is secret is not shown");
    }
    let proxy: PingsixProxy = serde_json::from_value(proxy("infra/own", &json!({"managed": {}}))).unwrap();
    let status = StatusMerge::without_times("us").pingsix_proxy(&Value::Null, &judge_pingsix_proxy(&proxy));
    assert_eq!(status["mode"], "Managed");
    assert_eq!(status["conditions"][0]["observedGeneration"], 4);
}

/// The effective share with 60 in the options, and values of a class and a Gateway.
fn share(of_class: Option<u8>, of_gateway: Option<u8>) -> u8 {
    let spec = |share: u8| json!({"attached": {}, "budget": {"namespaceShare": share}});
    let (class, own) = (of_class.map(spec), of_gateway.map(spec));
    let objects = world(class.as_ref(), own.as_ref());
    let snapshot = objects.snapshot(objects.gateways().next().unwrap().0).unwrap();
    let options = Options { namespace_share: 60, ..Options::default() };
    let translation = crate::pipeline::translate(&snapshot, &options);
    assert!(!translation.has_unusable_parameters);
    super::PlaneSettings::of_gateway(
        &snapshot.gateway,
        snapshot.class.as_deref(),
        &snapshot.referents.proxies,
        &options,
    )
    .namespace_share
}

#[test]
fn a_gateway_can_only_say_less_of_the_share_of_namespaces() {
    assert_eq!((share(None, None), share(Some(80), None), share(Some(40), None)), (60, 80, 40));
    assert_eq!((share(None, Some(50)), share(Some(40), Some(30))), (50, 30));
    assert_eq!((share(None, Some(90)), share(Some(40), Some(50)), share(Some(80), Some(90))), (60, 40, 80));
}

#[test]
fn a_gateway_can_only_lower_the_cpu_of_the_feed() {
    let share = |of_class: Option<u8>, of_gateway: Option<u8>| {
        let spec = |share: u8| json!({"attached": {}, "feed": {"cpuPercent": share}});
        let objects = world(of_class.map(spec).as_ref(), of_gateway.map(spec).as_ref());
        let snapshot = objects.snapshot(objects.gateways().next().unwrap().0).unwrap();
        crate::pipeline::translate(&snapshot, &Options::default()).feed_cpu_percent
    };
    assert_eq!((share(None, None), share(Some(40), None), share(None, Some(30))), (100, 40, 30));
    assert_eq!((share(Some(40), Some(30)), share(Some(40), Some(50))), (30, 40));
}

#[test]
fn a_share_that_is_none_makes_parameters_unusable() {
    let budget = |share: u8| json!({"attached": {}, "budget": {"namespaceShare": share}});
    let feed = |percent: u8| json!({"attached": {}, "feed": {"cpuPercent": percent}});
    for spec in [budget(0), budget(101), feed(0), feed(101)] {
        let objects = world(Some(&spec), None);
        let snapshot = objects.snapshot(objects.gateways().next().unwrap().0).unwrap();
        assert!(crate::pipeline::translate(&snapshot, &Options::default()).has_unusable_parameters);
    }
}
