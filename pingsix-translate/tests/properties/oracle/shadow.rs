//! The rules that no request reaches, by comparison of all rows for every host that matters.

use std::collections::BTreeSet;

use super::row::{self, Row};
use super::world::{Name, RouteKindName, World};

/// A route with its kind, and the index of a rule.
pub(crate) type RuleName = (&'static str, Name, usize);

impl World {
    /// The rules all of whose rows are behind earlier ones, at these ports, and the rules that the model can judge: those
    /// without anything that PingSIX cannot match.
    pub(crate) fn shadowed(&self, ports: &[Option<u16>]) -> (BTreeSet<RuleName>, BTreeSet<RuleName>) {
        let (mut present, mut reached) = (BTreeSet::new(), BTreeSet::new());
        for port in ports {
            for host in self.telling_hosts() {
                let listeners = self.listeners_for(*port, Some(&host));
                if !listeners.iter().any(|&listener| self.serves(listener)) {
                    continue;
                }
                let rows = self.rows(&listeners, Some(&host));
                for (index, own) in rows.iter().enumerate() {
                    let rule = (own.route, own.rule);
                    present.insert(rule);
                    if !rows[..index].iter().any(|earlier| own.is_taken_by(earlier)) {
                        reached.insert(rule);
                    }
                }
            }
        }
        let name = |&(route, rule): &(usize, usize)| -> RuleName {
            let route = &self.routes[route];
            (route.kind.as_str(), route.metadata.key(), rule)
        };
        let shadowed = present.difference(&reached).map(name).collect();
        let is_judged = |(route, rule): &&(usize, usize)| {
            let route: &super::Route = &self.routes[*route];
            !row::is_unsupported(&route.spec.rules[*rule])
        };
        (shadowed, present.iter().filter(is_judged).map(name).collect())
    }

    /// A host for each hostname, which has no other of the same length: that of a wildcard is under a label of its own.
    fn telling_hosts(&self) -> BTreeSet<String> {
        let of_listeners = self.listeners.iter().filter_map(|listener| listener.hostname.clone());
        let of_routes = self.routes.iter().flat_map(|route| route.spec.hostnames.clone());
        let hosts = of_listeners.chain(of_routes).map(|hostname| match hostname.strip_prefix("*.") {
            Some(rest) => format!("of-no-other-name.{rest}"),
            None => hostname,
        });
        hosts.chain(["of-no-other-name.invalid".to_owned()]).collect()
    }
}

impl Row<'_> {
    /// Whether an earlier row takes all requests of the row for a host of both.
    fn is_taken_by(&self, earlier: &Self) -> bool {
        let conditions = earlier.conditions();
        earlier.covers_path_of(self)
            && earlier.method().is_none_or(|method| Some(method) == self.method())
            && (conditions.is_empty() || conditions == self.conditions())
    }
}

/// Whether a kind of route is one with requests.
pub(crate) fn is_of_requests(kind: &str) -> bool {
    [RouteKindName::Http, RouteKindName::Grpc].iter().any(|known| known.as_str() == kind)
}
