//! Settings by annotations, each with its meaning.
//!
//! The meanings are those of the documentation of ingress-nginx and of APISIX, with the differences that
//! `docs/reference/annotations.md` names. The model has no parser: each value stands beside its meaning.

use super::super::annotated::{APISIX, NGINX};

/// The meaning of the annotations of an Ingress.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is what one annotation does")]
pub(super) struct Meaning {
    /// An annotation protects the Ingress, and cannot be honoured.
    pub(super) is_closed: bool,
    pub(super) canary: Option<Share>,
    /// Whether `ssl-redirect` is given up.
    pub(super) keeps_plaintext: bool,
    /// Whether plaintext is redirected whatever the certificates are.
    pub(super) forces_https: bool,
    pub(super) app_root: Option<&'static str>,
    pub(super) allowed_methods: &'static [&'static str],
    pub(super) blocked_methods: &'static [&'static str],
    pub(super) permanent: Option<(u16, &'static str)>,
    pub(super) permanent_code: Option<u16>,
    pub(super) temporary: Option<(u16, &'static str)>,
    /// The redirect of a snippet.
    pub(super) snippet: Option<(u16, &'static str)>,
    /// Whether paths are regular expressions.
    pub(super) use_regex: bool,
    /// The path for backends with groups of the path of the Ingress.
    pub(super) rewrite: Option<&'static str>,
    /// The path for backends whatever the path of the Ingress is: all of it, or what a regular expression makes of it.
    pub(super) whole: Option<&'static str>,
    pub(super) replace: Option<(&'static str, &'static str)>,
    pub(super) aliases: &'static [&'static str],
    pub(super) redirects_www: bool,
    pub(super) is_for_scripts: bool,
    pub(super) host: Option<&'static str>,
    pub(super) prefix: Option<&'static str>,
    /// The namespace of the ConfigMap with headers.
    pub(super) headers_of: Option<&'static str>,
    /// Whether the following changes of responses count.
    pub(super) rewrites_responses: bool,
    pub(super) set: Option<(&'static str, &'static str)>,
    pub(super) add: Option<(&'static str, &'static str)>,
    pub(super) remove: Option<&'static str>,
    pub(super) status: Option<u16>,
    pub(super) default_backend: Option<&'static str>,
    pub(super) allow: Option<&'static str>,
    pub(super) deny: Option<&'static str>,
    pub(super) has_user: bool,
    /// Whether addresses or credentials are enough.
    takes_either: bool,
    /// Whether a target that PingSIX lacks is in the place of `rewrite`.
    has_other_target: bool,
    /// Whether the Ingress has an annotation of ingress-nginx, effective or not.
    pub(super) is_of_nginx: bool,
}

/// The share of a canary.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// The header, and the value that alone chooses the canary.
    pub(super) header: Option<(&'static str, Option<&'static str>)>,
    pub(super) weight: u64,
    pub(super) total: u64,
}

/// Annotations that belong together, and their meaning.
pub(super) struct Setting {
    pub(super) domain: &'static str,
    pub(super) annotations: &'static [(&'static str, &'static str)],
    pub(super) means: fn(&mut Meaning),
}

const fn nginx(annotations: &'static [(&'static str, &'static str)], means: fn(&mut Meaning)) -> Setting {
    Setting { domain: NGINX, annotations, means }
}

const fn apisix(annotations: &'static [(&'static str, &'static str)], means: fn(&mut Meaning)) -> Setting {
    Setting { domain: APISIX, annotations, means }
}

/// Without an effect on any answer.
const fn no_effect(_: &mut Meaning) {}

const fn closes(meaning: &mut Meaning) {
    meaning.is_closed = true;
}

/// A target that PingSIX lacks. The paths are regular expressions nevertheless.
const fn other_target(meaning: &mut Meaning) {
    meaning.has_other_target = true;
    meaning.use_regex = true;
}

const fn share(header: Option<(&'static str, Option<&'static str>)>, weight: u64, total: u64) -> Share {
    Share { header, weight, total }
}

