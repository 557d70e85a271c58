//! Reads all keys below a prefix, and follows their changes.
//!
//! ```text
//! connect ─► list ─► watch from its revision + 1 ─► one response after the other
//!    ▲         replaces everything         each applies as a whole       │
//!    └──────── pause ◄── cut, compacted, against the protocol ◄──────────┘
//! ```
//!
//! - **One connection.** List and watch use the same connection, because servers behind one name may count different
//!   revisions. Each new connection begins with a list, and reads the files of certificates again.
//! - **Replacement.** A list replaces the content, also when its revision is lower than the last one.
//! - **Last good content.** A failed connection, and an answer against the protocol or above a limit, changes nothing.
//! - **Back-off.** Reconnections wait from 200 ms up to 30 s, and start over after an established watch. After a
//!   failure the next endpoint is used.
//! - **Keys.** Keys whose last segment starts with a dot are not content: sinks keep their own records there.

mod content;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::ReusableBoxFuture;
use tonic::Streaming;

pub use content::KeyValues;

use super::client::{Client, received};
use super::error::EtcdError;
use crate::backoff::Backoff;
use crate::desired::Scope;
use crate::proto::etcdserverpb::WatchResponse;
use content::Counted;

/// Reads a prefix of an etcd, or of the embedded server.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use pingsix_sink::Scope;
/// use pingsix_sink::etcd::{Builder, ClientTls};
///
/// let scope = Scope::new("/pingsix-stream/shop/web")?;
/// let tls = ClientTls::ca_file("/tls/ca.crt").identity_files("/tls/tls.crt", "/tls/tls.key");
/// let mut reader = Builder::new(["https://feed:2379"]).tls(tls).reader(scope)?;
/// loop {
///     match reader.changed().await {
///         Ok(content) => println!("{} keys at revision {}", content.by_key.len(), content.revision),
///         Err(error) => eprintln!("not up to date: {error}"),
///     }
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct EtcdReader {
    client: Arc<Client>,
    scope: Scope,
    timeout: Duration,
    content: Counted,
    state: State,
    backoff: Backoff,
}

#[derive(Debug)]
enum State {
    /// A new connection is made, after a pause. The future outlives calls of [`EtcdReader::changed`], because callers
    /// may drop them at short intervals.
    Starting(ReusableBoxFuture<'static, Result<Started, EtcdError>>),
    /// The content is followed. The connection lives as long as the stream.
    Watching {
        stream: Box<Streaming<WatchResponse>>,
        /// The time by which the server confirms the watch; `None` afterwards.
        created_by: Option<Instant>,
    },
}

/// A list and the watch from its revision on.
struct Started {
    listed: Counted,
    stream: Streaming<WatchResponse>,
}

impl EtcdReader {
    pub(super) fn new(client: Arc<Client>, scope: Scope, timeout: Duration, max_bytes: usize) -> Self {
        Self {
            content: Counted::new(max_bytes),
            state: State::starting(&client, &scope, max_bytes, None),
            client,
            scope,
            timeout,
            backoff: Backoff::new(Duration::from_millis(200), Duration::from_secs(30)),
        }
    }

    /// The content as of the last change; empty with revision zero before the first list.
    pub fn content(&self) -> &KeyValues {
        self.content.get()
    }

    /// Waits for the next list or change, and returns the content after it.
    ///
    /// Dropping the future loses no change, and the next call continues: a pause, a connection and a list do not begin
    /// again. After an error the content is still the last good one, and the next call connects again, after a pause that
    /// begins with the error.
    ///
    /// # Errors
    /// [`EtcdError`], once for each failed connection.
    pub async fn changed(&mut self) -> Result<&KeyValues, EtcdError> {
        loop {
            let is_changed = match &mut self.state {
                State::Starting(starting) => match starting.await {
                    Ok(Started { listed, stream }) => {
                        self.content = listed;
                        let created_by = Some(Instant::now() + self.timeout);
                        self.state = State::Watching { stream: Box::new(stream), created_by };
                        true
                    }
                    Err(error) => return Err(self.disconnected(error)),
                },
                State::Watching { .. } => match self.follow().await {
                    Ok(is_changed) => is_changed,
                    Err(error) => return Err(self.disconnected(error)),
                },
            };
            if is_changed {
                return Ok(self.content.get());
            }
        }
    }

    fn disconnected(&mut self, error: EtcdError) -> EtcdError {
        self.restart(true);
        self.client.leave_endpoint();
        error
    }

    /// Connects again, at once or after a pause.
    fn restart(&mut self, pause: bool) {
        let until = pause.then(|| Instant::now() + self.backoff.next_delay());
        self.state = State::starting(&self.client, &self.scope, self.content.max_bytes(), until);
    }

    /// Reads the next response of the watch, and returns whether it changed the content.
    async fn follow(&mut self) -> Result<bool, EtcdError> {
        let State::Watching { stream, created_by } = &mut self.state else { return Ok(false) };
        let response = match *created_by {
            None => stream.message().await,
            Some(deadline) => {
                let first = timeout_at(deadline, stream.message()).await;
                first.map_err(|_| EtcdError::Timeout(self.timeout))?
            }
        };
        let response = received(&self.scope, response)
            .map_err(|error| error.or_too_large(&self.scope, self.content.max_bytes()))?;
        if response.canceled {
            // A compacted watch is followed by a new list at once.
            let pause = created_by.is_some();
            self.client.cancelled(&self.scope, &response)?;
            self.restart(pause);
            return Ok(false);
        }
        if response.created {
            *created_by = None;
            self.backoff.reset();
        }
        if response.events.is_empty() {
            return Ok(false);
        }
        self.content.apply(&self.scope, &response.events)
    }
}

impl State {
    /// A new connection, not before `until`.
    fn starting(client: &Arc<Client>, scope: &Scope, max_bytes: usize, until: Option<Instant>) -> Self {
        let (client, scope) = (Arc::clone(client), scope.clone());
        Self::Starting(ReusableBoxFuture::new(async move {
            if let Some(until) = until {
                sleep_until(until).await;
            }
            start(&client, &scope, max_bytes).await
        }))
    }
}

/// Connects, lists and opens the watch.
async fn start(client: &Client, scope: &Scope, max_bytes: usize) -> Result<Started, EtcdError> {
    let connection = client.connect(scope).await?;
    let listed = Counted::of(scope, max_bytes, &connection.list(scope, max_bytes).await?)?;
    let stream = connection.watch(scope, listed.get().revision + 1, max_bytes).await?;
    Ok(Started { listed, stream })
}
