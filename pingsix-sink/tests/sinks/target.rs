//! Targets by their URLs.

use pingsix_sink::Target;
use pingsix_sink::target::{OpenError, TargetError};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// URLs, and their display forms if different. A form shows every parameter that is not the default.
const URLS: [(&str, Option<&str>); 19] = [
    ("embedded:", None),
    ("embedded:?listen=[::1]:2379", None),
    ("etcd://a", Some("etcd://a:2379")),
    ("etcd://a:2379/", Some("etcd://a:2379")),
    ("etcd://a:2379?allow-plaintext=true", None),
    ("etcd://a:2379?keyring-file=/run/keyring&max-txn-ops=1024", None),
    ("etcd://root@a:1,[::1]:2,10.0.0.1:3?password-file=/run/secret", None),
    ("etcd://a%40b%3Ac@a:1", None),
    ("etcds://a:2379?ca=/ca.crt", None),
    ("etcds://a:2379?ca=/ca.crt&cert=/c&key=/k&domain=etcd.test", None),
    ("admin+http://127.0.0.1:9181", None),
    (
        "admin+http://a/?key-env=KEY&allow-plaintext=true",
        Some("admin+http://a?key-env=KEY&allow-plaintext=true"),
    ),
    ("admin+https://a:1?key-file=/k&ca=/ca.crt", None),
    ("admin+https://a:1?ca=/ca.crt&cert=/c&cert-key=/k", None),
    ("file:/etc/config.yaml", None),
    ("file:///etc/config.yaml", Some("file:/etc/config.yaml")),
    ("file:/%2F/a//", Some("file:/a/")),
    ("file:config.yaml", None),
    ("file:/a%20b%3F%25/?base=/c%26d%23", None),
];

#[test]
fn a_url_is_shown_as_its_target() {
    for (url, shown) in URLS {
        let target: Target = url.parse().unwrap_or_else(|error| panic!("{url}: {error}"));
        assert_eq!(target.to_string(), shown.unwrap_or(url));
        assert_eq!(target.to_string().parse(), Ok(target), "{url}");
    }
    let listen = |url: &str| url.parse::<Target>().unwrap().listen();
    assert_eq!((listen("embedded:"), listen("etcd://a")), (None, None));
    assert_eq!(listen("embedded:?listen=[::1]:2379"), Some("[::1]:2379".parse().unwrap()));
}

#[test]
fn an_error_of_a_url_names_the_part() {
    for (url, problem) in [
        (
            "",
            "a target begins with one of embedded:, etcd://, etcds://, admin+http://, admin+https://, file:",
        ),
        ("http://a", "a target begins with one of"),
        ("etcd:a", "a target begins with one of"),
        ("embedded:/x", "embedded: path: there is none"),
        ("embedded:?listen=localhost:1", "embedded: parameter listen: expected an IP address with a port"),
        ("embedded:?listen=", "embedded: parameter listen: it is empty"),
        ("embedded:?lisen=1", "embedded: parameter lisen: the target has no such parameter"),
        ("embedded:?listen=[::1]:1&listen=[::1]:2", "embedded: parameter listen: given twice"),
        ("embedded:#x", "embedded: #: a target has no fragment"),
        ("etcd://", "etcd:// host 1: expected HOST or HOST:PORT"),
        ("etcd://a,,b", "etcd:// host 2: expected"),
        ("etcd://a:0", "etcd:// host 1: its port is not a number from 1 to 65535"),
        ("etcd://a:99999", "etcd:// host 1: its port"),
        ("etcd://::1:2379", "etcd:// host 1: expected HOST or HOST:PORT, IPv6 addresses in brackets"),
        ("etcd://[::g]:1", "etcd:// host 1: expected"),
        ("etcd://a/prefix", "etcd:// path: there is none"),
        ("etcd://@a", "etcd:// user: it is empty"),
        ("etcd://a?ca=/x", "etcd:// parameter ca: only etcds:// has one"),
        ("etcd://a?password-env=X", "etcd:// parameter password-env: the target has no such parameter"),
        ("etcds://a", "etcds:// parameter ca: missing"),
        (
            "etcds://a?ca=/x&allow-plaintext=true",
            "etcds:// parameter allow-plaintext: the target has no such parameter",
        ),
        ("etcds://a?ca=/x&cert=/c", "etcds:// parameter key: missing beside cert"),
        ("etcds://a?ca=/x&key=/c", "etcds:// parameter cert: missing beside key"),
        ("admin+http://", "admin+http:// host: expected HOST or HOST:PORT"),
        ("admin+http://a/apisix", "admin+http:// path: there is none"),
        ("admin+http://a?ca=/x", "admin+http:// parameter ca: only admin+https:// has one"),
        ("admin+https://a", "admin+https:// parameter ca: missing"),
        ("admin+https://a?ca=/x&cert=/c", "admin+https:// parameter cert-key: missing beside cert"),
        ("admin+https://a?ca=/x&cert-key=/k", "admin+https:// parameter cert: missing beside cert-key"),
        ("admin+http://a?cert=/c&cert-key=/k", "admin+http:// parameter cert: only admin+https:// has one"),
        (
            "admin+http://a?allow-plaintext=yes",
            "admin+http:// parameter allow-plaintext: expected true or false",
        ),
        (
            "admin+http://a?key-env=A&key-file=/b",
            "admin+http:// parameter key-file: excludes the parameter key-env",
        ),
        ("file:", "file: path: missing"),
        ("file:/", "file: path: the root directory"),
        ("file:/%2F", "file: path: the root directory"),
        ("file://host/path", "file: host: files of this machine alone"),
        ("file:/%ff", "file: path: its percent-encoding is not UTF-8"),
        ("file:/a?base=%ff", "file: parameter base: its percent-encoding is not UTF-8"),
        ("embedded:x", "embedded: path: there is none"),
    ] {
        let error = url.parse::<Target>().unwrap_err().to_string();
        assert!(error.starts_with(problem), "{url}: {error}");
    }
}

