//! Documents, backends and clients.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use pingsix_gateway_sidecar::documents::Documents;
use pingsix_gateway_sidecar::stream::{StreamMetrics, StreamOptions, Streams};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Runs a test on two threads, with an end.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let limit = Duration::from_mins(2);
    runtime.block_on(async { tokio::time::timeout(limit, test).await.expect("the test has no end") });
}

/// Options for backends on loopback.
pub(crate) fn options() -> StreamOptions {
    StreamOptions { address: IpAddr::V4(Ipv4Addr::LOCALHOST), local_nodes: true, ..StreamOptions::default() }
}

/// The role, with the text of its metrics.
pub(crate) struct Proxy {
    pub(crate) streams: Streams,
    registry: prometheus_client::registry::Registry,
}

impl Proxy {
    pub(crate) fn start(options: StreamOptions) -> Self {
        let metrics = Arc::new(StreamMetrics::new());
        let mut registry = prometheus_client::registry::Registry::default();
        metrics.register(&mut registry);
        Self { streams: Streams::start(options, metrics), registry }
    }

    /// A role that serves some documents without an error.
    pub(crate) async fn serving(documents: &[(String, Value)]) -> Self {
        let proxy = Self::start(options());
        proxy.apply(documents).await;
        proxy
    }

    /// Puts documents in force, without an error.
    pub(crate) async fn apply(&self, documents: &[(String, Value)]) {
        let applied = self.streams.apply(&self::documents(documents)).await;
        assert_eq!(applied.errors, []);
    }

    /// The value of a metric; 0 without one.
    pub(crate) fn metric(&self, series: &str) -> u64 {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.map_or(0, |value| value.parse().unwrap())
    }

    /// Waits for a value of a metric.
    pub(crate) async fn metric_reaches(&self, series: &str, value: u64) {
        until(|| self.metric(series) >= value, series).await;
    }

    /// Waits for a dropped datagram with this word.
    pub(crate) async fn drops(&self, port: u16, word: &str) {
        self.metric_reaches(&dropped(port, word), 1).await;
    }

    /// Waits for a rejected connection with this word.
    pub(crate) async fn rejects(&self, port: u16, word: &str) {
        let series =
            format!("stream_connections_total{{port=\"{port}\",outcome=\"rejected\",reason=\"{word}\"}}");
        self.metric_reaches(&series, 1).await;
    }
}

/// The series of the datagrams that clients sent and that were dropped with this word.
pub(crate) fn dropped(port: u16, word: &str) -> String {
    format!("stream_dropped_datagrams_total{{port=\"{port}\",direction=\"in\",reason=\"{word}\"}}")
}

/// A size of a test: that of an environment variable in long runs (`just streams-load`), or else a smaller one.
pub(crate) fn size(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).map_or(otherwise, |text| text.parse().unwrap())
}

/// The number of connections whose every byte is judged.
pub(crate) fn judges() -> usize {
    size("STREAMS_JUDGES", 200)
}

/// The number of random bytes that are sent through a connection.
pub(crate) fn random_length() -> usize {
    size("STREAMS_BYTES", 1_000_000)
}

/// Waits for a condition.
pub(crate) async fn until(mut holds: impl FnMut() -> bool, what: &str) {
    for _ in 0..1_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not reached: {what}");
}

