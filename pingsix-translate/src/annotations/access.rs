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
    let allow = match (old, new) {
        (Some(old), Some(new)) if old != new => {
            values.refuse("whitelist-source-range", "allowlist-source-range has another value.");
            return;
        }
        (old, new) => new.or(old),
    };
    let has_new = values.text("allowlist-source-range").is_some();
    let deny = networks(values, "denylist-source-range");
    let source = match (&allow, has_new) {
        (None, _) => "denylist-source-range",
        (Some(_), true) => "allowlist-source-range",
        (Some(_), false) => "whitelist-source-range",
    };
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
