//! Writes the differences: documents, their origins, and their total size.
//!
//! A document is written again if its inputs changed, and replaced if its bytes differ. The size of each document is
//! remembered, and the total changes by the difference. So the total equals the sum over all documents.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{LoweredPlane, Stale, Work};
use crate::backends::Target;
use crate::lower::DataPlane;
use crate::lower::document::document_key;
use crate::lower::lowering::Lowering;
use crate::lower::naming::WrittenDocument;
use crate::lower::service::ServiceKey;
use crate::lower::ssl::ServedCertificates;
use crate::lower::table::TableKey;
use crate::lower::upstream::UpstreamKey;
use crate::model::{ObjectKey, Provenance};
use crate::pingsix::validate::encode;
use crate::pingsix::{Document, DocumentKey, LazyDocument, ResourceKind, canonical_prefix, listed_bytes};

/// The documents of a data plane with their size.
#[derive(Debug)]
pub(super) struct Documents {
    data_plane: DataPlane,
    /// Length of the prefix of all keys.
    prefix: usize,
}

impl Documents {
    /// No documents.
    pub(super) fn new(lowering: &Lowering<'_>) -> Self {
        let prefix = canonical_prefix(&lowering.plane.key.prefix(&lowering.options.root)).len();
        Self { data_plane: DataPlane::default(), prefix }
    }

    /// Fills an empty set with documents, faster than one by one.
    pub(super) fn fill(&mut self, documents: Vec<WrittenDocument>) {
        let listed = documents.iter().map(|(key, document, _)| listed_bytes(key, document) + self.prefix);
        self.data_plane.size.bytes = listed.sum();
        let parted =
            documents.into_iter().map(|(key, document, origin)| ((key.clone(), document), (key, origin)));
        let (contents, origins): (Vec<_>, Vec<_>) = parted.unzip();
        self.data_plane.config = contents.into_iter().collect();
        self.data_plane.provenance = origins.into_iter().collect();
    }

    pub(super) const fn data_plane(&self) -> &DataPlane {
        &self.data_plane
    }

    /// Sets the charged part of the budget.
    pub(super) const fn set_charged_ratio(&mut self, part: f64) {
        self.data_plane.charged_ratio = part;
    }

    /// Length of the prefix of all keys.
    pub(super) const fn prefix(&self) -> usize {
        self.prefix
    }

    /// The bytes of a document in the list response; 0 without a document.
    fn bytes(&self, key: &DocumentKey) -> usize {
        let document = self.data_plane.config.get_lazy(key);
        document.map_or(0, |document| listed_bytes(key, document) + self.prefix)
    }

    /// Inserts or replaces a document.
    fn set(&mut self, key: DocumentKey, document: LazyDocument) {
        let was = self.bytes(&key);
        let size = &mut self.data_plane.size;
        size.bytes = size.bytes - was + listed_bytes(&key, &document) + self.prefix;
        self.data_plane.config.put(key, document);
    }

    /// Inserts a document, or replaces a different one, and sets its origins.
    fn put(&mut self, (key, document, origin): WrittenDocument) {
        if self.data_plane.config.get_lazy(&key) != Some(&document) {
            self.set(key.clone(), document);
        }
        self.note_origin(key, origin);
    }

    /// Removes a document, if it exists.
    pub(super) fn remove(&mut self, key: &DocumentKey) {
        self.data_plane.size.bytes -= self.bytes(key);
        self.data_plane.config.remove(key);
        self.data_plane.provenance.remove(key);
    }

    /// Sets the origins of a document.
    pub(super) fn note_origin(&mut self, key: DocumentKey, origin: Provenance) {
        if self.data_plane.provenance.get(&key) != Some(&origin) {
            self.data_plane.provenance.insert(key, origin);
        }
    }

    /// Replaces the count of matcher entries of a Route.
    pub(super) const fn replace_matcher_entries(&mut self, was: usize, is: usize) {
        let size = &mut self.data_plane.size;
        size.matcher_entries = size.matcher_entries - was + is;
    }
}

