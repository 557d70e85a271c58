//! The annotations of an Ingress, as ingress-nginx reads them.
//!
//! An annotation that changes answers in a way that is not modelled makes the answers of its locations, or of the whole
//! server, unknown.

use std::collections::BTreeMap;

use crate::original::network::Network;

/// The domain of the annotations.
const DOMAIN: &str = "nginx.ingress.kubernetes.io/";

/// Annotations that are modelled.
const READ: &[&str] = &[
    "allowlist-source-range",
    "app-root",
    "auth-realm",
    "auth-secret",
    "auth-secret-type",
    "auth-type",
    "backend-protocol",
    "canary",
    "canary-by-cookie",
    "canary-by-header",
    "canary-by-header-value",
    "canary-weight",
    "canary-weight-total",
    "default-backend",
    "denylist-source-range",
    "enable-cors",
    "force-ssl-redirect",
    "from-to-www-redirect",
    "limit-rpm",
    "limit-rps",
    "permanent-redirect",
    "permanent-redirect-code",
    "preserve-trailing-slash",
    "proxy-body-size",
    "rewrite-target",
    "server-alias",
    "service-upstream",
    "ssl-redirect",
    "temporal-redirect",
    "temporal-redirect-code",
    "upstream-vhost",
    "use-regex",
    "whitelist-source-range",
];

/// Annotations that change neither the Service of a request nor its path, host and status.
const WITHOUT_EFFECT: &[&str] = &[
    "affinity",
    "affinity-mode",
    "auth-cache-duration",
    "auth-cache-key",
    "auth-method",
    "auth-response-headers",
    "auth-signin",
    "client-body-buffer-size",
    "connection-proxy-header",
    "cors-allow-credentials",
    "cors-allow-headers",
    "cors-allow-methods",
    "cors-allow-origin",
    "cors-expose-headers",
    "cors-max-age",
    "custom-headers",
    "enable-access-log",
    "enable-opentelemetry",
    "enable-opentracing",
    "enable-rewrite-log",
    "http2-push-preload",
    "limit-burst-multiplier",
    "limit-connections",
    "limit-rate",
    "limit-rate-after",
    "limit-whitelist",
    "load-balance",
    "mirror-host",
    "mirror-request-body",
    "mirror-target",
    "proxy-buffer-size",
    "proxy-buffering",
    "proxy-buffers-number",
    "proxy-busy-buffers-size",
    "proxy-connect-timeout",
    "proxy-cookie-domain",
    "proxy-cookie-path",
    "proxy-http-version",
    "proxy-max-temp-file-size",
    "proxy-next-upstream",
    "proxy-next-upstream-timeout",
    "proxy-next-upstream-tries",
    "proxy-read-timeout",
    "proxy-redirect-from",
    "proxy-redirect-to",
    "proxy-request-buffering",
    "proxy-send-timeout",
    "proxy-ssl-ciphers",
    "proxy-ssl-name",
    "proxy-ssl-protocols",
    "proxy-ssl-secret",
    "proxy-ssl-server-name",
    "proxy-ssl-verify",
    "proxy-ssl-verify-depth",
    "session-cookie-expires",
    "session-cookie-max-age",
    "session-cookie-name",
    "session-cookie-path",
    "session-cookie-samesite",
    "session-cookie-secure",
    "ssl-ciphers",
    "ssl-prefer-server-ciphers",
    "upstream-hash-by",
    "upstream-hash-by-subset",
    "upstream-hash-by-subset-size",
    "x-forwarded-prefix",
];

/// Annotations whose effect holds for the whole server.
const OF_SERVER: &[&str] = &[
    "auth-tls-error-page",
    "auth-tls-match-cn",
    "auth-tls-secret",
    "auth-tls-verify-client",
    "server-snippet",
    "ssl-passthrough",
];

/// The most bytes of a body without `proxy-body-size`.
const DEFAULT_MAX_BODY_BYTES: u64 = 1 << 20;

