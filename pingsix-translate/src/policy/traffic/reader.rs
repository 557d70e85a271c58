//! The fields of a TrafficPolicy as plugins of PingSIX, within the bounds of these plugins.

use gateway_api::experimental::httproutes as api;

use super::{
    CACHE, COMPRESSION, Codings, FAULT_INJECTION, GRPC_WEB, RATE_LIMIT, REQUEST_ID, RESPONSE_HEADERS,
    TrafficEffect,
};
use crate::crd::{
    self, CacheMethod, CompressionType, LocalRateLimit, MissingKey, RateLimitKeyType, RateLimitUnit,
    ResponseHeader, TrafficPolicySpec, UnreadableField,
};
use crate::model::{FieldPath, Reason, Refusal};
use crate::normalise::{HeaderChanges, header_name};
use crate::pingsix::plugin::{
    Abort, Brotli, Cache, Delay, FaultInjection, GrpcWeb, Gzip, KeyMissingPolicy, LimitCount, RequestId,
    ResponseRewrite,
};
use crate::pingsix::{HashOn, Plugins};
use crate::policy::inherited::{FieldValue, acceptance_refusals, unreadable_refusal};

/// The longest delay in milliseconds. PingSIX holds each delayed request for the time.
const LONGEST_DELAY: u128 = 60_000;

/// The longest time for which a response is fresh, in seconds.
const LONGEST_TTL: u128 = 86_400;

/// The most requests of a limit.
const MOST_REQUESTS: u32 = 1_000_000_000;

/// Reads the fields of a spec, and collects the reasons against those that are not applied.
pub(super) struct Reader<'s> {
    unreadable: &'s [UnreadableField],
    unapplied: Vec<Refusal>,
}

/// The place of a value, and its refusals.
struct Refusals {
    at: FieldPath,
    list: Vec<Refusal>,
}

impl Refusals {
    /// The value is invalid at a path such as `local.key.name`.
    fn invalid(&mut self, field: &str, message: impl Into<String>) {
        let at = field.split('.').fold(self.at.clone(), |at, name| at.child(name));
        self.add(at, message);
    }

    /// The value is invalid as a whole.
    fn whole(&mut self, message: &str) {
        self.add(self.at.clone(), message);
    }

    fn add(&mut self, at: FieldPath, message: impl Into<String>) {
        self.list.push(Refusal::new(at, Reason::Invalid, message));
    }

    fn percentage(&mut self, field: &str, percentage: u32) -> Option<u32> {
        if percentage > 100 {
            self.invalid(field, format!("{percentage} is not a share from 0 to 100 per cent."));
        }
        // PingSIX affects every request without a share.
        Some(percentage).filter(|percentage| *percentage != 100)
    }

    /// A duration in milliseconds; 0 after a refusal.
    fn millis(&mut self, field: &str, text: &str) -> u128 {
        text.parse::<gateway_api::Duration>().map_or_else(
            |_| {
                self.invalid(field, format!("\"{text}\" is not a duration such as 10s or 200ms."));
                0
            },
            |duration| duration.as_millis(),
        )
    }
}

impl<'s> Reader<'s> {
    pub(super) const fn new(unreadable: &'s [UnreadableField]) -> Self {
        Self { unreadable, unapplied: Vec::new() }
    }

    pub(super) fn finish(self) -> Vec<Refusal> {
        self.unapplied
    }

    pub(super) fn read(&mut self, spec: &TrafficPolicySpec) -> TrafficEffect {
        let rate_limit = self.field(RATE_LIMIT, spec.rate_limit.as_ref(), |limit, refusals| {
            rate_limit(&limit.local, refusals)
        });
        TrafficEffect {
            strategy: spec.strategy,
            rate_limit: rate_limit.map(|limit| limit.map_err(|refusal| refusal.to_string().into())),
            compression: self.optional(COMPRESSION, spec.compression.as_ref(), |list, refusals| {
                compression(list, refusals)
            }),
            request_id: self.optional(REQUEST_ID, spec.request_id.as_ref(), request_id),
            fault_injection: self.optional(FAULT_INJECTION, spec.fault_injection.as_ref(), fault_injection),
            grpc_web: self.optional(GRPC_WEB, spec.grpc_web.as_ref(), |_, _| GrpcWeb {}),
            response_headers: self.optional(
                RESPONSE_HEADERS,
                spec.response_headers.as_ref(),
                response_headers,
            ),
            cache: self.optional(CACHE, spec.cache.as_ref(), cache),
        }
    }

    /// A field that is not applied if it is invalid.
    fn optional<T, V: FieldValue>(
        &mut self,
        name: &str,
        value: Option<&T>,
        read: impl FnOnce(&T, &mut Refusals) -> V,
    ) -> Option<V> {
        let field = self.field(name, value, read)?;
        if field.is_err()
            && let Some(last) = self.unapplied.last_mut()
        {
            last.message.push_str(" The field is not applied.");
        }
        field.ok()
    }

