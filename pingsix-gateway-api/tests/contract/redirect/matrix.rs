//! The responder behind PingSIX: every redirect filter on every kind of listener, asked over every protocol.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU16;

use bytes::Bytes;
use pingsix_gateway_sidecar::responder::{Options as ResponderOptions, Reach, Responder};
use pingsix_translate::pingsix::Request;
use pingsix_translate::responder::{
    RedirectHostname, RedirectInstruction, RedirectListener, RedirectPath, RedirectScheme, RedirectStatus,
};
use serde_json::json;

use super::SCOPES;
use crate::client::{Protocol, ask_all};
use crate::etcd::Etcd;
use crate::process::{Pair, Verdict, WAIT_TIMEOUT};
use crate::run::{binary, print_message};

/// A `RequestRedirect` filter and the listener its route is attached to, in the words of the specification.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    pub(super) listener: (&'static str, u16),
    pub(super) status: u16,
    pub(super) scheme: Option<&'static str>,
    pub(super) hostname: Option<&'static str>,
    pub(super) port: Option<u16>,
    pub(super) path: Path,
}

/// The change of the path. The match of the rule is a prefix, the first text of `Prefix`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Path {
    Keep,
    Full(&'static str),
    Prefix(&'static str, &'static str),
}

/// The port a URL of a scheme leaves out.
fn well_known(scheme: &str) -> u16 {
    if scheme == "https" { 443 } else { 80 }
}

