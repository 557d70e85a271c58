//! The conversion of the stream documents of a Gateway into the documents that a sink publishes.
//!
//! The check is the check of [`mod@crate::bridge`], with the rules of stream documents. A route at fault keeps its port
//! and server names and rejects their connections; so does a route with a reference to an omitted document. A route
//! with invalid server names keeps its valid ones. Without a valid server name, the route is left out. So no connection
//! falls to another route, and a document at fault affects no other document.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use pingsix_sink::{Desired, Document, DocumentSet, Key, OrderHint, Owner, Scope, SinkError};
use pingsix_translate::status::{Problem, Reason, Severity};
use pingsix_translate::stream::{
    ANY_NAME, Destination, RejectReason, StreamConfig, StreamDocument, StreamKey, StreamProtocol,
    StreamRoute, StreamTarget, StreamViolation, TlsMode, validate,
};
use pingsix_translate::{DataPlaneKey, Hostname, ObjectKey, Options, Origin, StreamPlane, StreamProvenance};

use super::quarantine::take_measures;
use super::{BridgeError, Measure, Quarantined};

/// The stream documents of a Gateway, ready to be published.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BridgedStream {
    /// The desired documents, under the prefix of the stream documents.
    pub desired: Desired,
    /// The same documents, decoded: the configuration after quarantine.
    pub config: StreamConfig,
    /// The documents that violate a rule; normally none.
    pub quarantined: Vec<Quarantined<StreamKey>>,
    /// The problems of these documents, by object.
    pub problems: Vec<Problem>,
}

/// The position of a stream document in the order of writes: upstreams, certificates, authorities, routes, so references
/// never dangle. Routes need no order, because at most one takes a connection.
pub(crate) const fn stream_order_hint(document: &StreamDocument) -> OrderHint {
    OrderHint(match document {
        StreamDocument::Upstream(_) => 0,
        StreamDocument::Ssl(_) => 1,
        StreamDocument::Ca(_) => 2,
        StreamDocument::StreamRoute(_) => 3,
    })
}

/// Converts translated stream documents into the documents of a sink.
///
/// A pure function: equal arguments give equal bytes. `options` are those of the translation.
///
/// # Errors
///
/// [`BridgeError::Key`] for an invalid prefix or key.
pub fn bridge_stream(
    key: &DataPlaneKey,
    plane: &StreamPlane,
    options: &Options,
) -> Result<BridgedStream, BridgeError> {
    let (config, quarantined) = quarantine(&plane.config);
    let owner = Arc::new(key.owner());
    let origin = |key: &StreamKey| stream_origin_of(plane.provenance.get(key), &owner);
    let documents = config.iter().map(|(key, document)| {
        Ok(Document {
            key: Key::new(key.to_string())?,
            value: Bytes::from(document.to_json()),
            order: stream_order_hint(document),
            owner: Owner::shared(origin(key).object),
        })
    });
    let desired = || -> Result<Desired, SinkError> {
        let documents: Vec<Document> = documents.collect::<Result<_, SinkError>>()?;
        Ok(Desired::new(Scope::new(key.prefix(&options.root))?, DocumentSet::new(documents)?))
    };
    let desired = desired().map_err(|source| BridgeError::Key { data_plane: key.clone(), source })?;
    let mut problems: Vec<Problem> = quarantined
        .iter()
        .map(|entry| {
            let origin = origin(&entry.key);
            Problem {
                field: origin.field(),
                object: origin.object,
                severity: Severity::Error,
                reason: Reason::Quarantined,
                message: entry.message.clone(),
            }
        })
        .collect();
    problems.sort();
    problems.dedup();
    Ok(BridgedStream { desired, config, quarantined, problems })
}

/// The origin of a document.
pub(crate) fn stream_origin_of(provenance: Option<&StreamProvenance>, owner: &Arc<ObjectKey>) -> Origin {
    match provenance {
        Some(StreamProvenance::Route { origin, .. }) => origin.clone(),
        Some(
            StreamProvenance::Backend { service: object, .. }
            | StreamProvenance::Certificate { secret: object, .. }
            | StreamProvenance::Authority { config_map: object }
            | StreamProvenance::Guard { owner: object, .. }
            | StreamProvenance::Front { owner: object, .. },
        ) => Origin::object(object.clone()),
        Some(StreamProvenance::PingSix { .. }) | None => Origin::object(owner.clone()),
    }
}

/// Takes measures against documents at fault until no rule is violated.
fn quarantine(original: &StreamConfig) -> (StreamConfig, Vec<Quarantined<StreamKey>>) {
    let mut config = original.clone();
    let faults = |config: &StreamConfig| {
        let mut by_document: BTreeMap<StreamKey, StreamViolation> = BTreeMap::new();
        for violation in validate(config) {
            by_document.entry(violation.key.clone()).or_insert(violation);
        }
        by_document
    };
    let take = |config: &mut StreamConfig, key: &StreamKey, measure: Measure| {
        let route = match (measure, config.get(key)) {
            (Measure::Closed, Some(StreamDocument::StreamRoute(route))) => Some(closed(route)),
            (Measure::Narrowed, Some(StreamDocument::StreamRoute(route))) => narrowed(config, key, route),
            _ => None,
        };
        match route {
            Some(route) => config.insert(key.id.clone(), route),
            None if measure == Measure::LeftOut => config.remove(key),
            None => return false,
        };
        true
    };
    let taken = take_measures(&mut config, faults, take);
    let quarantined = taken.into_iter().map(|(key, (measure, StreamViolation { field, message, .. }))| {
        let consequence = match measure {
            Measure::Closed => "the connections it takes are rejected",
            Measure::Narrowed => "the connections it can take are rejected",
            Measure::LeftOut => "it is left out",
        };
        let colon = if field.is_empty() { "" } else { ": " };
        let message =
            format!("Stream document {key}{colon}{field} cannot be served, so {consequence}. {message}");
        Quarantined { key, measure, message }
    });
    let quarantined = quarantined.collect();
    (config, quarantined)
}

/// A route that takes the connections of another and rejects them. Those of [`ANY_NAME`] have no route then, which closes
/// them, too.
fn closed(route: &StreamRoute) -> StreamRoute {
    StreamRoute {
        server_port: route.server_port,
        protocol: route.protocol,
        snis: route.snis.iter().filter(|name| *name != ANY_NAME).cloned().collect(),
        tls: (route.protocol == StreamProtocol::Tls).then_some(TlsMode::Passthrough),
        ssl_ids: Vec::new(),
        alpn: Vec::new(),
        client_auth: None,
        targets: vec![StreamTarget { to: Destination::Reject(RejectReason::Invalid), weight: 1 }],
    }
}

/// The route with its valid server names that no other route has; `None` without such a name.
fn narrowed(config: &StreamConfig, key: &StreamKey, route: &StreamRoute) -> Option<StreamRoute> {
    let on_port =
        |other: &StreamRoute| other.server_port == route.server_port && other.protocol == StreamProtocol::Tls;
    let others: BTreeSet<&String> = config
        .routes()
        .filter(|(other, route)| *other != key && on_port(route))
        .flat_map(|(_, route)| &route.snis)
        .collect();
    let own: BTreeSet<&String> = route.snis.iter().collect();
    let snis: Vec<String> = own
        .into_iter()
        .filter(|name| Hostname::parse(name).is_ok_and(|parsed| parsed.as_str() == name.as_str()))
        .filter(|name| !others.contains(name))
        .cloned()
        .collect();
    (!snis.is_empty()).then(|| StreamRoute { snis, ..route.clone() })
}
