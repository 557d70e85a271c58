//! PingSIX's Admin API, which writes to the etcd that PingSIX itself reads.
//!
//! ```text
//! GET the five lists ──► the scope's documents ──► plan ──► PUT, upstreams first ──► DELETE, upstreams last
//! ```
//!
//! An Admin API writes below one prefix, so a sink is for one scope.
//!
//! **Ownership.** The sink and other users of the API share ids, so the sink marks its resources: the label [`SCOPE_LABEL`]
//! has the scope as its value. PingSIX keeps unknown fields and ignores them (`labels` is APISIX's field for such
//! marks). A resource without a mark is never deleted, and is changed only if a document has its id, which then
//! replaces it. A resource with the mark of another scope belongs to another sink, and a document with its id is
//! refused, because two sinks would revert each other's writes without end. A user who edits a resource of the sink
//! and drops its labels takes it over.
//!
//! **Secrets** are shown as `***`. A masked secret counts as unchanged when this sink wrote the document and the
//! revision of the resource is still that of the write. A restarted sink knows no writes, so it writes documents with
//! secrets once.
//!
//! **Conflicts.** PingSIX answers 409 in two cases. After a concurrent write, the sink retries with a random delay.
//! When a resource to delete is still referred to by a foreign resource, it stays, the other steps go on, and
//! the error names it.
//!
//! A refused document ends the publication, like any failure; the written documents are a prefix of the plan.
//! Requests are not conditional, so a foreign resource that takes one of our ids between the list and the write is
//! overwritten.
//!
//! Revisions are those of etcd as far as the API returns them; a deletion counts as one.

mod client;
mod error;
mod listed;
mod mark;
mod refusal;
mod target;
mod tls;
mod url;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use tokio::sync::Mutex;

pub use crate::client_tls::ClientTls;
use crate::desired::{Desired, DocumentSet, Scope};
use crate::document::Document;
use crate::error::SinkError;
use crate::ledger::Ledger;
use crate::plan::{Changed, Step, plan};
use crate::resource::Resource;
use crate::revision::Revision;
use crate::sink::{Published, Sink};

use client::{Client, DeleteOutcome, PutOutcome};
use error::AdminError;
use listed::{ListedResource, WriteCache};
pub use mark::{PUBLISHER_LABEL, SCOPE_LABEL};
use refusal::refused;
pub use target::ADMIN_KEY_VARIABLE;
pub(crate) use target::AdminTarget;
use url::{AdminUrl, AdminUrlError};

/// Size limit of a request body in PingSIX (`src/admin/mod.rs`, `MAX_BODY_SIZE`).
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// Publishes one scope to PingSIX's Admin API; see [`mod@crate::admin`]. Clones share everything.
#[derive(Clone)]
pub struct AdminSink {
    client: Arc<Client>,
    state: Arc<Mutex<State>>,
    publisher: Arc<OnceLock<String>>,
    /// Scopes that will not be published again. Another scope may take their place.
    forgotten: Arc<parking_lot::Mutex<BTreeSet<Scope>>>,
}

#[derive(Default)]
struct State {
    ledger: Ledger,
    writes: WriteCache,
}

/// Options of an [`AdminSink`].
#[derive(Clone)]
pub struct Builder {
    url: Result<AdminUrl, AdminUrlError>,
    api_key: HeaderValue,
    tls: Option<ClientTls>,
    timeout: Duration,
    plaintext_beyond_loopback: bool,
}

impl AdminSink {
    /// Options for the API at `http://HOST:PORT` or `https://HOST:PORT`, with the value of the header `X-API-KEY`.
    pub fn builder(url: &str, api_key: HeaderValue) -> Builder {
        Builder::of(url.parse(), api_key)
    }

