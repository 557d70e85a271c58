//! Redirects.

use super::destination::{Destination, path_as_written, with_braces};
use super::{
    Concern, HttpsRedirect, IngressAnnotations, SSL_REDIRECT, Support, Unless, Values, lacking, no_effect,
    protects, tunes,
};
use crate::responder::RedirectStatus;

/// Both controllers send clients to the URL or the path as it is written.
const KEPT_QUERY: &str = "The query of a request is kept.";

/// The difference of a redirect to a URL.
const TO_URL: Support =
    Support::Limited("Unless the URL ends with `$request_uri`, the query of a request is kept.");

pub(super) const NGINX: Concern = Concern {
    annotations: &[
        protects("permanent-redirect", TO_URL),
        tunes("permanent-redirect-code", Support::Exact),
        protects("temporal-redirect", TO_URL),
        tunes("temporal-redirect-code", Support::Exact),
        lacking("relative-redirects", Unless::Is(false), "PingSIX redirects to whole URLs."),
        no_effect("preserve-trailing-slash"),
        // The ports of ingress-nginx are those that URLs leave out.
        no_effect("use-port-in-redirects"),
        tunes("ssl-redirect", Support::Exact),
        tunes("force-ssl-redirect", Support::Exact),
        tunes("app-root", Support::Limited(KEPT_QUERY)),
    ],
    read,
};

pub(super) const APISIX: Concern = Concern {
    annotations: &[
        tunes("http-to-https", Support::Limited("PingSIX redirects every method with status 308.")),
        protects("http-redirect", TO_URL),
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
            values.limit("app-root");
        } else if !path.starts_with('/') {
            values.ignore("app-root", format!("\"{path}\" is no path."));
        } else {
            values.refuse("app-root", format!("\"{path}\" is no path."));
        }
    }
    // ingress-nginx prefers the temporary one. It replaces other codes by the default.
    let kinds = [("temporal-redirect", 302, 300..=307), ("permanent-redirect", 301, 300..=308)];
    let Some((name, default, codes)) = kinds.into_iter().find(|(name, ..)| values.text(name).is_some())
    else {
        return;
    };
    let code = format!("{name}-code");
    let status = values.number(&code, 0..=u32::MAX).unwrap_or(default);
    let is_code = codes.contains(&status);
    if !is_code {
        values.differ(&code, format!("ingress-nginx ignores the code, so the status is {default}."));
    }
    if add_redirect(name, if is_code { status } else { default }, values, read) {
        read.redirects_hosts = true;
    }
}

/// Adds the redirect to the URL of an annotation. An Ingress never serves requests that it cannot redirect. Returns whether
/// the redirect counts.
fn add_redirect(name: &str, status: u32, values: &mut Values<'_>, read: &mut IngressAnnotations) -> bool {
    let Some(url) = values.text(name) else { return false };
    let redirect = || {
        let status = u16::try_from(status).ok().and_then(RedirectStatus::from_u16);
        let status = status.ok_or("the status is none of 301, 302, 303, 307 and 308")?;
        let url = with_braces(url)?;
        let (destination, rest) = Destination::read(&url)?;
        let (path, keeps_query) = path_as_written(rest)?;
        Ok::<_, &str>((destination.filter(path, status), keeps_query))
    };
    match redirect() {
        Ok(_) if read.redirects() => {
            values.differ(name, "Another annotation redirects the requests before.");
            false
        }
        Ok((redirect, keeps_query)) => {
            if !keeps_query {
                values.differ(name, KEPT_QUERY);
            }
            read.filters.push(redirect);
            true
        }
        Err(why) => {
            values.refuse(name, format!("\"{url}\" cannot be the target: {why}."));
            false
        }
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
