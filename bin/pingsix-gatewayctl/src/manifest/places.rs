//! The places of findings: the lines of their fields.

use std::fmt::Write as _;
use std::sync::Arc;

use pingsix_gateway_api::pipeline;
use pingsix_translate::manifest::{Document, documents};
use serde_json::Value;

use super::references::Advice;
use super::{Manifests, references};
use crate::finding::{DocumentLocation, Finding};

/// The place of an object. Its `Debug` text would have the data of Secrets, so there is none.
#[derive(Clone)]
pub(crate) struct Place {
    pub(super) location: DocumentLocation,
    /// The whole file.
    pub(super) text: Arc<str>,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.location.fmt(f)
    }
}

impl Place {
    /// Whether the object is in a file, and not in a cluster.
    pub(super) const fn is_in_file(&self) -> bool {
        self.location.document > 0
    }

    /// The place of an item, where the object is a list.
    pub(super) fn item(&self, index: usize) -> Self {
        let mut item = self.clone();
        let dot = if item.location.item.is_empty() { "" } else { "." };
        // Writing to a String cannot fail.
        let _ = write!(item.location.item, "{dot}items[{index}]");
        item
    }
}

/// Gives findings about fields of a document, or about items of its list, the lines of these.
pub(super) fn find_lines(findings: &mut [Finding], document: &Document<'_>) {
    let path = |finding: &Finding| {
        let item = finding.place.as_ref().map(|place| place.item.as_str()).unwrap_or_default();
        let dot = if item.is_empty() || finding.field.is_empty() { "" } else { "." };
        format!("{item}{dot}{}", finding.field)
    };
    if findings.iter().all(|finding| path(finding).is_empty()) {
        return;
    }
    let Some(lines) = document.lines() else { return };
    for finding in findings {
        let path = path(finding);
        if let Some(place) = finding.place.as_mut().filter(|_| !path.is_empty()) {
            place.line = lines.of(&path);
        }
    }
}

impl Manifests {
    /// The findings of the pipeline with their places, and with the names that their authors may have meant. Each
    /// document with findings is read once more.
    pub(crate) fn place(&self, findings: &[pipeline::Finding]) -> Vec<Finding> {
        let mut placed: Vec<(Option<&Place>, Finding)> = findings
            .iter()
            .map(|finding| {
                let place = self.place_of(&finding.object);
                (place, Finding::of(finding, place.map(|place| &place.location)))
            })
            .collect();
        let document = |place: Option<&Place>| {
            place.map(|place| (Arc::as_ptr(&place.text).addr(), place.location.document))
        };
        placed.sort_by_key(|(place, _)| document(*place));
        let mut all = Vec::new();
        let mut advice = Advice::of(&self.objects);
        for of_file in placed.chunk_by(|(one, _), (other, _)| {
            document(*one).map(|(text, _)| text) == document(*other).map(|(text, _)| text)
        }) {
            let text = of_file[0].0.map(|place| place.text.clone());
            let documents = text.as_deref().map(documents).unwrap_or_default();
            for of_document in of_file.chunk_by(|(one, _), (other, _)| document(*one) == document(*other)) {
                let mut findings: Vec<Finding> =
                    of_document.iter().map(|(_, finding)| finding.clone()).collect();
                let number = of_document[0].0.map_or(0, |place| place.location.document);
                if let Some(document) = number.checked_sub(1).and_then(|index| documents.get(index)) {
                    find_lines(&mut findings, document);
                    suggest_names(&mut findings, document, &mut advice);
                }
                all.extend(findings);
            }
        }
        all
    }
}

/// Adds the names that authors may have meant to findings about references.
fn suggest_names(findings: &mut [Finding], document: &Document<'_>, advice: &mut Advice<'_>) {
    if !findings.iter().any(|finding| references::may_name(&finding.field)) {
        return;
    }
    let value = document.decode().unwrap_or(Value::Null);
    for finding in findings {
        let item = finding.place.as_ref().map(|place| place.item.as_str()).unwrap_or_default();
        let object = references::at(&value, item);
        if let Some(advice) = object.and_then(|object| advice.about(object, &finding.field)) {
            finding.message.push(' ');
            finding.message.push_str(&advice);
        }
    }
}
