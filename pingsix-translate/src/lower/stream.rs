//! Lowering of TCP, UDP and TLS routes to stream documents.
//!
//! One document per port, or per port and server name: [`matches`] finds the contenders of each match, the first of
//! which gets it, and the others are notified; [`document`] writes the winners. So no two documents match one
//! connection, and the result is independent of order. [`front`] finds the room for HTTPS listeners whose connections go
//! on to PingSIX.

mod admit;
mod document;
mod front;
mod matches;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use self::admit::{AdmittedByShares, admit, refuse_beyond};
use self::document::{Writer, origin};
use self::front::AdmittedFronts;
use self::matches::{Contender, MatchOutcome, StreamMatch, stream_listeners, stream_matches};
use super::budget::oldest_first;
use super::plane::RuleRef;
use super::rows::RouteInput;
use crate::attach::Listener;
use crate::backends::Backends;
use crate::lower::{Size, StreamPlane};
use crate::model::{
    DataPlaneKey, FieldPath, Kind, ObjectName, Options, Origin, Problem, Reason, Refusal, Severity,
};
use crate::stream::StreamConfig;

/// The stream documents of a Gateway, and the refused parts.
#[derive(Debug)]
pub(crate) struct LoweredStreams {
    pub(crate) key: DataPlaneKey,
    pub(crate) plane: StreamPlane,
    /// The listeners served there.
    pub(crate) listeners: Vec<usize>,
    /// Rules there is no room for.
    pub(crate) refused_rules: Vec<(RuleRef, Refusal)>,
    /// Routes without any match, because others precede them, and fronted listeners that there is no room for.
    pub(crate) problems: Vec<Problem>,
}

/// The inputs of stream documents.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamListeners<'a> {
    pub(crate) gateway: &'a ObjectName,
    pub(crate) listeners: &'a [Listener],
    /// The percentage of the budget that one namespace may use; 100 is no bound.
    pub(crate) namespace_share: u8,
}

/// Lowers everything attached to the listeners of a Gateway for TCP, UDP and TLS.
///
/// When the budget or the share of a namespace does not suffice, rules are admitted oldest first and the others are
/// refused.
pub(crate) fn lower_streams(
    inputs: &StreamListeners<'_>,
    routes: &[Arc<RouteInput>],
    backends: &Backends,
    options: &Options,
) -> LoweredStreams {
    let &StreamListeners { gateway, listeners, namespace_share } = inputs;
    let key = DataPlaneKey::Stream { gateway: gateway.clone() };
    let prefix = key.prefix(&options.root);
    let stream_matches = stream_matches(listeners, routes);
    let no_fronts = BTreeSet::new();
    let without_fronts = Lowering {
        listeners,
        routes,
        backends,
        prefix: &prefix,
        stream_matches: &stream_matches,
        fronts: &no_fronts,
        is_guarded: true,
    };
    let AdmittedFronts { fronts, problems: of_fronts } =
        without_fronts.admit_fronts(namespace_share, &key, options.budget);
    let lowering = Lowering { fronts: &fronts, ..without_fronts };
    let within = |admitted: Option<&[RuleRef]>| {
        let written = lowering.lower(admitted);
        written.plane.size.fits(options.budget).then_some(written)
    };
    let oldest_first = || {
        let contenders = stream_matches.values().flat_map(|wanted| &wanted.contenders);
        oldest_first(routes, &contenders.map(|contender| contender.route).collect())
    };
    let shared = (namespace_share < 100)
        .then(|| lowering.within_shares(&oldest_first(), namespace_share, &key, options.budget));
    let AdmittedByShares { admitted, refused: mut refused_rules, warnings } = shared.unwrap_or_default();
    let StreamDocuments { plane, mut problems } = within(admitted.as_deref()).unwrap_or_else(|| {
        let oldest_first = admitted.unwrap_or_else(oldest_first);
        let (fitting, written) = admit(&oldest_first, |admitted| within(Some(admitted)));
        refused_rules.extend(refuse_beyond(&oldest_first, fitting, routes, &key, (options.budget, None)));
        // Without rules only the guards are left; a budget too small even for them is exceeded.
        written.unwrap_or_else(|| lowering.lower(Some(&[])))
    });
    problems.extend(warnings);
    problems.extend(of_fronts);
    let listeners = stream_listeners(listeners).map(|(index, _)| index).collect();
    LoweredStreams { key, plane, listeners, refused_rules, problems }
}

