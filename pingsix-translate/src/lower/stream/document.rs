//! Places to stream documents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::matches::StreamMatch;
use crate::attach::{ClientValidation, Listener};
use crate::backends::{Action, Backends, Target};
use crate::lower::StreamPlane;
use crate::lower::id::{Ids, Name};
use crate::lower::rows::RouteInput;
use crate::model::{Hostname, Kind, ObjectKey, Origin, Reference, Section, StreamProvenance};
use crate::stream::{
    ANY_NAME, ClientAuth, Destination, HTTP_PROTOCOLS, RejectReason, StreamCa, StreamKey, StreamKind,
    StreamProtocol, StreamRoute, StreamSsl, StreamTarget, StreamUpstream, TlsMode,
};

/// The part of a route that asks for connections: it has one rule.
pub(super) fn origin(input: &RouteInput) -> Origin {
    Origin { object: input.route.key.clone(), section: Section::Rule(0) }
}

/// Writes documents, each once.
pub(super) struct Writer<'a> {
    backends: &'a Backends,
    ids: Ids,
    plane: StreamPlane,
}

impl<'a> Writer<'a> {
    pub(super) fn new(backends: &'a Backends) -> Self {
        Self { backends, ids: Ids::default(), plane: StreamPlane::default() }
    }

    /// The written documents; the caller sets the size.
    pub(super) fn finish(self) -> StreamPlane {
        self.plane
    }

    /// Gives a place to a route.
    pub(super) fn route(
        &mut self,
        stream_match: &StreamMatch,
        listener: &Listener,
        input: &RouteInput,
        shadowed: BTreeSet<Origin>,
    ) {
        let targets = match &*input.rules {
            [rule] => self.targets(&rule.action),
            // Stream routes are normalised to one rule.
            _ => vec![rejecting(RejectReason::Invalid)],
        };
        let mut route = unterminated(stream_match, targets);
        route.ssl_ids = self.certificates(listener);
        if !route.ssl_ids.is_empty() {
            route.tls = Some(TlsMode::Terminate);
        }
        let provenance = StreamProvenance::Route {
            owner: listener.owner.clone(),
            listener: listener.name.clone(),
            origin: origin(input),
            shadowed: shadowed.into_iter().collect(),
        };
        self.write(stream_match, route, provenance);
    }

    /// Sends the connections of a fronted listener on to PingSIX.
    pub(super) fn front(&mut self, stream_match: &StreamMatch, listener: &Listener) {
        let Some((front, address)) = listener.front.as_ref().zip(listener.front_address()) else { return };
        let upstream_id = self.ids.assign(&Name::new('u', &[&address.to_string()]));
        let key = StreamKey::new(StreamKind::Upstream, upstream_id.clone());
        self.plane.provenance.entry(key).or_insert_with(|| {
            let nodes = BTreeMap::from([(address.to_string(), 1)]);
            self.plane.config.insert(upstream_id.clone(), StreamUpstream { nodes, local: true });
            StreamProvenance::PingSix { port: listener.port }
        });
        let to_pingsix = StreamTarget { to: Destination::Upstream(upstream_id), weight: 1 };
        let any = stream_match.name.is_none().then(|| ANY_NAME.to_owned());
        let unterminated = unterminated(stream_match, vec![to_pingsix]);
        let route = StreamRoute {
            snis: unterminated.snis.into_iter().chain(any).collect(),
            tls: Some(TlsMode::Terminate),
            alpn: HTTP_PROTOCOLS.map(str::to_owned).to_vec(),
            ssl_ids: self.certificates(listener),
            client_auth: front.validation.as_ref().map(|validation| self.client_auth(validation)),
            ..unterminated
        };
        let (owner, listener) = (listener.owner.clone(), listener.name.clone());
        self.write(stream_match, route, StreamProvenance::Front { owner, listener });
    }

    /// The validation of clients, with the documents of its authorities.
    pub(super) fn client_auth(&mut self, validation: &ClientValidation) -> ClientAuth {
        let mut ca_ids = Vec::new();
        for authority in &validation.authorities {
            let config_map = &authority.config_map;
            let id = self.ids.assign(&Name::new('c', &[&config_map.namespace, &config_map.name]));
            if ca_ids.contains(&id) {
                continue;
            }
            let key = StreamKey::new(StreamKind::Ca, id.clone());
            self.plane.provenance.entry(key).or_insert_with(|| {
                self.plane.config.insert(id.clone(), StreamCa { certs: authority.pem() });
                StreamProvenance::Authority { config_map: authority.key() }
            });
            ca_ids.push(id);
        }
        ClientAuth { mode: validation.mode, ca_ids }
    }

