//! The order in which documents are written.

use pingsix_sink::OrderHint;
use pingsix_translate::pingsix::{Document, ResourceKind};

/// Room for the Routes of one breadth each; a table with more matcher entries per Route is over every budget.
const WITHIN_KIND: u32 = 1 << 28;

/// A document's place in the order of writing.
///
/// Kinds come in dependency order, so that a reference never dangles. Among Routes the broad ones come first, breadth
/// being the number of matcher entries (hosts times paths). A table is closed when each broad Route lists the patterns
/// of the narrower ones, and PingSIX's answers depend on luck while it is not. A broad Route that already lists a
/// pattern answers there as it did before, so the narrow Route that owns the pattern can follow; the other way round
/// the narrow Route could swallow requests of the broad one.
///
/// This makes every prefix of an *addition* answer as before or as after, within one host. Deletions come after all
/// writes and in the reverse order, when the broad Routes have dropped the pattern already; and a host added under a
/// wildcard changes every Route of the wildcard at once. Such changes are exact only if they arrive in one message,
/// which they do up to 3.5 MiB, or 128 operations in etcd.
pub fn order_hint(document: &Document) -> OrderHint {
    let (kind, within) = match document {
        Document::Upstream(_) => (ResourceKind::Upstream, 0),
        Document::Service(_) => (ResourceKind::Service, 0),
        Document::Route(route) => {
            let entries = route.host_patterns().len().max(1).saturating_mul(route.path_patterns().len());
            let breadth = u32::try_from(entries).unwrap_or(u32::MAX).min(WITHIN_KIND - 1);
            (ResourceKind::Route, WITHIN_KIND - 1 - breadth)
        }
        Document::GlobalRule(_) => (ResourceKind::GlobalRule, 0),
        Document::Ssl(_) => (ResourceKind::Ssl, 0),
    };
    OrderHint(rank(kind) * WITHIN_KIND + within)
}

const fn rank(kind: ResourceKind) -> u32 {
    match kind {
        ResourceKind::Upstream => 0,
        ResourceKind::Service => 1,
        ResourceKind::Route => 2,
        ResourceKind::GlobalRule => 3,
        ResourceKind::Ssl => 4,
    }
}