/// The settings of an Ingress.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an annotation of its own")]
pub(super) struct Settings {
    pub(super) canary: Option<Canary>,
    pub(super) target: Option<String>,
    pub(super) use_regex: bool,
    pub(super) app_root: Option<String>,
    pub(super) ssl_redirect: bool,
    pub(super) force_ssl_redirect: bool,
    pub(super) preserve_trailing_slash: bool,
    /// The status and the location, with variables.
    pub(super) redirect: Option<(u16, String)>,
    pub(super) from_to_www: bool,
    pub(super) aliases: Vec<String>,
    pub(super) allowed: Option<Vec<Network>>,
    pub(super) denied: Vec<Network>,
    pub(super) has_basic_auth: bool,
    pub(super) has_limit: bool,
    /// Locations answer 503, because ingress-nginx cannot read an annotation that protects them.
    pub(super) is_refused: bool,
    pub(super) host: Option<String>,
    pub(super) default_backend: Option<String>,
    pub(super) service_upstream: bool,
    /// Whether preflights are answered: those of all origins, or those of some.
    pub(super) cors: Option<Origins>,
    /// `None` without a limit.
    pub(super) body: Option<u64>,
    /// The reason for which the answers of its locations are unknown.
    pub(super) unknown: Option<String>,
    /// The reason for which all answers of the server are unknown.
    pub(super) unknown_server: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origins {
    All,
    Some,
}

/// The share of a canary.
#[derive(Clone, Debug, Default)]
pub(super) struct Canary {
    pub(super) header: Option<String>,
    pub(super) header_value: Option<String>,
    pub(super) header_pattern: bool,
    pub(super) cookie: Option<String>,
    pub(super) weight: u32,
    pub(super) total: u32,
}

/// The annotations of the domain, without it.
struct Values<'a>(BTreeMap<&'a str, &'a str>);

impl Values<'_> {
    /// A text. Each line is trimmed.
    fn text(&self, name: &str) -> Option<String> {
        let lines: Vec<&str> = self.0.get(name)?.split('\n').map(str::trim).collect();
        Some(lines.join("\n")).filter(|text| !text.is_empty())
    }

    /// A truth value; `None` for a value that is none.
    fn truth(&self, name: &str) -> Option<bool> {
        match *self.0.get(name)? {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
            _ => None,
        }
    }

    fn number(&self, name: &str) -> Option<i64> {
        self.0.get(name)?.parse().ok()
    }
}

impl Settings {
    /// Reads the annotations. `secret` has the entries of a Secret, if the input has the Secret.
    pub(super) fn read<'a>(
        annotations: impl Iterator<Item = (&'a String, &'a String)>,
        secret: impl Fn(&str) -> Option<Vec<String>>,
    ) -> Self {
        let own = annotations.filter_map(|(name, value)| Some((name.strip_prefix(DOMAIN)?, value.as_str())));
        let values = Values(own.collect());
        let truth = |name: &str, default| values.truth(name).unwrap_or(default);
        let mut settings = Self {
            canary: truth("canary", false).then(|| canary(&values)),
            target: values.text("rewrite-target"),
            use_regex: truth("use-regex", false),
            app_root: values.text("app-root").filter(|root| root.starts_with('/')),
            ssl_redirect: truth("ssl-redirect", true),
            force_ssl_redirect: truth("force-ssl-redirect", false),
            preserve_trailing_slash: truth("preserve-trailing-slash", false),
            redirect: redirect(&values),
            from_to_www: truth("from-to-www-redirect", false),
            aliases: aliases(&values),
            host: values.text("upstream-vhost"),
            default_backend: values.text("default-backend"),
            service_upstream: truth("service-upstream", false),
            has_limit: ["limit-rps", "limit-rpm"]
                .iter()
                .any(|name| values.number(name).is_some_and(|most| most > 0)),
            cors: truth("enable-cors", false).then(|| origins(&values)),
            body: Some(DEFAULT_MAX_BODY_BYTES),
            ..Self::default()
        };
        if settings.target.as_ref().is_some_and(|target| !is_target(target)) {
            settings.is_unknown("rewrite-target");
        }
        settings.read_addresses(&values);
        settings.read_credentials(&values, secret);
        settings.read_body(&values);
        let protocol = values.text("backend-protocol").map(|name| name.to_ascii_uppercase());
        if !matches!(protocol.as_deref(), None | Some("HTTP" | "HTTPS" | "GRPC" | "GRPCS")) {
            settings.is_unknown("backend-protocol");
        }
        for name in ["from-to-www-redirect", "relative-redirects"] {
            // The value makes ingress-nginx ignore the Ingress or its redirects, depending on the version.
            if values.0.contains_key(name) && values.truth(name).is_none() {
                settings.is_unknown(name);
            }
        }
        for name in values.0.keys() {
            if OF_SERVER.contains(name) {
                settings.unknown_server = Some(format!("{DOMAIN}{name} is not modelled"));
            } else if !READ.contains(name) && !WITHOUT_EFFECT.contains(name) {
                settings.is_unknown(name);
            }
        }
        settings
    }

    fn is_unknown(&mut self, name: &str) {
        self.unknown.get_or_insert_with(|| format!("{DOMAIN}{name} is not modelled, or its value is none"));
    }

    /// A list of which one entry is no network refuses all requests.
    fn read_addresses(&mut self, values: &Values<'_>) {
        let given = |name: &str| values.0.get(name).is_some_and(|value| !value.is_empty());
        let allow = ["allowlist-source-range", "whitelist-source-range"];
        let name = allow.into_iter().find(|name| given(name));
        let name = name.or_else(|| allow.into_iter().find(|name| values.0.contains_key(name)));
        let mut list = |name: &str| {
            let networks = Network::list(&values.text(name).unwrap_or_default());
            self.is_refused |= networks.is_err();
            networks.unwrap_or_default()
        };
        self.allowed = name.map(&mut list);
        if values.0.contains_key("denylist-source-range") {
            self.denied = list("denylist-source-range");
        }
    }

    fn read_credentials(&mut self, values: &Values<'_>, secret: impl Fn(&str) -> Option<Vec<String>>) {
        let Some(kind) = values.text("auth-type") else { return };
        if kind != "basic" {
            self.is_unknown("auth-type");
            return;
        }
        let Some(name) = values.text("auth-secret") else {
            self.is_refused = true;
            return;
        };
        self.has_basic_auth = true;
        let is_map = values.text("auth-secret-type").as_deref() == Some("auth-map");
        match secret(&name) {
            Some(entries) => self.is_refused |= !is_map && !entries.iter().any(|entry| entry == "auth"),
            None => self.is_unknown("auth-secret"),
        }
    }

    fn read_body(&mut self, values: &Values<'_>) {
        let Some(text) = values.text("proxy-body-size") else { return };
        let text = text.to_ascii_lowercase();
        let (digits, unit) = match text.strip_suffix(['b', 'k', 'm', 'g']) {
            Some(digits) => (digits, text.chars().next_back()),
            None => (text.as_str(), None),
        };
        let shift = match unit {
            Some('k') => 10,
            Some('m') => 20,
            Some('g') => 30,
            _ => 0,
        };
        match digits.parse::<u64>() {
            Ok(0) => self.body = None,
            Ok(size) => self.body = Some(size.saturating_mul(1 << shift)),
            Err(_) => self.is_unknown("proxy-body-size"),
        }
    }
}

