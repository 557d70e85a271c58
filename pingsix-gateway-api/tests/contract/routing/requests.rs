//! Random requests over the vocabulary of the tables and its neighbourhood.

use pingsix_translate::pingsix::Request;

use crate::client::speaks_http2;
use crate::rng::SeededRng;

const HOSTS: [&str; 18] = [
    "a.t",
    "b.a.t",
    "c.t",
    "x.b.a.t",
    "t",
    ".t",
    "a.t:8080",
    "A.T",
    "B.a.T:80",
    "a.t.",
    "b.a.t.",
    "*.t",
    "x.*.t",
    "at",
    "127.0.0.1",
    "[::1]:80",
    "a.t:",
    "other",
];

const PATHS: [&str; 32] = [
    "/",
    "//",
    "/a",
    "/a/",
    "/a//",
    "/a/b",
    "/a/b/",
    "/a/b/c",
    "/a/b//c",
    "/ab",
    "/abc",
    "/a//b",
    "/a//b/c",
    "/b",
    "/b/",
    "/b/c",
    "/A",
    "/A/b",
    "/a%2Fb",
    "/a%2fb",
    "/%61/b",
    "/a/./b",
    "/a/../b",
    "/{*p}",
    "/a/{*p}",
    "/v1",
    "/v",
    "/q/b",
    "/a/x/c",
    "/a;v=1/b",
    "/a/b%3Fv=1",
    "/~a",
];

const METHODS: [&str; 8] = ["GET", "POST", "HEAD", "OPTIONS", "PUT", "PURGE", "get", "UNKNOWN-1"];

const QUERIES: [&str; 15] = [
    "",
    "v=1",
    "v=2",
    "v=%31",
    "%76=1",
    "v",
    "v=",
    "V=1",
    "w&v=1",
    "v=1&v=2",
    "v=2&v=1",
    "w=1+1&v=1",
    "w=a=b",
    "v=1?v=2",
    "&&v=1",
];

const HEADERS: [(&str, &str); 12] = [
    ("x-v", "1"),
    ("X-V", "1"),
    ("x-V", "2"),
    ("x-v", ""),
    ("x_v", "1"),
    ("X_V", "2"),
    ("x-v", "1, 2"),
    ("x-v", "\u{e4}"),
    ("cookie", "v=1"),
    ("x-vv", "1"),
    ("x-v", "1\t1"),
    ("x-forwarded-proto", "https"),
];

/// Requests of many kinds.
pub(super) fn draw(rng: &mut SeededRng, count: usize) -> Vec<Request> {
    (0..count).map(|_| one(rng)).collect()
}

fn one(rng: &mut SeededRng) -> Request {
    // Half of the requests are plain, so that most of them find a route.
    let plain = rng.percent(50);
    let host = if plain { rng.one(&HOSTS[..4]) } else { rng.one(&HOSTS) };
    let mut request = Request::get(host, rng.one(&PATHS));
    request.peer = Some(([127, 0, 0, 1], 1).into());
    if !plain || rng.percent(20) {
        rng.one(&METHODS).clone_into(&mut request.method);
    }
    if rng.percent(40) {
        request.query = Some(rng.one(&QUERIES).to_owned());
    }
    for _ in 0..rng.below(3) {
        let (name, value) = HEADERS[rng.below(HEADERS.len())];
        request = request.header(name, value);
    }
    if rng.percent(10) {
        request = preflight(rng, request);
    }
    if rng.percent(5) {
        // Sent as HTTP/1.0.
        request.host = None;
    } else if rng.percent(15) && speaks_http2(&request) {
        request = request.over_http2();
    }
    request
}

fn preflight(rng: &mut SeededRng, mut request: Request) -> Request {
    if rng.percent(80) {
        "OPTIONS".clone_into(&mut request.method);
    }
    if rng.percent(80) {
        request = request.header("Origin", rng.one(&["http://o.t", "http://q.t"]));
    }
    if rng.percent(80) {
        request =
            request.header("Access-Control-Request-Method", rng.one(&["GET", "POST", "PURGE", "get", "G T"]));
    }
    if rng.percent(40) {
        request = request.header("Access-Control-Request-Headers", rng.one(&["x-a", "x-a, x-c", "X-B"]));
    }
    request
}