/// The settings of ingress-nginx.
pub(super) const OF_NGINX: &[Setting] = &[
    nginx(&[("affinity-mode", "persistent")], no_effect),
    nginx(&[("no-such-annotation", "x")], no_effect),
    nginx(&[("enable-modsecurity", "false")], no_effect),
    nginx(&[("app-root", "/app")], |meaning| meaning.app_root = Some("/app")),
    nginx(&[("app-root", "app")], no_effect),
    nginx(&[("app-root", "/$request_uri")], no_effect),
    nginx(&[("permanent-redirect", "https://www.example.com/a")], |meaning| {
        meaning.permanent = Some((301, "https://www.example.com/a"));
    }),
    nginx(&[("permanent-redirect", "/x"), ("permanent-redirect-code", "308")], |meaning| {
        meaning.permanent = Some((308, "/x"));
    }),
    nginx(&[("permanent-redirect", "http://www.test/"), ("permanent-redirect-code", "200")], |meaning| {
        meaning.permanent = Some((301, "http://www.test/"));
    }),
    nginx(&[("permanent-redirect", "https://$host/a")], |meaning| {
        meaning.permanent = Some((301, "https://$host/a"));
    }),
    nginx(&[("permanent-redirect", "https://www.test$request_uri")], |meaning| {
        meaning.permanent = Some((301, "https://www.test$request_uri"));
    }),
    nginx(&[("temporal-redirect", "https://www.test/$arg_page")], closes),
    nginx(&[("permanent-redirect-code", "308")], |meaning| meaning.permanent_code = Some(308)),
    nginx(&[("temporal-redirect", "http://www.test/b")], |meaning| {
        meaning.temporary = Some((302, "http://www.test/b"));
    }),
    nginx(&[("ssl-redirect", "true")], no_effect),
    nginx(&[("ssl-redirect", "yes")], no_effect),
    nginx(&[("ssl-redirect", "false")], |meaning| meaning.keeps_plaintext = true),
    nginx(&[("force-ssl-redirect", "true")], |meaning| meaning.forces_https = true),
    nginx(&[("force-ssl-redirect", "on")], no_effect),
    nginx(&[("rewrite-target", "/")], |meaning| meaning.rewrite = Some("/")),
    nginx(&[("rewrite-target", "/$1")], |meaning| meaning.rewrite = Some("/$1")),
    nginx(&[("rewrite-target", "/$2/x")], |meaning| meaning.rewrite = Some("/$2/x")),
    nginx(&[("rewrite-target", "/a?b=c")], other_target),
    nginx(&[("rewrite-target", "/${host}")], other_target),
    nginx(&[("use-regex", "true")], |meaning| meaning.use_regex = true),
    nginx(&[("use-regex", "false")], no_effect),
    nginx(&[("server-alias", "alias.test, deep.alias.test")], |meaning| {
        meaning.aliases = &["alias.test", "deep.alias.test"];
    }),
    nginx(&[("server-alias", "example.com,*.alias.test")], |meaning| {
        meaning.aliases = &["example.com", "*.alias.test"];
    }),
    nginx(&[("server-alias", "~^x[0-9]+$")], no_effect),
    nginx(&[("from-to-www-redirect", "true")], |meaning| meaning.redirects_www = true),
    nginx(&[("canary", "true")], |meaning| meaning.canary = Some(share(None, 0, 100))),
    nginx(&[("canary", "true"), ("canary-weight", "20")], |meaning| {
        meaning.canary = Some(share(None, 20, 100));
    }),
    nginx(&[("canary", "true"), ("canary-weight", "1"), ("canary-weight-total", "2")], |meaning| {
        meaning.canary = Some(share(None, 1, 2));
    }),
    nginx(&[("canary", "true"), ("canary-weight", "1000")], |meaning| {
        meaning.canary = Some(share(None, 100, 100));
    }),
    nginx(&[("canary", "true"), ("canary-by-header", "X-Canary")], |meaning| {
        meaning.canary = Some(share(Some(("x-canary", None)), 0, 100));
    }),
    nginx(
        &[
            ("canary", "true"),
            ("canary-by-header", "X-Canary"),
            ("canary-by-header-value", "eu"),
            ("canary-weight", "50"),
        ],
        |meaning| meaning.canary = Some(share(Some(("x-canary", Some("eu"))), 50, 100)),
    ),
    nginx(&[("canary", "true"), ("canary-by-cookie", "c")], |meaning| {
        meaning.canary = Some(share(None, 0, 100));
    }),
    nginx(&[("canary", "yes"), ("canary-weight", "100")], no_effect),
    nginx(&[("enable-cors", "true")], |meaning| meaning.is_for_scripts = true),
    nginx(&[("enable-cors", "TRUE")], |meaning| meaning.is_for_scripts = true),
    nginx(&[("enable-cors", "yes")], no_effect),
    nginx(&[("upstream-vhost", "internal.example.com")], |meaning| {
        meaning.host = Some("internal.example.com");
    }),
    nginx(&[("upstream-vhost", "$service_name")], no_effect),
    nginx(&[("x-forwarded-prefix", "/a")], |meaning| meaning.prefix = Some("/a")),
    nginx(&[("x-forwarded-prefix", "$uri")], no_effect),
    nginx(&[("x-forwarded-prefix", "/a\r\nX-Admin: 1")], no_effect),
    nginx(&[("custom-headers", "infra/headers")], |meaning| meaning.headers_of = Some("infra")),
    nginx(&[("custom-headers", "app/headers")], |meaning| meaning.headers_of = Some("app")),
    nginx(&[("custom-headers", "app-b/absent")], no_effect),
    nginx(&[("default-backend", "two")], |meaning| meaning.default_backend = Some("two")),
    nginx(&[("default-backend", "missing")], no_effect),
    nginx(&[("default-backend", "infra/two")], no_effect),
    nginx(&[("allowlist-source-range", "10.0.0.0/8")], |meaning| meaning.allow = Some("10.0.0.0/8")),
    nginx(&[("denylist-source-range", "192.0.2.0/24")], |meaning| meaning.deny = Some("192.0.2.0/24")),
    nginx(&[("allowlist-source-range", "")], closes),
    nginx(&[("denylist-source-range", " , ")], closes),
    nginx(&[("allowlist-source-range", "10.1.2.3/8")], |meaning| meaning.allow = Some("10.0.0.0/8")),
    nginx(&[("allowlist-source-range", "10.0.0.0/33")], closes),
    nginx(&[("configuration-snippet", " ")], no_effect),
    nginx(&[("auth-url", ""), ("auth-tls-secret", "")], no_effect),
    nginx(&[("allowlist-source-range", "10.0.0.0/8,anywhere")], closes),
    nginx(&[("auth-type", "basic"), ("auth-secret", "user")], |meaning| meaning.has_user = true),
    nginx(&[("auth-type", "basic"), ("auth-secret", "absent")], closes),
    nginx(&[("auth-type", "basic"), ("auth-secret", "htpasswd")], closes),
    nginx(&[("auth-type", "digest"), ("auth-secret", "user")], closes),
    nginx(&[("auth-url", "http://auth.test/check")], closes),
    nginx(&[("configuration-snippet", "return 200;")], closes),
    nginx(&[("configuration-snippet", "return 301 https://www.test$request_uri;")], |meaning| {
        meaning.snippet = Some((301, "https://www.test$request_uri"));
    }),
    nginx(&[("configuration-snippet", "more_set_headers 'X-A: $host';")], closes),
    nginx(&[("allowlist-source-range", "10.0.0.0/8,")], closes),
    nginx(&[("satisfy", "any")], |meaning| meaning.takes_either = true),
];

