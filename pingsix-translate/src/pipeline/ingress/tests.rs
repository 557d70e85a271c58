use serde_json::{Value, json};

use super::*;
use crate::fixture::{add_certificate, add_service, object, pem};
use crate::lower::{DataPlane, LoweredPlane, Lowering};
use crate::model::{Budget, CertificateReference, Provenance};
use crate::pingsix::validate::{ValidateOptions, Violation, order_dependence, validate};
use crate::pingsix::{DocumentKey, Outcome, Request, ResourceKind, Router, router::UpstreamRef};
use crate::pipeline::translate_ingress;
use crate::snapshot::{Object, Objects};

/// IngressClass `pingsix` of our controller.
fn class() -> Objects {
    let mut objects = Objects::default();
    add_class(&mut objects, "pingsix", &json!({}), &json!({"controller": "pingsix.io/gateway-controller"}));
    objects
}

fn add_class(objects: &mut Objects, name: &str, annotations: &Value, spec: &Value) {
    objects.insert(Object::IngressClass(object(json!({
        "metadata": {"name": name, "annotations": annotations}, "spec": spec,
    }))));
}

/// Adds Ingress `infra/<name>` of class `pingsix`; the smaller the day, the older.
fn add(objects: &mut Objects, name: &str, day: u8, mut spec: Value) {
    spec["ingressClassName"] = json!("pingsix");
    objects.insert(Object::Ingress(object(json!({
        "metadata": {
            "namespace": "infra", "name": name, "generation": 3,
            "creationTimestamp": format!("2026-01-{day:02}T00:00:00Z"),
        },
        "spec": spec,
    }))));
}

fn service(name: &str) -> Value {
    json!({"service": {"name": name, "port": {"number": 80}}})
}

fn path(kind: &str, path: &str, name: &str) -> Value {
    json!({"pathType": kind, "path": path, "backend": service(name)})
}

fn rule(host: &str, paths: &[Value]) -> Value {
    json!({"host": host, "http": {"paths": paths}})
}

fn run(objects: &Objects, options: &Options) -> Translation {
    let translation = translate_ingress(&objects.ingress_snapshot("pingsix").unwrap(), options);
    for (key, plane) in &translation.data_planes {
        let rules = ValidateOptions { prefix: key.prefix(&options.root), ..ValidateOptions::default() };
        let mut refused = validate(&plane.config, &rules);
        refused.retain(Violation::is_refusal);
        assert_eq!(refused, []);
        assert_eq!(order_dependence(&plane.config), []);
    }
    translation
}

fn translated(objects: &Objects) -> Translation {
    run(objects, &Options::default())
}

fn plane(translation: &Translation) -> &DataPlane {
    translation.data_planes.values().next().unwrap()
}

/// The Service or status that answers a request, in a class with one data plane.
fn ask(translation: &Translation, request: &Request) -> String {
    answer(plane(translation), request)
}

fn answer(plane: &DataPlane, request: &Request) -> String {
    let router = Router::build(&plane.config, 0..plane.config.routes().count()).unwrap();
    match router.outcome(request) {
        Outcome::NotFound => "404".to_owned(),
        Outcome::Static { status, .. } => status.to_string(),
        Outcome::Forward { candidates, .. } => {
            let [candidate] = candidates.as_slice() else { panic!("an Ingress has no shares") };
            let UpstreamRef::Named(id) = &candidate.upstream else { panic!("upstreams are named") };
            let upstream = DocumentKey::new(ResourceKind::Upstream, id.as_str());
            let Provenance::Backend { service, port } = &plane.provenance[&upstream] else {
                panic!("{upstream} is no Service")
            };
            format!("{}:{port}", service.name.name)
        }
        other @ (Outcome::Preflight { .. } | Outcome::Redirect { .. }) => panic!("{other:?}"),
    }
}

fn get(translation: &Translation, host: &str, path: &str) -> String {
    ask(translation, &Request::get(host, path))
}

/// `error spec.rules[0].host Reason` for each problem of an Ingress or IngressClass.
fn problems(translation: &Translation) -> Vec<String> {
    let of_ingress = |problem: &&Problem| matches!(problem.object.kind, Kind::Ingress | Kind::IngressClass);
    let problems = translation.verdicts.problems.iter().filter(of_ingress);
    problems
        .map(|problem| {
            let name = &problem.object.name.name;
            format!("{} {name} {} {}", problem.severity.as_str(), problem.field, problem.reason)
        })
        .collect()
}

