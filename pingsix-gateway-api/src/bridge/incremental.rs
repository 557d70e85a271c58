//! The incremental bridge of one data plane.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use pingsix_sink::{Desired, Document, Key};
use pingsix_translate::pingsix::validate::{may_conflict, validate_document};
use pingsix_translate::pingsix::{self, Config, DocumentKey, LazyDocument, ResourceKind};
use pingsix_translate::{Change, DataPlane, DataPlaneKey, Options, Provenance, SharedMap, Size};

use super::quarantine::is_reportable;
use super::{BridgeError, Bridged, acceptance, bridge_and_read, owner_of, sink_document};

/// Converts one data plane repeatedly, and checks changed documents alone.
///
/// Each result equals the result of [`bridge`](super::bridge()). The conversion is incremental while the data plane has
/// no faults and no remarks. Changes of certificates, global rules and services, and patterns that could conflict,
/// cause a full conversion.
#[derive(Debug, Default)]
pub struct Bridge {
    last: Option<LastConversion>,
}

/// The last conversion, without faults and remarks.
#[derive(Debug)]
struct LastConversion {
    key: DataPlaneKey,
    options: Options,
    config: Config,
    provenance: SharedMap<DocumentKey, Provenance>,
    desired: Desired,
    /// The number of references to each upstream in documents.
    references: BTreeMap<Box<str>, usize>,
}

impl Bridge {
    /// A bridge without a former conversion.
    pub const fn new() -> Self {
        Self { last: None }
    }

    /// As [`bridge`](super::bridge()).
    ///
    /// # Errors
    ///
    /// As [`bridge`](super::bridge()).
    pub fn bridge(
        &mut self,
        key: &DataPlaneKey,
        plane: &DataPlane,
        options: &Options,
    ) -> Result<Bridged, BridgeError> {
        let last = self.last.take().filter(|last| last.key == *key && last.options == *options);
        if let Some(last) = last.and_then(|last| last.change(plane)) {
            let desired = last.desired.clone();
            self.last = Some(last);
            let config = plane.config.clone();
            return Ok(Bridged { desired, config, quarantined: Vec::new(), problems: Vec::new() });
        }
        let (bridged, read) = bridge_and_read(key, plane, options)?;
        let has_no_remarks = bridged.quarantined.is_empty() && bridged.problems.is_empty();
        let is_plain =
            read.services().next().is_none() && !read.routes().any(|(_, route)| may_conflict(route));
        if has_no_remarks && is_plain {
            let mut references = BTreeMap::new();
            for document in bridged.desired.documents() {
                count(&mut references, &document.value, |count| *count += 1);
            }
            self.last = Some(LastConversion {
                key: key.clone(),
                options: options.clone(),
                config: bridged.config.clone(),
                provenance: plane.provenance.clone(),
                desired: bridged.desired.clone(),
                // A collected map has full nodes.
                references: references.into_iter().collect(),
            });
        }
        Ok(bridged)
    }
}

impl LastConversion {
    /// The conversion of a changed data plane; `None` if a full conversion is necessary.
    fn change(mut self, plane: &DataPlane) -> Option<Self> {
        let acceptance = acceptance(&self.key, &self.options);
        let Size { bytes, matcher_entries } = plane.size;
        if bytes > acceptance.bytes_budget || matcher_entries > acceptance.entries_budget {
            return None;
        }
        let changes = plane.config.documents().changes(self.config.documents());
        let owner = Arc::new(self.key.owner());
        let mut delivery: BTreeMap<Key, Option<Document>> = BTreeMap::new();
        let mut gone: BTreeSet<&str> = BTreeSet::new();
        // The decoded documents are dropped after the inspection.
        let mut inspected = plane.config.clone();
        for change in changes {
            let (key, document) = match change {
                Change::Added(key, _) | Change::Replaced(key, ..) => {
                    inspected.detach(key);
                    (key, inspected.get_lazy(key))
                }
                Change::Removed(key, _) => (key, None),
            };
            match (key.kind, document) {
                (ResourceKind::Service | ResourceKind::GlobalRule | ResourceKind::Ssl, _) => return None,
                (ResourceKind::Upstream, None) => {
                    // The search for references compares bytes, so it would miss an escaped id.
                    if !key.id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
                        return None;
                    }
                    gone.insert(&key.id);
                }
                (ResourceKind::Upstream | ResourceKind::Route, _) => {}
            }
            if let Some(pingsix::Document::Route(route)) = document.map(LazyDocument::document)
                && (route.service_id.is_some() || may_conflict(route))
            {
                return None;
            }
            if document.is_some() {
                let violations = validate_document(&inspected, key, &acceptance);
                if violations.iter().any(is_reportable) {
                    return None;
                }
            }
            let sink_key = Key::new(key.to_string()).ok()?;
            if let Some(before) = self.desired.documents().get(&sink_key) {
                count(&mut self.references, &before.value, |count| *count = count.saturating_sub(1));
            }
            let document = match document {
                Some(document) => {
                    let owner = owner_of(&plane.provenance, key, &owner);
                    let document = sink_document(key, document, owner).ok()?;
                    count(&mut self.references, &document.value, |count| *count += 1);
                    Some(document)
                }
                None => None,
            };
            delivery.insert(sink_key, document);
        }
        if gone.iter().any(|id| self.references.contains_key(*id)) {
            return None;
        }
        for change in plane.provenance.changes(&self.provenance) {
            let (Change::Added(key, _) | Change::Replaced(key, ..) | Change::Removed(key, _)) = change;
            let sink_key = Key::new(key.to_string()).ok()?;
            if !delivery.contains_key(&sink_key)
                && let Some(document) = self.desired.documents().get(&sink_key)
            {
                let owner = owner_of(&plane.provenance, key, &owner);
                delivery.insert(sink_key, Some(Document { owner, ..document.clone() }));
            }
        }
        self.desired =
            Desired::new(self.desired.scope().clone(), self.desired.documents().with_changes(delivery));
        self.config = plane.config.clone();
        self.provenance = plane.provenance.clone();
        Some(self)
    }
}

/// Changes the counts of the upstreams that a document refers to. The search in its canonical bytes is exact, because
/// quotes within texts are escaped.
fn count(references: &mut BTreeMap<Box<str>, usize>, value: &Bytes, by: impl Fn(&mut usize)) {
    const FIELD: &str = "\"upstream_id\":\"";
    let text = String::from_utf8_lossy(value);
    for rest in text.split(FIELD).skip(1) {
        let id = rest.split_once('"').map_or(rest, |(id, _)| id);
        let count = references.entry(id.into()).or_default();
        by(count);
        if *count == 0 {
            references.remove(id);
        }
    }
}
