//! Policy chains: the inherited policies with an effect on the requests of a rule, by identity.
//!
//! The plugins of a chain become one service of PingSIX. The Routes of all rules with this chain refer to that service. A
//! chain excludes the contents of policies, so a change of the contents changes that service alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use thin_vec::ThinVec;

use crate::model::{Capability, Kind, ObjectKey};
use crate::pingsix::plugin::{BasicAuth, Cache, IpRestriction, JwtAuth, KeyAuth, PluginConfig as _};

/// Policies that contribute to the plugins of a rule, by kind, then from the widest target to the narrowest.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PolicyChain {
    pub(crate) policies: Box<[Arc<ObjectKey>]>,
    /// Whether credentials count for which the annotations of an Ingress ask.
    pub(crate) credentials: Credentials,
}

/// Whether credentials count for which the annotations of an Ingress ask. Those of other policies always count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Credentials {
    #[default]
    OfAll,
    /// A challenge of ACME is answered without them.
    NotOfAnnotations,
}

/// A chain with the facts that follow from the present contents of its policies.
///
/// The facts are outside of the chain, because the identity of a service is independent of contents.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EvaluatedChain {
    pub(crate) chain: Arc<PolicyChain>,
    pub(crate) facts: ChainFacts,
}

/// The properties of a chain's plugins on which rules depend.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ChainFacts {
    /// Whether a plugin may answer a request that would be redirected otherwise.
    pub(crate) may_answer: bool,
    /// The policies that refuse some clients, by their credentials or addresses.
    pub(crate) protectors: Vec<Arc<ObjectKey>>,
    /// The plugins that no filter of a rule may replace. PingSIX prefers the plugin of a Route to the one of a service.
    pub(crate) exclusive: Vec<&'static str>,
    /// The first policy that needs the addresses of clients, with its field.
    pub(crate) by_address: Option<(Arc<ObjectKey>, &'static str)>,
}

/// The plugins that refuse clients. A limit refuses none for good, and a check against CSRF concerns browsers, which send no
/// ambiguous hosts.
const PROTECTING: [&str; 4] = [BasicAuth::NAME, IpRestriction::NAME, JwtAuth::NAME, KeyAuth::NAME];

/// Whether some of these plugins refuse clients.
pub(super) fn are_protecting(plugins: &[&'static str]) -> bool {
    plugins.iter().any(|plugin| PROTECTING.contains(plugin))
}

impl ChainFacts {
    /// Whether the policies refuse some clients, by their credentials or addresses.
    pub(crate) fn protects(&self) -> bool {
        !self.protectors.is_empty()
    }

    /// Whether PingSIX keeps responses for other requests.
    pub(crate) fn caches(&self) -> bool {
        self.exclusive.contains(&Cache::NAME)
    }
}

impl EvaluatedChain {
    /// The chain where PingSIX sees the address of the sidecar in place of the client's. Fails if a policy needs that.
    pub(super) fn without_addresses(self) -> Result<Self, BrokenPolicy> {
        let Some((policy, field)) = self.facts.by_address else { return Ok(self) };
        let refusal = Capability::AddressPolicyBehindFront.message(&[field]);
        Err(BrokenPolicy { policy, refusal: refusal.into() })
    }
}

impl PolicyChain {
    /// Whether the chain contains any of some policies.
    pub(crate) fn has_any(&self, policies: &BTreeSet<Arc<ObjectKey>>) -> bool {
        self.policies.iter().any(|policy| policies.contains(policy))
    }
}

impl EvaluatedChain {
    /// The policies in a message to the readers of an object.
    pub(crate) fn named_to(&self, reader: &ObjectKey) -> String {
        let mut names: Vec<String> =
            self.chain.policies.iter().map(|policy| policy.named_to(reader)).collect();
        names.dedup();
        names.join(", ")
    }
}

/// An effective policy that PingSIX cannot honour. The rule answers with an error.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BrokenPolicy {
    pub(crate) policy: Arc<ObjectKey>,
    /// The first refusal of the policy.
    pub(crate) refusal: Arc<str>,
}

impl BrokenPolicy {
    /// Whether the policy may refuse some clients. A TrafficPolicy is broken by a limit alone.
    pub(crate) fn protects(&self) -> bool {
        self.policy.kind != Kind::TrafficPolicy
    }
}

/// The chain of a rule for the requests of one listener.
pub(crate) type ChainResult = Result<Option<Arc<EvaluatedChain>>, BrokenPolicy>;

/// The chains of a rule by listener, without listeners that have no policies.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ListenerChains {
    by_listener: ThinVec<ListenerChain>,
    protection: RuleProtection,
}

/// The chain of a rule for the requests of a listener, with policies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ListenerChain {
    listener: usize,
    chain: ChainResult,
    /// The policies of the chain that protect the rule, whatever other policies count.
    protectors: Protectors,
}

