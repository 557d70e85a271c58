use http::{HeaderName, HeaderValue};
use proptest::prelude::*;

use super::*;

fn listener(scheme: RedirectScheme, port: u16) -> RedirectListener {
    RedirectListener { scheme, port: NonZeroU16::new(port).unwrap() }
}

fn keep() -> RedirectInstruction {
    RedirectInstruction {
        status: RedirectStatus::Found,
        listener: listener(RedirectScheme::Http, 80),
        scheme: None,
        hostname: None,
        port: None,
        path: RedirectPath::Keep,
    }
}

fn prefix(matched: &str, replacement: &str) -> RedirectInstruction {
    let path = RedirectPath::Prefix { matched: matched.to_owned(), replacement: replacement.to_owned() };
    RedirectInstruction { path, ..keep() }
}

fn headers(values: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(REDIRECT_HEADER, HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn location(instruction: &RedirectInstruction, host: &str, target: &str) -> Result<String, LocationError> {
    instruction.location(host, &PathAndQuery::try_from(target).unwrap())
}

#[test]
fn every_final_status_has_a_name_that_is_read_back() {
    for status in 200..=599 {
        let host = status_host(status);
        assert_eq!(parse_status_host(&host).unwrap().as_u16(), status);
        assert_eq!(parse_status_host(&host.to_ascii_uppercase()).unwrap().as_u16(), status);
        assert_eq!(parse_status_host(&format!("{host}:8089")).unwrap().as_u16(), status);
    }
}

#[test]
fn a_status_that_is_not_final_is_named_500() {
    for status in [0, 100, 199, 600, 999, u16::MAX] {
        assert_eq!(status_host(status), status_host(500));
    }
}

#[test]
fn names_that_are_not_status_names_are_refused() {
    for host in [
        "",
        "status-404",
        "status-.responder.pingsix.internal",
        "status-101.responder.pingsix.internal",
        "status-199.responder.pingsix.internal",
        "status-600.responder.pingsix.internal",
        "status-0404.responder.pingsix.internal",
        "status-+40.responder.pingsix.internal",
        "status-404.responder.pingsix.internal.",
        "status-404.responder.pingsix.internal.example.com",
        "status-404responder.pingsix.internal",
        "x.status-404.responder.pingsix.internal",
        "xstatus-404.responder.pingsix.internal",
        "responder.pingsix.internal",
        " status-404.responder.pingsix.internal",
        "status-404.responder.pingsix.internal:x",
        "status-404.responder.pingsix.internal:123456",
        "a@status-404.responder.pingsix.internal",
        "status-404.responder.pingsix.internal/",
    ] {
        assert_eq!(parse_status_host(host), None, "{host:?}");
    }
}

#[test]
fn a_host_is_read_without_its_port() {
    for (authority, host) in [
        ("example.com", Some("example.com")),
        ("Example.com:8080", Some("Example.com")),
        ("example.com:", Some("example.com")),
        ("example.com.", Some("example.com.")),
        ("a_b", Some("a_b")),
        ("10.0.0.1:80", Some("10.0.0.1")),
        ("[::1]:80", Some("[::1]")),
        ("[::1]", Some("[::1]")),
        ("", None),
        (":80", None),
        ("[]", None),
        ("[::1", None),
        ("[::1]x", None),
        ("[evil.com/]", None),
        ("::1", None),
        ("a:b", None),
        ("a:1:2", None),
        ("user@example.com", None),
        ("example.com/path", None),
        ("example.com\\x", None),
        ("exämple.com", None),
        ("a b", None),
    ] {
        assert_eq!(host_without_port(authority), host, "{authority:?}");
    }
}

#[test]
fn scheme_and_port_of_the_target_follow_the_specification() {
    use RedirectScheme::{Http, Https};
    for (listener, scheme, port, origin) in [
        ((Http, 80), None, None, "http://example.org"),
        ((Http, 8080), None, None, "http://example.org:8080"),
        ((Https, 443), None, None, "https://example.org"),
        ((Https, 8443), None, None, "https://example.org:8443"),
        // A port that is well known for the other scheme is printed.
        ((Http, 443), None, None, "http://example.org:443"),
        ((Https, 80), None, None, "https://example.org:80"),
        // A scheme brings its own port.
        ((Http, 8080), Some(Https), None, "https://example.org"),
        ((Http, 8080), Some(Http), None, "http://example.org"),
        ((Https, 443), Some(Http), None, "http://example.org"),
        ((Https, 8443), Some(Https), None, "https://example.org"),
        // An explicit port stays.
        ((Http, 80), None, Some(8080), "http://example.org:8080"),
        ((Http, 8080), None, Some(80), "http://example.org"),
        ((Http, 80), None, Some(443), "http://example.org:443"),
        ((Http, 80), Some(Https), Some(443), "https://example.org"),
        ((Http, 80), Some(Https), Some(8443), "https://example.org:8443"),
        ((Https, 443), Some(Http), Some(80), "http://example.org"),
        ((Https, 443), Some(Http), Some(443), "http://example.org:443"),
    ] {
        let instruction = RedirectInstruction {
            listener: self::listener(listener.0, listener.1),
            scheme,
            port: port.and_then(NonZeroU16::new),
            ..keep()
        };
        // The port of the request plays no part.
        for host in ["example.org", "example.org:1234"] {
            assert_eq!(
                location(&instruction, host, "/p?q=1"),
                Ok(format!("{origin}/p?q=1")),
                "{instruction}"
            );
        }
    }
}

#[test]
fn prefixes_are_replaced_as_in_the_table_of_the_specification() {
    for (matched, replacement, path, result) in [
        ("/foo", "/xyz", "/foo/bar", "/xyz/bar"),
        ("/foo/", "/xyz", "/foo/bar", "/xyz/bar"),
        ("/foo", "/xyz/", "/foo/bar", "/xyz/bar"),
        ("/foo/", "/xyz/", "/foo/bar", "/xyz/bar"),
        ("/foo", "/xyz", "/foo", "/xyz"),
        ("/foo/", "/xyz", "/foo", "/xyz"),
        ("/foo", "/xyz", "/foo/", "/xyz/"),
        ("/foo", "/xyz/", "/foo", "/xyz/"),
        ("/foo", "/xyz/", "/foo/", "/xyz/"),
        ("/foo", "", "/foo/bar", "/bar"),
        ("/foo", "/", "/foo/bar", "/bar"),
        ("/foo", "", "/foo", "/"),
        ("/foo", "", "/foo/", "/"),
        ("/foo", "/", "/foo", "/"),
        ("/foo", "/", "/foo/", "/"),
        ("/", "/xyz", "/", "/xyz/"),
        ("/", "/xyz", "/bar", "/xyz/bar"),
        ("/", "/", "/bar", "/bar"),
        ("/foo", "xyz", "/foo/bar", "/xyz/bar"),
        ("/foo", "/a b?c#d%20é", "/foo/x", "/a%20b%3Fc%23d%20%C3%A9/x"),
        ("/foo", "/xyz", "/foo//evil.example/%2F", "/xyz//evil.example/%2F"),
        ("/foo", "/", "/foo//evil.example", "//evil.example"),
    ] {
        let got = location(&prefix(matched, replacement), "example.org", &format!("{path}?a=b&a=%20"));
        assert_eq!(
            got,
            Ok(format!("http://example.org{result}?a=b&a=%20")),
            "{matched} {replacement} {path}"
        );
    }
}

#[test]
fn a_path_that_is_not_below_the_prefix_has_no_target() {
    for path in ["/", "/fo", "/foobar", "/Foo", "/x/foo"] {
        assert_eq!(
            location(&prefix("/foo", "/xyz"), "example.org", path),
            Err(LocationError::Prefix),
            "{path}"
        );
    }
}

#[test]
fn host_and_path_are_replaced_and_kept() {
    let hostname = RedirectInstruction { hostname: RedirectHostname::new("other.example"), ..keep() };
    assert_eq!(location(&hostname, "example.org:80", "/p?"), Ok("http://other.example/p?".to_owned()));
    assert_eq!(location(&hostname, "not a host", "/"), Ok("http://other.example/".to_owned()));
    assert_eq!(location(&hostname, "", "*"), Ok("http://other.example/".to_owned()));
    let full = |value: &str| RedirectInstruction { path: RedirectPath::Full(value.to_owned()), ..keep() };
    assert_eq!(location(&full("/new"), "a.b", "/old/x?q=1"), Ok("http://a.b/new?q=1".to_owned()));
    assert_eq!(location(&full(""), "a.b", "/old"), Ok("http://a.b/".to_owned()));
    assert_eq!(location(&full("new?x\r\nset-cookie: a"), "a.b", "/"), {
        Ok("http://a.b/new%3Fx%0D%0Aset-cookie:%20a".to_owned())
    });
    assert_eq!(location(&keep(), "[::1]:80", "//x/..?a=b?c"), Ok("http://[::1]//x/..?a=b?c".to_owned()));
    for host in ["", "user@a.b", "a.b/..", "a b"] {
        assert_eq!(location(&keep(), host, "/"), Err(LocationError::Host), "{host:?}");
    }
}

#[test]
fn an_instruction_is_written_in_full() {
    assert_eq!(keep().to_headers(), [(REDIRECT_HEADER, "v1 302 http:80 - - - keep".to_owned())]);
    let all = RedirectInstruction {
        status: RedirectStatus::PermanentRedirect,
        listener: listener(RedirectScheme::Https, 8443),
        scheme: Some(RedirectScheme::Http),
        hostname: RedirectHostname::new("other.example"),
        port: NonZeroU16::new(8080),
        path: RedirectPath::Prefix { matched: "/a:b".to_owned(), replacement: "/c d%".to_owned() },
    };
    let expected = "v1 308 https:8443 http other.example 8080 prefix:/a%3Ab:/c%20d%25";
    assert_eq!(all.to_headers(), [(REDIRECT_HEADER, expected.to_owned())]);
    assert_eq!(RedirectInstruction::from_headers(&headers(&[expected])), Ok(Some(all)));
}

#[test]
fn no_header_is_no_instruction() {
    assert_eq!(RedirectInstruction::from_headers(&HeaderMap::new()), Ok(None));
}

#[test]
fn a_repeated_instruction_is_refused() {
    let value = keep().to_string();
    for values in [[value.as_str(), value.as_str()], [value.as_str(), ""], ["x", value.as_str()]] {
        assert_eq!(RedirectInstruction::from_headers(&headers(&values)), Err(InstructionError::Repeated));
    }
}

#[test]
fn anything_but_the_one_spelling_is_refused() {
    for value in [
        "",
        "v1",
        "302",
        "v2 302 http:80 - - - keep",
        "v1 302 http:80 - - -",
        "v1 302 http:80 - - - keep ",
        "v1 302 http:80 - - - keep x",
        "v1  302 http:80 - - - keep",
        "v1 300 http:80 - - - keep",
        "v1 304 http:80 - - - keep",
        "v1 +302 http:80 - - - keep",
        "v1 302 http:0 - - - keep",
        "v1 302 http:080 - - - keep",
        "v1 302 http:65536 - - - keep",
        "v1 302 http - - - keep",
        "v1 302 ftp:80 - - - keep",
        "v1 302 http:80 HTTPS - - keep",
        "v1 302 http:80 javascript - - keep",
        "v1 302 http:80 - *.example.com - keep",
        "v1 302 http:80 - EXAMPLE.com - keep",
        "v1 302 http:80 - a.example/ - keep",
        "v1 302 http:80 - a..b - keep",
        "v1 302 http:80 - - 0 keep",
        "v1 302 http:80 - - - KEEP",
        "v1 302 http:80 - - - keep:",
        "v1 302 http:80 - - - full",
        "v1 302 http:80 - - - full:/a:b",
        "v1 302 http:80 - - - full:/%2",
        "v1 302 http:80 - - - full:/%zz",
        "v1 302 http:80 - - - full:/%2f",
        "v1 302 http:80 - - - full:/%61",
        "v1 302 http:80 - - - full:/%FF",
        "v1 302 http:80 - - - full:/a?b",
        "v1 302 http:80 - - - prefix:/a",
        "v1 302 http:80 - - - prefix:/a:/b:/c",
        "v1 302 http:80 - - - other:/a",
    ] {
        let got = RedirectInstruction::from_headers(&headers(&[value]));
        assert_eq!(got, Err(InstructionError::Malformed), "{value:?}");
    }
    let mut opaque = HeaderMap::new();
    opaque.insert(REDIRECT_HEADER, HeaderValue::from_bytes(b"v1 \xff").unwrap());
    assert_eq!(RedirectInstruction::from_headers(&opaque), Err(InstructionError::Malformed));
}

#[test]
fn the_header_name_is_one() {
    assert_eq!(HeaderName::from_static(REDIRECT_HEADER).as_str(), REDIRECT_HEADER);
}

fn instructions() -> impl Strategy<Value = RedirectInstruction> {
    let scheme = || prop_oneof![Just(RedirectScheme::Http), Just(RedirectScheme::Https)];
    let port = || (1..=u16::MAX).prop_map(|port| NonZeroU16::new(port).unwrap());
    let hostname =
        "[a-z0-9]{1,9}(\\.[a-z0-9]{1,9}){0,3}".prop_map(|name| RedirectHostname::new(&name).unwrap());
    let path = prop_oneof![
        Just(RedirectPath::Keep),
        any::<String>().prop_map(RedirectPath::Full),
        any::<(String, String)>()
            .prop_map(|(matched, replacement)| RedirectPath::Prefix { matched, replacement }),
    ];
    (
        proptest::sample::select(RedirectStatus::ALL.to_vec()),
        (scheme(), port()),
        proptest::option::of(scheme()),
        proptest::option::of(hostname),
        proptest::option::of(port()),
        path,
    )
        .prop_map(|(status, (listener_scheme, listener_port), scheme, hostname, port, path)| {
            let listener = RedirectListener { scheme: listener_scheme, port: listener_port };
            RedirectInstruction { status, listener, scheme, hostname, port, path }
        })
}

proptest! {
    #[test]
    fn an_encoded_redirect_instruction_decodes_to_itself(instruction in instructions()) {
        let [(name, value)] = instruction.to_headers();
        prop_assert!(value.bytes().all(|b| b == b' ' || b.is_ascii_graphic()));
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_str(&value).unwrap());
        prop_assert_eq!(RedirectInstruction::from_headers(&headers), Ok(Some(instruction)));
    }

    #[test]
    fn a_location_is_an_absolute_url_of_the_chosen_host(
        instruction in instructions(),
        host in "\\PC{0,12}",
        target in "/[!-~]{0,20}",
    ) {
        let Ok(target) = PathAndQuery::try_from(target.as_str()) else { return Ok(()) };
        let Ok(location) = instruction.location(&host, &target) else { return Ok(()) };
        let url: http::Uri = location.parse().unwrap();
        let expected = match &instruction.hostname {
            Some(hostname) => hostname.as_str(),
            None => host_without_port(&host).unwrap(),
        };
        prop_assert_eq!(url.host(), Some(expected));
        prop_assert_eq!(url.query(), target.query());
        prop_assert!(HeaderValue::from_str(&location).is_ok());
    }
}
