//! Sample requests: how they are sent, and which answers their expectations allow.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::pingsix::Request;
use serde::Deserialize;

use super::case::Material;
use crate::client::{Protocol, Reply, speaks_http2};
use crate::comparison::float;
use crate::echo::{BACKEND, HEADER_SEEN, TARGET_SEEN};

/// The least number of repetitions of a request.
const MIN_REPEATS: usize = 3;

/// The number of requests per backend address, enough to see all of them.
const REPEATS_PER_ENDPOINT: usize = 4;

/// The least number of requests to a weighted list.
const MIN_WEIGHTED_REQUESTS: u64 = 300;

/// The least average number of requests for the smallest share of a weighted list.
const MIN_REQUESTS_PER_SHARE: u64 = 30;

/// An entry of `requests.yaml`.
#[derive(Clone, Deserialize)]
pub(super) struct Sample {
    pub(super) request: String,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    #[serde(default)]
    http2: bool,
    pub(super) server_name: Option<String>,
    pub(super) gateway: Option<String>,
    pub(super) ingress_class: Option<String>,
    #[serde(default)]
    backends: BTreeMap<String, u64>,
    endpoints: Option<BTreeSet<String>>,
    /// The status of an answer without a backend. Beside backends, that of their responses.
    status: Option<u16>,
    /// The status with which a policy refuses the request on its way to the backends.
    refused: Option<u16>,
    /// The number of requests that a limit admits before.
    #[serde(default)]
    after: usize,
    location: Option<String>,
    preflight: Option<bool>,
    /// The request has no listener. Its other expectations are for a PingSIX with the port open.
    #[serde(default)]
    closed: bool,
    /// The request at the backend: `target`, `host`, and headers that start with `x-`; an empty text stands for none.
    #[serde(default)]
    sees: BTreeMap<String, String>,
    /// Response headers the client gets; an empty text is none.
    #[serde(default)]
    gets: BTreeMap<String, String>,
    /// The Secret whose certificate is shown; an empty text is none of them.
    pub(super) certificate: Option<String>,
}

/// An answer, and the certificate shown on the connection it came over.
pub(super) struct Answered {
    pub(super) reply: Reply,
    pub(super) certificate: Option<Vec<u8>>,
}

impl Sample {
    /// Method, scheme, authority and target.
    fn parts(&self) -> (&str, &str, &str, &str) {
        let (method, url) = self.request.split_once(' ').unwrap();
        let (scheme, rest) = url.split_once("://").unwrap();
        let (authority, target) = rest.split_at(rest.find('/').unwrap());
        (method, scheme, authority, target)
    }

    pub(super) fn is_tls(&self) -> bool {
        self.parts().1 == "https"
    }

    /// The host without a port, which a client asks for in TLS too.
    pub(super) fn name(&self) -> &str {
        self.parts().2.split(':').next().unwrap()
    }

    /// The server name of the TLS handshake, and the port that the client connects to.
    pub(super) fn server_name_and_port(&self) -> (&str, u16) {
        let port = self.parts().2.split_once(':').map_or(443, |(_, port)| port.parse().unwrap());
        (self.server_name.as_deref().unwrap_or_else(|| self.name()), port)
    }

    /// Whether a response is expected.
    pub(super) fn can_be_sent(&self) -> bool {
        !self.closed || self.status.is_some() || !self.backends.is_empty()
    }

    /// The request, which has no TLS behind a sidecar.
    pub(super) fn request(&self, is_fronted: bool) -> Request {
        let (method, _, host, target) = self.parts();
        let (path, query) =
            target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let request = Request {
            query: query.map(str::to_owned),
            tls: self.is_tls() && !is_fronted,
            ..Request::get(host, path).method(method)
        };
        self.headers.iter().fold(request, |request, (name, value)| request.header(name, value))
    }

    /// The protocols that can carry the request.
    pub(super) fn protocols(&self, is_fronted: bool) -> Vec<Protocol> {
        let request = self.request(is_fronted);
        if self.is_counted() {
            return vec![Protocol::of(&request)];
        }
        let mut all = Vec::new();
        if !self.http2 {
            all.push(Protocol::of(&request));
        }
        if self.http2 || speaks_http2(&request) {
            all.push(Protocol::of(&request.over_http2()));
        }
        all
    }

    /// Whether a limit counts the request. Counts outlive publications, and all protocols share them.
    pub(super) fn is_counted(&self) -> bool {
        self.after > 0
    }

    /// The number of requests over each protocol.
    pub(super) fn repeats(&self) -> usize {
        if self.refused.is_some() {
            return self.after + MIN_REPEATS;
        }
        let weights = || self.backends.values().copied().filter(|weight| *weight > 0);
        if weights().count() > 1 {
            let (total, least) = (weights().sum::<u64>(), weights().min().unwrap());
            let needed = MIN_REQUESTS_PER_SHARE * total.div_ceil(least);
            return usize::try_from(needed.max(MIN_WEIGHTED_REQUESTS)).unwrap();
        }
        let endpoints = self.endpoints.as_ref().map_or(0, BTreeSet::len);
        MIN_REPEATS.max(REPEATS_PER_ENDPOINT * endpoints)
    }

