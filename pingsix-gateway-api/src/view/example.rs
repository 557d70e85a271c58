//! Examples of requests to explain: one for a match of a route or an Ingress, at a listener that takes it.

use pingsix_translate::Kind;
use pingsix_translate::status::ListenerVerdict;

use super::Model;
use super::page;
use super::pages::explain::Form;
use super::route_text::{MatchText, RouteText, RuleText};

/// The host of a request for a route and a listener without hostnames.
const ANY_HOST: &str = "example.com";

/// The address of an explanation of a request for a match; `None` for a match without a literal path.
pub(super) fn address(
    model: &Model,
    route: &RouteText,
    rule: &RuleText,
    matched: &MatchText,
) -> Option<String> {
    let path = matched.example.as_ref().filter(|path| path.starts_with('/'))?;
    let is_call = route.key.kind == Kind::GrpcRoute;
    let method = matched.method.clone().unwrap_or_else(|| if is_call { "POST" } else { "GET" }.to_owned());
    let header =
        |condition: &String| condition.split_once(" = ").map(|(name, value)| format!("{name}: {value}"));
    let headers: Vec<String> = matched.headers.iter().filter_map(header).collect();
    let query: Vec<(&str, &str)> =
        matched.query.iter().filter_map(|condition| condition.split_once(" = ")).collect();
    let (is_https, port, host) = match listener_of(model, route) {
        Some((listener, host)) => (listener.protocol == "HTTPS", listener.port, Some(host)),
        None => (false, 80, rule.host.as_ref().or(route.hosts.first()).map(String::as_str)),
    };
    let (scheme, default_port) = if is_https { ("https", 443) } else { ("http", 80) };
    // The host may have a wildcard, which stands for any label.
    let host = host.map_or_else(|| ANY_HOST.to_owned(), |host| host.replace('*', "example"));
    let form = Form {
        method,
        url: page::address(&format!("{scheme}://{host}{path}"), &query),
        headers: headers.join("\n"),
        port: if port == default_port { String::new() } else { port.to_string() },
        http2: is_call,
        owner: model.owners_of(&route.key).next().map(|(owner, _)| owner.clone()),
        ..Form::default()
    };
    Some(form.address())
}

/// The first listener that takes requests of a route of Gateway API, with a hostname of both.
fn listener_of<'m>(model: &'m Model, route: &'m RouteText) -> Option<(&'m ListenerVerdict, &'m str)> {
    let (_, owner) = model.owners_of(&route.key).next()?;
    let parents = &owner.verdicts.routes.get(&route.key)?.parents;
    let is_named = |listener: &ListenerVerdict| {
        parents.iter().any(|parent| {
            let parent = &parent.parent_ref;
            parent.section_name.as_ref().is_none_or(|name| *name == listener.name)
                && parent.port.is_none_or(|port| port == listener.port)
        })
    };
    let mut listeners = owner.verdicts.listeners().filter(|listener| {
        matches!(&*listener.protocol, "HTTP" | "HTTPS") && listener.data_plane.is_some() && is_named(listener)
    });
    listeners.find_map(|listener| Some((listener, common_host(listener.hostname.as_deref(), &route.hosts)?)))
}

/// A hostname of a listener and of a route with these hosts; `None` if they have none in common.
fn common_host<'h>(listener: Option<&'h str>, hosts: &'h [String]) -> Option<&'h str> {
    let Some(listener) = listener else { return Some(hosts.first().map_or(ANY_HOST, String::as_str)) };
    if hosts.is_empty() {
        return Some(listener);
    }
    let is_below = |host: &str, wildcard: &str| {
        wildcard.strip_prefix('*').is_some_and(|suffix| host.len() > suffix.len() && host.ends_with(suffix))
    };
    hosts.iter().find_map(|host| {
        if host == listener || is_below(host, listener) {
            Some(&**host)
        } else {
            is_below(listener, host).then_some(listener)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_one_of_the_listener_and_of_the_route() {
        let of = |listener, hosts: &[&str]| {
            let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
            common_host(listener, &hosts).map(str::to_owned)
        };
        assert_eq!(of(None, &[]).as_deref(), Some("example.com"));
        assert_eq!(of(None, &["a.test"]).as_deref(), Some("a.test"));
        assert_eq!(of(Some("*.test"), &[]).as_deref(), Some("*.test"));
        assert_eq!(of(Some("*.test"), &["a.other", "a.test"]).as_deref(), Some("a.test"));
        assert_eq!(of(Some("a.test"), &["*.test"]).as_deref(), Some("a.test"));
        assert_eq!(of(Some("*.test"), &["*.test"]).as_deref(), Some("*.test"));
        assert_eq!(of(Some("a.test"), &["b.test", "*.other", "test"]), None);
        assert_eq!(of(Some("*.test"), &["test"]), None);
    }
}
