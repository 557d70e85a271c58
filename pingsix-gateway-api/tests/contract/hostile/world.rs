//! Random sites: protected parts beside open ones of the same host, of others, and of every host.

use super::site::{Demand, Dialect, Part, PathMatch, Site, Written};
use crate::rng::SeededRng;

/// The hosts of protected parts.
const HOSTS: [&[&str]; 5] = [
    &["admin.example"],
    &["shop.example"],
    &["admin.example", "intern.example"],
    &["*.apps.example"],
    &["one.apps.example"],
];

/// The hosts of open parts elsewhere.
const ELSEWHERE: [&[&str]; 6] =
    [&["shop.example"], &["open.example"], &["*.example"], &["*.apps.example"], &["two.apps.example"], &[]];

const NUMBERS: PathMatch =
    PathMatch::Regex { pattern: "/admin/[0-9]+", samples: &["/admin/5", "/admin/42"], prefix: None };

const REST: PathMatch = PathMatch::Regex {
    pattern: "/admin(.*)",
    samples: &["/admin", "/admin/x", "/administrator", "/admin-x"],
    prefix: Some("/admin"),
};

const VERSIONS: PathMatch =
    PathMatch::Regex { pattern: "/v[12]/admin", samples: &["/v1/admin", "/v2/admin"], prefix: None };

const BELOW: PathMatch =
    PathMatch::Regex { pattern: "/admin/.*", samples: &["/admin/x", "/admin/x/y"], prefix: Some("/admin") };

/// Under `use-regex`, a plain path is an expression without an end.
const PLAIN: PathMatch = PathMatch::Regex {
    pattern: "/internal",
    samples: &["/internal", "/internal/x", "/internal-x"],
    prefix: Some("/internal"),
};

/// Demands on addresses: those of tests on this machine, and those behind the proxy 127.0.0.4.
const ADDRESSES: [Demand; 7] = [
    Demand::Addresses { allow: &["127.0.0.8/29"], deny: &[], proxies: &[] },
    Demand::Addresses { allow: &[], deny: &["127.0.0.64/26"], proxies: &[] },
    Demand::Addresses { allow: &["127.0.0.8/30", "198.51.100.0/24"], deny: &["127.0.0.66/32"], proxies: &[] },
    Demand::Addresses { allow: &["127.0.0.8/29", "198.51.100.0/24"], deny: &[], proxies: &["127.0.0.4/32"] },
    Demand::Addresses {
        allow: &[],
        deny: &["203.0.113.0/24", "127.0.0.64/26"],
        proxies: &["127.0.0.4/32", "2001:db8::/32"],
    },
    Demand::Addresses { allow: &[], deny: &["203.0.113.9/32"], proxies: &["127.0.0.0/8"] },
    Demand::Addresses { allow: &["198.51.100.0/24", "127.0.0.0/28"], deny: &[], proxies: &["127.0.0.4/32"] },
];

/// The number of leading demands without proxies. Annotations have no proxies.
const WITHOUT_PROXIES: usize = 3;

impl Site {
    pub(super) fn draw(rng: &mut SeededRng) -> Self {
        let dialect = match rng.below(10) {
            0..5 => Dialect::Gateway,
            5..8 => Dialect::Nginx,
            _ => Dialect::Apisix,
        };
        let mut site = Self { dialect, parts: Vec::new(), cached: rng.percent(20) };
        for _ in 0..=rng.below(2) {
            let hosts = HOSTS[rng.below(HOSTS.len())];
            let path = protected_path(rng, dialect);
            let (written, demands) = demands(rng, dialect);
            let method = (dialect == Dialect::Gateway && rng.percent(10)).then_some("POST");
            let service = if matches!(path, PathMatch::Stripped { .. }) {
                "legacy"
            } else if rng.percent(75) {
                "shop"
            } else {
                "admin"
            };
            site.add(Part {
                name: String::new(),
                hosts: hosts.to_vec(),
                path,
                method,
                service,
                demands,
                written,
            });
            if rng.percent(70) {
                site.add(open(hosts, PathMatch::Prefix("/"), service_beside(rng, service)));
            }
            if rng.percent(25) {
                site.add(open(hosts, PathMatch::Prefix("/admin/public"), service_beside(rng, service)));
            }
            if rng.percent(25) {
                site.add(open(hosts, PathMatch::Exact("/login"), service_beside(rng, service)));
            }
        }
        for _ in 0..rng.below(4) {
            let hosts = ELSEWHERE[rng.below(ELSEWHERE.len())];
            let path = if rng.percent(70) { "/" } else { rng.one(&["/admin", "/open"]) };
            let service =
                if hosts.is_empty() && rng.percent(60) && !site.cached { "stranger" } else { "shop" };
            site.add(open(hosts, PathMatch::Prefix(path), service));
        }
        site
    }

