//! The pages as browsers and hostile authors meet them.

mod html;

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{Request, Response, StatusCode, header};
use pingsix_translate::status::{Delivery, with_delivery};
use pingsix_translate::{
    Kind, Object, ObjectKey, ObjectName, Objects, Options, Translation, translate, translate_ingress,
};
use serde_json::{Value, json};

use self::html::Document;
use super::*;
use crate::explain::in_words;
use crate::fixture::{objects, options, rule};

/// The model of all Gateways and IngressClasses among objects.
fn model(objects: &Objects) -> Model {
    let all = Kind::ALL.iter().flat_map(|kind| objects.of_kind(*kind));
    let mut model = Model::new(options(), vec!["manifests/".to_owned()], all);
    for (name, _) in objects.gateways() {
        let translation = translate(&objects.snapshot(name).unwrap(), &options());
        add(&mut model, ObjectKey { kind: Kind::Gateway, name: name.clone() }, translation);
    }
    for (name, _) in objects.ingress_classes() {
        let translation = translate_ingress(&objects.ingress_snapshot(&name.name).unwrap(), &options());
        add(&mut model, ObjectKey { kind: Kind::IngressClass, name: name.clone() }, translation);
    }
    model
}

fn add(model: &mut Model, owner: ObjectKey, translation: Translation) {
    let Translation { data_planes, stream_planes, verdicts, .. } = translation;
    model.add_findings(verdicts.problems.iter().map(Finding::from));
    let of_requests = data_planes.into_iter().map(|(key, plane)| {
        let (config, provenance) = (plane.config, plane.provenance);
        (key, PlaneDocuments::Requests { config, provenance })
    });
    let of_streams =
        stream_planes.into_iter().map(|(key, plane)| (key, PlaneDocuments::Streams(Arc::new(plane))));
    let view = |documents| DataPlaneView {
        documents,
        revision: Some(7),
        delivery: Delivery::Delivered,
        instances: Vec::new(),
        connections: Some(2),
    };
    let data_planes: BTreeMap<_, _> =
        of_requests.chain(of_streams).map(|(key, documents)| (key, view(documents))).collect();
    let deliveries = data_planes.keys().map(|key| (key.clone(), Delivery::Delivered)).collect();
    model.add_owner(owner, OwnerView { verdicts: with_delivery(verdicts, &deliveries), data_planes });
}

/// Gateway `infra/web` with routes, one of them with every part that a page shows, and an IngressClass.
fn shop() -> Objects {
    let full = json!({
        "hostnames": ["shop.example.com", "*.shop.example.com"],
        "rules": [
            {
                "name": "canary",
                "matches": [{
                    "path": { "type": "PathPrefix", "value": "/cart" }, "method": "POST",
                    "headers": [{ "name": "X-Env", "value": "canary" }], "queryParams": [{ "name": "beta", "value": "1" }],
                }],
                "timeouts": { "request": "3s" },
                "backendRefs": [{ "name": "a", "port": 80, "weight": 3 }, { "name": "empty", "port": 80 }],
            },
            {
                "matches": [{ "path": { "type": "Exact", "value": "/cart/new" } }],
                "filters": [
                    { "type": "RequestHeaderModifier", "requestHeaderModifier": {
                        "set": [{ "name": "Authorization", "value": "Bearer canary-in-a-header" }], "remove": ["X-Old"],
                    } },
                    { "type": "URLRewrite", "urlRewrite": { "path": { "type": "ReplaceFullPath", "replaceFullPath": "/basket" } } },
                ],
                "backendRefs": [{ "name": "b", "port": 80 }],
            },
            { "backendRefs": [{ "name": "lost", "port": 80 }] },
        ],
    });
    let mut objects = objects(&[("shop", full), ("cart", json!({ "rules": [rule("/cart", "b")] }))]);
    objects.insert(object::<pingsix_translate::snapshot::IngressClass>(
        Object::IngressClass,
        json!({
            "metadata": { "name": "public" }, "spec": { "controller": pingsix_translate::DEFAULT_CONTROLLER_NAME },
        }),
    ));
    objects.insert(object::<pingsix_translate::snapshot::Ingress>(
        Object::Ingress,
        json!({
            "metadata": { "namespace": "infra", "name": "old" },
            "spec": { "ingressClassName": "public", "rules": [{ "host": "old.example.com", "http": { "paths": [
                { "path": "/old", "pathType": "Prefix", "backend": { "service": { "name": "c", "port": { "number": 80 } } } },
            ] } }], "defaultBackend": { "service": { "name": "d", "port": { "number": 80 } } } },
        }),
    ));
    objects
}

