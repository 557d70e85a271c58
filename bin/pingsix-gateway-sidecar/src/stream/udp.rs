//! UDP: the ports that datagrams come to, and the sessions of their clients.
//!
//! ```text
//! client ─► port ─► session ─► route ─► target ─► node
//!        ◄─────────── answers ◄─────────────────┘
//! ```
//!
//! A session is the datagrams of one client address for one address of this machine. Each session has a socket of its
//! own to a node, so the node sees one address for each client. One task for each port reads the datagrams of all
//! clients and has their sessions; a small task for each session reads the answers. Invariants:
//!
//! - A datagram reaches a target of its route in the documents in force, or is dropped without an answer.
//! - A datagram is passed on as it came, and never together with another one.
//! - A change of documents ends only the sessions whose target or node is gone.
//! - Memory is bounded by the limit of sessions; buffers belong to threads and not to sessions.

mod control;
mod link;
mod metrics;
mod places;
mod port;
mod rate;
mod run;
mod session;
mod sessions;
mod socket;
mod sources;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pingsix_translate::stream::RejectReason;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::backends::Backends;
use super::options::StreamOptions;
use super::routes::{Route, Routes};
use super::socket::retry;
use control::{Control, Order};
pub(super) use metrics::DatagramMetrics;
use metrics::PortMetrics;
pub(super) use places::Places;
use port::{Clock, Port};
use rate::Rate;
use session::Context;
use socket::Socket;
use sources::Sources;

/// The options, places and documents of all ports.
#[derive(Debug)]
struct Shared {
    options: StreamOptions,
    places: Arc<Places>,
    sources: Sources,
    /// The number of changes of documents.
    generation: AtomicU64,
}

impl Shared {
    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }
}

/// The side of a port to its clients.
#[derive(Debug)]
struct Front {
    socket: Socket,
    metrics: PortMetrics,
    clock: Clock,
}

/// The ports of all routes.
#[derive(Debug)]
pub(super) struct UdpPorts {
    shared: Arc<Shared>,
    metrics: DatagramMetrics,
    tasks: TaskTracker,
    /// Ends ports without sessions, and starts no sessions.
    drain: CancellationToken,
    /// Ends everything.
    stop: CancellationToken,
    ports: BTreeMap<u16, Open>,
}

/// A port, or a removed one whose task may still run.
#[derive(Debug)]
struct Open {
    control: Arc<Control>,
    listen_port: u16,
    task: JoinHandle<()>,
}

impl UdpPorts {
    /// No ports; their tasks are among `tasks`.
    pub(super) fn new(
        options: StreamOptions,
        places: Arc<Places>,
        backends: Arc<Backends>,
        metrics: DatagramMetrics,
        tasks: TaskTracker,
    ) -> Self {
        let (sources, generation) = (Sources::new(backends), AtomicU64::new(0));
        let shared = Arc::new(Shared { options, places, sources, generation });
        let (drain, stop) = (CancellationToken::new(), CancellationToken::new());
        Self { shared, metrics, tasks, drain, stop, ports: BTreeMap::new() }
    }

    /// Gives a port its routes, and listens for it on `listen_port` if it does not yet.
    pub(super) async fn set(&mut self, number: u16, listen_port: u16, routes: Routes) {
        let route = match routes {
            Routes::Any(route) => route,
            // Routes for UDP have no server names.
            Routes::ByName(_) => Arc::new(Route::rejecting(RejectReason::Invalid)),
        };
        match self.ports.get(&number) {
            Some(open) if open.listen_port != listen_port => open.control.remove(),
            Some(open) if open.control.serve(&route) => return,
            Some(_) | None => {
                if let Some(ended) = self.ports.remove(&number) {
                    // It frees the port. An error is a panic of the task, whose socket is closed then.
                    let _ = ended.task.await;
                }
            }
        }
        self.ports.insert(number, self.open(number, listen_port, route));
    }

    /// Closes a port that has no routes any more. Answers pass for a while, and sessions go on if the port comes back
    /// by then.
    pub(super) fn remove(&mut self, number: u16) {
        self.ports.retain(|_, open| !open.task.is_finished());
        if let Some(open) = self.ports.get(&number) {
            open.control.remove();
        }
    }

    /// The documents have changed: each session is compared with them.
    pub(super) fn changed(&self) {
        self.shared.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// The port that is listened on for a port, or will be.
    pub(super) fn listen_port(&self, number: u16) -> Option<u16> {
        self.ports.get(&number).map(|open| open.listen_port)
    }

    /// The ports that are listened on.
    pub(super) fn bound(&self) -> impl Iterator<Item = u16> {
        self.ports
            .iter()
            .filter(|(_, open)| open.control.is_bound() == Some(Ok(())))
            .map(|(number, _)| *number)
    }

    /// The ports that cannot be listened on, each with the reason.
    pub(super) fn errors(&self) -> impl Iterator<Item = (u16, String)> {
        self.ports.iter().filter_map(|(number, open)| Some((*number, open.control.is_bound()?.err()?)))
    }

    /// Begins no more sessions, and ends each port without sessions.
    pub(super) fn drain(&self) {
        self.drain.cancel();
    }

    /// Ends all sessions.
    pub(super) fn cut(&self) {
        self.stop.cancel();
    }

    fn open(&self, number: u16, listen_port: u16, route: Arc<Route>) -> Open {
        let control = Arc::new(Control::new(route));
        let address = self.shared.options.address;
        let listen = {
            let control = Arc::clone(&control);
            move || {
                let socket = Socket::listen(address, listen_port);
                let failure = |error| format!("Cannot listen on UDP port {listen_port}: {error}.");
                let socket = socket.map_err(failure);
                control.set_error(socket.as_ref().err().cloned());
                socket
            }
        };
        let first = listen();
        if let Err(error) = &first {
            tracing::warn!(port = number, fault = error, "no listener, retrying");
        }
        let (shared, metrics) = (Arc::clone(&self.shared), self.metrics.port(number));
        let (drain, stop) = (self.drain.clone(), self.stop.clone());
        let run = {
            let control = Arc::clone(&control);
            async move {
                let socket = if let Ok(socket) = first {
                    socket
                } else {
                    tokio::select! {
                        biased;
                        () = stop.cancelled() => return,
                        () = drain.cancelled() => return,
                        () = removed(&control) => return,
                        socket = retry(listen) => socket,
                    }
                };
                shared.sources.listen(listen_port);
                let front = Arc::new(Front { socket, metrics, clock: Clock::start() });
                let rate = Rate::new(shared.options.new_sessions_per_second);
                let tasks = TaskTracker::new();
                let context = Context { shared: Arc::clone(&shared), front, tasks, rate };
                Port::new(context, control).run(drain, stop).await;
                shared.sources.close(listen_port);
            }
        };
        Open { control, listen_port, task: self.tasks.spawn(run) }
    }
}

impl Drop for UdpPorts {
    fn drop(&mut self) {
        self.cut();
    }
}

/// Returns when a port without a listener is removed.
async fn removed(control: &Control) {
    loop {
        control.changed().await;
        if matches!(control.order(), Order::Removed(_)) && control.end() {
            return;
        }
    }
}
