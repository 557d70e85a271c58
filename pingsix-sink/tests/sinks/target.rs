//! Targets by their URLs.

use std::path::PathBuf;

use pingsix_sink::Target;
use pingsix_sink::file::FileLocation;
use pingsix_sink::target::{
    AdminTarget, Credential, EmbeddedTarget, Endpoint, EtcdTarget, EtcdUser, FileTarget, OpenError,
    PemSource, TargetError, TargetTls,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

fn env(name: &str) -> Credential {
    Credential::Env(name.to_owned())
}

fn endpoint(host: &str, port: u16) -> Endpoint {
    Endpoint { host: host.to_owned(), port }
}

fn admin(url: &str) -> AdminTarget {
    AdminTarget {
        url: url.parse().unwrap(),
        api_key: env("PINGSIX_ADMIN_KEY"),
        tls: None,
        allow_plaintext: false,
    }
}

fn etcd(host: &str, port: u16) -> EtcdTarget {
    EtcdTarget {
        endpoints: vec![endpoint(host, port)],
        user: None,
        tls: None,
        domain: None,
        allow_plaintext: false,
        keyring: None,
        max_txn_ops: None,
    }
}

/// URLs, their targets, and their display forms if different.
fn table() -> Vec<(&'static str, Target, Option<&'static str>)> {
    let plain = etcd("a", 2379);
    let file = |path: &str| FileTarget { location: FileLocation::File(path.into()), base: None };
    let pem = |path: &str| PemSource::File(path.into());
    let tls = |client| Some(TargetTls { ca: pem("/ca.crt"), client });
    vec![
        ("embedded:", Target::Embedded(EmbeddedTarget { listen: None }), None),
        (
            "embedded:?listen=[::1]:2379",
            Target::Embedded(EmbeddedTarget { listen: Some("[::1]:2379".parse().unwrap()) }),
            None,
        ),
        ("etcd://a", Target::Etcd(plain.clone()), Some("etcd://a:2379")),
        ("etcd://a:2379/", Target::Etcd(plain.clone()), Some("etcd://a:2379")),
        (
            "etcd://a:2379?allow-plaintext=true",
            Target::Etcd(EtcdTarget { allow_plaintext: true, ..plain.clone() }),
            None,
        ),
        (
            "etcd://a:2379?keyring-file=/run/keyring&max-txn-ops=1024",
            Target::Etcd(EtcdTarget {
                keyring: Some(Credential::File("/run/keyring".into())),
                max_txn_ops: Some(1024),
                ..plain.clone()
            }),
            None,
        ),
        (
            "etcd://root@a:1,[::1]:2,10.0.0.1:3?password-file=/run/secret",
            Target::Etcd(EtcdTarget {
                endpoints: vec![endpoint("a", 1), endpoint("[::1]", 2), endpoint("10.0.0.1", 3)],
                user: Some(EtcdUser {
                    name: "root".to_owned(),
                    password: Credential::File("/run/secret".into()),
                }),
                ..plain.clone()
            }),
            None,
        ),
        (
            "etcd://a%40b%3Ac@a:1",
            Target::Etcd(EtcdTarget {
                endpoints: vec![endpoint("a", 1)],
                user: Some(EtcdUser { name: "a@b:c".to_owned(), password: env("ETCD_PASSWORD") }),
                ..plain.clone()
            }),
            None,
        ),
        ("etcds://a:2379?ca=/ca.crt", Target::Etcd(EtcdTarget { tls: tls(None), ..plain.clone() }), None),
        (
            "etcds://a:2379?ca=/ca.crt&cert=/c&key=/k&domain=etcd.test",
            Target::Etcd(EtcdTarget {
                tls: tls(Some((pem("/c"), pem("/k")))),
                domain: Some("etcd.test".to_owned()),
                ..plain
            }),
            None,
        ),
        ("admin+http://127.0.0.1:9181", Target::Admin(admin("http://127.0.0.1:9181")), None),
        (
            "admin+http://a/?key-env=KEY&allow-plaintext=true",
            Target::Admin(AdminTarget { api_key: env("KEY"), allow_plaintext: true, ..admin("http://a") }),
            Some("admin+http://a?key-env=KEY&allow-plaintext=true"),
        ),
        (
            "admin+https://a:1?key-file=/k&ca=/ca.crt",
            Target::Admin(AdminTarget {
                api_key: Credential::File("/k".into()),
                tls: tls(None),
                ..admin("https://a:1")
            }),
            None,
        ),
        (
            "admin+https://a:1?ca=/ca.crt&cert=/c&cert-key=/k",
            Target::Admin(AdminTarget { tls: tls(Some((pem("/c"), pem("/k")))), ..admin("https://a:1") }),
            None,
        ),
        ("file:/etc/config.yaml", Target::File(file("/etc/config.yaml")), None),
        ("file:///etc/config.yaml", Target::File(file("/etc/config.yaml")), Some("file:/etc/config.yaml")),
        (
            "file:/%2F/a//",
            Target::File(FileTarget { location: FileLocation::Directory("/a".into()), base: None }),
            Some("file:/a/"),
        ),
        ("file:config.yaml", Target::File(file("config.yaml")), None),
        (
            "file:/a%20b%3F%25/?base=/c%26d%23",
            Target::File(FileTarget {
                location: FileLocation::Directory("/a b?%".into()),
                base: Some(PathBuf::from("/c&d#")),
            }),
            None,
        ),
    ]
}

#[test]
fn a_url_means_one_target_and_is_shown_as_it() {
    for (url, target, masked) in table() {
        let parsed: Target = url.parse().unwrap_or_else(|error| panic!("{url}: {error}"));
        assert_eq!(parsed, target, "{url}");
        assert_eq!(parsed.to_string(), masked.unwrap_or(url));
        assert_eq!(parsed.to_string().parse(), Ok(target), "{url}");
    }
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

#[test]
fn a_secret_is_read_where_the_url_says() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "sesame \n").unwrap();
    let variables = |name: &str| (name == "KEY").then(|| "sesame".to_owned());
    let secret = env("KEY").read(variables).unwrap();
    assert_eq!((secret.expose(), format!("{secret:?}").as_str()), ("sesame", "Secret"));
    let secret = Credential::File(file.path().to_owned()).read(variables).unwrap();
    assert_eq!(secret.expose(), "sesame ", "but for the line end");
    assert_eq!(env("NO").read(variables).unwrap_err().to_string(), "the environment variable NO is not set");
    std::fs::write(file.path(), "\n").unwrap();
    let error = Credential::File(file.path().to_owned()).read(variables).unwrap_err().to_string();
    assert!(error.ends_with("holds no secret"), "{error}");
    assert!(
        Credential::File("/no/such".into()).read(variables).unwrap_err().to_string().contains("/no/such")
    );
}
