//! The answer that the documentation of annotations promises.

use std::collections::BTreeMap;

use pingsix_translate::Layout;
use serde_json::{Value, json};

use super::super::oracle::{Ingresses, Labels, target};
use super::expanded::{Act, Expanded, Kind};
use super::given::{Answered, Delivery, Given};
use super::meaning::{Meaning, Share};
use crate::effect::{STATUS, backend_answer};
use crate::oracle::backend::is_external;
use crate::oracle::{Answer, Target, World};
use crate::probe::Probe;
use crate::protection::in_both_notations;

/// The user of the Secret.
pub(super) const USER: &str = "alice";

/// The header of each ConfigMap.
pub(super) const HEADER: &str = "x-of";

/// Ingresses with the meanings of their annotations.
pub(super) struct Promise<'w> {
    world: &'w World,
    plain: Ingresses,
    acts: BTreeMap<(String, String), Act>,
    meanings: BTreeMap<String, Meaning>,
    layout: Layout,
}

impl<'w> Promise<'w> {
    pub(super) fn new(
        world: &'w World,
        objects: &[Value],
        meanings: BTreeMap<String, Meaning>,
        layout: Layout,
    ) -> Self {
        let of_class = Ingresses::read(objects).served();
        let Expanded { objects, acts } = Expanded::new(objects, &meanings, &of_class);
        Self { world, plain: Ingresses::read(&objects), acts, meanings, layout }
    }

    /// The answer to a request, in the order in which its parts are asked.
    pub(super) fn answer(&self, probe: &Probe) -> Answered {
        let decided = self.plain.decide(self.world, probe, Labels::Several);
        let Some(origin) = decided.origin else { return Answered::not_found() };
        let (meaning, act) = (&self.meanings[&origin.0], &self.acts[&origin]);
        let namespace = origin.0.split_once('/').expect("a namespace and a name").0;
        Answered { answer: self.of_act(probe, namespace, meaning, act), ingress: Some(origin.0) }
    }

    fn of_act(&self, probe: &Probe, namespace: &str, meaning: &Meaning, act: &Act) -> Given {
        let host = probe.host.clone().unwrap_or_default();
        let scheme = if probe.tls { "https" } else { "http" };
        let (path, query) = (&probe.path, probe.query_string());
        let redirect = |status, location: String| Given::Redirect { status, location: Some(location) };
        let https = if self.layout == Layout::PerPort { "https" } else { scheme };
        // Redirects of hosts are no paths of the Ingress.
        if let Kind::Host { to, is_tls } = &act.kind {
            let scheme = match self.layout {
                Layout::PerPort => scheme,
                Layout::Shared if *is_tls => "https",
                Layout::Shared => "http",
            };
            return redirect(308, format!("{scheme}://{to}{path}{query}"));
        }
        if matches!(act.kind, Kind::Closing) {
            return Given::Status(500);
        }
        if meaning.is_closed {
            return Given::Status(503);
        }
        // nginx redirects by other annotations before it redirects to HTTPS.
        if let Kind::Root(root) = act.kind {
            return redirect(302, format!("{scheme}://{host}{root}{query}"));
        }
        let comes_first = meaning.redirect().is_some();
        if act.to_https && !comes_first && !probe.tls && https == "https" {
            return redirect(308, format!("https://{host}{path}{query}"));
        }
        if meaning.refuses(&probe.method) {
            return Given::Status(405);
        }
        if let Some((status, to)) = meaning.redirect() {
            let to = if to.starts_with('/') { format!("{scheme}://{host}{to}") } else { to.to_owned() };
            let to = to.replace("$host", &host).replace("$request_uri", path);
            return redirect(status, format!("{to}{query}"));
        }
        let Kind::Backend { path, backend, canary } = &act.kind else { unreachable!("others are answered") };
        let shares = self.shares(probe, namespace, meaning, backend, canary.as_ref());
        let services = shares.keys().filter(|target| matches!(target, Target::Service { .. })).count();
        if services == 0 && shares.len() == 1 {
            let Some(Target::Status(status)) = shares.into_keys().next() else { unreachable!("no Service") };
            return Given::Status(status);
        }
        if meaning.is_for_scripts && probe.is_preflight() {
            return Given::Preflight;
        }
        let shares = Answer::new(shares);
        if services == 0 {
            return Given::Statuses(shares);
        }
        Given::Backends(Box::new(delivery(probe, meaning, path.as_deref(), namespace, shares)))
    }

