//! Redirects by PingSIX itself: those that follow the specification, and the errors of others.
//!
//! Over HTTP/1 the plugin responds with the path alone, which a client resolves against its request; over HTTP/2 it
//! puts the claimed scheme and authority before the path. So a redirect that changes only the path is right over
//! both, and one to another host over HTTP/1 alone.

use pingsix_translate::pingsix::{Outcome, Request};
use serde_json::{Value, json};

use super::matrix::{Filter, PATHS, Path, QUERIES};
use super::{SCOPES, redirect};
use crate::client::{Protocol, Reply};
use crate::harness::{Harness, get, host};
use crate::run::{binary, print_message};

/// The plugin's configuration for a filter of a route on one exact hostname, where there is one that is right over
/// all protocols of the listener.
fn native(filter: &Filter, host: &str) -> Option<Value> {
    let same_place = (filter.scheme, filter.hostname, filter.port) == (None, None, None);
    let mut config = match filter.path {
        Path::Full(path) if same_place => json!({ "uri": path, "append_query_string": true }),
        Path::Prefix(matched, replacement) if same_place => {
            let matched = matched.trim_end_matches('/');
            let stem = replacement.trim_end_matches('/');
            let bare = if replacement.is_empty() { "/" } else { replacement };
            let pairs = if stem.is_empty() {
                // The remaining path must not start with two slashes: over HTTP/1 that is another host. `/.//a` is
                // `//a` on this one.
                vec![
                    format!("^{matched}/?$"),
                    "/".to_owned(),
                    format!("^{matched}(/[^/].*)$"),
                    "$1".to_owned(),
                    format!("^{matched}(/.*)$"),
                    "/.$1".to_owned(),
                ]
            } else {
                vec![
                    format!("^{matched}$"),
                    bare.to_owned(),
                    format!("^{matched}(/.*)$"),
                    format!("{stem}$1"),
                ]
            };
            json!({ "regex_uri": pairs, "append_query_string": true })
        }
        Path::Keep if filter.listener.0 == "http" && filter.scheme == Some("https") => {
            let name = filter.hostname.unwrap_or(host);
            let port = filter.port.filter(|&port| port != 443).map(|port| format!(":{port}"));
            let redirect_host = format!("{name}{}", port.unwrap_or_default());
            json!({ "http_to_https": true, "redirect_host": redirect_host })
        }
        Path::Keep | Path::Full(_) | Path::Prefix(..) => return None,
    };
    if config.get("regex_uri").is_none() {
        config["regex_uri"] = json!([]);
    }
    config["ret_code"] = json!(filter.status);
    Some(config)
}