fn canary(values: &Values<'_>) -> Canary {
    let weight = |name: &str| values.number(name).and_then(|number| u32::try_from(number).ok());
    Canary {
        header: values.text("canary-by-header"),
        header_value: values.text("canary-by-header-value"),
        header_pattern: values.0.contains_key("canary-by-header-pattern"),
        cookie: values.text("canary-by-cookie"),
        weight: weight("canary-weight").unwrap_or(0),
        total: weight("canary-weight-total").unwrap_or(100).max(100),
    }
}

/// Some versions of ingress-nginx ignore a target with other characters.
fn is_target(target: &str) -> bool {
    target.chars().all(|letter| letter.is_ascii_alphanumeric() || "-._~/:$".contains(letter))
}

fn redirect(values: &Values<'_>) -> Option<(u16, String)> {
    if let Some(url) = values.text("temporal-redirect") {
        let status = values.number("temporal-redirect-code").filter(|code| (300..=307).contains(code));
        return url.starts_with("http").then(|| (code(status, 302), url));
    }
    let url = values.text("permanent-redirect")?;
    let status = values.number("permanent-redirect-code").filter(|code| (300..=308).contains(code));
    Some((code(status, 301), url))
}

fn code(status: Option<i64>, default: u16) -> u16 {
    status.and_then(|status| u16::try_from(status).ok()).unwrap_or(default)
}

fn aliases(values: &Values<'_>) -> Vec<String> {
    let text = values.text("server-alias").unwrap_or_default();
    let mut aliases: Vec<String> = text.split(',').map(|alias| alias.trim().to_owned()).collect();
    aliases.retain(|alias| !alias.is_empty());
    aliases.sort();
    aliases.dedup();
    aliases
}

fn origins(values: &Values<'_>) -> Origins {
    let Some(text) = values.text("cors-allow-origin") else { return Origins::All };
    if text.split(',').any(|origin| origin.trim() == "*") { Origins::All } else { Origins::Some }
}
