//! From a backendRef to a target.

use serde_json::{Value, json};

use super::*;
use crate::fixture::{add_endpoints, add_grpc_route, add_route, add_service, gateway, object, run, snapshot};
use crate::model::Options;
use crate::normalise::{Extensions, normalise_route};
use crate::pingsix::Scheme;
use crate::pipeline::{Translation, Translator, translate};
use crate::policy::{Payload, Policies};
use crate::snapshot::{Object, Objects, OwnAddress, OwnAddresses};

/// The targets of the only rule of a route with this backendRef, and its unresolved references as reason and field.
fn resolve(objects: &Objects, backend: &Value) -> (Action, Vec<(Reason, String)>) {
    let mut objects = objects.clone();
    add_route(
        &mut objects,
        "r",
        &json!({"parentRefs": [{"name": "public"}], "rules": [{"backendRefs": [backend]}]}),
    );
    let snapshot = snapshot(&objects);
    let route = normalise_route(
        &snapshot.routes[&ObjectKey::new(Kind::HttpRoute, "infra", "r")],
        &Extensions::default(),
    );
    let references = References::new(&snapshot.referents);
    let policies = Policies::default();
    let rule = references.resolve_rule(
        &route,
        &route.rules[0],
        policies.for_route(&route.key, Payload::Requests(None), false),
        &mut Backends::default(),
        &mut Vec::new(),
    );
    let unresolved = rule.unresolved.iter().map(|refusal| {
        (refusal.reason, refusal.at.as_str().trim_start_matches("spec.rules[0].backendRefs[0].").to_owned())
    });
    (rule.action, unresolved.collect())
}

/// Service `web` of namespace `infra` with these ports; no endpoints.
fn service(spec: &Value) -> Objects {
    let mut objects = gateway(&json!([]));
    objects.insert(Object::Service(object(json!({
        "metadata": {"namespace": "infra", "name": "web"}, "spec": spec,
    }))));
    objects
}

fn unresolved(reason: Reason, field: &str) -> (Action, Vec<(Reason, String)>) {
    (Action::status(500), vec![(reason, field.to_owned())])
}

#[test]
fn a_service_that_leads_back_to_the_data_plane_is_refused_in_each_mode() {
    let mut objects = gateway(&json!([{"name": "plain", "port": 80, "protocol": "HTTP"}]));
    for name in ["web", "other"] {
        add_service(&mut objects, name);
        add_route(
            &mut objects,
            name,
            &json!({
                "parentRefs": [{"name": "public"}], "hostnames": [format!("{name}.example")],
                "rules": [{"backendRefs": [{"name": name, "port": 80}]}],
            }),
        );
    }
    let innocent = slice_of_other(&json!(["10.0.0.2"]), 8080);
    objects.insert(Object::EndpointSlice(object(innocent)));
    let mut snapshot = snapshot(&objects);
    let mut translator = Translator::new(Options::default());
    let problems = |translation: &Translation| -> Vec<String> {
        translation.verdicts.problems.iter().map(|problem| format!("{problem}")).collect()
    };
    assert_eq!(problems(&translator.translate(&snapshot)), [""; 0]);
    let clients = |address: &str| OwnAddress::Clients(address.parse().unwrap());
    let pod = |address: &str| OwnAddress::Pod(address.parse().unwrap());
    for (own, is_refused) in [
        (clients("10.0.0.1:9090"), false),
        (clients("10.0.0.1:8080"), true),
        (clients("10.0.0.3:8080"), false),
        // Each port of a Pod, also one of metrics.
        (pod("10.0.0.1"), true),
        (pod("10.0.0.3"), false),
        (clients("10.0.0.1:8080"), true),
    ] {
        snapshot.referents.own_addresses = OwnAddresses::from_iter([(own, ())]);
        let translation = translator.translate(&snapshot);
        assert_eq!(translation.verdicts, translate(&snapshot, &Options::default()).verdicts);
        let problems = problems(&translation);
        assert_eq!(problems.len(), usize::from(is_refused), "{problems:?}");
        for problem in problems {
            assert!(
                problem.starts_with(
                    "HTTPRoute infra/web: spec.rules[0].backendRefs[0].name: Endpoint 10.0.0.1:8080 of Service \
                     infra/web is the data plane itself"
                ),
                "{problem}"
            );
        }
    }
}

