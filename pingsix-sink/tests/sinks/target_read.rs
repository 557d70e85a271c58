//! Published documents, read through the URLs of targets.

use crate::admin_double;
use std::net::SocketAddr;

use crate::authority::Authority;
use crate::wire::Served;
use pingsix_sink::contract::documents::{desired, scope};
use pingsix_sink::difference::differences;
use pingsix_sink::target::{OpenError, Target};
use pingsix_sink::{Desired, DocumentSet, EmbeddedEtcd, Sink};
use pingsix_test_programs::{Etcd, find};

const UNREACHABLE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);

async fn read(url: &str) -> Result<DocumentSet, OpenError> {
    let target: Target = url.parse().unwrap();
    let env = |name: &str| match name {
        "ETCD_PASSWORD" | "PINGSIX_ADMIN_KEY" => Some("sesame".to_owned()),
        "WRONG" => Some("hunter2".to_owned()),
        _ => None,
    };
    target.read(&scope("/p/web"), &env).await
}

fn state() -> Desired {
    desired(
        "/p/web",
        &[
            ("upstreams/u", r#"{"nodes":{"127.0.0.1:8":1}}"#),
            ("ssls/c", r#"{"cert":"C","key":"K","snis":["a"]}"#),
        ],
    )
}

fn keys(documents: &DocumentSet) -> Vec<&str> {
    documents.iter().map(|document| document.key.as_str()).collect()
}

#[tokio::test]
async fn an_embedded_server_is_read_over_its_port() {
    let served = Served::start(EmbeddedEtcd::builder()).await;
    let url = format!("embedded:?listen={}", served.address);
    let error = read(&url).await.unwrap_err().to_string();
    assert!(error.contains("the first complete publication is still to come"), "{error}");
    served.etcd.publish(&desired("/p/webinar", &[("routes/r", "{}")])).await.unwrap();
    served.etcd.open();
    assert!(read(&url).await.unwrap().is_empty(), "a scope that was never published holds nothing");
    served.etcd.publish(&state()).await.unwrap();
    assert!(read(&url).await.unwrap().same_content(state().documents()));
}

#[tokio::test]
async fn an_embedded_server_over_tls_is_not_read_and_that_is_said() {
    let served = Served::start(EmbeddedEtcd::builder().tls(Authority::new("server").issue(1).server())).await;
    for address in [served.address, UNREACHABLE] {
        let error = read(&format!("embedded:?listen={address}")).await.unwrap_err();
        assert!(matches!(error, OpenError::Connect { .. }), "{error}");
        assert_eq!(
            error.to_string(),
            format!(
                "cannot read from {address}: an embedded server is read back in plaintext alone, not over TLS"
            )
        );
    }
}

#[tokio::test]
async fn an_etcd_is_read_as_the_named_user() {
    let Some(etcd) = Etcd::start().await else { return };
    let Some(_) = find("etcdctl") else { return };
    // The first member is down.
    let members = format!("127.0.0.1:1,{}", etcd.address());
    let plain = format!("etcd://{members}");
    assert!(read(&plain).await.unwrap().is_empty());
    let sink = plain.parse::<Target>().unwrap().open(&|_| None).await.unwrap();
    sink.publish(&state()).await.unwrap();
    etcd.control(&["put", "/p/web/routes/theirs", "{}"]).await;
    assert!(read(&plain).await.unwrap().same_content(state().documents()), "foreign keys are left out");
    assert!(
        read("etcd://127.0.0.1:1").await.unwrap_err().to_string().starts_with("etcd cannot be reached: ")
    );

    etcd.control(&["user", "add", "root:sesame"]).await;
    etcd.control(&["user", "grant-role", "root", "root"]).await;
    etcd.control(&["auth", "enable"]).await;
    let held = read(&format!("etcd://root@{members}")).await.unwrap();
    assert!(held.same_content(state().documents()));
    for url in [plain, format!("etcd://root@{members}?password-env=WRONG")] {
        let error = read(&url).await.unwrap_err().to_string();
        assert!(
            error.starts_with("etcd does not accept the user: ") && !error.contains("hunter2"),
            "{error}"
        );
    }
    let error = read(&format!("etcd://root@{members}?password-env=UNSET")).await.unwrap_err().to_string();
    assert_eq!(error, "the environment variable UNSET is not set");
}

#[tokio::test]
async fn published_documents_of_an_admin_api_and_files_can_be_compared() {
    let double = admin_double::AdminDouble::start().await;
    let url = format!("admin+http://{}", double.address);
    let target: Target = url.parse().unwrap();
    let sink = target.open(&|_| Some(admin_double::KEY.to_owned())).await.unwrap();
    assert_eq!(keys(&read(&url).await.unwrap()), Vec::<&str>::new());
    sink.publish(&state()).await.unwrap();
    let found = differences(&read(&url).await.unwrap(), state().documents());
    assert_eq!((found.changes.len(), found.unknown.len()), (0, 1), "the key is masked");
    assert!(target.open(&|_| Some("a\nb".to_owned())).await.is_err());

    let directory = tempfile::tempdir().unwrap();
    let url = format!("file:{}", directory.path().join("config.yaml").display());
    let target: Target = url.parse().unwrap();
    assert!(read(&url).await.unwrap().is_empty());
    target.open(&|_| None).await.unwrap().publish(&state()).await.unwrap();
    let found = differences(&read(&url).await.unwrap(), state().documents());
    assert_eq!((found.changes.len(), found.unknown.len()), (0, 0));
}
