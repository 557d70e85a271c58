//! The TLS configurations of routes.
//!
//! Each route has a configuration of its own, with a ticket key of its own: a client resumes a session only at the
//! route that it began at, and only while the certificates of the route stay. A route that asks for client certificates
//! has no tickets at all: a resumed session is not validated again and brings the next ticket, so it could outlive its
//! certificate for ever. A configuration is replaced in place when a certificate or an authority of its route changes,
//! which costs nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;
use pingsix_translate::stream::{ClientAuth, StreamKey, StreamKind};
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::ServerName;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;

use super::certificate::Certificate;
use super::clients::{Authorities, Clients};

/// The settings of the TLS server of one route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Settings {
    /// The ids of its certificates, at least one.
    pub(in super::super) certificates: Vec<String>,
    /// The protocols that it offers (ALPN), in the order of its preference.
    pub(in super::super) protocols: Vec<String>,
    /// The validation of client certificates; `None` asks for none.
    pub(in super::super) clients: Option<ClientAuth>,
}

impl Settings {
    /// The documents that it refers to.
    fn references(&self) -> impl Iterator<Item = StreamKey> {
        let certificates = self.certificates.iter().map(|id| StreamKey::new(StreamKind::Ssl, id));
        let authorities = self.clients.iter().flat_map(|clients| &clients.ca_ids);
        certificates.chain(authorities.map(|id| StreamKey::new(StreamKind::Ca, id)))
    }
}

/// The TLS server of one route.
pub(in super::super) struct Termination {
    settings: Settings,
    /// `None` if a document that it refers to is absent or cannot be used.
    config: RwLock<Option<Arc<ServerConfig>>>,
}

impl Termination {
    /// Whether the backend is an HTTP server, to which clients speak first.
    pub(in super::super) fn is_http(&self) -> bool {
        !self.settings.protocols.is_empty()
    }

    /// The configuration in force.
    pub(in super::super) fn config(&self) -> Option<Arc<ServerConfig>> {
        self.config.read().clone()
    }
}

impl fmt::Debug for Termination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Termination").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// The certificates and authorities of documents, and the routes that use them.
pub(in super::super) struct Terminations {
    /// The versions, suites and limits of all configurations.
    common: ServerConfig,
    /// The usable certificates, by id.
    certificates: BTreeMap<String, Arc<Certificate>>,
    /// The usable authorities, by id.
    authorities: BTreeMap<String, Arc<Authorities>>,
    /// By the key of the route.
    routes: BTreeMap<String, Arc<Termination>>,
    /// The keys of the routes that refer to a document.
    users: BTreeMap<StreamKey, BTreeSet<String>>,
    /// The keys of the routes whose configurations are not up to date.
    stale: BTreeSet<String>,
    /// The errors of routes, by key.
    errors: BTreeMap<String, String>,
}

impl Default for Terminations {
    fn default() -> Self {
        Self {
            common: common(Arc::new(ring::default_provider()), WebPkiClientVerifier::no_client_auth()),
            certificates: BTreeMap::new(),
            authorities: BTreeMap::new(),
            routes: BTreeMap::new(),
            users: BTreeMap::new(),
            stale: BTreeSet::new(),
            errors: BTreeMap::new(),
        }
    }
}

/// A configuration without certificates.
fn common(provider: Arc<CryptoProvider>, clients: Arc<dyn ClientCertVerifier>) -> ServerConfig {
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has suites of both versions")
        .with_client_cert_verifier(clients)
        .with_cert_resolver(Arc::new(Choice(Box::default())));
    // Tickets suffice, and cost no memory.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config
}

