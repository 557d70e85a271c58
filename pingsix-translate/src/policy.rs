//! Attached policies: which policy counts for a target, and its effect there.
//!
//! Each kind of policy has a file, such as [`backend_tls`]: it reads the spec and says whether PingSIX can honour the
//! policy. [`attached`] finds the policy that counts for each target, in the same way for all kinds. [`requirement`] applies the
//! policies of Services to one route. [`inherited`] finds the policies of Gateways, ListenerSets, routes and Ingresses that
//! count for a rule, which are a [`chain`]. A policy that PingSIX cannot honour still wins its target, so PingSIX makes no
//! connection to that backend.

mod attached;
mod backend_tls;
mod backend_traffic;
mod chain;
mod inherited;
mod requirement;
mod security;
mod traffic;

use std::collections::BTreeSet;
use std::sync::Arc;

pub(crate) use attached::{
    AnnotationPolicies, AttachedPolicies, AttachedPolicy, PolicyEffect, PolicyTarget, UnsupportedTraffic,
};
use backend_tls::BackendTlsEffect;
use backend_traffic::BackendTrafficEffect;
pub(crate) use backend_traffic::{Balancing, ClientCertificate, Hashed, HealthProbe, TrafficSettings};
use chain::Protectors;
pub(crate) use chain::{
    BrokenPolicy, ChainError, ChainFacts, Credentials, EvaluatedChain, ListenerChains, PolicyChain,
    RuleProtection,
};
pub(crate) use inherited::{InheritedEffect, Overridden};
pub(crate) use requirement::{Payload, RoutePolicies, TlsRequirement, TrafficRequirement};
use security::SecurityEffect;
use traffic::TrafficEffect;

use crate::attach::Listener;
use crate::model::{Kind, ObjectKey, PolicyPlugins, Refusal};
use crate::normalise::{Part, Route, Rule};
use crate::pingsix::Plugins;
use crate::references::References;
use crate::shared_map::SharedMap;
use crate::snapshot::AnyPolicy;

/// The policies of a snapshot: a field for each kind. Methods name each field, so that the compiler finds all of them.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    pub(crate) backend_tls: AttachedPolicies<BackendTlsEffect>,
    pub(crate) backend_traffic: AttachedPolicies<BackendTrafficEffect>,
    pub(crate) security: AttachedPolicies<SecurityEffect>,
    pub(crate) traffic: AttachedPolicies<TrafficEffect>,
}

impl Policies {
    pub(crate) fn new(
        policies: &SharedMap<ObjectKey, AnyPolicy>,
        annotations: &AnnotationPolicies,
        references: &References<'_>,
    ) -> Self {
        Self {
            backend_tls: AttachedPolicies::new(policies, annotations, references),
            backend_traffic: AttachedPolicies::new(policies, annotations, references),
            security: AttachedPolicies::new(policies, annotations, references),
            traffic: AttachedPolicies::new(policies, annotations, references),
        }
    }

    /// Takes the caches of responses out of all policies, for data planes whose memory namespaces share without permission.
    pub(crate) fn forbid_caches(&mut self) {
        for policy in self.traffic.iter_mut() {
            if policy.spec.effect.as_mut().is_ok_and(TrafficEffect::forbid_cache) {
                policy.spec.limitations.retain(|limitation| limitation.at != traffic::cache_field());
                policy.spec.limitations.push(traffic::forbidden_cache());
            }
        }
    }

