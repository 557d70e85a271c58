//! Users, roles and certificates.

use std::time::Duration;

use pingsix_sink::etcd::ClientTls;
use pingsix_sink::target::ServerCredentials;
use pingsix_sink::{DynSink, EtcdSink, Sink as _, Target};
use pingsix_test_programs::{Etcd, find};

use super::etcd_test::{WAIT_TIMEOUT, publish_error, publish_until_done};
use crate::authority::{Authority, NAME};
use pingsix_sink::contract::documents::desired;

const PASSWORD: &str = "correct horse";

/// An etcd with a user `gateway` who may only read and write `/p/web/`.
async fn guarded() -> Option<Etcd> {
    let (_, etcd) = (find("etcdctl")?, Etcd::start().await?);
    for arguments in [
        &["user", "add", "root:r"][..],
        &["user", "grant-role", "root", "root"],
        &["role", "add", "web"],
        &["role", "grant-permission", "web", "--prefix=true", "readwrite", "/p/web/"],
        &["user", "add", &format!("gateway:{PASSWORD}")],
        &["user", "grant-role", "gateway", "web"],
        &["auth", "enable"],
    ] {
        // Some versions create the role root with its user, and others before it.
        if arguments == ["user", "grant-role", "root", "root"] {
            etcd.try_control(&["role", "add", "root"]).await;
        }
        etcd.control(arguments).await;
    }
    Some(etcd)
}

#[tokio::test]
async fn a_confined_user_publishes_where_it_may_and_is_told_where_it_may_not() {
    let Some(mut etcd) = guarded().await else { return };
    let sink =
        EtcdSink::builder([etcd.address().to_string()]).credentials("gateway", PASSWORD).build().unwrap();
    let web = |value: &str| desired("/p/web", &[("upstreams/u", "1"), ("routes/r", value)]);
    sink.publish(&web("1")).await.unwrap();
    for outside in ["/p/api", "/p/web:80"] {
        let error = publish_error(&sink, &desired(outside, &[("routes/r", "1")])).await;
        assert_eq!((error.category(), error.is_retryable()), ("etcd_permission_denied", true));
        assert!(error.to_string().contains(&format!("{outside}/")), "{error}");
    }
    // The watch is authorised too.
    etcd.control(&["--user=gateway:correct horse", "put", "/p/web/routes/r", "hacked"]).await;
    super::etcd_test::wait_for_drift(&sink, &["/p/web"]).await;

    // Tokens are lost with the process that issued them.
    etcd.kill().await;
    etcd.start_again().await;
    publish_until_done(&sink, &web("2")).await;
    etcd.control(&["--user=gateway:correct horse", "put", "/p/web/routes/r", "hacked"]).await;
    super::etcd_test::wait_for_drift(&sink, &["/p/web"]).await;

    // A change of users or roles invalidates tokens.
    etcd.control(&["--user=root:r", "user", "add", "another:p"]).await;
    sink.publish(&web("3")).await.unwrap();

    assert!(!format!("{sink:?}").contains(PASSWORD));
}

#[tokio::test]
async fn a_user_who_is_not_known_is_told_apart_from_an_etcd_that_is_not_there() {
    let Some(etcd) = guarded().await else { return };
    let web = desired("/p/web", &[("routes/r", "1")]);
    for (builder, category) in [
        (EtcdSink::builder([etcd.address().to_string()]), "etcd_authentication"),
        (
            EtcdSink::builder([etcd.address().to_string()]).credentials("gateway", "wrong"),
            "etcd_authentication",
        ),
        (
            EtcdSink::builder([etcd.address().to_string()]).credentials("nobody", PASSWORD),
            "etcd_authentication",
        ),
    ] {
        let error = publish_error(&builder.build().unwrap(), &web).await;
        assert_eq!((error.category(), error.is_retryable()), (category, true), "{error}");
        assert!(!format!("{error} {error:?}").contains("wrong"), "{error}");
    }
    let open = Etcd::start().await.unwrap();
    let sink =
        EtcdSink::builder([open.address().to_string()]).credentials("gateway", PASSWORD).build().unwrap();
    let error = publish_error(&sink, &web).await;
    assert_eq!(error.category(), "etcd_authentication");
    assert!(error.to_string().contains("not enabled"), "{error}");
}

#[tokio::test]
async fn tokens_that_expire_are_renewed() {
    let Some(etcd) = guarded().await else { return };
    let sink =
        EtcdSink::builder([etcd.address().to_string()]).credentials("gateway", PASSWORD).build().unwrap();
    // Disabling and enabling authentication invalidates all tokens.
    for round in 0..3 {
        let web = desired("/p/web", &[("routes/r", &round.to_string())]);
        sink.publish(&web).await.unwrap();
        etcd.control(&["--user=root:r", "auth", "disable"]).await;
        etcd.control(&["auth", "enable"]).await;
    }
}

