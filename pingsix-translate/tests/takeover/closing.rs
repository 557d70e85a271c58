//! The cells of others that refused rules of a namespace close.

use super::*;

/// In percent of the default budget: as much as the random routes of a namespace take, and less than [`bulk`].
const SHARE_PERCENT: u8 = 2;

fn shared(objects: &Objects, responder: bool) -> Translation {
    let responder = responder.then(|| SocketAddr::from(([127, 0, 0, 1], 9080)));
    let options = Options { namespace_share: SHARE_PERCENT, responder, ..options(Budget::default()) };
    translate(&objects.snapshot(&ObjectName::new("infra", "gateway")).unwrap(), &options)
}

fn unlimited(objects: &Objects, responder: bool) -> Translation {
    let responder = responder.then(|| SocketAddr::from(([127, 0, 0, 1], 9080)));
    let options = Options { responder, ..options(Budget { bytes: 1 << 40, matcher_entries: 1 << 40 }) };
    translate(&objects.snapshot(&ObjectName::new("infra", "gateway")).unwrap(), &options)
}

/// Matches of a path that take more than the share.
fn bulk(path: &Value) -> Vec<Value> {
    let headers = |number: usize| -> Vec<Value> {
        (0..16)
            .map(|header| json!({"name": format!("x-{header}"), "value": format!("{number}-{}", "v".repeat(400))}))
            .collect()
    };
    (0..16).map(|number| json!({"path": path, "headers": headers(number)})).collect()
}

/// Routes of namespace b with rules that are too large. Returns their hostnames and matches.
fn add_large(rng: &mut SmallRng, objects: &mut Objects) -> Vec<(Vec<String>, Vec<Value>)> {
    let mut large = Vec::new();
    for number in 0..rng.random_range(1..4) {
        let hostnames: BTreeSet<&str> =
            (0..rng.random_range(1..3)).map(|_| *HOSTS.choose(rng).unwrap()).collect();
        let hostnames: Vec<String> = if hostnames.contains("") {
            Vec::new()
        } else {
            hostnames.into_iter().map(str::to_owned).collect()
        };
        let mut matches: Vec<Value> =
            random_rule(rng)["matches"].as_array().unwrap().iter().take(2).cloned().collect();
        matches.extend(bulk(&matches[0]["path"]));
        let year = rng.random_range(2000..2020);
        add_route(objects, ("b", &format!("large-{number}"), year), &hostnames, &json!(matches));
        large.push((hostnames, matches));
    }
    large
}

/// Whether a match is for a request by hostname, path and method.
fn is_for(hostnames: &[String], matched: &Value, (host, path, method): (&str, &str, &str)) -> bool {
    let is_host = |name: &String| match name.strip_prefix('*') {
        Some(suffix) => host.ends_with(suffix),
        None => host == name,
    };
    let value = matched["path"]["value"].as_str().unwrap();
    let is_path = if matched["path"]["type"] == "Exact" {
        path == value
    } else {
        let stem = value.trim_end_matches('/');
        path.strip_prefix(stem).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let is_method = matched.get("method").is_none_or(|of| of == method);
    (hostnames.is_empty() || hostnames.iter().any(is_host)) && is_path && is_method
}

const REQUESTED: [&str; 7] =
    ["one.a.test", "two.a.test", "other.a.test", "one.b.test", "x.b.test", "three.test", "nobody.example"];

#[test]
fn a_refused_rule_closes_nothing_but_its_own_hostnames_paths_and_methods() {
    let (mut apart, mut closed) = (0, 0);
    for seed in 0..150 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let with_responder = rng.random_bool(0.7);
        let mut objects = world();
        add_random(&mut rng, &mut objects, "a", 2000..2020, &HOSTS);
        let large = add_large(&mut rng, &mut objects);
        let (whole, translation) = (unlimited(&objects, with_responder), shared(&objects, with_responder));
        let refused = refused(&translation);
        assert!(refused.iter().any(|object| object.contains(" b/large-")), "seed {seed}: {refused:?}");
        let problems = &translation.verdicts.problems;
        let is_large = problems
            .iter()
            .any(|problem| problem.reason == Reason::ShareExceeded && *problem.object.name.namespace == *"a");
        if is_large {
            continue;
        }
        for host in REQUESTED {
            for path in
                PATHS.iter().flat_map(|path| [(*path).to_owned(), format!("{path}/tail").replace("//", "/")])
            {
                for method in ["GET", "POST"] {
                    let mut request = Request::get(host, &path).method(method);
                    if rng.random_bool(0.2) {
                        request = request.header("k", "1");
                    }
                    let (meant, got) =
                        (answer(plane(&whole), &request), answer(plane(&translation), &request));
                    if meant == "500" {
                        // Of rules in one list with different filters, another one may be served.
                        continue;
                    }
                    assert!(
                        got == meant || ["404", "503", "500"].contains(&&*got),
                        "seed {seed}: {request:?} is meant for {meant} and answered by {got}"
                    );
                    let is_theirs = large.iter().any(|(hostnames, matches)| {
                        matches.iter().any(|matched| is_for(hostnames, matched, (host, &path, method)))
                    });
                    if meant != "a" {
                        continue;
                    }
                    if is_theirs {
                        closed += usize::from(got != "a");
                        continue;
                    }
                    assert_eq!(got, "a", "seed {seed}: {request:?}");
                    apart += 1;
                }
            }
        }
    }
    println!("{apart} requests apart from what is refused, {closed} closed");
    assert!(apart > 2_500 && closed > 50, "{apart} {closed}");
}

