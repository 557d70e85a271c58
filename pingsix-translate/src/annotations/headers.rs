//! Headers and the Host of requests on their way to backends.

use gateway_api::experimental::httproutes as api;

use super::{Concern, IngressAnnotations, Purpose, Support, Values, impossible, tunes};
use crate::model::Hostname;

pub(super) const NGINX: Concern = Concern {
    annotations: &[
        tunes("upstream-vhost", Support::Exact),
        tunes("x-forwarded-prefix", Support::Exact),
        impossible(
            "custom-headers",
            Purpose::Tunes,
            &[""],
            "Headers of a ConfigMap are not read; write them into a TrafficPolicy for the Ingress.",
        ),
        impossible(
            "connection-proxy-header",
            Purpose::Tunes,
            &[""],
            "PingSIX sets the header Connection itself.",
        ),
        impossible("proxy-cookie-domain", Purpose::Tunes, &["", "off"], NO_REWRITES),
        impossible("proxy-cookie-path", Purpose::Tunes, &["", "off"], NO_REWRITES),
        impossible("proxy-redirect-from", Purpose::Tunes, &["", "off", "default"], NO_REWRITES),
        impossible("proxy-redirect-to", Purpose::Tunes, &["", "off", "default"], NO_REWRITES),
    ],
    read,
};

const NO_REWRITES: &str = "PingSIX does not rewrite values in responses.";

fn read(values: &mut Values<'_>, read: &mut IngressAnnotations) {
    if let Some(host) = values.text("upstream-vhost") {
        match Hostname::parse(host) {
            Ok(host) if !host.is_wildcard() => read.host = Some(host),
            Ok(_) | Err(_) => values.refuse("upstream-vhost", format!("\"{host}\" is not a hostname.")),
        }
    }
    if let Some(prefix) = values.text("x-forwarded-prefix") {
        if prefix.contains('$') {
            values.refuse("x-forwarded-prefix", "PingSIX takes $ for a variable.");
            return;
        }
        read.filters.push(set_request_header("X-Forwarded-Prefix", prefix));
    }
}

/// A filter that sets a header of requests.
fn set_request_header(name: &str, value: &str) -> api::HttpRouteRulesFilters {
    api::HttpRouteRulesFilters {
        r#type: api::HttpRouteRulesFiltersType::RequestHeaderModifier,
        request_header_modifier: Some(api::HttpRouteRulesFiltersRequestHeaderModifier {
            set: Some(vec![api::HttpRouteRulesFiltersRequestHeaderModifierSet {
                name: name.to_owned(),
                value: value.to_owned(),
            }]),
            ..api::HttpRouteRulesFiltersRequestHeaderModifier::default()
        }),
        cors: None,
        extension_ref: None,
        external_auth: None,
        request_mirror: None,
        request_redirect: None,
        response_header_modifier: None,
        url_rewrite: None,
    }
}
