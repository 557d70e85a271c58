//! Fields with secrets: those that PingSIX itself encrypts in etcd and masks in its Admin API (`#[encrypt]` in
//! `src/config/mod.rs` and `src/plugins/{basic_auth,csrf,jwt_auth,key_auth}.rs` of PingSIX).

use serde_json::{Map, Value};

use super::ResourceKind;
use crate::document::Key;

/// Placeholder of a secret in [`masked`] and in PingSIX's Admin API.
pub const MASK: &str = "***";

/// The prefix of an encrypted secret in all versions of the envelope.
pub(super) const ENVELOPE: &str = "$pingsix-enc:";

/// Selection of secrets in a resource.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Secrets that PingSIX decrypts when it reads them.
    Decrypted,
    /// Also secrets that PingSIX reads as they are: the keys of upstreams inside of `traffic-split`.
    All,
}

/// A copy of a resource for display: [`MASK`] replaces every secret.
pub fn masked(kind: ResourceKind, resource: &Value) -> Value {
    let mut copy = resource.clone();
    if let Value::Object(fields) = &mut copy {
        visit(Extent::All, kind, fields, &mut |secret| *secret = MASK.into());
    }
    copy
}

/// A copy of a document for display. In a document of unknown kind, every field with the name of a secret is masked.
pub(crate) fn masked_by_key(key: &Key, document: &Value) -> Value {
    if let Ok((kind, _)) = ResourceKind::of(key) {
        return masked(kind, document);
    }
    let mut copy = document.clone();
    mask(&mut copy);
    copy
}

fn mask(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if matches!(name.as_str(), "client_key" | "key" | "keys" | "password" | "secret") {
                    *field = MASK.into();
                } else {
                    mask(field);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// `text` with every secret of a resource replaced.
pub(crate) fn conceal(kind: ResourceKind, fields: &Map<String, Value>, text: &str) -> String {
    let mut secrets = Vec::new();
    visit(Extent::All, kind, &mut fields.clone(), &mut |secret| match secret {
        Value::String(text) => secrets.push(text.clone()),
        Value::Number(number) => secrets.push(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {}
    });
    // The longest first, because one may contain another.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    let mut text = text.to_owned();
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        // Messages quote strings as Rust does, so a PEM occurs with escaped line ends.
        for spelling in [secret.clone(), secret.escape_debug().to_string()] {
            text = text.replace(&spelling, MASK);
        }
    }
    text
}

/// Result of comparing a value with one that was read back with masked or encrypted secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agreement {
    /// They are equal.
    Equal,
    /// The values are equal except for unreadable secrets.
    Unknown,
    /// They differ.
    Different,
}

/// Compares `ours` with the value that was read back.
pub(crate) fn compare(ours: &Value, read: &Value) -> Agreement {
    match (ours, read) {
        (ours, read) if ours == read => Agreement::Equal,
        (Value::String(_), Value::String(read)) if read == MASK || read.starts_with(ENVELOPE) => {
            Agreement::Unknown
        }
        (Value::Object(ours), Value::Object(read)) if ours.len() == read.len() => {
            all(ours.iter().map(|(name, ours)| match read.get(name) {
                Some(read) => compare(ours, read),
                None => Agreement::Different,
            }))
        }
        (Value::Array(ours), Value::Array(read)) if ours.len() == read.len() => {
            all(ours.iter().zip(read).map(|(ours, read)| compare(ours, read)))
        }
        (
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_),
            _,
        ) => Agreement::Different,
    }
}

fn all(parts: impl Iterator<Item = Agreement>) -> Agreement {
    let mut whole = Agreement::Equal;
    for part in parts {
        match part {
            Agreement::Equal => {}
            Agreement::Unknown => whole = Agreement::Unknown,
            Agreement::Different => return Agreement::Different,
        }
    }
    whole
}

/// Visits the secrets of a resource, also each element of lists.
pub(super) fn visit(
    extent: Extent,
    kind: ResourceKind,
    fields: &mut Map<String, Value>,
    with: &mut dyn FnMut(&mut Value),
) {
    match kind {
        ResourceKind::Ssl => visit_field(fields, "key", with),
        ResourceKind::Upstream => visit_upstream(fields, with),
        ResourceKind::Service | ResourceKind::GlobalRule | ResourceKind::Route => {
            if let Some(Value::Object(upstream)) = fields.get_mut("upstream") {
                visit_upstream(upstream, with);
            }
            if let Some(Value::Object(plugins)) = fields.get_mut("plugins") {
                visit_plugins(extent, plugins, with);
            }
        }
    }
}

fn visit_upstream(upstream: &mut Map<String, Value>, with: &mut dyn FnMut(&mut Value)) {
    if let Some(Value::Object(tls)) = upstream.get_mut("tls") {
        visit_field(tls, "client_key", with);
    }
}

