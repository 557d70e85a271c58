//! The CORS filter (Gateway API `HTTPCORSFilter`).

use std::collections::BTreeSet;

use gateway_api::experimental::httproutes as api;

use super::pattern::memory_of_origins;
use crate::crd::{self, OriginWildcards};
use crate::model::{Capability, FieldPath, Hostname, Reason, Refusal};
use crate::pingsix::plugin;

/// The CORS settings of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cors {
    pub(crate) origins: Origins,
    /// Upper-case, with the methods that are always allowed.
    pub(crate) methods: Names,
    pub(crate) headers: Names,
    pub(crate) expose: Names,
    /// Seconds.
    pub(crate) max_age: i32,
    pub(crate) credentials: bool,
}

/// Origins that are allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origins {
    Any,
    Listed {
        /// `scheme://host`, with the port unless it is the scheme's own, as browsers send it.
        exact: BTreeSet<String>,
        wildcard: BTreeSet<WildcardOrigin>,
    },
}

/// Every host below a domain, or every host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WildcardOrigin {
    pub(crate) scheme: &'static str,
    /// The domain after `*.`; `None` is every host.
    pub(crate) domain: Option<String>,
    pub(crate) depth: OriginWildcards,
    /// Unless it is the scheme's own.
    pub(crate) port: Option<u16>,
}

/// A list of names, or all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    Any,
    Listed(BTreeSet<String>),
}

/// Methods that Fetch always allows, listed or not.
const SAFELISTED: [&str; 3] = ["GET", "HEAD", "POST"];

impl Cors {
    /// Reads a filter; parts that cannot be honoured are refused.
    pub(crate) fn read(
        filter: &api::HttpRouteRulesFiltersCors,
        at: &FieldPath,
        refusals: &mut Vec<Refusal>,
    ) -> Self {
        let invalid = |at, message: String| Refusal::new(at, Reason::UnsupportedValue, message);
        let credentials = filter.allow_credentials == Some(true);
        let origins = filter.allow_origins.as_deref().unwrap_or_default();
        let origins = Origins::read(origins, &at.child("allowOrigins"), &mut |at, message| {
            refusals.push(invalid(at, message));
        });
        let mut methods = Names::read(filter.allow_methods.as_deref(), str::to_owned, |index, method| {
            if !plugin::Cors::METHODS.contains(&method) {
                let at = at.child("allowMethods").index(index);
                refusals.push(Capability::PreflightMethod.refuse_with(at, &[method]));
            }
        });
        if let Names::Listed(listed) = &mut methods {
            listed.extend(SAFELISTED.map(str::to_owned));
        }
        let mut header_names = |field: &str, names: Option<&[String]>| {
            Names::read(names, str::to_ascii_lowercase, |index, name| {
                if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
                    let message = format!("\"{name}\" is not a header name.");
                    refusals.push(invalid(at.child(field).index(index), message));
                }
            })
        };
        let headers = header_names("allowHeaders", filter.allow_headers.as_deref());
        let expose = header_names("exposeHeaders", filter.expose_headers.as_deref());
        if credentials && expose == Names::Any {
            let message = "With credentials browsers take * for a header of that name; list the headers.";
            refusals.push(invalid(at.child("exposeHeaders"), message.to_owned()));
        }
        let max_age = filter.max_age.unwrap_or(5);
        if max_age < 1 {
            let message = format!("{max_age} is not a number of seconds from 1.");
            refusals.push(invalid(at.child("maxAge"), message));
        }
        Self { origins, methods, headers, expose, max_age, credentials }
    }

    /// Reads the field of a policy; parts that cannot be honoured are refused.
    ///
    /// The filter of Gateway API admits credentials of any origin, because its specification says so. A policy never does.
    pub(crate) fn of_policy(policy: &crd::Cors, at: &FieldPath, refusals: &mut Vec<Refusal>) -> Self {
        let mut filter = api::HttpRouteRulesFiltersCors::from(policy);
        if admits_any_origin(policy) {
            filter.allow_credentials = Some(false);
        }
        let mut cors = Self::read(&filter, at, refusals);
        if let Origins::Listed { wildcard, .. } = &mut cors.origins {
            let depth = policy.origin_wildcards;
            *wildcard = std::mem::take(wildcard)
                .into_iter()
                .map(|origin| WildcardOrigin { depth, ..origin })
                .collect();
        }
        cors
    }
}