/// The inputs of stream documents.
#[derive(Clone, Copy)]
struct Lowering<'a> {
    listeners: &'a [Listener],
    routes: &'a [Arc<RouteInput>],
    backends: &'a Backends,
    prefix: &'a str,
    stream_matches: &'a BTreeMap<StreamMatch, MatchOutcome>,
    /// The fronted listeners that there is room for.
    fronts: &'a BTreeSet<usize>,
    /// Whether guards are written, and the documents of fronted listeners.
    is_guarded: bool,
}

/// The documents of the admitted routes.
struct StreamDocuments {
    plane: StreamPlane,
    problems: Vec<Problem>,
}

impl Lowering<'_> {
    /// Gives each place to the first that wants it, of those admitted or of all.
    fn lower(&self, admitted: Option<&[RuleRef]>) -> StreamDocuments {
        let admitted: Option<BTreeSet<usize>> =
            admitted.map(|rules| rules.iter().map(|rule| rule.route).collect());
        let is_admitted =
            |one: &&Contender| admitted.as_ref().is_none_or(|admitted| admitted.contains(&one.route));
        let mut writer = Writer::new(self.backends);
        let mut losses = BTreeMap::new();
        for (stream_match, wanted) in self.stream_matches {
            let listener = &self.listeners[stream_match.listener];
            let mut contenders = wanted.contenders.iter().filter(is_admitted);
            let Some(winner) = contenders.next() else {
                if self.fronts.contains(&stream_match.listener) && self.is_guarded {
                    writer.front(stream_match, listener);
                } else if wanted.is_guarded && self.is_guarded {
                    writer.guard(stream_match, listener);
                }
                continue;
            };
            let others: Vec<&Contender> = contenders.filter(|other| other.route != winner.route).collect();
            let shadowed: BTreeSet<Origin> =
                others.iter().map(|other| origin(&self.routes[other.route])).collect();
            writer.route(stream_match, listener, &self.routes[winner.route], shadowed);
            for other in others {
                let lost: &mut BTreeSet<&StreamMatch> =
                    losses.entry((other.route, stream_match.listener, winner.route)).or_default();
                lost.insert(stream_match);
            }
        }
        let problems = losses.into_iter().map(|((loser, listener, winner), stream_matches)| {
            loss(&self.routes[loser], &self.listeners[listener], &self.routes[winner], &stream_matches)
        });
        let problems = problems.collect();
        let mut plane = writer.finish();
        plane.size = self.size_of(&plane.config);
        StreamDocuments { plane, problems }
    }

    fn size_of(&self, config: &StreamConfig) -> Size {
        Size { bytes: config.size_in_bytes(self.prefix), matcher_entries: config.matcher_entries() }
    }
}

/// Says that a route gets nothing of some places.
fn loss(
    loser: &RouteInput,
    listener: &Listener,
    winner: &RouteInput,
    stream_matches: &BTreeSet<&StreamMatch>,
) -> Problem {
    let names: Vec<String> = stream_matches
        .iter()
        .filter_map(|stream_match| Some(stream_match.name.as_ref()?.to_string()))
        .collect();
    let name = named(listener);
    let (field, message) = if names.is_empty() {
        let winner = winner.route.key.named_to(&loser.route.key);
        let message = format!("All traffic of {name} goes to {winner}, which is older.");
        ("parentRefs", message)
    } else {
        let names = names.join(", ");
        let winner = winner.route.key.named_to(&loser.route.key);
        let message = format!(
            "On {name}, connections for {names} go to {winner}, which is older or has a more specific \
             hostname."
        );
        ("hostnames", message)
    };
    Problem {
        object: loser.route.key.clone(),
        field: FieldPath::new("spec").child(field),
        severity: Severity::Warning,
        reason: Reason::Shadowed,
        message,
    }
}

/// A listener as the author of a route knows it.
fn named(listener: &Listener) -> String {
    if listener.owner.kind == Kind::ListenerSet {
        format!("listener \"{}\" of {}", listener.name, listener.owner)
    } else {
        format!("listener \"{}\"", listener.name)
    }
}

#[cfg(test)]
mod tests;
