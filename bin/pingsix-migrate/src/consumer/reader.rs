//! Consumers of both predecessors to credentials.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pingsix_translate::ObjectName;

use super::{Consumers, Credential, JwtKey};
use crate::choices::Choices;
use crate::objects::{NewSecret, Objects, label};
use crate::owner::{Owner, Owners};
use crate::report::{Place, Reason, Report};
use crate::source::{Fields, Predecessors, Source, SourceKind, Sources};

/// Keys by owner and namespace, until all consumers are known.
type Keys = BTreeMap<(Owner, String), BTreeMap<String, Vec<u8>>>;

/// Converts all consumers, and writes their Secrets.
pub(crate) fn convert(
    predecessors: &mut Predecessors,
    sources: &Sources,
    (choices, owners): (&Choices, &Owners),
    (objects, report): (&mut Objects, &mut Report),
) -> Consumers {
    let (keys, consumers) = (Keys::new(), Consumers::default());
    let mut reader = Reader { sources, choices, owners, keys, objects, consumers };
    for source in predecessors.take(SourceKind::ApisixConsumer) {
        reader.apisix_consumer(source, report);
    }
    for source in predecessors.take(SourceKind::Consumer) {
        reader.consumer(source, report);
    }
    let Reader { keys, objects, mut consumers, .. } = reader;
    for ((owner, namespace), entries) in keys {
        let wanted = format!("consumer-keys{}", owner.suffix());
        let secret = objects.add_secret(NewSecret::new("Opaque", (&namespace, wanted), entries));
        consumers.pools.entry(owner).or_default().keys.insert(secret);
    }
    consumers
}

/// The consumers that are read.
struct Reader<'a> {
    sources: &'a Sources,
    choices: &'a Choices,
    owners: &'a Owners,
    keys: Keys,
    objects: &'a mut Objects,
    consumers: Consumers,
}

/// Where the credentials of a consumer go.
struct Target<'a> {
    owner: Owner,
    /// The consumer, or one of its credentials, as a name.
    entry: String,
    namespace: &'a str,
    place: &'a Place,
}

/// Plugins of a consumer that protect backends from it: without them its credentials would be worth more.
fn plugins(fields: &mut Fields, report: &mut Report) {
    for item in fields.list("plugins", report) {
        let Some(mut plugin) = item.object(report) else { continue };
        let place = plugin.place.clone();
        if plugin.truth("enable", report).is_some_and(|(_, on)| !on) {
            report.exact_whole(&place, "The plugin is switched off, so it becomes nothing.");
            continue;
        }
        let name = plugin.text_or_empty("name", report);
        let message = format!(
            "PingSIX has no consumers, so {} cannot act on the requests of one. Use the plugin in rules.",
            label(&name, "the plugin")
        );
        report.blocking(&place, Reason::UnsupportedPlugin, message);
    }
}

/// The consequence for a consumer that would be worth more than in the original.
const NOT_WRITTEN: &str = "The consumer's credentials are not written.";

