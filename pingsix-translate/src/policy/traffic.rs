//! TrafficPolicy: limits, compression and other treatment of requests and their responses.
//!
//! An invalid field is not applied, except for a rate limit: its rules answer an error, because a limit that is left out
//! would leave backends without protection.

mod reader;

use std::sync::Arc;

use self::reader::Reader;
use super::attached::{PolicyEffect, PolicySpec, UnsupportedTraffic};
use super::inherited::{
    Field, FieldValue, InheritedEffect, MergeStrategy, field_value, merge_alike, target_refusals,
    unreadable_refusal,
};
use crate::model::{Capability, FieldPath, Refusal};
use crate::pingsix::Plugins;
use crate::pingsix::plugin::{
    Brotli, Cache, FaultInjection, GrpcWeb, Gzip, LimitCount, PluginConfig as _, RequestId, ResponseRewrite,
};
use crate::references::References;
use crate::snapshot::TrafficPolicy;

/// The effect of a TrafficPolicy, field by field.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct TrafficEffect {
    strategy: MergeStrategy,
    rate_limit: Option<Limit>,
    compression: Option<Codings>,
    request_id: Option<RequestId>,
    fault_injection: Option<FaultInjection>,
    grpc_web: Option<GrpcWeb>,
    response_headers: Option<ResponseRewrite>,
    cache: Option<Cache>,
}

/// Codings of responses, at least one.
#[derive(Debug, Default, PartialEq)]
struct Codings {
    gzip: Option<Gzip>,
    brotli: Option<Brotli>,
}

const RATE_LIMIT: &str = "rateLimit";
const COMPRESSION: &str = "compression";
const REQUEST_ID: &str = "requestID";
const FAULT_INJECTION: &str = "faultInjection";
const GRPC_WEB: &str = "grpcWeb";
const RESPONSE_HEADERS: &str = "responseHeaders";
const CACHE: &str = "cache";

impl FieldValue for Codings {
    fn plugin_names(&self) -> &'static [&'static str] {
        match (&self.gzip, &self.brotli) {
            (Some(_), Some(_)) => &[Brotli::NAME, Gzip::NAME],
            (Some(_), None) => &[Gzip::NAME],
            (None, Some(_)) => &[Brotli::NAME],
            (None, None) => &[],
        }
    }

    fn add_to(&self, plugins: &mut Plugins) {
        if let Some(gzip) = &self.gzip {
            plugins.insert(gzip);
        }
        if let Some(brotli) = &self.brotli {
            plugins.insert(brotli);
        }
    }
}

/// A limit, or the reason why requests under it are answered with an error.
type Limit = Result<LimitCount, Arc<str>>;

impl FieldValue for Limit {
    fn plugin_names(&self) -> &'static [&'static str] {
        &[LimitCount::NAME]
    }

    fn add_to(&self, plugins: &mut Plugins) {
        if let Ok(limit) = self {
            plugins.insert(limit);
        }
    }
}

impl TrafficEffect {
    /// Leaves out the cache. Returns whether there was one.
    pub(super) fn forbid_cache(&mut self) -> bool {
        self.cache.take().is_some()
    }
}

/// The limitation of a policy whose cache is left out.
pub(super) fn forbidden_cache() -> Refusal {
    Capability::SharedCache.limit(cache_field())
}

pub(super) fn cache_field() -> FieldPath {
    FieldPath::new("spec").child(CACHE)
}

impl PolicyEffect for TrafficEffect {
    type Object = TrafficPolicy;

    fn read(policy: &TrafficPolicy, _: &References<'_>) -> PolicySpec<Self> {
        let spec = &policy.spec;
        let is_of_field = |name: &str| Self::FIELDS.iter().any(|field| field.name == name);
        let (of_whole, of_unknown) =
            spec.unreadable
                .iter()
                .filter(|field| !is_of_field(field.top_level()))
                .partition::<Vec<_>, _>(|field| ["targetRefs", "strategy"].contains(&field.top_level()));
        let mut refusals: Vec<Refusal> = of_whole.into_iter().map(unreadable_refusal).collect();
        refusals.extend(target_refusals(&spec.target_refs, spec.strategy));
        let mut reader = Reader::new(&spec.unreadable);
        let effect = reader.read(spec);
        let protects = effect.rate_limit.is_some();
        let mut unapplied = reader.finish();
        unapplied.extend(of_unknown.into_iter().map(unreadable_refusal));
        let limitations = limitations(&effect);
        PolicySpec {
            effect: if refusals.is_empty() { Ok(effect) } else { Err(refusals) },
            unapplied,
            unresolved: Vec::new(),
            limitations,
            protects,
        }
    }

    fn refuse(&self, _: &UnsupportedTraffic) -> Vec<Refusal> {
        // A valid field is honoured for all requests, or else the rule is refused.
        Vec::new()
    }

    fn attaches_like(&self, other: &Self) -> bool {
        merge_alike(self, other)
    }
}

impl InheritedEffect for TrafficEffect {
    const FIELDS: &'static [Field<Self>] = &[
        Field { may_answer: true, ..Field::new(RATE_LIMIT, field_value!(rate_limit)) },
        Field::new(COMPRESSION, field_value!(compression)),
        Field::new(REQUEST_ID, field_value!(request_id)),
        Field { may_answer: true, ..Field::new(FAULT_INJECTION, field_value!(fault_injection)) },
        Field::new(GRPC_WEB, field_value!(grpc_web)),
        Field::new(RESPONSE_HEADERS, field_value!(response_headers)),
        Field::new(CACHE, field_value!(cache)),
    ];

    fn strategy(&self) -> MergeStrategy {
        self.strategy
    }

    fn refusal(&self, field: &'static str) -> Option<&Arc<str>> {
        self.rate_limit.as_ref().filter(|_| field == RATE_LIMIT)?.as_ref().err()
    }

    fn needs_address(&self, field: &'static str) -> bool {
        let limit =
            self.rate_limit.as_ref().filter(|_| field == RATE_LIMIT).and_then(|limit| limit.as_ref().ok());
        limit.is_some_and(LimitCount::is_by_address)
    }
}

fn limitations(effect: &TrafficEffect) -> Vec<Refusal> {
    let codings = effect.compression.as_ref();
    let has_brotli = codings.is_some_and(|codings| codings.brotli.is_some());
    let of_brotli =
        has_brotli.then(|| Capability::PreferredCoding.limit(FieldPath::new("spec").child(COMPRESSION)));
    // PingSIX cannot tell whether a backend gets the host by which a response would be cached (`crate::lower`).
    let of_cache = effect.cache.as_ref().map(|_| Capability::CacheOfAnyHost.limit(cache_field()));
    of_brotli.into_iter().chain(of_cache).collect()
}

#[cfg(test)]
mod tests;
