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
        plugin.warn("key", "An empty key lets nobody in.");
    }
}

pub(super) fn check_basic(plugin: &mut Plugin<'_>) {
    let Some(auth) = plugin.decode::<BasicAuth>() else { return };
    plugin.check_fields(&auth);
    check_secret(plugin, &auth.password, "password");
}

pub(super) fn check_csrf(plugin: &mut Plugin<'_>) {
    let Some(csrf) = plugin.decode::<Csrf>() else { return };
    plugin.check_fields(&csrf);
    check_secret(plugin, &csrf.key, "key");
}

pub(super) fn check_jwt(plugin: &mut Plugin<'_>) {
    let Some(auth) = plugin.decode::<JwtAuth>() else { return };
    let sealed =
        auth.secret.as_ref().is_some_and(|secret| check_secret(plugin, secret, "secret") == Envelope::Sealed);
    match auth.algorithm {
        JwtAlgorithm::HS256 | JwtAlgorithm::HS512 => match &auth.secret {
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