    /// The documents of a scope as the API shows them: secrets masked, without ids and marks.
    ///
    /// # Errors
    /// When the lists cannot be read.
    pub async fn documents(&self, scope: &Scope) -> Result<DocumentSet, SinkError> {
        DocumentSet::new(self.list().await?.into_iter().filter_map(|listed| listed.into_document(scope)))
    }

    async fn list(&self) -> Result<Vec<ListedResource>, AdminError> {
        let mut all = Vec::new();
        for kind in crate::resource::ResourceKind::ALL {
            all.extend(self.client.list(kind).await?);
        }
        Ok(all)
    }

    /// Compares the resources of the API with the desired documents.
    async fn plan(
        &self,
        scope: &Scope,
        prepared: &[PreparedDocument<'_>],
        writes: &WriteCache,
    ) -> Result<Plan, SinkError> {
        let listed = self.list().await?;
        let mut current = Vec::new();
        for listed in &listed {
            let wanted = prepared.binary_search_by(|prepared| prepared.sent.key.cmp(&listed.key)).ok();
            let wanted = wanted.and_then(|index| prepared.get(index));
            if listed.is_of(scope) {
                current.push(listed.target_document(wanted.map(|wanted| &wanted.sent), writes));
            } else if let (Some(wanted), Some(scope)) = (wanted, listed.scope()) {
                let Document { key, owner, .. } = wanted.sent.clone();
                return Err(AdminError::OtherScope { key, owner, scope: scope.to_owned() }.into());
            }
        }
        let sent = DocumentSet::new(prepared.iter().map(|prepared| prepared.sent.clone()))?;
        Ok(Plan {
            steps: plan(&DocumentSet::new(current)?, &sent),
            latest: listed.iter().map(|listed| listed.revision).max(),
            own: listed.iter().filter(|listed| listed.is_of(scope)).map(|listed| listed.revision).max(),
        })
    }
}

/// The steps from the resources of the API to the desired documents.
struct Plan {
    steps: Vec<Step>,
    /// The highest revision of all resources.
    latest: Option<Revision>,
    /// The highest revision of the resources of this scope.
    own: Option<Revision>,
}

impl Builder {
    fn of(url: Result<AdminUrl, AdminUrlError>, mut api_key: HeaderValue) -> Self {
        api_key.set_sensitive(true);
        let timeout = Duration::from_secs(10);
        Self { url, api_key, tls: None, timeout, plaintext_beyond_loopback: false }
    }

    /// The CAs that verify the server, which https needs, and the certificate of the client.
    #[must_use]
    pub fn tls(mut self, tls: ClientTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Timeout of a request including its connection; 10 s by default.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Allows plaintext to other machines. The API key and private keys are then sent unencrypted.
    #[must_use]
    pub const fn allow_plaintext_beyond_loopback(mut self) -> Self {
        self.plaintext_beyond_loopback = true;
        self
    }

    /// Builds the sink without a request.
    ///
    /// # Errors
    /// When the URL, the CA or the client certificate cannot be used, or plaintext would reach another machine.
    pub fn build(self) -> Result<AdminSink, SinkError> {
        // The text of the error quotes nothing of the URL, in which a password may be.
        let url = self.url.map_err(|error| AdminError::Url(error.to_string()))?;
        if url.is_plaintext() && !url.is_loopback() && !self.plaintext_beyond_loopback {
            return Err(AdminError::PlaintextBeyondLoopback { url: url.to_string() }.into());
        }
        let client = Client::new(url, self.api_key, self.tls, self.timeout)?;
        Ok(AdminSink {
            client: Arc::new(client),
            state: Arc::default(),
            publisher: Arc::default(),
            forgotten: Arc::default(),
        })
    }
}

impl fmt::Debug for AdminSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminSink").field("url", self.client.url()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Sink for AdminSink {
    async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        let prepared: Vec<PreparedDocument<'_>> = desired
            .documents()
            .iter()
            .map(|document| PreparedDocument::new(document, desired.scope(), self.publisher.get()))
            .collect::<Result<_, _>>()?;
        // The lock is held across the requests, so that publications of one scope do not interleave.
        let mut state = self.state.lock().await;
        let State { ledger, writes } = &mut *state;
        let scope = desired.scope();
        for forgotten in std::mem::take(&mut *self.forgotten.lock()) {
            ledger.forget(&forgotten);
        }
        // Resources that an earlier process left under another scope can be taken away by that scope's name.
        let is_gone =
            self.publisher.get().is_some() && desired.documents().is_empty() && ledger.get(scope).is_none();
        if !is_gone {
            ledger.admit_alone(scope)?;
        }
        let Plan { steps, mut latest, own } = self.plan(scope, &prepared, writes).await?;
        let published = ledger.get(scope);
        if steps.is_empty() {
            // A publication that was dropped before its end leaves newer revisions than the ledger has.
            let revision = published.max(own).unwrap_or(Revision::MIN);
            if !is_gone {
                ledger.record(scope.clone(), revision);
            }
            return Ok(Published { revision, changed: Changed::default() });
        }

