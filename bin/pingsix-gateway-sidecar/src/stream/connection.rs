//! The life of one connection: `ClientHello`, route, target, perhaps a TLS handshake and the beginning of a request,
//! node, relay.
//!
//! A connection that reaches no backend is reset, and gets a TLS alert only for a failed handshake: the proxy is no TLS
//! server for other clients. A client of HTTP that asks for nothing has an orderly end.

use std::io;
use std::sync::Arc;

use parking_lot::RwLock;
use pingsix_translate::stream::RejectReason;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::client_hello::{Hello, Reader};
use super::connect::connect;
use super::limits::{Limits, Place, Unrouted};
use super::metrics::PortMetrics;
use super::options::StreamOptions;
use super::outcome::{Outcome, Reason};
use super::relay::{Pools, relay, write_all};
use super::routes::{Route, Routes, Target};
use super::tls::{self, Admission, Session, Termination, handshake};
use super::upstream::{Active, Upstream};

/// The bytes of one read of a `ClientHello`.
const HELLO_READ_BYTES: usize = 2 * 1024;

/// The options, limits and pools of all connections.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: StreamOptions,
    pub(super) limits: Arc<Limits>,
    pub(super) admission: Arc<Admission>,
    pub(super) pools: Pools,
    pub(super) tasks: TaskTracker,
}

/// The routes and the counters of one port, for all of its connections.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) routes: RwLock<Arc<Routes>>,
    pub(super) metrics: PortMetrics,
    /// Ends all connections.
    pub(super) cut: CancellationToken,
}

/// The route of an accepted connection, or its place among those without one.
enum Entry {
    /// The port has one route for all.
    Routed(Place, Arc<Route>),
    /// The `ClientHello` decides.
    Unrouted(Unrouted),
}

/// Serves an accepted connection in a task of its own, or resets it if there is no place.
pub(super) fn admit(client: TcpStream, port: &Arc<Port>, shared: &Arc<Shared>) {
    let Some(place) = shared.limits.enter() else {
        port.metrics.ended(Outcome::Rejected(Reason::Limit));
        reset(&client);
        return;
    };
    let entry = match &**port.routes.read() {
        Routes::Any(route) => Entry::Routed(place, Arc::clone(route)),
        Routes::ByName(_) => Entry::Unrouted(shared.limits.wait(place)),
    };
    shared.tasks.spawn(serve(client, entry, Arc::clone(port), Arc::clone(shared)));
}

async fn serve(client: TcpStream, entry: Entry, port: Arc<Port>, shared: Arc<Shared>) {
    port.metrics.active.inc();
    let mut backend = None;
    let outcome = tokio::select! {
        biased;
        outcome = pass(&client, &mut backend, entry, &port, &shared) => outcome,
        () = port.cut.cancelled() => Outcome::Cut,
    };
    if !outcome.is_orderly() {
        reset(&client);
        if let Some((backend, _)) = &backend {
            reset(backend);
        }
    }
    port.metrics.active.dec();
    port.metrics.ended(outcome);
    if let Outcome::Rejected(reason) = outcome {
        tracing::debug!(reason = reason.as_str(), "connection rejected");
    }
}

/// The connection is reset when it is closed.
fn reset(stream: &TcpStream) {
    // Without it, the client sees an orderly end.
    let _ = stream.set_zero_linger();
}

/// A connection to a node, and its count for the node.
type Backend = (TcpStream, Active);

/// The client at the time when its backend is known.
enum Opening {
    /// The bytes that were read, for the backend.
    Bytes(Vec<u8>),
    /// The TLS session after its handshake.
    Session(Box<Session>),
}

async fn pass(
    client: &TcpStream,
    backend: &mut Option<Backend>,
    entry: Entry,
    port: &Port,
    shared: &Shared,
) -> Outcome {
    // In memory of its own, which is free again when the connection is open.
    let (_place, opening) = match Box::pin(open(client, backend, entry, port, shared)).await {
        Ok(opened) => opened,
        Err(reason) => return Outcome::Rejected(reason),
    };
    let Some((backend, _)) = backend else { return Outcome::Rejected(Reason::Unreachable) };
    let metrics = &port.metrics;
    let counts = (&metrics.bytes_in, &metrics.bytes_out);
    let passed = match opening {
        Opening::Bytes(read) => {
            let passed = async {
                write_all(backend, &read).await?;
                metrics.bytes_in.inc_by(u64::try_from(read.len()).unwrap_or_default());
                drop(read);
                relay(client, backend, &shared.pools, counts).await
            };
            passed.await
        }
        // In memory of its own, so that other connections do not have it.
        Opening::Session(session) => {
            Box::pin(tls::relay(&session, client, backend, &shared.pools, counts)).await
        }
    };
    if passed.is_ok() { Outcome::Closed } else { Outcome::Broken }
}