    /// The problem of the answers over one protocol.
    pub(super) fn problem(&self, answers: &[Answered], material: &Material) -> Option<String> {
        let mut numbered = answers.iter().enumerate();
        let wrong = numbered.find(|(number, answered)| !self.allows(*number, answered, material));
        if let Some((number, Answered { reply, certificate })) = wrong {
            let shown = certificate.as_deref().map(|shown| material.secret_of(shown));
            let Reply { status, headers, .. } = reply;
            return Some(format!("answer {number}: status {status}, certificate {shown:?}, {headers:?}"));
        }
        if self.refused.is_some() {
            return None;
        }
        self.share_problem(answers, material).or_else(|| {
            let seen: BTreeSet<&str> =
                answers.iter().filter_map(|answered| answered.reply.header(BACKEND)).collect();
            let endpoints = self.endpoints.as_ref().filter(|wanted| !wanted.iter().eq(seen.iter().copied()));
            endpoints.map(|wanted| format!("{seen:?} answered, not {wanted:?}"))
        })
    }

    /// The problem of a share that differs from its weight; a share without weight must be empty.
    fn share_problem(&self, answers: &[Answered], material: &Material) -> Option<String> {
        let total: u64 = self.backends.values().sum();
        let shares = self.backends.iter().filter(|_| self.backends.len() > 1);
        let count = float(answers.len() as u64);
        let wrong = shares.filter(|(name, weight)| {
            let got = answers.iter().filter(|answered| self.is_of(name, &answered.reply, material)).count();
            let share = float(**weight) / float(total);
            let (expected, got) = (share * count, float(got as u64));
            // Chance goes beyond five deviations once in a million times.
            let deviation = (expected * (1.0 - share)).sqrt();
            got > 0.0 && **weight == 0 || (got - expected).abs() > 5.0 * deviation
        });
        let names: Vec<&String> = wrong.map(|(name, _)| name).collect();
        (!names.is_empty()).then(|| format!("the share of {names:?} in {count} answers is not its own"))
    }

    fn allows(&self, number: usize, answered: &Answered, material: &Material) -> bool {
        let reply = &answered.reply;
        let has = |name: &str, wanted: &str| reply.header(name).unwrap_or_default() == wanted;
        let sees = self.sees.iter().all(|(name, wanted)| match name.as_str() {
            "target" => has(TARGET_SEEN, wanted),
            name => has(&format!("{HEADER_SEEN}{name}"), wanted),
        });
        let gets = self.gets.iter().all(|(name, wanted)| has(name, wanted));
        let shows = self.certificate.as_deref().is_none_or(|wanted| {
            let shown = answered.certificate.as_deref().map(|shown| material.secret_of(shown));
            shown.is_some_and(|shown| shown.unwrap_or_default() == wanted)
        });
        sees && gets && shows && self.allows_answer(number, reply, material)
    }

    fn allows_answer(&self, number: usize, reply: &Reply, material: &Material) -> bool {
        let backend = reply.header(BACKEND);
        if let Some(allowed) = self.preflight {
            let without_positions = reply.header("access-control-allow-origin").is_some();
            return backend.is_none()
                && without_positions == allowed
                && (reply.status < 300 || !allowed && reply.status == 403);
        }
        if let Some(wanted) = self.refused.filter(|_| number >= self.after) {
            return backend.is_none() && reply.status == wanted;
        }
        if let Some(wanted) = self.status.filter(|_| self.backends.is_empty()) {
            let location = self.location.as_deref().map(|location| self.absolute(location));
            let found = reply.header("location").map(|location| self.absolute(location));
            return backend.is_none() && reply.status == wanted && location == found;
        }
        self.backends.keys().any(|name| self.is_of(name, reply, material))
    }

    /// A `Location` as clients read it: PingSIX writes some as paths, depending on the version of HTTP.
    fn absolute(&self, location: &str) -> String {
        let (_, scheme, authority, _) = self.parts();
        if location.starts_with('/') {
            format!("{scheme}://{authority}{location}")
        } else {
            location.to_owned()
        }
    }

    /// Whether a response belongs to a share: a Service by name, or a status.
    fn is_of(&self, name: &str, reply: &Reply, material: &Material) -> bool {
        match (name.parse::<u16>(), reply.header(BACKEND)) {
            (Ok(share), None) => share == reply.status,
            (Err(_), Some(backend)) => {
                reply.status == self.status.unwrap_or(200) && material.is_endpoint(name, backend)
            }
            _ => false,
        }
    }
}
