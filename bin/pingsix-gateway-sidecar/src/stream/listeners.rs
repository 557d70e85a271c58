//! Listeners that come and go with the routes.
//!
//! One task accepts the connections of one port, and hands them to the threads of the runtime. There is one socket for
//! each port and not one for each thread (`SO_REUSEPORT`): such sockets have a queue each, so a busy thread delays its
//! share of clients, and the queue of a socket that closes is reset.
//!
//! A port that is taken by another process is an error of this port alone, and is tried again each second.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::connection::{Port, Shared, admit};
use super::metrics::StreamMetrics;
use super::routes::Routes;
use super::socket;

/// The pause after a failure to accept.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The listeners of all ports.
#[derive(Debug)]
pub(super) struct Listeners {
    shared: Arc<Shared>,
    metrics: Arc<StreamMetrics>,
    /// Ends everything.
    stop: CancellationToken,
    open: BTreeMap<u16, Open>,
    /// Removed ports whose connections go on for a while.
    removed: Arc<Mutex<BTreeMap<u16, Arc<Port>>>>,
}

/// The listener of one port.
#[derive(Debug)]
struct Open {
    port: Arc<Port>,
    listen_port: u16,
    /// The reason why there is no listener yet.
    error: Arc<Mutex<Option<String>>>,
    close: CancellationToken,
    task: JoinHandle<()>,
}

impl Listeners {
    pub(super) fn new(shared: Arc<Shared>, metrics: Arc<StreamMetrics>) -> Self {
        let stop = CancellationToken::new();
        Self { shared, metrics, stop, open: BTreeMap::new(), removed: Arc::default() }
    }

    /// Gives a port its routes, and listens for it on `listen_port` if it does not yet.
    pub(super) async fn set(&mut self, number: u16, listen_port: u16, routes: Routes) {
        let routes = Arc::new(routes);
        if let Some(open) = self.open.get(&number) {
            if open.listen_port == listen_port {
                *open.port.routes.write() = routes;
                return;
            }
            self.remove(number).await;
        }
        let kept = self.removed.lock().remove(&number);
        let port = match kept {
            Some(port) => {
                *port.routes.write() = routes;
                port
            }
            None => Arc::new(Port {
                routes: RwLock::new(routes),
                metrics: self.metrics.port(number),
                cut: self.stop.child_token(),
            }),
        };
        self.open.insert(number, self.open(number, listen_port, port));
    }

    fn open(&self, number: u16, listen_port: u16, port: Arc<Port>) -> Open {
        let address = self.shared.options.address;
        let error = Arc::<Mutex<Option<String>>>::default();
        let listen = {
            let error = Arc::clone(&error);
            move || {
                let failure = |error| format!("Cannot listen on port {listen_port}: {error}.");
                let listener = socket::listen(address, listen_port).map_err(failure);
                *error.lock() = listener.as_ref().err().cloned();
                listener
            }
        };
        let first = listen();
        if let Err(error) = &first {
            tracing::warn!(port = number, fault = error, "no listener, retrying");
        }
        let close = self.stop.child_token();
        let run = {
            let (port, shared) = (Arc::clone(&port), Arc::clone(&self.shared));
            let close = close.clone();
            async move {
                let listener = match first {
                    Ok(listener) => listener,
                    Err(_) => match close.run_until_cancelled(socket::retry(listen)).await {
                        Some(listener) => listener,
                        None => return,
                    },
                };
                let accepting = accept_all(&listener, &port, &shared);
                if close.run_until_cancelled(accepting).await.is_none() {
                    accept_queue(listener, &port, &shared);
                }
            }
        };
        let task = tokio::spawn(run);
        Open { port, listen_port, error, close, task }
    }

    /// Closes the listener of a port that has no routes any more. Its connections go on for the grace, and for longer
    /// if the port comes back.
    pub(super) async fn remove(&mut self, number: u16) {
        let Some(Open { port, task, .. }) = self.open.remove(&number) else { return };
        // A `ClientHello` that is still incomplete finds no route.
        *port.routes.write() = Arc::new(Routes::none());
        task.abort();
        // The error of an aborted task.
        let _ = task.await;
        self.removed.lock().insert(number, Arc::clone(&port));
        let (removed, grace) = (Arc::clone(&self.removed), self.shared.options.removed_grace);
        let expire = async move {
            sleep(grace).await;
            let mut removed = removed.lock();
            if removed.get(&number).is_some_and(|kept| Arc::ptr_eq(kept, &port)) {
                removed.remove(&number);
                port.cut.cancel();
            }
        };
        let stop = self.stop.clone();
        tokio::spawn(async move { stop.run_until_cancelled_owned(expire).await });
    }

    /// The port that is listened on for a port, or will be.
    pub(super) fn listen_port(&self, number: u16) -> Option<u16> {
        self.open.get(&number).map(|open| open.listen_port)
    }

    /// The ports that are listened on.
    pub(super) fn bound(&self) -> Vec<u16> {
        let bound = self.open.iter().filter(|(_, open)| open.error.lock().is_none());
        bound.map(|(number, _)| *number).collect()
    }

    /// The ports that cannot be listened on, each with the reason.
    pub(super) fn errors(&self) -> Vec<(u16, String)> {
        let errors =
            self.open.iter().filter_map(|(number, open)| Some((*number, open.error.lock().clone()?)));
        errors.collect()
    }

    /// Closes all listeners, after accepting the connections that have been made.
    pub(super) async fn close(&mut self) {
        let open = std::mem::take(&mut self.open);
        for open in open.values() {
            open.close.cancel();
        }
        for (_, open) in open {
            // An error is a panic of the task, and its listener is closed then.
            let _ = open.task.await;
        }
    }

    /// Ends all connections.
    pub(super) fn cut(&self) {
        self.stop.cancel();
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        self.cut();
    }
}

async fn accept_all(listener: &TcpListener, port: &Arc<Port>, shared: &Arc<Shared>) {
    let mut short = false;
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                short = false;
                admit(client, port, shared);
            }
            // The listener stays ready, so the next attempt would fail at once.
            Err(error) if socket::is_shortage(&error) => {
                port.metrics.accept_pauses.inc();
                if !short {
                    tracing::warn!(%error, "cannot accept connections, pausing");
                }
                short = true;
                sleep(ACCEPT_RETRY_DELAY).await;
            }
            // The client is gone already.
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

/// Accepts the connections that have been made, and closes the listener.
fn accept_queue(listener: TcpListener, port: &Arc<Port>, shared: &Arc<Shared>) {
    let Ok(listener) = listener.into_std() else { return };
    while let Ok((client, _)) = listener.accept() {
        if client.set_nonblocking(true).is_ok()
            && let Ok(client) = TcpStream::from_std(client)
        {
            admit(client, port, shared);
        }
    }
}
