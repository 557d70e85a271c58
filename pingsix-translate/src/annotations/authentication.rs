//! Credentials of clients.

use super::{
    Annotation, Concern, IngressAnnotations, Purpose, Support, Unless, Values, impossible, not_honoured,
    protects, tunes,
};
use crate::crd::{BasicAuth, SecretObjectReference};

/// The reason why an annotation of external authentication cannot be honoured.
const NO_EXTERNAL: &str = "PingSIX asks no other service whether a request may pass.";

/// The reason why an annotation about certificates of clients cannot be honoured.
const NO_CLIENT_CERTIFICATES: &str = "PingSIX does not verify certificates of clients.";

/// The reason why snippets are never used.
const NO_SNIPPETS: &str = "PingSIX has no configuration language into which text could be pasted.";

/// An annotation that closes the Ingress, unless it is blank: the other controller ignores blank values of these.
const fn closed(name: &'static str, lacks: &'static str) -> Annotation {
    impossible(name, Purpose::Protects, &[""], lacks)
}

const fn companion(name: &'static str) -> Annotation {
    tunes(name, Support::NoEffect)
}

pub(super) const NGINX: Concern = Concern {
    annotations: &[
        protects("auth-type", Support::Exact),
        protects("auth-secret", Support::Exact),
        protects("auth-secret-type", Support::Exact),
        companion("auth-realm"),
        closed("auth-url", NO_EXTERNAL),
        closed("auth-snippet", NO_SNIPPETS),
        // These have no meaning without auth-url.
        companion("auth-always-set-cookie"),
        companion("auth-cache-duration"),
        companion("auth-cache-key"),
        companion("auth-keepalive"),
        companion("auth-keepalive-requests"),
        companion("auth-keepalive-share-vars"),
        companion("auth-keepalive-timeout"),
        companion("auth-method"),
        companion("auth-proxy-set-headers"),
        companion("auth-request-redirect"),
        companion("auth-response-headers"),
        companion("auth-signin"),
        companion("auth-signin-redirect-param"),
        companion("enable-global-auth"),
        closed("auth-tls-secret", NO_CLIENT_CERTIFICATES),
        closed("auth-tls-match-cn", NO_CLIENT_CERTIFICATES),
        impossible("auth-tls-verify-client", Purpose::Protects, &["", "off"], NO_CLIENT_CERTIFICATES),
        companion("auth-tls-error-page"),
        companion("auth-tls-pass-certificate-to-upstream"),
        companion("auth-tls-verify-depth"),
        closed("stream-snippet", NO_SNIPPETS),
        not_honoured("enable-modsecurity", Purpose::Protects, Unless::Is(false), NO_FIREWALL),
        not_honoured("enable-owasp-core-rules", Purpose::Protects, Unless::Is(false), NO_FIREWALL),
        closed("modsecurity-snippet", NO_FIREWALL),
        companion("modsecurity-transaction-id"),
    ],
    read,
};

/// The reason why consumers cannot be honoured.
const NO_CONSUMERS: &str =
    "PingSIX knows no consumers; a SecurityPolicy for the Ingress has their keys and users.";

/// The reason why a key in an annotation is not read.
const NO_INLINE_SECRETS: &str = "The key stands in an annotation for everybody to read; a SecurityPolicy for the Ingress \
                                 takes it from a Secret.";

pub(super) const APISIX: Concern = Concern {
    annotations: &[
        impossible("auth-type", Purpose::Protects, &[""], NO_CONSUMERS),
        closed("auth-uri", NO_EXTERNAL),
        // These have no meaning without auth-uri.
        companion("auth-client-headers"),
        companion("auth-request-headers"),
        companion("auth-ssl-verify"),
        companion("auth-upstream-headers"),
        not_honoured("enable-csrf", Purpose::Protects, Unless::Is(false), NO_INLINE_SECRETS),
        companion("csrf-key"),
        impossible(
            "plugin-config-name",
            Purpose::Protects,
            &[""],
            "PingSIX reads no ApisixPluginConfig, which may hold credentials; pingsix-gatewayctl migrate writes policies of it.",
        ),
    ],
    read: |_, _| {},
};

/// The reason why rules of a firewall cannot be honoured.
const NO_FIREWALL: &str = "PingSIX has no firewall for the contents of requests.";

fn read(values: &mut Values<'_>, read: &mut IngressAnnotations) {
    match values.text("auth-type") {
        Some("basic") => {}
        Some(other) => {
            values.refuse(
                "auth-type",
                format!("PingSIX has basic authentication, and \"{other}\" is another one."),
            );
            return;
        }
        None if values.text("auth-secret").is_some() => {
            values.refuse("auth-secret", "The Ingress has no auth-type.");
            return;
        }
        None => return,
    }
    let Some(name) = values.text("auth-secret") else {
        values.refuse("auth-type", "The Ingress has no auth-secret.");
        return;
    };
    let (namespace, name) = name.split_once('/').unwrap_or((values.namespace(), name));
    if namespace != values.namespace() || name.contains('/') {
        values.refuse("auth-secret", "The Secret has to be in the namespace of the Ingress.");
        return;
    }
    if let Some(other) =
        values.text("auth-secret-type").filter(|kind| !["auth-file", "auth-map"].contains(kind))
    {
        let message = format!("\"{other}\" is neither auth-file nor auth-map.");
        values.refuse("auth-secret-type", message);
        return;
    }
    // The type of the Secret decides, and a file of htpasswd has the type Opaque.
    let secret_ref = SecretObjectReference { name: name.to_owned(), ..SecretObjectReference::default() };
    read.sources.insert("basicAuth", values.whole_name("auth-secret"));
    read.security.basic_auth = Some(BasicAuth { secret_ref, sanitize: None });
}
