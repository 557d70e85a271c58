//! The answers of PingSIX to requests, compared with an independent reading of Gateway API.

use std::collections::BTreeMap;

use pingsix_translate::pingsix::Request;
use rand::Rng as _;
use rand::rngs::SmallRng;
use serde_json::Value;

use crate::client::{Addresses, Protocol, Reply, ask_all, speaks_http2};
use crate::echo::BACKEND;
use crate::effect::Effect;
use crate::oracle::{BackendProtocol, Decided, Target, World};
use crate::probe::Probe;
use crate::properties::generate::{hosts, probe};
use crate::received::{difference, is_answer};

/// Whether the backend with this name serves the port of a Service: namespace, name, port, backend.
pub(crate) type ServedBy = fn(&World, (&str, &str, u16), &str) -> bool;

/// A table as the oracle reads it, and how to tell its Services from their backends' names.
pub(crate) struct Comparison {
    pub(crate) world: World,
    hosts: Vec<String>,
    served_by: ServedBy,
}

/// The counters of a comparison.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) requests: usize,
    pub(crate) protocols: BTreeMap<Protocol, usize>,
    pub(crate) by_backend: usize,
    pub(crate) weighted: usize,
    pub(crate) redirected: usize,
    pub(crate) preflights: usize,
    /// Responses of backends that PingSIX changed.
    pub(crate) changed: usize,
    pub(crate) refused: usize,
    pub(crate) shares: usize,
    pub(crate) planes: usize,
    pub(crate) tables: u64,
    pub(crate) starts: usize,
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { requests, protocols, by_backend, weighted, redirected, preflights, changed, .. } = self;
        let Self { refused, shares, planes, tables, starts, .. } = self;
        write!(
            f,
            "{requests} requests compared on {planes} data planes of {tables} tables in {starts} process starts; \
             {by_backend} were answered by backends, {changed} of them with changes, {redirected} redirected, {preflights} \
             as preflights, {refused} with 500 or 503, {weighted} met weights, and the \
             shares of {shares} lists were counted; {protocols:?}"
        )
    }
}

/// The protocol of a request: half of them in plaintext over HTTP/1.1, a quarter over h2c, a quarter over TLS.
///
/// The response must be the same over each, with one exception that the tables do not contain: a header match on
/// `Host` holds over HTTP/1 only, because HTTP/2 has no such header.
fn draw_protocol(rng: &mut SmallRng) -> Protocol {
    match rng.random_range(0..8) {
        0..4 => Protocol::Http1,
        4..6 => Protocol::H2c,
        6 => Protocol::HttpsHttp1,
        _ => Protocol::HttpsHttp2,
    }
}

/// The number of requests to a weighted list that show its shares.
const SHARE_SAMPLE: usize = 300;

impl Comparison {
    pub(crate) fn new(objects: &[Value], served_by: ServedBy) -> Self {
        Self { world: World::read(objects), hosts: hosts(objects), served_by }
    }

    /// Requests to a data plane. Most random ones find no rule; of those only a few are kept.
    pub(crate) fn probes(&self, rng: &mut SmallRng, port: Option<u16>, count: usize) -> Vec<Probe> {
        let (mut probes, mut lost) = (Vec::new(), 0);
        for _ in 0..20 * count {
            let probe = probe(rng, &self.hosts);
            let (probe, decided) = self.world.meet(port, &probe);
            if decided.rule.is_some() || is_preflight(&decided) {
                probes.push(probe);
            } else if lost < count / 5 {
                probes.push(probe);
                lost += 1;
            }
            if probes.len() == count {
                break;
            }
        }
        probes
    }

    /// The index of the target that answered, among those the oracle names.
    fn target_of(&self, decided: &Decided, request: &Request, reply: &Reply) -> Option<usize> {
        decided.answer.into_iter().position(|(target, _)| match target {
            Target::Service { namespace, name, port, .. } => {
                let served = |backend: &str| (self.served_by)(&self.world, (namespace, name, *port), backend);
                reply.status == 200 && reply.header(BACKEND).is_some_and(served)
            }
            other @ (Target::Status(_) | Target::Redirect { .. } | Target::Preflight(_)) => {
                reply.header(BACKEND).is_none() && is_answer(other, request, reply)
            }
        })
    }