impl Filter {
    /// 302, and nothing changed.
    pub(super) fn plain(listener: (&'static str, u16)) -> Self {
        Self { listener, status: 302, scheme: None, hostname: None, port: None, path: Path::Keep }
    }

    /// Every combination of statuses, schemes, hostnames, ports and paths on a listener.
    pub(super) fn all(listener: (&'static str, u16)) -> Vec<Self> {
        let mut filters = Vec::new();
        for status in [301, 302, 303, 307, 308] {
            for scheme in [None, Some("http"), Some("https")] {
                for hostname in [None, Some("target.test")] {
                    let target = scheme.unwrap_or(listener.0);
                    for port in [None, Some(9443), Some(well_known(target))] {
                        for path in [Path::Keep, Path::Full("/whole/new"), Path::Prefix("/old", "/new")] {
                            filters.push(Self { listener, status, scheme, hostname, port, path });
                        }
                    }
                }
            }
        }
        filters
    }

    /// The Location that the specification asks for.
    pub(super) fn location(&self, host: &str, path: &str, query: Option<&str>) -> String {
        let scheme = self.scheme.unwrap_or(self.listener.0);
        let port = match (self.port, self.scheme) {
            (Some(port), _) => port,
            (None, Some(scheme)) => well_known(scheme),
            (None, None) => self.listener.1,
        };
        let port = if port == well_known(scheme) { String::new() } else { format!(":{port}") };
        let path = match self.path {
            Path::Keep => path.to_owned(),
            Path::Full(value) => value.to_owned(),
            Path::Prefix(_, replacement) => prefix_replaced(replacement, path),
        };
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        format!("{scheme}://{}{port}{path}{query}", self.hostname.unwrap_or(host))
    }

    /// The filter as translation would tell the responder.
    fn instruction(&self) -> RedirectInstruction {
        let scheme = |text: &str| if text == "https" { RedirectScheme::Https } else { RedirectScheme::Http };
        RedirectInstruction {
            status: RedirectStatus::from_u16(self.status).unwrap(),
            listener: RedirectListener {
                scheme: scheme(self.listener.0),
                port: NonZeroU16::new(self.listener.1).unwrap(),
            },
            scheme: self.scheme.map(scheme),
            hostname: self.hostname.map(|name| RedirectHostname::new(name).unwrap()),
            port: self.port.map(|port| NonZeroU16::new(port).unwrap()),
            path: match self.path {
                Path::Keep => RedirectPath::Keep,
                Path::Full(value) => RedirectPath::Full(value.to_owned()),
                Path::Prefix(matched, replacement) => {
                    RedirectPath::Prefix { matched: matched.to_owned(), replacement: replacement.to_owned() }
                }
            },
        }
    }

    /// The protocols that reach its listener.
    pub(super) fn protocols(&self) -> impl Iterator<Item = Protocol> + use<> {
        let scheme = self.listener.0;
        Protocol::ALL.into_iter().filter(move |protocol| protocol.scheme() == scheme)
    }
}

/// `/old` at the start of a path replaced, row by row as the table of the specification has it.
fn prefix_replaced(replacement: &str, path: &str) -> String {
    match (replacement, path.strip_prefix("/old").unwrap()) {
        ("" | "/", "" | "/") => "/".to_owned(),
        ("" | "/", rest) => rest.to_owned(),
        (replacement, "") => replacement.to_owned(),
        (replacement, rest) => format!("{}{rest}", replacement.trim_end_matches('/')),
    }
}

/// Paths below the prefix that the rules match.
pub(super) const PATHS: [&str; 7] =
    ["/old/x", "/old", "/old/", "/old/x%2Fy/%C3%A4", "/old//twice", "/old/$1/%24", "/old/a+b;c=d"];

/// Present queries. An empty one differs from none.
pub(super) const QUERIES: [&str; 6] = ["a=b", "a=b&a=b", "", "q=%26%3D&x=+", "u=https://other.test/?y", "$1"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_responder_behind_pingsix_redirects_as_the_specification_says() {
    const TEST: &str = "redirects of the responder";
    let Some(binary) = binary(TEST) else { return };
    let scope = format!("{SCOPES}/responder");
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let responder = Responder::bind(loopback, Reach::Loopback, ResponderOptions::default()).await.unwrap();
    let address = responder.local_addr().unwrap();
    tokio::spawn(responder.run(std::future::pending()));
    let etcd = Etcd::start(std::slice::from_ref(&scope)).await;
    let pair = Pair::start(&binary, etcd.address, &scope).await;

    let listeners = [("http", 80), ("http", 8080), ("https", 443), ("https", 8443)];
    let mut filters: Vec<Filter> = listeners.into_iter().flat_map(Filter::all).collect();
    // The table of prefixes, on one listener each.
    for listener in [listeners[1], listeners[2]] {
        for matched in ["/old", "/old/"] {
            for replacement in ["/xyz", "/xyz/", "", "/"] {
                let path = Path::Prefix(matched, replacement);
                let row = Filter { listener, status: 302, scheme: None, hostname: None, port: None, path };
                filters.extend(vec![row; PATHS.len()]);
            }
        }
    }
    let upstream = json!({ "nodes": { address.to_string(): 1 } });
    let mut pairs = vec![("upstreams/responder".to_owned(), Bytes::from(upstream.to_string()))];
    for (index, filter) in filters.iter().enumerate() {
        let set: Vec<_> = filter
            .instruction()
            .to_headers()
            .into_iter()
            .map(|(name, value)| json!({ "name": name, "value": value }))
            .collect();
        let route = json!({
            "uris": ["/old", "/old/", "/old/{*p}"],
            "host": format!("r{index}.test"),
            "upstream_id": "responder",
            "plugins": { "proxy-rewrite": { "headers": { "set": set } } },
        });
        pairs.push((format!("routes/{index}"), route.to_string().into()));
    }
    let revision = etcd.publish_raw(&scope, &pairs).await;
    assert_eq!(pair.verdict(revision, WAIT_TIMEOUT).await, Verdict::Accepted);

    let (mut requests, mut expected) = (Vec::new(), Vec::new());
    for (index, filter) in filters.iter().enumerate() {
        let host = format!("r{index}.test");
        let path = PATHS[index % PATHS.len()];
        for protocol in filter.protocols() {
            for query in [None, Some(QUERIES[index % QUERIES.len()])] {
                // The port in the client's host is independent of the listener's port.
                let authority = if index % 2 == 0 { host.clone() } else { format!("{host}:12345") };
                let query = query.map(str::to_owned);
                let sent = Request { query: query.clone(), ..Request::get(&authority, path) };
                requests.push(protocol.carry(&sent));
                expected.push((filter, filter.location(&host, path, query.as_deref())));
            }
        }
    }
    let replies = ask_all(pair.addresses(), &requests).await;
    for ((request, reply), (filter, location)) in requests.iter().zip(&replies).zip(&expected) {
        assert_eq!(
            (reply.status, reply.header("location")),
            (filter.status, Some(location.as_str())),
            "{filter:?}\n  {request:?}"
        );
    }
    print_message(&format!(
        "{TEST}: {} redirects by {} filters over four protocols",
        replies.len(),
        filters.len()
    ));
}
