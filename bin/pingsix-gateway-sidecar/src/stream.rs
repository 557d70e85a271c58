//! The stream role: a proxy for TCP routes, UDP routes and TLS routes, and TLS in front of HTTP servers.
//!
//! ```text
//! Documents ─► table ─► routes of each listener, nodes of each upstream
//!                                │
//! client ─► listener ─► connection: ClientHello ─► route ─► target ─► (TLS handshake) ─► node ─► relay
//!        └► port of UDP ─► session: route ─► target ─► node
//! ```
//!
//! `docs/reference/stream-documents.md` describes the documents and the choice of a route. Invariants:
//!
//! - A connection reaches a target of its route in the documents in force, or is reset.
//! - A change of documents affects new connections only; open ones end with their peers, or some time after their
//!   listener is removed.
//! - Each wait for a client without a route, or without a request of HTTPS, has an end, and so has each attempt to
//!   connect.
//! - Memory is bounded by the limit of connections: two buffers of 16 KiB each while its peers take no data, at most
//!   20 KiB before its route is known, and none while it is idle.
//! - A connection whose TLS is terminated has at most 80 KiB, and 12 KiB while it is idle, with the certificates of the
//!   client. During its handshake, it has at most 150 KiB and twice the certificates of both sides.

mod backends;
mod choice;
mod client_hello;
mod connect;
mod connection;
mod decode;
mod labels;
mod limits;
mod listeners;
mod metrics;
mod options;
mod outcome;
mod relay;
mod routes;
mod socket;
mod table;
mod tls;
mod udp;
mod upstream;

use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::documents::Documents;
use connection::Shared;
use limits::{Limits, file_limit, pipes_for_files, places_for_files, sessions_for_files};
use listeners::Listeners;
pub use metrics::StreamMetrics;
pub use options::StreamOptions;
use relay::Pools;
use routes::Listener;
use table::Table;
use tls::Admission;
use udp::{Places, UdpPorts};

/// The stream role. Dropped without [`drain`](Self::drain), it closes its listeners and cuts all connections.
#[derive(Debug)]
pub struct Streams {
    shared: Arc<Shared>,
    sessions: Arc<Places>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    table: Table,
    listeners: Listeners,
    udp: UdpPorts,
    /// The revision in force.
    revision: i64,
    /// The errors of documents that keep a later revision from being in force.
    refused: Vec<ServeError>,
}

/// The documents in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The revision of the documents in force. It is an earlier one than that of the last documents if these have a
    /// route without port, protocol or server names.
    pub revision: i64,
    /// The ports of documents that are listened on, in order.
    pub bound: Vec<u16>,
    /// Everything that is not served as the documents say.
    pub errors: Vec<ServeError>,
}

/// A part of the documents that is not served as they say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeError {
    /// The part.
    pub subject: Subject,
    /// The reason, with the field of a document. It quotes no secret.
    pub message: String,
}

/// The subject of an error.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The document with this key, for example `stream_routes/<id>`.
    Document(String),
    /// The port of documents that cannot be listened on.
    Port(u16),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            Subject::Document(key) => write!(f, "{key}: {}", self.message),
            Subject::Port(port) => write!(f, "port {port}: {}", self.message),
        }
    }
}

impl Streams {
    /// Starts without documents, and therefore without listeners, in the current tokio runtime.
    ///
    /// # Panics
    /// Outside of a tokio runtime, when documents are applied.
    pub fn start(options: StreamOptions, metrics: Arc<StreamMetrics>) -> Self {
        let files = file_limit();
        let places = options.max_connections.min(places_for_files(files));
        // Before all places are taken, clients that send nothing hold at most half of them.
        let unrouted = options.max_unrouted.min(places / 2);
        let pipes = if options.splice { pipes_for_files(files) } else { 0 };
        let sessions = options.max_sessions.min(sessions_for_files(files));
        tracing::info!(connections = places, unrouted, pipes, sessions, "streams started");
        let table = Table::new(options.local_nodes);
        let shared = Arc::new(Shared {
            limits: Limits::new(places, unrouted),
            admission: Admission::new(options.max_handshakes, processors()),
            pools: Pools::new(pipes),
            tasks: TaskTracker::new(),
            options,
        });
        let sessions = Places::new(sessions);
        let udp = UdpPorts::new(
            shared.options.clone(),
            Arc::clone(&sessions),
            Arc::clone(table.backends()),
            metrics.datagrams().clone(),
            shared.tasks.clone(),
        );
        let listeners = Listeners::new(Arc::clone(&shared), metrics);
        let state = State { table, listeners, udp, revision: 0, refused: Vec::new() };
        Self { shared, sessions, state: Mutex::new(state) }
    }