fn object<K: serde::de::DeserializeOwned>(of: fn(Arc<K>) -> Object, value: Value) -> Object {
    of(Arc::new(serde_json::from_value(value).unwrap()))
}

/// The answer to a request for a page.
fn ask(model: &Model, path: &str) -> Response<String> {
    let request = Request::get(path).header(header::HOST, "127.0.0.1:9181").body(()).unwrap();
    match question(&request) {
        Ok(question) => question.answer(model),
        Err(answer) => *answer,
    }
}

/// The text of a page that exists.
fn page(model: &Model, path: &str) -> String {
    let answer = ask(model, path);
    assert_eq!(answer.status(), StatusCode::OK, "{path}: {}", answer.body());
    answer.into_body()
}

fn about(about: &str) -> String {
    super::address::address("/view/object", &[("about", about)])
}

/// A page of each kind.
fn addresses() -> Vec<String> {
    let mut addresses: Vec<String> =
        ["/view", "/view/routes", "/view/data-planes", "/view/findings", "/view/explain"]
            .map(str::to_owned)
            .to_vec();
    addresses.push("/view/routes?search=cart&owner=Gateway%2Finfra%2Fweb&only-problems=yes".to_owned());
    addresses.push("/view/explain?url=http%3A%2F%2Fshop.example.com%2Fcart".to_owned());
    addresses.extend(
        [
            "Gateway/infra/web",
            "IngressClass/public",
            "HTTPRoute/infra/shop",
            "HTTPRoute/infra/cart",
            "Ingress/infra/old",
        ]
        .map(about),
    );
    addresses
}

#[test]
fn every_page_is_well_formed_and_has_labels_headings_and_landmarks() {
    let model = model(&shop());
    for address in addresses() {
        Document::parse(&page(&model, &address)).assert_usable(&address);
    }
    let missing = ask(&model, &about("HTTPRoute/infra/none"));
    assert_eq!(missing.status(), StatusCode::NOT_FOUND);
    Document::parse(missing.body()).assert_usable("missing");
    Document::parse(ask(&model, "/view/none").body()).assert_usable("no page");
    // Without any Gateway, the pages say so.
    let none = super::Model::new(options(), Vec::new(), []);
    for address in
        ["/view", "/view/routes", "/view/data-planes", "/view/findings", "/view/explain?url=http://a.test/"]
    {
        Document::parse(&page(&none, address)).assert_usable(address);
    }
}

#[test]
fn every_link_of_a_page_leads_to_a_page() {
    let model = model(&shop());
    for address in addresses() {
        for link in Document::parse(&page(&model, &address)).links() {
            let (path, place) = link.split_once('#').unwrap_or((&link, ""));
            if path.is_empty() {
                continue;
            }
            let answer = ask(&model, path);
            assert_eq!(answer.status(), StatusCode::OK, "{address} links to {link}");
            if !place.is_empty() {
                assert!(answer.body().contains(&format!("id=\"{place}\"")), "{address} links to {link}");
            }
        }
    }
}

#[test]
fn a_gateway_shows_listeners_conditions_routes_and_data_planes() {
    let model = model(&shop());
    let overview = Document::parse(&page(&model, "/view")).text();
    for expected in ["Gateway infra/web", "Programmed True", "infra/web ✓ delivered", "IngressClass public"]
    {
        assert!(overview.contains(expected), "{expected}: {overview}");
    }
    let gateway = Document::parse(&page(&model, &about("Gateway/infra/web"))).text();
    for expected in [
        "example HTTP 80 *.example.com 2",
        "HTTPRoute infra/cart",
        "/pingsix/infra/web",
        "2 connections",
        "Service infra/lost",
        "pingsix-gatewayctl explain manifests/ --gateway infra/web GET http://HOST/PATH",
    ] {
        assert!(gateway.contains(expected), "{expected}: {gateway}");
    }
    let class = Document::parse(&page(&model, &about("IngressClass/public"))).text();
    assert!(class.contains("Ingress infra/old old.example.com 2"), "{class}");
}