/// Whether a policy admits scripts of any origin, or of any origin with some scheme.
pub(crate) fn admits_any_origin(policy: &crd::Cors) -> bool {
    let is_any = |origin: &String| {
        origin == "*"
            || matches!(parse_origin(origin), Some(Origin::Wildcard(WildcardOrigin { domain: None, .. })))
    };
    policy.allow_origins.iter().any(is_any)
}

impl Origins {
    fn read(texts: &[String], at: &FieldPath, refuse: &mut impl FnMut(FieldPath, String)) -> Self {
        if texts.iter().any(|text| text == "*") {
            return Self::Any;
        }
        let (mut exact, mut wildcard) = (BTreeSet::new(), BTreeSet::new());
        for (index, text) in texts.iter().enumerate() {
            match parse_origin(text) {
                Some(Origin::Exact(origin)) => {
                    exact.insert(origin);
                }
                Some(Origin::Wildcard(origin)) => {
                    wildcard.insert(origin);
                }
                None => refuse(
                    at.index(index),
                    format!("\"{text}\" is not an origin: a scheme, a host, and perhaps a port."),
                ),
            }
        }
        Self::Listed { exact, wildcard }
    }
}

enum Origin {
    Exact(String),
    Wildcard(WildcardOrigin),
}

fn parse_origin(text: &str) -> Option<Origin> {
    let (scheme, rest) = text.split_once("://")?;
    let (scheme, own_port) = match scheme.to_ascii_lowercase().as_str() {
        "http" => ("http", 80),
        "https" => ("https", 443),
        _ => return None,
    };
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) => (host, Some(port.parse::<u16>().ok().filter(|port| *port > 0)?)),
        None => (rest, None),
    };
    let port = port.filter(|port| *port != own_port);
    let depth = OriginWildcards::AnyDepth;
    if host == "*" {
        return Some(Origin::Wildcard(WildcardOrigin { scheme, domain: None, depth, port }));
    }
    if let Some(domain) = host.strip_prefix("*.") {
        let domain = Some(Hostname::parse(domain).ok()?.to_string());
        return Some(Origin::Wildcard(WildcardOrigin { scheme, domain, depth, port }));
    }
    let is_address = host.parse::<std::net::Ipv4Addr>().is_ok();
    let host = if is_address { host.to_owned() } else { Hostname::parse(host).ok()?.to_string() };
    Some(Origin::Exact(match port {
        Some(port) => format!("{scheme}://{host}:{port}"),
        None => format!("{scheme}://{host}"),
    }))
}

impl Names {
    fn read(names: Option<&[String]>, spell: fn(&str) -> String, mut check: impl FnMut(usize, &str)) -> Self {
        let names = names.unwrap_or_default();
        if names.iter().any(|name| name == "*") {
            return Self::Any;
        }
        names.iter().enumerate().for_each(|(index, name)| check(index, name));
        Self::Listed(names.iter().map(|name| spell(name)).collect())
    }
}

/// No origin is spelled like this. PingSIX looks at patterns only when the list is not empty
/// (`src/plugins/cors.rs`).
const NO_ORIGIN: &str = "-";

impl Cors {
    /// The memory that PingSIX may need for the patterns of origins.
    pub(super) fn pattern_memory(&self) -> usize {
        match &self.origins {
            Origins::Any => 0,
            Origins::Listed { wildcard, .. } => {
                memory_of_origins(wildcard.iter().map(|origin| origin.pattern().len()))
            }
        }
    }

