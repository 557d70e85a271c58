//! Parameters: the PingsixProxies of a class and a Gateway about their data planes, checked and merged.
//!
//! A Gateway overrides its class field by field; lists and some structs are overridden as a whole. Some fields are for the
//! class alone unless the class allows otherwise: authors of Gateways need not be trusted with the contents of Pods or the
//! destination of configuration.

mod attached;
mod flaw;
mod layers;
mod managed;
mod overrides;
mod reference;
mod share;
mod sink;

use std::sync::Arc;

pub(crate) use self::flaw::{api_path, flaws};
use self::reference::{named_by_class, named_by_gateway, named_by_ingress_class};
pub(crate) use self::share::{share_of_gateway, share_of_ingress_class};
use crate::crd::{HostOwnership, PingsixProxy};
use crate::infrastructure::{AttachedParameters, ManagedParameters};
use crate::model::{DataPlaneKey, FieldPath, Kind, Layout, Limit, ObjectName, Options, Reason, Refusal};
use crate::snapshot::{Gateway, GatewayClass, IngressClass, Proxies, key_of};

/// The data planes of an owner: attached or managed, with their parameters.
#[derive(Clone, Debug, Default)]
pub(crate) enum Parameters {
    /// There are no parameters: the data planes are attached, and the options of the controller count.
    #[default]
    Unset,
    /// The data planes are attached.
    Attached(Arc<AttachedParameters>),
    /// The data planes are managed.
    Managed(Arc<ManagedParameters>),
}

impl Parameters {
    /// The layout of the data planes of a Gateway.
    pub(crate) fn layout(&self, options: &Options) -> Layout {
        match self {
            Self::Unset => options.layout,
            Self::Attached(parameters) => parameters.layout.unwrap_or(options.layout),
            Self::Managed(_) => Layout::PerPort,
        }
    }

    /// The parameters of attached data planes.
    pub(crate) const fn attached(&self) -> Option<&Arc<AttachedParameters>> {
        match self {
            Self::Attached(parameters) => Some(parameters),
            Self::Unset | Self::Managed(_) => None,
        }
    }

    /// The parameters of managed data planes.
    pub(crate) fn managed(&self) -> Option<&ManagedParameters> {
        match self {
            Self::Managed(parameters) => Some(parameters),
            Self::Unset | Self::Attached(_) => None,
        }
    }
}

/// A valid PingsixProxy with its name.
#[derive(Clone, Copy, Debug)]
struct NamedProxy<'a> {
    name: &'a ObjectName,
    proxy: &'a PingsixProxy,
}

/// The PingsixProxies of one owner. That of the Gateway overrides that of the class.
#[derive(Clone, Copy, Debug, Default)]
struct ProxyLayers<'a> {
    gateway: Option<NamedProxy<'a>>,
    class: Option<NamedProxy<'a>>,
}

