//! The Admin API sink, on a double with PingSIX's rules and on the real PingSIX with a real etcd.

use crate::gateway;
use std::sync::Arc;
use std::time::Duration;

use crate::admin_double::{AdminDouble, KEY};
use crate::authority::Authority;
use http::HeaderValue;
use pingsix_sink::admin::{Builder, ClientTls, SCOPE_LABEL};
use pingsix_sink::contract::documents::{desired, scope};
use pingsix_sink::{AdminSink, Changed, Desired, Sink};
use pingsix_test_programs::{Etcd, free_address, pingsix};
use serde_json::{Value, json};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

fn builder(url: &str) -> Builder {
    AdminSink::builder(url, HeaderValue::from_static(KEY))
}

fn sink(double: &AdminDouble) -> AdminSink {
    builder(&format!("http://{}", double.address)).build().unwrap()
}

fn web(documents: &[(&str, &str)]) -> Desired {
    desired("/p/web", documents)
}

/// A route to a service on an upstream, and a certificate.
fn shop() -> Desired {
    web(&[
        ("upstreams/u", r#"{"nodes":{"127.0.0.1:8":1}}"#),
        ("services/s", r#"{"upstream_id":"u"}"#),
        ("routes/r", r#"{"service_id":"s","uri":"/"}"#),
        ("ssls/c", r#"{"cert":"CERT","key":"KEY-1","snis":["a"]}"#),
    ])
}

#[tokio::test]
async fn documents_of_an_earlier_process_are_known_by_name_and_can_be_withdrawn() {
    let double = AdminDouble::start().await;
    let [first, second, other] = ["ours", "ours", "theirs"].map(|publisher| {
        let sink = sink(&double);
        sink.publish_as(publisher);
        sink
    });
    first.publish(&shop()).await.unwrap();
    let own = async |sink: &AdminSink| sink.own_scopes(&scope("/p")).await.unwrap();
    assert_eq!(own(&second).await, [scope("/p/web")].into());
    assert_eq!(own(&other).await, [].into());
    assert_eq!(second.own_scopes(&scope("/elsewhere")).await.unwrap(), [].into());
    // The new process publishes another scope, and withdraws the remaining one.
    let api = desired("/p/api", &[("upstreams/a", r#"{"nodes":{"127.0.0.1:9":1}}"#)]);
    second.publish(&api).await.unwrap();
    let gone = second.publish(&Desired::empty(scope("/p/web"))).await.unwrap();
    assert_eq!(gone.changed.deleted, 4);
    assert_eq!(own(&second).await, [scope("/p/api")].into());
    assert!(second.publish(&api).await.unwrap().changed.is_empty());
    let refused = second.publish(&shop()).await.unwrap_err();
    assert_eq!(refused.category(), "one_scope", "{refused}");
    // A scope with documents of two publishers belongs to neither.
    other.publish(&api).await.unwrap();
    assert_eq!((own(&second).await, own(&other).await), ([].into(), [scope("/p/api")].into()));
}

#[tokio::test]
async fn documents_come_in_the_order_of_their_references_and_go_in_the_reverse() {
    let double = AdminDouble::start().await;
    let sink = sink(&double);
    let first = sink.publish(&shop()).await.unwrap();
    assert_eq!(first.changed, Changed { created: 4, ..Changed::default() });
    assert_eq!(first.revision.get(), 4, "that of the last write");
    assert_eq!(double.writes(), ["PUT upstreams/u", "PUT services/s", "PUT routes/r", "PUT ssls/c"]);

    let empty = Desired::empty(scope("/p/web"));
    let second = sink.publish(&empty).await.unwrap();
    assert_eq!(second.changed.deleted, 4);
    assert!(second.revision > first.revision);
    assert_eq!(
        double.writes(),
        ["DELETE ssls/c", "DELETE routes/r", "DELETE services/s", "DELETE upstreams/u"]
    );
    // A process without knowledge of the writes deletes in the same order.
    sink.publish(&shop()).await.unwrap();
    double.writes();
    self::sink(&double).publish(&empty).await.unwrap();
    assert_eq!(
        double.writes(),
        ["DELETE ssls/c", "DELETE routes/r", "DELETE services/s", "DELETE upstreams/u"]
    );
}

#[tokio::test]
async fn equal_content_is_not_written_and_a_new_process_writes_secrets_once() {
    let double = AdminDouble::start().await;
    let sink = sink(&double);
    let first = sink.publish(&shop()).await.unwrap();
    double.writes();
    let again = sink.publish(&shop()).await.unwrap();
    assert!(again.changed.is_empty() && double.writes().is_empty());
    assert_eq!(again.revision, first.revision);

    let sink = self::sink(&double);
    let restarted = sink.publish(&shop()).await.unwrap();
    assert_eq!(double.writes(), ["PUT ssls/c"], "whose key cannot be read back");
    assert!(restarted.revision > first.revision);
    assert_eq!(sink.publish(&shop()).await.unwrap().revision, restarted.revision);
    assert!(double.writes().is_empty());
}

#[tokio::test]
async fn foreign_changes_are_reverted_also_of_masked_fields() {
    let double = AdminDouble::start().await;
    let sink = sink(&double);
    sink.publish(&shop()).await.unwrap();
    let mut route = double.stored("routes/r").unwrap();
    route["uri"] = "/elsewhere".into();
    double.write("routes/r", route);
    let mut ssl = double.stored("ssls/c").unwrap();
    ssl["key"] = "KEY-2".into();
    double.write("ssls/c", ssl);
    double.writes();
    let mended = sink.publish(&shop()).await.unwrap();
    assert_eq!(mended.changed, Changed { updated: 2, ..Changed::default() });
    assert_eq!(double.writes(), ["PUT routes/r", "PUT ssls/c"]);
    assert_eq!(double.stored("ssls/c").unwrap()["key"], "KEY-1");

    double.remove("routes/r");
    sink.publish(&shop()).await.unwrap();
    assert_eq!(double.writes(), ["PUT routes/r"]);
    // A new key is a change although it is shown with the same mask.
    let text = String::from_utf8(shop().documents().iter().nth(2).unwrap().value.to_vec()).unwrap();
    let rotated = web(&[
        ("upstreams/u", r#"{"nodes":{"127.0.0.1:8":1}}"#),
        ("services/s", r#"{"upstream_id":"u"}"#),
        ("routes/r", r#"{"service_id":"s","uri":"/"}"#),
        ("ssls/c", &text.replace("KEY-1", "KEY-3")),
    ]);
    sink.publish(&rotated).await.unwrap();
    assert_eq!(double.stored("ssls/c").unwrap()["key"], "KEY-3");
}

#[tokio::test]
async fn foreign_resources_are_not_changed() {
    let double = AdminDouble::start().await;
    let sink = sink(&double);
    let theirs = json!({"nodes": {"127.0.0.1:9": 1}, "id": "t"});
    double.write("upstreams/t", theirs);
    let others = json!({"nodes": {"127.0.0.1:9": 1}, "id": "o", "labels": {SCOPE_LABEL: "/p/other"}});
    double.write("upstreams/o", others.clone());
    sink.publish(&shop()).await.unwrap();
    sink.publish(&Desired::empty(scope("/p/web"))).await.unwrap();
    assert_eq!(double.keys(), ["upstreams/o", "upstreams/t"]);
    double.writes();

    let first = ("upstreams/a", r#"{"nodes":{"127.0.0.1:8":1}}"#);
    let clash = web(&[first, ("upstreams/o", r#"{"nodes":{"127.0.0.1:7":1}}"#)]);
    let error = sink.publish(&clash).await.unwrap_err();
    assert_eq!(error.to_string(), "document upstreams/o of test has the id of a resource of scope /p/other");
    assert!(double.writes().is_empty(), "nothing was written before that was found");
    assert_eq!(double.stored("upstreams/o"), Some(others));

    // A desired document replaces an unmarked resource.
    let wanted = web(&[("upstreams/t", r#"{"nodes":{"127.0.0.1:9":1}}"#)]);
    assert_eq!(sink.publish(&wanted).await.unwrap().changed.created, 1);
    assert_eq!(double.stored("upstreams/t").unwrap()["labels"], json!({SCOPE_LABEL: "/p/web"}));
    let error = sink.publish(&Desired::empty(scope("/p/api"))).await.unwrap_err();
    assert_eq!(error.category(), "one_scope");
}

#[tokio::test]
async fn labels_of_a_document_are_kept_beside_the_mark() {
    let double = AdminDouble::start().await;
    let sink = sink(&double);
    let state = web(&[("upstreams/u", r#"{"labels":{"team":"shop"},"nodes":{"127.0.0.1:8":1}}"#)]);
    sink.publish(&state).await.unwrap();
    assert_eq!(
        double.stored("upstreams/u").unwrap()["labels"],
        json!({"team": "shop", SCOPE_LABEL: "/p/web"})
    );
    let masked = sink.documents(&scope("/p/web")).await.unwrap();
    assert_eq!(
        masked.iter().next().unwrap().value,
        state.documents().iter().next().unwrap().value,
        "as it was published"
    );
    assert!(sink.documents(&scope("/p/api")).await.unwrap().is_empty());
}

#[tokio::test]
async fn writers_that_meet_try_again_and_give_up_in_the_end() {
    let double = AdminDouble::start().await;
    let sink = sink(&double);
    double.conflict_with(5);
    sink.publish(&shop()).await.unwrap();
    double.conflict_with(3);
    sink.publish(&Desired::empty(scope("/p/web"))).await.unwrap();
    assert!(double.keys().is_empty());
    double.conflict_with(usize::MAX);
    let error = sink.publish(&shop()).await.unwrap_err();
    assert_eq!(error.to_string(), "others wrote at the same time whenever PUT upstreams/u was tried");
    assert!(error.is_retryable());
}

#[tokio::test]
async fn a_resource_with_foreign_references_stays_and_others_are_deleted() {
    let double = AdminDouble::start().await;
    let sink = sink(&double);
    sink.publish(&shop()).await.unwrap();
    double.write("routes/theirs", json!({"uri": "/t", "upstream_id": "u"}));
    let empty = Desired::empty(scope("/p/web"));
    let error = sink.publish(&empty).await.unwrap_err();
    assert_eq!(error.to_string(), "still referred to by resources of others: upstreams/u");
    assert!(error.is_retryable());
    assert_eq!(double.keys(), ["upstreams/u", "routes/theirs"]);
    double.remove("routes/theirs");
    assert_eq!(sink.publish(&empty).await.unwrap().changed.deleted, 1);
    assert!(double.keys().is_empty());
}

#[tokio::test]
async fn after_a_failure_at_any_step_references_hold_and_a_retry_completes_it() {
    let other = web(&[
        ("upstreams/v", r#"{"nodes":{"127.0.0.1:8":2}}"#),
        ("services/s", r#"{"upstream_id":"v"}"#),
        ("routes/q", r#"{"service_id":"s","uri":"/q"}"#),
    ]);
    // Three documents are written and three deleted.
    for writes in 0..6 {
        let double = AdminDouble::start().await;
        let sink = sink(&double);
        sink.publish(&shop()).await.unwrap();
        double.fail_after(Some(writes));
        let error = sink.publish(&other).await.unwrap_err();
        assert!(error.to_string().ends_with("was answered 500 Internal Server Error"), "{error}");
        assert!(error.is_retryable() && double.is_closed(), "after {writes} writes");
        double.fail_after(None);
        // Every second time by a process without knowledge of the first attempt.
        let next = if writes % 2 == 0 { sink } else { self::sink(&double) };
        next.publish(&other).await.unwrap();
        assert_eq!(double.keys(), ["upstreams/v", "services/s", "routes/q"]);
    }
}

#[tokio::test]
async fn a_refused_document_is_named_with_its_owner_and_without_secrets() {
    let double = AdminDouble::start().await;
    let sink = sink(&double);
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{}\n", "A".repeat(900));
    let refused = json!({"cert": "CERT", "key": pem, "snis": ["a"], "refuse": true}).to_string();
    let error = sink.publish(&web(&[("ssls/c", &refused)])).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "PingSIX refuses document ssls/c of test: Validation error: invalid resource 'ssls/c': invalid type: string \
         \"***\", expected u16"
    );
    assert!(error.is_retryable(), "a resource of somebody else may be at fault");
    // A foreign secret is recognised only by its form.
    let theirs = json!({"key": "s".repeat(64), "refuse": true}).to_string();
    let error = sink.publish(&web(&[("routes/r", &theirs)])).await.unwrap_err().to_string();
    assert!(
        error.ends_with("invalid resource 'routes/r': invalid type: string \"***\", expected u16"),
        "{error}"
    );
    let dangling = sink.publish(&web(&[("routes/r", r#"{"upstream_id":"u","uri":"/"}"#)])).await.unwrap_err();
    assert!(dangling.to_string().contains("upstreams/u not found"), "{dangling}");
}

#[tokio::test]
async fn an_invalid_document_is_refused_before_the_first_write() {
    let double = AdminDouble::start().await;
    let sink = sink(&double);
    let good = ("upstreams/a", r#"{"nodes":{"127.0.0.1:8":1}}"#);
    let large = json!({"cert": "C".repeat(1 << 20), "key": "KEY", "snis": ["a"]}).to_string();
    for (key, value, problem) in [
        ("ssls/c", large.as_str(), "bytes, more than the 1048576 the Admin API takes"),
        ("routes/r", "[]", "its value is no JSON object"),
        ("routes/ä", "{}", "its id cannot stand in the path of a URL"),
        ("routes/a b", "{}", "its id cannot stand in the path of a URL"),
        ("routes/r", r#"{"labels":[]}"#, "its field labels is no JSON object"),
    ] {
        let error = sink.publish(&web(&[good, (key, value)])).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains(problem) && text.contains(&format!("document {key} of test")), "{text}");
        assert!(!error.is_retryable());
    }
    assert!(double.writes().is_empty());
}

#[tokio::test]
async fn a_wrong_key_a_silent_server_and_none_at_all_are_told_apart() {
    let double = AdminDouble::start().await;
    let url = format!("http://{}", double.address);
    let stranger = AdminSink::builder(&url, HeaderValue::from_static("hunter2")).build().unwrap();
    let error = stranger.publish(&shop()).await.unwrap_err();
    assert_eq!(error.to_string(), "the Admin API does not accept the API key");
    assert!(error.is_retryable(), "the key may be changed at the side of PingSIX");
    assert!(!format!("{stranger:?}").contains("hunter2"));

    let hasty = builder(&url).timeout(Duration::from_millis(50)).build().unwrap();
    double.stall(true);
    let error = hasty.publish(&shop()).await.unwrap_err();
    assert_eq!(error.to_string(), "GET upstreams was not answered in time");
    let placeholder = builder(&format!("http://{}", free_address())).build().unwrap();
    let error = placeholder.publish(&shop()).await.unwrap_err();
    assert_eq!(error.to_string(), "GET upstreams failed");
    assert!(error.is_retryable() && error.category() == "admin_unavailable");
}

fn acceptor(authority: &Authority) -> TlsAcceptor {
    acceptor_of(authority, None)
}

/// An acceptor that asks for a certificate of this CA, if there is one.
fn acceptor_of(authority: &Authority, clients: Option<&Authority>) -> TlsAcceptor {
    let pair = authority.issue(1);
    let chain = CertificateDer::pem_slice_iter(pair.certificate.as_bytes()).map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = match clients {
        None => config.with_no_client_auth(),
        Some(clients) => {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(clients.pem().as_bytes()).unwrap()).unwrap();
            let provider = ring::default_provider().into();
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            config.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let config = config.with_single_cert(chain, key).unwrap();
    TlsAcceptor::from(Arc::new(config))
}

#[tokio::test]
async fn https_is_verified_with_the_authorities_that_are_given() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (authority, other) = (Authority::new("authority"), Authority::new("other"));
    let double = AdminDouble::start_tls(acceptor(&authority)).await;
    let url = format!("https://{}", double.address);
    let trusting = builder(&url).tls(ClientTls::ca_file(file("ca", &authority.pem()))).build().unwrap();
    trusting.publish(&shop()).await.unwrap();
    let distrusting = builder(&url).tls(ClientTls::ca_file(file("other", &other.pem()))).build().unwrap();
    assert_eq!(distrusting.publish(&shop()).await.unwrap_err().to_string(), "GET upstreams failed");

    let error = builder(&url).build().unwrap_err().to_string();
    assert_eq!(error, "the CA file is not given, and https needs one");
    for (text, problem) in [
        ("", "holds no certificate"),
        ("-----BEGIN CERTIFICATE-----\n?", "is not PEM, or its PEM is damaged"),
    ] {
        let error = builder(&url).tls(ClientTls::ca_file(file("bad", text))).build().unwrap_err().to_string();
        assert!(error.contains("bad") && error.ends_with(problem), "{error}");
    }
}

#[tokio::test]
async fn each_connection_reads_the_files_again_and_their_errors_are_retryable() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let write = |name: &str, text: &str| std::fs::write(path(name), text).unwrap();
    let (authority, other) = (Authority::new("authority"), Authority::new("other"));
    let double = AdminDouble::start_tls(acceptor_of(&authority, Some(&authority))).await;
    let url = format!("https://{}", double.address);
    let (mine, foreign) = (authority.issue(2), other.issue(3));
    write("ca", &other.pem());
    write("cert", &foreign.certificate);
    write("key", &foreign.key);
    let sink = builder(&url)
        .tls(ClientTls::ca_file(path("ca")).identity_files(path("cert"), path("key")))
        .build()
        .unwrap();
    let fails = async |category: &str, text: &str| {
        let error = sink.publish(&shop()).await.unwrap_err();
        assert_eq!((error.category(), error.is_retryable()), (category, true), "{error}");
        assert!(error.to_string().contains(text), "{error}");
    };
    fails("admin_unavailable", "").await;
    write("ca", "");
    fails("admin_ca", "holds no certificate").await;
    write("ca", &authority.pem());
    fails("admin_unavailable", "").await;
    write("cert", &mine.certificate);
    fails("admin_client_certificate", "does not belong to the certificate").await;
    std::fs::remove_file(path("key")).unwrap();
    fails("admin_client_certificate", "cannot be read").await;
    write("key", &mine.key);
    sink.publish(&shop()).await.unwrap();
    write("cert", "");
    fails("admin_client_certificate", "holds no certificate").await;
}

#[test]
fn keys_leave_the_machine_in_plaintext_only_when_asked() {
    let error = builder("http://10.0.0.1:9181").build().unwrap_err().to_string();
    assert!(error.contains("allow_plaintext_beyond_loopback"), "{error}");
    builder("http://10.0.0.1:9181").allow_plaintext_beyond_loopback().build().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_real_admin_api_takes_it_and_pingsix_routes() {
    let Some(binary) = pingsix() else { return };
    let Some(etcd) = Etcd::start().await else { return };
    let directory = tempfile::tempdir().unwrap();
    let (proxy, admin) = (free_address(), free_address());
    let config = directory.path().join("config.yaml");
    std::fs::write(
        &config,
        format!(
            "{}pingsix:\n  listeners: [{{ address: {proxy} }}]\n  etcd: {{ host: [\"{}\"], prefix: /p/web }}\n  admin: \
             {{ address: {admin}, api_key: {KEY} }}\n",
            gateway::pingora(directory.path()),
            etcd.address(),
        ),
    )
    .unwrap();
    let _running = gateway::Gateway::start(&binary, &config, &directory.path().join("log"));
    gateway::answers(admin, "/", 403).await;

    let sink = builder(&format!("http://{admin}")).build().unwrap();
    let (one, two) = (gateway::backend("one").await, gateway::backend("two").await);
    let upstream = |address: &std::net::SocketAddr| json!({"nodes": {address.to_string(): 1}}).to_string();
    let pair = Authority::new("authority").issue(1);
    let ssl = json!({"cert": pair.certificate, "key": pair.key, "snis": ["feed.test"]}).to_string();
    let auth = json!({"uri": "/auth", "service_id": "s", "plugins": {"key-auth": {"keys": ["k1", "k2"]}}});
    let state = |address: &std::net::SocketAddr| {
        web(&[
            ("upstreams/u", &upstream(address)),
            ("services/s", r#"{"upstream_id":"u"}"#),
            ("global_rules/g", r#"{"plugins":{"request-id":{}}}"#),
            ("routes/r", r#"{"uris":["/a","/a/{*p}"],"service_id":"s"}"#),
            ("routes/auth", &auth.to_string()),
            ("ssls/c", &ssl),
        ])
    };
    let first = sink.publish(&state(&one)).await.unwrap();
    assert_eq!(first.changed.created, 6);
    assert_eq!(gateway::answers(proxy, "/a/x", 200).await, "one");
    gateway::answers(proxy, "/auth", 401).await;
    assert!(sink.publish(&state(&one)).await.unwrap().changed.is_empty(), "masked, and known to be ours");
    let masked = sink.documents(&scope("/p/web")).await.unwrap();
    let ssl = masked.iter().find(|document| document.key.as_str() == "ssls/c").unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&ssl.value).unwrap()["key"], "***");

    let restarted = builder(&format!("http://{admin}")).build().unwrap();
    let again = restarted.publish(&state(&one)).await.unwrap();
    assert_eq!(
        again.changed,
        Changed { updated: 2, ..Changed::default() },
        "documents with secrets are written once"
    );
    assert!(restarted.publish(&state(&one)).await.unwrap().changed.is_empty());
    let changed = restarted.publish(&state(&two)).await.unwrap();
    assert!(changed.revision > again.revision);
    let mut tries = tokio::time::interval(Duration::from_millis(20));
    while gateway::get(proxy, "/a").await != Some((200, "two".to_owned())) {
        tries.tick().await;
    }

    // Each refusal equals that of the double.
    let dangling = web(&[("routes/r", r#"{"uri":"/a","upstream_id":"nobody"}"#)]);
    let error = restarted.publish(&dangling).await.unwrap_err();
    assert!(error.to_string().starts_with("PingSIX refuses document routes/r of test: "), "{error}");
    let damaged =
        json!({"cert": pair.certificate, "key": "no PEM but a secret", "snis": ["feed.test"]}).to_string();
    let error = restarted.publish(&web(&[("ssls/c", &damaged)])).await.unwrap_err().to_string();
    assert!(
        error.starts_with("PingSIX refuses document ssls/c of test: ") && !error.contains("a secret"),
        "{error}"
    );
    let theirs = builder(&format!("http://{admin}")).build().unwrap();
    let other = desired("/p/other", &[("routes/theirs", r#"{"uri":"/t","upstream_id":"u"}"#)]);
    theirs.publish(&other).await.unwrap();
    let empty = Desired::empty(scope("/p/web"));
    let error = restarted.publish(&empty).await.unwrap_err().to_string();
    assert_eq!(error, "still referred to by resources of others: upstreams/u");
    theirs.publish(&Desired::empty(scope("/p/other"))).await.unwrap();
    restarted.publish(&empty).await.unwrap();
    gateway::answers(proxy, "/a", 404).await;
}