impl Reader<'_> {
    /// Withholds a consumer of which something was lost since the report had `losses`, unless it may be weaker.
    fn is_withheld(
        &self,
        (kind, name, place): (SourceKind, &ObjectName, &Place),
        losses: usize,
        report: &mut Report,
    ) -> bool {
        let is_withheld = report.losses() > losses && !self.choices.may_be_weaker(kind.as_str(), name);
        if is_withheld {
            report.withhold_until_named(place, NOT_WRITTEN);
        }
        is_withheld
    }

    fn apisix_consumer(&mut self, source: Source, report: &mut Report) {
        let Source { name, place, mut spec, kind } = source;
        let losses = report.losses();
        let owner = self.owners.of_class(&mut spec, report);
        plugins(&mut spec, report);
        let parameter = spec.object("authParameter", report);
        spec.finish(report);
        if self.is_withheld((kind, &name, &place), losses, report) {
            return;
        }
        let Some(mut parameter) = parameter else { return };
        let target =
            Target { owner, entry: name.name.to_string(), namespace: &name.namespace, place: &place };
        let mut found = false;
        for (field, kind) in [("keyAuth", "key-auth"), ("basicAuth", "basic-auth"), ("jwtAuth", "jwt-auth")] {
            let Some(mut auth) = parameter.object(field, report) else { continue };
            if found {
                let message = "The original uses the first kind of credentials alone.";
                report.limited(&auth.place, Reason::NoEffect, message);
                continue;
            }
            found = true;
            let secret = auth.object("secretRef", report);
            let value = auth.object("value", report);
            let auth_place = auth.place.clone();
            auth.finish(report);
            let secret = secret.and_then(|mut secret| {
                let named = secret.text("name", report);
                secret.finish(report);
                named
            });
            let secret = secret.map(|(place, secret)| (place, ObjectName::new(&*name.namespace, secret)));
            self.credential(kind, (value, secret, &auth_place), &target, report);
        }
        for (field, kind) in [("wolfRBAC", "wolf-rbac"), ("hmacAuth", "hmac-auth"), ("ldapAuth", "ldap-auth")]
        {
            if let Some(field) = parameter.take(field) {
                let message = format!("PingSIX has no {kind}, so the consumer cannot authenticate.");
                report.impossible(&field.place, Reason::UnsupportedCredentials, message);
            }
        }
        parameter.finish(report);
    }

    fn consumer(&mut self, source: Source, report: &mut Report) {
        let Source { name, place, mut spec, kind } = source;
        let losses = report.losses();
        let mut gateway = None;
        if let Some(mut reference) = spec.object("gatewayRef", report) {
            let gateway_name = reference.text("name", report);
            let namespace = reference.text("namespace", report).map(|(_, namespace)| namespace);
            let _ = (reference.text("kind", report), reference.text("group", report));
            let at = reference.place.clone();
            reference.finish(report);
            gateway = gateway_name.map(|(_, gateway)| {
                report.exact(&at, "The credentials count for routes of the Gateway.");
                ObjectName::new(namespace.unwrap_or_else(|| name.namespace.to_string()), gateway)
            });
        }
        plugins(&mut spec, report);
        let credentials = spec.list("credentials", report);
        spec.finish(report);
        let Some(gateway) = gateway else {
            let message = "The consumer names no Gateway. Set spec.gatewayRef.";
            report.blocking(&place.at("spec.gatewayRef"), Reason::MissingField, message);
            return report.withhold(&place, NOT_WRITTEN);
        };
        if self.is_withheld((kind, &name, &place), losses, report) {
            return;
        }
        for (index, item) in credentials.into_iter().enumerate() {
            let Some(mut item) = item.object(report) else { continue };
            let Some((type_place, kind)) = item.text("type", report) else {
                let message = "The credential has no type, so it admits nobody.";
                report.impossible(&item.place, Reason::MissingField, message);
                continue;
            };
            let suffix = item.text("name", report).map(|(_, name)| name);
            let value = item.object("config", report);
            let mut secret = None;
            if let Some(mut reference) = item.object("secretRef", report) {
                let namespace = reference.text("namespace", report).map(|(_, namespace)| namespace);
                let namespace = namespace.unwrap_or_else(|| name.namespace.to_string());
                let found = reference.text("name", report);
                secret = found.map(|(place, found)| (place, ObjectName::new(namespace, found)));
                reference.finish(report);
            }
            let item_place = item.place.clone();
            item.finish(report);
            let suffix = suffix.map_or_else(|| index.to_string(), |suffix| label(&suffix, "credential"));
            let target = Target {
                owner: Owner::Gateway(gateway.clone()),
                entry: format!("{}.{suffix}", name.name),
                namespace: &name.namespace,
                place: &place,
            };
            if matches!(kind.as_str(), "key-auth" | "basic-auth" | "jwt-auth") {
                self.credential(&kind, (value, secret, &item_place), &target, report);
            } else {
                let message =
                    "PingSIX has no such credentials, so the consumer cannot authenticate with them.";
                report.impossible(&type_place, Reason::UnsupportedCredentials, message);
            }
        }
    }

    fn credential(
        &mut self,
        kind: &str,
        (value, secret, place): (Option<Fields>, Option<(Place, ObjectName)>, &Place),
        target: &Target<'_>,
        report: &mut Report,
    ) {
        let is_inline = value.is_some();
        let Some(mut fields) = entries((value, secret), place, self.sources, report) else { return };
        let losses = report.losses();
        let moved = if is_inline {
            "The credential moves into a Secret."
        } else {
            "The credential is copied into a Secret of the right form."
        };
        let consumer = target.place.object.to_string();
        match kind {
            "key-auth" => {
                let key = fields.text("key", report);
                if is_inline {
                    fields.finish(report);
                }
                let Some((key_place, key)) = key.filter(|(_, key)| !key.is_empty()) else {
                    let message = "The credential has no key, so it admits nobody.";
                    return report.impossible(place, Reason::MissingField, message);
                };
                if report.losses() > losses {
                    return;
                }
                let entries =
                    self.keys.entry((target.owner.clone(), target.namespace.to_owned())).or_default();
                entries.insert(target.entry.clone(), key.into_bytes());
                report.exact(&key_place, moved);
            }
            "basic-auth" => {
                let (user, password) = (fields.text("username", report), fields.text("password", report));
                if is_inline {
                    fields.finish(report);
                }
                let (Some((at, user)), Some((_, password))) = (user, password) else {
                    let message = "The credential lacks a user or a password, so it admits nobody.";
                    return report.impossible(place, Reason::MissingField, message);
                };
                if report.losses() > losses {
                    return;
                }
                let name = (target.namespace, format!("{}-basic-auth", target.entry));
                let value = self.objects.add_secret(NewSecret::user(name, &user, &password));
                let pool = self.consumers.pools.entry(target.owner.clone()).or_default();
                pool.basic.push(Credential { consumer, value });
                report.exact(&at, moved);
            }
            _ => {
                let Some(jwt) = jwt(&mut fields, place, report) else { return };
                if is_inline {
                    fields.finish(report);
                }
                if report.losses() > losses {
                    return;
                }
                let Jwt { algorithm, field, key, clock_skew } = jwt;
                let name = (target.namespace, format!("{}-jwt", target.entry));
                let secret = self.objects.add_secret(NewSecret::key(name, key));
                let value = JwtKey { algorithm, field, secret, clock_skew };
                let pool = self.consumers.pools.entry(target.owner.clone()).or_default();
                pool.jwt.push(Credential { consumer, value });
                report.exact(place, moved);
            }
        }
    }
}