/// Schemes, and significant pieces after them.
fn url() -> impl Strategy<Value = String> {
    let scheme = select(vec![
        "embedded:",
        "etcd://",
        "etcds://",
        "admin+http://",
        "admin+https://",
        "file:",
        "file://",
        "",
    ]);
    let piece = prop_oneof![
        4 => select(vec![
            "?", "&", "=", "/", ":", "@", ",", "[", "]", "%", "%20", "%2F", "%ff", "#", ".", "a", "::1", "2379", "ca=/x", "cert=/x",
            "key=/x", "key-env=K", "key-file=/k", "password-env=P", "keyring-env=R", "base=/b", "listen=[::1]:1", "domain=d", "allow-plaintext=true",
        ])
        .prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    (scheme, vec(piece, 0..10)).prop_map(|(scheme, pieces)| format!("{scheme}{}", pieces.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn an_accepted_url_is_displayed_as_an_equal_target(url in url()) {
        if let Ok(target) = url.parse::<Target>() {
            prop_assert_eq!(target.to_string().parse(), Ok(target));
        }
    }
}

#[test]
fn a_secret_in_a_url_is_refused_with_advice_and_not_repeated() {
    for url in [
        "etcd://root:sesame@a:1",
        "etcd://root:ses@me@a:1",
        "etcd://root@a:1?password=sesame",
        "etcd://a:1?keyring=sesame",
        "admin+http://:sesame@a",
        "admin+http://sesame@a",
        "admin+http://a?key=sesame",
        "admin+http://a?api-key=sesame",
    ] {
        let error = url.parse::<Target>().unwrap_err();
        assert!(matches!(error, TargetError::Password { .. }), "{url}: {error}");
        let text = format!("{error} {error:?}");
        assert!(text.contains("-env=NAME") && text.contains("-file=PATH") && !text.contains("ses"), "{text}");
    }
    let error = "etcd://root:sesame".parse::<Target>().unwrap_err();
    assert!(!error.to_string().contains("sesame"), "{error}");
    let error = "embedded:?listen=[::1]:1&SESAME=1".parse::<Target>().unwrap_err();
    assert!(!error.to_string().contains("SESAME"), "{error}");
}

#[tokio::test]
async fn an_etcd_of_another_machine_is_talked_to_in_plaintext_only_when_asked() {
    let open = async |url: &str| match url.parse::<Target>().unwrap().open(&|_| None).await {
        Ok(sink) => Ok(sink),
        Err(OpenError::Sink(error)) => Err(error),
        Err(error) => panic!("{url}: {error}"),
    };
    for url in ["etcd://a", "etcd://127.0.0.1:1,10.0.0.1:2"] {
        let error = open(url).await.unwrap_err();
        assert_eq!((error.category(), error.is_retryable()), ("plaintext_beyond_loopback", false));
        let text = error.to_string();
        assert!(text.contains("allow_plaintext_beyond_loopback") && text.contains("allow-plaintext=true"));
        open(&format!("{url}?allow-plaintext=true")).await.unwrap();
    }
    assert!(open("etcd://127.0.0.1:1,10.0.0.1:2").await.unwrap_err().to_string().contains(" 10.0.0.1:2: "));
    open("etcd://localhost,127.0.0.1:1,[::1]:2").await.unwrap();
}
