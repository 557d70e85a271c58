//! URIs of certificates that name a prefix.
//!
//! `pingsix-feed:///pingsix/shop/web:80` is the prefix `/pingsix/shop/web:80`: the scheme, no authority, and the
//! prefix as the path. A prefix has exactly one spelling. Letters, digits and `-._~/:` stand for themselves; every
//! other byte is a percent sign and two capital hexadecimal digits. Only `?uid=` with the
//! [owner](crate::Desired::owned_by) of the prefix may follow the path, in the same encoding.

use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::desired::Scope;

/// The beginning of a URI: the scheme and an empty authority.
const URI_PREFIX: &str = "pingsix-feed://";

/// The scheme, which marks a URI as ours.
const SCHEME: &str = "pingsix-feed:";

/// The separator between a prefix and its owner.
const OWNER_SEPARATOR: &str = "?uid=";

/// The characters that are percent-encoded.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/').remove(b':');

/// The URI by which a certificate says that its holder may read a prefix, see
/// [`Access::certificate_uris`](super::Access::certificate_uris).
///
/// ```
/// use pingsix_sink::Scope;
/// use pingsix_sink::embedded::feed_uri;
///
/// let uri = feed_uri(&Scope::new("/pingsix/shop/web:80")?);
/// assert_eq!(uri, "pingsix-feed:///pingsix/shop/web:80");
/// # Ok::<(), pingsix_sink::SinkError>(())
/// ```
pub fn feed_uri(scope: &Scope) -> String {
    format!("{URI_PREFIX}{}", utf8_percent_encode(scope.as_str(), ENCODED))
}

/// The URI of a certificate for a prefix with this [owner](crate::Desired::owned_by), and not for earlier or later
/// owners of the prefix.
pub fn feed_uri_of_owner(scope: &Scope, owner: &str) -> String {
    format!("{}{OWNER_SEPARATOR}{}", feed_uri(scope), utf8_percent_encode(owner, ENCODED))
}

/// The prefix that a URI grants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Grant {
    pub(super) scope: Scope,
    pub(super) owner: Option<Arc<str>>,
}

/// Whether a URI has our scheme, well-formed or not. Schemes are case-insensitive.
pub(super) fn has_our_scheme(uri: &str) -> bool {
    uri.get(..SCHEME.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(SCHEME))
}

/// The grant of a URI; `None` unless the URI has the canonical spelling.
pub(super) fn grant_of(uri: &str) -> Option<Grant> {
    let Some((prefix, owner)) = uri.split_once(OWNER_SEPARATOR) else {
        return Some(Grant { scope: scope_of(uri)?, owner: None });
    };
    let (scope, owner) = (scope_of(prefix)?, percent_decode_str(owner).decode_utf8().ok()?);
    let is_canonical = !owner.is_empty() && feed_uri_of_owner(&scope, &owner) == uri;
    is_canonical.then(|| Grant { scope, owner: Some(owner.into()) })
}

fn scope_of(uri: &str) -> Option<Scope> {
    let path = percent_decode_str(uri.strip_prefix(URI_PREFIX)?).decode_utf8().ok()?;
    // A URI library may remove dot segments, which would leave another prefix.
    if path.split('/').any(|segment| matches!(segment, "." | "..")) {
        return None;
    }
    Scope::new(path.as_ref()).ok().filter(|scope| feed_uri(scope) == uri)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_prefix_has_one_spelling() {
        for (prefix, uri) in [
            ("/pingsix/shop/web", "pingsix-feed:///pingsix/shop/web"),
            ("/pingsix/shop/web:80", "pingsix-feed:///pingsix/shop/web:80"),
            ("/a b/ä", "pingsix-feed:///a%20b/%C3%A4"),
            ("/100%", "pingsix-feed:///100%25"),
        ] {
            let scope = Scope::new(prefix).unwrap();
            assert_eq!(feed_uri(&scope), uri);
            let of_owner = feed_uri_of_owner(&scope, "0f8f ad5b?");
            assert_eq!(of_owner, format!("{uri}?uid=0f8f%20ad5b%3F"));
            let owner = Some("0f8f ad5b?".into());
            assert_eq!(grant_of(&of_owner), Some(Grant { scope: scope.clone(), owner }));
            assert_eq!(grant_of(uri), Some(Grant { scope, owner: None }));
        }
    }

    #[test]
    fn a_malformed_uri_grants_nothing() {
        for uri in [
            "",
            "pingsix-feed:",
            "pingsix-feed://",
            "pingsix-feed:///",
            "pingsix-feed:/pingsix/shop/web",
            "pingsix-feed://host/pingsix/shop/web",
            "pingsix-feed:///pingsix/shop/web/",
            "pingsix-feed:///pingsix//web",
            "pingsix-feed:///pingsix/shop/../web",
            "pingsix-feed:///pingsix/shop/%2e%2e/web",
            "pingsix-feed:///pingsix/./web",
            "pingsix-feed:///pingsix/shop%2Fweb",
            "pingsix-feed:///pingsix/shop/%77eb",
            "pingsix-feed:///a%c3%a4",
            "pingsix-feed:///a%C3",
            "pingsix-feed:///a b",
            "pingsix-feed:///a%00",
            "pingsix-feed:///pingsix/shop/web?x",
            "pingsix-feed:///pingsix/shop/web?uid=",
            "pingsix-feed:///pingsix/shop/web?uid=1?uid=2",
            "pingsix-feed:///pingsix/shop/web?uid=1&x",
            "pingsix-feed:///pingsix/shop/web?uid=%31",
            "pingsix-feed:///pingsix/shop/web?UID=1",
            "pingsix-feed:///pingsix/shop/web#x",
            "pingsix-feed:///*",
            "PINGSIX-FEED:///pingsix/shop/web",
            "https:///pingsix/shop/web",
        ] {
            assert_eq!(grant_of(uri), None, "{uri}");
        }
        assert!(has_our_scheme("Pingsix-Feed:x") && !has_our_scheme("spiffe://x") && !has_our_scheme("ä"));
    }

    proptest! {
        #[test]
        fn an_accepted_uri_has_the_canonical_spelling(
            rest in "[/a.:%2eE ä]{0,12}",
            owner in prop::option::of("[?a%2=]{0,4}"),
        ) {
            let uri = format!("{URI_PREFIX}{rest}{}", owner.map(|owner| format!("{OWNER_SEPARATOR}{owner}")).unwrap_or_default());
            if let Some(Grant { scope, owner }) = grant_of(&uri) {
                prop_assert_eq!(owner.map_or_else(|| feed_uri(&scope), |owner| feed_uri_of_owner(&scope, &owner)), uri);
            }
        }

        #[test]
        fn every_prefix_without_dots_for_a_segment_can_be_named(prefix in "(/[a-z0-9.:% ä*?]{1,4}){1,3}") {
            let dots = prefix.split('/').any(|segment| matches!(segment, "." | ".."));
            let scope = Scope::new(prefix).unwrap();
            let uri = feed_uri(&scope);
            prop_assert!(uri.is_ascii());
            prop_assert_eq!(scope_of(&uri), (!dots).then_some(scope));
        }
    }
}