#[test]
fn a_route_shows_rules_matches_filters_backends_and_parents() {
    let model = model(&shop());
    let route = Document::parse(&page(&model, &about("HTTPRoute/infra/shop"))).text();
    for expected in [
        "shop.example.com *.shop.example.com",
        "Gateway infra/web all ✓ Accepted True",
        "ResolvedRefs False (BackendNotFound)",
        "Rule 0: canary",
        "PathPrefix /cart POST X-Env = canary beta = 1",
        "Exact /cart/new any",
        "RequestHeaderModifier: set Authorization; remove X-Old",
        "URLRewrite: path (replaceFullPath /basket, type ReplaceFullPath)",
        "timeouts: request 3s",
        "Service infra/a port 80 3 1",
        "Service infra/empty port 80 1",
        "Service infra/b port 80 1 1",
        "Service infra/lost port 80",
    ] {
        assert!(route.contains(expected), "{expected}: {route}");
    }
    let ingress = Document::parse(&page(&model, &about("Ingress/infra/old"))).text();
    for expected in ["names the class public", "Prefix /old", "Service infra/c port 80", "default backend"] {
        assert!(ingress.contains(expected), "{expected}: {ingress}");
    }
}

#[test]
fn a_data_plane_shows_its_desired_and_confirmed_revision_and_instances() {
    let mut model = model(&shop());
    let owner = model.owners.get_mut(&ObjectKey::new(Kind::Gateway, "infra", "web")).unwrap();
    let plane = owner.data_planes.values_mut().next().unwrap();
    let instance = |name: &str, revision, remark: &str, is_faulty| Instance {
        name: format!("http://{name}/status/config"),
        revision,
        remark: remark.to_owned(),
        is_faulty,
    };
    plane.delivery = Delivery::Pending("1 of 2 PingSIX instances have published it.".to_owned());
    plane.instances =
        vec![instance("10.0.0.1", Some(7), "", false), instance("10.0.0.2", Some(5), "", false)];
    let text = Document::parse(&page(&model, "/view/data-planes")).text();
    assert!(text.contains("pending 1 of 2 PingSIX instances have published it."), "{text}");
    assert!(
        text.contains("7 5 ✓ revision 7 http://10.0.0.1/status/config ! revision 5 http://10.0.0.2"),
        "{text}"
    );

    let owner = model.owners.get_mut(&ObjectKey::new(Kind::Gateway, "infra", "web")).unwrap();
    let plane = owner.data_planes.values_mut().next().unwrap();
    plane.instances = vec![instance("10.0.0.1", None, "no answer", true)];
    let text = Document::parse(&page(&model, "/view/data-planes")).text();
    assert!(text.contains("7 – ✗ revision unknown http://10.0.0.1/status/config no answer"), "{text}");
}

