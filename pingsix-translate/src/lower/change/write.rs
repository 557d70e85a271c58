//! Writes the differences: documents, their origins, and their total size.
//!
//! A document is written again if its inputs changed, and replaced if its bytes differ. The size of each document is
//! remembered, and the total changes by the difference. So the total equals the sum over all documents.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Draft, LoweredPlane, Stale, Work};
use crate::lower::DataPlane;
use crate::lower::closure::Closed;
use crate::lower::document::document_key;
use crate::lower::filters::{share_filters, unshare_filters};
use crate::lower::lowering::Lowering;
use crate::lower::naming::WrittenDocument;
use crate::lower::shared::SharedKey;
use crate::lower::ssl::{ServedCertificate, ServedCertificates};
use crate::lower::table::TableKey;
use crate::model::Provenance;
use crate::pingsix::validate::encode;
use crate::pingsix::{Document, DocumentKey, LazyDocument, ResourceKind, listed_bytes};

/// The documents of a data plane with their size.
#[derive(Debug)]
pub(super) struct Documents {
    pub(super) data_plane: DataPlane,
    /// Length of the prefix of all keys.
    pub(super) prefix: usize,
}

impl Documents {
    /// No documents.
    pub(super) fn new(lowering: &Lowering<'_>) -> Self {
        let prefix = lowering.prefix();
        Self { data_plane: DataPlane::default(), prefix }
    }

    /// Inserts or replaces documents, and sets their origins. Of an empty set, this is faster than one by one.
    pub(super) fn put_all(
        &mut self,
        mut documents: Vec<(DocumentKey, LazyDocument)>,
        mut origins: Vec<(DocumentKey, Provenance)>,
    ) {
        let DataPlane { config, provenance, size, .. } = &mut self.data_plane;
        documents.retain(|(key, document)| {
            let before = config.get_lazy(key);
            let is_changed = before != Some(document);
            if is_changed {
                let was = before.map_or(0, |before| listed_bytes(key, before) + self.prefix);
                size.bytes = size.bytes - was + listed_bytes(key, document) + self.prefix;
            }
            is_changed
        });
        config.extend(documents);
        origins.retain(|(key, origin)| provenance.get(key) != Some(origin));
        provenance.extend(origins);
    }

    /// Removes a document, if it exists.
    pub(super) fn remove(&mut self, key: &DocumentKey) {
        let DataPlane { config, provenance, size, .. } = &mut self.data_plane;
        size.bytes -= config.get_lazy(key).map_or(0, |document| listed_bytes(key, document) + self.prefix);
        config.remove(key);
        provenance.remove(key);
    }

    /// Replaces the count of matcher entries of a Route.
    pub(super) const fn replace_matcher_entries(&mut self, was: usize, is: usize) {
        let size = &mut self.data_plane.size;
        size.matcher_entries = size.matcher_entries - was + is;
    }
}

impl LoweredPlane {
    /// Writes Routes that are new or list other patterns.
    pub(super) fn write(&mut self, work: &mut Work) -> Result<(), Stale> {
        self.draft_moved_filters(work)?;
        let mut drafts = std::mem::take(&mut work.drafts);
        let mut closed = std::mem::take(&mut work.closed);
        let keys: BTreeSet<Arc<TableKey>> = drafts.keys().chain(closed.keys()).cloned().collect();
        keys.iter().try_for_each(|key| self.write_route(key, drafts.remove(key), closed.remove(key), work))
    }

    /// Drafts the other Routes with filters whose service comes or goes.
    fn draft_moved_filters(&self, work: &mut Work) -> Result<(), Stale> {
        let config = &self.documents.data_plane.config;
        if config.is_empty() {
            // The first lowering writes a Route when it knows whether its filters have a service.
            return Ok(());
        }
        for shared in &work.used {
            let SharedKey::Filters(filters) = shared else { continue };
            let Some(service) = self.naming.key_of(shared) else { continue };
            if config.contains(&service) == self.naming.exists(shared) {
                continue;
            }
            for key in self.naming.routes_with(shared) {
                if work.drafts.contains_key(key) {
                    continue;
                }
                let document_key = document_key(key);
                let held = config.get_lazy(&document_key).map(|held| held.look().into_owned());
                let Some(Document::Route(mut route)) = held else { return Err(Stale) };
                unshare_filters(&mut route, filters);
                work.drafts.insert(key.clone(), (document_key, route));
            }
        }
        Ok(())
    }