    /// The shares of backends: those of the canary, and the rest.
    fn shares(
        &self,
        probe: &Probe,
        namespace: &str,
        meaning: &Meaning,
        backend: &Value,
        canary: Option<&(Share, Value)>,
    ) -> BTreeMap<Target, u64> {
        let target = |backend: &Value| self.target(namespace, meaning, backend);
        let Some((share, of_canary)) = canary else { return [(target(backend), 1)].into() };
        let by_header = share.header.and_then(|(name, value)| match (probe.header(name)?, value) {
            (found, Some(value)) => (found == value).then_some(true),
            ("always", None) => Some(true),
            ("never", None) => Some(false),
            (_, None) => None,
        });
        let weight = match by_header {
            Some(true) => share.total,
            Some(false) => 0,
            None => share.weight,
        };
        let mut shares = BTreeMap::new();
        for (backend, weight) in [(backend, share.total - weight), (of_canary, weight)] {
            if weight > 0 {
                *shares.entry(target(backend)).or_default() += weight;
            }
        }
        shares
    }

    /// Where the requests for a backend go: to another Service if it has no endpoint. The name of an `ExternalName` Service
    /// is its endpoint, which is not followed.
    fn target(&self, namespace: &str, meaning: &Meaning, backend: &Value) -> Target {
        let own = target(self.world, namespace, backend);
        let service = backend["service"]["name"].as_str().unwrap_or_default();
        let service = self.world.services.get(&(namespace.to_owned(), service.to_owned()));
        let may_be_replaced = matches!(own, Target::Status(_)) && !service.is_some_and(is_external);
        let Some(name) = meaning.default_backend.filter(|_| may_be_replaced) else {
            return own;
        };
        let fallback = json!({ "service": { "name": name, "port": { "number": 80 } } });
        let fallback = target(self.world, namespace, &fallback);
        if matches!(fallback, Target::Status(_)) { own } else { fallback }
    }
}

fn delivery(
    probe: &Probe,
    meaning: &Meaning,
    path: Option<&str>,
    namespace: &str,
    shares: Answer,
) -> Delivery {
    let mut response = backend_answer();
    if meaning.rewrites_responses {
        if let Some(name) = meaning.remove {
            response.remove(name);
        }
        if let Some((name, value)) = meaning.set {
            response.insert(name.to_owned(), vec![value.to_owned()]);
        }
        if let Some((name, value)) = meaning.add {
            response.entry(name.to_owned()).or_default().push(value.to_owned());
        }
        if let Some(status) = meaning.status {
            response.insert(STATUS.to_owned(), vec![status.to_string()]);
        }
    }
    // Another namespace's ConfigMap is not read.
    if meaning.headers_of == Some(namespace) {
        response.insert(HEADER.to_owned(), vec![namespace.to_owned()]);
    }
    let networks = [meaning.allow, meaning.deny]
        .map(|list| in_both_notations(list.into_iter().map(str::to_owned).collect()));
    Delivery {
        shares,
        target: format!("{}{}", path_at_backend(probe, meaning, path), probe.query_string()),
        host: meaning.host.map(str::to_owned).or_else(|| probe.host.clone()),
        prefix: meaning.prefix.into_iter().map(str::to_owned).collect(),
        response,
        is_for_scripts: meaning.is_for_scripts && probe.header("origin").is_some(),
        networks,
        user: meaning.has_user.then(|| USER.to_owned()),
    }
}

/// The path that a backend sees. The default backend has no path of its own, and ingress-nginx rewrites none of its
/// requests.
fn path_at_backend(probe: &Probe, meaning: &Meaning, path: Option<&str>) -> String {
    let requested = &probe.path;
    // A path that is its own target is no rewrite.
    if let (Some(rewrite), Some(path)) = (meaning.rewrite, path)
        && rewrite != path
    {
        let pattern = regex::Regex::new(&format!("^{path}")).unwrap();
        let captures = pattern.captures(requested);
        return groups(rewrite, |number| captures.as_ref()?.get(number).map(|group| group.as_str()));
    }
    if let Some(whole) = meaning.whole {
        return whole.to_owned();
    }
    if let Some((pattern, template)) = meaning.replace
        && let Some(captures) = regex::Regex::new(pattern).unwrap().captures(requested)
    {
        let replaced = groups(template, |number| captures.get(number).map(|group| group.as_str()));
        let matched = captures.get_match();
        return format!("{}{replaced}{}", &requested[..matched.start()], &requested[matched.end()..]);
    }
    requested.clone()
}

/// A template with its groups filled in. A group that is missing is empty.
fn groups<'c>(template: &str, of: impl Fn(usize) -> Option<&'c str>) -> String {
    let mut parts = template.split('$');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (number, rest) = part.split_at(1);
        filled.push_str(of(number.parse().unwrap()).unwrap_or_default());
        filled.push_str(rest);
    }
    filled
}
