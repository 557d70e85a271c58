//! The hostnames that cover another one.

use std::borrow::Cow;

/// The hostnames that take the requests of one: the hostname, wildcards, and the empty one for all hosts.
pub(super) fn covering(host: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let wildcards = host.match_indices('.').map(|(dot, _)| Cow::Owned(format!("*{}", &host[dot..])));
    let own = (!host.is_empty()).then_some(Cow::Borrowed(host));
    own.into_iter().chain(wildcards.filter(move |wildcard| wildcard != host)).chain([Cow::Borrowed("")])
}