    /// A field, or its first refusal; `None` if the field is not set.
    fn field<T, V: FieldValue>(
        &mut self,
        name: &str,
        value: Option<&T>,
        read: impl FnOnce(&T, &mut Refusals) -> V,
    ) -> Option<Result<V, Refusal>> {
        let at = FieldPath::new("spec").child(name);
        let unreadable = self.unreadable.iter().filter(|field| field.top_level() == name);
        let mut refusals = Refusals { at: at.clone(), list: unreadable.map(unreadable_refusal).collect() };
        let read = value.map(|value| read(value, &mut refusals));
        let mut list = refusals.list;
        if let Some(read) = read.as_ref().filter(|_| list.is_empty()) {
            let mut plugins = Plugins::default();
            read.add_to(&mut plugins);
            list = acceptance_refusals(plugins, &at);
        }
        let first = list.first().cloned();
        self.unapplied.append(&mut list);
        match first {
            Some(refusal) => Some(Err(refusal)),
            None => read.map(Ok),
        }
    }
}

fn rate_limit(limit: &LocalRateLimit, refusals: &mut Refusals) -> LimitCount {
    let requests = limit.limit.requests;
    if !(1..=MOST_REQUESTS).contains(&requests) {
        let message = format!("{requests} is not a number of requests from 1 to {MOST_REQUESTS}.");
        refusals.invalid("local.limit.requests", message);
    }
    if !(400..=599).contains(&limit.reject_code) {
        let message = format!("{} is not a status from 400 to 599.", limit.reject_code);
        refusals.invalid("local.rejectCode", message);
    }
    let name = limit.key.name.as_deref();
    let (key_type, key) = match (limit.key.r#type, name) {
        (RateLimitKeyType::RemoteAddress, None) => (HashOn::Vars, "remote_addr".to_owned()),
        (RateLimitKeyType::RemoteAddress, Some(_)) => {
            refusals.invalid("local.key.name", "Only a header, a cookie and a query parameter have a name.");
            return LimitCount::default();
        }
        (_, None) => {
            refusals.invalid("local.key.name", "A header, a cookie and a query parameter need a name.");
            return LimitCount::default();
        }
        // PingSIX takes no other characters (`src/plugins/limit_count.rs`, `validate_key`).
        (_, Some(name)) if !is_key(name) => {
            let message = format!("\"{name}\" has other characters than letters, digits, -, _ and a dot.");
            refusals.invalid("local.key.name", message);
            return LimitCount::default();
        }
        (RateLimitKeyType::Header, Some(name)) => (HashOn::Head, name.to_ascii_lowercase()),
        (RateLimitKeyType::Cookie, Some(name)) => (HashOn::Cookie, name.to_owned()),
        (RateLimitKeyType::QueryParam, Some(name)) => (HashOn::Vars, format!("arg_{name}")),
    };
    LimitCount {
        key_type,
        key,
        time_window: match limit.limit.unit {
            RateLimitUnit::Second => 1,
            RateLimitUnit::Minute => 60,
            RateLimitUnit::Hour => 3_600,
            RateLimitUnit::Day => 86_400,
        },
        count: requests,
        rejected_code: limit.reject_code,
        show_limit_quota_header: limit.quota_headers,
        key_missing_policy: match limit.on_missing_key {
            MissingKey::Share => KeyMissingPolicy::Default,
            MissingKey::Deny => KeyMissingPolicy::Deny,
        },
        ..LimitCount::default()
    }
}

fn is_key(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    (1..=256).contains(&name.len()) && name.chars().all(is_plain)
}

