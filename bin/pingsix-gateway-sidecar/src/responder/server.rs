use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use super::connection::{self, Shared};
use super::options::{Options, Reach};

/// The delay after a failure to accept a connection, most likely for lack of file descriptors.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// A responder with a listener of its own.
#[derive(Debug)]
pub struct Responder {
    listener: TcpListener,
    options: Options,
}

/// Why a responder has no listener.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The address can be reached from elsewhere, and that was not asked for.
    #[error("{0} is not a loopback address")]
    NotLoopback(SocketAddr),
    /// The operating system does not give the address.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
}

impl Responder {
    /// Listens on `address`; port 0 takes a free one.
    ///
    /// # Errors
    ///
    /// If `reach` does not allow the address, or it cannot be had.
    pub async fn bind(address: SocketAddr, reach: Reach, options: Options) -> Result<Self, BindError> {
        if !reach.allows(address) {
            return Err(BindError::NotLoopback(address));
        }
        let listener =
            TcpListener::bind(address).await.map_err(|source| BindError::Listen { address, source })?;
        Ok(Self { listener, options })
    }

    /// The address that is listened on.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers requests until `shutdown` completes.
    ///
    /// Then the listener is closed, requests in flight are answered, and connections that are open after
    /// [`Options::shutdown_grace`] are cut. All tasks of the server have ended when this returns.
    /// If the future is dropped instead, connections are cut.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        serve(self.listener, self.options, shutdown).await;
    }
}

async fn serve(listener: TcpListener, options: Options, shutdown: impl Future<Output = ()>) {
    let address = listener.local_addr().ok();
    info!(address = address.map(tracing::field::display), "responder started");
    let places = Arc::new(Semaphore::new(options.max_connections.clamp(1, Semaphore::MAX_PERMITS)));
    let shared = Arc::new(Shared {
        options,
        stop: CancellationToken::new(),
        cut: CancellationToken::new(),
        crowded: Notify::new(),
        tasks: TaskTracker::new(),
    });
    let cut = shared.cut.clone().drop_guard();

    tokio::pin!(shutdown);
    let mut full = false;
    loop {
        let next = async {
            let stream = accept(&listener).await;
            let place = take_place(&places, &shared, &mut full).await;
            (stream, place)
        };
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            (stream, place) = next => {
                // The semaphore is never closed; without a place there is no service.
                let Some(place) = place else { break };
                // Answers are small and must not wait for more.
                let _ = stream.set_nodelay(true);
                shared.tasks.spawn(connection::run(stream, Arc::clone(&shared), place));
            }
        }
    }

    drop(listener);
    shared.stop.cancel();
    shared.tasks.close();
    if timeout(shared.options.shutdown_grace, shared.tasks.wait()).await.is_err() {
        warn!(tasks = shared.tasks.len(), "connections cut at shutdown");
        drop(cut);
        shared.tasks.wait().await;
    }
    info!("responder stopped");
}

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) => {
                warn!(error = %error, "cannot accept a connection, retrying");
                sleep(ACCEPT_BACKOFF).await;
            }
        }
    }
}

/// A place among the connections served; waits for one if there is none.
async fn take_place(
    places: &Arc<Semaphore>,
    shared: &Shared,
    full: &mut bool,
) -> Option<OwnedSemaphorePermit> {
    if let Ok(place) = Arc::clone(places).try_acquire_owned() {
        *full = false;
        return Some(place);
    }
    if !*full {
        *full = true;
        warn!(max_connections = shared.options.max_connections, "connection limit reached");
    }
    shared.crowded.notify_one();
    Arc::clone(places).acquire_owned().await.ok()
}