#[test]
fn hostile_names_are_text_and_long_ones_are_cut() {
    // Without a slash, so that the objects have pages.
    let evil = "<script>alert(1)<script>\"'><img src=x onerror=alert(1)>&amp;";
    let long = "x".repeat(40_000);
    let mut objects = objects(&[
        (
            evil,
            json!({
                "hostnames": [format!("{evil}.example.com"), long],
                "rules": [{
                    "name": evil,
                    "matches": [{ "path": { "type": "Exact", "value": format!("/{evil}") },
                        "headers": [{ "name": evil, "value": evil }], "queryParams": [{ "name": evil, "value": evil }] }],
                    "filters": [{ "type": "ExtensionRef", "extensionRef": { "group": evil, "kind": evil, "name": evil } }],
                    "backendRefs": [{ "name": evil, "namespace": evil, "port": 80 }, { "name": long, "port": 80 }],
                }],
            }),
        ),
        (
            "long",
            json!({ "hostnames": ["a.example.com"], "rules": [{ "backendRefs": [{ "name": long, "port": 80 }] }] }),
        ),
    ]);
    objects.insert(object::<pingsix_translate::snapshot::Gateway>(
        Object::Gateway,
        json!({
            "metadata": { "namespace": evil, "name": evil },
            "spec": { "gatewayClassName": evil, "listeners": [{ "name": evil, "port": 80, "protocol": evil, "hostname": evil }] },
        }),
    ));
    let model = model(&objects);
    let query = |name: &str, value: &str| {
        super::address::address("/view/explain", &[(name, value), ("url", "http://a/")])
    };
    let mut addresses = addresses();
    addresses.retain(|address| !address.contains("about=") || address.contains("Gateway%2Finfra%2Fweb"));
    addresses.extend([
        about("HTTPRoute/infra/long"),
        super::address::address("/view/routes", &[("search", evil)]),
        super::address::address("/view/explain", &[("paste", evil)]),
        query("method", "<b>"),
        query("headers", evil),
        query("port", "<b>"),
        query("server-name", evil),
    ]);
    for object in [format!("HTTPRoute/infra/{evil}"), format!("Gateway/{evil}/{evil}")] {
        assert!(page(&model, &about(&object)).contains("&lt;script&gt;"), "{object}");
        addresses.push(about(&object));
    }
    for address in addresses {
        let body = ask(&model, &address).into_body();
        Document::parse(&body).assert_usable(&address);
        assert!(!body.contains("<script>alert") && !body.contains("<img"), "{address}");
        assert!(body.len() < 100_000, "{address}: {} bytes", body.len());
    }
}

/// Gateway `infra/web` with this number of routes, of which every hundredth has a problem.
fn many(count: usize) -> Model {
    let spec = |index: usize| {
        let backend = if index.is_multiple_of(100) { "lost" } else { "a" };
        json!({ "hostnames": [format!("h{index}.example.com")], "rules": [rule(&format!("/p{index}"), backend)] })
    };
    let names: Vec<String> = (0..count).map(|index| format!("route-{index:05}")).collect();
    let routes: Vec<(&str, Value)> =
        names.iter().enumerate().map(|(index, name)| (name.as_str(), spec(index))).collect();
    model(&objects(&routes))
}

#[test]
fn ten_thousand_routes_have_pages_and_a_search() {
    let model = many(10_000);
    let rows = |text: &str| text.matches("<th scope=\"row\">").count();
    let first = page(&model, "/view/routes");
    assert_eq!(rows(&first), 50);
    assert!(first.contains("10000 routes and Ingresses") && first.contains("1 to 50 of 10000"), "{first}");
    assert!(
        first.contains("href=\"/view/routes?page=2\"") && first.contains("href=\"/view/routes?page=200\"")
    );
    let last = page(&model, "/view/routes?page=100&rows=100");
    assert_eq!(rows(&last), 100);
    assert!(last.contains("route-09999") && !last.contains("rel=\"next\""));
    assert!(last.contains("href=\"/view/routes?page=99&amp;rows=100\""));
    let beyond = page(&model, "/view/routes?page=201");
    assert_eq!(rows(&beyond), 0);
    assert!(beyond.contains("There is no page 201 of 200.") && beyond.contains("page=200"));
    for (search, found) in [
        ("route-01234", 1),
        ("ROUTE-0123", 10),
        ("h1234.example.com", 1),
        ("/p1234", 1),
        ("infra/route-0000", 10),
        ("nowhere", 0),
        ("\"", 0),
    ] {
        let address = super::address::address("/view/routes", &[("search", search)]);
        assert_eq!(rows(&page(&model, &address)), found, "{search}");
    }
    let problems = page(&model, "/view/routes?only-problems=yes&owner=Gateway%2Finfra%2Fweb");
    assert!(problems.contains("1 to 50 of 100"), "{problems}");
    assert!(problems.contains("owner=Gateway%2Finfra%2Fweb&amp;only-problems=yes&amp;page=2"));
    for address in
        ["/view", "/view/findings", &about("Gateway/infra/web"), "/view/explain?url=http://h7.example.com/p7"]
    {
        let text = page(&model, address);
        Document::parse(&text).assert_usable(address);
        assert!(text.len() < 150_000, "{address}: {} bytes", text.len());
    }
}

