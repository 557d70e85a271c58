//! SecurityPolicy: who may send requests.

mod addresses;
mod authentication;

use self::authentication::Authentication;
use super::attached::{PolicyEffect, PolicySpec, UnsupportedTraffic};
use super::inherited::{
    Field, InheritedEffect, MergeStrategy, acceptance_refusals, field_value, merge_alike, target_refusals,
    unreadable_refusal,
};
use crate::crd::{self, PolicyTargetReference, SecurityPolicySpec};
use crate::model::{FieldPath, Kind, ObjectKey, Reason, Refusal};
use crate::normalise::{Cors, admits_any_origin};
use crate::pingsix::plugin::{Cors as CorsPlugin, Csrf};
use crate::references::{References, entry};
use crate::snapshot::{Secret, SecurityPolicy, key_of};

/// The effect of a SecurityPolicy, field by field.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct SecurityEffect {
    strategy: MergeStrategy,
    authentication: Option<Authentication>,
    authorization: Option<crd::Authorization>,
    client_ip: Option<crd::ClientIp>,
    cors: Option<CorsPlugin>,
    csrf: Option<Csrf>,
}

const AUTHENTICATION: &str = "authentication";
const AUTHORIZATION: &str = "authorization";
const CLIENT_IP: &str = "clientIP";
const CORS: &str = "cors";
const CSRF: &str = "csrf";

impl PolicyEffect for SecurityEffect {
    type Object = SecurityPolicy;

    fn read(policy: &SecurityPolicy, references: &References<'_>) -> PolicySpec<Self> {
        let key = key_of(Kind::SecurityPolicy, &policy.metadata);
        let sanitizes = policy.spec.target_refs.iter().any(PolicyTargetReference::is_wide);
        let mut reader = Reader { key, references, sanitizes, refusals: Vec::new(), unresolved: Vec::new() };
        let effect = reader.read(&policy.spec);
        let Reader { mut refusals, unresolved, .. } = reader;
        // A reference that leads nowhere makes the policy unusable, and its condition `ResolvedRefs` has the reason.
        refusals
            .extend(unresolved.iter().map(|refusal| Refusal { reason: Reason::Invalid, ..refusal.clone() }));
        let limitations = limitations(&policy.spec, sanitizes);
        PolicySpec {
            effect: if refusals.is_empty() { Ok(effect) } else { Err(refusals) },
            unapplied: Vec::new(),
            unresolved,
            limitations,
            protects: true,
        }
    }

    fn refuse(&self, _: &UnsupportedTraffic) -> Vec<Refusal> {
        // A valid policy is honoured for all requests, or else the rule is refused.
        Vec::new()
    }

    fn without_credentials(&self) -> Option<Self> {
        let Self { strategy, authentication, authorization, client_ip, cors, csrf } = self;
        authentication.is_some().then(|| Self {
            strategy: *strategy,
            authentication: None,
            authorization: authorization.clone(),
            client_ip: client_ip.clone(),
            cors: cors.clone(),
            csrf: csrf.clone(),
        })
    }

    fn attaches_like(&self, other: &Self) -> bool {
        merge_alike(self, other)
    }
}

impl InheritedEffect for SecurityEffect {
    const FIELDS: &'static [Field<Self>] = &[
        Field { may_answer: true, ..Field::new(AUTHENTICATION, field_value!(authentication)) },
        Field { may_answer: true, ..Field::new(AUTHORIZATION, field_value!(authorization)) },
        Field { refines: Some(AUTHORIZATION), ..Field::new(CLIENT_IP, field_value!(client_ip)) },
        Field { yields_to_filters: true, ..Field::new(CORS, field_value!(cors)) },
        Field { may_answer: true, ..Field::new(CSRF, field_value!(csrf)) },
    ];

    fn strategy(&self) -> MergeStrategy {
        self.strategy
    }

    fn needs_address(&self, field: &'static str) -> bool {
        field == AUTHORIZATION
    }
}

