//! A feed of many routes, one of which changes at a time, and a client that sees it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use pingsix_sink::embedded::Pace;
use pingsix_sink::{Desired, Document, DocumentSet, EmbeddedEtcd, Key, OrderHint, Owner, Scope, Sink as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::tls;
use crate::certificate::Certificate;
use crate::documents;

/// The prefix of the documents.
pub(crate) const PREFIX: &str = "/pingsix-stream/bench/web";
/// The number of routes.
pub(crate) const ROUTES: usize = 10_000;
/// The number of upstreams: those with an even number have the first backend, the others the second.
const UPSTREAMS: usize = 100;
/// The time in which a change takes effect.
const EFFECT_TIMEOUT: Duration = Duration::from_secs(20);

/// The server name of a route.
pub(crate) fn name(number: usize) -> String {
    format!("route-{number}.bench.test")
}

/// Answers commands:
///
/// - `change N`: the microseconds from the response to the change of route N until a client reaches its other backend.
/// - `await N B`: an answer when a client of route N reaches backend B, 0 or 1.
/// - `hold COUNT`: opens connections. `held`: the number of these whose bytes still come back.
///
/// The first line has the addresses of the feed and of the backends.
pub(super) async fn run(port: u16, certificates: usize, mut commands: mpsc::UnboundedReceiver<String>) {
    let backends = [backend(0).await, backend(1).await];
    let mut feed = Feed::start(port, certificates, backends).await;
    println!("{} {} {}", feed.address, backends[0], backends[1]);
    let mut held = Vec::new();
    while let Some(command) = commands.recv().await {
        let words: Vec<&str> = command.split(' ').collect();
        match words[..] {
            ["change", number] => {
                let number = number.parse().unwrap();
                let hello = tls::hello(&name(number));
                let backend = feed.change(number).await;
                let started = Instant::now();
                reach(port, &hello, backend).await;
                println!("{}", started.elapsed().as_secs_f64() * 1e6);
            }
            ["await", number, backend] => {
                let hello = tls::hello(&name(number.parse().unwrap()));
                reach(port, &hello, backend.parse().unwrap()).await;
                println!("reached");
            }
            ["hold", count] => {
                for number in 0..count.parse().unwrap() {
                    held.push(hold(port, number).await);
                }
                println!("open");
            }
            ["held"] => {
                let mut whole = 0;
                for stream in &mut held {
                    whole += usize::from(echoes(stream).await);
                }
                println!("{whole}");
            }
            _ => panic!("there is no command {command}"),
        }
    }
}

/// A backend that greets each connection with its number, and then returns what it receives.
async fn backend(number: u8) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let _ = stream.write_all(&[number]).await;
                let (mut input, mut output) = stream.split();
                // The client can have gone.
                let _ = tokio::io::copy(&mut input, &mut output).await;
            });
        }
    });
    address
}

async fn hold(port: u16, number: usize) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let hello = tls::hello(&name(number));
    stream.write_all(&hello).await.unwrap();
    stream.read_exact(&mut vec![0; 1 + hello.len()]).await.unwrap();
    stream
}

async fn echoes(stream: &mut TcpStream) -> bool {
    let exchange = async {
        stream.write_u8(9).await?;
        stream.read_u8().await
    };
    matches!(timeout(EFFECT_TIMEOUT, exchange).await, Ok(Ok(9)))
}

/// Returns when a new connection with this `ClientHello` reaches a backend.
async fn reach(port: u16, hello: &[u8], backend: u8) {
    let reached = async {
        loop {
            let exchange = async {
                let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
                stream.write_all(hello).await?;
                stream.read_u8().await
            };
            match exchange.await {
                Ok(reached) if reached == backend => return,
                Ok(_) => {}
                // The proxy does not listen yet.
                Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    };
    timeout(EFFECT_TIMEOUT, reached).await.expect("the change takes effect");
}

/// The embedded server with the documents of all routes.
struct Feed {
    etcd: EmbeddedEtcd,
    address: SocketAddr,
    documents: DocumentSet,
    port: u16,
    certificates: usize,
    /// The backend of each route that has changed.
    changed: BTreeMap<usize, u8>,
}

impl Feed {
    /// The first routes are those that terminate TLS, each with a certificate of its own.
    async fn start(port: u16, certificates: usize, backends: [SocketAddr; 2]) -> Self {
        let upstreams = (0..UPSTREAMS)
            .map(|number| documents::upstream(&upstream(number), backends[number % backends.len()]));
        let certified = (0..certificates).map(|number| {
            documents::certificate(&format!("s-{number}"), &Certificate::new(&[&name(number)]))
        });
        let documents = upstreams.chain(certified).map(|(key, value)| document(&key, &value));
        let routes = (0..ROUTES).map(|number| route(port, number, certificates, 0));
        let documents = DocumentSet::new(documents.chain(routes)).unwrap();
        let etcd = EmbeddedEtcd::builder().pace(Pace::NONE).start().await.unwrap();
        etcd.publish(&desired(&documents)).await.unwrap();
        etcd.open();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = etcd.clone();
        tokio::spawn(async move { server.serve(listener, CancellationToken::new()).await.unwrap() });
        Self { etcd, address, documents, port, certificates, changed: BTreeMap::new() }
    }

    /// Gives a route its other backend, and returns it.
    async fn change(&mut self, number: usize) -> u8 {
        let backend = 1 - self.changed.get(&number).copied().unwrap_or_default();
        self.changed.insert(number, backend);
        let document = route(self.port, number, self.certificates, backend);
        let changed = [(document.key.clone(), Some(document))].into_iter().collect();
        self.documents = self.documents.with_changes(changed);
        self.etcd.publish(&desired(&self.documents)).await.unwrap();
        backend
    }
}

fn desired(documents: &DocumentSet) -> Desired {
    Desired::new(Scope::new(PREFIX).unwrap(), documents.clone())
}

fn upstream(number: usize) -> String {
    format!("u-{number}")
}

fn route(port: u16, number: usize, certificates: usize, backend: u8) -> Document {
    let certificate = (number < certificates).then(|| format!("s-{number}"));
    let upstream = upstream(number * 2 % UPSTREAMS + usize::from(backend));
    let (key, value) = documents::named(port, &name(number), certificate.as_deref(), &upstream);
    document(&key, &value)
}

fn document(key: &str, value: &serde_json::Value) -> Document {
    Document {
        key: Key::new(key).unwrap(),
        value: value.to_string().into(),
        order: OrderHint(if key.starts_with("stream_routes") { 2 } else { 1 }),
        owner: Owner::new("bench"),
    }
}
