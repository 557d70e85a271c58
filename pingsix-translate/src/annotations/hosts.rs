//! Hosts that an Ingress has besides those of its rules: aliases of a host, and hosts that are redirected to one.

use std::collections::BTreeMap;

use super::{Concern, IngressAnnotations, Support, Values, list, tunes};
use crate::model::Hostname;

/// In ingress-nginx, an alias is a name of the host, with all paths of all Ingresses.
const OWN_PATHS: &str =
    "An alias has the paths of this Ingress, and not those of other Ingresses with the same host.";

pub(super) const NGINX: Concern = Concern {
    annotations: &[
        list(tunes("server-alias", Support::Limited(OWN_PATHS))),
        tunes("from-to-www-redirect", Support::Exact),
    ],
    read,
};

/// The most aliases of an Ingress.
const MAX_ALIASES: usize = 32;

/// The most paths that an Ingress has with all of its aliases.
const MAX_PATHS: usize = 16 * 1024;

/// The longest hostname, in characters.
const MAX_NAME: usize = 253;

/// The first label of the hosts of from-to-www-redirect.
const WWW: &str = "www.";

fn read(values: &mut Values<'_>, read: &mut IngressAnnotations) {
    read.redirects_www = values.flag("from-to-www-redirect");
    for alias in values.list("server-alias").unwrap_or_default() {
        if alias.len() > MAX_NAME {
            values.refuse("server-alias", format!("An alias is longer than {MAX_NAME} characters."));
        } else if alias.starts_with('~') {
            let message = format!("\"{alias}\" is a regular expression, and PingSIX matches names of hosts.");
            values.refuse("server-alias", message);
        } else {
            match Hostname::parse(alias) {
                Ok(alias) if read.aliases.contains(&alias) => {}
                Ok(_) if read.aliases.len() >= MAX_ALIASES => {
                    let message = format!("\"{alias}\" is behind the first {MAX_ALIASES} aliases.");
                    values.refuse("server-alias", message);
                }
                Ok(alias) => read.aliases.push(alias),
                Err(error) => values.refuse("server-alias", format!("\"{alias}\" is no hostname: {error}.")),
            }
        }
    }
    if !read.aliases.is_empty() && read.canary.is_none() {
        values.limit("server-alias");
    }
}

/// The hosts that annotations add to those of the rules of an Ingress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MoreHosts {
    /// The host that the aliases stand for; `None` is the empty host.
    pub main: Option<Hostname>,
    /// The aliases, each with its number, which starts at 1.
    pub aliases: Vec<(u8, Hostname)>,
    /// Hosts whose requests are redirected.
    pub redirects: Vec<HostRedirect>,
    /// The number of aliases without effect, because the Ingress would have too many paths with them.
    pub beyond: usize,
}

/// A host whose requests are redirected to another host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRedirect {
    /// The host.
    pub from: Hostname,
    /// A host of the rules.
    pub to: Hostname,
}

impl MoreHosts {
    /// Whether the Ingress has no hosts but those of its rules.
    pub fn is_empty(&self) -> bool {
        self.aliases.is_empty() && self.redirects.is_empty() && self.beyond == 0
    }
}