/// Reads the spec of a policy, and collects its refusals.
struct Reader<'r> {
    key: ObjectKey,
    references: &'r References<'r>,
    /// Whether backends get no credentials by default. Gateways and ListenerSets may have routes of others.
    sanitizes: bool,
    refusals: Vec<Refusal>,
    unresolved: Vec<Refusal>,
}

impl<'r> Reader<'r> {
    fn read(&mut self, spec: &SecurityPolicySpec) -> SecurityEffect {
        let at = FieldPath::new("spec");
        self.refusals.extend(spec.unreadable.iter().map(unreadable_refusal));
        self.refusals.extend(target_refusals(&spec.target_refs, spec.strategy));
        if spec.strategy == MergeStrategy::Overrides && spec.anonymous.is_some() {
            self.refuse(at.child("strategy"), "The field anonymous overrides no authentication.");
        }
        let security = SecurityEffect {
            strategy: spec.strategy,
            authentication: self.authentication(spec, &at),
            authorization: spec.authorization.clone(),
            client_ip: spec.client_ip.clone(),
            cors: spec.cors.as_ref().map(|cors| self.cors(cors, &at.child("cors"))),
            csrf: spec.csrf.as_ref().and_then(|csrf| self.csrf(csrf, &at.child("csrf"))),
        };
        self.check_addresses(spec, &at);
        if self.refusals.is_empty() && self.unresolved.is_empty() {
            self.refusals.extend(acceptance_refusals(security.plugins(), &at));
        }
        security
    }

    fn refuse(&mut self, at: FieldPath, message: impl Into<String>) {
        self.refusals.push(Refusal::new(at, Reason::Invalid, message));
    }

    fn cors(&mut self, cors: &crd::Cors, at: &FieldPath) -> CorsPlugin {
        Cors::of_policy(cors, at, &mut self.refusals).lower()
    }

    fn csrf(&mut self, csrf: &crd::Csrf, at: &FieldPath) -> Option<Csrf> {
        let key = self.entry_of(&csrf.secret_ref, "key", &at.child("secretRef"))?;
        Some(Csrf { key, ..Csrf::default() })
    }

    /// The value of an entry of a Secret.
    fn entry_of(
        &mut self,
        reference: &crd::SecretObjectReference,
        name: &str,
        at: &FieldPath,
    ) -> Option<String> {
        let value = entry(self.secret(reference, at)?, name);
        self.valid(value, at).map(str::to_owned)
    }

    /// The public key in a ConfigMap or Secret.
    fn public_key(&mut self, reference: &crd::SecretObjectReference, at: &FieldPath) -> Option<String> {
        let key = self.resolved(self.references.public_key(&self.key, reference, "key", at))?;
        self.valid(key, at)
    }

    /// The Secret of a reference; `None` after noting why the reference leads nowhere.
    fn secret(&mut self, reference: &crd::SecretObjectReference, at: &FieldPath) -> Option<&'r Secret> {
        self.resolved(self.references.secret(&self.key, reference, at))
    }

    /// The referent; `None` after noting the refusal of its reference.
    fn resolved<T>(&mut self, referent: Result<T, Refusal>) -> Option<T> {
        referent.map_err(|refusal| self.unresolved.push(refusal)).ok()
    }

    /// The value; `None` after noting its refusal.
    fn valid<T>(&mut self, value: Result<T, String>, at: &FieldPath) -> Option<T> {
        value.map_err(|message| self.refuse(at.clone(), message)).ok()
    }
}

fn limitations(spec: &SecurityPolicySpec, sanitizes: bool) -> Vec<Refusal> {
    let mut limitations = authentication::limitations(spec, sanitizes);
    limitations.extend(addresses::limitations(spec));
    if spec.cors.as_ref().is_some_and(|cors| cors.allow_credentials && admits_any_origin(cors)) {
        limitations.push(Refusal::limited(
            FieldPath::new("spec").child("cors").child("allowCredentials"),
            "Scripts may not send credentials, because any origin is allowed. List the origins that may.",
        ));
    }
    limitations
}

#[cfg(test)]
mod tests;
