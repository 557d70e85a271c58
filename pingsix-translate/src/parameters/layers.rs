//! The same part of what a Gateway says and of what its class says.

use std::collections::BTreeMap;

use super::{Named, Sayings};
use crate::model::ObjectName;

/// A part of each, if it is there, and whose it is.
#[derive(Debug)]
pub(super) struct Layers<'a, T>([Option<(&'a ObjectName, &'a T)>; 2]);

impl<'a, T> Layers<'a, T> {
    pub(super) fn of(sayings: Sayings<'a>, part: impl Fn(Named<'a>) -> Option<&'a T>) -> Self {
        Self([sayings.gateway, sayings.class].map(|named| {
            let named = named?;
            Some((named.name, part(named)?))
        }))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// A part of the part.
    pub(super) fn part<P>(&self, part: impl Fn(&'a T) -> Option<&'a P>) -> Layers<'a, P> {
        Layers(self.0.map(|layer| {
            let (name, whole) = layer?;
            Some((name, part(whole)?))
        }))
    }

    /// What the Gateway says, or else what the class says, and in which PingsixProxy.
    pub(super) fn said<P>(&self, part: impl Fn(&'a T) -> Option<P>) -> Option<(&'a ObjectName, P)> {
        self.0.iter().flatten().find_map(|(name, whole)| Some((*name, part(whole)?)))
    }

    /// What the Gateway says.
    pub(super) fn of_gateway<P>(&self, part: impl Fn(&'a T) -> Option<P>) -> Option<P> {
        let [gateway, _] = &self.0;
        gateway.and_then(|(_, whole)| part(whole))
    }

    /// What the Gateway says, or else what the class says.
    pub(super) fn first<P: Clone + 'a>(&self, part: impl Fn(&'a T) -> Option<&'a P>) -> Option<P> {
        self.said(part).map(|(_, value)| value.clone())
    }

    /// The list of the Gateway, or else that of the class.
    pub(super) fn list<P: Clone + 'a>(&self, part: impl Fn(&'a T) -> &'a Vec<P>) -> Vec<P> {
        self.first(|whole| Some(part(whole)).filter(|list| !list.is_empty())).unwrap_or_default()
    }

    /// The entries of both; where both have one, that of the Gateway.
    pub(super) fn map<V: Clone + 'a>(
        &self,
        part: impl Fn(&'a T) -> Option<&'a BTreeMap<String, V>>,
    ) -> BTreeMap<String, V> {
        let maps = self.0.iter().rev().flatten().filter_map(|(_, whole)| part(whole));
        maps.flatten().map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}
