//! Inheritance: the policies that count for the requests of a rule, and the field that each of them contributes.
//!
//! A rule has **levels**, from the widest target to the narrowest: the Gateway, the listener or its ListenerSet, the route,
//! and the rule. At each level, at most one policy of a kind counts ([`super::attached`]). Each top-level field of the spec
//! comes from one of these policies: the widest one with the strategy `Overrides` that sets the field, or else the narrowest
//! one that sets the field (GEP-713).
//!
//! A contributor may have an invalid value of a field that must fail closed. The rule then answers an error
//! ([`InheritedEffect::refusal`]).
//!
//! A policy that contributes no field is left out of the [`PolicyChain`]. The others, in order, choose the same fields again, so a
//! chain determines its plugins.

mod refusals;

use std::sync::Arc;

pub(crate) use self::refusals::{acceptance_refusals, target_refusals, unreadable_refusal};
use super::attached::{AttachedPolicies, AttachedPolicy, PolicyEffect, PolicyTarget};
use super::chain::{BrokenPolicy, ChainFacts, Credentials, PolicyChain, are_protecting};
pub(crate) use crate::crd::MergeStrategy;
use crate::model::ObjectKey;
use crate::pingsix::{PluginConfig, Plugins};

/// The effect of a policy kind that narrower targets inherit from wider ones.
pub(crate) trait InheritedEffect: PolicyEffect + 'static {
    /// The top-level fields of the spec that are inherited.
    const FIELDS: &'static [Field<Self>];

    fn strategy(&self) -> MergeStrategy;

    /// The reason why PingSIX cannot honour a field without which every request must fail.
    fn refusal(&self, _field: &'static str) -> Option<&Arc<str>> {
        None
    }

    /// Whether the plugins of a field need the address of the client.
    fn needs_address(&self, _field: &'static str) -> bool {
        false
    }

    /// All plugins of a policy alone.
    fn plugins(&self) -> Plugins {
        combined(Self::FIELDS.iter().map(|field| (field, self)))
    }
}

/// The value of a field, as plugins of PingSIX.
pub(crate) trait FieldValue {
    /// The names of the plugins to which the field contributes.
    fn plugin_names(&self) -> &'static [&'static str];

    /// Adds the plugins. Those of earlier fields are there.
    fn add_to(&self, plugins: &mut Plugins);
}

impl<C: PluginConfig> FieldValue for C {
    fn plugin_names(&self) -> &'static [&'static str] {
        const { &[C::NAME] }
    }

    fn add_to(&self, plugins: &mut Plugins) {
        plugins.insert(self);
    }
}

/// A top-level field of the spec.
#[derive(Debug)]
pub(crate) struct Field<P> {
    pub(crate) name: &'static str,
    /// The value; `None` if the policy does not set the field.
    pub(crate) value: fn(&P) -> Option<&dyn FieldValue>,
    /// Whether one of these plugins may answer a request before a redirect.
    pub(crate) may_answer: bool,
    /// Whether a filter of a rule may replace the plugins, where no policy overrides the rule.
    pub(crate) yields_to_filters: bool,
    /// An earlier field whose plugins this field refines. Without that field, this one has no effect. Where a policy
    /// overrides that field, no narrower policy may refine it.
    pub(crate) refines: Option<&'static str>,
}

/// The function for the value of a field of an effect.
macro_rules! field_value {
    ($field:ident) => {
        |policy| policy.$field.as_ref().map(|value| value as &dyn crate::policy::inherited::FieldValue)
    };
}
pub(super) use field_value;

impl<P> Field<P> {
    /// A field whose plugins answer no request, and which no filter may replace.
    pub(crate) const fn new(name: &'static str, value: fn(&P) -> Option<&dyn FieldValue>) -> Self {
        Self { name, value, may_answer: false, yields_to_filters: false, refines: None }
    }

    /// The plugins to which the field contributes; `None` if the policy does not set the field.
    fn plugins(&self, policy: &P) -> Option<&'static [&'static str]> {
        (self.value)(policy).map(FieldValue::plugin_names)
    }
}

/// The plugins of fields, each of the policy that contributes it.
fn combined<'p, P: InheritedEffect>(fields: impl Iterator<Item = (&'p Field<P>, &'p P)>) -> Plugins {
    let mut plugins = Plugins::default();
    for (field, policy) in fields {
        if let Some(value) = (field.value)(policy) {
            value.add_to(&mut plugins);
        }
    }
    plugins
}

