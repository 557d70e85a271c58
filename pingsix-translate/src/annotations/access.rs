//! Addresses of clients.

use super::{Concern, IngressAnnotations, Purpose, Support, Values, impossible, protects};
use crate::crd::Authorization;

/// ingress-nginx: `whitelist-source-range` has the newer name `allowlist-source-range`.
pub(super) const NGINX: Concern = Concern {
    annotations: &[
        protects("allowlist-source-range", Support::Exact),
        protects("denylist-source-range", Support::Exact),
        protects("whitelist-source-range", Support::Exact),
        impossible(
            "satisfy",
            Purpose::Protects,
            &["", "all"],
            "PingSIX demands all of the addresses and credentials that are set.",
        ),
    ],
    read,
};

fn read(values: &mut Values<'_>, read: &mut IngressAnnotations) {
    let [old, new] = ["whitelist-source-range", "allowlist-source-range"].map(|name| networks(values, name));
    let (allow, source) = match (old, new) {
        (Some(old), Some(new)) if old != new => {
            values.refuse("whitelist-source-range", "allowlist-source-range has another value.");
            return;
        }
        (_, Some(new)) => (Some(new), "allowlist-source-range"),
        (Some(old), None) => (Some(old), "whitelist-source-range"),
        (None, None) => (None, "denylist-source-range"),
    };
    let deny = networks(values, "denylist-source-range");
    read.sources.insert("authorization", values.whole_name(source));
    if allow.is_some() || deny.is_some() {
        let [allow, deny] = [allow, deny].map(Option::unwrap_or_default);
        read.security.authorization = Some(Authorization { allow, deny });
    }
}

/// The networks of a list. The reader of the policy checks them.
fn networks(values: &mut Values<'_>, name: &str) -> Option<Vec<String>> {
    Some(values.list(name)?.into_iter().map(str::to_owned).collect())
}
