//! Reads all keys below a prefix, and follows their changes.
//!
//! ```text
//! connect ─► list, page by page ─► watch from its revision + 1 ─► one response after the other
//!    ▲              replaces everything          each applies as a whole        │
//!    └──────────────── pause ◄── cut, compacted, against the protocol ◄─────────┘
//! ```
//!
//! - **One connection.** List and watch use the same connection, because servers behind one name may count different
//!   revisions. Each new connection begins with a list, and reads the files of certificates again.
//! - **Replacement.** A list replaces the content, also when its revision is lower than the last one.
//! - **Last good content.** A failed connection, and an answer against the protocol or above a limit, changes nothing.
//! - **Back-off.** Reconnections wait from 200 ms up to 30 s, and start over after an established watch. After a
//!   failure the next endpoint is used.
//! - **Keys.** Keys whose last segment starts with a dot are not content: sinks keep their own records there.

mod builder;
mod content;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::ReusableBoxFuture;
use tonic::Streaming;

pub use builder::ReaderBuilder;
pub use content::KeyValues;

use super::client::{Client, Connection};
use super::error::{EtcdError, RequestError};
use crate::backoff::Backoff;
use crate::desired::Scope;
use crate::proto::etcdserverpb::{RangeRequest, RangeResponse, WatchResponse};
use content::Counted;

/// The number of keys in a page. A page that is too large is requested again with fewer keys.
const PAGE_SIZE: i64 = 256;

/// The attempts of a list whose revision is compacted between two pages.
const LIST_ATTEMPTS: usize = 3;

/// Reads a prefix of an etcd, or of the embedded server.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use pingsix_sink::Scope;
/// use pingsix_sink::etcd::{ClientTls, EtcdReader};
///
/// let scope = Scope::new("/pingsix-stream/shop/web")?;
/// let tls = ClientTls::ca_file("/tls/ca.crt").identity_files("/tls/tls.crt", "/tls/tls.key");
/// let mut reader = EtcdReader::builder(["https://feed:2379"], scope).tls(tls).build()?;
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
    /// Options of a reader of `scope` from these endpoints: `host:port`, or a URL with `http` or `https`.
    pub fn builder<E: Into<String>>(endpoints: impl IntoIterator<Item = E>, scope: Scope) -> ReaderBuilder {
        ReaderBuilder::new(endpoints.into_iter().map(Into::into).collect(), scope)
    }

    fn new(client: Client, scope: Scope, timeout: Duration, max_bytes: usize) -> Self {
        let client = Arc::new(client);
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
        let response = match response {
            Ok(Some(response)) => response,
            Ok(None) => return Err(EtcdError::Unavailable("the watch ended".to_owned())),
            Err(status) => return Err(RequestError::of(&status).about(&self.scope)),
        };
        if response.canceled {
            let was_created = created_by.is_none();
            return self.cancelled(&response, was_created);
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

    /// A compacted watch is followed by a new list at once; any other reason is an error.
    fn cancelled(&mut self, response: &WatchResponse, was_created: bool) -> Result<bool, EtcdError> {
        if response.compact_revision > 0 {
            tracing::debug!(scope = %self.scope, response.compact_revision, "the watch is compacted");
            self.restart(!was_created);
            return Ok(false);
        }
        self.client.forget_token();
        let reason = &response.cancel_reason;
        Err(if reason.contains("permission denied") {
            EtcdError::PermissionDenied { scope: self.scope.clone() }
        } else {
            EtcdError::Unavailable(format!("the watch was cancelled: {reason}"))
        })
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
    let listed = list(&connection, scope, max_bytes).await?;
    let stream = connection.watch(scope, listed.get().revision + 1).await?;
    Ok(Started { listed, stream })
}

/// Lists the scope as of one revision.
async fn list(connection: &Connection<'_>, scope: &Scope, max_bytes: usize) -> Result<Counted, EtcdError> {
    let mut attempts = LIST_ATTEMPTS;
    loop {
        attempts -= 1;
        match list_at_one_revision(connection, scope, max_bytes).await {
            Err(error) if attempts > 0 && is_compacted(&error) => {
                tracing::debug!(%scope, "the list was compacted between two pages");
            }
            listed => return listed,
        }
    }
}

async fn list_at_one_revision(
    connection: &Connection<'_>,
    scope: &Scope,
    max_bytes: usize,
) -> Result<Counted, EtcdError> {
    let (first, range_end) = scope.key_range();
    let mut listed = Counted::new(max_bytes);
    let (mut key, mut revision, mut limit) = (first, 0, PAGE_SIZE);
    loop {
        let request = RangeRequest {
            key: key.clone(),
            range_end: range_end.clone(),
            limit,
            revision,
            ..RangeRequest::default()
        };
        let page = match connection.range(scope, request).await {
            Ok(page) => page,
            Err(error) if limit > 1 && is_too_large(&error) => {
                limit /= 4;
                continue;
            }
            Err(error) => return Err(error),
        };
        if revision == 0 {
            revision = revision_of(&page)?;
        }
        listed.add_page(scope, revision, &key, &page)?;
        let Some(last) = page.kvs.last().filter(|_| page.more) else { return Ok(listed) };
        key = [&*last.key, &[0]].concat().into();
    }
}

fn revision_of(page: &RangeResponse) -> Result<i64, EtcdError> {
    let revision = page.header.as_ref().map(|header| header.revision).filter(|revision| *revision > 0);
    revision.ok_or_else(|| EtcdError::Protocol("a list has no revision".to_owned()))
}

fn is_compacted(error: &EtcdError) -> bool {
    matches!(error, EtcdError::Refused { message, .. } if message.contains("has been compacted"))
}

/// tonic's error for a message above the limit of its size.
fn is_too_large(error: &EtcdError) -> bool {
    matches!(error, EtcdError::Refused { message, .. } if message.contains("message length too large"))
}
