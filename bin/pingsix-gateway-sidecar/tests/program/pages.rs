//! Status pages and signals, with documents of a feed and of a file.

use std::net::SocketAddr;

use pingsix_sink::{Desired, Document, DocumentSet, EmbeddedEtcd, Key, OrderHint, Owner, Scope, Sink as _};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::process::Sidecar;

const PREFIX: &str = "/pingsix-stream/shop/web";

fn desired(documents: &[(&str, &str)]) -> Desired {
    let documents = documents.iter().map(|(key, value)| Document {
        key: Key::new(*key).unwrap(),
        value: value.to_string().into(),
        order: OrderHint(0),
        owner: Owner::new("test"),
    });
    Desired::new(Scope::new(PREFIX).unwrap(), DocumentSet::new(documents).unwrap())
}

async fn feed(documents: &[(&str, &str)]) -> (EmbeddedEtcd, SocketAddr, DropGuard) {
    let etcd = EmbeddedEtcd::builder().start().await.unwrap();
    etcd.publish(&desired(documents)).await.unwrap();
    etcd.open();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let (serving, stopped) = (etcd.clone(), stop.clone());
    tokio::spawn(async move { serving.serve(listener, stopped).await.unwrap() });
    (etcd, address, stop.drop_guard())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_revision_of_a_feed_is_on_the_pages_and_its_secrets_nowhere() {
    let (etcd, address, _serving) = feed(&[("ssls/s", r#"{"cert":"hunter2","key":"hunter2"}"#)]).await;
    let endpoint = format!("--streams-endpoint=http://{address}");
    let sidecar = Sidecar::start(&["--streams", &endpoint, "--streams-prefix", PREFIX]);
    sidecar.until("the list", |page| page["ready"] == true).await;
    let change = [("ssls/s", r#"{"cert":"hunter2"}"#), ("upstreams/u", r#"{"nodes":{"elsewhere":1}}"#)];
    let published = etcd.publish(&desired(&change)).await.unwrap().revision.get();
    let page = sidecar.until("the change", |page| page["published_revision"] == published).await;
    assert_eq!((&page["config_source"], &page["connected"]), (&"etcd".into(), &true.into()));
    assert_eq!(sidecar.get("/status/live").0, 200);
    assert_eq!(sidecar.get("/status/ready").0, 200);
    let (status, metrics) = sidecar.get("/metrics");
    assert_eq!(status, 200);
    assert!(metrics.contains(&format!("pingsix_sidecar_feed_observed_revision {published}\n")), "{metrics}");
    assert!(metrics.contains("pingsix_sidecar_documents 2\n"), "{metrics}");
    for path in ["/", "/status", "/debug"] {
        assert_eq!(sidecar.get(path).0, 404, "{path}");
    }
    // A web page cannot read the pages under its own name.
    for path in ["/status/live", "/status/ready", "/status/config", "/metrics"] {
        assert_eq!(sidecar.get_as("evil.example.com", path).0, 421, "{path}");
    }
    let page = page.to_string();
    sidecar.signal("-TERM");
    let (status, log) = sidecar.ended();
    assert!(status.success(), "{log}");
    for text in [log, metrics, page] {
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_of_a_sidecar_with_a_key_needs_it_and_probes_do_not() {
    let key = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(key.path(), "sesame\n").unwrap();
    let key = format!("--status-key-file={}", key.path().display());
    let sidecar = Sidecar::start(&["--responder", "--responder-listen=127.0.0.1:0", &key]);
    let (status, page) = sidecar.get("/status/config");
    assert!(status == 403 && !page.contains("sesame"), "{page}");
    assert_eq!(sidecar.get_with("x-api-key: sesame", "/status/config").0, 200);
    assert_eq!(sidecar.get_with("x-api-key: other", "/status/config").0, 403);
    assert_eq!((sidecar.get("/status/live").0, sidecar.get("/metrics").0), (200, 200));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feed_that_is_not_there_is_named_and_not_ready() {
    let address = pingsix_test_programs::free_address();
    let endpoint = format!("--streams-endpoint=http://{address}");
    let sidecar = Sidecar::start(&["--streams", &endpoint, "--streams-prefix", PREFIX]);
    let page = sidecar.until("the fault", |page| page["error_kind"] == "etcd_unavailable").await;
    assert!(page["last_error"].as_str().unwrap().starts_with("etcd cannot be reached"), "{page}");
    assert_eq!((sidecar.get("/status/ready").0, sidecar.get("/status/live").0), (503, 200));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_read_again_and_both_roles_are_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("streams.yaml");
    let document = |id: &str| {
        format!(
            "---\n# data plane shop/web, etcd prefix {PREFIX}\nupstreams:\n- id: {id}\n  nodes: {{10.0.0.1:1: 1}}\nstream_routes: []\n"
        )
    };
    std::fs::write(&file, document("a")).unwrap();
    let file_argument = format!("--streams-file={}", file.display());
    let mut sidecar =
        Sidecar::start(&["--streams", &file_argument, "--responder", "--responder-listen=127.0.0.1:0"]);
    let responder = sidecar.line("responder started")["address"].as_str().unwrap().to_owned();
    sidecar.until("the file", |page| page["published_revision"] == 1).await;
    std::fs::write(&file, document("b")).unwrap();
    sidecar.signal("-HUP");
    sidecar.until("the change", |page| page["published_revision"] == 2).await;
    std::fs::remove_file(&file).unwrap();
    let page = sidecar.until("the fault", |page| page["error_kind"] == "file_unusable").await;
    assert_eq!((&page["ready"], &page["published_revision"]), (&true.into(), &2.into()));

    // The pages are served, and not ready, while a request of the responder ends.
    let mut request = std::net::TcpStream::connect(responder).unwrap();
    let head = "POST / HTTP/1.1\r\nhost: status-404.responder.pingsix.internal\r\ncontent-length: 1\r\n\r\n";
    std::io::Write::write_all(&mut request, head.as_bytes()).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    sidecar.signal("-TERM");
    sidecar.line("stopping");
    assert_eq!((sidecar.get("/status/ready").0, sidecar.get("/status/live").0), (503, 200));
    std::io::Write::write_all(&mut request, b"x").unwrap();
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut request, &mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    let (status, log) = sidecar.ended();
    assert!(status.success(), "{log}");
}
