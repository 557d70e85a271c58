//! One data plane for a plaintext and an HTTPS port: redirected, served and refused requests.

use serde_json::{Value, json};

use crate::fixture::{add_certificate, add_route, add_service, gateway, pem, run};
use crate::model::{ConditionType, Options, Reason};
use crate::pingsix::{Outcome, Request, RouteTable};
use crate::pipeline::Translation;
use crate::responder::parse_status_host;
use crate::snapshot::Objects;

const HOST: &str = "shop.example";

fn shop() -> Objects {
    let certificate = json!({"certificateRefs": [{"name": "shop"}]});
    let mut objects = gateway(&json!([
        {"name": "http", "port": 80, "protocol": "HTTP"},
        {"name": "https", "port": 443, "protocol": "HTTPS", "hostname": HOST, "tls": certificate},
    ]));
    add_certificate(&mut objects, "shop", &pem::pair(&[HOST]));
    for service in ["app", "api"] {
        add_service(&mut objects, service);
    }
    objects
}

/// A route attached to one listener, or to all, that sends a prefix to a Service.
fn add(objects: &mut Objects, name: &str, section: Option<&str>, path: &str, headers: &Value) {
    let mut parent = json!({"name": "public"});
    if let Some(section) = section {
        parent["sectionName"] = json!(section);
    }
    let matched = json!({"path": {"type": "PathPrefix", "value": path}, "headers": headers});
    let rule = json!({"matches": [matched], "backendRefs": [{"name": name, "port": 80}]});
    add_route(objects, name, &json!({"parentRefs": [parent], "hostnames": [HOST], "rules": [rule]}));
}

/// The route that sends the plaintext listener's requests to HTTPS.
fn add_redirect(objects: &mut Objects, path: &str) {
    let redirect =
        json!({"type": "RequestRedirect", "requestRedirect": {"scheme": "https", "statusCode": 301}});
    let rule = json!({"matches": [{"path": {"type": "PathPrefix", "value": path}}], "filters": [redirect]});
    let parent = json!({"name": "public", "sectionName": "http"});
    add_route(objects, "redirect", &json!({"parentRefs": [parent], "hostnames": [HOST], "rules": [rule]}));
}

fn translated(objects: &Objects) -> Translation {
    run(objects, &Options { responder: Some(([127, 0, 0, 1], 9080).into()), ..Options::default() })
}

/// The answer to a request: a Service, a status, or `to ` and a URL.
fn answer(translation: &Translation, tls: bool, path: &str) -> String {
    let config = &translation.data_planes.values().next().unwrap().config;
    let table = RouteTable::new(config);
    let router = table.insert_in(0..table.len()).unwrap();
    let request = Request { tls, ..Request::get(HOST, path) };
    match router.outcome(&request) {
        Outcome::NotFound => "404".to_owned(),
        Outcome::Static { status, .. } => status.to_string(),
        Outcome::Redirect { location, .. } => format!("to {location}"),
        Outcome::Preflight { .. } => "preflight".to_owned(),
        Outcome::Forward { candidates, .. } => {
            let [candidate] = candidates.as_slice() else { panic!("{candidates:?}") };
            let crate::pingsix::router::UpstreamRef::Named(id) = &candidate.upstream else { panic!() };
            let upstream = config.upstream(id).unwrap();
            let status = upstream.upstream_host.as_deref().and_then(parse_status_host);
            status.map_or_else(|| id.clone(), |status| status.as_u16().to_string())
        }
    }
}

fn reason(translation: &Translation, route: &str, kind: ConditionType) -> Option<Reason> {
    let verdict = translation.verdicts.routes.iter().find(|(key, _)| &*key.name.name == route).unwrap().1;
    verdict.parents[0].conditions.get(kind).map(|condition| condition.reason)
}

fn is_accepted(translation: &Translation, route: &str) -> bool {
    let verdict = translation.verdicts.routes.iter().find(|(key, _)| &*key.name.name == route).unwrap().1;
    verdict.parents[0].conditions.is_true(ConditionType::Accepted)
}

#[test]
fn plaintext_is_redirected_and_tls_is_served() {
    let mut objects = shop();
    add_redirect(&mut objects, "/");
    add(&mut objects, "app", Some("https"), "/", &json!([]));
    let translation = translated(&objects);
    assert_eq!(answer(&translation, false, "/cart"), "to https://shop.example/cart");
    let served = answer(&translation, true, "/cart");
    assert!(served.starts_with('u'), "{served}");
    assert!(is_accepted(&translation, "app") && is_accepted(&translation, "redirect"));
}