/// Whether two policies set the same fields, so that rules have the same chains with both.
pub(crate) fn merge_alike<P: InheritedEffect>(one: &P, other: &P) -> bool {
    let is_alike = |field: &Field<P>| {
        field.plugins(one) == field.plugins(other)
            && one.refusal(field.name) == other.refusal(field.name)
            && one.needs_address(field.name) == other.needs_address(field.name)
    };
    one.strategy() == other.strategy() && P::FIELDS.iter().all(is_alike)
}

/// The position of a field.
fn position<P: InheritedEffect>(name: &str) -> Option<usize> {
    P::FIELDS.iter().position(|field| field.name == name)
}

/// For each field, the index of the policy that contributes it. The policies are in the order of levels.
fn contributors<P: InheritedEffect>(policies: &[&P]) -> Vec<Option<usize>> {
    let mut contributors: Vec<Option<usize>> = Vec::with_capacity(P::FIELDS.len());
    for field in P::FIELDS {
        let narrowest = narrowest(field, policies, &contributors).map_or(policies.len(), |index| index + 1);
        let mut setting = (0..narrowest).filter(|index| (field.value)(policies[*index]).is_some());
        let overrides = |index: &usize| policies[*index].strategy() == MergeStrategy::Overrides;
        contributors.push(setting.clone().find(overrides).or_else(|| setting.next_back()));
    }
    contributors
}

/// The narrowest policy that may contribute a field; `None` if all may.
fn narrowest<P: InheritedEffect>(
    field: &Field<P>,
    policies: &[&P],
    contributors: &[Option<usize>],
) -> Option<usize> {
    let contributor = contributors[position::<P>(field.refines?)?]?;
    Some(contributor).filter(|index| policies[*index].strategy() == MergeStrategy::Overrides)
}

impl<P: InheritedEffect> AttachedPolicy<P> {
    /// The fields of a usable policy that need the addresses of clients.
    pub(crate) fn fields_by_address(&self) -> impl Iterator<Item = &'static str> {
        let effect = self.spec.effect.as_ref().ok();
        let is_by_address = |effect: &P, field: &Field<P>| {
            (field.value)(effect).is_some() && effect.needs_address(field.name)
        };
        effect.into_iter().flat_map(move |effect| {
            let fields = P::FIELDS.iter().filter(move |field| is_by_address(effect, field));
            fields.map(|field| field.name)
        })
    }
}

/// A field of a policy that a wider policy overrides.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Overridden {
    pub(crate) field: &'static str,
    pub(crate) by: Arc<ObjectKey>,
}

impl<P: InheritedEffect> AttachedPolicies<P> {
    /// The policies that count at some levels, in the order of levels, each once: a policy that overrides others at its
    /// widest level, where it overrides most, and another one at its narrowest.
    fn at_levels(&self, levels: &[PolicyTarget]) -> Vec<&AttachedPolicy<P>> {
        let mut policies: Vec<&AttachedPolicy<P>> = Vec::new();
        for policy in levels.iter().filter_map(|level| self.winner(level)) {
            if let Some(known) = policies.iter().position(|known| known.key == policy.key) {
                let effect = policy.spec.effect.as_ref();
                if effect.is_ok_and(|effect| effect.strategy() == MergeStrategy::Overrides) {
                    continue;
                }
                policies.remove(known);
            }
            policies.push(policy);
        }
        policies
    }

    /// Adds the policies of this kind to a chain.
    pub(crate) fn extend_chain(
        &self,
        (levels, credentials): (&[PolicyTarget], Credentials),
        policies: &mut Vec<Arc<ObjectKey>>,
        facts: &mut ChainFacts,
    ) -> Result<(), BrokenPolicy> {
        let mut keys = Vec::new();
        let mut effects = Vec::new();
        for policy in self.at_levels(levels) {
            match policy.effect(credentials) {
                Ok(effect) => {
                    keys.push(&policy.key);
                    effects.push(effect);
                }
                Err(refusals) if policy.spec.protects => {
                    let refusal = refusals.first().map(ToString::to_string).unwrap_or_default();
                    return Err(BrokenPolicy { policy: policy.key.clone(), refusal: refusal.into() });
                }
                // Requests may pass without the policy.
                Err(_) => {}
            }
        }
        let contributors = contributors(&effects);
        let mut has_plugins = false;
        for (field, contributor) in P::FIELDS.iter().zip(&contributors) {
            let Some(index) = *contributor else { continue };
            let policy = effects[index];
            if let Some(refusal) = policy.refusal(field.name) {
                return Err(BrokenPolicy { policy: keys[index].clone(), refusal: refusal.clone() });
            }
            let plugins = field.plugins(policy).unwrap_or_default();
            let refines_nothing =
                |refined| position::<P>(refined).is_none_or(|index| contributors[index].is_none());
            if plugins.is_empty() || field.refines.is_some_and(refines_nothing) {
                continue;
            }
            has_plugins = true;
            facts.may_answer |= field.may_answer;
            if are_protecting(plugins) && !facts.protectors.contains(keys[index]) {
                facts.protectors.push(keys[index].clone());
            }
            if policy.needs_address(field.name) {
                facts.by_address.get_or_insert_with(|| (keys[index].clone(), field.name));
            }
            if !field.yields_to_filters || policy.strategy() == MergeStrategy::Overrides {
                facts.exclusive.extend(plugins);
            }
        }
        if has_plugins {
            let contributes = |index: &usize| contributors.contains(&Some(*index));
            let indexes = (0..keys.len()).filter(contributes);
            policies.extend(indexes.map(|index| keys[index].clone()));
        }
        Ok(())
    }

