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

/// Whether credentials are removed from requests, and the consumers.
struct Common<'a> {
    hides: bool,
    pool: &'a Pool,
}

impl Common<'_> {
    /// Sets the authentication of a SecurityPolicy.
    fn secure(
        &self,
        field: &str,
        mut value: Value,
        (place, scope): (&Place, Scope<'_>),
        (effects, report): (&mut Effects, &mut Report),
    ) {
        if self.hides != scope.level.sanitizes() {
            value["sanitize"] = json!(self.hides);
        }
        effects.secure(field, value, place, report);
    }
}

/// The header or the query parameter with the credentials.
fn origin(config: &mut Fields, field: &str, what: &str, default: &str, report: &mut Report) -> String {
    let Some((place, name)) = config.filled(field, report) else { return default.to_owned() };
    report.exact(&place, format!("{what} are read from the {field} {name}."));
    name
}

/// Reads the fields that all these plugins have on routes.
fn common<'a>(mut config: Fields, scope: Scope<'a>, report: &mut Report) -> Option<Common<'a>> {
    let hides = config.truth("hide_credentials", report);
    if let Some((place, hides)) = &hides {
        report
            .exact(place, if *hides { "The field becomes sanitize." } else { "Credentials are passed on." });
    }
    config.drop(["realm"], report, "PingSIX has a realm of its own.");
    if let Some((place, _)) = config.filled("anonymous_consumer", report) {
        let message = "PingSIX has no consumers, so requests without credentials cannot be told from others.";
        report.blocking(&place, Reason::UnsupportedField, message);
    }
    let place = config.place.clone();
    config.finish(report);
    if scope.consumers.is_none() {
        let message = "The consumers of the rule are unknown, because its Gateways have different ones.";
        report.blocking(&place, Reason::LostReferent, message);
    }
    Some(Common { hides: hides.is_some_and(|(_, hides)| hides), pool: scope.consumers? })
}

pub(super) fn key_auth(mut config: Fields, scope: Scope<'_>, effects: &mut Effects, report: &mut Report) {
    effects.protects = true;
    let place = config.place.clone();
    let [header, parameter] =
        ["header", "query"].map(|field| origin(&mut config, field, "Keys", "apikey", report));
    let Some(common) = common(config, scope, report) else { return };
    let keys = &common.pool.keys;
    if keys.is_empty() {
        let message =
            "The input has no consumer with a key, so no request could be admitted. Give the consumers, too.";
        return report.blocking(&place, Reason::MissingReferent, message);
    }
    let references: Vec<Value> =
        keys.iter().map(|secret| reference(secret, scope.namespace, effects)).collect();
    if references.len() > 16 {
        let message = "The keys are in more than 16 Secrets, and a policy names 16 at most.";
        return report.blocking(&place, Reason::TooMany, message);
    }
    let value = json!({
        "credentialRefs": references, "extractFrom": { "headers": [header], "params": [parameter] },
    });
    common.secure("apiKeyAuth", value, (&place, scope), (effects, report));
    let message =
        "The keys of all consumers are admitted, and backends do not learn the name of the consumer.";
    report.limited(&place, Reason::DifferentCredentials, message);
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
    let Some(common) = common(config, scope, report) else { return };
    let Some(secret) = single(&common.pool.basic, "a password", &place, report) else { return };
    let value = json!({ "secretRef": reference(secret, scope.namespace, effects) });
    common.secure("basicAuth", value, (&place, scope), (effects, report));
    report.limited(&place, Reason::DifferentCredentials, "Backends do not learn the name of the consumer.");
}

pub(super) fn jwt_auth(mut config: Fields, scope: Scope<'_>, effects: &mut Effects, report: &mut Report) {
    effects.protects = true;
    let place = config.place.clone();
    let [header, parameter] = [("header", "Authorization"), ("query", "jwt")]
        .map(|(field, default)| origin(&mut config, field, "Tokens", default, report));
    config.drop(["cookie"], report, "Tokens are not read from a cookie of another name than jwt.");
    config.drop(["key_claim_name"], report, "PingSIX does not read the claim with the name of the key.");
    config.drop(["store_in_ctx"], report, "The field is for other plugins of APISIX.");
    if let Some(claims) = config.take("claims_to_verify") {
        report.limited(&claims.place, Reason::DifferentCredentials, "PingSIX always checks exp.");
    }
    let Some(common) = common(config, scope, report) else { return };
    let Some(jwt) = single(&common.pool.jwt, "a token", &place, report) else { return };
    let mut value = json!({
        "algorithm": jwt.algorithm, "extractFrom": { "headers": [header], "params": [parameter] },
        jwt.field: reference(&jwt.secret, scope.namespace, effects),
    });
    if jwt.clock_skew > 0 {
        value["clockSkew"] = json!(jwt.clock_skew);
    }
    common.secure("jwt", value, (&place, scope), (effects, report));
    let message = "Tokens need the claim exp, and tokens with the claim aud are refused. The claim with the name of the key is not \
         checked, and backends do not learn the name of the consumer.";
    report.limited(&place, Reason::DifferentCredentials, message);
}
