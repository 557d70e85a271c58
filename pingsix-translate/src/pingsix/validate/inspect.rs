//! The inspection of one document by itself.

use std::borrow::Cow;
use std::collections::BTreeSet;

use thin_vec::ThinVec;

use super::context::Context;
use super::{Rule, ValidateOptions, budget, document, pattern, ssl};
use crate::pingsix::{Config, Document, DocumentKey, LazyDocument, Summary};

/// Encodes a document, with its summary.
pub(crate) fn encode(key: &DocumentKey, document: &Document) -> LazyDocument {
    LazyDocument::written(document, summarize(key, document))
}

/// The summary of a document. A document without one is inspected now.
pub(crate) fn summary<'d>(key: &DocumentKey, document: &'d LazyDocument) -> Cow<'d, Summary> {
    document.summary().map_or_else(|| Cow::Owned(summarize(key, &document.look())), Cow::Borrowed)
}

/// The position in the order of writes; see [`Document::write_order`]. A document without a summary is inspected now.
pub fn write_order(key: &DocumentKey, document: &LazyDocument) -> u32 {
    summary(key, document).write_order
}

/// The documents of a configuration that refer to a document. Documents that lowering has written are not decoded.
pub fn referring<'c>(config: &'c Config, to: &'c DocumentKey) -> impl Iterator<Item = &'c DocumentKey> {
    let refers =
        move |(key, document): &(&DocumentKey, &LazyDocument)| summary(key, document).references.contains(to);
    config.documents().iter().filter(refers).map(|(key, _)| key)
}

fn summarize(key: &DocumentKey, document: &Document) -> Summary {
    // References are resolved later, in the configuration.
    let (config, options) = (Config::new(), ValidateOptions::default());
    let context = Context { config: &config, undecodable: &BTreeSet::new(), options: &options, key };
    let mut violations = Vec::new();
    document::check(document, &context, &mut violations);
    let (mut server_names, mut matcher_entries, mut is_entangled) = (ThinVec::new(), 0, false);
    match document {
        Document::Route(route) => {
            matcher_entries = budget::own_entries(route);
            is_entangled = route.path_patterns().iter().any(|pattern| pattern::is_peculiar(pattern));
        }
        Document::Service(service) => is_entangled = !service.hosts.is_empty(),
        Document::Ssl(certificate) => {
            server_names = ssl::server_names(certificate).collect();
            is_entangled = certificate.snis.iter().any(|name| name.contains(['{', '}']));
        }
        Document::Upstream(_) | Document::GlobalRule(_) => {}
    }
    // A summary is stored as long as its document, and the capacity of a new vector is 4.
    let mut references = document.references();
    references.shrink_to_fit();
    server_names.shrink_to_fit();
    Summary {
        references,
        server_names,
        write_order: document.write_order(),
        matcher_entries,
        has_violations: violations
            .iter()
            .any(|violation| !violation.is_intended() && violation.rule != Rule::Reference),
        is_entangled,
    }
}