    /// The plugin of PingSIX.
    pub(crate) fn lower(&self) -> plugin::Cors {
        let (allow_origins, patterns) = match &self.origins {
            // With credentials PingSIX refuses `*`, and a pattern has it answer with the origin of the request.
            Origins::Any if self.credentials => (NO_ORIGIN.to_owned(), vec!["^.+$".to_owned()]),
            Origins::Any => ("*".to_owned(), Vec::new()),
            Origins::Listed { exact, wildcard } => {
                let exact: Vec<&str> = exact.iter().map(String::as_str).collect();
                let listed = if exact.is_empty() { NO_ORIGIN.to_owned() } else { exact.join(",") };
                (listed, wildcard.iter().map(WildcardOrigin::pattern).collect())
            }
        };
        let listed = |names: &Names, any: &str| match names {
            Names::Any => any.to_owned(),
            Names::Listed(names) => names.iter().map(String::as_str).collect::<Vec<_>>().join(","),
        };
        // With credentials browsers take `*` for a name, and PingSIX writes the names out for `**`.
        let any = if self.credentials { "**" } else { "*" };
        plugin::Cors {
            allow_origins,
            allow_methods: listed(&self.methods, any),
            allow_headers: listed(&self.headers, any),
            expose_headers: Some(listed(&self.expose, "*")).filter(|names| !names.is_empty()),
            max_age: self.max_age,
            allow_credential: self.credentials,
            allow_origins_by_regex: Some(patterns).filter(|patterns| !patterns.is_empty()),
        }
    }
}

