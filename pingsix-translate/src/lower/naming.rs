//! The ids of documents, and the documents that Routes share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::id::Ids;
use super::lowering::Lowering;
use super::plane::Plane;
use super::shared::{SharedKey, Uses};
use super::ssl::{SslDocument, SslKey, id_of_certificate};
use crate::model::{ObjectKey, Provenance};
use crate::packed::pack;
use crate::pingsix::validate::encode;
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
    /// The number of Routes that use it.
    routes: usize,
}

/// A document with its key, and where it comes from.
pub(super) type WrittenDocument = (DocumentKey, LazyDocument, Provenance);

impl Naming {
    /// Requests a shared document for a Route. Returns its id; `None` for a target that needs a responder when there is none.
    pub(super) fn request(&mut self, key: SharedKey, lowering: &Lowering<'_>) -> Option<String> {
        if !self.shared.contains_key(&key) {
            let id = key.make_id(lowering, &mut self.ids)?.into();
            self.shared.insert(key.clone(), SharedDocument { id, routes: 0 });
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
        let id = self.shared.get(key)?.id.to_string();
        let (document, origin) = key.write(lowering)?;
        let key = DocumentKey { kind: key.kind(), id };
        let document = encode(&key, &document);
        Some((key, document, origin))
    }

    /// The services that contain these policies.
    pub(super) fn services_of<'s>(
        &'s self,
        policies: &'s BTreeSet<Arc<ObjectKey>>,
    ) -> impl Iterator<Item = &'s SharedKey> {
        // Services come behind upstreams.
        let services = self.shared.range(SharedKey::Status(0)..);
        services.map(|(key, _)| key).filter(|key| key.has_any(policies))
    }

    /// Counts one Route more that uses a document. A document without an id does not exist, so no Route uses it.
    pub(super) fn add_use(&mut self, key: &SharedKey) {
        if let Some(document) = self.shared.get_mut(key) {
            document.routes += 1;
        }
    }

    /// Counts one Route less.
    pub(super) fn drop_use(&mut self, key: &SharedKey) {
        if let Some(document) = self.shared.get_mut(key) {
            document.routes = document.routes.saturating_sub(1);
        }
    }

    /// Whether a Route uses a document.
    pub(super) fn is_used(&self, key: &SharedKey) -> bool {
        self.shared.get(key).is_some_and(|document| document.routes > 0)
    }

    /// Releases the id of a document that is not used any more. Returns the key of the document, if it had an id.
    pub(super) fn release(&mut self, key: &SharedKey) -> Option<DocumentKey> {
        let id = self.shared.remove(key)?.id;
        self.ids.release(&id);
        Some(DocumentKey { kind: key.kind(), id: id.into() })
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

/// The id of the global rule for telemetry.
const TELEMETRY_ID: &str = "telemetry";

/// The global rule for telemetry.
pub(super) fn telemetry(plane: &Plane) -> Option<WrittenDocument> {
    let telemetry = plane.settings.telemetry.as_ref()?;
    let key = DocumentKey { kind: ResourceKind::GlobalRule, id: TELEMETRY_ID.to_owned() };
    let document = encode(&key, &Document::GlobalRule(telemetry.rule.clone()));
    Some((key, document, Provenance::Telemetry { proxies: telemetry.proxies.clone() }))
}
