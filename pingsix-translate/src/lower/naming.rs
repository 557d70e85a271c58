//! The names of documents, and the documents that Routes share.

use std::collections::BTreeMap;

use super::id::Ids;
use super::lowering::Lowering;
use super::named::SharedDocuments;
use super::plane::Plane;
use super::service::{ServiceKey, write_service};
use super::ssl::{SslDocument, SslKey, id_of_certificate};
use super::upstream::{UpstreamKey, Upstreams};
use crate::model::Provenance;
use crate::pingsix::validate::encode;
use crate::pingsix::{Document, DocumentKey, LazyDocument, ResourceKind};

/// The names of documents.
#[derive(Debug)]
pub(crate) struct Naming {
    pub(super) upstreams: Upstreams,
    pub(super) services: SharedDocuments<ServiceKey>,
    pub(super) ids: Ids,
}

impl Default for Naming {
    fn default() -> Self {
        Self {
            upstreams: Upstreams::default(),
            services: SharedDocuments::new(ResourceKind::Service),
            ids: Ids::default(),
        }
    }
}

/// A document with its key, and where it comes from.
pub(super) type WrittenDocument = (DocumentKey, LazyDocument, Provenance);

impl Naming {
    /// The document of an upstream; `None` if its id was never asked for.
    pub(super) fn upstream(
        &self,
        lowering: &Lowering<'_>,
        upstream: &UpstreamKey,
    ) -> Option<WrittenDocument> {
        let key = self.upstreams.named.document_key(upstream)?;
        let (document, origin) = upstream.write(lowering.options.responder, lowering.backends)?;
        let document = encode(&key, &Document::Upstream(document));
        Some((key, document, origin))
    }

    /// The document of a service; `None` if its id was never asked for.
    pub(super) fn service(&self, lowering: &Lowering<'_>, service: &ServiceKey) -> Option<WrittenDocument> {
        let key = self.services.document_key(service)?;
        let (document, origin) = write_service(service, lowering.policies);
        let document = encode(&key, &Document::Service(document));
        Some((key, document, origin))
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
