//! Whether two answers are the same to a client and to a backend.

use crate::answer::{Answer, Request};
use crate::original::Told;

/// Whether the output answers a request as the original did.
pub(crate) fn is_same(before: &Told, after: &Answer, request: &Request) -> bool {
    let after = without_credentials(after, request);
    match (&before.answer, &after) {
        (
            Answer::Backends { backends: old, checks: old_checks },
            Answer::Backends { backends: new, checks: new_checks },
        ) => {
            let total = |shares: &std::collections::BTreeMap<_, u64>| shares.values().sum::<u64>();
            let (of_old, of_new) = (total(old), total(new));
            let shares = old.iter().all(|(backend, share)| {
                new.get(backend).is_some_and(|other| {
                    u128::from(*other) * u128::from(of_old) == u128::from(*share) * u128::from(of_new)
                })
            });
            old.len() == new.len() && shares && old_checks == new_checks
        }
        (
            Answer::Redirect { status: old_status, location: old },
            Answer::Redirect { status: new_status, location: new },
        ) => old_status == new_status && is_same_location(old, new, request),
        // Both refuse, and a request may lack credentials and have a wrong address.
        (Answer::Status(401 | 403), Answer::Status(401 | 403)) | (Answer::Closed, Answer::Closed) => true,
        // No path of an Ingress has the request. In ingress-nginx, annotations hold for the 404 of the host, too.
        (Answer::Status(401 | 403 | 503), Answer::Status(404)) if before.is_fallback => true,
        (Answer::Status(old), Answer::Status(new)) => old == new,
        (Answer::Redirect { status: 308, location }, Answer::Status(404)) => {
            before.is_fallback && is_same_location(location, &own_https(request), request)
        }
        _ => false,
    }
}

/// The answer to a request without the credentials that the output asks for.
fn without_credentials(after: &Answer, request: &Request) -> Answer {
    let Answer::Backends { checks, .. } = after else { return after.clone() };
    let has_header = |name: &str| request.header(name).is_some();
    let asks = |name: &str| checks.contains(name);
    let lacks = (asks("basic-auth") || asks("jwt-auth")) && !has_header("authorization")
        || asks("key-auth")
            && !has_header("authorization")
            && !has_header("apikey")
            && request.query.is_none();
    if lacks { Answer::Status(401) } else { after.clone() }
}

/// The URL of a request over HTTPS.
fn own_https(request: &Request) -> String {
    let host = request.host.split(':').next().unwrap_or_default();
    format!("https://{host}{}", request.with_query(&request.path))
}

/// Whether two locations are one. ingress-nginx leaves a slash at the end of a path out when it redirects to HTTPS or to
/// another host, and names the usual port.
pub(crate) fn is_same_location(old: &str, new: &str, request: &Request) -> bool {
    let (old, new) = (plain(old, request), plain(new, request));
    let path = old.split_once("://").and_then(|(_, rest)| Some(&rest[rest.find('/')?..]));
    let is_shortened = path.is_some_and(|path| request.path.strip_suffix('/') == Some(path));
    old == new || (is_shortened && new.strip_suffix('/') == Some(&old))
}

/// A whole location without the usual port of its scheme. An empty path is `/`.
fn plain(location: &str, request: &Request) -> String {
    let Some((scheme, rest)) = location.split_once("://") else {
        let scheme = if request.https { "https" } else { "http" };
        return plain(&format!("{scheme}://{}{location}", request.host), request);
    };
    let (authority, target) = rest.find(['/', '?']).map_or((rest, ""), |at| rest.split_at(at));
    let port = if scheme == "https" { ":443" } else { ":80" };
    let authority = authority.strip_suffix(port).unwrap_or(authority);
    let slash = if target.starts_with('/') { "" } else { "/" };
    format!("{scheme}://{authority}{slash}{target}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use pingsix_translate::ObjectName;

    use super::*;
    use crate::answer::Backend;

    fn told(answer: Answer) -> Told {
        Told { answer, by: None, is_fallback: false }
    }

    fn redirect(location: &str) -> Answer {
        Answer::Redirect { status: 308, location: location.to_owned() }
    }

    #[test]
    fn locations_are_compared_without_usual_ports_and_with_their_paths() {
        let request = Request::get("a.example", "/x/");
        for (old, new, same) in [
            ("https://a.example/x", "https://a.example/x/", true),
            ("https://a.example", "https://a.example/", true),
            ("http://b.example:80/x", "http://b.example/x", true),
            ("https://b.example/x", "https://b.example/x/", true),
            ("https://b.example/y", "https://b.example/y/", false),
            ("http://a.example/z", "/z", true),
            ("https://a.example/x", "https://a.example/y", false),
            ("http://a.example/x", "https://a.example/x", false),
        ] {
            assert_eq!(is_same(&told(redirect(old)), &redirect(new), &request), same, "{old} {new}");
        }
    }

    #[test]
    fn shares_are_compared_in_proportion_and_with_what_the_backends_get() {
        let backends = |shares: &[(&str, &str, u64)], check: Option<&str>| Answer::Backends {
            backends: shares
                .iter()
                .map(|(name, target, share)| {
                    let (service, host) = (ObjectName::new("shop", *name), Some("a.example".to_owned()));
                    (Backend { service, port: 80, target: (*target).to_owned(), host }, *share)
                })
                .collect(),
            checks: check.map(str::to_owned).into_iter().collect::<BTreeSet<_>>(),
        };
        let old = told(backends(&[("a", "/", 3), ("b", "/", 1)], None));
        let request = Request::get("a.example", "/");
        assert!(is_same(&old, &backends(&[("a", "/", 75), ("b", "/", 25)], None), &request));
        assert!(!is_same(&old, &backends(&[("a", "/", 1), ("b", "/", 1)], None), &request));
        assert!(!is_same(&old, &backends(&[("a", "/x", 3), ("b", "/", 1)], None), &request));
        assert!(!is_same(&old, &backends(&[("a", "/", 3)], None), &request));
        assert!(!is_same(&old, &backends(&[("a", "/", 3), ("b", "/", 1)], Some("ip-restriction")), &request));
        let refused = told(Answer::Status(401));
        assert!(is_same(&refused, &backends(&[("a", "/", 1)], Some("basic-auth")), &request));
        assert!(!is_same(&refused, &backends(&[("a", "/", 1)], None), &request));
    }
}
