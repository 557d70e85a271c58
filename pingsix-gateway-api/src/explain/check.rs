//! The plugins that may answer a request, or hold it up, before the rest does.

use pingsix_translate::pingsix::plugin::{
    BasicAuth, Cache, Cors, Csrf, FaultInjection, IpRestriction, JwtAuth, KeyAuth, LimitCount,
};
use pingsix_translate::pingsix::{HashOn, PluginConfig, Plugins, Request, Route};
use serde::Serialize;

use super::Plane;
use super::policies::PolicyPlugins;

/// The number of entries of a list that are named.
const MAX_NAMED_ENTRIES: usize = 3;

/// A plugin that may answer a request, or hold it up, before the rest does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Check {
    /// The plugin.
    pub plugin: &'static str,
    /// The policy that asks for the plugin; `None` for a filter of the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The effect, in words. Secrets are not shown.
    pub effect: String,
}

/// The checks of the requests of a Route, in the order in which PingSIX runs them (`src/plugins/*.rs`).
pub(super) fn checks(
    plane: &Plane<'_>,
    route: &Route,
    policies: &[PolicyPlugins],
    request: &Request,
) -> Vec<Check> {
    let service = route.service_id.as_deref().and_then(|id| plane.config.service(id));
    let plugins = Merged { of_route: &route.plugins, of_service: service.map(|service| &service.plugins) };
    let effects = [
        (FaultInjection::NAME, plugins.get().and_then(delay_or_abort)),
        (Cors::NAME, plugins.get().map(|cors: Cors| origins(&cors))),
        (IpRestriction::NAME, plugins.get().map(addresses)),
        (Csrf::NAME, plugins.get().and_then(|csrf: Csrf| csrf_token(&csrf, request))),
        (
            BasicAuth::NAME,
            plugins.get().map(|user: BasicAuth| {
                format!("401 without user and password{}", removed(user.hide_credentials))
            }),
        ),
        (JwtAuth::NAME, plugins.get().map(token)),
        (KeyAuth::NAME, plugins.get().map(key)),
        (Cache::NAME, plugins.get().and_then(|cache: Cache| cached(&cache, request))),
        (LimitCount::NAME, plugins.get().map(|limit: LimitCount| quota(&limit))),
    ];
    let policy_of = |plugin: &str| {
        let has = |policy: &&PolicyPlugins| policy.plugins.iter().any(|name| name == plugin);
        policies.iter().find(has).map(|policy| policy.policy.clone())
    };
    let check = |(plugin, effect): (&'static str, Option<String>)| {
        Some(Check { plugin, policy: policy_of(plugin), effect: effect? })
    };
    effects.into_iter().filter_map(check).collect()
}

/// The plugins of a Route, and those of its service that the Route does not replace.
struct Merged<'a> {
    of_route: &'a Plugins,
    of_service: Option<&'a Plugins>,
}

impl Merged<'_> {
    fn get<C: PluginConfig>(&self) -> Option<C> {
        self.of_route.get::<C>().or_else(|| self.of_service?.get::<C>())?.ok()
    }
}

fn delay_or_abort(injected: FaultInjection) -> Option<String> {
    let share = |percentage: Option<u32>| match percentage {
        None | Some(100..) => "every request".to_owned(),
        Some(share) => format!("{share} % of the requests"),
    };
    let delay =
        injected.delay.map(|delay| format!("delays {} by {} s", share(delay.percentage), delay.duration));
    let abort = injected.abort.map(|abort| format!("{} for {}", abort.http_status, share(abort.percentage)));
    let effects: Vec<String> = delay.into_iter().chain(abort).collect();
    (!effects.is_empty()).then(|| effects.join(", "))
}

fn origins(cors: &Cors) -> String {
    let listed: Vec<&str> = cors.allow_origins.split(',').filter(|origin| !origin.is_empty()).collect();
    let patterns = cors.allow_origins_by_regex.iter().flatten().map(String::as_str);
    let origins: Vec<&str> = listed.into_iter().chain(patterns).collect();
    let origins =
        if matches!(origins.as_slice(), ["*" | "**"]) { "any origin".to_owned() } else { named(&origins) };
    format!("answers preflights, and lets scripts of {origins} read responses")
}

fn addresses(restriction: IpRestriction) -> String {
    let IpRestriction { whitelist, blacklist, trusted_proxies, use_forwarded_headers, .. } = restriction;
    let allowed =
        (!whitelist.is_empty()).then(|| format!("403 unless the client is in {}", networks(&whitelist)));
    let denied = (!blacklist.is_empty()).then(|| format!("403 if the client is in {}", networks(&blacklist)));
    let behind = use_forwarded_headers
        .then(|| format!("behind {}, X-Forwarded-For has the client", networks(&trusted_proxies)));
    allowed.into_iter().chain(denied).chain(behind).collect::<Vec<_>>().join("; ")
}

fn csrf_token(csrf: &Csrf, request: &Request) -> Option<String> {
    let is_safe = matches!(request.method.as_str(), "GET" | "HEAD" | "OPTIONS" | "TRACE");
    (!is_safe).then(|| format!("401 without the token in header and cookie {}", csrf.name))
}

fn token(auth: JwtAuth) -> String {
    let JwtAuth { header, query, cookie, hide_credentials, .. } = auth;
    format!("401 without a token in {}{}", places(&header, &query, &cookie), removed(hide_credentials))
}

fn key(auth: KeyAuth) -> String {
    let KeyAuth { header, query, hide_credentials, .. } = auth;
    format!("401 without a key in {}{}", places(&header, &query, ""), removed(hide_credentials))
}

/// The places of a credential. No cookie has an equals sign in its name.
fn places(header: &str, query: &str, cookie: &str) -> String {
    let cookie = if cookie.contains('=') { "" } else { cookie };
    let places = [("header", header), ("query parameter", query), ("cookie", cookie)];
    let places = places.into_iter().filter(|(_, name)| !name.is_empty());
    places.map(|(place, name)| format!("{place} {name}")).collect::<Vec<_>>().join(" or ")
}

const fn removed(is_hidden: bool) -> &'static str {
    if is_hidden { ", which the backend does not get" } else { "" }
}

fn cached(cache: &Cache, request: &Request) -> Option<String> {
    let is_kept = cache.cache_http_methods.contains(&request.method);
    is_kept.then(|| format!("may answer by a response of the last {} s", cache.ttl))
}

fn quota(limit: &LimitCount) -> String {
    let LimitCount { key_type, key, time_window, count, rejected_code, .. } = limit;
    let by = match (key_type, key.strip_prefix("arg_")) {
        (HashOn::Vars, Some(name)) => format!("with one value of query parameter {name}"),
        (HashOn::Vars, None) => "of one address".to_owned(),
        (HashOn::Head, _) => format!("with one value of header {key}"),
        (HashOn::Cookie, _) => format!("with one value of cookie {key}"),
    };
    format!("{rejected_code} after {count} requests {by} in {time_window} s")
}

/// The networks that policies name, without those of IPv4 in IPv6, which stand beside the ones of IPv4.
fn networks(networks: &[String]) -> String {
    let own: Vec<&String> = networks.iter().filter(|network| !network.starts_with("::ffff:")).collect();
    if own.is_empty() { named(networks) } else { named(&own) }
}

/// The first entries of a list.
fn named<T: AsRef<str>>(entries: &[T]) -> String {
    let first: Vec<&str> = entries.iter().take(MAX_NAMED_ENTRIES).map(AsRef::as_ref).collect();
    match entries.len().saturating_sub(MAX_NAMED_ENTRIES) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}
