//! An evaluator of PingSIX's plugins, independent of the code that writes the documents.
//!
//! PingSIX: `src/plugins/{proxy_rewrite,response_rewrite,cors}.rs`, `src/proxy/upstream/*.rs`.

use pingsix_translate::pingsix::plugin::{
    BasicAuth, Brotli, Cache, Cors, Csrf, FaultInjection, ForwardedHeaderErrorPolicy, GrpcWeb, Gzip,
    IpRestriction, JwtAuth, KeyAuth, KeyMissingPolicy, LimitCount, PluginConfig as _, ProxyRewrite,
    RequestId, ResponseHeaders, ResponseRewrite, TrafficSplit,
};
use pingsix_translate::pingsix::{HashOn, PassHost, Plugins, Request, Scheme, Upstream};
use pingsix_translate::responder::RedirectInstruction;

use crate::effect::{Effect, Headers, STATUS, Way, backend_answer, collect, take_script};
use crate::protection::{Addresses, Claims, Credential, Place, Protection, Quota, Treatment};

/// The connection to an upstream.
pub(crate) fn way(upstream: &Upstream) -> Way {
    Way {
        timeout: upstream.timeout.as_ref().map(|timeout| (timeout.connect, timeout.send, timeout.read)),
        retries: upstream.retries.map_or(0, u64::from),
    }
}

/// The effect of the plugins on a request to an upstream and on its answer.
///
/// # Errors
///
/// A configuration with which PingSIX answers by itself, or does something these tests know nothing of.
pub(crate) fn effect(plugins: &Plugins, upstream: &Upstream, request: &Request) -> Result<Effect, String> {
    let rewrite = decode::<ProxyRewrite>(plugins)?.unwrap_or_default();
    if rewrite.method.is_some() {
        return Err("the method is changed".to_owned());
    }
    let mut host = request.host.clone();
    let rewrites_path = rewrite.uri.is_some() || !rewrite.regex_uri.is_empty();
    if request.http2 && upstream.scheme == Scheme::Grpc && rewrites_path {
        // The authority went with the path.
        host = None;
    }
    let mut sent = collect(&request.headers);
    if let Some(name) = &rewrite.host {
        // A fixed host is the host of the client without the client's port.
        let bare = |host: &str| host.split(':').next().unwrap_or_default().to_ascii_lowercase();
        if request.host.as_deref().map(bare) != Some(bare(name)) {
            host = Some(name.clone());
        }
    }
    change_request(&rewrite, &mut sent)?;
    if let Some(values) = sent.remove("host") {
        host = values.first().cloned();
    }
    match upstream.pass_host {
        PassHost::Pass => {}
        PassHost::Rewrite => host.clone_from(&upstream.upstream_host),
        PassHost::Node => return Err("the host is that of a node".to_owned()),
    }
    let origin = request.first_header("origin");
    let mut received = backend_answer();
    // In the order of the plugins' priorities.
    if let Some(cors) = decode::<Cors>(plugins)? {
        allow_origin(&cors, request, &mut received);
    }
    if let Some(rewrite) = decode::<ResponseRewrite>(plugins)? {
        change_response(rewrite, &mut received)?;
    }
    let script = take_script(&mut received, origin);
    Ok(Effect { target: target(&rewrite, request), host, request: sent, response: received, script })
}

/// Where the responder sends a client whose request reaches it through a route.
///
/// # Errors
///
/// PingSIX answers the request with an error.
pub(crate) fn instructed(plugins: &Plugins, request: &Request) -> Result<(u16, Option<String>), String> {
    let rewrite = decode::<ProxyRewrite>(plugins)?.unwrap_or_default();
    let mut sent = collect(&request.headers);
    change_request(&rewrite, &mut sent)?;
    let mut headers = http::HeaderMap::new();
    for (name, value) in sent.iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value)))
    {
        let name: http::HeaderName = name.parse().map_err(|error| format!("{name}: {error}"))?;
        headers.append(name, value.parse().map_err(|error| format!("{value}: {error}"))?);
    }
    let instruction = RedirectInstruction::from_headers(&headers).map_err(|error| error.to_string())?;
    let instruction = instruction.ok_or("nothing tells the responder where to")?;
    let target = target(&rewrite, request);
    let target = target.parse().map_err(|error| format!("{target}: {error}"))?;
    let host = request.host.as_deref().unwrap_or_default();
    Ok((instruction.status.code().as_u16(), instruction.location(host, &target).ok()))
}