impl WildcardOrigin {
    fn pattern(&self) -> String {
        let Self { scheme, domain, depth, port } = self;
        let names = match (domain, depth) {
            (Some(_), OriginWildcards::OneLabel) => "[A-Za-z0-9-]+",
            (Some(_) | None, _) => "[^/:]+",
        };
        let domain =
            domain.as_ref().map(|domain| format!(r"\.{}", regex::escape(domain))).unwrap_or_default();
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("^{scheme}://{names}{domain}{port}$")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(filter: Value) -> (Cors, Vec<String>) {
        let mut refusals = Vec::new();
        let at = FieldPath::new("cors");
        let cors = Cors::read(&serde_json::from_value(filter).unwrap(), &at, &mut refusals);
        (cors, refusals.iter().map(|refusal| refusal.at.to_string()).collect())
    }

    #[test]
    fn origins_are_spelled_as_browsers_send_them() {
        let (cors, refused) = read(json!({"allowOrigins": [
            "https://shop.example:443", "HTTP://a.example:8080", "https://*.example", "http://*:81", "shop.example",
            "https://a.*.example", "ftp://a.example",
        ]}));
        let wildcard = |scheme, domain: Option<&str>, port| WildcardOrigin {
            scheme,
            domain: domain.map(str::to_owned),
            depth: OriginWildcards::AnyDepth,
            port,
        };
        assert_eq!(
            cors.origins,
            Origins::Listed {
                exact: ["https://shop.example", "http://a.example:8080"].map(str::to_owned).into(),
                wildcard: [wildcard("https", Some("example"), None), wildcard("http", None, Some(81))].into(),
            }
        );
        assert_eq!(refused, ["cors.allowOrigins[4]", "cors.allowOrigins[5]", "cors.allowOrigins[6]"]);
    }

    #[test]
    fn safelisted_methods_are_always_allowed() {
        let (cors, refused) = read(json!({"allowMethods": ["PUT"]}));
        assert_eq!(cors.methods, Names::Listed(["GET", "HEAD", "POST", "PUT"].map(str::to_owned).into()));
        assert!(refused.is_empty());
        assert_eq!(read(json!({"allowMethods": ["TRACE"]})).1, ["cors.allowMethods[0]"]);
    }

    #[test]
    fn an_exposed_star_with_credentials_is_refused() {
        let filter = json!({"allowCredentials": true, "exposeHeaders": ["*"], "allowHeaders": ["a b"]});
        assert_eq!(read(filter).1, ["cors.allowHeaders[0]", "cors.exposeHeaders"]);
    }

    fn pattern(domain: Option<&str>, depth: OriginWildcards, port: Option<u16>) -> regex::Regex {
        let domain = domain.map(str::to_owned);
        regex::Regex::new(&WildcardOrigin { scheme: "https", domain, depth, port }.pattern()).unwrap()
    }

    #[test]
    fn a_wildcard_may_stand_for_one_label() {
        let below = pattern(Some("shop.example"), OriginWildcards::OneLabel, Some(8443));
        assert!(below.is_match("https://a-1.shop.example:8443"));
        for refused in [
            "https://a.b.shop.example:8443",
            "https://.shop.example:8443",
            "https://a.shop.example",
            "https://a.shop.example:84430",
            "https://a.shop.example:8443\n",
            "https://a_b.shop.example:8443",
            "https://x@a.shop.example:8443",
            "xhttps://a.shop.example:8443",
        ] {
            assert!(!below.is_match(refused), "{refused}");
        }
        assert!(pattern(None, OriginWildcards::OneLabel, None).is_match("https://a.b.example"));
    }

    #[test]
    fn a_policy_admits_no_credentials_of_any_origin() {
        let credentials = |origins: &[&str]| {
            let policy = crd::Cors {
                allow_origins: origins.iter().map(|origin| (*origin).to_owned()).collect(),
                allow_credentials: true,
                expose_headers: vec!["X-A".to_owned()],
                ..crd::Cors::default()
            };
            let mut refusals = Vec::new();
            let cors = Cors::of_policy(&policy, &FieldPath::new("cors"), &mut refusals);
            assert!(refusals.is_empty(), "{refusals:?}");
            (cors.credentials, admits_any_origin(&policy))
        };
        for any in [&["*"][..], &["https://*"], &["https://a.example", "http://*:8080"]] {
            assert_eq!(credentials(any), (false, true), "{any:?}");
        }
        for some in [&[][..], &["https://a.example"], &["https://*.example"]] {
            assert_eq!(credentials(some), (true, false), "{some:?}");
        }
    }

    #[test]
    fn wildcard_origins_stand_for_names_below_a_domain() {
        let pattern = |domain, port| pattern(domain, OriginWildcards::AnyDepth, port);
        let below = pattern(Some("shop.example"), None);
        for allowed in ["https://a.shop.example", "https://a.b.shop.example"] {
            assert!(below.is_match(allowed), "{allowed}");
        }
        for refused in [
            "https://shop.example",
            "https://a.shop.example:8443",
            "http://a.shop.example",
            "https://a-shop.example",
            "https://a.shopxexample",
            "https://evil.example/.shop.example",
            "https://a.shop.example.evil",
        ] {
            assert!(!below.is_match(refused), "{refused}");
        }
        assert!(pattern(None, Some(8443)).is_match("https://any.example:8443"));
    }

    #[test]
    fn credentials_and_any_origin_become_what_pingsix_takes() {
        let any = Cors {
            origins: Origins::Any,
            methods: Names::Any,
            headers: Names::Any,
            expose: Names::Listed(BTreeSet::new()),
            max_age: 5,
            credentials: true,
        };
        let lowered = any.lower();
        assert_eq!((lowered.allow_methods.as_str(), lowered.allow_headers.as_str()), ("**", "**"));
        assert_eq!(lowered.allow_origins_by_regex, Some(vec!["^.+$".to_owned()]));
        assert_eq!(lowered.expose_headers, None);
        let open = Cors { credentials: false, ..any }.lower();
        assert_eq!(open.allow_origins, "*");
        assert_eq!(open.allow_origins_by_regex, None);
    }
}
