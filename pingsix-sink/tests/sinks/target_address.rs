//! Servers by address, with credentials.

use crate::authority::Authority;
use pingsix_sink::Target;
use pingsix_sink::target::{CredentialPart, OpenError, ServerCredentials, TargetError};

fn server(url: &str, credentials: &ServerCredentials) -> Result<Target, TargetError> {
    Target::server(url, credentials, false)
}

fn pem(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

fn good(authority: &Authority) -> ServerCredentials {
    let one = authority.issue(1);
    ServerCredentials {
        user: Some("gateway".to_owned()),
        password: Some("CANARY".to_owned()),
        api_key: Some("CANARY".to_owned()),
        ca: Some(pem(&authority.pem())),
        certificate: Some(pem(&one.certificate)),
        key: Some(pem(&one.key)),
    }
}

#[test]
fn an_address_is_scheme_hosts_and_ports() {
    let good = good(&Authority::new("a"));
    for url in [
        "etcd://127.0.0.1",
        "etcd://a:2379,b:2380/",
        "etcds://[::1]:2379",
        "admin+http://127.0.0.1:9181",
        "admin+https://a",
    ] {
        assert!(server(url, &good).is_ok(), "{url}");
    }
    for url in ["embedded:", "file:/tmp/a", "http://a", ""] {
        let error = server(url, &good).unwrap_err();
        assert!(matches!(error, TargetError::NoServer(_)), "{url}");
        assert_eq!(
            error.to_string(),
            "the address of a server begins with one of etcd://, etcds://, admin+http://, admin+https://"
        );
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
        let error = server(url, &good).unwrap_err().to_string();
        assert!(error.contains("host") && !error.contains("CANARY"), "{url}: {error}");
    }
}

#[tokio::test]
async fn a_missing_or_invalid_credential_is_named() {
    let authority = Authority::new("a");
    let (good, two) = (good(&authority), authority.issue(2));
    for url in ["etcds://a:1", "admin+https://a:1", "etcd://127.0.0.1:1", "admin+http://[::1]:1"] {
        let target = server(url, &good).unwrap();
        let masked = format!("{target} {target:?} {:?}", target.open(&|_| None).await.unwrap());
        assert!(!masked.contains("CANARY"), "{masked}");
    }
    assert!(!format!("{good:?}").contains("CANARY"));
    let missing = [
        ("etcd://[::1]:1", ServerCredentials { password: None, ..good.clone() }, CredentialPart::Password),
        ("etcd://[::1]:1", ServerCredentials { user: None, ..good.clone() }, CredentialPart::User),
        ("etcds://a:1", ServerCredentials { ca: None, ..good.clone() }, CredentialPart::Ca),
        ("admin+https://a:1", ServerCredentials { ca: None, ..good.clone() }, CredentialPart::Ca),
        ("admin+https://a:1", ServerCredentials { key: None, ..good.clone() }, CredentialPart::Key),
        ("etcds://a:1", ServerCredentials { certificate: None, ..good.clone() }, CredentialPart::Certificate),
        ("admin+http://[::1]:1", ServerCredentials { api_key: None, ..good.clone() }, CredentialPart::ApiKey),
    ];
    for (url, credentials, part) in missing {
        let error = server(url, &credentials).unwrap_err();
        assert!(matches!(error, TargetError::Missing(missing) if missing == part), "{url}: {error}");
    }
    let unusable = [
        (
            ServerCredentials { ca: Some(pem("CANARY")), ..good.clone() },
            CredentialPart::Ca,
            "holds no certificate",
        ),
        (
            ServerCredentials { certificate: Some(pem("CANARY")), ..good.clone() },
            CredentialPart::Certificate,
            "no certificate",
        ),
        (ServerCredentials { key: Some(pem("CANARY")), ..good.clone() }, CredentialPart::Key, "private key"),
        (
            ServerCredentials { key: Some(pem(&two.key)), ..good.clone() },
            CredentialPart::Key,
            "does not belong",
        ),
    ];
    for (credentials, part, problem) in unusable {
        for url in ["etcds://a:1", "admin+https://a:1"] {
            let error = server(url, &credentials).unwrap_err();
            assert!(matches!(error, TargetError::Unusable { part: at, .. } if at == part), "{url}: {error}");
            assert!(error.to_string().contains(problem), "{error}");
            assert!(!format!("{error} {error:?}").contains("CANARY"), "{error}");
        }
    }
    let header = ServerCredentials { api_key: Some("CANARY\u{7f}".to_owned()), ..good.clone() };
    let error = server("admin+http://[::1]:1", &header).unwrap_err().to_string();
    assert!(error.contains("the API key") && !error.contains("CANARY"), "{error}");
}

#[tokio::test]
async fn plaintext_leaves_the_machine_only_if_that_is_allowed() {
    let credentials = ServerCredentials { api_key: Some("key".to_owned()), ..ServerCredentials::default() };
    for url in ["etcd://a:1", "admin+http://a:1"] {
        let refused = server(url, &credentials).unwrap().open(&|_| None).await.unwrap_err();
        let OpenError::Sink(refused) = refused else { panic!("{refused}") };
        assert_eq!(refused.category(), "plaintext_beyond_loopback");
        let allowed = Target::server(url, &credentials, true).unwrap();
        assert!(allowed.open(&|_| None).await.is_ok());
    }
}