fn visit_plugins(extent: Extent, plugins: &mut Map<String, Value>, with: &mut dyn FnMut(&mut Value)) {
    for (plugin, config) in plugins {
        let Value::Object(config) = config else { continue };
        let secrets: &[&str] = match plugin.as_str() {
            "basic-auth" => &["password"],
            "csrf" => &["key"],
            "jwt-auth" => &["secret"],
            "key-auth" => &["key", "keys"],
            "traffic-split" if extent == Extent::All => {
                visit_split(config, with);
                continue;
            }
            _ => continue,
        };
        for secret in secrets {
            visit_field(config, secret, with);
        }
    }
}

fn visit_split(config: &mut Map<String, Value>, with: &mut dyn FnMut(&mut Value)) {
    let rules = config.get_mut("rules").and_then(Value::as_array_mut).into_iter().flatten();
    let targets = rules.filter_map(|rule| rule.get_mut("weighted_upstreams")?.as_array_mut()).flatten();
    for upstream in targets.filter_map(|target| target.get_mut("upstream")?.as_object_mut()) {
        visit_upstream(upstream, with);
    }
}

/// Visits a field, or each element of a list.
fn visit_field(fields: &mut Map<String, Value>, name: &str, with: &mut dyn FnMut(&mut Value)) {
    match fields.get_mut(name) {
        Some(Value::Array(items)) => items.iter_mut().for_each(with),
        Some(field) => with(field),
        None => {}
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// An upstream with one secret, its client key.
    pub(in crate::resource) fn tls() -> Value {
        json!({"client_cert": "c", "client_key": "sesame"})
    }

    /// Plugins with six secrets, and one with a field that has the name of a secret.
    pub(in crate::resource) fn plugins() -> Value {
        json!({
            "basic-auth": {"username": "u", "password": "sesame"},
            "csrf": {"key": "sesame"},
            "jwt-auth": {"secret": "sesame", "header": "h"},
            "key-auth": {"key": "sesame", "keys": ["sesame", "sesame"]},
            "limit-count": {"key": "remote_addr"},
        })
    }

    #[test]
    fn every_secret_is_masked_and_nothing_else() {
        let (tls, mut plugins) = (tls(), plugins());
        plugins["traffic-split"] = json!({"rules": [{"weighted_upstreams": [{"upstream": {"tls": tls}}]}]});
        for (kind, resource, secrets) in [
            (ResourceKind::Ssl, json!({"cert": "c", "key": "sesame", "snis": ["a"]}), 1),
            (ResourceKind::Upstream, json!({"key": "uri", "tls": tls.clone()}), 1),
            (ResourceKind::Route, json!({"upstream": {"tls": tls.clone()}, "plugins": plugins.clone()}), 8),
            (ResourceKind::Service, json!({"upstream": {"tls": tls}, "plugins": plugins.clone()}), 8),
            (ResourceKind::GlobalRule, json!({"plugins": plugins}), 7),
        ] {
            let text = masked(kind, &resource).to_string();
            assert!(!text.contains("sesame"), "{text}");
            assert_eq!(text.matches(MASK).count(), secrets, "{text}");
            assert_eq!(text.replace(MASK, "sesame"), resource.to_string());
        }
    }

    #[test]
    fn a_message_never_quotes_a_secret() {
        let Value::Object(fields) = json!({"key": "-----BEGIN\nAA==\n", "cert": "c"}) else { unreachable!() };
        let message = r#"invalid type: string "-----BEGIN\nAA==\n", and -----BEGIN
AA==
 too"#;
        assert_eq!(
            conceal(ResourceKind::Ssl, &fields, message),
            r#"invalid type: string "***", and *** too"#
        );
    }

    #[test]
    fn a_masked_secret_may_be_equal() {
        let ours = json!({"key": "k", "keys": ["a", "b"], "n": 1});
        assert_eq!(compare(&ours, &ours), Agreement::Equal);
        for read in [
            json!({"key": "***", "keys": ["a", "b"], "n": 1}),
            json!({"key": "$pingsix-enc:v1$AA", "keys": ["a", "***"], "n": 1}),
        ] {
            assert_eq!(compare(&ours, &read), Agreement::Unknown, "{read}");
        }
        for read in [
            json!({"key": "x", "keys": ["a", "***"], "n": 1}),
            json!({"key": "***", "keys": ["***"], "n": 1}),
            json!({"key": "***", "keys": ["a", "b"], "n": "***"}),
            json!({"key": "***", "keys": ["a", "b"]}),
            json!({"key": "***", "keys": ["a", "b"], "n": 1, "more": 1}),
        ] {
            assert_eq!(compare(&ours, &read), Agreement::Different, "{read}");
        }
    }
}