        let changed = Changed::of(&steps);
        let mut referenced = Vec::new();
        for step in &steps {
            match step {
                Step::Create(sent) | Step::Update(sent) => {
                    let revision = match self.client.put(sent).await? {
                        PutOutcome::Committed(revision) => revision,
                        PutOutcome::Refused(message) => return Err(refused(sent, message, &prepared).into()),
                    };
                    writes.record(sent, revision);
                    latest = latest.max(Some(revision));
                }
                Step::Delete { key, .. } => match self.client.delete(key).await? {
                    DeleteOutcome::Gone => {
                        writes.forget(key);
                        latest = latest.and_then(|latest| latest.checked_add(1));
                    }
                    DeleteOutcome::StillReferenced => referenced.push(key.clone()),
                },
            }
        }
        if !referenced.is_empty() {
            return Err(AdminError::StillReferenced { keys: referenced }.into());
        }
        let above = published.and_then(|revision| revision.checked_add(1));
        let revision = latest.max(above).unwrap_or(Revision::MIN);
        if !is_gone {
            ledger.record(scope.clone(), revision);
        }
        Ok(Published { revision, changed })
    }

    fn forget(&self, scope: &Scope) {
        self.forgotten.lock().insert(scope.clone());
    }

    fn publish_as(&self, publisher: &str) {
        // The first name counts.
        let _ = self.publisher.set(publisher.to_owned());
    }

    async fn own_scopes(&self, root: &Scope) -> Result<BTreeSet<Scope>, SinkError> {
        let Some(publisher) = self.publisher.get() else { return Ok(BTreeSet::new()) };
        let (mut own, mut others) = (BTreeSet::new(), BTreeSet::new());
        for listed in self.list().await? {
            let Some(scope) = listed.scope().and_then(|scope| Scope::new(scope).ok()) else { continue };
            let is_ours = listed.publisher() == Some(publisher);
            if is_ours { &mut own } else { &mut others }.insert(scope);
        }
        own.retain(|scope| !others.contains(scope) && root.overlaps(scope));
        Ok(own)
    }
}

/// A document and the bytes that are sent for it.
struct PreparedDocument<'a> {
    resource: Resource<'a>,
    sent: Document,
}

impl<'a> PreparedDocument<'a> {
    fn new(document: &'a Document, scope: &Scope, publisher: Option<&String>) -> Result<Self, SinkError> {
        let resource = Resource::decode(document)?;
        let value = Bytes::from(mark::marked(&resource, scope, publisher.map(String::as_str))?.to_string());
        if value.len() > MAX_BODY_BYTES {
            return Err(AdminError::TooLarge {
                key: document.key.clone(),
                owner: document.owner.clone(),
                bytes: value.len(),
            }
            .into());
        }
        Ok(Self { resource, sent: Document { value, ..document.clone() } })
    }
}