impl IngressAnnotations {
    /// The hosts that the annotations add. `rules` has the host of each rule, empty for all hosts, with the number of its
    /// paths.
    ///
    /// Hosts of the rules are none of them. The aliases stand for the first host by name, as in ingress-nginx.
    pub fn more_hosts<'h>(&self, rules: impl Iterator<Item = (&'h str, usize)>) -> MoreHosts {
        let Self { aliases, redirects_www, canary: None, .. } = self else { return MoreHosts::default() };
        if aliases.is_empty() && !redirects_www {
            return MoreHosts::default();
        }
        let parsed = |host: &str| (!host.is_empty()).then(|| Hostname::parse(host)).transpose().ok();
        let rules: Vec<(Option<Hostname>, usize)> =
            rules.filter_map(|(host, paths)| Some((parsed(host)?, paths))).collect();
        // The server for all hosts is called `_` in ingress-nginx, which comes before letters.
        let by_name = rules.iter().map(|(host, _)| (host.as_ref().map_or("_", Hostname::as_str), host));
        let hosts: BTreeMap<&str, &Option<Hostname>> = by_name.collect();
        let Some((_, main)) = hosts.first_key_value() else { return MoreHosts::default() };
        let main = Option::clone(main);
        let named = hosts.values().copied().flatten().filter(|_| *redirects_www);
        let redirects = named.filter_map(|to| Some(HostRedirect { from: counterpart(to)?, to: to.clone() }));
        let redirects: Vec<HostRedirect> =
            redirects.filter(|HostRedirect { from, .. }| !hosts.contains_key(from.as_str())).collect();
        // A redirect comes before an alias, as in ingress-nginx.
        let is_other = |alias: &Hostname| {
            !hosts.contains_key(alias.as_str()) && redirects.iter().all(|redirect| redirect.from != *alias)
        };
        let mut aliases: Vec<(u8, Hostname)> =
            (1..).zip(aliases.iter().cloned()).filter(|(_, alias)| is_other(alias)).collect();
        let paths: usize =
            rules.iter().filter(|(host, _)| *host == main).map(|(_, paths)| paths.max(&1)).sum();
        let beyond = aliases.len().saturating_sub(MAX_PATHS / paths.max(1));
        aliases.truncate(aliases.len() - beyond);
        MoreHosts { main, aliases, redirects, beyond }
    }
}

/// The host with `www.` for a host without, and the other way round. A wildcard has none.
fn counterpart(host: &Hostname) -> Option<Hostname> {
    if host.is_wildcard() {
        return None;
    }
    let other = match host.as_str().strip_prefix(WWW) {
        Some(rest) => rest.to_owned(),
        None => format!("{WWW}{host}"),
    };
    Hostname::parse(&other).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn more(aliases: &[&str], redirects_www: bool, rules: &[(&str, usize)]) -> MoreHosts {
        let aliases = aliases.iter().map(|alias| Hostname::parse(alias).unwrap()).collect();
        let annotations = IngressAnnotations { aliases, redirects_www, ..IngressAnnotations::default() };
        annotations.more_hosts(rules.iter().copied())
    }

    fn aliases(more: &MoreHosts) -> Vec<(u8, &str)> {
        more.aliases.iter().map(|(number, alias)| (*number, alias.as_str())).collect()
    }

    #[test]
    fn aliases_are_of_the_first_host_by_name_and_none_of_the_rules() {
        let rules = [("b.test", 1), ("a.test", 1), ("a.test", 2)];
        let more = more(&["b.test", "c.test", "*.d.test"], false, &rules);
        assert_eq!(more.main.as_ref().map(Hostname::as_str), Some("a.test"));
        assert_eq!(aliases(&more), [(2, "c.test"), (3, "*.d.test")]);
        assert!(super::super::IngressAnnotations::default().more_hosts(rules.into_iter()).is_empty());
    }

    #[test]
    fn the_name_for_all_hosts_comes_before_letters() {
        let main =
            |host: &str| more(&["c.test"], false, &[("", 1), (host, 1)]).main.map(|main| main.to_string());
        assert_eq!(main("a.test"), None);
        assert_eq!(main("*.a.test").as_deref(), Some("*.a.test"));
        assert_eq!(main("1.test").as_deref(), Some("1.test"));
    }

    #[test]
    fn a_redirect_leads_to_the_host_of_the_rules_with_or_without_www() {
        let more = more(&["www.a.test"], true, &[("a.test", 1), ("www.b.test", 1), ("*.c.test", 1), ("", 1)]);
        let redirects: Vec<(&str, &str)> =
            more.redirects.iter().map(|one| (one.from.as_str(), one.to.as_str())).collect();
        assert_eq!(redirects, [("www.a.test", "a.test"), ("b.test", "www.b.test")]);
        assert_eq!(aliases(&more), [(0, ""); 0], "the redirect comes before the alias");
    }

    #[test]
    fn an_ingress_with_both_hosts_redirects_neither() {
        assert!(more(&[], true, &[("a.test", 1), ("www.a.test", 1)]).is_empty());
    }

    #[test]
    fn many_paths_have_few_aliases() {
        let names: Vec<String> = (0..4).map(|index| format!("{index}.test")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let with = more(&names, false, &[("a.test", MAX_PATHS / 2)]);
        assert_eq!((with.aliases.len(), with.beyond), (2, 2));
        assert_eq!(more(&names, false, &[("a.test", MAX_PATHS + 1)]).beyond, 4);
    }
}
