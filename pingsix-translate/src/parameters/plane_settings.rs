//! Settings of data planes that do not depend on who runs them.

use std::sync::Arc;

use super::reference::{named_by_class, named_by_gateway, named_by_ingress_class};
use super::telemetry::{TelemetryRule, rule};
use super::{NamedProxy, ProxyLayers, refusals};
use crate::crd::{PingsixProxy, SharedCache};
use crate::model::{Kind, ObjectName, Options};
use crate::snapshot::{Gateway, GatewayClass, IngressClass, Proxies, key_of};

/// No bound for the CPU of changes.
pub(crate) const WHOLE_CORE: u8 = 100;

/// The settings of each data plane of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlaneSettings {
    /// The share of a budget for one namespace, in percent; 100 is no bound.
    pub(crate) namespace_share: u8,
    /// The share of one core for changes of the configuration, in percent.
    pub(crate) feed_cpu_percent: u8,
    /// Whether responses may be cached where namespaces share the data plane.
    pub(crate) shared_cache: bool,
    /// The plugins for the requests of every route.
    pub(crate) telemetry: Option<Arc<TelemetryRule>>,
}

impl PlaneSettings {
    /// The settings of a Gateway and its class.
    ///
    /// A Gateway can only lower the values of its class, or of the options: its authors must not lift a bound.
    pub(crate) fn of_gateway(
        gateway: &Gateway,
        class: Option<&GatewayClass>,
        proxies: &Proxies,
        options: &Options,
    ) -> Self {
        let key = key_of(Kind::Gateway, &gateway.metadata);
        let class = class.and_then(|class| Some(named_by_class(class).ok()??.1));
        let own = named_by_gateway(gateway, &key.name.namespace).ok().flatten().map(|(_, name)| name);
        let lower = |value: fn(&PingsixProxy) -> Option<u8>, default: u8| {
            let of = |name: &Option<ObjectName>| value(proxies.get(name.as_ref()?)?);
            of(&class).unwrap_or(default).min(of(&own).unwrap_or(u8::MAX))
        };
        // A Gateway sets the field only if its class allows that, or else it is refused.
        let shared_cache =
            shared_cache(own.as_ref(), proxies).or_else(|| shared_cache(class.as_ref(), proxies));
        Self {
            namespace_share: lower(namespace_share, options.namespace_share),
            feed_cpu_percent: lower(feed_cpu_percent, WHOLE_CORE),
            shared_cache: shared_cache == Some(SharedCache::Allowed),
            telemetry: rule(ProxyLayers {
                gateway: usable(own.as_ref(), proxies),
                class: usable(class.as_ref(), proxies),
            })
            .map(Arc::new),
        }
    }

    /// The settings of an IngressClass.
    pub(crate) fn of_ingress_class(class: &IngressClass, proxies: &Proxies, options: &Options) -> Self {
        let name = named_by_ingress_class(class).ok().flatten().map(|(_, name)| name);
        let proxy = name.as_ref().and_then(|name| proxies.get(name)).map(|proxy| &**proxy);
        Self {
            namespace_share: proxy.and_then(namespace_share).unwrap_or(options.namespace_share),
            feed_cpu_percent: proxy.and_then(feed_cpu_percent).unwrap_or(WHOLE_CORE),
            shared_cache: shared_cache(name.as_ref(), proxies) == Some(SharedCache::Allowed),
            telemetry: rule(ProxyLayers { gateway: None, class: usable(name.as_ref(), proxies) })
                .map(Arc::new),
        }
    }
}

fn namespace_share(proxy: &PingsixProxy) -> Option<u8> {
    proxy.spec.budget.as_ref()?.namespace_share
}

fn feed_cpu_percent(proxy: &PingsixProxy) -> Option<u8> {
    proxy.spec.feed.as_ref()?.cpu_percent
}

fn shared_cache(name: Option<&ObjectName>, proxies: &Proxies) -> Option<SharedCache> {
    proxies.get(name?)?.spec.shared_cache
}

/// The PingsixProxy, unless it is refused.
fn usable<'a>(name: Option<&'a ObjectName>, proxies: &'a Proxies) -> Option<NamedProxy<'a>> {
    let name = name?;
    let proxy = proxies.get(name)?;
    refusals(proxy).is_empty().then_some(NamedProxy { name, proxy })
}
