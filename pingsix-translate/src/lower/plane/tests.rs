//! Data planes and zones.

use std::sync::Arc;

use super::*;
use crate::attach::{AllowedNamespaces, ListenerState};
use crate::model::{Age, FieldPath, Kind, ObjectKey, Reason, Refusal};

fn listener(protocol: Protocol, port: u16, hostname: &str) -> Listener {
    Listener {
        owner: Arc::new(ObjectKey::new(Kind::Gateway, "infra", "public")),
        age: Age::of(&kube::core::ObjectMeta::default()),
        index: 0,
        tls_mode: None,
        front: None,
        written_protocol: "HTTP".to_owned(),
        name: format!("{port}-{hostname}"),
        protocol: Some(protocol),
        written_port: i32::from(port),
        port,
        hostname: Hostname::parse(hostname).ok(),
        state: ListenerState::Served { certificates: Vec::new() },
        unresolved: Vec::new(),
        limitations: Vec::new(),
        overlap: None,
        supported_kinds: Vec::new(),
        namespaces: AllowedNamespaces::All,
    }
}

fn settings() -> PlaneSettings {
    PlaneSettings { namespace_share: 100, feed_cpu_percent: 100, shared_cache: false, telemetry: None }
}

/// Every data plane with its zones: hostname, listeners, and properties.
fn describe(listeners: &[Listener], layout: Layout) -> Vec<(String, Vec<String>)> {
    let describe_zone = |zone: &ZoneListeners| {
        let hostname = zone.hostname.as_ref().map_or("any", |hostname| hostname.as_str());
        let guarded = if zone.guarded { " guarded" } else { "" };
        let dead = if zone.is_served { "" } else { " unserved" };
        let exposed = zone.exposed_on.map(|port| format!(" exposed on {port}")).unwrap_or_default();
        format!("{hostname} {:?}{guarded}{exposed}{dead}", zone.listeners)
    };
    planes(&ObjectName::new("infra", "public"), listeners, layout, &settings())
        .into_iter()
        .map(|plane| (plane.key.to_string(), plane.zones.iter().map(describe_zone).collect()))
        .collect()
}

fn plane(key: &str, zones: &[&str]) -> (String, Vec<String>) {
    (key.to_owned(), zones.iter().map(|&zone| zone.to_owned()).collect())
}

#[test]
fn a_zone_has_the_most_specific_listener_of_each_port() {
    let listeners = [
        listener(Protocol::Http, 80, "*.test"),
        listener(Protocol::Http, 80, "a.test"),
        listener(Protocol::Http, 8080, ""),
    ];
    assert_eq!(
        describe(&listeners, Layout::Shared),
        [plane("infra/public", &["any [2]", "*.test [0, 2] guarded", "a.test [1, 2] guarded"])]
    );
    assert_eq!(
        describe(&listeners, Layout::PerPort),
        [
            plane("infra/public:80", &["*.test [0]", "a.test [1] guarded"]),
            plane("infra/public:8080", &["any [2]"]),
        ]
    );
}

#[test]
fn a_zone_of_https_alone_is_exposed_on_a_plaintext_port_of_its_data_plane() {
    let listeners = [
        listener(Protocol::Http, 80, "a.test"),
        listener(Protocol::Https, 443, "a.test"),
        listener(Protocol::Https, 443, "b.test"),
    ];
    assert_eq!(
        describe(&listeners, Layout::Shared),
        [plane("infra/public", &["a.test [0, 1]", "b.test [2] exposed on 80"])]
    );
    assert_eq!(
        describe(&listeners, Layout::PerPort),
        [plane("infra/public:80", &["a.test [0]"]), plane("infra/public:443", &["a.test [1]", "b.test [2]"])]
    );
}

#[test]
fn a_zone_is_charged_to_a_listener_of_its_hostname() {
    let set = Arc::new(ObjectKey::new(Kind::ListenerSet, "hostile", "more"));
    let gateway = listener(Protocol::Https, 443, "").owner;
    let listeners = [
        listener(Protocol::Https, 443, ""),
        Listener { owner: set.clone(), ..listener(Protocol::Http, 80, "a.test") },
    ];
    let planes = planes(&ObjectName::new("infra", "public"), &listeners, Layout::Shared, &settings());
    let owners = |zone: &ZoneListeners| (zone.listeners.clone(), zone.owner.clone().map(|(_, owner)| owner));
    let owners: Vec<_> = planes[0].zones.iter().map(owners).collect();
    // The wide listener of the Gateway serves the other port of the zone.
    assert_eq!(owners, [(vec![0], Some(gateway)), (vec![1, 0], Some(set))]);
}