/// The client's reading of a Location: references without a scheme are relative to the request.
fn resolve(protocol: Protocol, authority: &str, location: &str) -> String {
    let origin = format!("{}://{authority}", protocol.scheme());
    let (origin, path) = match location.strip_prefix(&origin) {
        Some(path) => (origin, path),
        None if location.starts_with("//") => return format!("{}:{location}", protocol.scheme()),
        None if location.starts_with('/') => (origin, location),
        None => return location.to_owned(),
    };
    // The one dot segment that our forms have.
    format!("{origin}{}", path.strip_prefix("/.").filter(|rest| rest.starts_with('/')).unwrap_or(path))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_redirects_as_the_specification_says_over_every_protocol() {
    const TEST: &str = "native redirects";
    let Some(binary) = binary(TEST) else { return };
    // A client names the port of the listener, or none when it is the well-known one.
    let mut filters: Vec<Filter> = [("http", 80), ("https", 443)].into_iter().flat_map(Filter::all).collect();
    for listener in [("http", 80), ("https", 443)] {
        for matched in ["/old", "/old/"] {
            for replacement in ["/xyz", "/xyz/", "", "/", "/$0/$x", "/a%2Fb"] {
                let path = Path::Prefix(matched, replacement);
                filters.push(Filter { path, ..Filter::plain(listener) });
            }
        }
        for path in ["/", "/$1/${1}/$$", "/a%2Fb/", "/x;y=z,(1)!*'@:&+"] {
            filters.push(Filter { path: Path::Full(path), ..Filter::plain(listener) });
        }
    }
    let mut routes = Vec::new();
    for filter in &filters {
        if let Some(config) = native(filter, &host(routes.len())) {
            routes.push((filter, redirect(&config)));
        }
    }
    let upstream = json!({});
    let plugins = routes.iter().map(|(_, plugins)| (plugins, &upstream));
    let harness = Harness::start(&binary, &format!("{SCOPES}/native"), plugins).await;
    let (mut requests, mut expected) = (Vec::new(), Vec::new());
    for (index, (filter, _)) in routes.iter().enumerate() {
        for (turn, path) in PATHS.into_iter().enumerate() {
            for query in [None, Some(QUERIES[(index + turn) % QUERIES.len()])] {
                let target = query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
                let mut location = filter.location(&host(index), path, query);
                // A `?` with nothing behind it is lost where the path changes; it is kept where it stays.
                if !matches!(filter.path, Path::Keep) && query == Some("") {
                    location.truncate(location.trim_end_matches('?').len());
                }
                for protocol in filter.protocols() {
                    let method = ["GET", "HEAD", "POST"][requests.len() % 3];
                    requests.push((protocol, index, get(&target).method(method)));
                    expected.push((filter.status, location.clone()));
                }
            }
        }
    }
    let replies = harness.ask_all(&requests).await;
    for ((sent, reply), expected) in requests.iter().zip(&replies).zip(expected) {
        let (protocol, index, request) = sent;
        let location = reply.header("location").unwrap_or_default();
        assert_eq!(
            (reply.status, resolve(*protocol, &host(*index), location)),
            expected,
            "{} {protocol:?} {request:?}: {location}",
            routes[*index].1
        );
    }
    print_message(&format!(
        "{TEST}: {} redirects by {} configurations over four protocols",
        replies.len(),
        routes.len()
    ));
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    /// A redirect to this Location.
    To(String),
    /// The backend got it.
    Backend,
    /// Another status.
    Status(u16),
}

impl From<&Reply> for Answer {
    fn from(reply: &Reply) -> Self {
        match (reply.status, reply.header("location")) {
            (300..400, Some(location)) => Self::To(location.to_owned()),
            (200, None) => Self::Backend,
            (status, _) => Self::Status(status),
        }
    }
}

impl From<Outcome<'_>> for Answer {
    fn from(outcome: Outcome<'_>) -> Self {
        match outcome {
            Outcome::NotFound => Self::Status(404),
            Outcome::Static { status, .. } => Self::Status(status),
            Outcome::Preflight { allowed, .. } => Self::Status(if allowed { 204 } else { 403 }),
            Outcome::Redirect { location, .. } => Self::To(location),
            Outcome::Forward { .. } => Self::Backend,
        }
    }
}

/// A configuration of the plugin, and the location of targets over each protocol.
struct Form {
    config: Value,
    asked: Vec<(String, [Answer; 4])>,
}

impl Form {
    fn new(config: Value) -> Self {
        Self { config, asked: Vec::new() }
    }

    /// The same over every protocol.
    fn always(mut self, target: &str, answer: &Answer) -> Self {
        self.asked.push((target.to_owned(), [(); 4].map(|()| answer.clone())));
        self
    }

    /// A Location of one text over HTTP/1; over HTTP/2 scheme and authority stand before it. `HOST` is the route's.
    fn glued(mut self, target: &str, location: &str) -> Self {
        let to = |protocol: Protocol| {
            let origin =
                if protocol.http2() { format!("{}://HOST", protocol.scheme()) } else { String::new() };
            Answer::To(format!("{origin}{location}"))
        };
        self.asked.push((target.to_owned(), Protocol::ALL.map(to)));
        self
    }

    /// A Location in plaintext; over TLS the backend gets the request.
    fn plaintext(mut self, target: &str, location: &str) -> Self {
        let to = |protocol: Protocol| {
            if protocol.tls() { Answer::Backend } else { Answer::To(location.to_owned()) }
        };
        self.asked.push((target.to_owned(), Protocol::ALL.map(to)));
        self
    }
}