#[test]
fn paths_of_the_redirect_alone_are_not_found_over_tls() {
    let mut objects = shop();
    add_redirect(&mut objects, "/");
    add(&mut objects, "app", Some("https"), "/app", &json!([]));
    let translation = translated(&objects);
    assert_eq!(answer(&translation, false, "/other"), "to https://shop.example/other");
    assert_eq!(answer(&translation, true, "/other"), "404");
    assert_eq!(answer(&translation, false, "/app/x"), "to https://shop.example/app/x");
}

#[test]
fn a_more_specific_rule_of_both_ports_is_served_on_both() {
    let mut objects = shop();
    add_redirect(&mut objects, "/");
    add(&mut objects, "app", Some("https"), "/", &json!([]));
    add(&mut objects, "api", None, "/api", &json!([]));
    let translation = translated(&objects);
    assert_eq!(answer(&translation, false, "/api"), answer(&translation, true, "/api"));
    assert_eq!(answer(&translation, false, "/"), "to https://shop.example/");
}

#[test]
fn a_conditional_https_rule_redirects_plaintext_and_falls_through_in_tls() {
    let mut objects = shop();
    add_redirect(&mut objects, "/");
    add(&mut objects, "app", Some("https"), "/", &json!([{"name": "x-env", "value": "beta"}]));
    let translation = translated(&objects);
    assert_eq!(answer(&translation, false, "/"), "to https://shop.example/");
    assert_eq!(answer(&translation, true, "/"), "404");
}

#[test]
fn routes_of_https_are_never_served_in_plaintext() {
    let mut objects = shop();
    add_redirect(&mut objects, "/app");
    add(&mut objects, "app", Some("https"), "/", &json!([]));
    let translation = translated(&objects);
    assert_eq!(answer(&translation, false, "/app"), "to https://shop.example/app");
    assert_eq!(answer(&translation, false, "/"), "500");
    assert_eq!(reason(&translation, "app", ConditionType::Accepted), Some(Reason::UnsupportedValue));
}

#[test]
fn a_redirect_behind_conditions_of_both_ports_is_refused() {
    let mut objects = shop();
    add_redirect(&mut objects, "/");
    add(&mut objects, "api", None, "/", &json!([{"name": "x-env", "value": "beta"}]));
    let translation = translated(&objects);
    assert_eq!(answer(&translation, false, "/"), "500");
    assert!(!is_accepted(&translation, "redirect"));
    assert!(is_accepted(&translation, "api"));
}

#[test]
fn without_the_redirect_a_route_of_one_port_is_refused() {
    let mut objects = shop();
    add(&mut objects, "app", Some("https"), "/", &json!([]));
    let translation = translated(&objects);
    assert_eq!(
        (answer(&translation, false, "/"), answer(&translation, true, "/")),
        ("500".into(), "500".into())
    );
    assert!(!is_accepted(&translation, "app"));
}

#[test]
fn a_redirect_of_hosts_without_a_name_is_told_to_name_them() {
    for hostnames in [json!([]), json!(["*.example"])] {
        let redirect = json!({"type": "RequestRedirect", "requestRedirect": {"scheme": "https"}});
        let parent = json!({"name": "public", "sectionName": "http"});
        let rules = json!([{"filters": [redirect]}]);
        let certificate = json!({"certificateRefs": [{"name": "shop"}]});
        let mut objects = gateway(&json!([
            {"name": "http", "port": 80, "protocol": "HTTP"},
            {"name": "https", "port": 443, "protocol": "HTTPS", "tls": certificate},
        ]));
        add_certificate(&mut objects, "shop", &pem::pair(&[HOST]));
        let spec = json!({"parentRefs": [parent], "hostnames": hostnames, "rules": rules});
        add_route(&mut objects, "redirect", &spec);
        let translation = translated(&objects);
        assert!(!is_accepted(&translation, "redirect"));
        let told = translation.verdicts.problems.iter().map(|problem| &problem.message);
        let told: Vec<_> = told.filter(|message| message.contains("Give the route hostnames")).collect();
        assert_eq!(told.len(), 1, "{hostnames}: {:?}", translation.verdicts.problems);
    }
}