impl LoweredPlane {
    /// Writes Routes that are new or list other patterns. Of known documents, only the patterns are decoded, unless
    /// they have to be replaced.
    pub(super) fn write(&mut self, work: &mut Work) -> Result<(), Stale> {
        let mut drafts = std::mem::take(&mut work.drafts);
        let mut closed = std::mem::take(&mut work.closed);
        let keys: BTreeSet<Arc<TableKey>> = drafts.keys().chain(closed.keys()).cloned().collect();
        for key in keys {
            let Some(written) = self.table.get_mut(&key) else { continue };
            let document_key = document_key(&key);
            let patterns = closed.remove(&key).map(|closed| {
                let closed = if written.has_spellings { closed.with_spellings() } else { closed };
                let (bytes, matcher_entries) = (closed.bytes(), closed.matcher_entries());
                self.room = self.room.saturating_sub(written.pattern_bytes).saturating_add(bytes);
                self.documents.replace_matcher_entries(written.matcher_entries, matcher_entries);
                (written.pattern_bytes, written.matcher_entries) = (bytes, matcher_entries);
                closed.into_patterns()
            });
            let held = self.documents.data_plane.config.get_lazy(&document_key);
            let (mut document, patterns) = match (drafts.remove(&key), patterns) {
                (Some(draft), patterns) => {
                    let before = || held.and_then(LazyDocument::route_patterns);
                    (draft, patterns.or_else(before).ok_or(Stale)?)
                }
                (None, Some(patterns)) => {
                    // Hosts that cover each other are closed together. Most of their Routes list the same patterns as
                    // before.
                    if held.and_then(LazyDocument::route_patterns).as_ref() == Some(&patterns) {
                        continue;
                    }
                    let Some(Document::Route(route)) = held.map(|held| held.look().into_owned()) else {
                        return Err(Stale);
                    };
                    (route, patterns)
                }
                (None, None) => continue,
            };
            patterns.put_into(&mut document);
            let document = encode(&document_key, &Document::Route(document));
            self.routes_written += 1;
            let is_same = held == Some(&document);
            if !is_same {
                self.documents.set(document_key, document);
            }
        }
        Ok(())
    }

    /// Writes upstreams that are new or have other endpoints, and removes unused ones.
    pub(super) fn write_upstreams(
        &mut self,
        lowering: &Lowering<'_>,
        changed: &BTreeSet<usize>,
        used: &BTreeSet<UpstreamKey>,
    ) {
        let changed = changed.iter().map(|index| UpstreamKey::Target(Target::Backend(*index)));
        let all: BTreeSet<UpstreamKey> = used.iter().copied().chain(changed).collect();
        for upstream in all {
            // An unknown upstream is not used, and has no id.
            if self.naming.upstreams.named.is_used(&upstream) {
                if let Some(written) = self.naming.upstream(lowering, &upstream) {
                    self.documents.put(written);
                }
            } else if let Some(key) = self.naming.upstreams.named.release(&upstream, &mut self.naming.ids) {
                self.documents.remove(&key);
            }
        }
    }

    /// The services that contain these policies.
    pub(super) fn services_of<'s>(
        &'s self,
        policies: &'s BTreeSet<Arc<ObjectKey>>,
    ) -> impl Iterator<Item = &'s ServiceKey> {
        self.naming.services.keys().filter(|service| service.has_any(policies))
    }

    /// Writes services that are new or whose policies have other contents, and removes unused ones.
    pub(super) fn write_services(
        &mut self,
        lowering: &Lowering<'_>,
        changed: &BTreeSet<Arc<ObjectKey>>,
        used: &BTreeSet<ServiceKey>,
    ) {
        let all: BTreeSet<ServiceKey> = self.services_of(changed).chain(used).cloned().collect();
        for service in all {
            if self.naming.services.is_used(&service) {
                if let Some(written) = self.naming.service(lowering, &service) {
                    self.documents.put(written);
                }
            } else if let Some(key) = self.naming.services.release(&service, &mut self.naming.ids) {
                self.documents.remove(&key);
            }
        }
    }

    /// Writes changed certificates, and removes old ones. Without room for all certificates, the next
    /// [`change`](Self::change) lowers the data plane anew.
    pub(crate) fn change_certificates(&mut self, before: &ServedCertificates, now: &ServedCertificates) {
        self.is_recertified |= before.served != now.served;
        if !self.admission.certificate_refusals().is_empty() {
            return;
        }
        let (before, now) = (before.documents(|_| true), now.documents(|_| true));
        for certificate in before.keys().filter(|certificate| !now.contains_key(*certificate)) {
            if let Some(id) = self.certificates.remove(certificate) {
                self.naming.ids.release(&id);
                self.documents.remove(&DocumentKey { kind: ResourceKind::Ssl, id });
            }
        }
        for (certificate, document) in now {
            if before.get(&certificate) == Some(&document) {
                continue;
            }
            let written = self.naming.certificate(&mut self.certificates, certificate, &document);
            self.documents.put(written);
        }
    }
}