/// The settings of the APISIX Ingress controller.
pub(super) const OF_APISIX: &[Setting] = &[
    apisix(&[("enable-websocket", "true")], no_effect),
    apisix(&[("no-such-annotation", "x")], no_effect),
    apisix(&[("http-to-https", "true")], |meaning| meaning.forces_https = true),
    apisix(&[("http-to-https", "false")], no_effect),
    apisix(&[("http-redirect", "https://www.example.com/a")], |meaning| {
        meaning.permanent = Some((301, "https://www.example.com/a"));
    }),
    apisix(&[("http-redirect", "/x"), ("http-redirect-code", "308")], |meaning| {
        meaning.permanent = Some((308, "/x"));
    }),
    apisix(&[("http-redirect", "/x"), ("http-redirect-code", "200")], |meaning| {
        meaning.permanent = Some((301, "/x"));
    }),
    apisix(&[("http-redirect", "https://www.test$uri")], |meaning| {
        meaning.permanent = Some((301, "https://www.test$request_uri"));
    }),
    apisix(&[("http-redirect", "/x$uri")], closes),
    apisix(&[("http-allow-methods", "GET")], |meaning| meaning.allowed_methods = &["GET"]),
    apisix(&[("http-allow-methods", "GET, OPTIONS")], |meaning| {
        meaning.allowed_methods = &["GET", "OPTIONS"];
    }),
    apisix(&[("http-allow-methods", "GET,get")], closes),
    apisix(&[("http-block-methods", "DELETE,POST")], |meaning| {
        meaning.blocked_methods = &["DELETE", "POST"];
    }),
    apisix(&[("rewrite-target", "/v1")], |meaning| meaning.whole = Some("/v1")),
    apisix(&[("rewrite-target", "/$1")], no_effect),
    apisix(&[("rewrite-target", "v1")], no_effect),
    apisix(&[("rewrite-target-regex", "^/foo/(.*)"), ("rewrite-target-regex-template", "/$1")], |meaning| {
        meaning.replace = Some(("^/foo/(.*)", "/$1"));
    }),
    apisix(&[("rewrite-target-regex", "/(f)(o+)"), ("rewrite-target-regex-template", "/$2/$1")], |meaning| {
        meaning.replace = Some(("/(f)(o+)", "/$2/$1"));
    }),
    apisix(&[("rewrite-target-regex", "^/foo/(.*)"), ("rewrite-target-regex-template", "/$2")], no_effect),
    apisix(&[("rewrite-target-regex", "("), ("rewrite-target-regex-template", "/x")], no_effect),
    apisix(&[("rewrite-target-regex", "^/foo")], no_effect),
    apisix(&[("use-regex", "true")], |meaning| meaning.use_regex = true),
    apisix(&[("enable-cors", "true")], |meaning| meaning.is_for_scripts = true),
    apisix(
        &[("enable-response-rewrite", "true"), ("response-rewrite-set-header", "X-Keep:set")],
        |meaning| {
            meaning.rewrites_responses = true;
            meaning.set = Some(("x-keep", "set"));
        },
    ),
    apisix(&[("response-rewrite-add-header", "X-More:a")], |meaning| meaning.add = Some(("x-more", "a"))),
    apisix(&[("response-rewrite-remove-header", "X-Drop")], |meaning| meaning.remove = Some("x-drop")),
    apisix(&[("enable-response-rewrite", "true"), ("response-rewrite-status-code", "404")], |meaning| {
        meaning.rewrites_responses = true;
        meaning.status = Some(404);
    }),
    apisix(&[("enable-response-rewrite", "true"), ("response-rewrite-status-code", "100")], |meaning| {
        meaning.rewrites_responses = true;
    }),
    apisix(&[("response-rewrite-status-code", "202")], |meaning| meaning.status = Some(202)),
    apisix(&[("allowlist-source-range", "10.0.0.0/8")], |meaning| meaning.allow = Some("10.0.0.0/8")),
    apisix(&[("blocklist-source-range", "192.0.2.0/24")], |meaning| meaning.deny = Some("192.0.2.0/24")),
    apisix(&[("blocklist-source-range", "everybody")], closes),
    apisix(&[("blocklist-source-range", "192.0.2.9/24")], |meaning| meaning.deny = Some("192.0.2.0/24")),
    apisix(&[("blocklist-source-range", "")], closes),
    apisix(&[("http-block-methods", ",")], closes),
    apisix(&[("auth-uri", "")], no_effect),
    apisix(&[("auth-uri", "http://auth.test/check")], closes),
    apisix(&[("auth-type", "keyAuth")], closes),
    apisix(&[("enable-csrf", "true")], closes),
    apisix(&[("enable-csrf", "false")], no_effect),
    apisix(&[("plugin-config-name", "limits")], closes),
    apisix(&[("svc-namespace", "app")], closes),
];

