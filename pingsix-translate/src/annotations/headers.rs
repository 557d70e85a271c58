//! Headers of requests and responses, the Host for backends, and the status of responses.

use gateway_api::experimental::httproutes as api;

use super::values::is_object_name;
use super::{
    BLANK, Concern, IngressAnnotations, Support, Unless, Values, lacking, list, no_effect, request_headers,
    tunes,
};
use crate::model::{Hostname, ObjectName};
use crate::snapshot::CUSTOM_HEADERS;

/// The annotation with the status of the responses of backends.
const RESPONSE_STATUS: &str = "response-rewrite-status-code";

pub(super) const NGINX: Concern = Concern {
    annotations: &[
        tunes("upstream-vhost", Support::Exact),
        tunes("x-forwarded-prefix", Support::Exact),
        tunes(CUSTOM_HEADERS, Support::Exact),
        lacking("connection-proxy-header", BLANK, "PingSIX sets the header Connection itself."),
        lacking("proxy-cookie-domain", Unless::Values(&["", "off"]), NO_REWRITES),
        lacking("proxy-cookie-path", Unless::Values(&["", "off"]), NO_REWRITES),
        lacking("proxy-redirect-from", Unless::Values(&["", "off", "default"]), NO_REWRITES),
        lacking("proxy-redirect-to", Unless::Values(&["", "off", "default"]), NO_REWRITES),
    ],
    read,
};

pub(super) const APISIX: Concern = Concern {
    annotations: &[
        tunes("enable-response-rewrite", Support::Exact),
        list(tunes("response-rewrite-add-header", Support::Exact)),
        list(tunes("response-rewrite-remove-header", Support::Exact)),
        list(tunes("response-rewrite-set-header", Support::Exact)),
        lacking("response-rewrite-body", BLANK, "PingSIX passes the bodies of backends on."),
        no_effect("response-rewrite-body-base64"),
        tunes(
            RESPONSE_STATUS,
            Support::Limited("Responses of PingSIX itself, such as redirects, keep their status."),
        ),
    ],
    read: read_apisix,
};

fn read_apisix(values: &mut Values<'_>, read: &mut IngressAnnotations) {
    if !values.flag("enable-response-rewrite") {
        return;
    }
    read_status(values, read);
    let add = response_headers(values, "response-rewrite-add-header");
    let set = response_headers(values, "response-rewrite-set-header");
    let remove = values.list("response-rewrite-remove-header").unwrap_or_default();
    if add.is_empty() && set.is_empty() && remove.is_empty() {
        return;
    }
    let add = add.into_iter().map(|(name, value)| {
        let (name, value) = (name.to_owned(), value.to_owned());
        api::HttpRouteRulesFiltersResponseHeaderModifierAdd { name, value }
    });
    let set = set.into_iter().map(|(name, value)| {
        let (name, value) = (name.to_owned(), value.to_owned());
        api::HttpRouteRulesFiltersResponseHeaderModifierSet { name, value }
    });
    read.add_filter(super::response_headers(api::HttpRouteRulesFiltersResponseHeaderModifier {
        add: some(add.collect()),
        set: some(set.collect()),
        remove: some(remove.into_iter().map(str::to_owned).collect()),
    }));
}

fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    Some(list).filter(|list| !list.is_empty())
}

/// APISIX: `status_code` of the plugin `response-rewrite`. The controller leaves 0 out.
fn read_status(values: &mut Values<'_>, read: &mut IngressAnnotations) {
    if values.text(RESPONSE_STATUS).is_some_and(|status| status != "0")
        && let Some(status) = values.number(RESPONSE_STATUS, 200..=598)
    {
        values.limit(RESPONSE_STATUS);
        read.response_status = u16::try_from(status).ok();
    }
}

/// The headers of a list, each with a colon between name and value.
fn response_headers<'a>(values: &mut Values<'a>, name: &str) -> Vec<(&'a str, &'a str)> {
    let mut headers = Vec::new();
    for entry in values.list(name).unwrap_or_default() {
        match entry.split_once(':') {
            Some((_, value)) if value.contains('$') => {
                values.refuse(
                    name,
                    format!("\"{entry}\" has a dollar sign, which PingSIX takes for a variable."),
                );
            }
            Some((header, value)) => headers.push((header.trim(), value.trim())),
            None => values.refuse(name, format!("\"{entry}\" has no colon between name and value.")),
        }
    }
    headers
}

const NO_REWRITES: &str = "PingSIX does not rewrite values in responses.";

fn read(values: &mut Values<'_>, read: &mut IngressAnnotations) {
    if let Some(host) = values.text("upstream-vhost") {
        match Hostname::parse(host) {
            Ok(host) if !host.is_wildcard() => read.host = Some(host),
            Ok(_) | Err(_) => values.refuse("upstream-vhost", format!("\"{host}\" is not a hostname.")),
        }
    }
    if let Some(reference) = values.text(CUSTOM_HEADERS) {
        match reference.split_once('/') {
            Some((namespace, name)) if is_object_name(namespace) && is_object_name(name) => {
                read.custom_headers = Some(ObjectName::new(namespace, name));
                read.sources.insert(CUSTOM_HEADERS, values.whole_name(CUSTOM_HEADERS));
            }
            Some(_) | None => {
                let message = format!(
                    "\"{reference}\" is not the namespace and name of a ConfigMap, with a slash between."
                );
                values.refuse(CUSTOM_HEADERS, message);
            }
        }
    }
    // ingress-nginx sends the header for paths with a rewrite alone (`buildProxyPass` of `template.go`).
    if let Some(prefix) =
        values.text("x-forwarded-prefix").filter(|_| values.text("rewrite-target").is_some())
    {
        if prefix.contains('$') {
            values.refuse("x-forwarded-prefix", "PingSIX takes $ for a variable.");
            return;
        }
        read.add_filter(set_request_header("X-Forwarded-Prefix", prefix));
    }
}

/// A filter that sets a header of requests.
fn set_request_header(name: &str, value: &str) -> api::HttpRouteRulesFilters {
    request_headers(api::HttpRouteRulesFiltersRequestHeaderModifier {
        set: Some(vec![api::HttpRouteRulesFiltersRequestHeaderModifierSet {
            name: name.to_owned(),
            value: value.to_owned(),
        }]),
        ..api::HttpRouteRulesFiltersRequestHeaderModifier::default()
    })
}