/// An EndpointSlice of Service `infra/other`.
fn slice_of_other(addresses: &Value, port: u16) -> Value {
    json!({
        "metadata": {"namespace": "infra", "name": "other", "labels": {"kubernetes.io/service-name": "other"}},
        "addressType": "IPv4", "ports": [{"port": port}], "endpoints": [{"addresses": addresses}],
    })
}

#[test]
fn shares_of_one_target_are_added_and_weights_reduced() {
    let action = Action::weighted(
        [
            (Target::Backend(0), 20),
            (Target::Status(500), 10),
            (Target::Backend(1), 0),
            (Target::Status(500), 10),
        ]
        .into_iter(),
        500,
    );
    assert_eq!(action.targets.as_slice(), [(Target::Backend(0), 1), (Target::Status(500), 1)]);
}

#[test]
fn no_weight_at_all_is_an_error() {
    for failure in [Traffic::Http.failure(), Traffic::Grpc.failure()] {
        let none = Action::weighted([(Target::Backend(0), 0)].into_iter(), failure);
        assert_eq!(none, Action::status(failure));
        assert_eq!(Action::weighted(std::iter::empty(), failure), Action::status(failure));
    }
}

#[test]
fn the_field_at_fault_is_named() {
    let ports = service(&json!({"ports": [{"port": 80}, {"port": 81, "appProtocol": "kubernetes.io/wss"}]}));
    for (backend, reason, field) in [
        (json!({"name": "web", "port": 80, "kind": "Bucket"}), Reason::InvalidKind, "kind"),
        (json!({"name": "web", "port": 80, "group": "a.test"}), Reason::InvalidKind, "group"),
        (json!({"name": "web", "port": 80, "namespace": "app"}), Reason::RefNotPermitted, "namespace"),
        (json!({"name": "web"}), Reason::BackendNotFound, "port"),
        (json!({"name": "web", "port": 82}), Reason::BackendNotFound, "port"),
        (json!({"name": "missing", "port": 80}), Reason::BackendNotFound, "name"),
        (json!({"name": "web", "port": 81}), Reason::UnsupportedProtocol, "port"),
    ] {
        assert_eq!(resolve(&ports, &backend), unresolved(reason, field), "{backend}");
    }
}

#[test]
fn a_service_without_ports_has_no_port() {
    for spec in [json!({}), json!({"ports": []}), Value::Null] {
        let found = resolve(&service(&spec), &json!({"name": "web", "port": 80}));
        assert_eq!(found, unresolved(Reason::BackendNotFound, "port"));
    }
}

#[test]
fn the_tcp_port_of_two_with_one_number_is_used() {
    let udp = json!({"name": "quic", "port": 80, "protocol": "UDP"});
    let tcp = json!({"name": "web", "port": 80, "protocol": "TCP"});
    let backend = json!({"name": "web", "port": 80});
    let both = resolve(&service(&json!({"ports": [udp, tcp]})), &backend);
    assert_eq!(both, (Action::status(503), Vec::new()));
    let alone = resolve(&service(&json!({"ports": [udp]})), &backend);
    assert_eq!(alone, unresolved(Reason::UnsupportedProtocol, "port"));
}

