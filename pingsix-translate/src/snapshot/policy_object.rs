//! The kinds of policies, and the parts of their specs that concern other objects: one table.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::kinds::{BackendTlsPolicy, BackendTrafficPolicy, SecurityPolicy, TrafficPolicy};
use super::metadata::Identified;
use super::objects::{Object, Objects};
use super::part::{Part, any_of};
use super::references::{named_referent, named_secret};
use crate::crd::PolicyTargetReference;
use crate::model::{Kind, ObjectKey, ObjectName};

/// A policy: an object with `spec.targetRefs` (GEP-713).
pub(crate) trait PolicyObject: Identified {
    /// The kinds that a policy may target.
    const TARGETS: &'static [Kind];

    /// Whether policies count for Ingresses, or for the Services of their backends.
    const FOR_INGRESSES: bool = true;

    /// Whether policies may name Secrets and ConfigMaps.
    const HAS_REFERENCES: bool = true;

    /// `spec.targetRefs`, in order.
    fn target_refs(&self) -> impl Iterator<Item = TargetRef<'_>>;

    /// The Secrets and ConfigMaps that a policy of `namespace` names, existing or not.
    fn references(&self, namespace: &str) -> BTreeSet<ObjectKey>;

    /// Whether a former version may stay in force for a while. `None` is a policy that is new.
    ///
    /// A policy that is new, or that has other targets or further protections, may not yield: its targets may be new as well,
    /// or may have lost another policy at the same time. Requests that no version of the objects leaves open would then reach
    /// a backend, or reach it in plaintext, unverified or without a client certificate.
    fn may_yield_to(&self, former: Option<&Self>) -> bool;

    /// The policy in a value of any kind.
    fn of(policy: &AnyPolicy) -> Option<&Arc<Self>>;

    /// The objects that a policy of `namespace` targets, existing or not.
    fn targets(&self, namespace: &Arc<str>) -> BTreeSet<ObjectKey> {
        let targets = self.target_refs().filter_map(|target| {
            let kind = target.known_kind().filter(|kind| Self::TARGETS.contains(kind))?;
            Some(ObjectKey { kind, name: ObjectName::new(namespace.clone(), target.name) })
        });
        targets.collect()
    }
}

/// An entry of `spec.targetRefs`, of any generated type.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TargetRef<'a> {
    /// The API group.
    pub group: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The name in the namespace of the policy.
    pub name: &'a str,
    /// A part of the object.
    pub section_name: Option<&'a str>,
}

impl TargetRef<'_> {
    /// The kind, if translation reads it.
    pub(crate) fn known_kind(&self) -> Option<Kind> {
        Kind::from_group_kind(self.group, self.kind)
    }
}

impl<'a> From<&'a PolicyTargetReference> for TargetRef<'a> {
    fn from(target: &'a PolicyTargetReference) -> Self {
        Self {
            group: &target.group,
            kind: &target.kind,
            name: &target.name,
            section_name: target.section_name.as_deref(),
        }
    }
}

any_of! {
    /// A policy of any kind.
    AnyPolicy { BackendTlsPolicy SecurityPolicy TrafficPolicy BackendTrafficPolicy }
}

macro_rules! policies {
    ($($kind:ident)+) => {
        /// Whether policies of a kind may name Secrets and ConfigMaps; false for a kind of other objects.
        pub fn policies_have_references(kind: Kind) -> bool {
            [$((Kind::$kind, $kind::HAS_REFERENCES),)+].contains(&(kind, true))
        }

        impl AnyPolicy {
            /// `spec.targetRefs`, in order.
            pub fn target_refs(&self) -> Vec<TargetRef<'_>> {
                match self { $(Self::$kind(policy) => policy.target_refs().collect(),)+ }
            }

            /// The kinds that the policy may target.
            pub(crate) const fn kinds_of_targets(&self) -> &'static [Kind] {
                match self { $(Self::$kind(_) => $kind::TARGETS,)+ }
            }

            /// `metadata.generation`; 0 if it has none.
            pub(crate) fn generation(&self) -> i64 {
                match self { $(Self::$kind(policy) => policy.metadata.generation,)+ }.unwrap_or_default()
            }

            /// The objects that the policy targets, existing or not.
            pub fn targets(&self) -> BTreeSet<ObjectKey> {
                let namespace = &self.key().name.namespace;
                match self { $(Self::$kind(policy) => policy.targets(namespace),)+ }
            }

            /// Whether the policy targets an object.
            pub fn has_target(&self, key: &ObjectKey) -> bool {
                // A snapshot can have thousands of policies, so nothing is allocated here.
                match self {
                    $(Self::$kind(policy) => {
                        policy.metadata.namespace.as_deref().unwrap_or_default() == &*key.name.namespace
                            && $kind::TARGETS.contains(&key.kind)
                            && policy.target_refs().any(|target| {
                                target.name == &*key.name.name
                                    && target.kind == key.kind.as_str()
                                    && target.group == key.kind.group()
                            })
                    })+
                }
            }

            /// The Secrets and ConfigMaps that the policy names, existing or not.
            pub fn references(&self) -> BTreeSet<ObjectKey> {
                let namespace = &self.key().name.namespace;
                match self { $(Self::$kind(policy) => policy.references(namespace),)+ }
            }

            /// Whether the policy counts for Ingresses, or for the Services of their backends.
            pub const fn is_for_ingresses(&self) -> bool {
                match self { $(Self::$kind(_) => $kind::FOR_INGRESSES,)+ }
            }

            /// Whether a former version of the policy may stay in force for a while. `None` is a policy that is new.
            pub fn may_yield_to(&self, former: Option<&Self>) -> bool {
                match self {
                    $(Self::$kind(policy) => policy.may_yield_to(former.and_then($kind::of).map(AsRef::as_ref)),)+
                }
            }
        }
    };
}