#[test]
fn an_example_of_a_match_is_decided_by_that_match() {
    let paths = |path: &str| json!([{ "path": path, "pathType": "Prefix", "backend": { "service": { "name": "c", "port": { "number": 80 } } } }]);
    let mut objects = shop();
    objects.insert(object::<pingsix_translate::snapshot::Ingress>(
        Object::Ingress,
        json!({
            "metadata": { "namespace": "infra", "name": "two" },
            "spec": { "ingressClassName": "public", "rules": [
                { "host": "one.test", "http": { "paths": paths("/a") } },
                { "host": "*.two.test", "http": { "paths": paths("/b") } },
                { "http": { "paths": paths("/a") } },
            ] },
        }),
    ));
    let model = model(&objects);
    let matches = |rules: &[usize]| -> Vec<String> {
        rules.iter().map(|rule| format!("infra/shop spec.rules[{rule}].matches[0]")).collect()
    };
    let of_ingress = [0, 1, 2].map(|rule| format!("infra/two spec.rules[{rule}].http.paths[0]")).to_vec();
    let cart = vec!["infra/cart spec.rules[0].matches[0]".to_owned()];
    for (route, expected) in [
        ("HTTPRoute/infra/shop", matches(&[0, 1, 2])),
        ("HTTPRoute/infra/cart", cart),
        ("Ingress/infra/two", of_ingress),
    ] {
        let links = Document::parse(&page(&model, &about(route))).links();
        let examples = links.iter().filter(|link| link.starts_with("/view/explain?"));
        let answers: Vec<String> = examples.map(|link| Document::parse(&page(&model, link)).text()).collect();
        assert_eq!(answers.len(), expected.len(), "{route}");
        for (answer, expected) in answers.iter().zip(expected) {
            assert!(answer.contains(&format!("{expected} ✓ decides")), "{route}: {expected}: {answer}");
        }
    }
}

#[test]
fn an_example_is_asked_at_a_listener_that_takes_the_route() {
    use pingsix_translate::snapshot::{Gateway, HttpRoute, ListenerSet};

    let all = json!({ "namespaces": { "from": "All" } });
    let mut objects = objects(&[]);
    objects.insert(object::<Gateway>(
        Object::Gateway,
        json!({
            "metadata": { "namespace": "infra", "name": "two" },
            "spec": {
                "gatewayClassName": "pingsix", "allowedListeners": { "namespaces": { "from": "Same" } },
                "listeners": [
                    { "name": "near", "port": 8080, "protocol": "HTTP", "hostname": "near.test" },
                    { "name": "calls", "port": 8082, "protocol": "HTTP", "hostname": "calls.test",
                        "allowedRoutes": { "namespaces": { "from": "All" }, "kinds": [{ "kind": "GRPCRoute" }] } },
                    { "name": "all", "port": 8081, "protocol": "HTTP", "hostname": "*.all.test", "allowedRoutes": all },
                ],
            },
        }),
    ));
    objects.insert(object::<ListenerSet>(
        Object::ListenerSet,
        json!({
            "metadata": { "namespace": "infra", "name": "more" },
            "spec": {
                "parentRef": { "name": "two" },
                "listeners": [{ "name": "near", "port": 9090, "protocol": "HTTP", "hostname": "set.test" }],
            },
        }),
    ));
    let set = json!({ "kind": "ListenerSet", "name": "more", "sectionName": "near" });
    let gateway = json!({ "name": "two", "namespace": "infra" });
    for (namespace, parent, url) in [
        ("shop", gateway.clone(), "http%3A%2F%2Fexample.all.test%2Fa&port=8081"),
        ("infra", gateway, "http%3A%2F%2Fnear.test%2Fa&port=8080"),
        ("infra", set, "http%3A%2F%2Fset.test%2Fa&port=9090"),
    ] {
        let mut objects = objects.clone();
        objects.insert(object::<HttpRoute>(
            Object::HttpRoute,
            json!({
                "metadata": { "namespace": namespace, "name": "r" },
                "spec": { "parentRefs": [parent], "rules": [rule("/a", "a")] },
            }),
        ));
        let model = model(&objects);
        let text = page(&model, &about(&format!("HTTPRoute/{namespace}/r")));
        let links = Document::parse(&text).links();
        let example = links.iter().find(|link| link.starts_with("/view/explain?")).unwrap();
        assert!(example.contains(url), "{example}: {url}");
        let answer = Document::parse(&page(&model, example)).text();
        assert!(answer.contains("spec.rules[0].matches[0] ✓ decides"), "{example}: {answer}");
    }
}