    /// Adds a part unless another one has one of its hosts and its path.
    fn add(&mut self, mut part: Part) {
        let start = part.path.literal();
        let is_taken = self.parts.iter().any(|other| {
            let shares = other.hosts.iter().any(|host| part.hosts.contains(host));
            (shares || (other.hosts.is_empty() && part.hosts.is_empty())) && other.path.literal() == start
        });
        // All tokens have one issuer.
        if self.parts.iter().any(|other| other.demands.contains(&Demand::Token)) {
            for demand in part.demands.iter_mut().filter(|demand| **demand == Demand::Token) {
                *demand = Demand::User;
            }
        }
        if !is_taken {
            part.name = format!("p{}", self.parts.len());
            self.parts.push(part);
        }
    }
}

fn open(hosts: &[&'static str], path: PathMatch, service: &'static str) -> Part {
    Part {
        name: String::new(),
        hosts: hosts.to_vec(),
        path,
        method: None,
        service,
        demands: Vec::new(),
        written: Written::Policy,
    }
}

/// The Service of an open part beside a protected one: most often the same.
fn service_beside(rng: &mut SeededRng, service: &'static str) -> &'static str {
    if service != "legacy" && rng.percent(75) { service } else { "other" }
}

fn protected_path(rng: &mut SeededRng, dialect: Dialect) -> PathMatch {
    // Authors of an HTTPRoute write RFC 3986; those of an Ingress whatever the API server takes.
    let encoded = dialect == Dialect::Gateway;
    match rng.below(100) {
        0..25 => PathMatch::Prefix("/admin"),
        25..35 => PathMatch::Exact("/admin"),
        35..45 => PathMatch::Prefix("/"),
        45..55 => PathMatch::Prefix("/files/private"),
        55..60 => PathMatch::Exact("/files/private"),
        60..66 => PathMatch::Prefix(if encoded { "/%7Badmin%7D" } else { "/{admin}" }),
        66..72 => PathMatch::Prefix(if encoded { "/b%C3%BCro" } else { "/büro" }),
        72..76 => PathMatch::Exact(if encoded { "/a%7Cb" } else { "/a|b" }),
        76..82 => NUMBERS,
        82..86 => VERSIONS,
        _ if dialect == Dialect::Gateway => PathMatch::Prefix("/admin/api"),
        86..90 => REST,
        90..93 => BELOW,
        93..96 if dialect == Dialect::Nginx => PLAIN,
        _ => PathMatch::Stripped { prefix: "/admin" },
    }
}

fn demands(rng: &mut SeededRng, dialect: Dialect) -> (Written, Vec<Demand>) {
    let proxied = |rng: &mut SeededRng| ADDRESSES[rng.below(ADDRESSES.len())].clone();
    let direct = |rng: &mut SeededRng| ADDRESSES[rng.below(WITHOUT_PROXIES)].clone();
    let impossible = rng.percent(8);
    match dialect {
        Dialect::Nginx if rng.percent(60) => {
            let demands = match rng.below(3) {
                _ if impossible => vec![Demand::Impossible],
                0 => vec![Demand::User],
                1 => vec![direct(rng)],
                _ => vec![Demand::User, direct(rng)],
            };
            (Written::Annotations, demands)
        }
        Dialect::Apisix if rng.percent(60) => {
            let methods = [&["GET"][..], &["POST", "PUT"]][rng.below(2)];
            let demands = match rng.below(3) {
                _ if impossible => vec![Demand::Impossible],
                0 => vec![Demand::Methods(methods)],
                1 => vec![direct(rng)],
                _ => vec![Demand::Methods(methods), direct(rng)],
            };
            (Written::Annotations, demands)
        }
        Dialect::Gateway | Dialect::Nginx | Dialect::Apisix => {
            let authentication = match rng.below(5) {
                _ if impossible => Some(Demand::Impossible),
                0 => Some(Demand::Key { header: None, parameter: None }),
                1 => Some(Demand::Key { header: Some("X-Api-Key"), parameter: None }),
                2 => Some(Demand::Key { header: None, parameter: Some("key") }),
                3 => Some(Demand::User),
                _ => Some(Demand::Token),
            };
            let by_rule = dialect == Dialect::Gateway && rng.percent(40);
            let written = if by_rule { Written::RulePolicy } else { Written::Policy };
            let demands = match rng.below(3) {
                0 => vec![proxied(rng)],
                1 => authentication.into_iter().chain([proxied(rng)]).collect(),
                _ => authentication.into_iter().collect(),
            };
            (written, demands)
        }
    }
}
