//! The current clients and their replacement.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

use super::clients::{Clients, ClientsError};
use super::uri::Grant;
use super::{Access, Certificate, Source};
use crate::desired::{Desired, Scope};
use crate::document::Digest;
use crate::embedded::revisions::Clock;
use crate::embedded::store::KeyRange;
use crate::embedded::watched_files::{read_stable, refresh_every};

/// The current access rules.
pub(in crate::embedded) struct LiveAccess {
    clock: Arc<dyn Clock>,
    certificate_uris: bool,
    source: Option<ClientsFile>,
    /// `None` while access is unrestricted.
    clients: RwLock<Option<Arc<Clients>>>,
    changes: watch::Sender<u64>,
    /// The owner of each published scope.
    owners: RwLock<BTreeMap<Scope, Ownership>>,
}

/// Ownership of a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ownership {
    /// The scope has this owner, or none.
    Of(Option<Arc<str>>),
    /// The scope still has the documents of a former owner.
    Transferring,
}

/// A file that is read periodically.
struct ClientsFile {
    path: std::path::PathBuf,
    interval: Duration,
    digest: Mutex<Digest>,
}

/// An authorised reader.
#[derive(Clone, Debug)]
pub(in crate::embedded) enum Reader {
    /// Access is unrestricted.
    Anyone,
    /// A client with these prefixes.
    Client(Arc<[Scope]>),
}

/// Reason of a denied request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::embedded) enum Denied {
    /// The client has no certificate, or none with a name.
    Unauthenticated,
    /// The certificate has expired since the handshake.
    Expired,
    /// The range is outside the client's prefixes, or the client is unknown.
    NotPermitted,
}

impl fmt::Debug for LiveAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.source.as_ref().map(|watched| &watched.path);
        f.debug_struct("LiveAccess")
            .field("file", &path)
            .field("clients", &*self.clients.read())
            .finish_non_exhaustive()
    }
}

impl LiveAccess {
    /// Reads the clients once; an invalid file is an error.
    pub(in crate::embedded) fn load(
        access: Option<Access>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ClientsError> {
        let Some(Access { source, certificate_uris, reread_interval }) = access else {
            return Ok(Self::new(clock, None, None));
        };
        let live = match source {
            Source::Given(clients) => Self::new(clock, None, Some(clients)),
            Source::File(path) => {
                let (digest, clients) = read_stable(None, || read(&path));
                let watched = ClientsFile { path, interval: reread_interval, digest: Mutex::new(digest) };
                Self::new(clock, Some(watched), Some(clients?))
            }
        };
        Ok(Self { certificate_uris, ..live })
    }

    fn new(clock: Arc<dyn Clock>, source: Option<ClientsFile>, clients: Option<Clients>) -> Self {
        let clients = RwLock::new(clients.map(Arc::new));
        let changes = watch::Sender::new(0);
        let owners = RwLock::default();
        Self { clock, certificate_uris: false, source, clients, changes, owners }
    }

    /// Whether URIs of certificates grant access and connections end with their certificates.
    pub(in crate::embedded) fn ends_with_certificates(&self) -> bool {
        self.certificate_uris
    }

    pub(in crate::embedded) fn replace(&self, clients: Clients) {
        *self.clients.write() = Some(Arc::new(clients));
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Closes a scope to certificates that name it before a publication for another owner. Returns whether the owner
    /// changes.
    pub(in crate::embedded) fn begin_transfer(&self, desired: &Desired) -> bool {
        let owner = Ownership::Of(desired.owner().cloned());
        let is_same = self.owners.read().get(desired.scope()) == Some(&owner);
        if is_same || desired.documents().is_empty() {
            return false;
        }
        self.owners.write().insert(desired.scope().clone(), Ownership::Transferring);
        true
    }

    /// Opens a scope to its new owner.
    pub(in crate::embedded) fn complete_transfer(&self, desired: &Desired) {
        self.owners.write().insert(desired.scope().clone(), Ownership::Of(desired.owner().cloned()));
    }

    /// Changes when access rules change.
    pub(in crate::embedded) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Reads the file periodically, if there is one. Never ends.
    pub(in crate::embedded) async fn keep_current(self: Arc<Self>) -> Infallible {
        match &self.source {
            Some(watched) => refresh_every(watched.interval, move || self.refresh()).await,
            None => std::future::pending().await,
        }
    }

    fn refresh(&self) {
        let Some(ClientsFile { path, digest, .. }) = &self.source else { return };
        // The lock is held throughout, because several listeners refresh, and each change must be applied and logged
        // once.
        let mut known = digest.lock();
        let (digest, clients) = read_stable(Some(*known), || read(path));
        if digest == *known {
            return;
        }
        *known = digest;
        match clients {
            Ok(clients) => {
                tracing::info!(path = %path.display(), "the clients were read again");
                self.replace(clients);
            }
            Err(error) => {
                let cause = std::error::Error::source(&error);
                tracing::warn!(%error, cause, "the file of clients is invalid; the previous clients stay");
            }
        }
    }

    /// Authenticates a client by its certificate.
    pub(in crate::embedded) fn reader(&self, certificate: Option<&Certificate>) -> Result<Reader, Denied> {
        let Some(clients) = self.clients.read().clone() else { return Ok(Reader::Anyone) };
        let certificate = certificate.ok_or(Denied::Unauthenticated)?;
        if self.certificate_uris && certificate.has_ended(self.clock.now()) {
            return Err(Denied::Expired);
        }
        let named = certificate.common_name().map(|name| clients.scopes_of_certificate(name));
        let own = self.scopes_of_uris(certificate);
        match named {
            None if certificate.grants().is_empty() => Err(Denied::Unauthenticated),
            None | Some(None) if own.is_empty() => Err(Denied::NotPermitted),
            None | Some(None) => Ok(Reader::Client(own)),
            Some(Some(named)) if own.is_empty() => Ok(Reader::Client(Arc::clone(named))),
            Some(Some(named)) => Ok(Reader::Client(named.iter().chain(&*own).cloned().collect())),
        }
    }

    /// The prefixes that a certificate names and whose owners match. A prefix that was never published has no
    /// documents.
    fn scopes_of_uris(&self, certificate: &Certificate) -> Arc<[Scope]> {
        let owners = self.owners.read();
        let is_open = |grant: &&Grant| match owners.get(&grant.scope) {
            None => true,
            Some(Ownership::Of(owner)) => *owner == grant.owner,
            Some(Ownership::Transferring) => false,
        };
        certificate.grants().iter().filter(is_open).map(|grant| grant.scope.clone()).collect()
    }
}

impl Reader {
    /// Whether the reader may read the whole of `range`.
    pub(in crate::embedded) fn check(&self, range: &KeyRange) -> Result<(), Denied> {
        match self {
            Self::Anyone => Ok(()),
            Self::Client(scopes) if scopes.iter().any(|scope| range.within(scope)) => Ok(()),
            Self::Client(_) => Err(Denied::NotPermitted),
        }
    }
}

/// The content of the file and its digest.
fn read(path: &Path) -> (Digest, Result<Clients, ClientsError>) {
    let file = Some(path.to_owned());
    match std::fs::read_to_string(path) {
        Ok(text) => {
            let clients = Clients::of_file(&text).map_err(|error| ClientsError { file, ..error });
            (Digest::of(text.as_bytes()), clients)
        }
        Err(error) => {
            let digest = Digest::of(error.to_string().as_bytes());
            let (problem, source) = ("the file cannot be read", Some(error));
            (digest, Err(ClientsError { file, line: None, problem, source }))
        }
    }
}
