//! The matches near the request that PingSIX does not choose.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::pingsix::{DocumentKey, Request, Route};
use pingsix_translate::{Hostname, Provenance};
use serde::Serialize;

use super::decision::Step;
use super::source::Source;
use super::{CATCH_ALL, Plane, listener, path_in_words};

/// The number of shown candidates.
const MAX_SHOWN_CANDIDATES: usize = 20;

/// A match near the request that PingSIX does not choose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RejectedMatch {
    /// The source of the match.
    pub source: Source,
    /// Why it does not apply.
    #[serde(flatten)]
    pub reason: MissReason,
}

/// Why a match does not apply, the nearest miss first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "reason", rename_all = "camelCase")]
pub(crate) enum MissReason {
    /// Another match has precedence.
    Outranked {
        /// The advantage of the other match, in words.
        by: String,
    },
    /// The match redirects requests without TLS, and this one has TLS.
    Plaintext {},
    /// The method differs.
    Method {
        /// The methods of the match.
        methods: Vec<String>,
    },
    /// The path differs.
    Path {
        /// The path of the match, in words.
        path: String,
    },
    /// Path and host match, but a listener with a more specific hostname serves the host.
    Listener {
        /// The hostname of the match's listener.
        hostname: String,
    },
    /// The path matches, and the host differs.
    Host {
        /// The host of the match.
        host: String,
    },
}

/// The matches of the data plane beside the steps, nearest first, and the number of omitted ones.
///
/// A match may be in the lists of several Routes; the nearest miss counts.
pub(super) fn rejected(
    plane: &Plane<'_>,
    request: &Request,
    taken: Option<&DocumentKey>,
    steps: &[Step],
) -> (Vec<RejectedMatch>, usize) {
    let tried: BTreeSet<&Source> = steps.iter().filter_map(|step| step.source.as_ref()).collect();
    let zone = listener::zone(plane, request);
    // A match for another host is shown only if its path is nearer than the path of the chosen Route.
    let winner = taken.and_then(|taken| plane.config.route(&taken.id));
    let shown_prefix = winner.map_or(0, |route| common_prefix(route, &request.path));
    let mut nearest: BTreeMap<Source, (MissReason, usize)> = BTreeMap::new();
    for (key, route) in plane.config.routes() {
        let Some(Provenance::Rules { listener, host, decisions, redirect, shadowed }) =
            plane.provenance.get(key)
        else {
            continue;
        };
        let elsewhere =
            zone.as_ref().is_some_and(|zone| zone.as_deref() != listener.as_ref().map(Hostname::as_str));
        let elsewhere = elsewhere.then(|| listener.as_ref().map_or("any host", Hostname::as_str));
        let candidate = Candidate { key, route, host: host.as_ref().map(Hostname::as_str), elsewhere };
        let Some(reason) = reason(plane, request, taken, &candidate) else { continue };
        let common = common_prefix(route, &request.path);
        if matches!(reason, MissReason::Host { .. }) && winner.is_some() && common <= shown_prefix {
            continue;
        }
        let decisive = decisions.iter().filter_map(|decision| decision.origin.as_ref());
        // A redirect of requests without TLS precedes all others of the Route, and does not apply to this request.
        let passed = matches!(reason, MissReason::Outranked { .. }) && request.tls;
        let of_redirect = if passed { MissReason::Plaintext {} } else { reason.clone() };
        let redirects = redirect.as_deref().into_iter().map(|origin| (origin, &of_redirect));
        let others = decisive.chain(shadowed).map(|origin| (origin, &reason));
        for (origin, reason) in redirects.chain(others) {
            let source = Source::of(origin);
            if tried.contains(&source) {
                continue;
            }
            let found = (reason.clone(), common);
            let held = nearest.entry(source).or_insert_with(|| found.clone());
            if (rank(&found.0), Reverse(found.1)) < (rank(&held.0), Reverse(held.1)) {
                *held = found;
            }
        }
    }
    let mut rejected: Vec<(Source, (MissReason, usize))> = nearest.into_iter().collect();
    rejected
        .sort_by_cached_key(|(source, (reason, common))| (rank(reason), Reverse(*common), source.clone()));
    let more = rejected.len().saturating_sub(MAX_SHOWN_CANDIDATES);
    rejected.truncate(MAX_SHOWN_CANDIDATES);
    (rejected.into_iter().map(|(source, (reason, _))| RejectedMatch { source, reason }).collect(), more)
}

