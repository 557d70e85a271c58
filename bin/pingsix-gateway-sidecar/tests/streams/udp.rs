//! Datagrams.

mod changes;
mod datagrams;
mod files;
mod limits;
mod nodes;

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::UdpSocket;
use tokio::time::timeout;

/// The time within which an answer comes on a busy machine.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// The time after which no answer is expected any more.
const SILENCE: Duration = Duration::from_millis(200);

/// A backend that answers each datagram with the same bytes, after its name if it has one.
struct Node {
    address: SocketAddr,
    sources: Arc<Mutex<HashSet<SocketAddr>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Node {
    async fn echo() -> Self {
        Self::on("127.0.0.1:0", &[]).await
    }

    async fn named(name: u8) -> Self {
        Self::on("127.0.0.1:0", &[name]).await
    }

    async fn on(address: &str, name: &[u8]) -> Self {
        Self::with(UdpSocket::bind(address).await.unwrap(), name)
    }

    fn with(socket: UdpSocket, name: &[u8]) -> Self {
        let address = socket.local_addr().unwrap();
        let sources = Arc::<Mutex<HashSet<_>>>::default();
        let (seen, mut answer) = (Arc::clone(&sources), name.to_vec());
        let task = tokio::spawn(async move {
            let (named, mut buffer) = (answer.len(), vec![0; 65_536]);
            loop {
                // An answer to a client that is gone is refused, which is an error of the next call.
                let Ok((length, source)) = socket.recv_from(&mut buffer).await else { continue };
                seen.lock().insert(source);
                answer.truncate(named);
                answer.extend_from_slice(&buffer[..length]);
                let _ = socket.send_to(&answer, source).await;
            }
        });
        Self { address, sources, task }
    }

    /// The addresses that have sent something: one for each session.
    fn sources(&self) -> usize {
        self.sources.lock().len()
    }

    /// The address refuses from now on.
    async fn close(self) -> SocketAddr {
        self.task.abort();
        let _ = self.task.await;
        self.address
    }
}

/// A client of a port.
struct Client(UdpSocket);

impl Client {
    async fn new(port: u16) -> Self {
        Self::of((Ipv4Addr::LOCALHOST, port).into()).await
    }

    async fn of(address: SocketAddr) -> Self {
        let socket = UdpSocket::bind((address.ip(), 0)).await.unwrap();
        socket.connect(address).await.unwrap();
        Self(socket)
    }

    async fn many(count: usize, port: u16) -> Vec<Self> {
        let mut clients = Vec::new();
        for _ in 0..count {
            clients.push(Self::new(port).await);
        }
        clients
    }

    async fn send(&self, datagram: &[u8]) {
        assert_eq!(self.0.send(datagram).await.unwrap(), datagram.len());
    }

    async fn receive(&self) -> Vec<u8> {
        let mut buffer = vec![0; 65_536];
        let length = timeout(ANSWER_TIMEOUT, self.0.recv(&mut buffer)).await.expect("an answer").unwrap();
        buffer.truncate(length);
        buffer
    }

    async fn ask(&self, datagram: &[u8]) -> Vec<u8> {
        self.send(datagram).await;
        self.receive().await
    }

    /// The name of the backend that answers.
    async fn name(&self) -> u8 {
        let answer = self.ask(b"?").await;
        assert_eq!(answer[1..], *b"?");
        answer[0]
    }

    async fn hears_nothing(&self) {
        let mut buffer = [0; 64];
        assert!(timeout(SILENCE, self.0.recv(&mut buffer)).await.is_err(), "{buffer:?}");
    }
}

/// Bytes that differ for each seed.
fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..length).map(|_| next()).collect()
}

/// The series of the sessions that ended with this word.
fn ended(port: u16, word: &str) -> String {
    format!("stream_sessions_total{{port=\"{port}\",reason=\"{word}\"}}")
}
