use http::Request;
use pingsix_translate::responder::{REDIRECT_HEADER, status_host};

use super::*;

const KEEP: &str = "v1 301 http:80 https - - keep";

fn head(version: Version, target: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder().version(version).uri(target);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn h1(target: &str, headers: &[(&str, &str)]) -> Answer {
    answer(&head(Version::HTTP_11, target, headers))
}

fn h2(target: &str, headers: &[(&str, &str)]) -> Answer {
    answer(&head(Version::HTTP_2, target, headers))
}

fn redirect_to(location: &'static str) -> Answer {
    Answer::Redirect { status: StatusCode::MOVED_PERMANENTLY, location: HeaderValue::from_static(location) }
}

#[test]
fn the_host_of_a_status_is_answered_with_it() {
    let host = status_host(404);
    assert_eq!(h1("/a?b", &[("host", &host)]), Answer::Status(StatusCode::NOT_FOUND));
    assert_eq!(h2(&format!("http://{host}/a?b"), &[]), Answer::Status(StatusCode::NOT_FOUND));
    assert_eq!(h2(&format!("http://{host}/"), &[("host", &host)]), Answer::Status(StatusCode::NOT_FOUND));
    // A request that became HTTP/2 on the way may have a Host only.
    assert_eq!(h2("/", &[("host", &host)]), Answer::Status(StatusCode::NOT_FOUND));
}

#[test]
fn an_instruction_is_not_read_on_the_host_of_a_status() {
    for value in [KEEP, "nonsense"] {
        let headers = [("host", status_host(503)), (REDIRECT_HEADER, value.to_owned())];
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        assert_eq!(h1("/", &headers), Answer::Status(StatusCode::SERVICE_UNAVAILABLE));
    }
}

#[test]
fn the_authority_of_an_absolute_target_does_not_replace_the_host() {
    let (not_found, ok) = (status_host(404), status_host(200));
    assert_eq!(h1(&format!("http://{ok}/"), &[("host", &not_found)]), Answer::Status(StatusCode::NOT_FOUND));
    assert_eq!(h1(&format!("http://{ok}/"), &[("host", "a.example")]), Answer::Misdirected);
    assert_eq!(h1(&format!("http://{ok}/"), &[]), Answer::Host);
    assert_eq!(
        h1("http://evil.example/p?q", &[("host", "a.example"), (REDIRECT_HEADER, KEEP)]),
        redirect_to("https://a.example/p?q")
    );
}

#[test]
fn an_instruction_redirects() {
    assert_eq!(
        h1("/p?q", &[("host", "a.example:80"), (REDIRECT_HEADER, KEEP)]),
        redirect_to("https://a.example/p?q")
    );
    assert_eq!(
        h2("http://a.example:80/p?q", &[(REDIRECT_HEADER, KEEP)]),
        redirect_to("https://a.example/p?q")
    );
    assert_eq!(h1("*", &[("host", "a.example"), (REDIRECT_HEADER, KEEP)]), redirect_to("https://a.example/"));
}

#[test]
fn a_host_that_is_not_exactly_one_is_refused() {
    assert_eq!(h1("/", &[]), Answer::Host);
    assert_eq!(h1("/", &[("host", "")]), Answer::Host);
    assert_eq!(h1("/", &[("host", "a b")]), Answer::Host);
    assert_eq!(h1("/", &[("host", "a.example"), ("host", "a.example")]), Answer::Host);
    assert_eq!(h2("http://a.example/", &[("host", "b.example")]), Answer::Host);
    assert_eq!(h1("/", &[("host", "user@a.example"), (REDIRECT_HEADER, KEEP)]), Answer::Host);
}

#[test]
fn an_instruction_that_does_not_fit_is_the_error_of_the_gateway() {
    for value in ["", "v0 301 http:80 https - - keep", "v1 301 http:80 - - - prefix:/foo:/bar"] {
        assert_eq!(
            h1("/p", &[("host", "a.example"), (REDIRECT_HEADER, value)]),
            Answer::Instruction,
            "{value:?}"
        );
    }
    let twice = [("host", "a.example"), (REDIRECT_HEADER, KEEP), (REDIRECT_HEADER, KEEP)];
    assert_eq!(h1("/p", &twice), Answer::Instruction);
}

#[test]
fn everything_else_is_misdirected() {
    for host in ["a.example", "127.0.0.1:8089", "status-700.responder.pingsix.internal", "[::1]"] {
        assert_eq!(h1("/healthz", &[("host", host)]), Answer::Misdirected, "{host}");
    }
}