/// Redirects that change the path, with their surprising effects.
fn path_forms() -> Vec<Form> {
    let uri = |uri: &str| Form::new(json!({ "uri": uri, "regex_uri": [], "append_query_string": true }));
    let regex = |pairs: Value| Form::new(json!({ "regex_uri": pairs, "append_query_string": true }));
    let long = format!("/old/{}", "x".repeat(60_000));
    vec![
        // The query is kept as it is, an empty one is lost; a fragment never counted.
        uri("/new")
            .glued("/old?a=b&a=b&A=b", "/new?a=b&a=b&A=b")
            .glued("/old?a=%2F%26+x?c", "/new?a=%2F%26+x?c")
            .glued("/old?ä", "/new?ä")
            .glued("/old?", "/new")
            .glued("//other.test/x?y", "/new?y"),
        Form::new(json!({ "uri": "/new", "regex_uri": [] })).glued("/old?a=b", "/new"),
        // A query of the target comes first, and stands for an equal one of the request.
        uri("/new?z=1")
            .glued("/old", "/new?z=1")
            .glued("/old?a=b", "/new?z=1&a=b")
            .glued("/old?z=1", "/new?z=1")
            .glued("/old?z=1&z=1", "/new?z=1&z=1&z=1"),
        // `uri` has no placeholders.
        uri("/a%2Fb/$1/$x/${1}").glued("/old?a", "/a%2Fb/$1/$x/${1}?a"),
        uri("/ä").glued("/old", "/ä"),
        // A URI without exactly one leading slash leads elsewhere.
        uri("//other.test/x").glued("/old?a", "//other.test/x?a"),
        uri("new").glued("/old?a", "new?a"),
        uri("/new#part").glued("/old?a", "/new"),
        // An invalid URI causes no redirect: the backend gets the request.
        uri("/sp ace").always("/old", &Answer::Backend),
        uri("/a<b").always("/old", &Answer::Backend),
        // Other hosts are for HTTP/1 only.
        uri("https://other.test/x").glued("/old?a", "https://other.test/x?a"),
        regex(json!(["^/(.*)$", "https://other.test/$1"])).glued("/old?a", "https://other.test/old?a"),
        // Captured text is given back raw, and nothing is replaced in it.
        regex(json!(["^/old(/.*)?$", "/new$1"]))
            .glued("/old", "/new")
            .glued("/old/", "/new/")
            .glued("/old/x%2Fy/%3F?a=b", "/new/x%2Fy/%3F?a=b")
            .glued("/old/$1/$2", "/new/$1/$2")
            .glued("/old//x", "/new//x")
            .glued("/old/a|b\"c\\d{e}^f/ä", "/new/a|b\"c\\d{e}^f/ä")
            .glued("/old/x?", "/new/x")
            .glued(&long, &long.replace("/old", "/new"))
            // No pattern matches, so it redirects to where it came from.
            .glued("/older?a=b", "/older?a=b"),
        // The remaining path starts with two slashes: over HTTP/1 that is a host.
        regex(json!(["^/old(?:/(.*))?$", "/$1"]))
            .glued("/old", "/")
            .glued("/old/x", "/x")
            .glued("/old//other.test/x", "//other.test/x")
            .glued("/old/%2Fother.test", "/%2Fother.test"),
        // Only `$` and digits, not zero, is a group; one that is not there is nothing. There is no escape.
        regex(json!(["^/(o)ld$", "/$$1$0$name${1}$10.$2.$1"])).glued("/old", "/$o$0$name${1}..o"),
        regex(json!([])).always("/old", &Answer::Backend),
    ]
}

