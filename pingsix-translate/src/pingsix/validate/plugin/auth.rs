//! `key-auth`, `basic-auth`, `jwt-auth`, `csrf` and `ip-restriction`.

use super::Plugin;
use crate::pingsix::plugin::{BasicAuth, Csrf, IpRestriction, JwtAlgorithm, JwtAuth, KeyAuth};
use crate::pingsix::validate::pem::{self, Envelope};

pub(super) fn check_key(plugin: &mut Plugin<'_>) {
    let Some(auth) = plugin.decode::<KeyAuth>() else { return };
    for (index, key) in auth.keys.iter().enumerate() {
        check_secret(plugin, key, &format!("keys[{index}]"));
    }
    if let Some(key) = &auth.key {
        check_secret(plugin, key, "key");
    }
    let keys = if auth.keys.is_empty() { auth.key.as_slice() } else { &auth.keys };
    if keys.is_empty() {
        plugin.refuse("", "There must be a `key` or `keys`.");
    } else if keys.iter().all(String::is_empty) {
        plugin.warn("key", "An empty key matches no request.");
    }
}

pub(super) fn check_basic(plugin: &mut Plugin<'_>) {
    let Some(auth) = plugin.decode::<BasicAuth>() else { return };
    plugin.check_fields(&auth);
    check_secret(plugin, &auth.password, "password");
    if auth.username.contains(':') {
        plugin.warn("username", "A user name must not contain a colon, so no request is admitted.");
    }
}

pub(super) fn check_csrf(plugin: &mut Plugin<'_>) {
    let Some(csrf) = plugin.decode::<Csrf>() else { return };
    plugin.check_fields(&csrf);
    check_secret(plugin, &csrf.key, "key");
    let name = &csrf.name;
    plugin.check_header_value(name, "name", || "A cookie of this name".to_owned());
    if name.parse::<http::HeaderName>().is_err() {
        plugin.warn("name", "No client can send a header of this name, so no form passes.");
    }
}

pub(super) fn check_jwt(plugin: &mut Plugin<'_>) {
    let Some(auth) = plugin.decode::<JwtAuth>() else { return };
    let sealed =
        auth.secret.as_ref().is_some_and(|secret| check_secret(plugin, secret, "secret") == Envelope::Sealed);
    check_claims(plugin, &auth);
    match auth.algorithm {
        JwtAlgorithm::HS256 | JwtAlgorithm::HS512 => match &auth.secret {
            Some(secret) if secret.is_empty() => {
                plugin.harm("secret", "With an empty secret, every client can sign tokens.");
            }
            None => plugin.refuse("secret", "The algorithm requires a `secret`."),
            Some(secret) if auth.base64_secret && !sealed && pem::decode_base64(secret).is_none() => {
                plugin.refuse("secret", "The secret is not in base64.");
            }
            Some(_) => {}
        },
        JwtAlgorithm::RS256 | JwtAlgorithm::RS384 | JwtAlgorithm::RS512 => {
            check_public_key(plugin, auth.public_key.as_deref(), false);
        }
        JwtAlgorithm::ES256 | JwtAlgorithm::ES384 => {
            check_public_key(plugin, auth.public_key.as_deref(), true);
        }
        JwtAlgorithm::HS384
        | JwtAlgorithm::PS256
        | JwtAlgorithm::PS384
        | JwtAlgorithm::PS512
        | JwtAlgorithm::EdDSA => plugin.refuse("algorithm", "PingSIX does not support the algorithm."),
    }
}

fn check_claims(plugin: &mut Plugin<'_>, auth: &JwtAuth) {
    for (claim, value) in [("iss", &auth.iss), ("aud", &auth.aud)] {
        if value.is_some() && !auth.required_claims.iter().any(|required| required == claim) {
            let message = format!("A token without `{claim}` is let in unless `required_claims` names it.");
            plugin.harm(claim, message);
        }
    }
    for (index, claim) in auth.required_claims.iter().enumerate() {
        if !JwtAuth::CLAIMS.contains(&claim.as_str()) {
            let message =
                format!("PingSIX lets in tokens without \"{claim}\", which is no registered claim.");
            plugin.harm(&format!("required_claims[{index}]"), message);
        }
    }
}

fn check_public_key(plugin: &mut Plugin<'_>, key: Option<&str>, elliptic: bool) {
    match key {
        None => plugin.refuse("public_key", "The algorithm requires a `public_key`."),
        Some(key) if pem::holds_public_key(key, elliptic) => {}
        Some(key) if !elliptic && pem::holds_bare_rsa_key(key) => {}
        Some(_) => plugin.refuse("public_key", "The value is no PEM public key that fits the algorithm."),
    }
}

pub(super) fn check_addresses(plugin: &mut Plugin<'_>) {
    let Some(restriction) = plugin.decode::<IpRestriction>() else { return };
    plugin.check_networks(&restriction.whitelist, "whitelist");
    plugin.check_networks(&restriction.blacklist, "blacklist");
    plugin.check_networks(&restriction.trusted_proxies, "trusted_proxies");
}

fn check_secret(plugin: &mut Plugin<'_>, secret: &str, field: &str) -> Envelope {
    let at = plugin.at(field);
    pem::check_envelope(secret, &at, plugin.context, plugin.out)
}
