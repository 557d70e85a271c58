//! The stream role with a backend, and what clients and documents of any bytes do to it.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use pingsix_gateway_sidecar::documents::Documents;
use pingsix_gateway_sidecar::stream::{StreamMetrics, StreamOptions, Streams};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::input::Input;

/// The address of the role, another one in each process. Documents of any bytes may have any port, and no other program
/// listens there.
fn address() -> Ipv4Addr {
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, 77, high, low)
}

/// The ports of a route for TCP and one for TLS, and the name of the latter.
const TCP_PORT: u16 = 7001;
const TLS_PORT: u16 = 7002;
const NAME: &str = "a.test";

/// The time limit of an exchange.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(20);

/// A running role.
pub(crate) struct Target {
    runtime: Runtime,
    streams: Streams,
    good: Vec<(String, Value)>,
    revision: i64,
}

thread_local! {
    static TARGET: RefCell<Target> = RefCell::new(Target::start());
}

/// Exercises the role of this thread with some bytes.
///
/// # Panics
///
/// If there are errors.
pub(crate) fn exercise(bytes: &[u8], run: impl FnOnce(&mut Target, &[u8]) -> Vec<String>) {
    let errors = TARGET.with_borrow_mut(|target| run(target, bytes));
    assert!(errors.is_empty(), "{errors:#?}\n{bytes:?}");
}

impl Target {
    fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let backend = listener.local_addr().unwrap();
        runtime.spawn(echo(listener));
        let targets = json!([{"upstream_id": "u", "weight": 1}]);
        let route = |port: u16| json!({"server_port": port, "protocol": "tcp", "targets": targets});
        let mut named = route(TLS_PORT);
        named["protocol"] = json!("tls");
        named["tls"] = json!("passthrough");
        named["snis"] = json!([NAME]);
        let good = vec![
            ("upstreams/u".to_owned(), json!({"nodes": {backend.to_string(): 1}})),
            ("stream_routes/tcp".to_owned(), route(TCP_PORT)),
            ("stream_routes/tls".to_owned(), named),
        ];
        let options =
            StreamOptions { address: IpAddr::V4(address()), local_nodes: true, ..StreamOptions::default() };
        let guard = runtime.enter();
        let streams = Streams::start(options, Arc::new(StreamMetrics::new()));
        drop(guard);
        let mut target = Self { runtime, streams, good, revision: 0 };
        assert_eq!(target.apply_good(), Vec::<String>::new());
        target
    }

    /// Sends bytes to the port for TLS, in portions whose lengths are the first bytes, and returns what is wrong with the
    /// answer: a connection gets its own bytes back, or none.
    pub(crate) fn hello(&self, bytes: &[u8]) -> Vec<String> {
        let mut input = Input(bytes);
        let portions: Vec<usize> = (0..4).map(|_| usize::from(input.byte())).collect();
        let flight = input.0;
        let received = self.within(async {
            let (mut read, mut write) = TcpStream::connect((address(), TLS_PORT)).await.unwrap().into_split();
            let send = async {
                for most in portions.into_iter().chain([usize::MAX]) {
                    // A reset by the other side is an answer.
                    if write.write_all(input.bytes(most)).await.is_err() {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
                let _ = write.shutdown().await;
            };
            let mut received = Vec::new();
            let receive = async {
                let _ = read.read_to_end(&mut received).await;
            };
            tokio::join!(send, receive);
            received
        });
        match received {
            None => vec!["the connection has no end".to_owned()],
            Some(received) if !flight.starts_with(&received) => {
                vec!["the connection got other bytes".to_owned()]
            }
            Some(_) => Vec::new(),
        }
    }

    /// Plays a script of sends and pauses on the port for TCP, and returns what is wrong: every byte comes back, and the
    /// end after the last one.
    pub(crate) fn duplex(&self, bytes: &[u8]) -> Vec<String> {
        let mut input = Input(bytes);
        let mut sends = Vec::new();
        while !input.is_empty() && sends.len() < 64 {
            let length = input.one_of(&[1, 7, 100, 4_096, 16_384, 70_000, 200_000]);
            sends.push((length, input.byte()));
        }
        let all: Vec<u8> = sends
            .iter()
            .flat_map(|(length, seed)| {
                (0..*length).map(move |place: usize| (place % 251).to_le_bytes()[0] ^ seed)
            })
            .collect();
        let received = self.within(async {
            let (mut read, mut write) = TcpStream::connect((address(), TCP_PORT)).await?.into_split();
            let send = async {
                let mut rest = all.as_slice();
                for (length, pause) in &sends {
                    let (now, later) = rest.split_at(*length);
                    rest = later;
                    write.write_all(now).await?;
                    if pause % 8 == 0 {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
                write.shutdown().await
            };
            let mut received = Vec::new();
            let receive = read.read_to_end(&mut received);
            let (written, ended) = tokio::join!(send, receive);
            written?;
            ended?;
            Ok::<_, std::io::Error>(received)
        });
        match received {
            None => vec!["the connection has no end".to_owned()],
            Some(Err(error)) => vec![format!("the connection failed: {error}")],
            Some(Ok(received)) if received != all => vec!["bytes are missing, or others came".to_owned()],
            Some(Ok(_)) => Vec::new(),
        }
    }

    /// Applies documents that are made of the good ones and of any bytes, then the good ones, and returns what is wrong:
    /// the role does not panic, and then serves as if nothing had been.
    pub(crate) fn documents(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut input = Input(bytes);
        let mut documents = Vec::new();
        while !input.is_empty() && documents.len() < 12 {
            let kind = input.one_of(&["stream_routes", "upstreams", "ssls", "cas", "other", ".meta"]);
            let key = format!("{kind}/{}", input.one_of(&["u", "tcp", "tls", "x", "y", ""]));
            let mut value = match input.byte() % 4 {
                0 => input.bytes(200).to_vec(),
                index => self.good[usize::from(index) - 1].1.to_string().into_bytes(),
            };
            // Some bytes are changed.
            for _ in 0..input.byte() % 4 {
                let (place, byte) = (usize::from(input.byte()), input.byte());
                if let Some(changed) = value.get_mut(place) {
                    *changed = byte;
                }
            }
            documents.push((key, value));
        }
        self.revision += 1;
        let by_key = documents.into_iter().map(|(key, value)| (key, value.into())).collect();
        let documents = Documents { revision: self.revision, by_key };
        self.runtime.block_on(self.streams.apply(&documents));
        let mut errors = self.apply_good();
        errors.extend(self.duplex(&[1, 1]));
        errors
    }

    /// Runs an exchange; `None` if it has no end.
    fn within<T>(&self, exchange: impl Future<Output = T>) -> Option<T> {
        self.runtime.block_on(async { timeout(EXCHANGE_TIMEOUT, exchange).await.ok() })
    }

    /// Applies the good documents, and returns the errors.
    fn apply_good(&mut self) -> Vec<String> {
        self.revision += 1;
        let by_key = self.good.iter().map(|(key, value)| (key.clone(), value.to_string().into())).collect();
        let documents = Documents { revision: self.revision, by_key };
        let applied = self.runtime.block_on(self.streams.apply(&documents));
        let mut errors: Vec<String> = applied.errors.iter().map(ToString::to_string).collect();
        if applied.bound != [TCP_PORT, TLS_PORT] {
            errors.push(format!("the ports are {:?}", applied.bound));
        }
        errors
    }
}

/// Sends every byte back, and ends when the client does.
async fn echo(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(async move {
            let (mut read, mut write) = stream.into_split();
            let _ = tokio::io::copy(&mut read, &mut write).await;
            let _ = write.shutdown().await;
        });
    }
}
