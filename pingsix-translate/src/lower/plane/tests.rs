//! Data planes and zones.

use std::sync::Arc;

use super::*;
use crate::attach::{AllowedNamespaces, ListenerState};
use crate::field::FieldPath;
use crate::object::{Kind, ObjectKey};
use crate::route::Refusal;
use crate::verdict::Reason;

fn listener(protocol: Protocol, port: u16, hostname: &str) -> Listener {
    Listener {
        owner: Arc::new(ObjectKey::new(Kind::Gateway, "infra", "public")),
        index: 0,
        tls_mode: None,
        written_protocol: "HTTP".to_owned(),
        name: format!("{port}-{hostname}"),
        protocol: Some(protocol),
        written_port: i32::from(port),
        port,
        hostname: Hostname::parse(hostname).ok(),
        state: ListenerState::Served { certificates: Vec::new() },
        unresolved: Vec::new(),
        limits: Vec::new(),
        overlap: None,
        supported_kinds: Vec::new(),
        namespaces: AllowedNamespaces::All,
    }
}

/// Every data plane with its zones: hostname, listeners, and what is special.
fn describe(listeners: &[Listener], layout: Layout) -> Vec<(String, Vec<String>)> {
    let describe_zone = |zone: &ZoneListeners| {
        let hostname = zone.hostname.as_ref().map_or("any", |hostname| hostname.as_str());
        let guarded = if zone.guarded { " guarded" } else { "" };
        let exposed = zone.exposed_on.map(|port| format!(" exposed on {port}")).unwrap_or_default();
        format!("{hostname} {:?}{guarded}{exposed}", zone.listeners)
    };
    planes(&ObjectName::new("infra", "public"), listeners, layout)
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

/// Otherwise PingSIX would keep what the port had when its listeners were accepted.
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
