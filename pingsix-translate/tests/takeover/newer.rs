//! Effects of newer objects of a namespace on another: neither answers nor certificates change.

use std::sync::LazyLock;

use pingsix_translate::Layout;
use pingsix_translate::pingsix::Ssl;

use super::*;

/// Certificates with their keys, made once.
static PAIRS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let pair = |_| {
        let pair = rcgen::generate_simple_self_signed(["example.com".to_owned()]).unwrap();
        (pair.cert.pem(), pair.signing_key.serialize_pem())
    };
    (0..4).map(pair).collect()
});

fn add_pair(rng: &mut SmallRng, objects: &mut Objects, namespace: &str, name: &str) {
    let (certificate, key) = PAIRS.choose(rng).unwrap();
    objects.insert(Object::Secret(object(json!({
        "metadata": {"namespace": namespace, "name": name},
        "stringData": {"tls.crt": certificate, "tls.key": key},
    }))));
}

/// The documents that show one of these names.
fn certificates(translation: &Translation, names: &BTreeSet<String>) -> Vec<Ssl> {
    let all = translation.data_planes.values().flat_map(|plane| plane.config.ssls());
    let shows = |ssl: &&Ssl| ssl.snis.iter().any(|name| names.contains(name));
    all.map(|(_, ssl)| ssl).filter(shows).cloned().collect()
}

fn requests() -> Vec<Request> {
    let hosts = ["one.a.test", "two.a.test", "three.a.test"];
    let paths = ["/", "/x", "/x/y", "/v/w"];
    hosts.iter().flat_map(|host| paths.map(|path| Request::get(host, path))).collect()
}

/// Ample for all objects, or so much that some have no room.
fn budget(rng: &mut SmallRng) -> Budget {
    let bytes = if rng.random() { Budget::default().bytes } else { rng.random_range(2_000..30_000) };
    Budget { bytes, ..Budget::default() }
}

/// Ingresses with TLS, as many hosts as are given.
fn add_ingresses(
    rng: &mut SmallRng,
    objects: &mut Objects,
    namespace: &str,
    years: Range<u16>,
    hosts: &[&str],
) {
    for number in 0..rng.random_range(1..6) {
        let name = format!("i{number}");
        add_pair(rng, objects, namespace, &name);
        let mut some: Vec<String> =
            (0..rng.random_range(1..4)).map(|_| (*hosts.choose(rng).unwrap()).to_owned()).collect();
        if namespace == "b" && rng.random_bool(0.3) {
            some.extend((0..rng.random_range(1..300)).map(|host| format!("h{host}-{number}.b.test")));
            // Others' names are not one's own to show a certificate for.
            some.push("one.a.test".to_owned());
        }
        some.dedup();
        let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
        let rules: Vec<Value> = some
            .iter()
            .filter(|host| namespace == "a" || !host.contains("a.test"))
            .map(|host| {
                let path = ["/", "/x", "/x/y"].choose(rng);
                json!({"host": host, "http": {"paths": [{"path": path, "pathType": "Prefix", "backend": backend}]}})
            })
            .collect();
        objects.insert(Object::Ingress(object(json!({
            "metadata": {
                "name": name, "namespace": namespace,
                "creationTimestamp": format!("{}-01-01T00:00:00Z", rng.random_range(years.clone())),
            },
            "spec": {"ingressClassName": "pingsix", "rules": rules, "tls": [{"hosts": some, "secretName": name}]},
        }))));
    }
}

#[test]
fn newer_ingresses_of_others_change_no_answer_or_certificate() {
    let (mut shown, mut answered, mut refused_others) = (0, 0, 0);
    for seed in 0..120 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut objects = world();
        add_ingresses(&mut rng, &mut objects, "a", 2000..2010, &["one.a.test", "two.a.test", "three.a.test"]);
        let asked_for = objects.ingress_snapshot("pingsix").unwrap().ingresses;
        let tls = asked_for.values().filter_map(|ingress| ingress.spec.as_ref()?.tls.clone());
        let names: BTreeSet<String> = tls.flatten().flat_map(|tls| tls.hosts.unwrap_or_default()).collect();
        let mut with = objects.clone();
        add_ingresses(&mut rng, &mut with, "b", 2010..2020, &["*.b.test", "one.b.test", "*.test", "x.test"]);
        let budget = budget(&mut rng);
        let (before, after) = (run_ingress(&objects, budget), run_ingress(&with, budget));
        assert_eq!(certificates(&before, &names), certificates(&after, &names), "seed {seed}, {budget:?}");
        let requests = requests();
        for (request, (before, after)) in
            requests.iter().zip(answers(&before, &requests).into_iter().zip(answers(&after, &requests)))
        {
            // An unanswered request may be for a wider hostname.
            assert!(
                before == after || before == "404",
                "seed {seed}, {budget:?}: {request:?} {before} {after}"
            );
            answered += usize::from(before == "a");
        }
        shown += certificates(&before, &names).len();
        refused_others += usize::from(refused(&after).iter().any(|object| object.contains(" b/")));
    }
    assert!(shown > 120 && answered > 300 && refused_others > 20, "{shown} {answered} {refused_others}");
}

