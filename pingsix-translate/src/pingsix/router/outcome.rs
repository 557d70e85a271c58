//! The outcome of a request.

use serde_json::Value;

use super::request::Request;
use super::split::Candidate;
use super::{Router, Row, cors, redirect, split};
use crate::pingsix::DocumentKey;
use crate::pingsix::plugin::{Abort, Cors, Echo, FaultInjection, PluginConfig, Redirect, TrafficSplit};

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<'c> {
    /// 404, because no route matches.
    NotFound,
    /// An answer without a backend, by `fault-injection` or `echo`.
    Static {
        /// The route.
        route: &'c DocumentKey,
        /// The status.
        status: u16,
        /// The headers that the configuration sets, beside `content-type` and `content-length`.
        headers: Vec<(String, String)>,
        /// The body; it is not sent for HEAD.
        body: String,
    },
    /// The answer to a CORS preflight: 204, or 403 if not allowed.
    Preflight {
        /// The route.
        route: &'c DocumentKey,
        /// Whether it is allowed.
        allowed: bool,
    },
    /// A redirect.
    Redirect {
        /// The route.
        route: &'c DocumentKey,
        /// The status.
        status: u16,
        /// The `Location` header, byte for byte.
        location: String,
    },
    /// A request to a backend.
    Forward {
        /// The route.
        route: &'c DocumentKey,
        /// The possible upstreams and their shares, in the order of the configuration. They are empty only for a
        /// configuration that PingSIX refuses.
        candidates: Vec<Candidate>,
    },
}

impl<'c> Router<'c> {
    /// The outcome of a request: the model finds the route, runs the plugins that may answer in their order, and
    /// chooses upstreams.
    ///
    /// Plugins with reasons outside of the model pass every request: authentication, addresses, quotas and CSRF, and a
    /// `fault-injection` for a share of requests. The configuration must be one that PingSIX accepts.
    pub fn outcome(&self, request: &Request) -> Outcome<'c> {
        let Some(row) = self.row_for(request) else { return Outcome::NotFound };
        // All plugins of global rules run before any of the route; both stages may answer.
        let stages = [Stage::Global(self), Stage::Route(row)];
        if let Some(answer) = stages.iter().find_map(|stage| stage.answer(row.key, request)) {
            return answer;
        }
        let own = split::own_upstream(row.route, row.service);
        let splits = stages.iter().flat_map(Stage::configs::<TrafficSplit>);
        // A later plugin overrides what an earlier one has chosen, if one of its rules applies.
        let candidates = match splits.filter_map(|split| split::chosen_targets(split, request)).next_back() {
            Some(targets) => split::candidates(targets, own.as_ref()),
            None => own.into_iter().map(|upstream| Candidate { weight: 1, upstream }).collect(),
        };
        Outcome::Forward { route: row.key, candidates }
    }

    fn row_for(&self, request: &Request) -> Option<&Row<'c>> {
        let host = request.routing_host();
        self.find(host, &request.path, |row| row.route.allows(&request.method)).or_else(|| {
            request.first_header("origin")?;
            let method = request.first_header("access-control-request-method")?;
            (request.method == "OPTIONS").then(|| self.find_preflight(host, &request.path, method))?
        })
    }
}

/// The two stages of plugins, in the order in which they run.
pub(super) enum Stage<'r, 'c> {
    /// The plugins of all global rules, never merged.
    Global(&'r Router<'c>),
    /// The plugins of the route, united with those of its service that it does not replace.
    Route(&'r Row<'c>),
}

impl Stage<'_, '_> {
    /// The configurations of a plugin in this stage, in the order in which its instances run.
    pub(super) fn configs<C: PluginConfig>(&self) -> Vec<C> {
        match self {
            Self::Global(router) => {
                let rules = router.config().global_rules();
                rules.filter_map(|(_, rule)| rule.plugins.get::<C>()?.ok()).collect()
            }
            Self::Route(row) => {
                let service = || row.service?.plugins.get::<C>();
                row.route.plugins.get::<C>().or_else(service).and_then(Result::ok).into_iter().collect()
            }
        }
    }

    /// The first answer of a plugin of this stage; the order is that of the plugins' priorities.
    fn answer<'c>(&self, route: &'c DocumentKey, request: &Request) -> Option<Outcome<'c>> {
        let faults = self.configs::<FaultInjection>().into_iter();
        let preflights = self.configs::<Cors>();
        let redirects = self.configs::<Redirect>();
        let echoes = self.configs::<Echo>().into_iter();
        faults
            .filter_map(|fault| fault.abort)
            .find(|abort| abort.percentage.is_none_or(|share| share >= 100))
            .map(|abort| abort_answer(route, abort))
            .or_else(|| {
                let allowed = preflights.iter().find_map(|cors| cors::preflight(cors, request))?;
                Some(Outcome::Preflight { route, allowed })
            })
            .or_else(|| {
                redirects.iter().find_map(|redirect| {
                    let location = redirect::location(redirect, request)?;
                    Some(Outcome::Redirect { route, status: status_or(redirect.ret_code, 302), location })
                })
            })
            .or_else(|| {
                echoes
                    .map(|Echo { body, headers }| static_answer(route, 200, headers.into_iter(), body))
                    .next()
            })
    }
}

fn abort_answer(route: &DocumentKey, abort: Abort) -> Outcome<'_> {
    let headers = abort.headers.unwrap_or_default().into_iter().filter_map(|(name, value)| match value {
        Value::String(text) => Some((name, text)),
        Value::Number(number) => Some((name, number.to_string())),
        Value::Bool(flag) => Some((name, flag.to_string())),
        // Anything else is skipped.
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    });
    static_answer(route, status_or(abort.http_status, 500), headers, abort.body.unwrap_or_default())
}

fn static_answer(
    route: &DocumentKey,
    status: u16,
    headers: impl Iterator<Item = (String, String)>,
    body: String,
) -> Outcome<'_> {
    let headers: Vec<_> = headers.collect();
    let valid = headers.iter().all(|(name, value)| {
        name.parse::<http::HeaderName>().is_ok() && value.parse::<http::HeaderValue>().is_ok()
    });
    if !valid {
        // PingSIX fails to build the answer, and the client gets an empty 500.
        return Outcome::Static { route, status: 500, headers: Vec::new(), body: String::new() };
    }
    Outcome::Static { route, status, headers, body }
}

fn status_or(status: u16, fallback: u16) -> u16 {
    if (100..1000).contains(&status) { status } else { fallback }
}