impl<'a> ProxyLayers<'a> {
    /// Merges the parameters. `at` is the field in which the Gateway, or else the class, names its PingsixProxy.
    fn merge(
        self,
        at: &FieldPath,
        options: &Options,
        plane_of: impl Fn(Option<u16>) -> DataPlaneKey,
    ) -> Result<Parameters, Refusal> {
        let refuse = |message| Refusal::new(at.clone(), Reason::InvalidParameters, message);
        let managed = layers::Layers::of(self, |named: NamedProxy<'a>| named.proxy.spec.managed.as_ref());
        if !managed.is_empty() {
            return Ok(Parameters::Managed(Arc::new(managed::read(&managed).map_err(refuse)?)));
        }
        let attached = layers::Layers::of(self, |named: NamedProxy<'a>| named.proxy.spec.attached.as_ref());
        if attached.is_empty() {
            return Ok(Parameters::Unset);
        }
        Ok(Parameters::Attached(Arc::new(attached::read(&attached, options, plane_of).map_err(refuse)?)))
    }
}

/// The parameters of a Gateway, and a limit for each field that its class does not allow and that is therefore ignored.
pub(crate) fn of_gateway(
    gateway: &Gateway,
    class: Option<&GatewayClass>,
    proxies: &Proxies,
    options: &Options,
) -> Result<(Parameters, Vec<Limit>), Refusal> {
    let key = key_of(Kind::Gateway, &gateway.metadata);
    let of_class = class.map_or(Ok(None), |class| {
        // Parameters of a Gateway do not correct those of its class.
        of_gateway_class(class, proxies, options)?;
        named_by_class(class)?.map(|(at, name)| find(&at, name, proxies)).transpose()
    });
    let of_class = of_class.map_err(|refusal| {
        let at = FieldPath::new("spec").child("gatewayClassName");
        let message = format!("The parameters of the class cannot be used: {refusal}");
        Refusal::new(at, Reason::InvalidParameters, message)
    })?;
    let own = named_by_gateway(gateway, &key.name.namespace)?;
    let mut at = FieldPath::new("spec").child("gatewayClassName");
    let own = match own {
        Some((field, name)) => {
            at = field.clone();
            Some((field.clone(), find(&field, name, proxies)?))
        }
        None => None,
    };
    if let Some((field, own)) = &own {
        overrides::check(own.named(), of_class.as_ref().map(ResolvedProxy::named))
            .map_err(|message| Refusal::new(field.clone(), Reason::InvalidParameters, message))?;
    }
    let class = of_class.as_ref().map(ResolvedProxy::named);
    let trimmed = own.as_ref().map(|(field, own)| (&own.name, overrides::trim(own.named(), class, field)));
    let gateway = trimmed.as_ref().map(|(name, (proxy, _))| NamedProxy { name, proxy });
    let layers = ProxyLayers { gateway, class };
    let plane = |port| DataPlaneKey::Gateway { gateway: key.name.clone(), port };
    let parameters = layers.merge(&at, options, plane)?;
    Ok((parameters, trimmed.map(|(_, (_, limits))| limits).unwrap_or_default()))
}

/// The parameters of an IngressClass.
pub(crate) fn of_ingress_class(
    class: &IngressClass,
    proxies: &Proxies,
    options: &Options,
) -> Result<Parameters, Refusal> {
    let Some((at, name)) = named_by_ingress_class(class)? else { return Ok(Parameters::Unset) };
    let found = find(&at, name, proxies)?;
    let attached = found.proxy.spec.attached.as_ref();
    if attached.is_some_and(|attached| attached.layout == Some(Layout::PerPort)) {
        let message = format!(
            "{} {} cannot be used: spec.attached.layout: An IngressClass has one data plane for all ports, so that the \
             layout can only be Shared.",
            Kind::PingsixProxy,
            found.name
        );
        return Err(Refusal::new(at, Reason::InvalidParameters, message));
    }
    let layers = ProxyLayers { gateway: None, class: Some(found.named()) };
    let name = class.metadata.name.as_deref().unwrap_or_default();
    let options = Options { layout: Layout::Shared, ..options.clone() };
    layers.merge(&at, &options, |_| DataPlaneKey::Ingress { class: name.into() })
}

/// The ownership of the hosts of an IngressClass. Invalid parameters count as absent.
pub(crate) fn host_ownership(class: &IngressClass, proxies: &Proxies) -> HostOwnership {
    let found =
        named_by_ingress_class(class).ok().flatten().and_then(|(at, name)| find(&at, name, proxies).ok());
    let settings = found.and_then(|found| found.proxy.spec.ingress.as_ref());
    settings.map(|settings| settings.host_ownership).unwrap_or_default()
}

/// The parameters of a GatewayClass, as far as they can be checked without a Gateway.
pub(crate) fn of_gateway_class(
    class: &GatewayClass,
    proxies: &Proxies,
    options: &Options,
) -> Result<Parameters, Refusal> {
    let Some((at, name)) = named_by_class(class)? else { return Ok(Parameters::Unset) };
    let found = find(&at, name, proxies)?;
    let layers = ProxyLayers { gateway: None, class: Some(found.named()) };
    let nobody = ObjectName::new("", "");
    layers.merge(&at, options, |port| DataPlaneKey::Gateway { gateway: nobody.clone(), port })
}

/// A valid PingsixProxy with the name from a reference.
#[derive(Debug)]
struct ResolvedProxy<'a> {
    name: ObjectName,
    proxy: &'a PingsixProxy,
}

impl ResolvedProxy<'_> {
    const fn named(&self) -> NamedProxy<'_> {
        NamedProxy { name: &self.name, proxy: self.proxy }
    }
}

/// The PingsixProxy of this name, or a refusal of the field that names it.
fn find<'p>(at: &FieldPath, name: ObjectName, proxies: &'p Proxies) -> Result<ResolvedProxy<'p>, Refusal> {
    let refuse = |message| Refusal::new(at.clone(), Reason::InvalidParameters, message);
    let kind = Kind::PingsixProxy;
    let Some(proxy) = proxies.get(&name) else {
        return Err(refuse(format!("There is no {kind} {name} that can be read.")));
    };
    match flaws(proxy).first() {
        None => Ok(ResolvedProxy { name, proxy }),
        Some(flaw) => Err(refuse(format!("{kind} {name} cannot be used: {flaw}"))),
    }
}

#[cfg(test)]
mod tests;