    /// The objects that policies target.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &ObjectKey> {
        let Self { backend_tls, backend_traffic, security, traffic } = self;
        let of_services = backend_tls.targets().chain(backend_traffic.targets());
        of_services.chain(security.targets()).chain(traffic.targets())
    }

    /// The objects whose effective policy changed, by identity or by effect.
    pub(crate) fn changed<'s>(&'s self, before: &'s Self) -> BTreeSet<&'s ObjectKey> {
        let Self { backend_tls, backend_traffic, security, traffic } = self;
        let changed = backend_tls.changed(&before.backend_tls);
        let changed = changed.chain(backend_traffic.changed(&before.backend_traffic));
        let changed = changed.chain(security.changed(&before.security));
        changed.chain(traffic.changed(&before.traffic)).collect()
    }

    /// Inherited policies with other contents than before.
    pub(crate) fn changed_contents(&self, before: &Self) -> BTreeSet<Arc<ObjectKey>> {
        let Self { backend_tls: _, backend_traffic: _, security, traffic } = self;
        let changed = security.changed_contents(&before.security);
        changed.chain(traffic.changed_contents(&before.traffic)).collect()
    }

    /// Whether there is a policy that wider targets hand down to narrower ones.
    pub(crate) fn has_inherited(&self) -> bool {
        let Self { backend_tls: _, backend_traffic: _, security, traffic } = self;
        !security.is_empty() || !traffic.is_empty()
    }

    /// The chain for requests with these levels, from the widest target to the narrowest.
    fn chain(
        &self,
        levels: &[PolicyTarget],
        credentials: Credentials,
    ) -> Result<Option<EvaluatedChain>, BrokenPolicy> {
        let Self { backend_tls: _, backend_traffic: _, security, traffic } = self;
        let (mut policies, mut facts) = (Vec::new(), ChainFacts::default());
        security.extend_chain((levels, credentials), &mut policies, &mut facts)?;
        traffic.extend_chain((levels, credentials), &mut policies, &mut facts)?;
        // The annotations of an Ingress may stand for a policy of each kind. They are the widest target, so their place is
        // the first for all kinds.
        if let Some(ingress) = policies.iter().find(|policy| policy.kind == Kind::Ingress).cloned() {
            policies.retain(|policy| *policy != ingress);
            policies.insert(0, ingress);
        }
        let is_chain = !policies.is_empty();
        // Most challenges have no other plugins than without the choice.
        let is_spared =
            policies.iter().any(|key| security.get(key).is_some_and(AttachedPolicy::may_spare_credentials));
        let credentials = if is_spared { credentials } else { Credentials::OfAll };
        let policies = policies.into();
        Ok(is_chain.then(|| EvaluatedChain { chain: Arc::new(PolicyChain { policies, credentials }), facts }))
    }

    /// The policies that protect requests with these levels, whatever other policies count for them.
    fn protectors(&self, levels: &[PolicyTarget], credentials: Credentials) -> Protectors {
        let (mut policies, mut facts) = (Vec::new(), ChainFacts::default());
        self.security.extend_chain((levels, credentials), &mut policies, &mut facts)?;
        Ok(facts.protectors)
    }

    /// The chains of a rule: for each listener to which its route is attached, the one that `share` makes.
    pub(crate) fn chains<'l>(
        &self,
        route: &Route,
        rule: &Rule,
        listeners: impl Iterator<Item = (usize, &'l Listener)>,
        gateway: &ObjectKey,
        mut share: impl FnMut(EvaluatedChain) -> Arc<EvaluatedChain>,
    ) -> ListenerChains {
        if !self.has_inherited() || !route.traffic.has_requests() {
            return ListenerChains::default();
        }
        ListenerChains::new(listeners.map(|(index, listener)| {
            let levels: Vec<PolicyTarget> =
                levels_of_listener(gateway, listener).chain(levels_of_rule(route, rule)).collect();
            let chain = self.chain(&levels, Credentials::OfAll);
            let protectors = self.protectors(&levels, Credentials::OfAll);
            let protection = RuleProtection::of(&protectors, || {
                let levels: Vec<PolicyTarget> = levels_of_listener(gateway, listener).collect();
                self.protectors(&levels, Credentials::OfAll)
            });
            let chain = chain.and_then(|chain| match chain {
                Some(chain) if listener.is_fronted() => chain.without_addresses().map(Some),
                chain => Ok(chain),
            });
            (index, chain.map(|chain| chain.map(&mut share)), protectors, protection)
        }))
    }

    /// The chains of a rule of an Ingress: the same on each of these ports. No target is wider than an Ingress.
    pub(crate) fn chains_of_ingress(
        &self,
        route: &Route,
        rule: &Rule,
        ports: impl Iterator<Item = usize>,
        share: impl FnMut(EvaluatedChain) -> Arc<EvaluatedChain>,
    ) -> ListenerChains {
        if !self.has_inherited() {
            return ListenerChains::default();
        }
        let levels: Vec<PolicyTarget> = levels_of_rule(route, rule).collect();
        let credentials = if matches!(route.part, Part::IngressChallenges(_)) {
            Credentials::NotOfAnnotations
        } else {
            Credentials::OfAll
        };
        let result = self.chain(&levels, credentials).map(|chain| chain.map(share));
        let protectors = self.protectors(&levels, credentials);
        let protection = RuleProtection::of(&protectors, || Ok(Vec::new()));
        ListenerChains::new(ports.map(|port| (port, result.clone(), protectors.clone(), protection)))
    }

    /// The plugins of a chain.
    pub(crate) fn plugins(&self, chain: &PolicyChain) -> Plugins {
        let Self { backend_tls: _, backend_traffic: _, security, traffic } = self;
        let (of_security, of_traffic) = (security.plugins(chain), traffic.plugins(chain));
        // A plugin that both kinds need is the one that protects.
        let all = of_traffic.iter().chain(of_security.iter());
        all.map(|(name, config)| (name.to_owned(), config.clone())).collect()
    }

    /// The policies of a chain, each with the plugins to which it contributes.
    pub(crate) fn plugin_names<'c>(
        &'c self,
        chain: &'c PolicyChain,
    ) -> impl Iterator<Item = PolicyPlugins> + 'c {
        let Self { backend_tls: _, backend_traffic: _, security, traffic } = self;
        let of_security = security.plugins(chain);
        chain.policies.iter().map(move |policy| {
            let mut names = security.plugin_names(chain, policy);
            let of_traffic = traffic.plugin_names(chain, policy);
            names.extend(of_traffic.into_iter().filter(|name| !of_security.contains(name)));
            (policy.clone(), names.into())
        })
    }

    /// The policies as they apply to the traffic of a route.
    /// `is_fronted`: whether some requests come in by fronted listeners.
    pub(crate) fn for_route<'a>(
        &'a self,
        route: &'a ObjectKey,
        payload: Payload<'a>,
        is_fronted: bool,
    ) -> RoutePolicies<'a> {
        RoutePolicies { policies: self, payload, is_fronted, annotations: None, reader: route }
    }

    /// The policies as they apply to the requests of an Ingress.
    pub(crate) fn for_ingress<'a>(&'a self, ingress: &'a ObjectKey) -> RoutePolicies<'a> {
        let of_annotations = self.backend_traffic.winner(&PolicyTarget::annotations(ingress));
        let effect = of_annotations.and_then(|policy| policy.spec.effect.as_ref().ok());
        RoutePolicies {
            annotations: effect.map(|effect| &effect.settings),
            ..self.for_route(ingress, Payload::Requests(None), false)
        }
    }

    /// The refusals of the policies that the annotations of an Ingress stand for, each with whether it closes the
    /// Ingress.
    pub(crate) fn refusals_of_annotations<'s>(
        &'s self,
        ingress: &ObjectKey,
    ) -> impl Iterator<Item = (bool, &'s Refusal)> + use<'s> {
        let target = PolicyTarget::annotations(ingress);
        let Self { backend_tls: _, backend_traffic, security, traffic } = self;
        let of_requests = security.refusals_at(&target).chain(traffic.refusals_at(&target));
        of_requests.chain(backend_traffic.refusals_at(&target))
    }
}

/// The targets that hold for all requests by a listener, from the widest to the narrowest.
pub(crate) fn levels_of_listener(
    gateway: &ObjectKey,
    listener: &Listener,
) -> impl Iterator<Item = PolicyTarget> {
    let owner = Some(&*listener.owner).filter(|owner| *owner != gateway);
    let section = PolicyTarget { object: (*listener.owner).clone(), section: Some(listener.name.clone()) };
    let whole = std::iter::once(gateway).chain(owner);
    let whole: Vec<PolicyTarget> =
        whole.map(|object| PolicyTarget { object: object.clone(), section: None }).collect();
    whole.into_iter().chain([section])
}

/// The targets that hold for a rule alone, from the widest to the narrowest.
pub(crate) fn levels_of_rule(route: &Route, rule: &Rule) -> impl Iterator<Item = PolicyTarget> {
    let section = rule.name.as_deref().map(|name| Some(name.to_owned()));
    let object = route.key.clone();
    let annotations = (object.kind == Kind::Ingress).then(|| PolicyTarget::annotations(&object));
    let sections = std::iter::once(None).chain(section);
    annotations
        .into_iter()
        .chain(sections.map(move |section| PolicyTarget { object: (*object).clone(), section }))
}

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
