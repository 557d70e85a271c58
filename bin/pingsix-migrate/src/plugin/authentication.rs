//! Plugins that authenticate consumers. The credentials are those of the consumers of the input.

use pingsix_translate::ObjectName;
use serde_json::{Value, json};

use super::{Effects, Scope};
use crate::consumer::{Credential, Pool};
use crate::report::{Place, Reason, Report};
use crate::source::Fields;

/// A reference of a policy to a Secret.
fn reference(secret: &ObjectName, namespace: &str, effects: &mut Effects) -> Value {
    effects.referents.push(secret.clone());
    if &*secret.namespace == namespace {
        json!({ "name": &*secret.name })
    } else {
        json!({ "name": &*secret.name, "namespace": &*secret.namespace })
    }
}

/// Reads the fields that all these plugins have on routes. Returns whether credentials are removed from requests, and the
/// consumers.
fn common<'a>(mut config: Fields, scope: Scope<'a>, report: &mut Report) -> Option<(bool, &'a Pool)> {
    let hides = config.truth("hide_credentials", report);
    if let Some((place, hides)) = &hides {
        report
            .exact(place, if *hides { "The field becomes sanitize." } else { "Credentials are passed on." });
    }
    config.drop("realm", report, "PingSIX has a realm of its own.");
    let anonymous = config.text("anonymous_consumer", report).filter(|(_, name)| !name.is_empty());
    if let Some((place, _)) = anonymous {
        report.blocking(
            &place,
            Reason::UnsupportedField,
            "PingSIX has no consumers, so requests without credentials cannot be told from others.",
        );
    }
    let place = config.place.clone();
    config.finish(report);
    if scope.consumers.is_none() {
        report.blocking(
            &place,
            Reason::LostReferent,
            "The consumers of the rule are unknown, because its Gateways have different ones.",
        );
    }
    Some((hides.is_some_and(|(_, hides)| hides), scope.consumers?))
}

pub(super) fn key_auth(mut config: Fields, scope: Scope<'_>, effects: &mut Effects, report: &mut Report) {
    effects.protects = true;
    let place = config.place.clone();
    let mut name = |field: &str, report: &mut Report| {
        let given = config.text(field, report).filter(|(_, name)| !name.is_empty());
        if let Some((place, name)) = &given {
            report.exact(place, format!("Keys are read from the {field} {name}."));
        }
        // Both have this name by default.
        given.map_or_else(|| "apikey".to_owned(), |(_, name)| name)
    };
    let (header, parameter) = (name("header", report), name("query", report));
    let Some((hides, pool)) = common(config, scope, report) else { return };
    if pool.keys.is_empty() {
        report.blocking(
            &place,
            Reason::MissingReferent,
            "The input has no consumer with a key, so no request could be admitted. Give the consumers, too.",
        );
        return;
    }
    let references: Vec<Value> =
        pool.keys.iter().map(|secret| reference(secret, scope.namespace, effects)).collect();
    if references.len() > 16 {
        report.blocking(
            &place,
            Reason::TooMany,
            "The keys are in more than 16 Secrets, and a policy names 16 at most.",
        );
        return;
    }
    let mut value = json!({
        "credentialRefs": references, "extractFrom": { "headers": [header], "params": [parameter] },
    });
    if hides != scope.level.sanitizes() {
        value["sanitize"] = json!(hides);
    }
    effects.secure("apiKeyAuth", value, &place, report);
    report.limited(
        &place,
        Reason::DifferentCredentials,
        "The keys of all consumers are admitted, and backends do not learn the name of the consumer.",
    );
}

/// The only credential of a kind.
fn single<'a, T>(
    credentials: &'a [Credential<T>],
    what: &str,
    place: &Place,
    report: &mut Report,
) -> Option<&'a T> {
    match credentials {
        [] => {
            let message = format!(
                "The input has no consumer with {what}, so no request could be admitted. Give the consumers, too."
            );
            report.blocking(place, Reason::MissingReferent, message);
            None
        }
        [one] => Some(&one.value),
        several => {
            let names: Vec<&str> = several.iter().map(|credential| credential.consumer.as_str()).collect();
            let message = format!(
                "PingSIX checks {what} of one consumer, and the input has several: {}.",
                names.join(", ")
            );
            report.blocking(place, Reason::DifferentCredentials, message);
            None
        }
    }
}

pub(super) fn basic_auth(config: Fields, scope: Scope<'_>, effects: &mut Effects, report: &mut Report) {
    effects.protects = true;
    let place = config.place.clone();
    let Some((hides, pool)) = common(config, scope, report) else { return };
    let Some(secret) = single(&pool.basic, "a password", &place, report) else { return };
    let mut value = json!({ "secretRef": reference(secret, scope.namespace, effects) });
    if hides != scope.level.sanitizes() {
        value["sanitize"] = json!(hides);
    }
    effects.secure("basicAuth", value, &place, report);
    report.limited(&place, Reason::DifferentCredentials, "Backends do not learn the name of the consumer.");
}

pub(super) fn jwt_auth(mut config: Fields, scope: Scope<'_>, effects: &mut Effects, report: &mut Report) {
    effects.protects = true;
    let place = config.place.clone();
    let mut name = |field: &str, default: &str, report: &mut Report| {
        let given = config.text(field, report).filter(|(_, name)| !name.is_empty());
        if let Some((place, name)) = &given {
            report.exact(place, format!("Tokens are read from the {field} {name}."));
        }
        given.map_or_else(|| default.to_owned(), |(_, name)| name)
    };
    let (header, parameter) = (name("header", "Authorization", report), name("query", "jwt", report));
    config.drop("cookie", report, "Tokens are not read from a cookie of another name than jwt.");
    config.drop("key_claim_name", report, "PingSIX does not read the claim with the name of the key.");
    config.drop("store_in_ctx", report, "The field is for other plugins of APISIX.");
    if let Some(claims) = config.take("claims_to_verify") {
        report.limited(&claims.place, Reason::DifferentCredentials, "PingSIX always checks exp.");
    }
    let Some((hides, pool)) = common(config, scope, report) else { return };
    let Some(jwt) = single(&pool.jwt, "a token", &place, report) else { return };
    let mut value = json!({
        "algorithm": jwt.algorithm, "extractFrom": { "headers": [header], "params": [parameter] },
        jwt.field: reference(&jwt.secret, scope.namespace, effects),
    });
    if jwt.clock_skew > 0 {
        value["clockSkew"] = json!(jwt.clock_skew);
    }
    if hides != scope.level.sanitizes() {
        value["sanitize"] = json!(hides);
    }
    effects.secure("jwt", value, &place, report);
    report.limited(
        &place,
        Reason::DifferentCredentials,
        "Tokens need the claim exp, and tokens with the claim aud are refused. The claim with the name of the key is not \
         checked, and backends do not learn the name of the consumer.",
    );
}