/// The demands of plugins on a request that goes to a backend.
///
/// # Errors
///
/// A plugin, or a setting of one, that no policy asks for.
pub(crate) fn protection(plugins: &Plugins) -> Result<Protection, String> {
    let harmless = [Cors::NAME, ProxyRewrite::NAME, ResponseRewrite::NAME, TrafficSplit::NAME];
    let mut protection = Protection::default();
    for (name, _) in plugins.iter().filter(|(name, _)| !harmless.contains(name)) {
        let credential = match name {
            KeyAuth::NAME => {
                let KeyAuth { header, query, key: None, keys, hide_credentials: is_hidden } =
                    decode(plugins)?.unwrap_or_default()
                else {
                    return Err("a key beside keys".to_owned());
                };
                let place = Place { header, query, cookie: String::new(), is_hidden };
                Credential::Key { keys: keys.into_iter().collect(), place }
            }
            BasicAuth::NAME => {
                let BasicAuth { username: name, password, hide_credentials: is_hidden } =
                    decode(plugins)?.unwrap_or_default();
                Credential::User { name, password, is_hidden }
            }
            JwtAuth::NAME => token(decode(plugins)?.unwrap_or_default())?,
            IpRestriction::NAME => {
                let restriction: IpRestriction = decode(plugins)?.unwrap_or_default();
                if restriction.use_forwarded_headers == restriction.trusted_proxies.is_empty() {
                    return Err(format!("forwarded headers without or despite proxies: {restriction:?}"));
                }
                if restriction.use_forwarded_headers {
                    let demands =
                        restriction.forwarded_header_error_policy == ForwardedHeaderErrorPolicy::Deny;
                    let filled = decode::<RequestId>(plugins)?.is_some_and(|id| fills_in_no_address(&id));
                    if !demands || !filled {
                        return Err("a trusted proxy need not say whose request it forwards".to_owned());
                    }
                }
                protection.addresses = Some(Addresses {
                    allow: restriction.whitelist.into_iter().collect(),
                    deny: restriction.blacklist.into_iter().collect(),
                    proxies: restriction.trusted_proxies.into_iter().collect(),
                });
                continue;
            }
            Csrf::NAME => {
                let csrf: Csrf = decode(plugins)?.unwrap_or_default();
                protection.csrf = Some(csrf.key);
                continue;
            }
            other => {
                treat(other, plugins, &mut protection.treatment)?;
                continue;
            }
        };
        if protection.credential.replace(credential).is_some() {
            return Err("PingSIX would demand two credentials".to_owned());
        }
    }
    Ok(protection)
}

/// Whether requests without a readable `X-Forwarded-For` get one without an address.
fn fills_in_no_address(id: &RequestId) -> bool {
    id.header_name.eq_ignore_ascii_case("x-forwarded-for")
        && !id.include_in_response
        && id.algorithm == "range_id"
        && id.range_id.length == 0
}