/// A ListenerSet with HTTPS listeners for some hosts, and a route for each of them.
fn add_listener_set(
    rng: &mut SmallRng,
    objects: &mut Objects,
    (namespace, year): (&str, u16),
    hosts: &[String],
) {
    let created = format!("{year}-01-01T00:00:00Z");
    let listeners: Vec<Value> = hosts
        .iter()
        .enumerate()
        .map(|(number, host)| {
            add_pair(rng, objects, namespace, &format!("s{number}"));
            json!({
                "name": format!("l{number}"), "port": 443, "protocol": "HTTPS", "hostname": host,
                "tls": {"certificateRefs": [{"name": format!("s{number}")}]},
            })
        })
        .collect();
    let parent = json!({"group": "gateway.networking.k8s.io", "kind": "ListenerSet", "name": "set"});
    objects.insert(Object::ListenerSet(object(json!({
        "metadata": {"name": "set", "namespace": namespace, "creationTimestamp": created},
        "spec": {"parentRef": {"name": "gateway", "namespace": "infra"}, "listeners": listeners},
    }))));
    for (number, host) in hosts.iter().enumerate() {
        let rules: Vec<Value> = (0..rng.random_range(1..4))
            .map(|_| {
                let path = json!({"type": "PathPrefix", "value": PATHS.choose(rng)});
                json!({"matches": [{"path": path}], "backendRefs": [{"name": "web", "port": 80}]})
            })
            .collect();
        objects.insert(Object::HttpRoute(object(json!({
            "metadata": {"name": format!("r{number}"), "namespace": namespace, "creationTimestamp": created},
            "spec": {"parentRefs": [parent], "hostnames": [host], "rules": rules},
        }))));
    }
}

#[test]
fn newer_listener_sets_of_others_change_no_answer_or_certificate() {
    let (mut shown, mut answered, mut refused_others) = (0, 0, 0);
    for seed in 0..120 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut objects = world();
        objects.insert(Object::Gateway(object(json!({
            "metadata": {"name": "gateway", "namespace": "infra"},
            "spec": {
                "gatewayClassName": "pingsix", "allowedListeners": {"namespaces": {"from": "All"}},
                "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}],
            },
        }))));
        let own: Vec<String> = ["one.a.test", "two.a.test", "three.a.test"]
            .iter()
            .take(rng.random_range(1..4))
            .map(|host| (*host).to_owned())
            .collect();
        add_listener_set(&mut rng, &mut objects, ("a", 2000), &own);
        let names: BTreeSet<String> = own.into_iter().collect();
        let mut with = objects.clone();
        let mut others: Vec<String> =
            (0..rng.random_range(0..60)).map(|host| format!("h{host}.b.test")).collect();
        others.push(["*.b.test", "one.a.test", "b.test"].choose(&mut rng).unwrap().to_string());
        add_listener_set(&mut rng, &mut with, ("b", 2010), &others);
        let options = Options { layout: Layout::PerPort, ..options(budget(&mut rng)) };
        let of = |objects: &Objects| {
            let snapshot = objects.snapshot(&ObjectName::new("infra", "gateway")).unwrap();
            translate(&snapshot, &options)
        };
        let (before, after) = (of(&objects), of(&with));
        assert_eq!(certificates(&before, &names), certificates(&after, &names), "seed {seed}, {options:?}");
        let by_tls = |translation: &Translation| translation.data_planes.values().nth(1).unwrap().clone();
        let (plane_before, plane_after) = (by_tls(&before), by_tls(&after));
        for request in requests() {
            let (before, after) = (answer(&plane_before, &request), answer(&plane_after, &request));
            assert_eq!(before, after, "seed {seed}, {options:?}: {request:?}");
            answered += usize::from(before == "a");
        }
        shown += certificates(&before, &names).len();
        refused_others += usize::from(refused(&after).iter().any(|object| object.contains(" b/")));
    }
    assert!(shown > 60 && answered > 150 && refused_others > 20, "{shown} {answered} {refused_others}");
}
