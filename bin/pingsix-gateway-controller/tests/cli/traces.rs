//! Traces, for a running collector and for a missing one.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::Span;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Identity, Server, ServerTlsConfig};
use tonic::{Request, Response, Status};

use crate::cluster::{Shop, until};
use crate::process::get;

/// Variables for an early export of spans.
const EARLY_EXPORT: (&str, &str) = ("OTEL_BSP_SCHEDULE_DELAY", "100");

/// A collector of spans.
#[derive(Clone, Default)]
struct Collector {
    requests: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.requests.lock().unwrap().push(request.into_inner());
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    async fn start(&self) -> SocketAddr {
        self.start_with(Server::builder()).await
    }

    async fn start_with(&self, mut server: Server) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = server.add_service(TraceServiceServer::new(self.clone()));
        tokio::spawn(router.serve_with_incoming(TcpListenerStream::new(listener)));
        address
    }

    /// The sender of spans.
    fn senders(&self) -> Vec<BTreeMap<String, String>> {
        let requests = self.requests.lock().unwrap();
        let resources = requests.iter().flat_map(|request| &request.resource_spans);
        resources.map(|spans| texts(&spans.resource.as_ref().unwrap().attributes)).collect()
    }

    fn spans(&self) -> Vec<Span> {
        let requests = self.requests.lock().unwrap();
        let resources = requests.iter().flat_map(|request| &request.resource_spans);
        resources.flat_map(|spans| &spans.scope_spans).flat_map(|spans| &spans.spans).cloned().collect()
    }
}

/// Attributes, as text.
fn texts(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |attribute: &KeyValue| match attribute.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => text.clone(),
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    attributes.iter().map(|attribute| (attribute.key.clone(), text(attribute))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_gets_the_spans_of_a_reconciliation() {
    let Some(shop) = Shop::start().await else { return };
    let collector = Collector::default();
    let url = format!("--otlp-endpoint=http://{}", collector.start().await);
    let variables = [
        EARLY_EXPORT,
        ("OTEL_SERVICE_NAME", "edge"),
        ("OTEL_RESOURCE_ATTRIBUTES", "team=shop"),
        ("POD_NAME", "pod-1"),
    ];
    let mut controller = shop.controller(&["--debug-address=off", &url], &variables);
    let published = || {
        let spans = collector.spans();
        let is_web = |span: &&Span| {
            let attributes = texts(&span.attributes);
            span.name == "reconcile"
                && attributes.get("owner").is_some_and(|owner| owner == "Gateway default/web")
                && attributes.get("outcome").is_some_and(|outcome| outcome == "current")
        };
        let reconciled = spans.iter().filter(is_web).map(|span| &span.span_id).collect::<Vec<_>>();
        let parts = |name: &str| {
            let of_it = spans.iter().filter(|span| reconciled.contains(&&span.parent_span_id));
            of_it.filter(|span| span.name == name).map(|span| texts(&span.attributes)).collect::<Vec<_>>()
        };
        (parts("translate"), parts("publish"))
    };
    until("a publication is traced", async || !published().1.is_empty()).await;
    let (translations, publications) = published();
    assert!(!translations.is_empty());
    assert_eq!(publications[0]["data_plane"], "default/web");
    assert_ne!(publications[0]["documents"], "0");
    until("a status is traced", async || collector.spans().iter().any(|span| span.name == "status")).await;

    controller.signal("-TERM");
    assert_eq!(controller.ended(), Some(0), "{:?}", controller.logged);
    let sender = &collector.senders()[0];
    let sender = |attribute: &str| sender[attribute].as_str();
    assert_eq!((sender("service.name"), sender("team")), ("edge", "shop"));
    assert_eq!(sender("service.instance.id"), "pod-1");
    assert_eq!(sender("service.version"), env!("CARGO_PKG_VERSION"));
    let names = collector.spans().into_iter().map(|span| span.name);
    let strangers: Vec<_> = names
        .filter(|name| !["reconcile", "translate", "publish", "status"].contains(&name.as_str()))
        .collect();
    assert!(strangers.is_empty(), "what the transport does is not traced: {strangers:?}");
    assert!(!format!("{:?}", collector.requests).contains("PRIVATE KEY"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_is_reached_over_tls() {
    let Some(shop) = Shop::start().await else { return };
    let pair = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let trusted = shop.cluster.folder().join("collector.crt");
    std::fs::write(&trusted, pair.cert.pem()).unwrap();
    let identity = Identity::from_pem(pair.cert.pem(), pair.signing_key.serialize_pem());
    let server = Server::builder().tls_config(ServerTlsConfig::new().identity(identity)).unwrap();
    let collector = Collector::default();
    let url = format!("--otlp-endpoint=https://{}", collector.start_with(server).await);
    // The file of the machine's certificate authorities.
    let variables = [EARLY_EXPORT, ("SSL_CERT_FILE", trusted.to_str().unwrap())];
    let mut controller = shop.controller(&["--debug-address=off", &url], &variables);
    until("something is traced", async || !collector.spans().is_empty()).await;
    controller.signal("-TERM");
    assert_eq!(controller.ended(), Some(0), "{:?}", controller.logged);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreachable_collector_is_logged_once_and_delays_no_work() {
    let Some(shop) = Shop::start().await else { return };
    let url = "--otlp-endpoint=http://127.0.0.1:1";
    let mut controller = shop.controller(&["--debug-address=off", url], &[EARLY_EXPORT]);
    let health = controller.address_of("health");
    until("it is ready", async || get(health, "/readyz").0 == 200).await;
    let complaint = "cannot export traces; spans are dropped until the collector answers";
    controller.line(|line| line["message"] == complaint);
    // Each is reconciled and so causes spans.
    for name in ["one", "two", "three"] {
        let gateway = format!(
            "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: {name}, namespace: default}}
spec: {{gatewayClassName: pingsix, listeners: [{{name: plain, port: 80, protocol: HTTP}}]}}
"
        );
        shop.cluster.apply(&gateway).await.unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let asked = Instant::now();
    controller.signal("-TERM");
    assert_eq!(controller.ended(), Some(0));
    assert!(asked.elapsed() < Duration::from_secs(9), "{:?}", asked.elapsed());
    let log = controller.rest_of_log();
    assert!(
        log.iter()
            .any(|line| line["message"] == "reconciled" && line["span"]["owner"] == "Gateway default/three")
    );
    assert_eq!(log.iter().filter(|line| line["message"] == complaint).count(), 1, "it is told once");
    let target = |line: &&serde_json::Value| line["target"].as_str().unwrap().starts_with("opentelemetry");
    assert_eq!(log.iter().find(target), None, "and by nobody else");
}