#[test]
fn names_in_place_of_addresses_are_refused() {
    let backend = json!({"name": "web", "port": 80});
    let external =
        service(&json!({"type": "ExternalName", "externalName": "a.test", "ports": [{"port": 80}]}));
    assert_eq!(resolve(&external, &backend), unresolved(Reason::UnsupportedValue, "name"));

    let mut fqdn = service(&json!({"ports": [{"port": 80}]}));
    fqdn.insert(Object::EndpointSlice(object(json!({
        "metadata": {"namespace": "infra", "name": "web", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "FQDN", "ports": [{"port": 80}], "endpoints": [{"addresses": ["a.test"]}],
    }))));
    assert_eq!(resolve(&fqdn, &backend), unresolved(Reason::UnsupportedValue, "name"));
}

#[test]
fn a_service_with_endpoints_is_a_backend() {
    let mut objects = gateway(&json!([]));
    add_service(&mut objects, "web");
    let (action, unresolved) = resolve(&objects, &json!({"name": "web", "port": 80}));
    assert_eq!(action.targets.as_slice(), [(Target::Backend(0), 1)]);
    assert_eq!(unresolved, []);
}

/// The application protocol of the only rule of a GRPCRoute with this backendRef, or the reason of its refusal.
fn speak_grpc(objects: &Objects, backend: &Value) -> Result<AppProtocol, (Reason, String)> {
    let mut objects = objects.clone();
    add_grpc_route(
        &mut objects,
        "calls",
        &json!({"parentRefs": [{"name": "public"}], "rules": [{"backendRefs": [backend]}]}),
    );
    let snapshot = snapshot(&objects);
    let route = normalise_route(
        &snapshot.routes[&ObjectKey::new(Kind::GrpcRoute, "infra", "calls")],
        &Extensions::default(),
    );
    let mut backends = Backends::default();
    let references = References::new(&snapshot.referents);
    let policies = Policies::default();
    let policies = policies.for_route(&route.key, Payload::Requests(None), false);
    let rule = references.resolve_rule(&route, &route.rules[0], policies, &mut backends, &mut Vec::new());
    match rule.unresolved.first() {
        None => Ok(backends.get(0).protocol),
        Some(refusal) => {
            assert_eq!(rule.action, Action::status(503));
            Err((refusal.reason, refusal.message.clone()))
        }
    }
}

#[test]
fn a_grpc_route_speaks_http_2_to_its_backends() {
    for protocol in [Value::Null, json!(""), json!("kubernetes.io/h2c"), json!("grpc")] {
        let mut objects = service(&json!({"ports": [{"port": 80, "appProtocol": protocol}]}));
        add_endpoints(&mut objects, "web");
        assert_eq!(
            speak_grpc(&objects, &json!({"name": "web", "port": 80})),
            Ok(AppProtocol::H2c),
            "{protocol}"
        );
    }
    for protocol in ["http", "kubernetes.io/http", "kubernetes.io/ws", "https", "tcp"] {
        let objects = service(&json!({"ports": [{"port": 80, "appProtocol": protocol}]}));
        let message =
            format!("Port 80 of Service infra/web has appProtocol {protocol}, which does not carry gRPC.");
        assert_eq!(
            speak_grpc(&objects, &json!({"name": "web", "port": 80})),
            Err((Reason::UnsupportedProtocol, message))
        );
    }
}

#[test]
fn a_port_is_spoken_to_as_each_route_needs_it() {
    let mut objects = gateway(&json!([{"name": "a", "port": 80, "protocol": "HTTP"}]));
    add_service(&mut objects, "web");
    let spec = |rule: Value| json!({"parentRefs": [{"name": "public"}], "rules": [rule]});
    let backends = json!([{"name": "web", "port": 80}]);
    add_route(&mut objects, "pages", &spec(json!({"backendRefs": backends})));
    let calls = json!({"matches": [{"method": {"service": "Cart"}}], "backendRefs": backends});
    add_grpc_route(&mut objects, "calls", &spec(calls));
    let translation = run(&objects, &Options::default());
    let data_plane = translation.data_planes.values().next().unwrap();
    let mut spoken: Vec<_> = data_plane
        .config
        .upstreams()
        .map(|(_, upstream)| (upstream.scheme, upstream.timeout.as_ref().map(|timeout| timeout.read)))
        .collect();
    spoken.sort_by_key(|(_, timeout)| *timeout);
    assert_eq!(spoken, [(Scheme::Http, None), (Scheme::Grpc, Some(86_400))]);
}
