//! The ids of documents, and the documents that Routes share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::filters::MIN_ROUTES_TO_SHARE;
use super::id::Ids;
use super::lowering::Lowering;
use super::plane::Plane;
use super::shared::{SharedKey, Uses};
use super::ssl::{SslDocument, SslKey, id_of_certificate};
use super::table::TableKey;
use crate::model::{ObjectKey, Provenance};
use crate::packed::pack;
use crate::pingsix::validate::{encode, summary};
use crate::pingsix::{Document, DocumentKey, LazyDocument, ResourceKind};

/// The ids of documents. Those of shared ones are given when first asked for, and counted with the Routes that use them.
#[derive(Debug, Default)]
pub(crate) struct Naming {
    shared: BTreeMap<SharedKey, SharedDocument>,
    /// The keys requested since these were last taken.
    requested: BTreeSet<SharedKey>,
    pub(super) ids: Ids,
}

#[derive(Debug)]
struct SharedDocument {
    id: Box<str>,
    /// The number of Routes that use it, or that would if it existed.
    routes: usize,
    /// Of a service of filters.
    filter_users: Option<Box<FilterUsers>>,
}

/// Routes with equal filters.
#[derive(Debug)]
struct FilterUsers {
    routes: BTreeSet<Arc<TableKey>>,
    /// Whether PingSIX accepts the filters. Refused filters stay on their Routes, so that the refusal names a rule.
    is_accepted: bool,
}

/// A document with its key, and where it comes from.
pub(super) type WrittenDocument = (DocumentKey, LazyDocument, Provenance);

impl Naming {
    /// Requests a shared document for a Route. Returns its id; `None` for a target that needs a responder when there is none.
    pub(super) fn request(&mut self, key: SharedKey, lowering: &Lowering<'_>) -> Option<String> {
        if !self.shared.contains_key(&key) {
            let id: Box<str> = key.make_id(lowering, &mut self.ids)?.into();
            let filter_users = matches!(key, SharedKey::Filters(_)).then(|| {
                let is_accepted = written(&key, &id, lowering)
                    .is_some_and(|(key, document, _)| !summary(&key, &document).has_violations);
                Box::new(FilterUsers { routes: BTreeSet::new(), is_accepted })
            });
            self.shared.insert(key.clone(), SharedDocument { id, routes: 0, filter_users });
        }
        let id = self.shared.get(&key).map(|document| document.id.to_string());
        self.requested.insert(key);
        id
    }

    /// Takes the keys requested since the last call.
    pub(super) fn take_requested(&mut self) -> Uses {
        std::mem::take(&mut self.requested).into_iter().collect()
    }

    /// A shared document; `None` if its id was never asked for.
    pub(super) fn shared(&self, key: &SharedKey, lowering: &Lowering<'_>) -> Option<WrittenDocument> {
        written(key, &self.shared.get(key)?.id, lowering)
    }

    /// The services that contain these policies.
    pub(super) fn services_of<'s>(
        &'s self,
        policies: &'s BTreeSet<Arc<ObjectKey>>,
    ) -> impl Iterator<Item = &'s SharedKey> {
        // Services come behind upstreams, and those of filters last.
        let services = self.shared.range(SharedKey::Status(0)..SharedKey::Filters(Arc::from("")));
        services.map(|(key, _)| key).filter(|key| key.has_any(policies))
    }

    /// Counts one Route more that uses a document. A document without an id does not exist, so no Route uses it.
    pub(super) fn add_use(&mut self, key: &SharedKey, route: &Arc<TableKey>) {
        if let Some(document) = self.shared.get_mut(key) {
            document.routes += 1;
            if let Some(users) = &mut document.filter_users {
                users.routes.insert(route.clone());
            }
        }
    }

    /// Counts one Route less.
    pub(super) fn drop_use(&mut self, key: &SharedKey, route: &TableKey) {
        if let Some(document) = self.shared.get_mut(key) {
            document.routes = document.routes.saturating_sub(1);
            if let Some(users) = &mut document.filter_users {
                users.routes.remove(route);
            }
        }
    }

    /// The number of Routes that use a document, or that would if it existed.
    pub(super) fn uses(&self, key: &SharedKey) -> usize {
        self.shared.get(key).map_or(0, |document| document.routes)
    }

    /// Whether a document exists: a Route uses it, or enough Routes have its filters.
    pub(super) fn exists(&self, key: &SharedKey) -> bool {
        self.shared.get(key).is_some_and(|document| match &document.filter_users {
            None => document.routes > 0,
            Some(users) => users.is_accepted && document.routes >= MIN_ROUTES_TO_SHARE,
        })
    }

    /// The id of an existing document.
    pub(super) fn id_of(&self, key: &SharedKey) -> Option<&str> {
        self.shared.get(key).filter(|_| self.exists(key)).map(|document| &*document.id)
    }

    /// The Routes with these filters.
    pub(super) fn routes_with(&self, key: &SharedKey) -> impl Iterator<Item = &Arc<TableKey>> {
        self.shared
            .get(key)
            .and_then(|document| document.filter_users.as_ref())
            .into_iter()
            .flat_map(|users| &users.routes)
    }

    /// The key of a shared document, if it has an id.
    pub(super) fn key_of(&self, key: &SharedKey) -> Option<DocumentKey> {
        let id = self.shared.get(key)?.id.to_string();
        Some(DocumentKey { kind: key.kind(), id })
    }

    /// Releases the id of a document that no Route uses any more.
    pub(super) fn release_unused(&mut self, key: &SharedKey) {
        if self.uses(key) == 0
            && let Some(document) = self.shared.remove(key)
        {
            self.ids.release(&document.id);
        }
    }

    /// Releases spare memory.
    pub(super) fn pack(&mut self) {
        pack(&mut self.shared);
        self.ids.pack();
    }

    /// The document of a certificate. It keeps its id among those of the others.
    pub(super) fn certificate(
        &mut self,
        ids: &mut BTreeMap<SslKey, String>,
        certificate: SslKey,
        document: &SslDocument<'_>,
    ) -> WrittenDocument {
        let id = ids.entry(certificate);
        let id = id.or_insert_with_key(|certificate| id_of_certificate(certificate, &mut self.ids)).clone();
        let key = DocumentKey { kind: ResourceKind::Ssl, id };
        let written = encode(&key, &Document::Ssl(document.ssl()));
        (key, written, document.provenance())
    }
}

/// A shared document.
fn written(key: &SharedKey, id: &str, lowering: &Lowering<'_>) -> Option<WrittenDocument> {
    let (document, origin) = key.write(lowering)?;
    let key = DocumentKey { kind: key.kind(), id: id.to_owned() };
    let document = encode(&key, &document);
    Some((key, document, origin))
}

/// The id of the global rule for telemetry.
const TELEMETRY_ID: &str = "telemetry";

/// The global rule for telemetry.
pub(super) fn telemetry(plane: &Plane) -> Option<WrittenDocument> {
    let telemetry = plane.settings.telemetry.as_ref()?;
    let key = DocumentKey { kind: ResourceKind::GlobalRule, id: TELEMETRY_ID.to_owned() };
    let document = encode(&key, &Document::GlobalRule(telemetry.rule.clone()));
    Some((key, document, Provenance::Telemetry { proxies: telemetry.proxies.clone() }))
}