    /// Leaves a match without a route.
    pub(super) fn guard(&mut self, stream_match: &StreamMatch, listener: &Listener) {
        let why = if listener.is_served() { RejectReason::NoRoute } else { RejectReason::Invalid };
        let route = unterminated(stream_match, vec![rejecting(why)]);
        self.write(
            stream_match,
            route,
            StreamProvenance::Guard { owner: listener.owner.clone(), listener: listener.name.clone() },
        );
    }

    fn write(&mut self, stream_match: &StreamMatch, route: StreamRoute, provenance: StreamProvenance) {
        let name = stream_match.name.as_ref().map(Hostname::as_str).unwrap_or_default();
        let id = self
            .ids
            .assign(&Name::new('r', &[stream_match.protocol.as_str(), &stream_match.port.to_string(), name]));
        self.plane.config.insert(id.clone(), route);
        self.plane.provenance.insert(StreamKey::new(StreamKind::StreamRoute, id), provenance);
    }

    /// Ids of the certificates of a listener, written when first asked for.
    fn certificates(&mut self, listener: &Listener) -> Vec<String> {
        let mut ids = Vec::new();
        for certificate in listener.terminates_with() {
            let secret = &certificate.secret;
            let id = self.ids.assign(&Name::new('s', &[&secret.namespace, &secret.name]));
            if ids.contains(&id) {
                continue;
            }
            let key = StreamKey::new(StreamKind::Ssl, id.clone());
            let origin = self.plane.provenance.entry(key).or_insert_with(|| {
                let ssl = StreamSsl {
                    cert: certificate.chain().to_owned(),
                    key: certificate.private_key().to_owned(),
                };
                self.plane.config.insert(id.clone(), ssl);
                StreamProvenance::Certificate { secret: certificate.key(), references: BTreeSet::new() }
            });
            if let StreamProvenance::Certificate { references, .. } = origin {
                let (object, field) = (listener.owner.clone(), certificate.at.clone());
                references.insert(Reference { object, field });
            }
            ids.push(id);
        }
        ids
    }

    fn targets(&mut self, action: &Action) -> Vec<StreamTarget> {
        action
            .targets
            .iter()
            .map(|&(target, weight)| StreamTarget { to: self.destination(target), weight })
            .collect()
    }

    fn destination(&mut self, target: Target) -> Destination {
        match target {
            Target::Status(503) => Destination::Reject(RejectReason::NoEndpoints),
            // No rule of a stream route redirects.
            Target::Status(_) | Target::Redirect => Destination::Reject(RejectReason::Invalid),
            Target::Backend(index) => {
                let backend = self.backends.get(index);
                let (service, port) = (&backend.key.service, backend.key.port);
                let id = self.ids.assign(&Name::new(
                    'u',
                    &[
                        &service.namespace,
                        &service.name,
                        &port.to_string(),
                        backend.key.usage.traffic.transport(),
                    ],
                ));
                if self.plane.config.upstream(&id).is_none() {
                    let nodes = backend.endpoints.iter().map(|endpoint| (endpoint.to_string(), 1)).collect();
                    self.plane.config.insert(id.clone(), StreamUpstream { nodes, local: false });
                    let service = Arc::new(ObjectKey { kind: Kind::Service, name: service.clone() });
                    let key = StreamKey::new(StreamKind::Upstream, id.clone());
                    self.plane.provenance.insert(key, StreamProvenance::Backend { service, port });
                }
                Destination::Upstream(id)
            }
        }
    }
}

const fn rejecting(why: RejectReason) -> StreamTarget {
    StreamTarget { to: Destination::Reject(why), weight: 1 }
}

/// The route of a place where TLS, if any, is left to others.
fn unterminated(stream_match: &StreamMatch, targets: Vec<StreamTarget>) -> StreamRoute {
    StreamRoute {
        server_port: stream_match.port,
        protocol: stream_match.protocol,
        snis: stream_match.name.iter().map(ToString::to_string).collect(),
        tls: (stream_match.protocol == StreamProtocol::Tls).then_some(TlsMode::Passthrough),
        alpn: Vec::new(),
        ssl_ids: Vec::new(),
        client_auth: None,
        targets,
    }
}
