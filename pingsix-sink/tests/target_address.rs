//! Servers that are named by an address, and what it takes to be let in.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "support/authority.rs"]
mod authority;

use authority::Authority;
use pingsix_sink::target::{Address, AddressError, Material, MaterialPart, TargetError};

fn address(url: &str) -> Address {
    url.parse().unwrap()
}

fn error(url: &str, material: &Material) -> AddressError {
    address(url).open(material).unwrap_err()
}

#[test]
fn an_address_is_scheme_hosts_and_ports() {
    for url in [
        "etcd://127.0.0.1",
        "etcd://a:2379,b:2380/",
        "etcds://[::1]:2379",
        "admin+http://127.0.0.1:9181",
        "admin+https://a",
    ] {
        assert!(url.parse::<Address>().is_ok(), "{url}");
    }
    for url in ["embedded:", "file:/tmp/a", "http://a", ""] {
        assert_eq!(url.parse::<Address>(), Err(TargetError::NoServer), "{url}");
    }
    for url in [
        "etcd://me:CANARY@a:1",
        "etcd://a:CANARY",
        "etcd://",
        "etcds://a?ca=/ca",
        "admin+http://CANARY@a",
        "admin+http://a/path",
        "admin+https://a#b",
    ] {
        let error = url.parse::<Address>().unwrap_err().to_string();
        assert!(error.contains("host") && !error.contains("CANARY"), "{url}: {error}");
    }
}

#[tokio::test]
async fn what_is_missing_or_of_no_use_is_named_by_its_part() {
    let authority = Authority::new("a");
    let (one, two) = (authority.issue(1), authority.issue(2));
    let pem = |text: &str| Some(text.as_bytes().to_vec());
    let good = Material {
        user: Some("gateway".to_owned()),
        password: Some("CANARY".to_owned()),
        api_key: Some("CANARY".to_owned()),
        ca: pem(&authority.pem()),
        certificate: pem(&one.certificate),
        key: pem(&one.key),
    };
    for url in ["etcds://a:1", "admin+https://a:1", "etcd://127.0.0.1:1", "admin+http://[::1]:1"] {
        let shown = format!("{:?}", address(url).open(&good).unwrap());
        assert!(!shown.contains("CANARY"), "{shown}");
    }
    assert!(!format!("{good:?}").contains("CANARY"));
    let missing = [
        ("etcd://[::1]:1", Material { password: None, ..good.clone() }, MaterialPart::Password),
        ("etcd://[::1]:1", Material { user: None, ..good.clone() }, MaterialPart::User),
        ("etcds://a:1", Material { ca: None, ..good.clone() }, MaterialPart::Ca),
        ("admin+https://a:1", Material { ca: None, ..good.clone() }, MaterialPart::Ca),
        ("admin+https://a:1", Material { key: None, ..good.clone() }, MaterialPart::Key),
        ("etcds://a:1", Material { certificate: None, ..good.clone() }, MaterialPart::Certificate),
        ("admin+http://[::1]:1", Material { api_key: None, ..good.clone() }, MaterialPart::ApiKey),
    ];
    for (url, material, part) in missing {
        let error = error(url, &material);
        assert!(matches!(error, AddressError::Missing(missing) if missing == part), "{url}: {error}");
    }
    let unusable = [
        (Material { ca: pem("CANARY"), ..good.clone() }, MaterialPart::Ca, "holds no certificate"),
        (
            Material { certificate: pem("CANARY"), ..good.clone() },
            MaterialPart::Certificate,
            "no certificate",
        ),
        (Material { key: pem("CANARY"), ..good.clone() }, MaterialPart::Key, "private key"),
        (Material { key: pem(&two.key), ..good.clone() }, MaterialPart::Key, "does not belong"),
    ];
    for (material, part, problem) in unusable {
        for url in ["etcds://a:1", "admin+https://a:1"] {
            let error = error(url, &material);
            assert!(matches!(error, AddressError::Unusable { part: at, .. } if at == part), "{url}: {error}");
            assert!(error.to_string().contains(problem), "{error}");
            assert!(!format!("{error} {error:?}").contains("CANARY"), "{error}");
        }
    }
    let header = Material { api_key: Some("CANARY\u{7f}".to_owned()), ..good.clone() };
    let error = error("admin+http://[::1]:1", &header).to_string();
    assert!(error.contains("the API key") && !error.contains("CANARY"), "{error}");
}

#[tokio::test]
async fn plaintext_leaves_the_machine_only_if_that_is_allowed() {
    let material = Material { api_key: Some("key".to_owned()), ..Material::default() };
    for url in ["etcd://a:1", "admin+http://a:1"] {
        let refused = error(url, &material);
        let AddressError::Sink(refused) = refused else { panic!("{refused}") };
        assert_eq!(refused.category(), "plaintext_beyond_loopback");
        assert!(address(url).allow_plaintext_beyond_loopback().open(&material).is_ok());
    }
}
