//! The choice of an endpoint.

use super::{Concern, IngressAnnotations, Support, Unless, Values, lacking, no_effect, tunes};
use crate::crd::{ConsistentHash, HashSource, LoadBalancer};

/// The reason why cookies of sessions cannot be honoured.
const NO_SESSIONS: &str =
    "PingSIX has no sessions; upstream-hash-by with a cookie of the application comes close.";

pub(super) const NGINX: Concern = Concern {
    annotations: &[
        lacking("affinity", Unless::AllBut(&["cookie"]), NO_SESSIONS),
        no_effect("affinity-canary-behavior"),
        no_effect("affinity-mode"),
        no_effect("session-cookie-change-on-failure"),
        no_effect("session-cookie-conditional-samesite-none"),
        no_effect("session-cookie-domain"),
        no_effect("session-cookie-expires"),
        no_effect("session-cookie-hash"),
        no_effect("session-cookie-max-age"),
        no_effect("session-cookie-name"),
        no_effect("session-cookie-partitioned"),
        no_effect("session-cookie-path"),
        no_effect("session-cookie-samesite"),
        no_effect("session-cookie-secure"),
        lacking(
            "load-balance",
            Unless::Values(&["", "round_robin"]),
            "PingSIX does not measure endpoints; it takes them in turn.",
        ),
        tunes("upstream-hash-by", Support::Exact),
        lacking("upstream-hash-by-subset", Unless::Is(false), "PingSIX hashes over all endpoints."),
        no_effect("upstream-hash-by-subset-size"),
    ],
    read,
};

fn read(values: &mut Values<'_>, read: &mut IngressAnnotations) {
    let Some(text) = values.text("upstream-hash-by") else { return };
    let Some(hash) = hash_of(text) else {
        let message = format!(
            "\"{text}\" is none of $request_uri, $remote_addr, $http_NAME, $arg_NAME and $cookie_NAME."
        );
        values.refuse("upstream-hash-by", message);
        return;
    };
    read.backend_traffic.load_balancer =
        Some(LoadBalancer { r#type: "ConsistentHash".to_owned(), consistent_hash: Some(hash) });
}

/// The source of a hash by a variable of nginx.
fn hash_of(text: &str) -> Option<ConsistentHash> {
    let plain = |source| Some(ConsistentHash { r#type: source, name: None });
    let named = |source, name: &str| {
        let is_name = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        is_name.then(|| ConsistentHash { r#type: source, name: Some(name.to_owned()) })
    };
    let variable = text.strip_prefix('$')?;
    let variable = variable.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(variable);
    match variable {
        "request_uri" => plain(HashSource::Uri),
        "remote_addr" | "binary_remote_addr" => plain(HashSource::SourceIp),
        _ => {
            if let Some(name) = variable.strip_prefix("http_") {
                // nginx writes a header with underscores instead of hyphens.
                named(HashSource::Header, &name.replace('_', "-"))
            } else if let Some(name) = variable.strip_prefix("arg_") {
                named(HashSource::QueryParam, name)
            } else {
                named(HashSource::Cookie, variable.strip_prefix("cookie_")?)
            }
        }
    }
}