/// Adds the treatment by a plugin.
fn treat(name: &str, plugins: &Plugins, treatment: &mut Treatment) -> Result<(), String> {
    let share = |percentage: Option<u32>| percentage.map_or(100, u64::from);
    match name {
        LimitCount::NAME => {
            let limit: LimitCount = decode(plugins)?.ok_or("no limit")?;
            let key = limit.key.as_str();
            let by = match (limit.key_type, key.strip_prefix("arg_")) {
                (HashOn::Vars, Some(name)) => Some(("parameter", name.to_owned())),
                (HashOn::Vars, None) if key == "remote_addr" => None,
                (HashOn::Vars, None) => return Err(format!("clients are told apart by {key}")),
                (HashOn::Head, _) => Some(("header", key.to_ascii_lowercase())),
                (HashOn::Cookie, _) => Some(("cookie", key.to_owned())),
            };
            let shares = match limit.key_missing_policy {
                KeyMissingPolicy::Allow => return Err("requests without a key are not counted".to_owned()),
                KeyMissingPolicy::Deny => false,
                KeyMissingPolicy::Default => true,
            };
            treatment.quota = Some(Quota {
                requests: limit.count.into(),
                seconds: limit.time_window.into(),
                by,
                shares,
                status: limit.rejected_code.into(),
                tells: limit.show_limit_quota_header,
            });
        }
        Gzip::NAME => {
            let gzip: Gzip = decode(plugins)?.unwrap_or_default();
            treatment.codings.insert("gzip".to_owned(), gzip.comp_level.map_or(1, u64::from));
        }
        Brotli::NAME => {
            let brotli: Brotli = decode(plugins)?.unwrap_or_default();
            treatment.codings.insert("br".to_owned(), brotli.comp_level.map_or(1, u64::from));
        }
        RequestId::NAME => {
            let id: RequestId = decode(plugins)?.unwrap_or_default();
            if fills_in_no_address(&id) && plugins.contains(IpRestriction::NAME) {
                return Ok(());
            }
            if id.algorithm != "uuid" {
                return Err(format!("ids are made by {}", id.algorithm));
            }
            treatment.id = Some((id.header_name.to_ascii_lowercase(), id.include_in_response));
        }
        FaultInjection::NAME => {
            let injected: FaultInjection = decode(plugins)?.unwrap_or_default();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a delay is at most a minute"
            )]
            let millis = |seconds: f64| (seconds * 1000.0).round() as u64;
            treatment.delay = injected.delay.map(|delay| (millis(delay.duration), share(delay.percentage)));
            treatment.error =
                injected.abort.map(|abort| (u64::from(abort.http_status), share(abort.percentage)));
        }
        GrpcWeb::NAME => treatment.is_web = true,
        Cache::NAME => {
            let cache: Cache = decode(plugins)?.ok_or("no cache")?;
            if cache.cache_authenticated_requests || cache.cache_set_cookie_responses {
                return Err("responses for one client are kept for others".to_owned());
            }
            // Without methods, nothing is kept.
            treatment.cache = (!cache.cache_http_methods.is_empty()).then(|| {
                let methods = cache.cache_http_methods.into_iter().collect();
                (cache.ttl, methods, cache.cache_http_statuses.into_iter().map(u64::from).collect())
            });
        }
        other => return Err(format!("nobody asks for the plugin {other}")),
    }
    Ok(())
}

fn token(auth: JwtAuth) -> Result<Credential, String> {
    let JwtAuth { header, query, cookie, hide_credentials: is_hidden, secret, algorithm, iss, aud, .. } =
        auth;
    let Some(secret) = secret.filter(|_| !auth.base64_secret && auth.public_key.is_none()) else {
        return Err("tokens are not verified with the secret as it is".to_owned());
    };
    let claims = Claims {
        issuer: iss,
        audience: aud,
        required: auth.required_claims.into_iter().collect(),
        leeway: auth.lifetime_grace_period,
    };
    // The name of a cookie ends at the first equals sign, so no request has such a cookie.
    let cookie = if cookie.contains('=') { String::new() } else { cookie };
    let place = Place { header, query, cookie, is_hidden };
    Ok(Credential::Token { secret, algorithm: format!("{algorithm:?}"), claims, place })
}

fn decode<C: pingsix_translate::pingsix::plugin::PluginConfig>(
    plugins: &Plugins,
) -> Result<Option<C>, String> {
    plugins.get::<C>().transpose().map_err(|error| format!("{}: {error}", C::NAME))
}

/// Path and query after the plugin; the query is appended, the path stays when no pattern fits or the new one is none.
fn target(rewrite: &ProxyRewrite, request: &Request) -> String {
    let query = request.query.as_deref().filter(|query| !query.is_empty());
    let with_query = |path: &str| query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
    let unchanged = with_query(&request.path);
    let path = match (&rewrite.uri, rewrite.regex_uri.chunks_exact(2)) {
        (Some(uri), _) => uri.clone(),
        (None, mut pairs) => {
            let filled = pairs.find_map(|pair| {
                let pattern = regex::Regex::new(&pair[0]).ok()?;
                pattern.captures(&request.path).map(|captures| fill(&pair[1], &captures))
            });
            match filled {
                Some(path) => path,
                None => return unchanged,
            }
        }
    };
    let changed = with_query(&path);
    if changed.parse::<http::Uri>().is_ok() { changed } else { unchanged }
}

/// Puts groups where `$` and digits stand.
fn fill(template: &str, captures: &regex::Captures<'_>) -> String {
    let reference = regex::Regex::new(r"\$(\d+)").unwrap();
    let group = |found: &regex::Captures<'_>| {
        let number: usize = found[1].parse().unwrap();
        if number == 0 {
            return found[0].to_owned();
        }
        captures.get(number).map(|group| group.as_str().to_owned()).unwrap_or_default()
    };
    reference.replace_all(template, group).into_owned()
}