/// Redirects to HTTPS.
fn scheme_forms() -> Vec<Form> {
    let to = |redirect_host: &str| {
        Form::new(json!({ "http_to_https": true, "redirect_host": redirect_host, "regex_uri": [] }))
    };
    let mut also_uri = to("secure.test").plaintext("/p?a", "https://secure.test/p?a");
    also_uri.config["uri"] = json!("/x");
    for (protocol, answer) in Protocol::ALL.into_iter().zip(&mut also_uri.asked[0].1) {
        match protocol {
            Protocol::Http1 | Protocol::H2c => {}
            Protocol::HttpsHttp1 => *answer = Answer::To("/x".to_owned()),
            Protocol::HttpsHttp2 => *answer = Answer::To("https://HOST/x".to_owned()),
        }
    }
    let long = format!("/{}", "x".repeat(60_000));
    let mut no_host = to("no host").plaintext("/p", "");
    for (protocol, answer) in Protocol::ALL.into_iter().zip(&mut no_host.asked[0].1) {
        if !protocol.tls() {
            *answer = Answer::Status(500);
        }
    }
    vec![
        to("secure.test")
            .plaintext("/", "https://secure.test/")
            .plaintext("/p%2Fq?a=b&a=b", "https://secure.test/p%2Fq?a=b&a=b")
            .plaintext("/p?", "https://secure.test/p?")
            .plaintext("//x/y?$1", "https://secure.test//x/y?$1")
            .plaintext("/a|b/ä", "https://secure.test/a|b/ä")
            .plaintext(&long, &format!("https://secure.test{long}")),
        to("secure.test:8443").plaintext("/p?a", "https://secure.test:8443/p?a"),
        to("[::1]:8443").plaintext("/p?a", "https://[::1]:8443/p?a"),
        // A well-known port is printed when it is written.
        to("secure.test:443").plaintext("/p?a", "https://secure.test:443/p?a"),
        // Over TLS the other fields count.
        also_uri,
        no_host,
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_redirects_in_ways_that_may_surprise() {
    const TEST: &str = "native redirects, in full";
    let Some(binary) = binary(TEST) else { return };
    let mut forms = path_forms();
    forms.extend(scheme_forms());
    let plugins: Vec<Value> = forms.iter().map(|form| redirect(&form.config)).collect();
    let upstream = json!({});
    let routes = plugins.iter().map(|plugins| (plugins, &upstream));
    let harness = Harness::start(&binary, &format!("{SCOPES}/surprises"), routes).await;
    let mut compared = 0;
    for (index, form) in forms.iter().enumerate() {
        for (target, answers) in &form.asked {
            for (protocol, expected) in Protocol::ALL.into_iter().zip(answers) {
                let request = get(target);
                let reply = harness.ask(protocol, index, &request).await;
                let expected = match expected {
                    Answer::To(location) => Answer::To(location.replace("HOST", &host(index))),
                    Answer::Backend | Answer::Status(_) => expected.clone(),
                };
                assert_eq!(Answer::from(&reply), expected, "{} {protocol:?} {target}", form.config);
                // The model knows no errors.
                if !matches!(expected, Answer::Status(_)) {
                    let modelled = Answer::from(harness.outcome(protocol, index, &request));
                    assert_eq!(modelled, expected, "the model: {} {protocol:?} {target}", form.config);
                }
                compared += 1;
            }
        }
    }
    print_message(&format!("{TEST}: {compared} answers of {} configurations", forms.len()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirects_of_pingsix_have_the_claimed_scheme_and_authority() {
    const TEST: &str = "native redirects and clients";
    let Some(binary) = binary(TEST) else { return };
    let path = redirect(&json!({ "uri": "/new", "regex_uri": [], "append_query_string": true }));
    let scheme = redirect(&json!({ "http_to_https": true, "redirect_host": "secure.test", "regex_uri": [] }));
    let fixed = json!({
        "fault-injection": {
            "abort": { "http_status": 301, "headers": { "Location": "https://other.test:8443/x?y" } },
        },
    });
    let upstream = json!({});
    let routes = [&path, &scheme, &fixed].map(|plugins| (plugins, &upstream));
    let harness = Harness::start(&binary, &format!("{SCOPES}/claims"), routes).await;
    let to = |location: String| Answer::To(location);

    for protocol in Protocol::ALL {
        // The port is the client's, not the listener's, and is printed also when it is the well-known one.
        for port in [":80", ":443", ":12345"] {
            let request = Request::get(port, "/old?a");
            let origin = format!("{}://{}{port}", protocol.scheme(), host(0));
            let expected = format!("{}/new?a", if protocol.http2() { &origin } else { "" });
            assert_eq!(Answer::from(&harness.ask(protocol, 0, &request).await), to(expected), "{protocol:?}");
        }
        // `X-Forwarded-Proto` has no effect.
        let request = get("/p").header("X-Forwarded-Proto", "https");
        let expected = if protocol.tls() { Answer::Backend } else { to("https://secure.test/p".to_owned()) };
        assert_eq!(Answer::from(&harness.ask(protocol, 1, &request).await), expected, "{protocol:?}");
        // An answer with a fixed Location is the same over every protocol, and loses the query.
        for request in [get("/old"), get("/old?a=b"), get("/old").method("HEAD"), get("/old").method("POST")]
        {
            let reply = harness.ask(protocol, 2, &request).await;
            assert_eq!(
                (reply.status, Answer::from(&reply)),
                (301, to("https://other.test:8443/x?y".to_owned())),
                "{protocol:?} {request:?}"
            );
        }
        // Over HTTP/2 a target of more than 64 KiB is refused, whatever the route.
        let long = format!("/{}", "x".repeat(65_500));
        for route in [0, 1] {
            let reply = harness.ask(protocol, route, &get(&long)).await;
            assert_eq!(reply.status == 431, protocol.http2(), "{protocol:?} {route}: {}", reply.status);
        }
    }
    // In plaintext a client of HTTP/2 may claim `https`: the redirect to HTTPS lets it through to the backend.
    assert_eq!(Answer::from(&harness.ask_with_claimed_scheme("https", 1, &get("/p")).await), Answer::Backend);
    let reply = harness.ask_with_claimed_scheme("https", 0, &get("/old")).await;
    assert_eq!(Answer::from(&reply), to(format!("https://{}/new", host(0))));
    print_message(&format!("{TEST}: compared over four protocols"));
}
