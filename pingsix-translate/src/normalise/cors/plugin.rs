//! The CORS filter as a plugin.

use super::{Cors, Names, Origins, WildcardOrigin};
use crate::pingsix::plugin;

/// No origin is spelled like this. PingSIX looks at patterns only when the list is not empty
/// (`src/plugins/cors.rs`).
const NO_ORIGIN: &str = "-";

impl Cors {
    /// The plugin that does what the filter asks for.
    pub(crate) fn plugin(&self) -> plugin::Cors {
        let (allow_origins, patterns) = match &self.origins {
            // With credentials PingSIX refuses `*`, and a pattern has it answer with the origin of the request.
            Origins::Any if self.credentials => (NO_ORIGIN.to_owned(), vec!["^.+$".to_owned()]),
            Origins::Any => ("*".to_owned(), Vec::new()),
            Origins::Listed { exact, wildcard } => {
                let exact: Vec<&str> = exact.iter().map(String::as_str).collect();
                let listed = if exact.is_empty() { NO_ORIGIN.to_owned() } else { exact.join(",") };
                (listed, wildcard.iter().map(origin_pattern).collect())
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

fn origin_pattern(WildcardOrigin { scheme, domain, port }: &WildcardOrigin) -> String {
    let domain = domain.as_ref().map(|domain| format!(r"\.{}", regex::escape(domain))).unwrap_or_default();
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    format!("^{scheme}://[^/:]+{domain}{port}$")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use regex::Regex;

    use super::*;

    #[test]
    fn wildcard_origins_stand_for_names_below_a_domain() {
        let pattern = |domain: Option<&str>, port| {
            let domain = domain.map(str::to_owned);
            Regex::new(&origin_pattern(&WildcardOrigin { scheme: "https", domain, port })).unwrap()
        };
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
        let lowered = any.plugin();
        assert_eq!((lowered.allow_methods.as_str(), lowered.allow_headers.as_str()), ("**", "**"));
        assert_eq!(lowered.allow_origins_by_regex, Some(vec!["^.+$".to_owned()]));
        assert_eq!(lowered.expose_headers, None);
        let open = Cors { credentials: false, ..any }.plugin();
        assert_eq!(open.allow_origins, "*");
        assert_eq!(open.allow_origins_by_regex, None);
    }
}
