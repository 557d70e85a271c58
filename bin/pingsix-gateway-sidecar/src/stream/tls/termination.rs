//! The TLS configurations of routes.
//!
//! Each route has a configuration of its own, with a ticket key of its own: a client resumes a session only at the
//! route that it began at, and only while the certificates of the route stay. A configuration is replaced in place when
//! a certificate of its route changes, which costs nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::certificate::Certificate;

/// The TLS server of one route.
#[derive(Default)]
pub(in super::super) struct Termination {
    /// The ids of its certificates.
    ids: Vec<String>,
    /// `None` if one of them is absent or cannot be used.
    config: RwLock<Option<Arc<ServerConfig>>>,
}

impl Termination {
    /// The configuration in force.
    pub(in super::super) fn config(&self) -> Option<Arc<ServerConfig>> {
        self.config.read().clone()
    }
}

impl fmt::Debug for Termination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Termination").field("ids", &self.ids).finish_non_exhaustive()
    }
}

/// The certificates of documents, and the routes that show them.
pub(in super::super) struct Terminations {
    /// The versions, suites and limits of all configurations.
    common: ServerConfig,
    /// The usable certificates, by id.
    certificates: BTreeMap<String, Arc<Certificate>>,
    /// By the key of the route.
    routes: BTreeMap<String, Arc<Termination>>,
    /// The keys of the routes with a certificate, by its id.
    users: BTreeMap<String, BTreeSet<String>>,
    /// The keys of the routes whose configurations are not up to date.
    stale: BTreeSet<String>,
    /// The faults of routes, by key.
    faults: BTreeMap<String, String>,
}

impl Default for Terminations {
    fn default() -> Self {
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let mut common = builder
            .with_safe_default_protocol_versions()
            .expect("the provider has suites of both versions")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Choice(Box::default())));
        // Tickets suffice, and cost no memory.
        common.session_storage = Arc::new(NoServerSessionStorage {});
        Self {
            common,
            certificates: BTreeMap::new(),
            routes: BTreeMap::new(),
            users: BTreeMap::new(),
            stale: BTreeSet::new(),
            faults: BTreeMap::new(),
        }
    }
}

impl Terminations {
    /// Sets the certificate of an id; the error is the fault of the document. Call [`refresh`](Self::refresh) after all
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
        self.stale.extend(self.users.get(id).into_iter().flatten().cloned());
    }

    /// The TLS server of a route with these certificates; `None` without any. A route whose certificates stay keeps its
    /// ticket key.
    pub(in super::super) fn set_route(&mut self, key: &str, ids: Vec<String>) -> Option<Arc<Termination>> {
        if let Some(former) = self.routes.get(key)
            && former.ids == ids
        {
            return Some(Arc::clone(former));
        }
        self.remove_route(key);
        if ids.is_empty() {
            return None;
        }
        for id in &ids {
            self.users.entry(id.clone()).or_default().insert(key.to_owned());
        }
        let termination = Arc::new(Termination { ids, config: RwLock::default() });
        self.routes.insert(key.to_owned(), Arc::clone(&termination));
        self.stale.insert(key.to_owned());
        Some(termination)
    }

    /// A route terminates no TLS any more. Connections that have chosen it may still use its configuration.
    pub(in super::super) fn remove_route(&mut self, key: &str) {
        let Some(former) = self.routes.remove(key) else { return };
        for id in &former.ids {
            if let Some(users) = self.users.get_mut(id) {
                users.remove(key);
                if users.is_empty() {
                    self.users.remove(id);
                }
            }
        }
        self.stale.remove(key);
        self.faults.remove(key);
    }

    /// Brings the configurations of all routes up to date.
    pub(in super::super) fn refresh(&mut self) {
        for key in std::mem::take(&mut self.stale) {
            let Some(termination) = self.routes.get(&key) else { continue };
            match self.build(&termination.ids) {
                Ok(config) => {
                    *termination.config.write() = Some(Arc::new(config));
                    self.faults.remove(&key);
                }
                Err(fault) => {
                    *termination.config.write() = None;
                    self.faults.insert(key, fault);
                }
            }
        }
    }

    fn build(&self, ids: &[String]) -> Result<ServerConfig, String> {
        let find = |id: &String| {
            let certificate = self.certificates.get(id).cloned();
            certificate.ok_or_else(|| format!("ssl_ids: There is no usable document ssls/{id}."))
        };
        let certificates = ids.iter().map(find).collect::<Result<_, _>>()?;
        let mut config = self.common.clone();
        config.cert_resolver = Arc::new(Choice(certificates));
        // Without random numbers for a key there is no resumption, and no handshake either.
        if let Ok(ticketer) = ring::Ticketer::new() {
            config.ticketer = ticketer;
        }
        Ok(config)
    }

    /// The faults of routes, by key.
    pub(in super::super) fn faults(&self) -> impl Iterator<Item = (&String, &String)> {
        self.faults.iter()
    }
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