    /// The error of an answer; `None` for a right one.
    fn failure(
        &self,
        port: Option<u16>,
        decided: &Decided,
        asked: (&Probe, &Request),
        reply: &Reply,
    ) -> Option<String> {
        let (probe, request) = asked;
        // The responder redirects no request without a host.
        if reply.status == 400 && decided.redirects() && probe.usable_host().is_none() {
            return None;
        }
        // An invalid or absent host cannot be sent to a backend over HTTP/2.
        let is_spoken_to_over_http2 =
            |target: &&Target| matches!(target, Target::Service { protocol: BackendProtocol::H2c, .. });
        if matches!(reply.status, 500 | 502)
            && decided.answer.targets().iter().any(is_spoken_to_over_http2)
            && probe.usable_host().is_none()
            && decided.effect.as_ref().is_some_and(|effect| effect.host == probe.host)
        {
            return None;
        }
        if self.target_of(decided, request, reply).is_none() {
            // A preflight without a matching rule: PingSIX looks for a rule with the requested method.
            let is_late = decided.rule.is_none()
                && probe.is_preflight()
                && matches!(reply.status, 204 | 403)
                && self.world.may_answer_preflight(port, probe);
            return (!is_late).then(|| "another answer".to_owned());
        }
        reply.header(BACKEND)?;
        difference(decided.effect.as_ref()?, request, reply)
    }

    /// Asks one data plane and compares.
    pub(crate) async fn compare(
        &self,
        addresses: Addresses,
        port: Option<u16>,
        probes: &[Probe],
        rng: &mut SmallRng,
        tally: &mut Tally,
    ) {
        let mut sent = |probe: &Probe| {
            let request = probe.request();
            let mut protocol = draw_protocol(rng);
            // A redirect may be to where the client came from.
            if addresses.tls.is_none() || self.world.decide(port, probe).redirects() {
                protocol = protocol.over_tls(addresses.tls.is_some() && probe.tls);
            }
            if protocol.http2() && !speaks_http2(&request) {
                protocol.over_http1().carry(&request)
            } else {
                protocol.carry(&request)
            }
        };
        let requests: Vec<Request> = probes.iter().map(&mut sent).collect();
        let replies = ask_all(addresses, &requests).await;
        let mut to_be_counted = None;
        for ((probe, request), reply) in probes.iter().zip(&requests).zip(&replies) {
            let decided = self.world.decide(port, probe);
            // A PingSIX without TLS got this request over another protocol.
            if decided.redirects() && probe.tls != request.tls {
                continue;
            }
            if let Some(error) = self.failure(port, &decided, (probe, request), reply) {
                panic!(
                    "port {port:?}: {error}\n  {request:?}\n  the oracle: {decided:#?}\n  PingSIX: {reply:?}\n  {}",
                    String::from_utf8_lossy(&reply.body)
                );
            }
            tally.requests += 1;
            *tally.protocols.entry(Protocol::of(request)).or_default() += 1;
            tally.by_backend += usize::from(reply.header(BACKEND).is_some());
            tally.redirected += usize::from(decided.redirects());
            tally.preflights += usize::from(is_preflight(&decided));
            tally.changed += usize::from(decided.effect.as_ref().is_some_and(Effect::is_one));
            tally.refused += usize::from(matches!(reply.status, 500 | 503));
            if decided.answer.into_iter().count() > 1 {
                tally.weighted += 1;
                to_be_counted = Some((decided, request));
            }
        }
        // One list in a few is asked so often that its shares show.
        if let Some((decided, request)) = to_be_counted.filter(|_| rng.random_ratio(1, 6)) {
            self.count_shares(addresses, &decided, request).await;
            tally.shares += 1;
            tally.requests += SHARE_SAMPLE;
        }
    }

    async fn count_shares(&self, addresses: Addresses, decided: &Decided, request: &Request) {
        let mut counted = BTreeMap::new();
        for reply in ask_all(addresses, &vec![request.clone(); SHARE_SAMPLE]).await {
            *counted.entry(self.target_of(decided, request, &reply).unwrap()).or_insert(0) += 1;
        }
        let total: u64 = decided.answer.into_iter().map(|(_, weight)| weight).sum();
        for (index, (_, weight)) in decided.answer.into_iter().enumerate() {
            let share = float(*weight) / float(total);
            let expected = share * float(SHARE_SAMPLE as u64);
            let deviation = (expected * (1.0 - share)).sqrt();
            let got = f64::from(*counted.get(&index).unwrap_or(&0));
            // Chance goes beyond five deviations once in a million times.
            assert!(
                (got - expected).abs() <= 5.0 * deviation + 3.0,
                "{decided:?}: {got} of {SHARE_SAMPLE}, {expected:.1} expected: {counted:?}"
            );
        }
    }
}

/// Whether the gateway answered a preflight of a browser.
fn is_preflight(decided: &Decided) -> bool {
    matches!(decided.answer.targets().as_slice(), [Target::Preflight(_)])
}

/// Weights and counts are far below the precision of a float.
pub(crate) fn float(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}
