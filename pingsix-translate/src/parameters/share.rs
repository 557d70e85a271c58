//! The share of a data plane's budget for one namespace.

use super::reference::{named_by_class, named_by_gateway, named_by_ingress_class};
use crate::model::{Kind, ObjectName, Options};
use crate::snapshot::{Gateway, GatewayClass, IngressClass, Proxies, key_of};

/// The share of the class, or else of the options, in percent. A Gateway can only lower it: its authors must not lift a
/// bound.
pub(crate) fn share_of_gateway(
    gateway: &Gateway,
    class: Option<&GatewayClass>,
    proxies: &Proxies,
    options: &Options,
) -> u8 {
    let key = key_of(Kind::Gateway, &gateway.metadata);
    let of_class = class.and_then(|class| share_of(&named_by_class(class).ok()??.1, proxies));
    let own = named_by_gateway(gateway, &key.name.namespace).ok().flatten();
    let own = own.and_then(|(_, name)| share_of(&name, proxies)).unwrap_or(u8::MAX);
    of_class.unwrap_or(options.namespace_share).min(own)
}

/// The share of the class, or else of the options, in percent.
pub(crate) fn share_of_ingress_class(class: &IngressClass, proxies: &Proxies, options: &Options) -> u8 {
    let named = named_by_ingress_class(class).ok().flatten();
    named.and_then(|(_, name)| share_of(&name, proxies)).unwrap_or(options.namespace_share)
}

fn share_of(name: &ObjectName, proxies: &Proxies) -> Option<u8> {
    proxies.get(name)?.spec.budget.as_ref()?.namespace_share
}
