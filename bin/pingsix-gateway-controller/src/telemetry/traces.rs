//! Traces: the times of reconciliations and of status writes, for an OpenTelemetry collector.
//!
//! Spans wait in a queue of bounded length, from which a separate thread sends. A slow or absent collector therefore
//! costs spans alone.

use std::env;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::tonic_types::transport::ClientTlsConfig;
use opentelemetry_otlp::{SpanExporter as OtlpExporter, WithExportConfig as _, WithTonicConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::resource::{EnvResourceDetector, TelemetryResourceDetector};
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use tracing::level_filters::LevelFilter;
use tracing::{info, warn};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;

use crate::log::Layer;
use crate::values::CollectorUrl;
use crate::wiring::instance;

const NAME: &str = env!("CARGO_PKG_NAME");

/// The targets of spans that end: those of watches and of the lease last as long as the process.
const TRACED: [&str; 4] = [
    "pingsix_gateway_api::controller::engine",
    "pingsix_gateway_api::controller::publisher",
    "pingsix_gateway_api::provision::provisioner",
    "pingsix_gateway_api::status::writer",
];

/// The time limit of the export of the last spans.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Takes in spans, and sends them.
pub(super) struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    pub(super) fn start(collector: &CollectorUrl) -> anyhow::Result<Self> {
        let url = collector.to_string();
        let mut exporter = OtlpExporter::builder().with_tonic().with_endpoint(&url);
        if url.starts_with("https:") {
            // By default, the exporter trusts no authority.
            exporter = exporter.with_tls_config(ClientTlsConfig::new().with_enabled_roots());
        }
        let exporter = exporter.build().context("cannot send traces (otlp.endpoint)")?;
        let exporter = LoggingExporter { exporter, is_failing: AtomicBool::new(false) };
        let provider =
            SdkTracerProvider::builder().with_resource(resource()).with_batch_exporter(exporter).build();
        Ok(Self { provider })
    }

    pub(super) fn layer(&self) -> Layer {
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer(NAME))
            .with_location(false)
            .with_threads(false)
            .with_filter(traced())
            .boxed()
    }

    pub(super) fn end(self) {
        // The exporter reports failures. Spans that take longer are lost.
        let _ = self.provider.shutdown_with_timeout(FLUSH_TIMEOUT);
    }
}

fn traced() -> Targets {
    TRACED.iter().map(|target| (*target, LevelFilter::INFO)).collect()
}

/// The resource of the spans. Standard variables take precedence.
fn resource() -> Resource {
    let known = [
        KeyValue::new("service.name", NAME),
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("service.instance.id", instance()),
    ];
    let named = env::var("OTEL_SERVICE_NAME").ok().filter(|name| !name.is_empty());
    Resource::builder_empty()
        .with_attributes(known)
        .with_detector(Box::new(TelemetryResourceDetector))
        .with_detector(Box::new(EnvResourceDetector::new()))
        .with_attributes(named.map(|name| KeyValue::new("service.name", name)))
        .build()
}

/// Logs the begin and the end of export failures, and not each attempt.
#[derive(Debug)]
struct LoggingExporter<E> {
    exporter: E,
    is_failing: AtomicBool,
}

impl<E: SpanExporter> SpanExporter for LoggingExporter<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let sent = self.exporter.export(batch).await;
        let was_failing = self.is_failing.swap(sent.is_err(), Ordering::Relaxed);
        match &sent {
            Err(error) if !was_failing => {
                warn!(%error, "cannot export traces; spans are dropped until the collector answers");
            }
            Ok(()) if was_failing => info!("traces are exported again"),
            Err(_) | Ok(()) => {}
        }
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::net::TcpListener;
    use std::sync::{Arc, Mutex};
    use std::time::Instant;

    use opentelemetry_sdk::error::OTelSdkError;
    use tracing::subscriber::with_default;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[test]
    fn a_silent_collector_delays_no_span() {
        // Connections are made, and wait to be accepted.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let collector = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let traces = {
            let _entered = runtime.enter();
            Traces::start(&collector).unwrap()
        };
        let began = Instant::now();
        with_default(tracing_subscriber::registry().with(vec![traces.layer()]), || {
            // More than fit into the queue.
            for _ in 0..20_000 {
                tracing::info_span!(target: TRACED[0], "reconcile").in_scope(|| {});
            }
        });
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        let asked = Instant::now();
        traces.end();
        assert!(asked.elapsed() < FLUSH_TIMEOUT + Duration::from_secs(3), "{:?}", asked.elapsed());
    }

    #[test]
    fn only_spans_that_end_are_sent() {
        let traced = traced();
        assert!(traced.would_enable("pingsix_gateway_api::controller::engine", &tracing::Level::INFO));
        for stranger in ["pingsix_gateway_api::watch::watches", "pingsix_gateway_api::leader", "h2::proto"] {
            assert!(!traced.would_enable(stranger, &tracing::Level::ERROR), "{stranger}");
        }
    }

    /// Fails as the test sets.
    #[derive(Debug)]
    struct Fake(AtomicBool);

    impl SpanExporter for Fake {
        async fn export(&self, _: Vec<SpanData>) -> OTelSdkResult {
            if self.0.load(Ordering::Relaxed) {
                Err(OTelSdkError::InternalFailure("nobody is there".to_owned()))
            } else {
                Ok(())
            }
        }
    }

    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(text)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn failures_are_told_when_they_begin_and_end() {
        let paper = Paper::default();
        let writer = paper.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
        let _default = tracing::subscriber::set_default(subscriber);
        let exporter =
            LoggingExporter { exporter: Fake(AtomicBool::new(false)), is_failing: AtomicBool::new(false) };
        for is_failing in [false, false, true, true, true, false, false, true] {
            exporter.exporter.0.store(is_failing, Ordering::Relaxed);
            assert_eq!(exporter.export(Vec::new()).await.is_err(), is_failing);
        }
        let said = String::from_utf8(paper.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<_> = said.lines().collect();
        assert_eq!(lines.len(), 3, "{said}");
        assert!(lines[0].contains("cannot export") && lines[0].contains("nobody is there"), "{said}");
        assert!(lines[1].contains("exported again") && lines[2].contains("cannot export"), "{said}");
    }
}
