//! How much of a data plane's budget one namespace may take.

use super::reference::{named_by_class, named_by_gateway, named_by_ingress_class};
use crate::model::{Kind, ObjectName, Options};
use crate::snapshot::{Gateway, GatewayClass, IngressClass, Proxies, key_of};

/// What the class says, or else the options, unless the Gateway says less: who may write a Gateway cannot lift a bound.
/// In percent.
pub(crate) fn share_of_gateway(
    gateway: &Gateway,
    class: Option<&GatewayClass>,
    proxies: &Proxies,
    options: &Options,
) -> u8 {
    let key = key_of(Kind::Gateway, &gateway.metadata);
    let of_class = class.and_then(|class| said(&named_by_class(class).ok()??.1, proxies));
    let own = named_by_gateway(gateway, &key.name.namespace).ok().flatten();
    let own = own.and_then(|(_, name)| said(&name, proxies)).unwrap_or(u8::MAX);
    of_class.unwrap_or(options.namespace_share).min(own)
}

/// What the class says, or else the options, in percent.
pub(crate) fn share_of_ingress_class(class: &IngressClass, proxies: &Proxies, options: &Options) -> u8 {
    let named = named_by_ingress_class(class).ok().flatten();
    named.and_then(|(_, name)| said(&name, proxies)).unwrap_or(options.namespace_share)
}

fn said(name: &ObjectName, proxies: &Proxies) -> Option<u8> {
    proxies.get(name)?.spec.budget.as_ref()?.namespace_share
}
