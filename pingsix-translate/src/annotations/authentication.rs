//! Credentials of clients.

use super::{BLANK, Concern, IngressAnnotations, Support, Unless, Values, closing, no_effect, protects};
use crate::crd::{BasicAuth, SecretObjectReference};
use crate::snapshot::{AUTH_SECRET, secret_named_by};

/// The reason why an annotation of external authentication cannot be honoured.
const NO_EXTERNAL: &str = "PingSIX asks no other service whether a request may pass.";

/// The reason why an annotation about certificates of clients cannot be honoured.
const NO_CLIENT_CERTIFICATES: &str = "PingSIX does not verify certificates of clients.";

/// The reason why snippets are never used.
const NO_SNIPPETS: &str = "PingSIX has no configuration language into which text could be pasted.";

pub(super) const NGINX: Concern = Concern {
    annotations: &[
        protects("auth-type", Support::Exact),
        protects(AUTH_SECRET, Support::Exact),
        protects("auth-secret-type", Support::Exact),
        no_effect("auth-realm"),
        closing("auth-url", BLANK, NO_EXTERNAL),
        closing("auth-snippet", BLANK, NO_SNIPPETS),
        // These have no meaning without auth-url.
        no_effect("auth-always-set-cookie"),
        no_effect("auth-cache-duration"),
        no_effect("auth-cache-key"),
        no_effect("auth-keepalive"),
        no_effect("auth-keepalive-requests"),
        no_effect("auth-keepalive-share-vars"),
        no_effect("auth-keepalive-timeout"),
        no_effect("auth-method"),
        no_effect("auth-proxy-set-headers"),
        no_effect("auth-request-redirect"),
        no_effect("auth-response-headers"),
        no_effect("auth-signin"),
        no_effect("auth-signin-redirect-param"),
        no_effect("enable-global-auth"),
        closing("auth-tls-secret", BLANK, NO_CLIENT_CERTIFICATES),
        closing("auth-tls-match-cn", BLANK, NO_CLIENT_CERTIFICATES),
        closing("auth-tls-verify-client", Unless::Values(&["", "off"]), NO_CLIENT_CERTIFICATES),
        no_effect("auth-tls-error-page"),
        no_effect("auth-tls-pass-certificate-to-upstream"),
        no_effect("auth-tls-verify-depth"),
        closing("stream-snippet", BLANK, NO_SNIPPETS),
        closing("enable-modsecurity", Unless::Is(false), NO_FIREWALL),
        closing("enable-owasp-core-rules", Unless::Is(false), NO_FIREWALL),
        closing("modsecurity-snippet", BLANK, NO_FIREWALL),
        no_effect("modsecurity-transaction-id"),
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
        closing("auth-type", BLANK, NO_CONSUMERS),
        closing("auth-uri", BLANK, NO_EXTERNAL),
        // These have no meaning without auth-uri.
        no_effect("auth-client-headers"),
        no_effect("auth-request-headers"),
        no_effect("auth-ssl-verify"),
        no_effect("auth-upstream-headers"),
        closing("enable-csrf", Unless::Is(false), NO_INLINE_SECRETS),
        no_effect("csrf-key"),
        closing(
            "plugin-config-name",
            BLANK,
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
        None if values.text(AUTH_SECRET).is_some() => {
            values.refuse(AUTH_SECRET, "The Ingress has no auth-type.");
            return;
        }
        None => return,
    }
    let Some(name) = values.text(AUTH_SECRET) else {
        values.refuse("auth-type", "The Ingress has no auth-secret.");
        return;
    };
    let Some(name) = secret_named_by(values.namespace(), name) else {
        values.refuse(AUTH_SECRET, "The Secret has to be in the namespace of the Ingress.");
        return;
    };
    if let Some(other) =
        values.text("auth-secret-type").filter(|kind| !["auth-file", "auth-map"].contains(kind))
    {
        let message = format!("\"{other}\" is neither auth-file nor auth-map.");
        values.refuse("auth-secret-type", message);
        return;
    }
    // The type of the Secret decides, and a file of htpasswd has the type Opaque.
    let secret_ref = SecretObjectReference { name: name.to_owned(), ..SecretObjectReference::default() };
    read.sources.insert("basicAuth", values.whole_name(AUTH_SECRET));
    read.security.basic_auth = Some(BasicAuth { secret_ref, sanitize: None });
}