/// An etcd with TLS and client certificates of the same CA.
async fn encrypted(authority: &Authority) -> Option<Etcd> {
    let directory = tempfile::tempdir().unwrap();
    let server = authority.issue(1);
    let file = |name: &str, content: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let (ca, certificate, key) = (
        file("ca.pem", &authority.pem()),
        file("cert.pem", &server.certificate),
        file("key.pem", &server.key),
    );
    let options =
        ["--cert-file", &certificate, "--key-file", &key, "--trusted-ca-file", &ca, "--client-cert-auth"];
    Etcd::start_encrypted(directory, &options).await
}

#[tokio::test]
async fn tls_proves_both_sides() {
    let authority = Authority::new("etcd");
    let Some(etcd) = encrypted(&authority).await else { return };
    let web = desired("/p/web", &[("routes/r", "1")]);
    let client = authority.issue(3);
    let trusting = || ClientTls::ca_pem(authority.pem());
    let known = || trusting().identity_pem(client.certificate.as_str(), client.key.as_str());
    let sink = |tls: ClientTls| {
        let builder = EtcdSink::builder([etcd.url()]).timeout(Duration::from_secs(3));
        builder.tls(tls).build().unwrap()
    };
    sink(known()).publish(&web).await.unwrap();
    sink(known().domain(NAME)).publish(&web).await.unwrap();

    let stranger = Authority::new("stranger");
    let foreign = stranger.issue(4);
    for (why, tls) in [
        ("no client certificate", trusting()),
        ("another authority's client certificate", {
            trusting().identity_pem(foreign.certificate.as_str(), foreign.key.as_str())
        }),
        ("another authority trusted", ClientTls::ca_pem(stranger.pem())),
        ("another name", known().domain("other.test")),
    ] {
        let error = publish_error(&sink(tls), &desired("/p/web", &[("routes/r", why)])).await;
        assert_eq!(error.category(), "etcd_unavailable", "{why}: {error}");
        assert!(!error.to_string().contains("transport error"), "{why} is explained: {error}");
    }
}

#[tokio::test]
async fn an_address_is_opened_with_material_in_memory() {
    let authority = Authority::new("etcd");
    let Some(etcd) = encrypted(&authority).await else { return };
    let client = authority.issue(6);
    let credentials = ServerCredentials {
        ca: Some(authority.pem().into_bytes()),
        certificate: Some(client.certificate.into_bytes()),
        key: Some(client.key.into_bytes()),
        ..ServerCredentials::default()
    };
    let target = Target::server(&format!("etcds://{}", etcd.address()), &credentials, false).unwrap();
    assert_eq!(target.kind(), "etcd");
    let sink = target.open(&|_| None).await.unwrap();
    sink.publish(&desired("/p/web", &[("routes/r", "1")])).await.unwrap();
    assert!(sink.drifted().is_some());

    let Some(etcd) = guarded().await else { return };
    let address = format!("etcd://{}/", etcd.address());
    let login = |password: &str| ServerCredentials {
        user: Some("gateway".to_owned()),
        password: Some(password.to_owned()),
        ..ServerCredentials::default()
    };
    let web = desired("/p/web", &[("routes/r", "1")]);
    let open = async |password: &str| -> DynSink {
        Target::server(&address, &login(password), false).unwrap().open(&|_| None).await.unwrap()
    };
    open(PASSWORD).await.publish(&web).await.unwrap();
    let error = open("CANARY").await.publish(&web).await.unwrap_err();
    assert_eq!(error.category(), "etcd_authentication");
    assert!(!format!("{error} {error:?} {:?}", login("CANARY")).contains("CANARY"));
}

#[tokio::test]
async fn certificates_are_read_again_for_a_new_connection() {
    let authority = Authority::new("etcd");
    let Some(mut etcd) = encrypted(&authority).await else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let write = |authority: &Authority| {
        let client = authority.issue(5);
        std::fs::write(path("cert.pem"), client.certificate).unwrap();
        std::fs::write(path("key.pem"), client.key).unwrap();
    };
    std::fs::write(path("ca.pem"), authority.pem()).unwrap();
    let tls = || ClientTls::ca_file(path("ca.pem")).identity_files(path("cert.pem"), path("key.pem"));
    let builder = || EtcdSink::builder([etcd.url()]).tls(tls()).timeout(Duration::from_secs(3));

    let error = builder().build().unwrap_err();
    assert_eq!((error.category(), error.is_retryable()), ("etcd_file", true));
    assert!(error.to_string().contains("cert.pem"), "{error}");

    write(&Authority::new("stranger"));
    let sink = builder().build().unwrap();
    let web = |value: &str| desired("/p/web", &[("routes/r", value)]);
    publish_error(&sink, &web("1")).await;
    write(&authority);
    publish_until_done(&sink, &web("1")).await;
    etcd.kill().await;
    publish_error(&sink, &web("2")).await;
    etcd.start_again().await;
    tokio::time::timeout(WAIT_TIMEOUT, publish_until_done(&sink, &web("2"))).await.unwrap();
}
