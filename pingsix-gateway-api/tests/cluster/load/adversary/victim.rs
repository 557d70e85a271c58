//! A victim: its constant and changing objects, at listeners of its own and at a shared one.

use pingsix_translate::Kind;
use serde_json::{Value, json};

use super::super::backends::Backends;
use super::super::checker::{State, SubjectStates, only};
use super::super::fixtures::Fixtures;
use super::super::objects::{backend_ref, der, prefix, route, secret, service, slice};
use super::super::subjects::{Listener, Probe, Sort, Subject, Write};
use crate::test_env::shop;

/// The backends of the victim. The third one answers for the hostile tenants.
const OWN_LISTENERS: [&str; 2] = ["a", "b"];

/// The number of subjects of each sort.
const SUBJECTS_PER_SORT: usize = 6;

/// The victim's objects and subjects, in the namespace of its Gateway.
pub(super) fn fixtures(backends: &Backends) -> Fixtures {
    let mut fixtures = Fixtures { objects: vec![(Kind::Gateway, gateway())], subjects: Vec::new() };
    for name in OWN_LISTENERS {
        fixtures.objects.push((Kind::Service, service("default", name, name)));
        fixtures.objects.push((Kind::EndpointSlice, slice("default", name, backends, &[(name, name)])));
    }
    let (certificate, key) = shop::pair("safe.victim.test");
    fixtures.objects.push((Kind::Secret, secret("safe", &certificate, &key)));
    add_constant_subjects(&mut fixtures, &certificate);
    for index in 0..SUBJECTS_PER_SORT {
        switch_backends(&mut fixtures, index);
        switch_paths(&mut fixtures, index);
        move_endpoints(&mut fixtures, index, backends);
    }
    fixtures
}

fn gateway() -> Value {
    let everybody = json!({"namespaces": {"from": "All"}});
    let tls = json!({"certificateRefs": [{"name": "safe"}]});
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"gatewayClassName": "pingsix", "listeners": [
            {"name": "plain", "port": 80, "protocol": "HTTP", "allowedRoutes": everybody},
            {"name": "own", "port": 80, "protocol": "HTTP", "hostname": "*.victim.test"},
            {"name": "safe", "port": 443, "protocol": "HTTPS", "hostname": "safe.victim.test", "tls": tls},
            {"name": "rest", "port": 443, "protocol": "HTTPS", "tls": tls, "allowedRoutes": everybody},
        ]},
    })
}

/// A host of the victim: of its own listener, or one that only the victim names at the shared listener.
fn host(name: &str, index: usize) -> String {
    let domain = if index.is_multiple_of(2) { "victim.test" } else { "shop.example" };
    format!("{name}-{index}.{domain}")
}

fn subject(sort: Sort, index: usize, probes: Vec<Probe>, variants: Vec<(Write, State)>) -> Subject {
    Subject {
        name: format!("{sort:?}-{index}"),
        listener: Listener::Plain,
        probes,
        states: SubjectStates::new(variants[0].1.clone()),
        sort,
        certificates: Vec::new(),
        variants,
    }
}

fn add_constant_subjects(fixtures: &mut Fixtures, certificate: &str) {
    for (index, host) in ["stable.victim.test", "stable.shop.example"].into_iter().enumerate() {
        let rules = json!([{"matches": [prefix("/")], "backendRefs": [backend_ref("a")]}]);
        fixtures.objects.push((Kind::HttpRoute, route(&format!("stable-{index}"), host, &rules)));
        let variants = vec![(Write::Nothing, vec![only("200 a /deep/er")])];
        fixtures.subjects.push(subject(Sort::Stable, index, vec![Probe::new(host, "/deep/er")], variants));
    }
    // A listener keeps its hosts, also where no route has them.
    let nobody = vec![(Write::Nothing, vec![only("404")])];
    fixtures.subjects.push(subject(Sort::Stable, 2, vec![Probe::new("nobody.victim.test", "/")], nobody));
    let rules = json!([{"backendRefs": [backend_ref("b")]}]);
    fixtures.objects.push((Kind::HttpRoute, route("safe", "safe.victim.test", &rules)));
    let safe = vec![(Write::Nothing, vec![only("200 b /s shown 0")])];
    fixtures.subjects.push(Subject {
        listener: Listener::Secure,
        certificates: vec![der(certificate)],
        ..subject(Sort::Stable, 3, vec![Probe::new("safe.victim.test", "/s")], safe)
    });
}

fn switch_backends(fixtures: &mut Fixtures, index: usize) {
    let (name, host) = (format!("backend-{index}"), host("backend", index));
    let rules = |backend: &str| json!([{"backendRefs": [backend_ref(backend)]}]);
    let variants = OWN_LISTENERS.map(|to| {
        let write = Write::Merge(Kind::HttpRoute, name.clone(), json!({"spec": {"rules": rules(to)}}));
        (write, vec![only(format!("200 {to} /x"))])
    });
    fixtures.objects.push((Kind::HttpRoute, route(&name, &host, &rules(OWN_LISTENERS[0]))));
    fixtures.subjects.push(subject(Sort::Backend, index, vec![Probe::new(&host, "/x")], variants.into()));
}

/// A changing path below a constant one. On a shared listener, an unmatched path may belong to others; this one
/// always has a route.
fn switch_paths(fixtures: &mut Fixtures, index: usize) {
    let (name, host) = (format!("matches-{index}"), host("matches", index));
    let base = json!({"matches": [prefix("/")], "backendRefs": [backend_ref("a")]});
    let below = json!({"matches": [prefix("/below")], "backendRefs": [backend_ref("b")]});
    let write = |rules: Value| Write::Merge(Kind::HttpRoute, name.clone(), json!({"spec": {"rules": rules}}));
    let variants = vec![
        (write(json!([base])), vec![only("200 a /below/x"), only("200 a /beside")]),
        (write(json!([base, below])), vec![only("200 b /below/x"), only("200 a /beside")]),
    ];
    fixtures.objects.push((Kind::HttpRoute, route(&name, &host, &json!([base]))));
    let probes = vec![Probe::new(&host, "/below/x"), Probe::new(&host, "/beside")];
    fixtures.subjects.push(subject(Sort::Matches, index, probes, variants));
}

fn move_endpoints(fixtures: &mut Fixtures, index: usize, backends: &Backends) {
    let (name, host) = (format!("endpoints-{index}"), host("endpoints", index));
    let variants = OWN_LISTENERS.map(|to| {
        let ports = json!({"ports": [{"name": "web", "port": backends.port(to)}]});
        (Write::Merge(Kind::EndpointSlice, name.clone(), ports), vec![only(format!("200 {to} /e"))])
    });
    fixtures.objects.push((Kind::Service, service("default", &name, "web")));
    fixtures
        .objects
        .push((Kind::EndpointSlice, slice("default", &name, backends, &[("web", OWN_LISTENERS[0])])));
    fixtures
        .objects
        .push((Kind::HttpRoute, route(&name, &host, &json!([{"backendRefs": [backend_ref(&name)]}]))));
    fixtures.subjects.push(subject(Sort::Endpoints, index, vec![Probe::new(&host, "/e")], variants.into()));
}
