//! Redirects.

use gateway_api::experimental::httproutes as api;
use http::Uri;

use super::{
    Concern, HttpsRedirect, IngressAnnotations, Purpose, SSL_REDIRECT, Support, Unless, Values, not_honoured,
    tunes,
};

/// ingress-nginx sends clients to the URL as it is written.
const KEPT_QUERY: &str = "The query of a request is kept.";

pub(super) const NGINX: Concern = Concern {
    annotations: &[
        tunes("permanent-redirect", Support::Limited(KEPT_QUERY)),
        tunes("permanent-redirect-code", Support::Exact),
        tunes("temporal-redirect", Support::Limited(KEPT_QUERY)),
        tunes("temporal-redirect-code", Support::Exact),
        not_honoured(
            "relative-redirects",
            Purpose::Tunes,
            Unless::Is(false),
            "PingSIX redirects to whole URLs.",
        ),
        tunes("preserve-trailing-slash", Support::NoEffect),
        tunes("ssl-redirect", Support::Exact),
        tunes("force-ssl-redirect", Support::Exact),
        tunes("app-root", Support::Exact),
    ],
    read,
};

pub(super) const APISIX: Concern = Concern {
    annotations: &[
        tunes("http-to-https", Support::Limited("PingSIX redirects every method with status 308.")),
        tunes("http-redirect", Support::Limited(KEPT_QUERY)),
        tunes("http-redirect-code", Support::Exact),
    ],
    read: read_apisix,
};

fn read_apisix(values: &mut Values<'_>, read: &mut IngressAnnotations) {
    if values.flag("http-to-https") {
        values.limit("http-to-https");
        read.https = HttpsRedirect { with_tls: true, without_tls: true, spares_challenges: false };
        read.sources.insert(SSL_REDIRECT, values.whole_name("http-to-https"));
        return;
    }
    // APISIX replaces other codes by its default.
    let code = values.text("http-redirect-code").and_then(|code| code.parse().ok());
    let status = code.filter(|code| (301..=308).contains(code)).unwrap_or(301);
    add_redirect("http-redirect", status, values, read);
}

fn read(values: &mut Values<'_>, read: &mut IngressAnnotations) {
    read_https(values, read);
    if let Some(path) = values.text("app-root") {
        if path.starts_with('/') && !path.contains(['$', '?', '#']) {
            read.app_root = Some(path.to_owned());
        } else {
            values.refuse("app-root", format!("\"{path}\" is no path."));
        }
    }
    // ingress-nginx prefers the temporary one.
    let kinds = [("temporal-redirect", 302), ("permanent-redirect", 301)];
    let Some((name, default)) = kinds.into_iter().find(|(name, _)| values.text(name).is_some()) else {
        return;
    };
    let status = values.number(&format!("{name}-code"), 300..=308).unwrap_or(default);
    add_redirect(name, status, values, read);
}

/// Adds the redirect to the URL of an annotation.
fn add_redirect(name: &str, status: u32, values: &mut Values<'_>, read: &mut IngressAnnotations) {
    let Some(url) = values.text(name) else { return };
    match redirect(url, status) {
        Ok(redirect) => {
            values.limit(name);
            read.filters.push(redirect);
        }
        Err(why) => values.refuse(name, format!("\"{url}\" cannot be the target: {why}.")),
    }
}

/// ingress-nginx redirects hosts with a certificate by default. An Ingress without any of its annotations stays as it is.
fn read_https(values: &mut Values<'_>, read: &mut IngressAnnotations) {
    if values.is_empty() {
        return;
    }
    let force = values.flag("force-ssl-redirect");
    let with_tls = values.flag_or("ssl-redirect", true);
    read.https = HttpsRedirect { with_tls: with_tls || force, without_tls: force, spares_challenges: true };
    let source = if force { "force-ssl-redirect" } else { SSL_REDIRECT };
    read.sources.insert(SSL_REDIRECT, values.whole_name(source));
}

/// The filter that sends all requests to a URL.
fn redirect(url: &str, status: u32) -> Result<api::HttpRouteRulesFilters, &'static str> {
    use api::HttpRouteRulesFiltersRequestRedirectScheme as Scheme;
    if url.contains('$') {
        return Err("PingSIX has no variables for it");
    }
    let uri: Uri = url.parse().map_err(|_| "it is no URL")?;
    if uri.query().is_some() || url.contains('#') {
        return Err("it has more than a path");
    }
    let scheme = match uri.scheme_str() {
        Some("http") => Some(Scheme::Http),
        Some("https") => Some(Scheme::Https),
        None if url.starts_with('/') => None,
        Some(_) | None => return Err("it needs the scheme http or https"),
    };
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("it has a user");
    }
    let path = if uri.path().is_empty() { "/" } else { uri.path() };
    Ok(api::HttpRouteRulesFilters {
        r#type: api::HttpRouteRulesFiltersType::RequestRedirect,
        request_redirect: Some(api::HttpRouteRulesFiltersRequestRedirect {
            scheme,
            hostname: uri.host().map(str::to_owned),
            port: uri.port_u16().map(i32::from),
            path: Some(api::HttpRouteRulesFiltersRequestRedirectPath {
                r#type: api::HttpRouteRulesFiltersRequestRedirectPathType::ReplaceFullPath,
                replace_full_path: Some(path.to_owned()),
                replace_prefix_match: None,
            }),
            status_code: Some(i64::from(status)),
        }),
        ..api::HttpRouteRulesFilters::default()
    })
}