policies! { BackendTlsPolicy SecurityPolicy TrafficPolicy BackendTrafficPolicy }

/// [`PolicyObject::of`] for a kind.
macro_rules! of_kind {
    ($kind:ident) => {
        fn of(policy: &AnyPolicy) -> Option<&Arc<Self>> {
            match policy {
                AnyPolicy::$kind(policy) => Some(policy),
                _ => None,
            }
        }
    };
}

/// The targets of policies that affect backends.
const SERVICES: &[Kind] = &[Kind::Service];

/// The targets of policies that affect requests.
const REQUEST_TARGETS: &[Kind] =
    &[Kind::Gateway, Kind::ListenerSet, Kind::HttpRoute, Kind::GrpcRoute, Kind::Ingress];

impl PolicyObject for BackendTlsPolicy {
    const TARGETS: &'static [Kind] = SERVICES;
    const FOR_INGRESSES: bool = false;

    of_kind! { BackendTlsPolicy }

    fn target_refs(&self) -> impl Iterator<Item = TargetRef<'_>> {
        self.spec.target_refs.iter().map(|target| TargetRef {
            group: &target.group,
            kind: &target.kind,
            name: &target.name,
            section_name: target.section_name.as_deref(),
        })
    }

    fn may_yield_to(&self, former: Option<&Self>) -> bool {
        former.is_some_and(|former| former.spec.target_refs == self.spec.target_refs)
    }

    /// The ConfigMaps with authorities.
    fn references(&self, namespace: &str) -> BTreeSet<ObjectKey> {
        let references = self.spec.validation.ca_certificate_refs.iter().flatten();
        let config_maps = references
            .filter(|reference| reference.group.is_empty() && reference.kind == Kind::ConfigMap.as_str());
        config_maps
            .map(|reference| ObjectKey::new(Kind::ConfigMap, namespace, reference.name.as_str()))
            .collect()
    }
}

impl PolicyObject for SecurityPolicy {
    const TARGETS: &'static [Kind] = REQUEST_TARGETS;

    of_kind! { SecurityPolicy }

    fn target_refs(&self) -> impl Iterator<Item = TargetRef<'_>> {
        self.spec.target_refs.iter().map(TargetRef::from)
    }

    fn may_yield_to(&self, former: Option<&Self>) -> bool {
        former.is_some_and(|former| {
            former.spec.target_refs == self.spec.target_refs && former.spec.has_protections_of(&self.spec)
        })
    }

    /// The Secrets with credentials and keys, and the ConfigMap with a public key.
    fn references(&self, namespace: &str) -> BTreeSet<ObjectKey> {
        let spec = &self.spec;
        let keys = spec.api_key_auth.iter().flat_map(|auth| &auth.credential_refs);
        let basic = spec.basic_auth.iter().map(|auth| &auth.secret_ref);
        let jwt = spec.jwt.iter().filter_map(|jwt| jwt.secret_ref.as_ref());
        let csrf = spec.csrf.iter().map(|csrf| &csrf.secret_ref);
        let secrets = keys.chain(basic).chain(jwt).chain(csrf);
        let secrets = secrets.filter_map(|reference| named_secret(reference, namespace));
        let public_key = spec.jwt.as_ref().and_then(|jwt| jwt.public_key_ref.as_ref());
        let public_key = public_key.and_then(|reference| named_referent(reference, namespace));
        let public_key = public_key.filter(|key| matches!(key.kind, Kind::Secret | Kind::ConfigMap));
        secrets.chain(public_key).collect()
    }
}

impl PolicyObject for TrafficPolicy {
    const TARGETS: &'static [Kind] = REQUEST_TARGETS;
    const HAS_REFERENCES: bool = false;

    of_kind! { TrafficPolicy }

    fn target_refs(&self) -> impl Iterator<Item = TargetRef<'_>> {
        self.spec.target_refs.iter().map(TargetRef::from)
    }

    /// It does not protect its targets by references.
    fn may_yield_to(&self, _: Option<&Self>) -> bool {
        true
    }

    fn references(&self, _: &str) -> BTreeSet<ObjectKey> {
        BTreeSet::new()
    }
}

impl PolicyObject for BackendTrafficPolicy {
    const TARGETS: &'static [Kind] = SERVICES;

    of_kind! { BackendTrafficPolicy }

    fn target_refs(&self) -> impl Iterator<Item = TargetRef<'_>> {
        self.spec.target_refs.iter().map(TargetRef::from)
    }

    fn may_yield_to(&self, former: Option<&Self>) -> bool {
        let is_kept =
            |former: &Self| former.spec.target_refs == self.spec.target_refs && former.spec.tls.is_some();
        self.spec.tls.is_none() || former.is_some_and(is_kept)
    }

    /// The Secret with a client certificate.
    fn references(&self, namespace: &str) -> BTreeSet<ObjectKey> {
        let tls = self.spec.tls.iter();
        tls.filter_map(|tls| named_secret(&tls.client_certificate_ref, namespace)).collect()
    }
}

impl Objects {
    /// Every policy, by kind, then by name.
    pub fn policies(&self) -> impl Iterator<Item = AnyPolicy> {
        Kind::policies().flat_map(|kind| self.of_kind(kind)).filter_map(AnyPolicy::of)
    }
}