const fn rank(reason: &MissReason) -> u8 {
    match reason {
        MissReason::Outranked { .. } => 0,
        MissReason::Plaintext {} => 1,
        MissReason::Method { .. } => 2,
        MissReason::Path { .. } => 3,
        MissReason::Listener { .. } => 4,
        MissReason::Host { .. } => 5,
    }
}

/// A Route with its host.
struct Candidate<'a> {
    key: &'a DocumentKey,
    route: &'a Route,
    host: Option<&'a str>,
    /// The hostname of its listener, if another listener serves the request's host.
    elsewhere: Option<&'a str>,
}

/// The reason for which a Route does not take the request; `None` if neither host nor path matches.
fn reason(
    plane: &Plane<'_>,
    request: &Request,
    taken: Option<&DocumentKey>,
    candidate: &Candidate<'_>,
) -> Option<MissReason> {
    let Candidate { key, route, host, elsewhere } = candidate;
    let of_host = serves_host(*host, request.routing_host().unwrap_or_default());
    let of_path = route.path_patterns().iter().any(|pattern| path_matches(pattern, &request.path));
    match (of_host, of_path, elsewhere) {
        (true, true, Some(hostname)) => Some(MissReason::Listener { hostname: (*hostname).to_owned() }),
        (true, true, None) if !route.allows(&request.method) => {
            Some(MissReason::Method { methods: route.methods.clone() })
        }
        (true, true, None) => {
            Some(MissReason::Outranked { by: advantage(plane, taken, key, (route, *host)) })
        }
        (true, false, None) => Some(MissReason::Path { path: path_in_words(route) }),
        (false, true, _) => Some(MissReason::Host { host: host.unwrap_or("any host").to_owned() }),
        (true, false, Some(_)) | (false, false, _) => None,
    }
}

/// The advantage of the chosen Route over another.
fn advantage(
    plane: &Plane<'_>,
    taken: Option<&DocumentKey>,
    key: &DocumentKey,
    (route, host): (&Route, Option<&str>),
) -> String {
    let Some((winner, winning)) = taken.and_then(|taken| Some((taken, plane.config.route(&taken.id)?)))
    else {
        return format!("{key} should have been taken");
    };
    match plane.provenance.get(winner) {
        Some(Provenance::Guard { listener }) => {
            format!("listener hostname {listener}, to which the route is not attached")
        }
        Some(Provenance::Rules { host: Some(other), .. }) if host != Some(other.as_str()) => {
            format!("the more specific hostname {other}")
        }
        Some(_) | None if path_in_words(winning) != path_in_words(route) => {
            format!("the more specific path, {}", path_in_words(winning))
        }
        Some(_) | None if taken == Some(key) => {
            "an equal match of an older route or an earlier rule".to_owned()
        }
        Some(_) | None if winning.methods.is_empty() == route.methods.is_empty() => {
            "a match of equal path and method, whose hostname is more specific or which is older".to_owned()
        }
        Some(_) | None => format!("the method {}", winning.methods.join(", ")),
    }
}

fn serves_host(pattern: Option<&str>, host: &str) -> bool {
    pattern.is_none_or(|pattern| Hostname::parse(pattern).is_ok_and(|pattern| pattern.matches(host)))
}

/// Whether a pattern of translation matches a path: an exact path, or a catch-all behind a slash.
fn path_matches(pattern: &str, path: &str) -> bool {
    match pattern.split_once(CATCH_ALL) {
        Some((prefix, _)) => {
            path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/') && rest.len() > 1)
        }
        None => pattern == path,
    }
}

/// The length of the common prefix of a Route's own pattern and the path.
fn common_prefix(route: &Route, path: &str) -> usize {
    let widest = route.path_patterns().last().map(String::as_str).unwrap_or_default();
    let literal = widest.split_once(CATCH_ALL).map_or(widest, |(prefix, _)| prefix);
    literal.bytes().zip(path.bytes()).take_while(|(left, right)| left == right).count()
}