/// The policies that protect a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RuleProtection {
    #[default]
    None,
    /// All requests of its listeners have the same protection.
    OfListeners,
    /// Other requests of a listener may have less protection.
    OfRule,
}

/// The reason why requests of a rule get an error because of policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChainError<'a> {
    Broken(&'a BrokenPolicy),
    /// Requests may arrive at several listeners with different policies.
    DifferentListeners,
}

/// The policies that protect requests, or one that cannot be honoured.
pub(super) type Protectors = Result<Vec<Arc<ObjectKey>>, BrokenPolicy>;

impl RuleProtection {
    /// The protection by some policies, where `of_listener` are those that protect all requests of the listener.
    pub(super) fn of(protectors: &Protectors, of_listener: impl FnOnce() -> Protectors) -> Self {
        if protectors.as_ref().is_ok_and(Vec::is_empty) {
            return Self::None;
        }
        let is_of_listener = match (protectors, of_listener()) {
            (_, Err(_)) => true,
            (Err(_), Ok(_)) => false,
            (Ok(own), Ok(of_listener)) => own.iter().all(|policy| of_listener.contains(policy)),
        };
        if is_of_listener { Self::OfListeners } else { Self::OfRule }
    }
}

impl ListenerChains {
    /// The chains of the listeners to which a route is attached.
    pub(crate) fn new(
        listeners: impl Iterator<Item = (usize, ChainResult, Protectors, RuleProtection)>,
    ) -> Self {
        let mut chains = Self::default();
        for (listener, chain, protectors, protection) in listeners {
            chains.protection = chains.protection.max(protection);
            if chain != Ok(None) {
                chains.by_listener.push(ListenerChain { listener, chain, protectors });
            }
        }
        chains
    }

    /// Without chains, for rules before which no policy runs.
    pub(crate) fn without_chains(self) -> Self {
        Self { protection: self.protection, ..Self::default() }
    }

    /// Whether some policies protect the rule, or one that is broken.
    pub(crate) fn has_protectors(&self) -> bool {
        self.by_listener.iter().any(|of_listener| !of_listener.protectors.as_ref().is_ok_and(Vec::is_empty))
    }

    /// Protects a rule that refuses requests itself.
    pub(crate) fn protect_by(&mut self, protection: RuleProtection) {
        self.protection = self.protection.max(protection);
    }

    pub(crate) const fn protection(&self) -> RuleProtection {
        self.protection
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_listener.is_empty()
    }

    /// Whether all policies that protect another rule protect this one on the same listeners, too. A rule with a broken one
    /// answers errors.
    pub(crate) fn protect_like(&self, other: &Self) -> bool {
        other.by_listener.iter().all(|theirs| {
            let own = self.at(theirs.listener).map(|own| &own.protectors);
            match (&theirs.protectors, own) {
                (_, Some(Err(_))) => true,
                (Ok(theirs), Some(Ok(own))) => theirs.iter().all(|policy| own.contains(policy)),
                (Ok(theirs), None) => theirs.is_empty(),
                (Err(_), Some(Ok(_)) | None) => false,
            }
        })
    }

    /// Whether policies refuse some clients, or all of them because a policy is broken.
    pub(crate) fn protect(&self) -> bool {
        self.by_listener.iter().any(|of_listener| match &of_listener.chain {
            Ok(chain) => chain.as_ref().is_some_and(|chain| chain.facts.protects()),
            Err(broken) => broken.protects(),
        })
    }

    /// The chain for requests that may arrive at any of these listeners. Fails if a policy is broken, or if the chains of
    /// the listeners differ.
    pub(crate) fn of_listeners(
        &self,
        mut listeners: impl Iterator<Item = usize>,
    ) -> Result<Option<&Arc<EvaluatedChain>>, ChainError<'_>> {
        if self.by_listener.is_empty() {
            return Ok(None);
        }
        let Some(first) = listeners.next() else { return Ok(None) };
        let chain = self.of_listener(first)?;
        for other in listeners {
            if self.of_listener(other)? != chain {
                return Err(ChainError::DifferentListeners);
            }
        }
        Ok(chain)
    }

    fn of_listener(&self, listener: usize) -> Result<Option<&Arc<EvaluatedChain>>, ChainError<'_>> {
        match self.at(listener).map(|of_listener| &of_listener.chain) {
            None => Ok(None),
            Some(Ok(chain)) => Ok(chain.as_ref()),
            Some(Err(broken)) => Err(ChainError::Broken(broken)),
        }
    }

    fn at(&self, listener: usize) -> Option<&ListenerChain> {
        self.by_listener.iter().find(|of_listener| of_listener.listener == listener)
    }
}
