//! Chains: the inherited policies with an effect on the requests of a rule, by identity.
//!
//! The plugins of a chain become one service of PingSIX, to which the Routes of all rules with this chain refer. A chain has
//! no contents, so a policy with another content changes that service alone.

use std::fmt;
use std::sync::Arc;

use thin_vec::ThinVec;

use crate::model::ObjectKey;

/// Policies that contribute to the plugins of a rule, by kind, then from the widest target to the narrowest.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Chain {
    pub(crate) policies: Box<[Arc<ObjectKey>]>,
}

/// The chain of a rule with the facts that follow from the present contents of its policies.
///
/// The facts are no part of the chain: a service is the same with other contents.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AppliedChain {
    pub(crate) chain: Arc<Chain>,
    pub(crate) facts: ChainFacts,
}

/// The plugins of a chain, as far as rules depend on them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ChainFacts {
    /// Whether a plugin may answer a request that would be redirected otherwise.
    pub(crate) may_answer: bool,
    /// The plugins that no filter of a rule may replace. PingSIX prefers the plugin of a Route to the one of a service.
    pub(crate) exclusive: Vec<&'static str>,
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, policy) in self.policies.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{policy}")?;
        }
        Ok(())
    }
}

impl fmt::Display for AppliedChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.chain.fmt(f)
    }
}

/// A policy that counts for a rule and cannot be honoured, so the rule answers with an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BrokenPolicy {
    pub(crate) policy: Arc<ObjectKey>,
    /// The first flaw of the policy.
    pub(crate) flaw: Arc<str>,
}

/// The inherited policies of a rule, for requests that come in by one listener.
pub(crate) type Inheritance = Result<Option<Arc<AppliedChain>>, BrokenPolicy>;

/// The inherited policies of a rule, by listener. A listener without policies is left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RuleChains(ThinVec<(usize, Inheritance)>);

/// Why the requests of a rule get an error because of policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChainFault<'a> {
    Broken(&'a BrokenPolicy),
    /// Requests may come in by several listeners, whose policies differ.
    Listeners,
}

impl RuleChains {
    /// Of the listeners to which the route is attached.
    pub(crate) fn new(listeners: impl Iterator<Item = (usize, Inheritance)>) -> Self {
        Self(listeners.filter(|(_, inheritance)| *inheritance != Ok(None)).collect())
    }

    /// The policies for requests that may come in by any of these listeners. Broken policies come first, so that no rule is
    /// served without them.
    pub(crate) fn of_listeners(
        &self,
        mut listeners: impl Iterator<Item = usize>,
    ) -> Result<Option<&Arc<AppliedChain>>, ChainFault<'_>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let Some(first) = listeners.next() else { return Ok(None) };
        let chain = self.of_listener(first)?;
        for other in listeners {
            if self.of_listener(other)? != chain {
                return Err(ChainFault::Listeners);
            }
        }
        Ok(chain)
    }

    fn of_listener(&self, listener: usize) -> Result<Option<&Arc<AppliedChain>>, ChainFault<'_>> {
        match self.0.iter().find(|(other, _)| *other == listener) {
            None => Ok(None),
            Some((_, Ok(chain))) => Ok(chain.as_ref()),
            Some((_, Err(broken))) => Err(ChainFault::Broken(broken)),
        }
    }
}