fn compression(list: &[crd::Compression], refusals: &mut Refusals) -> Codings {
    let mut codings = Codings::default();
    if list.is_empty() {
        refusals.whole("The list is empty.");
    }
    for (index, crd::Compression { r#type: kind, level }) in list.iter().enumerate() {
        let at = refusals.at.index(index);
        let (most, is_repeated) = match kind {
            CompressionType::Gzip => (9, codings.gzip.is_some()),
            CompressionType::Brotli => (11, codings.brotli.is_some()),
        };
        if is_repeated {
            refusals.add(at.child("type"), format!("The list has {kind:?} twice."));
        }
        // With level 0, PingSIX compresses nothing.
        if let Some(level) = level.filter(|level| !(1..=most).contains(level)) {
            refusals.add(at.child("level"), format!("{level} is not a level of {kind:?}, from 1 to {most}."));
        }
        match kind {
            CompressionType::Gzip => codings.gzip = Some(Gzip { comp_level: *level, ..Gzip::default() }),
            CompressionType::Brotli => {
                codings.brotli = Some(Brotli { comp_level: *level, ..Brotli::default() });
            }
        }
    }
    codings
}

fn request_id(written: &crd::RequestId, refusals: &mut Refusals) -> RequestId {
    let default = RequestId::default();
    let name = written.header_name.as_deref().unwrap_or(&default.header_name);
    match header_name(name) {
        Ok(header) if header == http::header::HOST => {
            refusals.invalid("headerName", "The Host header has the host of a request.");
        }
        Ok(_) => {}
        Err(message) => refusals.invalid("headerName", message),
    }
    RequestId {
        header_name: name.to_owned(),
        include_in_response: written.in_response.unwrap_or(default.include_in_response),
        ..RequestId::default()
    }
}

fn fault_injection(written: &crd::FaultInjection, refusals: &mut Refusals) -> FaultInjection {
    if written.delay.is_none() && written.abort.is_none() {
        refusals.whole("One of delay and abort has to be set.");
    }
    let delay = written.delay.as_ref().map(|delay| {
        let millis = refusals.millis("delay.duration", &delay.duration);
        if millis > LONGEST_DELAY {
            refusals.invalid("delay.duration", format!("\"{}\" is longer than 60s.", delay.duration));
        }
        let percentage = refusals.percentage("delay.percentage", delay.percentage);
        // Exact: the number is at most `LONGEST_DELAY`.
        let duration = u32::try_from(millis).map_or(0.0, |millis| f64::from(millis) / 1000.0);
        Delay { duration, percentage }
    });
    let abort = written.abort.as_ref().map(|abort| {
        let status = abort.http_status;
        if !(200..=599).contains(&status) {
            refusals.invalid("abort.httpStatus", format!("{status} is not a status from 200 to 599."));
        }
        let percentage = refusals.percentage("abort.percentage", abort.percentage);
        Abort { http_status: status, percentage, ..Abort::default() }
    });
    FaultInjection { delay, abort }
}

fn response_headers(written: &crd::ResponseHeaderChanges, refusals: &mut Refusals) -> ResponseRewrite {
    fn read<H>(headers: &[ResponseHeader], of: fn(String, String) -> H) -> Vec<H> {
        headers.iter().map(|header| of(header.name.clone(), header.value.clone())).collect()
    }
    let filter =
        api::HttpRouteRulesFiltersResponseHeaderModifier {
            set: Some(read(&written.set, |name, value| {
                api::HttpRouteRulesFiltersResponseHeaderModifierSet { name, value }
            })),
            add: Some(read(&written.add, |name, value| {
                api::HttpRouteRulesFiltersResponseHeaderModifierAdd { name, value }
            })),
            remove: Some(written.remove.clone()),
        };
    let changes = HeaderChanges::of_response(&filter, &refusals.at, &mut refusals.list);
    if changes.is_empty() && refusals.list.is_empty() {
        refusals.whole("One of set, add and remove has to be set.");
    }
    ResponseRewrite { headers: changes.lower_response(), ..ResponseRewrite::default() }
}

fn cache(written: &crd::ResponseCache, refusals: &mut Refusals) -> Cache {
    let default = Cache::default();
    let millis = refusals.millis("ttl", &written.ttl);
    let is_whole = millis.is_multiple_of(1000) && (1..=LONGEST_TTL).contains(&(millis / 1000));
    if !is_whole && refusals.list.is_empty() {
        let message =
            format!("\"{}\" is not a time in whole seconds from 1s to {LONGEST_TTL}s.", written.ttl);
        refusals.invalid("ttl", message);
    }
    if written.methods.as_ref().is_some_and(Vec::is_empty) {
        refusals.invalid("methods", "The list is empty.");
    }
    let statuses = written.statuses.clone().unwrap_or(default.cache_http_statuses);
    if statuses.is_empty() {
        refusals.invalid("statuses", "The list is empty.");
    }
    for (index, status) in statuses.iter().enumerate() {
        // 206 is a part of a response, and 304 none.
        if !(200..=599).contains(status) || [206, 304].contains(status) {
            let at = refusals.at.child("statuses").index(index);
            refusals.add(at, format!("Responses of status {status} cannot be kept."));
        }
    }
    let method = |method: &CacheMethod| match method {
        CacheMethod::Get => "GET".to_owned(),
        CacheMethod::Head => "HEAD".to_owned(),
    };
    let methods = written.methods.as_ref().map(|methods| methods.iter().map(method).collect());
    Cache {
        ttl: u64::try_from(millis / 1000).unwrap_or(1),
        cache_http_methods: methods.unwrap_or(default.cache_http_methods),
        cache_http_statuses: statuses,
        ..Cache::default()
    }
}