impl Meaning {
    /// The meaning of annotations beside each other.
    pub(super) fn together(mut self) -> Self {
        self.is_closed |= self.takes_either && self.has_user && (self.allow.is_some() || self.deny.is_some());
        // ingress-nginx sends the header for paths with a rewrite alone.
        self.prefix = self.prefix.filter(|_| self.rewrite.is_some() || self.has_other_target);
        self
    }

    /// The redirect of all requests: ingress-nginx prefers that of a snippet, then the temporary one, and APISIX the one to HTTPS.
    pub(super) fn redirect(&self) -> Option<(u16, &'static str)> {
        let permanent = self.permanent.map(|(code, url)| (self.permanent_code.unwrap_or(code), url));
        self.snippet.or(self.temporary).or(permanent).filter(|_| self.is_of_nginx || !self.forces_https)
    }

    /// Whether a method is refused. APISIX looks at blocked methods only if none are allowed.
    pub(super) fn refuses(&self, method: &str) -> bool {
        match self.allowed_methods {
            [] => self.blocked_methods.contains(&method),
            allowed => !allowed.contains(&method),
        }
    }

    /// Whether the Ingress refuses some requests.
    pub(super) fn protects(&self) -> bool {
        let has_methods = !self.allowed_methods.is_empty() || !self.blocked_methods.is_empty();
        self.is_closed || self.has_user || self.allow.is_some() || self.deny.is_some() || has_methods
    }

    /// Whether paths of the Ingress are regular expressions.
    pub(super) fn has_patterns(&self) -> bool {
        self.use_regex || self.rewrite.is_some()
    }
}
