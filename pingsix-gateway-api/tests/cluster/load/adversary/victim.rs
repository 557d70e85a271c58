//! A victim: its constant and changing objects, at listeners of its own and at a shared one.

use pingsix_translate::Kind;
use serde_json::{Value, json};

use super::super::backends::Backends;
use super::super::cast::Cast;
use super::super::judge::{Book, State, only};
use super::super::objects::{backend_ref, der, prefix, route, secret, service, slice};
use super::super::subjects::{Door, Probe, Sort, Subject, Write};
use crate::lab::shop;

/// The backends of the victim. The third one answers for the hostile tenants.
const OWN: [&str; 2] = ["a", "b"];

/// The number of subjects of each sort.
const OF_EACH: usize = 6;

/// The victim's objects and subjects, in the namespace of its Gateway.
pub(super) fn cast(backends: &Backends) -> Cast {
    let mut cast = Cast { objects: vec![(Kind::Gateway, gateway())], subjects: Vec::new() };
    for name in OWN {
        cast.objects.push((Kind::Service, service("default", name, name)));
        cast.objects.push((Kind::EndpointSlice, slice("default", name, backends, &[(name, name)])));
    }
    let (certificate, key) = shop::pair("safe.victim.test");
    cast.objects.push((Kind::Secret, secret("safe", &certificate, &key)));
    stay(&mut cast, &certificate);
    for index in 0..OF_EACH {
        switch_backends(&mut cast, index);
        switch_paths(&mut cast, index);
        move_endpoints(&mut cast, index, backends);
    }
    cast
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
        door: Door::Plain,
        probes,
        book: Book::new(variants[0].1.clone()),
        sort,
        certificates: Vec::new(),
        variants,
    }
}

fn stay(cast: &mut Cast, certificate: &str) {
    for (index, host) in ["stable.victim.test", "stable.shop.example"].into_iter().enumerate() {
        let rules = json!([{"matches": [prefix("/")], "backendRefs": [backend_ref("a")]}]);
        cast.objects.push((Kind::HttpRoute, route(&format!("stable-{index}"), host, &rules)));
        let variants = vec![(Write::Nothing, vec![only("200 a /deep/er")])];
        cast.subjects.push(subject(Sort::Stable, index, vec![Probe::new(host, "/deep/er")], variants));
    }
    // A listener keeps its hosts, also where no route has them.
    let nobody = vec![(Write::Nothing, vec![only("404")])];
    cast.subjects.push(subject(Sort::Stable, 2, vec![Probe::new("nobody.victim.test", "/")], nobody));
    let rules = json!([{"backendRefs": [backend_ref("b")]}]);
    cast.objects.push((Kind::HttpRoute, route("safe", "safe.victim.test", &rules)));
    let safe = vec![(Write::Nothing, vec![only("200 b /s shown 0")])];
    cast.subjects.push(Subject {
        door: Door::Secure,
        certificates: vec![der(certificate)],
        ..subject(Sort::Stable, 3, vec![Probe::new("safe.victim.test", "/s")], safe)
    });
}

fn switch_backends(cast: &mut Cast, index: usize) {
    let (name, host) = (format!("backend-{index}"), host("backend", index));
    let rules = |backend: &str| json!([{"backendRefs": [backend_ref(backend)]}]);
    let variants = OWN.map(|to| {
        let write = Write::Merge(Kind::HttpRoute, name.clone(), json!({"spec": {"rules": rules(to)}}));
        (write, vec![only(format!("200 {to} /x"))])
    });
    cast.objects.push((Kind::HttpRoute, route(&name, &host, &rules(OWN[0]))));
    cast.subjects.push(subject(Sort::Backend, index, vec![Probe::new(&host, "/x")], variants.into()));
}

/// A changing path below a constant one. On a shared listener, an unmatched path may belong to others; this one
/// always has a route.
fn switch_paths(cast: &mut Cast, index: usize) {
    let (name, host) = (format!("matches-{index}"), host("matches", index));
    let base = json!({"matches": [prefix("/")], "backendRefs": [backend_ref("a")]});
    let below = json!({"matches": [prefix("/below")], "backendRefs": [backend_ref("b")]});
    let write = |rules: Value| Write::Merge(Kind::HttpRoute, name.clone(), json!({"spec": {"rules": rules}}));
    let variants = vec![
        (write(json!([base])), vec![only("200 a /below/x"), only("200 a /beside")]),
        (write(json!([base, below])), vec![only("200 b /below/x"), only("200 a /beside")]),
    ];
    cast.objects.push((Kind::HttpRoute, route(&name, &host, &json!([base]))));
    let probes = vec![Probe::new(&host, "/below/x"), Probe::new(&host, "/beside")];
    cast.subjects.push(subject(Sort::Matches, index, probes, variants));
}

fn move_endpoints(cast: &mut Cast, index: usize, backends: &Backends) {
    let (name, host) = (format!("endpoints-{index}"), host("endpoints", index));
    let variants = OWN.map(|to| {
        let ports = json!({"ports": [{"name": "web", "port": backends.port(to)}]});
        (Write::Merge(Kind::EndpointSlice, name.clone(), ports), vec![only(format!("200 {to} /e"))])
    });
    cast.objects.push((Kind::Service, service("default", &name, "web")));
    cast.objects.push((Kind::EndpointSlice, slice("default", &name, backends, &[("web", OWN[0])])));
    cast.objects
        .push((Kind::HttpRoute, route(&name, &host, &json!([{"backendRefs": [backend_ref(&name)]}]))));
    cast.subjects.push(subject(Sort::Endpoints, index, vec![Probe::new(&host, "/e")], variants.into()));
}