    /// The policies of this kind in a chain, with the index of the policy that contributes each field.
    fn of_chain(&self, chain: &PolicyChain) -> (Vec<&P>, Vec<Option<usize>>) {
        let of_kind = chain.policies.iter().filter_map(|key| self.get(key)?.effect(chain.credentials).ok());
        let effects: Vec<&P> = of_kind.collect();
        let contributors = contributors(&effects);
        (effects, contributors)
    }

    /// The plugins of a chain.
    pub(crate) fn plugins(&self, chain: &PolicyChain) -> Plugins {
        let (effects, contributors) = self.of_chain(chain);
        let fields = P::FIELDS.iter().zip(contributors);
        combined(fields.filter_map(|(field, contributor)| Some((field, effects[contributor?]))))
    }

    /// The plugins to which a policy contributes in a chain.
    pub(crate) fn plugin_names(&self, chain: &PolicyChain, policy: &ObjectKey) -> Vec<&'static str> {
        let Some(own) = self.get(policy).and_then(|policy| policy.effect(chain.credentials).ok()) else {
            return Vec::new();
        };
        let (effects, contributors) = self.of_chain(chain);
        let is_own = |contributor: Option<usize>| {
            contributor.is_some_and(|contributor| std::ptr::eq(effects[contributor], own))
        };
        // A field that refines another one contributes to the plugins of that field, too.
        let plugins_of = |field: &Field<P>| {
            let refined = match field.refines.and_then(position::<P>) {
                None => &[][..],
                Some(refined) => P::FIELDS[refined].plugins(effects[contributors[refined]?])?,
            };
            Some(field.plugins(own)?.iter().chain(refined))
        };
        let fields = P::FIELDS.iter().zip(&contributors).filter(|(_, contributor)| is_own(**contributor));
        let mut names: Vec<&str> =
            fields.filter_map(|(field, _)| plugins_of(field)).flatten().copied().collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The policies with other contents than before.
    pub(crate) fn changed_contents<'s>(
        &'s self,
        before: &'s Self,
    ) -> impl Iterator<Item = Arc<ObjectKey>> + 's {
        let differs = |policy: &&AttachedPolicy<P>| {
            before.get(&policy.key).is_some_and(|before| before.spec.effect != policy.spec.effect)
        };
        self.iter().filter(differs).map(|policy| policy.key.clone())
    }

    /// The fields of a policy that wider policies override, for requests with these levels.
    pub(crate) fn overridden(&self, policy: &AttachedPolicy<P>, levels: &[PolicyTarget]) -> Vec<Overridden> {
        let valid: Vec<&AttachedPolicy<P>> =
            self.at_levels(levels).into_iter().filter(|policy| policy.spec.effect.is_ok()).collect();
        let effects: Vec<&P> = valid.iter().filter_map(|policy| policy.spec.effect.as_ref().ok()).collect();
        let Some(own) = valid.iter().position(|other| other.key == policy.key) else { return Vec::new() };
        let contributors = contributors(&effects);
        let fields = P::FIELDS.iter().zip(&contributors);
        let overridden = fields.filter_map(|(field, contributor)| {
            (field.value)(effects[own])?;
            let by =
                contributor.or_else(|| narrowest(field, &effects, &contributors)).filter(|by| *by < own)?;
            Some(Overridden { field: field.name, by: valid[by].key.clone() })
        });
        overridden.collect()
    }
}