/// The entries of a credential: those of the configuration, or of the Secret.
fn entries(
    (value, secret): (Option<Fields>, Option<(Place, ObjectName)>),
    place: &Place,
    sources: &Sources,
    report: &mut Report,
) -> Option<Fields> {
    if let Some(value) = value {
        return Some(value);
    }
    let Some((secret_place, secret)) = secret else {
        let message = "The credential has neither a value nor a Secret, so it admits nobody.";
        report.impossible(place, Reason::MissingField, message);
        return None;
    };
    let Some(entries) = sources.secret(&secret) else {
        let message = format!(
            "The input has no Secret {secret}. Give the Secret, too, so that its entries can be read."
        );
        report.impossible(&secret_place, Reason::MissingReferent, message);
        return None;
    };
    let texts =
        entries.into_iter().filter_map(|(name, value)| Some((name, String::from_utf8(value).ok()?.into())));
    Some(Fields::new(secret_place, texts.collect()))
}

/// The key of tokens, which may be secret.
struct Jwt {
    algorithm: String,
    field: &'static str,
    key: Vec<u8>,
    clock_skew: u64,
}

fn jwt(fields: &mut Fields, place: &Place, report: &mut Report) -> Option<Jwt> {
    // The name of the key, which tokens have as a claim.
    let _ = fields.text("key", report);
    let (algorithm_place, algorithm) =
        fields.filled("algorithm", report).unwrap_or_else(|| (place.at("algorithm"), "HS256".to_owned()));
    let secret = fields.filled("secret", report);
    let public_key = fields.filled("public_key", report);
    let _ = fields.text("private_key", report);
    fields.drop(["exp"], report, "The field is for tokens that APISIX signs.");
    let is_base64 = fields.truth("base64_secret", report).is_some_and(|(_, is_base64)| is_base64);
    let clock_skew =
        fields.number("lifetime_grace_period", report).map_or(0, |(_, seconds)| seconds.min(3600));
    let (field, key) = match algorithm.as_str() {
        "HS256" | "HS512" => ("secretRef", secret),
        "RS256" | "RS384" | "RS512" | "ES256" | "ES384" => ("publicKeyRef", public_key),
        _ => {
            let message = "PingSIX does not check this algorithm, so the consumer is refused.";
            report.impossible(&algorithm_place, Reason::UnsupportedCredentials, message);
            return None;
        }
    };
    let Some((key_place, key)) = key else {
        let message = "The credential has no key for its algorithm, so it admits nobody.";
        report.impossible(place, Reason::MissingField, message);
        return None;
    };
    let key = if is_base64 && field == "secretRef" {
        let Ok(key) = STANDARD.decode(key.trim()) else {
            let message = "The secret is not valid base64, so it admits nobody.";
            report.impossible(&key_place, Reason::InvalidValue, message);
            return None;
        };
        key
    } else {
        key.into_bytes()
    };
    Some(Jwt { algorithm, field, key, clock_skew })
}