fn messages(translation: &Translation) -> String {
    translation.verdicts.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn paths_are_matched_by_element_and_the_longest_wins() {
    let mut objects = class();
    for name in ["root", "foo", "exact", "any"] {
        add_service(&mut objects, name);
    }
    add(
        &mut objects,
        "i",
        1,
        json!({"rules": [rule("a.test", &[
            json!({"pathType": "Prefix", "path": "", "backend": service("root")}),
            path("Prefix", "/foo/", "foo"),
            path("Exact", "/foo", "exact"),
            path("ImplementationSpecific", "/any", "any"),
        ])]}),
    );
    let translation = translated(&objects);
    for (path, expected) in [
        ("/", "root:80"),
        ("/x", "root:80"),
        ("/foo", "exact:80"),
        ("/foo/", "foo:80"),
        ("/foo/x", "foo:80"),
        ("/foobar", "root:80"),
        ("/any/x", "any:80"),
        ("/anybody", "root:80"),
    ] {
        assert_eq!(get(&translation, "a.test", path), expected, "{path}");
    }
    assert_eq!(get(&translation, "b.test", "/"), "404");
    assert_eq!(problems(&translation), [""; 0]);
    // One data plane serves plaintext and TLS alike.
    assert_eq!(ask(&translation, &Request::get("a.test", "/any").over_tls()), "any:80");
}

#[test]
fn an_unmatched_path_falls_to_wider_hosts_and_then_the_default_backend() {
    let mut objects = class();
    for name in ["exact", "wild", "all", "default"] {
        add_service(&mut objects, name);
    }
    add(
        &mut objects,
        "i",
        1,
        json!({
            "defaultBackend": service("default"),
            "rules": [
                rule("a.foo.test", &[path("Prefix", "/a", "exact")]),
                rule("*.foo.test", &[path("Prefix", "/b", "wild")]),
                {"http": {"paths": [path("Prefix", "/c", "all")]}},
            ],
        }),
    );
    let translation = translated(&objects);
    for (host, path, expected) in [
        ("a.foo.test", "/a", "exact:80"),
        ("a.foo.test", "/b", "wild:80"),
        ("a.foo.test", "/c", "all:80"),
        ("a.foo.test", "/d", "default:80"),
        ("b.foo.test", "/a", "default:80"),
        ("other.test", "/c", "all:80"),
        ("other.test", "/", "default:80"),
    ] {
        assert_eq!(get(&translation, host, path), expected, "{host}{path}");
    }
}

#[test]
fn the_default_backend_stands_behind_every_rule_and_the_oldest_wins() {
    let mut objects = class();
    for name in ["old", "older", "young"] {
        add_service(&mut objects, name);
    }
    add(&mut objects, "old", 2, json!({"defaultBackend": service("old")}));
    add(&mut objects, "older", 1, json!({"defaultBackend": service("older")}));
    let translation = translated(&objects);
    assert_eq!(get(&translation, "a.test", "/x"), "older:80");
    assert_eq!(problems(&translation), ["warning old spec.defaultBackend Shadowed"]);
    assert!(
        messages(&translation)
            .contains("spec.defaultBackend of Ingress infra/older matches the same requests")
    );

    // A younger rule for every host takes everything all the same.
    add(&mut objects, "young", 3, json!({"rules": [{"http": {"paths": [path("Prefix", "/", "young")]}}]}));
    assert_eq!(get(&translated(&objects), "a.test", "/x"), "young:80");
}

#[test]
fn a_prefix_whose_requests_one_with_a_slash_takes_is_named() {
    let mut objects = class();
    add_service(&mut objects, "shop");
    let paths =
        [path("Prefix", "/foo", "shop"), path("Prefix", "/foo/", "shop"), path("Exact", "/foo", "shop")];
    add(&mut objects, "web", 1, json!({"rules": [rule("a.test", &paths)]}));
    let translation = translated(&objects);
    assert_eq!(get(&translation, "a.test", "/foo/x"), "shop:80");
    assert_eq!(problems(&translation), ["warning web spec.rules[0].http.paths[0] Shadowed"]);
}

#[test]
fn a_host_without_paths_goes_to_the_default_backend_of_its_ingress() {
    let mut objects = class();
    for name in ["own", "all", "other"] {
        add_service(&mut objects, name);
    }
    add(&mut objects, "all", 1, json!({"rules": [{"http": {"paths": [path("Prefix", "/", "all")]}}]}));
    add(&mut objects, "own", 2, json!({"defaultBackend": service("own"), "rules": [{"host": "a.test"}, {}]}));
    add(&mut objects, "other", 3, json!({"rules": [rule("a.test", &[path("Prefix", "/o", "other")])]}));
    add(&mut objects, "silent", 4, json!({"rules": [{"host": "b.test"}]}));
    let translation = translated(&objects);
    assert_eq!(get(&translation, "a.test", "/"), "own:80");
    assert_eq!(get(&translation, "a.test", "/o"), "other:80");
    assert_eq!(get(&translation, "b.test", "/"), "all:80");
    assert_eq!(problems(&translation), ["warning silent spec.rules[0].http BackendNotFound"]);
}

#[test]
fn equal_matches_go_to_the_oldest_ingress_then_by_name_then_in_order() {
    let mut objects = class();
    for name in ["one", "two", "three"] {
        add_service(&mut objects, name);
    }
    let spec = |names: &[&str]| {
        let paths: Vec<Value> = names.iter().map(|name| path("Prefix", "/", name)).collect();
        json!({"rules": [rule("a.test", &paths)]})
    };
    add(&mut objects, "b", 2, spec(&["one"]));
    add(&mut objects, "a", 2, spec(&["two", "three"]));
    let translation = translated(&objects);
    assert_eq!(get(&translation, "a.test", "/"), "two:80");
    assert_eq!(
        problems(&translation),
        ["warning a spec.rules[0].http.paths[1] Shadowed", "warning b spec.rules[0].http.paths[0] Shadowed"]
    );
    add(&mut objects, "z", 1, spec(&["three"]));
    assert_eq!(get(&translated(&objects), "a.test", "/"), "three:80");
}

#[test]
fn backends_that_cannot_be_used_fail_closed_and_name_the_field() {
    let mut objects = class();
    add_service(&mut objects, "web");
    objects.insert(Object::Service(object(json!({
        "metadata": {"namespace": "infra", "name": "far"}, "spec": {"type": "ExternalName", "externalName": "a.test"},
    }))));
    objects.insert(Object::Service(object(json!({
        "metadata": {"namespace": "infra", "name": "idle"}, "spec": {"ports": [
            {"name": "http", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"},
        ]},
    }))));
    let with_port = |name: &str, port: Value| json!({"service": {"name": name, "port": port}});
    let backends = [
        (service("missing"), "500"),
        (with_port("web", json!({"number": 81})), "500"),
        (with_port("web", json!({"name": "http"})), "500"),
        (with_port("web", json!({})), "500"),
        (service("far"), "500"),
        (service("idle"), "503"),
        (with_port("idle", json!({"name": "http"})), "503"),
        (with_port("idle", json!({"name": "dns"})), "500"),
        (json!({"resource": {"kind": "Bucket", "apiGroup": "example.com", "name": "b"}}), "500"),
        (json!({}), "500"),
    ];
    let paths: Vec<Value> = backends
        .iter()
        .enumerate()
        .map(|(index, (backend, _))| json!({"pathType": "Prefix", "path": format!("/{index}"), "backend": backend}))
        .collect();
    add(&mut objects, "i", 1, json!({"defaultBackend": service("web"), "rules": [rule("a.test", &paths)]}));
    let translation = translated(&objects);
    for (index, (backend, expected)) in backends.iter().enumerate() {
        assert_eq!(get(&translation, "a.test", &format!("/{index}")), *expected, "{backend}");
    }
    assert_eq!(
        problems(&translation),
        [
            "error i spec.rules[0].http.paths[0].backend.service.name BackendNotFound",
            "error i spec.rules[0].http.paths[1].backend.service.port BackendNotFound",
            "error i spec.rules[0].http.paths[2].backend.service.port BackendNotFound",
            "error i spec.rules[0].http.paths[3].backend.service.port BackendNotFound",
            "error i spec.rules[0].http.paths[4].backend.service.name UnsupportedValue",
            "error i spec.rules[0].http.paths[7].backend.service.port UnsupportedProtocol",
            "error i spec.rules[0].http.paths[8].backend.resource InvalidKind",
            "error i spec.rules[0].http.paths[9].backend BackendNotFound",
        ]
    );
    let idle = translation.verdicts.problems.iter().filter(|problem| problem.reason == Reason::NoEndpoints);
    assert_eq!(idle.count(), 1);
}

#[test]
fn a_port_is_found_by_its_name() {
    let mut objects = class();
    objects.insert(Object::Service(object(json!({
        "metadata": {"namespace": "infra", "name": "web"},
        "spec": {"ports": [{"name": "http", "port": 80}, {"name": "admin", "port": 81, "appProtocol": "kubernetes.io/h2c"}]},
    }))));
    objects.insert(Object::EndpointSlice(object(json!({
        "metadata": {"namespace": "infra", "name": "web", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "ports": [{"name": "http", "port": 8080}, {"name": "admin", "port": 8081}],
        "endpoints": [{"addresses": ["10.0.0.1"]}],
    }))));
    let named = json!({"service": {"name": "web", "port": {"name": "admin"}}});
    add(&mut objects, "i", 1, json!({"defaultBackend": named}));
    let translation = translated(&objects);
    assert_eq!(get(&translation, "a.test", "/"), "web:81");
    let (_, upstream) = plane(&translation).config.upstreams().next().unwrap();
    assert!(upstream.nodes.contains_key("10.0.0.1:8081"));
    assert_eq!(upstream.scheme, crate::pingsix::Scheme::Grpc);
}

#[test]
fn values_that_no_request_could_have_cost_their_own_path_or_rule() {
    let mut objects = class();
    add_service(&mut objects, "web");
    add(
        &mut objects,
        "i",
        1,
        json!({"rules": [
            rule("10.0.0.1", &[path("Prefix", "/", "web")]),
            rule("a.test", &[
                path("Regex", "/a", "web"),
                path("Prefix", "b", "web"),
                path("Prefix", "/c|d", "web"),
                path("ImplementationSpecific", "/e/*", "web"),
                path("Prefix", "/f", "web"),
            ]),
        ]}),
    );
    let translation = translated(&objects);
    assert_eq!(get(&translation, "10.0.0.1", "/"), "404");
    assert_eq!(get(&translation, "a.test", "/a"), "404");
    assert_eq!(get(&translation, "a.test", "/c%7Cd"), "500");
    assert_eq!(get(&translation, "a.test", "/e/x"), "404");
    assert_eq!(get(&translation, "a.test", "/e/*"), "web:80");
    assert_eq!(get(&translation, "a.test", "/f"), "web:80");
    assert_eq!(
        problems(&translation),
        [
            "error i spec.rules[0].host UnsupportedValue",
            "error i spec.rules[1].http.paths[0].pathType UnsupportedValue",
            "error i spec.rules[1].http.paths[1].path UnsupportedValue",
            "error i spec.rules[1].http.paths[2].path UnsupportedValue",
            "warning i spec.rules[1].http.paths[3].path Limited",
        ]
    );
}

/// SNI and Secret of every certificate that is served.
fn served(translation: &Translation) -> Vec<String> {
    let plane = plane(translation);
    let mut served: Vec<String> = plane
        .config
        .ssls()
        .flat_map(|(key, ssl)| {
            let Provenance::Certificate { by, .. } = &plane.provenance[key] else {
                panic!("{key} is no certificate")
            };
            ssl.snis.iter().zip(by).map(move |(name, by)| match &**by {
                CertificateReference::Ingress { ingress, tls } => {
                    format!("{name} {} {tls}", ingress.name.name)
                }
                CertificateReference::Listener { .. } => panic!("{key} is not of an Ingress"),
            })
        })
        .collect();
    served.sort();
    served
}

#[test]
fn a_name_has_the_certificate_of_the_oldest_ingress() {
    let mut objects = class();
    add_certificate(&mut objects, "one", &pem::pair(&["a.test"]));
    add_certificate(&mut objects, "two", &pem::pair(&["own.test", "*.own.test"]));
    add(
        &mut objects,
        "young",
        2,
        json!({"tls": [
        {"hosts": ["A.test", "b.test", "10.0.0.1"], "secretName": "two"}, {"secretName": "two"},
    ], "defaultBackend": service("web")}),
    );
    add(
        &mut objects,
        "old",
        1,
        json!({"tls": [
        {"hosts": ["a.test"], "secretName": "one"},
        {"hosts": ["c.test"], "secretName": "missing"},
        {"hosts": ["d.test"]},
    ], "defaultBackend": service("web")}),
    );
    // A second copy of the certificate removes no name of another one.
    add(
        &mut objects,
        "same",
        3,
        json!({"tls": [{"hosts": ["a.test"], "secretName": "one"}], "defaultBackend": service("web")}),
    );
    add_service(&mut objects, "web");
    let translation = translated(&objects);
    assert_eq!(
        served(&translation),
        ["*.own.test young 1", "a.test old 0", "b.test young 0", "own.test young 1"]
    );
    let tls: Vec<String> =
        problems(&translation).into_iter().filter(|problem| problem.contains("spec.tls")).collect();
    assert_eq!(
        tls,
        [
            "error old spec.tls[1].secretName InvalidCertificateRef",
            "warning old spec.tls[2] Limited",
            "warning young spec.tls[0].hosts[0] Shadowed",
            "error young spec.tls[0].hosts[2] UnsupportedValue",
        ]
    );
    // Routing does not mind.
    assert_eq!(get(&translation, "c.test", "/"), "web:80");
}

#[test]
fn annotations_of_other_controllers_give_one_warning() {
    let mut objects = class();
    add_service(&mut objects, "web");
    objects.insert(Object::Ingress(object(json!({
        "metadata": {"namespace": "infra", "name": "i", "annotations": {
            "kubernetes.io/ingress.class": "pingsix",
            "cert-manager.io/cluster-issuer": "letsencrypt",
            "kubernetes.io/ingress.allow-http": "false",
            "nginx.ingress.kubernetes.io/auth-url": "https://a.test",
            "nginx.ingress.kubernetes.io/rewrite-target": "/$1",
            "konghq.com/plugins": "acl",
            "notkonghq.com/plugins": "acl",
        }},
        "spec": {"defaultBackend": service("web")},
    }))));
    let translation = translated(&objects);
    assert_eq!(problems(&translation), ["warning i metadata.annotations UnsupportedAnnotation"]);
    let message = messages(&translation);
    assert!(
        message.contains(
            "konghq.com/plugins, kubernetes.io/ingress.allow-http, nginx.ingress.kubernetes.io/auth-url, \
             nginx.ingress.kubernetes.io/rewrite-target are not supported"
        ),
        "{message}"
    );
    assert_eq!(get(&translation, "a.test", "/"), "web:80");
}

#[test]
fn an_ingress_belongs_to_the_class_it_names_or_else_to_the_default() {
    let ours = json!({"controller": "pingsix.io/gateway-controller"});
    let default = json!({"ingressclass.kubernetes.io/is-default-class": "true"});
    let mut objects = class();
    for (name, metadata, spec) in [
        ("field", json!({"kubernetes.io/ingress.class": "other"}), json!({"ingressClassName": "pingsix"})),
        ("annotation", json!({"kubernetes.io/ingress.class": "pingsix"}), json!({})),
        ("other", json!({}), json!({"ingressClassName": "other"})),
        ("empty", json!({"kubernetes.io/ingress.class": ""}), json!({})),
        ("none", json!({}), json!({})),
    ] {
        objects.insert(Object::Ingress(object(json!({
            "metadata": {"namespace": "infra", "name": name, "annotations": metadata}, "spec": spec,
        }))));
    }
    let served = |objects: &Objects| {
        let ingresses = translated(objects).verdicts.ingresses;
        ingresses.keys().map(|key| key.name.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(served(&objects), ["annotation", "field"]);
    add_class(&mut objects, "pingsix", &default, &ours);
    assert_eq!(served(&objects), ["annotation", "field", "none"]);
    // Of several defaults one counts, so that nobody is served twice.
    add_class(&mut objects, "foreign", &default, &json!({"controller": "example.com/other"}));
    assert_eq!(served(&objects), ["annotation", "field"]);
    let warning = "warning pingsix metadata.annotations Shadowed";
    assert!(problems(&translated(&objects)).contains(&warning.to_owned()));
}

#[test]
fn an_unservable_class_has_an_empty_data_plane_and_a_foreign_one_none() {
    let mut objects = class();
    add_service(&mut objects, "web");
    add(&mut objects, "i", 1, json!({"defaultBackend": service("web")}));
    let spec = json!({
        "controller": "pingsix.io/gateway-controller",
        "parameters": {"apiGroup": "pingsix.io", "kind": "PingsixProxy", "name": "p"},
    });
    add_class(&mut objects, "pingsix", &json!({}), &spec);
    let translation = translated(&objects);
    assert!(plane(&translation).config.is_empty() && translation.verdicts.ingresses.is_empty());
    assert_eq!(problems(&translation), ["error pingsix spec.parameters.scope InvalidParameters"]);
    add_class(&mut objects, "pingsix", &json!({}), &json!({"controller": "example.com/other"}));
    assert!(translated(&objects).data_planes.is_empty());
}

#[test]
fn over_budget_the_youngest_paths_are_refused_and_named() {
    let mut objects = class();
    for (index, name) in ["young", "old"].into_iter().enumerate() {
        let day = u8::try_from(2 - index).unwrap();
        let paths =
            [path("Exact", &format!("/{name}"), "missing"), path("Exact", &format!("/{name}/2"), "missing")];
        add(&mut objects, name, day, json!({"rules": [rule("a.test", &paths)]}));
    }
    let budget = Budget { matcher_entries: 3, ..Budget::default() };
    let translation = run(&objects, &Options { budget, ..Options::default() });
    assert_eq!(plane(&translation).size.matcher_entries, 3);
    let refused: Vec<String> =
        problems(&translation).into_iter().filter(|problem| problem.ends_with("BudgetExceeded")).collect();
    assert_eq!(refused, ["error young spec.rules[0].http.paths[1] BudgetExceeded"]);
}

#[test]
fn each_port_serves_every_ingress_and_port_80_has_no_certificates() {
    let mut objects = class();
    add_service(&mut objects, "web");
    add_certificate(&mut objects, "one", &pem::pair(&["a.test"]));
    let tls = json!([{"hosts": ["a.test"], "secretName": "one"}]);
    add(
        &mut objects,
        "secure",
        1,
        json!({"rules": [rule("a.test", &[path("Prefix", "/", "web")])], "tls": tls}),
    );
    add(&mut objects, "plain", 2, json!({"rules": [rule("b.test", &[path("Prefix", "/", "gone")])]}));
    let translation = run(&objects, &Options { layout: Layout::PerPort, ..Options::default() });
    let planes: Vec<_> = translation.data_planes.iter().collect();
    assert_eq!(
        planes.iter().map(|(key, plane)| (key.to_string(), plane.config.ssls().count())).collect::<Vec<_>>(),
        [("IngressClass/pingsix:80".to_owned(), 0), ("IngressClass/pingsix:443".to_owned(), 1)]
    );
    for (_, plane) in planes {
        assert_eq!(answer(plane, &Request::get("a.test", "/")), "web:80");
        assert_eq!(answer(plane, &Request::get("b.test", "/")), "500");
    }
    assert_eq!(
        problems(&translation),
        ["error plain spec.rules[0].http.paths[0].backend.service.name BackendNotFound"],
        "once for both ports"
    );
}

#[test]
fn a_route_can_be_for_one_port_alone() {
    let ingress: Arc<Ingress> = object(json!({"metadata": {}, "spec": {"defaultBackend": service("web")}}));
    let key = Arc::new(ObjectKey::new(Kind::Ingress, "infra", "web"));
    let [route] = normalise_ingress(
        &key,
        &ingress,
        &IngressAnnotations::default(),
        &Neighbours::default(),
        &mut Vec::new(),
    )
    .try_into()
    .unwrap();
    let to_plaintext = Arc::new(Attachments::to_ports([0]));
    let inputs = [Arc::new(RouteInput::new(route, Box::from([ResolvedRule::answering(404)]), to_plaintext))];
    let settings =
        PlaneSettings { namespace_share: 100, feed_cpu_percent: 100, shared_cache: false, telemetry: None };
    let planes = ingress_planes(&"pingsix".into(), Layout::PerPort, &[], &settings);
    let (backends, policies, options) = (Backends::default(), Policies::default(), Options::default());
    let routes = planes.into_iter().map(|plane| {
        let lowered = LoweredPlane::new(&Lowering {
            plane: &plane,
            routes: &inputs,
            backends: &backends,
            policies: &policies,
            options: &options,
        });
        (plane.key.port(), lowered.data_plane().config.routes().count())
    });
    assert_eq!(routes.collect::<Vec<_>>(), [(Some(80), 1), (Some(443), 0)]);
}

#[test]
fn routes_are_named_after_the_ingress() {
    let mut objects = class();
    add_service(&mut objects, "web");
    add(
        &mut objects,
        "i",
        1,
        json!({
            "defaultBackend": service("web"), "rules": [rule("a.test", &[path("Prefix", "/", "web")])],
        }),
    );
    let translation = run(&objects, &Options { route_names: true, ..Options::default() });
    let mut names: Vec<_> =
        plane(&translation).config.routes().filter_map(|(_, route)| route.name.clone()).collect();
    names.sort();
    assert_eq!(names, ["Ingress/infra/i/0", "Ingress/infra/i/default"]);
}
