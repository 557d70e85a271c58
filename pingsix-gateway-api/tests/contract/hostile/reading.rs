//! The ways in which a backend may understand a request. Of all known backends, the most lenient one counts.

use super::backend::Received;

/// A host, a path and a method, each in its normal form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) host: String,
    pub(super) path: String,
    pub(super) method: String,
}

/// Headers with which some backends replace the host.
const HOSTS: [&str; 3] = ["x-forwarded-host", "x-host", "x-original-host"];

/// Headers with which some backends replace the path.
const PATHS: [&str; 2] = ["x-original-url", "x-rewrite-url"];

/// Headers with which some backends replace the method.
const METHODS: [&str; 3] = ["x-http-method-override", "x-http-method", "x-method-override"];

/// A request without the headers that replace a part of it.
pub(super) fn plain(received: &Received) -> Received {
    let replaces = |name: &str| {
        let name = name.to_lowercase();
        name == "forwarded" || [&HOSTS[..], &PATHS, &METHODS].concat().contains(&name.as_str())
    };
    let headers = received.headers.iter().filter(|(name, _)| !replaces(name)).cloned().collect();
    Received { headers, ..received.clone() }
}

/// The readings of a request, those that take it as it is first.
pub(super) fn readings(received: &Received) -> Vec<Reading> {
    let values = |names: &[&str]| -> Vec<String> {
        let named = received.headers.iter().filter(|(name, _)| names.contains(&name.to_lowercase().as_str()));
        named.map(|(_, value)| value.clone()).collect()
    };
    let mut hosts = values(&["host"]);
    hosts.extend(origin(&received.target).map(|(authority, _)| authority.to_owned()));
    if hosts.is_empty() {
        hosts.push(String::new());
    }
    let mut paths = vec![received.target.clone()];
    let mut methods = vec![received.method.clone()];
    let plain = (hosts.len(), paths.len(), methods.len());
    hosts.extend(values(&HOSTS));
    for forwarded in values(&["forwarded"]) {
        let pairs = forwarded.split([';', ',']).filter_map(|pair| pair.trim().split_once('='));
        hosts.extend(pairs.filter(|(name, _)| name.eq_ignore_ascii_case("host")).map(|(_, v)| v.to_owned()));
    }
    paths.extend(values(&PATHS));
    methods.extend(values(&METHODS));
    let mut readings = Vec::new();
    for (at_host, host) in hosts.iter().enumerate() {
        for host in normal_hosts(host) {
            for (at_path, path) in paths.iter().enumerate() {
                for (at_method, method) in methods.iter().enumerate() {
                    let replaced = [at_host >= plain.0, at_path >= plain.1, at_method >= plain.2];
                    let path = normal_path(path);
                    let reading = Reading { host: host.clone(), path, method: method.to_ascii_uppercase() };
                    readings.push((replaced.iter().filter(|replaced| **replaced).count(), reading));
                }
            }
        }
    }
    readings.sort_by_key(|(replaced, _)| *replaced);
    readings.into_iter().map(|(_, reading)| reading).collect()
}

/// Authority and path of a target in absolute form.
fn origin(target: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = target.split_once("://")?;
    let is_scheme = !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_scheme.then(|| rest.split_at(rest.find('/').unwrap_or(rest.len())))
}

/// The hosts that a value may stand for.
fn normal_hosts(value: &str) -> Vec<String> {
    let one = |value: &str| {
        let decoded = String::from_utf8_lossy(&percent_decoded(value.as_bytes())).to_lowercase();
        let text = decoded.trim().trim_matches('"');
        let text = text.rsplit('@').next().unwrap_or_default();
        let text = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((inner, _)) => inner,
            None => text.split([':', '/', '\\', '?', '#']).next().unwrap_or_default(),
        };
        text.trim().trim_end_matches('.').to_owned()
    };
    let mut hosts: Vec<String> = value.split(',').map(one).collect();
    hosts.dedup();
    hosts
}

/// The path of a target for a backend that decodes it, also twice and in invalid forms, takes `\` for `/`, cuts
/// parameters, dots and spaces at the end of an element, cuts at NUL and at an encoded `?` or `#`, and ignores the case of
/// letters and a slash at the end.
pub(super) fn normal_path(target: &str) -> String {
    let target = origin(target).map_or(target, |(_, path)| path);
    let target = target.split(['?', '#']).next().unwrap_or_default();
    let decoded = percent_decoded(&percent_decoded(target.as_bytes()));
    // The byte 0xC0 introduces a form of a slash that is too long.
    let mut bytes = Vec::with_capacity(decoded.len());
    for byte in decoded {
        match (bytes.last(), byte) {
            (Some(0xC0), 0xAF) => *bytes.last_mut().unwrap() = b'/',
            _ => bytes.push(byte),
        }
    }
    let decoded = String::from_utf8_lossy(&bytes).to_lowercase().replace('\\', "/");
    let decoded = decoded.split(['\0', '?', '#']).next().unwrap_or_default();
    let mut elements: Vec<&str> = Vec::new();
    for element in decoded.split('/') {
        match element.split(';').next().unwrap_or_default() {
            "" | "." => {}
            ".." => {
                elements.pop();
            }
            named => elements.push(named.trim_end_matches(['.', ' '])),
        }
    }
    format!("/{}", elements.join("/"))
}

/// Bytes with `%xx` decoded once.
pub(super) fn percent_decoded(bytes: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let value = hex.filter(|hex| hex.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let value = value.filter(|_| byte == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        decoded.push(value.unwrap_or(byte));
        rest = if value.is_some() { &after[2..] } else { after };
    }
    decoded
}

#[test]
fn a_lenient_backend_takes_all_of_these_for_one_path() {
    for path in [
        "/admin/x",
        "//admin/x",
        "/./admin//x",
        "/y/../admin/x",
        "/%61dmin/x",
        "/%2e/admin/x",
        "/y/..%2Fadmin/x",
        "/admin;a=b/x",
        "/y/..;/admin/x",
        "/y\\..\\admin%5cx",
        "/ADMIN/x",
        "/admin./x",
        "/admin%20/x",
        "http://a.example/admin/x?y",
        "/admin/x%00.png",
        "/admin/x#y",
    ] {
        assert_eq!(normal_path(path), "/admin/x", "{path}");
    }
    assert_eq!(normal_path("/admin/"), "/admin");
    assert_eq!(normal_path("/b%c3%bcro"), "/büro");
    assert_eq!(normal_path("/%2561dmin%C0%AFx%3fy"), "/admin/x");
}

#[test]
fn a_lenient_backend_takes_all_of_these_for_one_host() {
    for host in [
        "a.example",
        "A.Example.",
        "a.example:80",
        "a.example:80:80",
        "x@a.example",
        "[a.example]:1",
        " a.example",
    ] {
        assert_eq!(normal_hosts(host), ["a.example"], "{host}");
    }
    assert_eq!(normal_hosts("b.example, a.example"), ["b.example", "a.example"]);
}