/// Waits until nothing accepts connections at a port.
pub(crate) async fn no_listener(port: u16) {
    for _ in 0..1_000 {
        if TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("port {port} accepts connections");
}

/// Ends the judges of connections, none of which has ended by itself, and each of which has had its own bytes.
pub(crate) async fn end_judges(
    judges: Vec<JoinHandle<()>>,
    stop: &AtomicBool,
    bytes: &AtomicUsize,
    proxy: &Proxy,
) {
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(judges.iter().all(|judge| !judge.is_finished()));
    stop.store(true, Ordering::Relaxed);
    for judge in judges {
        judge.await.unwrap();
    }
    assert!(bytes.load(Ordering::Relaxed) > 2_000_000, "{bytes:?}");
    until(|| proxy.streams.connections() == 0, "no connections").await;
}

pub(crate) fn documents(documents: &[(String, Value)]) -> Documents {
    let by_key = documents.iter().map(|(key, value)| (key.clone(), value.to_string().into()));
    Documents { revision: 1, by_key: by_key.collect() }
}

/// An upstream `u<id>`.
pub(crate) fn upstream(id: &str, nodes: &[SocketAddr]) -> (String, Value) {
    let nodes: serde_json::Map<String, Value> =
        nodes.iter().map(|node| (node.to_string(), json!(1))).collect();
    (format!("upstreams/{id}"), json!({ "nodes": nodes }))
}

/// A route for TCP with weights of upstreams.
pub(crate) fn tcp(port: u16, targets: &[(&str, u32)]) -> (String, Value) {
    (
        format!("stream_routes/tcp-{port}"),
        json!({"server_port": port, "protocol": "tcp", "targets": weighted(targets)}),
    )
}

/// A route for UDP with weights of upstreams.
pub(crate) fn udp(port: u16, targets: &[(&str, u32)]) -> (String, Value) {
    (
        format!("stream_routes/udp-{port}"),
        json!({"server_port": port, "protocol": "udp", "targets": weighted(targets)}),
    )
}

/// A route for TLS to one upstream.
pub(crate) fn tls(port: u16, names: &[&str], target: &str) -> (String, Value) {
    (
        format!("stream_routes/tls-{port}-{}", names[0]),
        json!({"server_port": port, "protocol": "tls", "snis": names, "tls": "passthrough",
            "targets": weighted(&[(target, 1)])}),
    )
}

/// Targets by the id of an upstream, or `!` and the word of a rejection.
fn weighted(targets: &[(&str, u32)]) -> Value {
    let written = targets.iter().map(|(target, weight)| match target.strip_prefix('!') {
        Some(word) => json!({"reject": word, "weight": weight}),
        None => json!({"upstream_id": target, "weight": weight}),
    });
    written.collect()
}

/// A backend that greets each connection with its name, one byte, and then returns what it receives.
pub(crate) struct Backend {
    pub(crate) address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Backend {
    pub(crate) async fn start(name: u8) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::on(listener, name)
    }

    pub(crate) fn on(listener: TcpListener, name: u8) -> Self {
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        let task = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(async move {
                    let _ = stream.write_all(&[name]).await;
                    let (mut input, mut output) = stream.split();
                    let _ = tokio::io::copy(&mut input, &mut output).await;
                    let _ = output.shutdown().await;
                });
            }
        });
        Self { address, accepted, task }
    }

    /// The connections so far.
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Closes the listener; connections go on.
    pub(crate) async fn close(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

pub(crate) async fn connect(port: u16) -> TcpStream {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap()
}

/// The name of the backend that a new connection reaches; `None` if it is rejected.
pub(crate) async fn ask(port: u16) -> Option<u8> {
    match TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await {
        Ok(mut stream) => greeting(&mut stream).await,
        // A reset can arrive before the client knows that it is connected.
        Err(error) => {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
            None
        }
    }
}

/// The greeting; `None` if the connection is rejected, which is a reset or an end without a byte.
pub(crate) async fn greeting(stream: &mut TcpStream) -> Option<u8> {
    let mut name = [0];
    match stream.read(&mut name).await {
        Ok(1) => Some(name[0]),
        Ok(_) => None,
        Err(error) => {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
            None
        }
    }
}

/// The name of the backend that a TLS connection with this server name reaches, after its `ClientHello` came back.
pub(crate) async fn ask_tls(port: u16, name: Option<&str>) -> Option<u8> {
    let mut stream = connect(port).await;
    let hello = client_hello(name);
    stream.write_all(&hello).await.unwrap();
    let backend = greeting(&mut stream).await?;
    let mut returned = vec![0; hello.len()];
    stream.read_exact(&mut returned).await.unwrap();
    assert_eq!(returned, hello);
    Some(backend)
}

/// A `ClientHello` in one record.
pub(crate) fn client_hello(name: Option<&str>) -> Vec<u8> {
    let short = |length: usize| u16::try_from(length).unwrap().to_be_bytes();
    // supported_versions
    let mut extensions = vec![0, 43, 0, 3, 2, 3, 4];
    if let Some(name) = name {
        extensions.extend([0, 0]);
        extensions.extend(short(name.len() + 5));
        extensions.extend(short(name.len() + 3));
        extensions.push(0);
        extensions.extend(short(name.len()));
        extensions.extend(name.as_bytes());
    }
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0x13, 0x01, 1, 0]);
    body.extend(short(extensions.len()));
    body.extend(extensions);
    let mut message = vec![1, 0];
    message.extend(short(body.len()));
    message.extend(body);
    let mut record = vec![22, 3, 1];
    record.extend(short(message.len()));
    record.extend(message);
    record
}
