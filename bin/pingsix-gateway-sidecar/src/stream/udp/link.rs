//! The socket of a session to its node, and the task that passes the answers on.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::super::socket::is_shortage;
use super::super::upstream::{Active, Node};
use super::Front;
use super::metrics::{Dropped, Unsent};
use super::run::{Run, Segments, send_all};
use super::socket::{Destination, Socket};

/// The pause after a failure to receive for lack of memory.
const RECEIVE_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The two addresses of a session: its client, and the address of this machine that the client asks and is answered
/// from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Ends {
    pub(super) client: SocketAddr,
    pub(super) asked: Option<IpAddr>,
}

/// A connected socket to a node.
#[derive(Debug)]
pub(super) struct Link {
    socket: Socket,
    node: Active,
    ends: Ends,
    /// The time of the last datagram in either direction.
    last: AtomicU64,
    /// The node has refused a datagram.
    refused: AtomicBool,
    /// The node has answered since it was chosen, or since it refused.
    answered: AtomicBool,
    to_node: Segments,
    to_client: Segments,
}

impl Link {
    /// Connects a session to a node.
    pub(super) fn connect(node: Active, ends: Ends, now: u64) -> std::io::Result<Self> {
        Ok(Self {
            socket: Socket::connect(node.node().address)?,
            node,
            ends,
            last: AtomicU64::new(now),
            refused: AtomicBool::new(false),
            answered: AtomicBool::new(false),
            to_node: Segments::default(),
            to_client: Segments::default(),
        })
    }

    /// The node.
    pub(super) fn node(&self) -> &Node {
        self.node.node()
    }

    /// The time of the last datagram in either direction.
    pub(super) fn last(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }

    /// A datagram came at this time.
    pub(super) fn used(&self, now: u64) {
        self.last.store(now, Ordering::Relaxed);
    }

    /// Whether the node has refused a datagram since the last call.
    pub(super) fn take_refused(&self) -> bool {
        // Nearly always it has not, and a read is cheaper.
        self.refused.load(Ordering::Relaxed) && self.refused.swap(false, Ordering::Relaxed)
    }

    /// Sends the datagrams of the client to the node.
    ///
    /// # Errors
    /// The datagrams that are not sent because the node refuses, which counts as its failure.
    pub(super) fn send<'a>(&self, run: Run<'a>, front: &Front) -> Result<(), Run<'a>> {
        let metrics = &front.metrics;
        let node = Destination { to: self.node().address, from: None };
        let send = |bytes: &[u8], size| self.socket.send(node, bytes, size);
        let dropped = |reason, count| metrics.dropped(Dropped::Unsent(reason), count);
        let result = send_all(run, &self.to_node, self.socket.most(), &metrics.inward, send, dropped);
        result.inspect_err(|_| self.refuse(front))
    }

    /// Passes the answers on until it is cancelled.
    pub(super) async fn answer(self: Arc<Self>, front: Arc<Front>) {
        loop {
            let received = self.socket.receive(|_, run| self.pass(run, &front)).await;
            match received {
                Ok(()) => {}
                Err(error) if is_shortage(&error) => sleep(RECEIVE_RETRY_DELAY).await,
                Err(error) => {
                    tracing::debug!(address = %self.node().address, %error, "a node refuses datagrams");
                    self.refuse(&front);
                    self.refused.store(true, Ordering::Relaxed);
                }
            }
        }
    }

    fn pass(&self, run: Run<'_>, front: &Front) {
        self.used(front.clock.now());
        if !self.answered.load(Ordering::Relaxed) {
            self.answered.store(true, Ordering::Relaxed);
            self.node().succeeded();
        }
        let metrics = &front.metrics;
        let client = Destination { to: self.ends.client, from: self.ends.asked };
        let send = |bytes: &[u8], size| self.socket.send_on(&front.socket, client, bytes, size);
        let dropped = |reason, count| metrics.dropped_answers(reason, count);
        let result = send_all(run, &self.to_client, self.socket.most(), &metrics.outward, send, dropped);
        if let Err(rest) = result {
            metrics.dropped_answers(Unsent::Address, rest.count());
        }
    }

    fn refuse(&self, front: &Front) {
        front.metrics.refusals.inc();
        self.answered.store(false, Ordering::Relaxed);
        self.node().failed(Instant::now());
    }
}
