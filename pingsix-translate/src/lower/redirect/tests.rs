//! Redirects by PingSIX itself, and the instructions for the others.

use super::*;
use crate::responder::{RedirectHostname, RedirectStatus};

const HTTP: EntryPort = EntryPort { protocol: Protocol::Http, port: 80, is_fronted: false };
const HTTPS: EntryPort = EntryPort { protocol: Protocol::Https, port: 443, is_fronted: false };

fn redirect(scheme: Option<RedirectScheme>, path: RedirectPath) -> Redirect {
    Redirect { status: RedirectStatus::MovedPermanently, scheme, hostname: None, port: None, path }
}

fn full(path: &str) -> RedirectPath {
    RedirectPath::Full(path.to_owned())
}

fn prefix(replacement: &str) -> RedirectPath {
    RedirectPath::Prefix { matched: "/old".to_owned(), replacement: replacement.to_owned() }
}

#[test]
fn a_change_of_path_alone_is_native() {
    let by_uri = native(&redirect(None, full("/new")), None, &[HTTP, HTTPS]).unwrap();
    assert_eq!((by_uri.uri.as_deref(), by_uri.append_query_string), (Some("/new"), true));
    let by_pattern = native(&redirect(None, prefix("/new")), None, &[HTTP]).unwrap();
    assert_eq!(by_pattern.regex_uri, ["^/old(/.*)?$", "/new$1"]);
}

#[test]
fn a_path_that_could_be_taken_for_a_host_is_not_native() {
    for path in
        [full("//evil.example"), prefix("/"), prefix(""), prefix("//"), full("/a$1"), RedirectPath::Keep]
    {
        assert_eq!(native(&redirect(None, path.clone()), None, &[HTTP]), None, "{path:?}");
    }
}

#[test]
fn https_is_native_from_plaintext_to_a_known_host() {
    let host = Hostname::parse("shop.example").unwrap();
    let wildcard = Hostname::parse("*.example").unwrap();
    let https = redirect(Some(RedirectScheme::Https), RedirectPath::Keep);
    let to = |redirect: &Redirect, host: Option<&Hostname>, entrances: &[EntryPort]| {
        native(redirect, host, entrances).and_then(|plugin| plugin.redirect_host)
    };
    assert_eq!(to(&https, Some(&host), &[HTTP]).as_deref(), Some("shop.example"));
    assert_eq!(to(&https, Some(&host), &[HTTP, HTTPS]), None, "requests over TLS would pass");
    assert_eq!(to(&https, Some(&wildcard), &[HTTP]), None);
    assert_eq!(to(&https, None, &[HTTP]), None);
    let hostname = RedirectHostname::new("www.example");
    let elsewhere = Redirect { hostname, port: NonZeroU16::new(8443), ..https.clone() };
    assert_eq!(to(&elsewhere, None, &[HTTP]).as_deref(), Some("www.example:8443"));
    let moved = Redirect { path: full("/new"), ..https };
    assert_eq!(to(&moved, Some(&host), &[HTTP]), None);
}

#[test]
fn an_instruction_does_not_guess_the_port_a_request_came_in_by() {
    let keep = redirect(None, RedirectPath::Keep);
    let listener = |redirect: &Redirect, entrances: &[EntryPort]| {
        instruction(redirect, entrances).map(|instruction| instruction.listener.port.get())
    };
    assert_eq!(listener(&keep, &[HTTP]), Some(80));
    assert_eq!(listener(&keep, &[HTTP, HTTPS]), None);
    assert_eq!(listener(&keep, &[HTTP, EntryPort { port: 8080, ..HTTP }]), None);
    let with_port = Redirect { port: NonZeroU16::new(9000), ..keep.clone() };
    assert_eq!(listener(&with_port, &[HTTP, EntryPort { port: 8080, ..HTTP }]), Some(80));
    assert_eq!(listener(&with_port, &[HTTP, HTTPS]), None);
    let with_scheme = Redirect { scheme: Some(RedirectScheme::Http), ..keep };
    assert_eq!(listener(&with_scheme, &[HTTP, HTTPS]), Some(80));
}
