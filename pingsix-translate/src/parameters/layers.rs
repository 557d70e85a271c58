//! The same part of the parameters of a Gateway and of its class.

use std::collections::BTreeMap;

use super::{NamedProxy, ProxyLayers};
use crate::model::ObjectName;

/// The part of each PingsixProxy, the Gateway's first, with the name of the PingsixProxy.
#[derive(Debug)]
pub(super) struct Layers<'a, T>([Option<(&'a ObjectName, &'a T)>; 2]);

impl<'a, T> Layers<'a, T> {
    pub(super) fn of(proxies: ProxyLayers<'a>, part: impl Fn(NamedProxy<'a>) -> Option<&'a T>) -> Self {
        Self([proxies.gateway, proxies.class].map(|named| {
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

    /// The value of the Gateway, or else that of the class, with the name of its PingsixProxy.
    pub(super) fn first_with_name<P>(
        &self,
        part: impl Fn(&'a T) -> Option<P>,
    ) -> Option<(&'a ObjectName, P)> {
        self.0.iter().flatten().find_map(|(name, whole)| Some((*name, part(whole)?)))
    }

    /// The value of the Gateway.
    pub(super) fn of_gateway<P>(&self, part: impl Fn(&'a T) -> Option<P>) -> Option<P> {
        let [gateway, _] = &self.0;
        gateway.and_then(|(_, whole)| part(whole))
    }

    /// The value of the Gateway, or else that of the class.
    pub(super) fn first<P: Clone + 'a>(&self, part: impl Fn(&'a T) -> Option<&'a P>) -> Option<P> {
        self.first_with_name(part).map(|(_, value)| value.clone())
    }

    /// The list of the Gateway, or else that of the class.
    pub(super) fn list<P: Clone + 'a>(&self, part: impl Fn(&'a T) -> &'a Vec<P>) -> Vec<P> {
        self.first(|whole| Some(part(whole)).filter(|list| !list.is_empty())).unwrap_or_default()
    }

    /// The entries of both. The Gateway's entry wins.
    pub(super) fn map<V: Clone + 'a>(
        &self,
        part: impl Fn(&'a T) -> Option<&'a BTreeMap<String, V>>,
    ) -> BTreeMap<String, V> {
        let maps = self.0.iter().rev().flatten().filter_map(|(_, whole)| part(whole));
        maps.flatten().map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}