    /// Writes a Route. Of a known document, only the patterns are decoded, unless they have to be replaced.
    pub(super) fn write_route(
        &mut self,
        key: &TableKey,
        draft: Option<Draft>,
        closed: Option<Closed>,
        work: &mut Work,
    ) -> Result<(), Stale> {
        let Some(written) = self.table.get_mut(key) else { return Ok(()) };
        let patterns = closed.map(|closed| {
            let closed = if written.has_spellings { closed.with_spellings() } else { closed };
            let (bytes, matcher_entries) = (closed.bytes(), closed.matcher_entries());
            self.room = self.room.saturating_sub(written.pattern_bytes).saturating_add(bytes);
            self.documents.replace_matcher_entries(written.matcher_entries, matcher_entries);
            (written.pattern_bytes, written.matcher_entries) = (bytes, matcher_entries);
            closed.into_patterns()
        });
        let (document_key, draft) = match draft {
            Some((document_key, draft)) => (document_key, Some(draft)),
            None => (document_key(key), None),
        };
        let held = self.documents.data_plane.config.get_lazy(&document_key);
        let before = || held.and_then(LazyDocument::route_patterns);
        let (mut document, patterns) = match (draft, patterns) {
            (Some(draft), patterns) => (draft, patterns.or_else(before).ok_or(Stale)?),
            // Hosts that cover each other are closed together. Most of their Routes list the same patterns as before.
            (None, Some(patterns)) if before().as_ref() == Some(&patterns) => return Ok(()),
            (None, Some(patterns)) => match held.map(|held| held.look().into_owned()) {
                Some(Document::Route(route)) => (route, patterns),
                Some(_) | None => return Err(Stale),
            },
            (None, None) => return Ok(()),
        };
        patterns.put_into(&mut document);
        let filters = written.uses.iter().find(|shared| matches!(shared, SharedKey::Filters(_)));
        if let Some(service) = filters.and_then(|filters| self.naming.id_of(filters)) {
            share_filters(&mut document, service.to_owned());
        }
        let document = encode(&document_key, &Document::Route(document));
        self.routes_written += 1;
        work.documents.push((document_key, document));
        Ok(())
    }

    /// Writes the shared documents that are used, and removes the others.
    pub(super) fn write_shared(&mut self, lowering: &Lowering<'_>, work: &mut Work) {
        for key in std::mem::take(&mut work.used) {
            if self.naming.exists(&key) {
                work.extend(self.naming.shared(&key, lowering));
            } else if let Some(document) = self.naming.key_of(&key) {
                self.documents.remove(&document);
                self.naming.release_unused(&key);
            }
        }
    }

    /// Writes changed certificates, and removes old ones. Without room for all certificates, the next
    /// [`change`](Self::change) lowers the data plane anew.
    pub(crate) fn change_certificates(&mut self, before: &ServedCertificates, now: &ServedCertificates) {
        self.is_recertified |= before.served != now.served;
        if self.admission.certificate_refusals.is_empty() {
            let written = self.written_certificates(before, now).into_iter();
            let parted = written.map(|(key, document, origin)| ((key.clone(), document), (key, origin)));
            let (documents, origins): (Vec<_>, Vec<_>) = parted.unzip();
            self.documents.put_all(documents, origins);
        }
    }

    /// The changed certificates that the budget admits. Removes old ones.
    pub(super) fn written_certificates(
        &mut self,
        before: &ServedCertificates,
        now: &ServedCertificates,
    ) -> Vec<WrittenDocument> {
        let is_shown = |served: &ServedCertificate| self.admission.shows(&served.name);
        let (before, now) = (before.documents(is_shown), now.documents(is_shown));
        for certificate in before.keys().filter(|certificate| !now.contains_key(*certificate)) {
            if let Some(id) = self.certificates.remove(certificate) {
                self.naming.ids.release(&id);
                self.documents.remove(&DocumentKey { kind: ResourceKind::Ssl, id });
            }
        }
        let changed =
            now.into_iter().filter(|(certificate, document)| before.get(certificate) != Some(document));
        changed
            .map(|(certificate, document)| {
                self.naming.certificate(&mut self.certificates, certificate, &document)
            })
            .collect()
    }
}
