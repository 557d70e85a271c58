//! Which listeners overlap, by a direct reading over concrete hosts.

use serde_json::json;

use crate::fixture::pem::{Pair, pair};
use crate::fixture::{add_certificate, gateway, https, run};
use crate::model::{ConditionType, Options, Reason};
use crate::status::Condition;

/// Status of each listener: reason and message, or nothing.
fn overlaps(listeners: &[serde_json::Value], certificates: &[(&str, &Pair)]) -> Vec<Option<Condition>> {
    let mut objects = gateway(&json!(listeners));
    for (name, pair) in certificates {
        add_certificate(&mut objects, name, pair);
    }
    let gateway = run(&objects, &Options::default()).verdicts.gateway;
    gateway
        .unwrap()
        .listeners
        .iter()
        .map(|listener| listener.conditions.get(ConditionType::OverlappingTlsConfig).cloned())
        .collect()
}

fn reasons(listeners: &[serde_json::Value], certificates: &[(&str, &Pair)]) -> Vec<Option<Reason>> {
    overlaps(listeners, certificates).into_iter().map(|one| one.map(|condition| condition.reason)).collect()
}

/// Whether a hostname of a listener stands for a host.
fn serves(hostname: Option<&str>, host: &str) -> bool {
    match hostname.map(|hostname| hostname.strip_prefix('*').ok_or(hostname)) {
        None => true,
        Some(Ok(suffix)) => host.len() > suffix.len() && host.ends_with(suffix),
        Some(Err(exact)) => host == exact,
    }
}

/// Whether a name of a certificate stands for a host.
fn is_valid(name: &str, host: &str) -> bool {
    match name.strip_prefix("*.") {
        Some(parent) => host.split_once('.').is_some_and(|(_, rest)| rest == parent),
        None => name == host,
    }
}

/// Every hostname with every other, and every certificate on the first of both.
#[test]
fn overlaps_are_what_hosts_say() {
    let hosts: Vec<String> = ["test", "a.test", "b.test", "x.test"]
        .iter()
        .flat_map(|host| {
            ["", "a.", "b.", "z.", "a.a.", "z.a.", "z.z."].map(|labels| format!("{labels}{host}"))
        })
        .collect();
    let hostnames = [
        None,
        Some("*.test"),
        Some("*.a.test"),
        Some("test"),
        Some("a.test"),
        Some("b.test"),
        Some("b.a.test"),
    ];
    let certificates: [&[&str]; 6] =
        [&["*.test"], &["a.test"], &["*.a.test"], &["b.test", "x.test"], &["b.a.test", "test"], &[]];
    let pairs = certificates.map(|names| (names, pair(names)));
    let nameless = pair(&[]);
    for first in hostnames {
        for second in hostnames.into_iter().filter(|second| *second != first) {
            let listeners = [https("one", 443, first, &["cert"]), https("two", 443, second, &["none"])];
            let by_host = hosts.iter().any(|host| serves(first, host) && serves(second, host));
            // Of two listeners for a host, the more specific one serves it.
            let is_wider = hosts.iter().all(|host| !serves(first, host) || serves(second, host));
            for (names, pair) in &pairs {
                let by_certificate = hosts.iter().any(|host| {
                    names.iter().any(|name| is_valid(name, host))
                        && serves(second, host)
                        && !(is_wider && serves(first, host))
                });
                let expected = match (by_certificate, by_host) {
                    (true, _) => Some(Reason::OverlappingCertificates),
                    (false, true) => Some(Reason::OverlappingHostnames),
                    (false, false) => None,
                };
                assert_eq!(
                    reasons(&listeners, &[("cert", pair), ("none", &nameless)]),
                    [expected, expected],
                    "{first:?} with {names:?}, and {second:?}"
                );
            }
        }
    }
}

#[test]
fn every_listener_of_a_group_names_the_others() {
    let (wildcard, own) = (pair(&["*.test"]), pair(&["c.example"]));
    let listeners = [
        https("a", 443, Some("a.test"), &["wildcard"]),
        https("b", 443, Some("b.test"), &["wildcard"]),
        https("all", 443, Some("*.test"), &["wildcard"]),
        https("c", 443, Some("c.example"), &["own"]),
    ];
    let overlaps = overlaps(&listeners, &[("wildcard", &wildcard), ("own", &own)]);
    let messages: Vec<String> =
        overlaps.iter().map(|one| one.as_ref().map(|one| one.message.clone()).unwrap_or_default()).collect();
    assert_eq!(
        messages[0],
        "A certificate covers hosts of this listener and of other listeners on the port. Clients may \
         share one connection for them. PingSIX answers each request by its host. Listeners: \"b\", \"all\". The hostname overlaps \
         with that of others on the port: \"all\"."
    );
    assert!(messages[1].contains("\"a\", \"all\"") && messages[2].contains("\"a\", \"b\""), "{messages:?}");
    assert_eq!(overlaps[3], None);
    assert!(overlaps.iter().flatten().all(|condition| condition.observed_generation == 7));
}

#[test]
fn a_long_list_of_others_is_cut() {
    let cert = pair(&["*.test"]);
    let messages = |count: usize| -> Vec<String> {
        let listeners: Vec<_> = (0..count)
            .map(|index| https(&format!("l{index}"), 443, Some(&format!("h{index}.test")), &["wildcard"]))
            .collect();
        let overlaps = overlaps(&listeners, &[("wildcard", &cert)]);
        overlaps.into_iter().map(|one| one.unwrap().message).collect()
    };
    let many = messages(12);
    assert!(many[0].ends_with(": \"l1\", \"l2\", \"l3\", \"l4\", \"l5\", \"l6\", \"l7\", \"l8\" and more."));
    assert!(many[11].ends_with(": \"l0\", \"l1\", \"l2\", \"l3\", \"l4\", \"l5\", \"l6\", \"l7\" and more."));
    assert!(messages(9)[4].ends_with(": \"l0\", \"l1\", \"l2\", \"l3\", \"l5\", \"l6\", \"l7\", \"l8\"."));
}

#[test]
fn only_listeners_with_tls_on_one_port_overlap() {
    let cert = pair(&["a.test"]);
    let http = |port| json!({"name": "http", "port": port, "protocol": "HTTP", "hostname": "*.test"});
    let one = https("one", 443, Some("a.test"), &["cert"]);
    let certificates = [("cert", &cert)];
    let none =
        |listeners: &[serde_json::Value]| reasons(listeners, &certificates).iter().all(Option::is_none);
    assert!(none(&[one.clone(), http(80)]));
    assert!(none(&[one.clone(), https("two", 8443, Some("*.test"), &["cert"])]));
    // A listener that conflicts or is refused is not served.
    assert!(none(&[one.clone(), https("two", 443, Some("a.test"), &["cert"])]));
    assert!(none(&[one.clone(), http(443)]));
    // A listener without a certificate has the condition, too.
    assert!(!none(&[one, https("two", 443, Some("*.test"), &["missing"])]));
}

/// A certificate that no client gets to see does no harm.
#[test]
fn a_certificate_that_is_not_shown_does_not_count() {
    let (own, others) = (pair(&["a.test"]), pair(&["b.test"]));
    let listeners =
        [https("a", 443, Some("a.test"), &["own", "others"]), https("b", 443, Some("b.test"), &["others"])];
    assert_eq!(reasons(&listeners, &[("own", &own), ("others", &others)]), [None, None]);
}