/// Finds the backend and connects to it.
async fn open(
    client: &TcpStream,
    backend: &mut Option<Backend>,
    entry: Entry,
    port: &Port,
    shared: &Shared,
) -> Result<(Place, Opening), Reason> {
    let (place, upstream, opening) = match entry {
        Entry::Routed(place, route) => (place, target(&route)?, Opening::Bytes(Vec::new())),
        Entry::Unrouted(unrouted) => {
            let (upstream, opening) = tokio::select! {
                biased;
                () = unrouted.evicted() => return Err(Reason::Evicted),
                opened = find(client, port, shared) => opened?,
            };
            (unrouted.routed().ok_or(Reason::Evicted)?, upstream, opening)
        }
    };
    let nodes = upstream.nodes().ok_or(Reason::Route(RejectReason::Invalid))?;
    drop(upstream);
    *backend = Some(connect(&nodes, shared.options.connect_timeout, &port.metrics).await?);
    Ok((place, opening))
}

/// The target of the next connection of a route.
fn target(route: &Route) -> Result<Arc<Upstream>, Reason> {
    match route.next() {
        Target::Upstream(upstream) if upstream.nodes().is_some() => Ok(upstream),
        Target::Upstream(_) => Err(Reason::Route(RejectReason::Invalid)),
        Target::Reject(word) => Err(Reason::Route(word)),
    }
}

/// Reads the `ClientHello`, which has the target, and makes the handshake if the proxy is the TLS server. For a backend
/// that speaks HTTP, it also waits for the beginning of a request.
async fn find(client: &TcpStream, port: &Port, shared: &Shared) -> Result<(Arc<Upstream>, Opening), Reason> {
    let mut reader = Reader::default();
    let hello = timeout(shared.options.hello_timeout, client_hello(client, &mut reader)).await;
    let Hello { name } = hello.map_err(|_| Reason::HelloTimeout)??;
    // The routes at the end of the `ClientHello` count.
    let routes = Arc::clone(&port.routes.read());
    let route = by_name(&routes, name.as_deref())?;
    drop(routes);
    let upstream = target(&route)?;
    let opening = match route.termination() {
        None => Opening::Bytes(reader.into_bytes()),
        Some(termination) => {
            let session = terminate(client, name.as_deref(), reader.into_bytes(), termination, shared);
            let session = Box::pin(session).await?;
            port.metrics.shaken(session.kind());
            if termination.is_http() {
                request(&session, client, shared).await?;
            }
            Opening::Session(session)
        }
    };
    Ok((upstream, opening))
}

async fn terminate(
    client: &TcpStream,
    name: Option<&str>,
    read: Vec<u8>,
    termination: &Termination,
    shared: &Shared,
) -> Result<Box<Session>, Reason> {
    let config = termination.config().ok_or(Reason::Route(RejectReason::Invalid))?;
    let session = handshake(client, name, read, config, &shared.admission);
    let session = timeout(shared.options.handshake_timeout, session).await;
    let session = session.unwrap_or(Err(tls::HandshakeError::Slow)).map_err(Reason::Handshake)?;
    Ok(Box::new(session))
}

/// Waits for the beginning of a request.
async fn request(session: &Session, client: &TcpStream, shared: &Shared) -> Result<(), Reason> {
    let reason = match timeout(shared.options.request_timeout, session.request(client)).await {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(tls::HandshakeError::Left)) => Reason::NoRequest,
        Ok(Err(error)) => return Err(Reason::Handshake(error)),
        Err(_) => Reason::SlowRequest,
    };
    session.close(client);
    Err(reason)
}

fn by_name(routes: &Routes, name: Option<&str>) -> Result<Arc<Route>, Reason> {
    match routes {
        Routes::ByName(names) => {
            let reason = if name.is_some() { Reason::NoMatch } else { Reason::NoServerName };
            names.route(name).ok_or(reason)
        }
        // The port has become one for TCP, so any bytes have this route.
        Routes::Any(route) => Ok(Arc::clone(route)),
    }
}

async fn client_hello(client: &TcpStream, reader: &mut Reader) -> Result<Hello, Reason> {
    loop {
        client.readable().await.map_err(|_| Reason::HelloEnded)?;
        let mut buffer = [0; HELLO_READ_BYTES];
        match client.try_read(&mut buffer) {
            Ok(0) => return Err(Reason::HelloEnded),
            Ok(bytes) => {
                let bytes = buffer.get(..bytes).unwrap_or_default();
                if let Some(hello) = reader.push(bytes).map_err(Reason::Hello)? {
                    return Ok(hello);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return Err(Reason::HelloEnded),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_result<F>(_: impl FnOnce(TcpStream, Entry, Arc<Port>, Arc<Shared>) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn an_idle_connection_holds_little_memory() {
        let bytes = size_of_result(serve);
        assert!(bytes <= 2_048, "{bytes} bytes for each connection");
    }
}