/// Namespace a has a wildcard with two paths, and another hostname. Namespace b, younger, has a path of its own for
/// this many hostnames below the wildcard.
fn wildcard(hostnames: usize) -> Translation {
    let mut objects = world();
    let prefix = |path: &str| json!([{"path": {"type": "PathPrefix", "value": path}}]);
    add_route(&mut objects, ("a", "api", 2020), &["*.example.com".to_owned()], &prefix("/api"));
    add_route(&mut objects, ("a", "own", 2020), &["*.example.com".to_owned()], &prefix("/b"));
    add_route(&mut objects, ("a", "other", 2020), &["other.test".to_owned()], &any_path());
    for (number, names) in names(hostnames).chunks(16).enumerate() {
        let matches: Vec<Value> = [json!({"path": {"type": "PathPrefix", "value": "/b/c"}})]
            .into_iter()
            .chain(bulk(&json!({"type": "PathPrefix", "value": "/b/c"})))
            .collect();
        add_route(&mut objects, ("b", &format!("r{number}"), 2021), names, &json!(matches));
    }
    shared(&objects, true)
}

#[test]
fn hostnames_beyond_the_guards_close_the_same_paths_of_wider_ones_alone() {
    for (hostnames, is_wide) in [(1, false), (80, false), (480, true)] {
        let translation = wildcard(hostnames);
        let plane = plane(&translation);
        assert!(plane.size.bytes <= Budget::default().bytes);
        for name in names(hostnames) {
            assert_eq!(get(plane, &name, "/b/c/d"), "503", "{hostnames}");
        }
        assert_eq!(get(plane, "x.example.com", "/api"), "a", "{hostnames}");
        assert_eq!(get(plane, "other.test", "/b/c"), "a", "{hostnames}");
        assert_eq!(get(plane, "x.example.com", "/b"), if is_wide { "503" } else { "a" }, "{hostnames}");
        if is_wide {
            assert!(refused(&translation).contains(&"HTTPRoute a/own".to_owned()));
        }
        assert!(!refused(&translation).contains(&"HTTPRoute a/api".to_owned()));
    }
}

#[test]
fn paths_without_room_close_the_next_shorter_one_of_their_hostname_alone() {
    let paths: Vec<String> = (0..2_000).map(|number| format!("/b/{number}")).collect();
    let mut objects = world();
    let own = ["/api", "/b", "/b/own"].map(str::to_owned).to_vec();
    add_ingress(
        &mut objects,
        ("a", "shop", 2020),
        &[("shop.example.com", own), ("other.test", vec!["/".to_owned()])],
    );
    add_ingress(&mut objects, ("b", "large", 2021), &[("shop.example.com", paths)]);
    let options = Options { namespace_share: 1, ..options(Budget::default()) };
    let translation = translate_ingress(&objects.ingress_snapshot("pingsix").unwrap(), &options);
    let plane = plane(&translation);
    let answers: BTreeSet<String> =
        (0..2_000).map(|number| get(plane, "shop.example.com", &format!("/b/{number}"))).collect();
    assert_eq!(answers, ["503".to_owned(), "b".to_owned()].into(), "served or closed");
    assert_eq!(get(plane, "shop.example.com", "/b"), "503");
    for (host, path) in [("shop.example.com", "/api"), ("shop.example.com", "/b/own"), ("other.test", "/b/7")]
    {
        assert_eq!(get(plane, host, path), "a", "{host}{path}");
    }
}