fn unresolved(protocol: Protocol, port: u16, hostname: &str) -> Listener {
    Listener { state: ListenerState::Unresolved, ..listener(protocol, port, hostname) }
}

#[test]
fn an_unserved_listener_keeps_its_hosts_from_wider_ones_of_its_port() {
    let refusal = Refusal::new(FieldPath::new("spec"), Reason::UnsupportedValue, "No.");
    let state = ListenerState::Refused { refusal: refusal.clone() };
    let listeners = [
        listener(Protocol::Https, 443, "*.test"),
        unresolved(Protocol::Https, 443, "a.test"),
        Listener { state, ..listener(Protocol::Https, 443, "*.b.test") },
        listener(Protocol::Https, 443, "c.b.test"),
        // No other listener would serve their hosts.
        unresolved(Protocol::Https, 443, "a.other"),
        unresolved(Protocol::Https, 8443, "d.test"),
        // These listeners have no effect.
        Listener {
            state: ListenerState::Conflicted { refusal: refusal.clone() },
            ..listener(Protocol::Https, 443, "e.test")
        },
        Listener { state: ListenerState::Excluded { refusal }, ..listener(Protocol::Https, 443, "f.test") },
    ];
    assert_eq!(
        describe(&listeners, Layout::PerPort),
        [
            plane(
                "infra/public:443",
                &[
                    "*.b.test [2] guarded unserved",
                    "*.test [0]",
                    "a.test [1] guarded unserved",
                    "c.b.test [3] guarded",
                ]
            ),
            plane("infra/public:8443", &[]),
        ]
    );
}

/// On a shared data plane, a route has to be attached there too, as if the listener were served.
#[test]
fn a_zone_that_one_port_cannot_serve_is_that_of_the_others() {
    let listeners = [
        listener(Protocol::Http, 80, "a.test"),
        listener(Protocol::Https, 443, ""),
        unresolved(Protocol::Https, 443, "a.test"),
    ];
    assert_eq!(
        describe(&listeners, Layout::Shared),
        [plane("infra/public", &["any [1] exposed on 80", "a.test [0, 2] guarded"])]
    );
}

/// Without it, PingSIX would keep the former documents of the port.
#[test]
fn a_port_without_any_listener_that_is_served_has_an_empty_data_plane() {
    let mut refused = listener(Protocol::Http, 80, "");
    refused.state = ListenerState::Refused {
        refusal: Refusal::new(FieldPath::new("spec"), Reason::UnsupportedValue, "No."),
    };
    let mut unknown = listener(Protocol::Http, 81, "");
    unknown.protocol = None;
    unknown.state = refused.state.clone();
    let listeners = [refused, unknown];
    assert_eq!(describe(&listeners, Layout::PerPort), [plane("infra/public:80", &[])]);
    assert_eq!(describe(&listeners, Layout::Shared), [plane("infra/public", &[])]);
    assert_eq!(describe(&[], Layout::Shared), [plane("infra/public", &[])]);
}

#[test]
fn an_ingress_class_has_its_ports_in_one_data_plane_or_in_two() {
    let describe = |layout| -> Vec<(String, Vec<usize>, Vec<u16>)> {
        let planes = ingress_planes(&"web".into(), layout, &[], &settings());
        let described = planes.iter().map(|plane| {
            let [zone] = &plane.zones[..] else { panic!("one zone has every host") };
            let ports = zone.entrances.iter().map(|entry_port| entry_port.port).collect();
            (plane.key.to_string(), zone.listeners.clone(), ports)
        });
        described.collect()
    };
    assert_eq!(describe(Layout::Shared), [("IngressClass/web".to_owned(), vec![0, 1], vec![80, 443])]);
    assert_eq!(
        describe(Layout::PerPort),
        [
            ("IngressClass/web:80".to_owned(), vec![0], vec![80]),
            ("IngressClass/web:443".to_owned(), vec![1], vec![443]),
        ]
    );
}