#[test]
fn a_command_line_of_curl_becomes_a_shareable_address() {
    let model = model(&shop());
    let line = "curl -X POST 'http://shop.example.com/cart?beta=1' -H 'X-Env: canary'";
    let answer = ask(&model, &super::address::address("/view/explain", &[("paste", line)]));
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    let location = answer.headers()[header::LOCATION].to_str().unwrap();
    let text = page(&model, location);
    let document = Document::parse(&text);
    document.assert_usable(location);
    let shown = document.text();
    for expected in [
        "3 of 4: Service infra/a port 80",
        "HTTPRoute infra/shop spec.rules[0].matches[0] ✓ decides",
        "it matches, but comes after the more specific hostname shop.example.com",
        "pingsix-gatewayctl explain manifests/ --header 'X-Env: canary' --header 'Accept: */*' POST 'http://shop.example.com/cart?beta=1'",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    assert!(text.contains("href=\"/view/object?about=HTTPRoute%2Finfra%2Fshop#rule-0\""), "{text}");

    let refused =
        ask(&model, &super::address::address("/view/explain", &[("paste", "curl --proxy p http://a/")]));
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    assert!(refused.body().contains("The option --proxy of curl is unsupported here"), "{}", refused.body());
    assert!(refused.body().contains("curl --proxy p http://a/</textarea>"), "{}", refused.body());
}

#[test]
fn the_text_of_an_answer_is_that_of_the_command() {
    let model = model(&shop());
    let form = form::Form {
        method: "GET".to_owned(),
        url: "http://shop.example.com/cart/<new>".replace(['<', '>'], "%3C"),
        ..Default::default()
    };
    let text = page(&model, &form.address());
    let inquiry =
        crate::explain::Inquiry::new("GET", &form.url, crate::explain::RequestOptions::default(), None)
            .unwrap();
    let (explanations, _) = model.explain(&inquiry, usize::MAX).unwrap();
    assert_eq!(Document::parse(&text).text_of("answer-text"), in_words(&explanations));
}

#[test]
fn an_error_of_the_form_names_the_field() {
    let model = model(&shop());
    for (field, value, message) in [
        ("url", "ftp://a/", "Method and URL: \"ftp://a/\" is neither an http nor an https URL."),
        ("method", "G T", "Method and URL: \"G T\" is not a method."),
        ("headers", "no colon", "Headers: \"no colon\": expected NAME: VALUE."),
        ("port", "70000", "Port: \"70000\" is not between 0 and 65535."),
        ("owner", "HTTPRoute/infra/shop", "HTTPRoute infra/shop is neither a Gateway nor an IngressClass."),
        ("owner", "Gateway/infra/none", "There is no answer: Gateway infra/none is not served."),
    ] {
        let mut parameters = vec![(field, value)];
        if field != "url" {
            parameters.push(("url", "http://a/"));
        }
        let answer = ask(&model, &super::address::address("/view/explain", &parameters));
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{field}");
        let text = Document::parse(answer.body()).text();
        assert!(text.contains(message), "{message}: {text}");
    }
}

#[test]
fn a_port_of_streams_is_explained_without_and_with_documents() {
    let tcp = |name: &str| {
        object::<pingsix_translate::snapshot::Gateway>(
            Object::Gateway,
            json!({
                "metadata": { "namespace": "infra", "name": name },
                "spec": { "gatewayClassName": "pingsix", "listeners": [{ "name": "db", "port": 5432, "protocol": "TCP" }] },
            }),
        )
    };
    let route = json!({
        "metadata": { "namespace": "infra", "name": "db" },
        "spec": { "parentRefs": [{ "name": "tcp" }], "rules": [{ "backendRefs": [{ "name": "a", "port": 80 }] }] },
    });
    let mut objects = shop();
    objects.insert(tcp("tcp"));
    objects.insert(object::<pingsix_translate::snapshot::TcpRoute>(Object::TcpRoute, route));
    let mut all = Model::new(options(), Vec::new(), []);
    for stream in [false, true] {
        let snapshot = objects.snapshot(&ObjectName::new("infra", "tcp")).unwrap();
        let key = ObjectKey::new(Kind::Gateway, "infra", "tcp");
        add(&mut all, key, translate(&snapshot, &Options { stream, ..options() }));
        let text = Document::parse(&page(&all, "/view/explain?url=http://a.test:5432/")).text();
        let expected =
            if stream { "Service infra/a port 80" } else { "is for TCP, so no request arrives there" };
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn every_answer_has_a_policy_for_browsers_and_other_requests_are_refused() {
    let model = model(&shop());
    let mut addresses = addresses();
    addresses.extend(
        ["/", "/view/style.css", "/view/script.js", "/view/icon.svg", "/view/none", "/view?page=0"]
            .map(str::to_owned),
    );
    for address in addresses {
        let answer = ask(&model, &address);
        let value = |name: &str| answer.headers()[name].to_str().unwrap();
        assert!(value("content-security-policy").starts_with("default-src 'none';"), "{address}");
        assert!(!value("content-security-policy").contains("unsafe"), "{address}");
        assert_eq!(value("x-content-type-options"), "nosniff", "{address}");
        assert_eq!(value("referrer-policy"), "no-referrer", "{address}");
        assert_eq!(value("cache-control"), "no-store", "{address}");
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
        let request = Request::builder().method(method).uri("/view").body(()).unwrap();
        let answer = question(&request).unwrap_err();
        assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED, "{method}");
        assert_eq!(answer.headers()[header::ALLOW], "GET, HEAD", "{method}");
    }
    let stranger = Request::get("/view").header(header::HOST, "evil.example.com").body(()).unwrap();
    assert_eq!(question(&stranger).unwrap_err().status(), StatusCode::MISDIRECTED_REQUEST);
    assert_eq!(ask(&model, "/").headers()[header::LOCATION], "/view");
}

#[test]
fn every_parameter_is_bounded() {
    let model = model(&shop());
    let long = |length: usize| "a".repeat(length);
    for address in [
        "/view?page=0".to_owned(),
        "/view?page=-1".to_owned(),
        "/view?page=99999999999999999999999".to_owned(),
        "/view/routes?rows=201".to_owned(),
        "/view/routes?rows=many".to_owned(),
        format!("/view/routes?search={}", long(201)),
        "/view/routes?search=a&search=b".to_owned(),
        "/view/routes?only-problems=maybe".to_owned(),
        "/view/routes?owner=web".to_owned(),
        "/view?unknown=1".to_owned(),
        "/view/object".to_owned(),
        "/view/object?about=Secret".to_owned(),
        format!("/view/object?about=Gateway/infra/{}", long(400)),
        format!("/view/explain?paste={}", long(8_001)),
        format!("/view/explain?url=http://a/{}", long(8_001)),
        format!("/view/explain?url=http://a/&headers={}", "a:b%0A".repeat(101)),
    ] {
        let answer = ask(&model, &address);
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{address}");
        assert!(answer.body().len() < 20_000, "{address}");
    }
    // A page beyond the end of a list is no arithmetic overflow.
    page(&model, "/view/routes?page=1000000&rows=200");
}

#[test]
fn secrets_are_no_part_of_the_model() {
    let mut objects = shop();
    let canary = "canary-in-a-secret";
    objects.insert(object::<pingsix_translate::snapshot::Secret>(
        Object::Secret,
        json!({ "metadata": { "namespace": "infra", "name": "key" }, "stringData": { "key": canary } }),
    ));
    objects.insert(object::<pingsix_translate::snapshot::ConfigMap>(
        Object::ConfigMap,
        json!({ "metadata": { "namespace": "infra", "name": "map" }, "data": { "key": canary } }),
    ));
    let model = model(&objects);
    assert_eq!(model.objects.secrets().count() + model.objects.config_maps().count(), 0);
    let more = ["Secret/infra/key", "ConfigMap/infra/map"].map(about);
    for address in addresses().into_iter().chain(more) {
        let body = ask(&model, &address).into_body();
        // The value of a header that a filter sets may be a credential.
        assert!(!body.contains(canary) && !body.contains("canary-in-a-header"), "{address}");
    }
}