impl Terminations {
    /// Sets the certificate of an id; the error is that of the document. Call [`refresh`](Self::refresh) after all
    /// changes.
    pub(in super::super) fn set_certificate(&mut self, id: &str, value: &[u8]) -> Result<(), &'static str> {
        self.remove_certificate(id);
        let certificate = Certificate::decode(value, self.common.crypto_provider())?;
        self.certificates.insert(id.to_owned(), Arc::new(certificate));
        Ok(())
    }

    /// Removes the certificate of an id.
    pub(in super::super) fn remove_certificate(&mut self, id: &str) {
        self.certificates.remove(id);
        self.changed(&StreamKey::new(StreamKind::Ssl, id));
    }

    /// Sets the authorities of an id; the error is that of the document. Call [`refresh`](Self::refresh) after all
    /// changes.
    pub(in super::super) fn set_authorities(&mut self, id: &str, value: &[u8]) -> Result<(), &'static str> {
        self.remove_authorities(id);
        self.authorities.insert(id.to_owned(), Arc::new(Authorities::decode(value)?));
        Ok(())
    }

    /// Removes the authorities of an id.
    pub(in super::super) fn remove_authorities(&mut self, id: &str) {
        self.authorities.remove(id);
        self.changed(&StreamKey::new(StreamKind::Ca, id));
    }

    fn changed(&mut self, document: &StreamKey) {
        self.stale.extend(self.users.get(document).into_iter().flatten().cloned());
    }

    /// The TLS server of a route with these settings. A route whose settings and documents stay keeps its ticket key.
    pub(in super::super) fn set_route(&mut self, key: &str, settings: Settings) -> Arc<Termination> {
        if let Some(former) = self.routes.get(key)
            && former.settings == settings
        {
            return Arc::clone(former);
        }
        self.remove_route(key);
        for document in settings.references() {
            self.users.entry(document).or_default().insert(key.to_owned());
        }
        let termination = Arc::new(Termination { settings, config: RwLock::default() });
        self.routes.insert(key.to_owned(), Arc::clone(&termination));
        self.stale.insert(key.to_owned());
        termination
    }

    /// A route terminates no TLS any more. Connections that have chosen it may still use its configuration.
    pub(in super::super) fn remove_route(&mut self, key: &str) {
        let Some(former) = self.routes.remove(key) else { return };
        for document in former.settings.references() {
            if let Some(users) = self.users.get_mut(&document) {
                users.remove(key);
                if users.is_empty() {
                    self.users.remove(&document);
                }
            }
        }
        self.stale.remove(key);
        self.errors.remove(key);
    }

    /// Brings the configurations of all routes up to date.
    pub(in super::super) fn refresh(&mut self) {
        for key in std::mem::take(&mut self.stale) {
            let Some(termination) = self.routes.get(&key) else { continue };
            match self.build(&termination.settings) {
                Ok(config) => {
                    *termination.config.write() = Some(Arc::new(config));
                    self.errors.remove(&key);
                }
                Err(error) => {
                    *termination.config.write() = None;
                    self.errors.insert(key, error);
                }
            }
        }
    }

    fn build(&self, settings: &Settings) -> Result<ServerConfig, String> {
        let certificates = find(&self.certificates, &settings.certificates, ("ssl_ids", StreamKind::Ssl))?;
        let mut config = match &settings.clients {
            None => self.common.clone(),
            Some(ClientAuth { mode, ca_ids }) => {
                let authorities = find(&self.authorities, ca_ids, ("client_auth.ca_ids", StreamKind::Ca))?;
                let provider = self.common.crypto_provider();
                let clients = Clients::new(*mode, &authorities, provider)?;
                common(Arc::clone(provider), Arc::new(clients))
            }
        };
        config.cert_resolver = Arc::new(Choice(certificates.into()));
        config.alpn_protocols =
            settings.protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        // Without random numbers for a key there is no resumption, and no handshake either.
        if settings.clients.is_none()
            && let Ok(ticketer) = ring::Ticketer::new()
        {
            config.ticketer = ticketer;
        }
        Ok(config)
    }

    /// The errors of routes, by key.
    pub(in super::super) fn errors(&self) -> impl Iterator<Item = (&String, &String)> {
        self.errors.iter()
    }
}

/// The documents that a field of a route names by their ids.
fn find<T>(
    documents: &BTreeMap<String, Arc<T>>,
    ids: &[String],
    (field, kind): (&str, StreamKind),
) -> Result<Vec<Arc<T>>, String> {
    let find = |id: &String| {
        let document = documents.get(id).cloned();
        document.ok_or_else(|| format!("{field}: There is no usable document {kind}/{id}."))
    };
    ids.iter().map(find).collect()
}

impl fmt::Debug for Terminations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminations").field("routes", &self.routes).finish_non_exhaustive()
    }
}

/// The choice of a certificate: the first that is valid for the server name and whose key can sign for the client, and
/// the first of all if there is none.
#[derive(Debug)]
struct Choice(Box<[Arc<Certificate>]>);

impl ResolvesServerCert for Choice {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let (first, more) = self.0.split_first()?;
        let chosen = match hello.server_name().map(ServerName::try_from) {
            Some(Ok(name)) if !more.is_empty() => {
                let mut suitable = self.0.iter().filter(|one| one.suits(&name, hello.signature_schemes()));
                suitable.next().unwrap_or(first)
            }
            _ => first,
        };
        Some(Arc::clone(chosen.key()))
    }
}

#[cfg(test)]
mod tests;
