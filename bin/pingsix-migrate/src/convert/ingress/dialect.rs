//! The controllers whose Ingresses are converted, and how they differ.

use pingsix_translate::crd::AnnotationDialect;

/// The annotation of ingress-nginx that passes TLS through.
pub(super) const PASSTHROUGH: &str = "ssl-passthrough";

/// A controller with annotations of its own.
#[derive(Debug)]
pub(super) struct Dialect {
    /// The table of its annotations.
    pub(super) annotations: AnnotationDialect,
    /// The controller in sentences.
    pub(super) name: &'static str,
    /// `spec.controller` of its IngressClasses.
    pub(super) controller: &'static str,
    /// The usual name of such a class.
    pub(super) class: &'static str,
    /// The annotation with the protocol of backends.
    pub(super) protocol: &'static str,
    /// Other annotations that become settings of Services.
    pub(super) settings: &'static [&'static str],
    /// The annotations with networks that are admitted.
    pub(super) allow: &'static [&'static str],
    /// The annotation with networks that are refused.
    pub(super) deny: &'static str,
    /// The annotation that redirects plaintext to HTTPS, with a certificate or without.
    pub(super) to_https: &'static str,
    /// The annotation about the redirect that hosts with a certificate have by default.
    pub(super) to_https_by_default: Option<&'static str>,
    /// The choice among Ingresses with one host and path, as a clause.
    pub(super) precedence: &'static str,
    /// The certificates of backends, as a sentence.
    pub(super) verification: &'static str,
    /// The annotation that switches their verification on.
    pub(super) verifies: Option<&'static str>,
}

/// ingress-nginx.
pub(super) static INGRESS_NGINX: Dialect = Dialect {
    annotations: AnnotationDialect::IngressNginx,
    name: "ingress-nginx",
    controller: "k8s.io/ingress-nginx",
    class: "nginx",
    protocol: "backend-protocol",
    settings: &[
        "proxy-connect-timeout",
        "proxy-next-upstream-timeout",
        "proxy-next-upstream-tries",
        "proxy-read-timeout",
        "proxy-send-timeout",
        "upstream-hash-by",
    ],
    allow: &["whitelist-source-range", "allowlist-source-range"],
    deny: "denylist-source-range",
    to_https: "force-ssl-redirect",
    to_https_by_default: Some("ssl-redirect"),
    precedence: "takes the requests as before",
    verification: "ingress-nginx verifies none, unless proxy-ssl-verify is on.",
    verifies: Some("proxy-ssl-verify"),
};

/// The APISIX Ingress controller.
pub(super) static APISIX: Dialect = Dialect {
    annotations: AnnotationDialect::Apisix,
    name: "APISIX",
    controller: "apisix.apache.org/apisix-ingress-controller",
    class: "apisix",
    protocol: "upstream-scheme",
    settings: &[
        "upstream-connect-timeout",
        "upstream-read-timeout",
        "upstream-retries",
        "upstream-send-timeout",
    ],
    allow: &["allowlist-source-range"],
    deny: "blocklist-source-range",
    to_https: "http-to-https",
    to_https_by_default: None,
    precedence: "takes the requests, because it is older; APISIX has no fixed order for the two",
    verification: "APISIX verifies none.",
    verifies: None,
};

/// All of them. An Ingress of no known class belongs to the first one whose annotations it has.
pub(super) static DIALECTS: [&Dialect; 2] = [&INGRESS_NGINX, &APISIX];

impl Dialect {
    /// The domain of its annotations.
    pub(super) fn domain(&self) -> &'static str {
        self.annotations.domain()
    }

    /// Whether a controller of this kind has the name. Several of them in a cluster have names of their own, such as
    /// `k8s.io/internal-ingress-nginx`.
    pub(super) fn is_of(&self, controller: &str) -> bool {
        let (own_domain, own_name) = self.controller.split_once('/').unwrap_or(("", self.controller));
        controller
            .split_once('/')
            .is_some_and(|(domain, name)| domain == own_domain && name.contains(own_name))
    }

    /// The whole name of an annotation.
    pub(super) fn whole_name(&self, name: &str) -> String {
        format!("{}/{name}", self.domain())
    }

    /// Whether an annotation becomes a setting of Services.
    pub(super) fn is_setting(&self, name: &str) -> bool {
        name == self.protocol || self.settings.contains(&name)
    }

    /// Whether an annotation lists networks.
    pub(super) fn is_range(&self, name: &str) -> bool {
        name == self.deny || self.allow.contains(&name)
    }
}
