//! Examples of requests to explain: one for a match of a route or an Ingress, at a listener that takes it.

use pingsix_translate::status::{ConditionType, ListenerVerdict, Verdicts};
use pingsix_translate::{Hostname, Kind, Object, ObjectKey, ParentRef};
use serde::Serialize;

use super::Model;
use super::address::address;
use super::form::Form;
use super::route_text::{MatchText, RouteText, RuleText};

/// The host of a request for a route and a listener without hostnames.
const ANY_HOST: &str = "example.com";

/// The examples of a route or an Ingress.
pub(super) struct Examples<'m> {
    route: &'m RouteText,
    owner: Option<&'m ObjectKey>,
    /// A listener that takes requests of a route of Gateway API, with a hostname of both.
    listener: Option<(&'m ListenerVerdict, String)>,
}

impl<'m> Examples<'m> {
    pub(super) fn of(model: &'m Model, route: &'m RouteText) -> Self {
        let owner = model.owners_of(&route.key).next();
        let listener = owner.and_then(|(owner, view)| listener_of(model, owner, &view.verdicts, route));
        Self { route, owner: owner.map(|(owner, _)| owner), listener }
    }

    /// The address of an explanation of a request for a match; `None` for a match with an expression.
    pub(super) fn address(&self, rule: &RuleText, matched: &MatchText) -> Option<String> {
        let path = matched.example.as_ref().filter(|path| path.starts_with('/'))?;
        let kind = self.route.key.kind;
        let is_call = kind == Kind::GrpcRoute;
        let method = matched.method.clone();
        let method = method.unwrap_or_else(|| if is_call { "POST" } else { "GET" }.to_owned());
        let header =
            |condition: &String| condition.split_once(" = ").map(|(name, value)| format!("{name}: {value}"));
        let headers: Vec<String> = matched.headers.iter().filter_map(header).collect();
        let query: Vec<(&str, &str)> =
            matched.query.iter().filter_map(|condition| condition.split_once(" = ")).collect();
        let (is_https, port, host) = match &self.listener {
            Some((listener, host)) => (listener.protocol == "HTTPS", listener.port, &**host),
            // The name of a rule of an Ingress is its host.
            None if kind == Kind::Ingress => (false, 80, rule.name.as_deref().unwrap_or(ANY_HOST)),
            None => (false, 80, self.route.hosts.first().map_or(ANY_HOST, String::as_str)),
        };
        let (scheme, default_port) = if is_https { ("https", 443) } else { ("http", 80) };
        // The host may have a wildcard, which stands for any label.
        let host = host.replace('*', "example");
        let form = Form {
            method,
            url: address(&format!("{scheme}://{host}{path}"), &query),
            headers: headers.join("\n"),
            port: if port == default_port { String::new() } else { port.to_string() },
            http2: is_call,
            owner: self.owner.cloned(),
            ..Form::default()
        };
        Some(form.address())
    }
}

/// The first listener that takes requests of a route, with a hostname of both.
fn listener_of<'m>(
    model: &Model,
    owner: &ObjectKey,
    verdicts: &'m Verdicts,
    route: &RouteText,
) -> Option<(&'m ListenerVerdict, String)> {
    let namespace = &route.key.name.namespace;
    let parents = &verdicts.routes.get(&route.key)?.parents;
    let accepted = parents.iter().filter(|parent| parent.conditions.is_true(ConditionType::Accepted));
    let refs: Vec<(ObjectKey, &ParentRef)> = accepted
        .filter_map(|parent| Some((parent.parent_ref.target(namespace)?, &parent.parent_ref)))
        .collect();
    let takes = |parent: &ObjectKey, listener: &ListenerVerdict| {
        matches!(&*listener.protocol, "HTTP" | "HTTPS")
            && listener.data_plane.is_some()
            && listener.supported_kinds.iter().any(|kind| kind.kind == route.key.kind.as_str())
            && refs.iter().any(|(target, parent_ref)| {
                target == parent && parent_ref.selects(&listener.name, listener.port)
            })
    };
    let of_gateway = verdicts.gateway.iter().map(|gateway| (owner, &gateway.listeners));
    let of_sets = verdicts.listener_sets.iter().map(|(set, verdict)| (&**set, &verdict.listeners));
    of_gateway.chain(of_sets).find_map(|(parent, listeners)| {
        let object = model.objects.get(parent)?;
        let specs = if let Object::Gateway(gateway) = &object {
            &gateway.spec.listeners
        } else if let Object::ListenerSet(set) = &object {
            &set.spec.listeners
        } else {
            return None;
        };
        // A selector of namespaces counts as true.
        let is_near = parent.name.namespace == *namespace;
        let mut listeners = listeners.iter().zip(specs).filter(|(listener, spec)| {
            takes(parent, listener) && (is_near || !is_for_same_namespace(&spec.allowed_routes))
        });
        listeners.find_map(|(listener, _)| {
            Some((listener, common_host(listener.hostname.as_deref(), &route.hosts)?))
        })
    })
}

/// Whether `allowedRoutes` of a listener allows routes of its own namespace alone, which is the default.
fn is_for_same_namespace(allowed_routes: &impl Serialize) -> bool {
    let allowed = serde_json::to_value(allowed_routes).unwrap_or_default();
    allowed["namespaces"]["from"].as_str().is_none_or(|from| from == "Same")
}

/// A hostname of a listener and of a route with these hosts; `None` if they have none in common.
fn common_host(listener: Option<&str>, hosts: &[String]) -> Option<String> {
    let Some(listener) = listener else {
        return Some(hosts.first().map_or(ANY_HOST, String::as_str).to_owned());
    };
    if hosts.is_empty() {
        return Some(listener.to_owned());
    }
    let listener = Hostname::parse(listener).ok()?;
    let common = |host: &String| listener.intersection(&Hostname::parse(host).ok()?);
    hosts.iter().find_map(common).map(|host| host.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_one_of_the_listener_and_of_the_route() {
        let of = |listener, hosts: &[&str]| {
            let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
            common_host(listener, &hosts)
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