    /// Puts documents in force, and returns once each listener is bound or has failed. A listener that failed is tried
    /// again each second; [`state`](Self::state) has the result.
    ///
    /// A document that cannot be read rejects its connections. If its port, protocol or server names cannot be read,
    /// the last good document of its key stays in force, and without one, all documents in force stay.
    pub async fn apply(&self, documents: &Documents) -> Applied {
        let mut state = self.state.lock().await;
        let State { table, listeners, udp, revision, refused } = &mut *state;
        match table.apply(documents) {
            Ok(mut changes) => {
                let now = self.shared.options.listening(table.listeners().map(Listener::port));
                // A port that comes can take the place of a higher one, which moves, and moves first.
                let has_moved = |listener: &Listener| {
                    let listens_on = match listener {
                        Listener::Tcp(port) => listeners.listen_port(*port),
                        Listener::Udp(port) => udp.listen_port(*port),
                    };
                    listens_on.is_some_and(|before| now.get(&listener.port()) != Some(&before))
                };
                let moved: Vec<Listener> = table.listeners().filter(has_moved).collect();
                for listener in moved {
                    changes.entry(listener).or_insert_with(|| table.build(listener));
                }
                let (set, gone): (Vec<_>, Vec<_>) =
                    changes.into_iter().rev().partition(|(_, routes)| routes.is_some());
                for (listener, _) in gone {
                    match listener {
                        Listener::Tcp(port) => listeners.remove(port).await,
                        Listener::Udp(port) => udp.remove(port),
                    }
                }
                for (listener, routes) in set {
                    let (Some(routes), Some(listen_port)) = (routes, now.get(&listener.port())) else {
                        continue;
                    };
                    match listener {
                        Listener::Tcp(port) => listeners.set(port, *listen_port, routes).await,
                        Listener::Udp(port) => udp.set(port, *listen_port, routes).await,
                    }
                }
                table.sweep();
                udp.changed();
                *revision = documents.revision;
                refused.clear();
            }
            Err(errors) => *refused = errors,
        }
        state.applied()
    }

    /// The documents in force now.
    pub async fn state(&self) -> Applied {
        self.state.lock().await.applied()
    }

    /// The open connections of clients.
    pub fn connections(&self) -> usize {
        self.shared.limits.taken()
    }

    /// The sessions of UDP clients.
    pub fn sessions(&self) -> usize {
        self.sessions.taken()
    }

    /// Closes the listeners after accepting the connections that have been made. Returns when all connections have
    /// ended; those that last longer than `grace` are reset. Sessions of UDP clients go
    /// on until they are idle, or until then.
    pub async fn drain(self, grace: Duration) {
        let mut state = self.state.into_inner();
        state.udp.drain();
        state.listeners.close().await;
        self.shared.tasks.close();
        if timeout(grace, self.shared.tasks.wait()).await.is_err() {
            tracing::warn!(connections = self.shared.tasks.len(), "connections cut");
            state.listeners.cut();
            state.udp.cut();
            self.shared.tasks.wait().await;
        }
    }
}

/// The processors of this process.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

impl State {
    fn applied(&self) -> Applied {
        let ports = self.listeners.errors().into_iter().chain(self.udp.errors());
        let ports = ports.map(|(port, message)| ServeError { subject: Subject::Port(port), message });
        let bound: BTreeSet<u16> = self.listeners.bound().into_iter().chain(self.udp.bound()).collect();
        Applied {
            revision: self.revision,
            bound: bound.into_iter().collect(),
            errors: self.refused.iter().cloned().chain(self.table.errors()).chain(ports).collect(),
        }
    }
}
