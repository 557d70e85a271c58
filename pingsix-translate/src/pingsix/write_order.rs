//! The order in which documents are written.

use super::{Document, Route};

const UPSTREAM: u32 = 0;
const SERVICE: u32 = 1;
const FIRST_ROUTE: u32 = 2;
/// The first position behind all Routes that are no leaves; priorities have 31 bits.
const FIRST_LEAF: u32 = FIRST_ROUTE + MAX_PRIORITY + 1;
const MAX_PRIORITY: u32 = (1 << 31) - 1;
const GLOBAL_RULE: u32 = u32::MAX - 1;
const SSL: u32 = u32::MAX;

impl Document {
    /// The position of the document in the order of writes.
    ///
    /// Kinds are in dependency order, so references never dangle. Routes need an order because a table is closed only if
    /// each broad Route lists the patterns of the narrower ones; otherwise PingSIX's answers depend on the order of
    /// insertion. A plan with a new narrow Route writes:
    ///
    /// 1. The Routes that list patterns of other Routes, in descending priority. A Route that lists the new pattern still
    ///    answers its requests as before, so no wider Route takes them.
    /// 2. The *leaves*, which list their own pattern alone. The new Route usually is a leaf. By now all broad Routes list
    ///    its pattern, so it takes its own requests alone.
    ///
    /// So after each step of a plan that only adds leaf paths, every request is answered as before the plan or as after it.
    /// Other changes are exact if all Routes of a host change at once: a new Route above existing ones, a new host under a
    /// wildcard, and deletions, which come last.
    pub fn write_order(&self) -> u32 {
        match self {
            Self::Upstream(_) => UPSTREAM,
            Self::Service(_) => SERVICE,
            Self::Route(route) => {
                let descending = MAX_PRIORITY - route.priority.min(MAX_PRIORITY);
                // Priorities of leaves with different paths differ by more than the lowest bit, so half of the resolution
                // suffices and keeps leaves below the later kinds.
                if is_leaf(route) { FIRST_LEAF + descending / 2 } else { FIRST_ROUTE + descending }
            }
            Self::GlobalRule(_) => GLOBAL_RULE,
            Self::Ssl(_) => SSL,
        }
    }
}

/// Whether a Route lists its own pattern alone: an exact path, or the three spellings of a prefix.
fn is_leaf(route: &Route) -> bool {
    let mut stems = route.path_patterns().iter().map(|pattern| {
        let literal = pattern.split_once("{*").map_or(pattern.as_str(), |(literal, _)| literal);
        literal.strip_suffix('/').unwrap_or(literal)
    });
    let first = stems.next();
    route.host_patterns().len() <= 1 && stems.all(|stem| Some(stem) == first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pingsix::{GlobalRule, Service, Ssl, Upstream};

    #[test]
    fn documents_follow_their_referents_and_leaves_follow_other_routes() {
        let route = |priority, uris: &[&str]| {
            let uris = uris.iter().map(|uri| (*uri).to_owned()).collect();
            Document::Route(Route { uris, priority, ..Route::default() })
        };
        let documents = [
            Upstream::default().into(),
            Service::default().into(),
            route(9, &["/b/c", "/b", "/b/", "/b/{*p}"]),
            route(7, &["/a", "/b", "/{*p}"]),
            route(99, &["/b/c"]),
            route(8, &["/d", "/d/", "/d/{*p}"]),
            route(0, &["/", "/{*p}"]),
            GlobalRule::default().into(),
            Ssl::default().into(),
        ];
        let ordered = documents.map(|document: Document| document.write_order());
        assert!(ordered.is_sorted_by(|left, right| left < right), "{ordered:?}");
    }
}
