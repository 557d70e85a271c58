use std::sync::Arc;

use super::{fixed_host, host_bytes};
use crate::attach::Protocol;
use crate::lower::closure::Closed;
use crate::lower::redirect::EntryPort;
use crate::model::Hostname;

fn host(text: &str) -> Hostname {
    Hostname::parse(text).unwrap()
}

fn entrance(protocol: Protocol, port: u16) -> EntryPort {
    EntryPort { protocol, port, is_fronted: false }
}

#[test]
fn a_fixed_host_has_the_port_of_the_listener_unless_it_is_the_default() {
    let shop = host("shop.example");
    let (http, https) = (Protocol::Http, Protocol::Https);
    for (entrances, fixed) in [
        (vec![entrance(http, 80)], "shop.example"),
        (vec![entrance(https, 443)], "shop.example"),
        (vec![entrance(http, 80), entrance(https, 443)], "shop.example"),
        (vec![entrance(http, 8080)], "shop.example:8080"),
        (vec![entrance(https, 80)], "shop.example:80"),
        (vec![entrance(http, 8080), entrance(https, 443)], "shop.example"),
        (vec![entrance(http, 8080), entrance(https, 8443)], "shop.example"),
        (vec![], "shop.example"),
    ] {
        assert_eq!(fixed_host(&shop, &entrances), fixed, "{entrances:?}");
    }
}

#[test]
fn a_fixed_host_is_charged_to_rules_that_fix_theirs_alone() {
    let shop = host("shop.example");
    let written = r#","plugins":{"proxy-rewrite":{"host":"shop.example:65535"}}"#.len();
    assert!(host_bytes(true, None, Some(&shop)) >= written);
    assert!(host_bytes(true, None, None) >= written);
    assert_eq!(host_bytes(false, None, Some(&shop)), 0);
}

#[test]
fn each_kind_of_spelling_keeps_the_order_of_the_hosts() {
    let hosts = ["a.example", "b.a.example", "*.a.example", "*.example"].map(str::to_owned).to_vec();
    let closed = Closed { hosts: Arc::new(hosts), uris: Vec::new() }.with_spellings();
    assert_eq!(
        **closed.hosts,
        [
            "a.example",
            "b.a.example",
            "*.a.example",
            "*.example",
            "a.example.",
            "b.a.example.",
            "*.a.example.",
            "*.example.",
            "[a.example]",
            "[b.a.example]",
            "*.a.example]",
            "*.example]"
        ]
    );
}
