//! The order in which documents are written.

use pingsix_sink::OrderHint;
use pingsix_translate::pingsix::{Document, Route};

const UPSTREAM: u32 = 0;
const SERVICE: u32 = 1;
const FIRST_ROUTE: u32 = 2;
/// Behind every Route that is no leaf: priorities have 31 bits.
const FIRST_LEAF: u32 = FIRST_ROUTE + MAX_PRIORITY + 1;
const MAX_PRIORITY: u32 = (1 << 31) - 1;
const GLOBAL_RULE: u32 = u32::MAX - 1;
const SSL: u32 = u32::MAX;

/// A document's place in the order of writing.
///
/// Kinds come in dependency order, so that a reference never dangles. Among Routes the order matters because a table
/// is closed only when each broad Route lists the patterns of the narrower ones, and PingSIX's answers depend on luck
/// while it is not. So, when a narrow Route is added:
///
/// 1. the Routes that list patterns of others come first, in descending priority: one that has already been told of
///    the new pattern answers there what it answered before, and no wider one is asked in its place;
/// 2. the *leaves* follow, Routes that list no pattern but their own, of which the new one is usually one: by now its
///    pattern has an entry everywhere, and it takes nothing but its own requests.
///
/// This makes every prefix of a plan that only adds leaf paths answer each request as before or as after. A new Route
/// that lies above existing ones, a new host under a wildcard, and deletions (which come last, when the broad Routes
/// have dropped the pattern already) are exact when the Routes of a host change at once, as they do up to 3.5 MiB in the
/// embedded server and 128 operations in etcd: see [`pingsix_sink::units`].
pub fn order_hint(document: &Document) -> OrderHint {
    OrderHint(match document {
        Document::Upstream(_) => UPSTREAM,
        Document::Service(_) => SERVICE,
        Document::Route(route) => {
            let descending = MAX_PRIORITY - route.priority.min(MAX_PRIORITY);
            // Half the resolution is enough for leaves, whose priorities differ in more than the lowest bit unless
            // they share a path, and it keeps them below the kinds that follow.
            if is_leaf(route) { FIRST_LEAF + descending / 2 } else { FIRST_ROUTE + descending }
        }
        Document::GlobalRule(_) => GLOBAL_RULE,
        Document::Ssl(_) => SSL,
    })
}

/// Whether a Route lists no pattern but its own: an exact path, or the three spellings of a prefix.
fn is_leaf(route: &Route) -> bool {
    let mut stems = route.path_patterns().iter().map(|pattern| {
        let literal = pattern.split_once("{*").map_or(pattern.as_str(), |(literal, _)| literal);
        literal.strip_suffix('/').unwrap_or(literal)
    });
    let first = stems.next();
    route.host_patterns().len() <= 1 && stems.all(|stem| Some(stem) == first)
}