/// Sets, removes and adds.
fn change_request(rewrite: &ProxyRewrite, headers: &mut Headers) -> Result<(), String> {
    let changes = rewrite.headers.clone().unwrap_or_default();
    for header in &changes.set {
        check(&header.name, &header.value)?;
        headers.insert(header.name.to_ascii_lowercase(), vec![header.value.clone()]);
    }
    for name in &changes.remove {
        headers.remove(&name.to_ascii_lowercase());
    }
    for header in &changes.add {
        check(&header.name, &header.value)?;
        headers.entry(header.name.to_ascii_lowercase()).or_default().push(header.value.clone());
    }
    Ok(())
}

/// Removes, sets and adds.
fn change_response(rewrite: ResponseRewrite, headers: &mut Headers) -> Result<(), String> {
    if rewrite.vars.is_some() {
        return Err("headers are changed on conditions".to_owned());
    }
    if let Some(status) = rewrite.status_code {
        headers.insert(STATUS.to_owned(), vec![status.to_string()]);
    }
    let (add, set, remove) = match rewrite.headers {
        None => return Ok(()),
        Some(ResponseHeaders::Simple(set)) => (Vec::new(), set, Vec::new()),
        Some(ResponseHeaders::Structured { add, set, remove }) => (add, set, remove),
    };
    for name in remove {
        headers.remove(&name.to_ascii_lowercase());
    }
    for (name, value) in set {
        check(&name, &value)?;
        headers.insert(name.to_ascii_lowercase(), vec![value]);
    }
    for line in add {
        let (name, value) = line.split_once(':').ok_or_else(|| format!("no name: {line}"))?;
        let (name, value) = (name.trim(), value.trim());
        check(name, value)?;
        headers.entry(name.to_ascii_lowercase()).or_default().push(value.to_owned());
    }
    Ok(())
}

/// Refuses values for which PingSIX answers every request with 500, and values that PingSIX replaces.
fn check(name: &str, value: &str) -> Result<(), String> {
    if name.parse::<http::HeaderName>().is_err() || value.parse::<http::HeaderValue>().is_err() {
        return Err(format!("not a header: {name}: {value}"));
    }
    Ok(())
}

/// The headers of an answer to a preflight that is allowed.
pub(crate) fn preflight(plugins: &Plugins, request: &Request) -> Result<Headers, String> {
    let cors = decode::<Cors>(plugins)?.ok_or("a preflight was answered, and there is no plugin for it")?;
    let mut headers = Headers::new();
    allow_origin(&cors, request, &mut headers);
    Ok(headers)
}

fn allow_origin(cors: &Cors, request: &Request, headers: &mut Headers) {
    let Some(origin) = request.first_header("origin") else { return };
    let is_any = |list: &str| matches!(list, "*" | "**");
    let by_pattern = || {
        let patterns = cors.allow_origins_by_regex.iter().flatten();
        patterns.flat_map(|pattern| regex::Regex::new(pattern)).any(|pattern| pattern.is_match(origin))
    };
    let is_listed = cors.allow_origins.split(',').any(|listed| listed.trim() == origin);
    if cors.allow_origins.is_empty() || !(is_any(&cors.allow_origins) || is_listed || by_pattern()) {
        return;
    }
    let mut set = |name: &str, value: &str| {
        headers.insert(format!("access-control-{name}"), vec![value.to_owned()]);
    };
    let reflects = cors.allow_credential || !is_any(&cors.allow_origins);
    set("allow-origin", if reflects { origin } else { "*" });
    if cors.allow_credential {
        set("allow-credentials", "true");
    }
    let every_method = "GET,POST,PUT,DELETE,PATCH,OPTIONS,HEAD";
    set("allow-methods", if cors.allow_methods == "**" { every_method } else { &cors.allow_methods });
    let asked = request.first_header("access-control-request-headers").unwrap_or_default();
    set("allow-headers", if cors.allow_headers == "**" { asked } else { &cors.allow_headers });
    set("max-age", &cors.max_age.to_string());
    if let Some(names) = &cors.expose_headers {
        set("expose-headers", names);
    }
}
