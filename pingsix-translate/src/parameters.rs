//! Parameters: the PingsixProxies of a class and a Gateway about their data planes, checked and merged.
//!
//! A Gateway overrides its class field by field; lists and some structs are overridden as a whole. Some fields are for the
//! class alone unless the class allows otherwise: authors of Gateways need not be trusted with the contents of Pods or the
//! destination of configuration.

mod attached;
mod layers;
mod managed;
mod overrides;
mod plane_settings;
mod reference;
mod refusals;
mod sink;
mod telemetry;

use std::sync::Arc;

pub(crate) use self::plane_settings::{PlaneSettings, WHOLE_CORE};
use self::reference::{named_by_class, named_by_gateway, named_by_ingress_class};
pub(crate) use self::refusals::{api_path, refusals};
use crate::crd::{IngressSettings, PingsixProxy};
use crate::infrastructure::{AttachedParameters, ManagedParameters, executors};
use crate::model::{DataPlaneKey, Executors, FieldPath, Kind, Layout, ObjectName, Options, Reason, Refusal};
use crate::snapshot::{Gateway, GatewayClass, IngressClass, Proxies, key_of};

/// The metrics port of the first process, if the parameters have metrics and no port.
const DEFAULT_METRICS_PORT: u16 = 9091;

/// The data planes of an owner: attached or managed, with their parameters.
#[derive(Clone, Debug, Default)]
pub(crate) enum Parameters {
    /// There are no parameters: the data planes are attached, and the options of the controller apply.
    #[default]
    Unset,
    /// The data planes are attached.
    Attached(Arc<AttachedParameters>),
    /// The data planes are managed.
    Managed(Arc<ManagedParameters>),
}

impl Parameters {
    /// The layout of the data planes.
    pub(crate) fn layout(&self, options: &Options) -> Layout {
        match self {
            Self::Unset => options.layout,
            Self::Attached(parameters) => parameters.layout.unwrap_or(options.layout),
            Self::Managed(_) => Layout::PerPort,
        }
    }

    /// The executors of the data planes.
    pub(crate) fn executors(&self, options: &Options) -> Executors {
        executors(options, self.managed())
    }

    /// The parameters of attached data planes.
    pub(crate) const fn attached(&self) -> Option<&Arc<AttachedParameters>> {
        match self {
            Self::Attached(parameters) => Some(parameters),
            Self::Unset | Self::Managed(_) => None,
        }
    }

    /// Whether clients from outside the cluster may have the address of a node. Of attached data planes, this is unknown.
    pub(crate) fn hides_clients(&self) -> bool {
        self.managed().is_some_and(|managed| managed.service.hides_clients())
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
            let mut managed = managed::read(&managed).map_err(refuse)?;
            if telemetry::has_metrics(self) {
                managed.process.metrics_port.get_or_insert(DEFAULT_METRICS_PORT);
            }
            let bounds = self.class.and_then(|class| class.proxy.spec.override_bounds.as_ref());
            managed.infrastructure_keys = bounds.and_then(|bounds| bounds.infrastructure_keys.clone());
            return Ok(Parameters::Managed(Arc::new(managed)));
        }
        let attached = layers::Layers::of(self, |named: NamedProxy<'a>| named.proxy.spec.attached.as_ref());
        if attached.is_empty() {
            return Ok(Parameters::Unset);
        }
        Ok(Parameters::Attached(Arc::new(attached::read(&attached, options, plane_of).map_err(refuse)?)))
    }
}

/// The parameters of a Gateway, and a limitation for each field that its class does not allow and that is therefore ignored.
pub(crate) fn of_gateway(
    gateway: &Gateway,
    class: Option<&GatewayClass>,
    proxies: &Proxies,
    options: &Options,
) -> Result<(Parameters, Vec<Refusal>), Refusal> {
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
    let own = trimmed.as_ref().map(|(name, (proxy, _))| NamedProxy { name, proxy });
    let layers = ProxyLayers { gateway: own, class };
    let plane = |port| DataPlaneKey::Gateway { gateway: key.name.clone(), port };
    let parameters = layers.merge(&at, options, plane)?;
    let mut limitations = trimmed.map(|(_, (_, limitations))| limitations).unwrap_or_default();
    limitations
        .extend(parameters.managed().into_iter().flat_map(|managed| refused_metadata(gateway, managed)));
    Ok((parameters, limitations))
}

/// A limitation for the labels, and one for the annotations, that the class does not allow.
fn refused_metadata(gateway: &Gateway, managed: &ManagedParameters) -> Vec<Refusal> {
    let infrastructure = gateway.spec.infrastructure.as_ref();
    let labels = infrastructure.and_then(|infrastructure| infrastructure.labels.as_ref());
    let annotations = infrastructure.and_then(|infrastructure| infrastructure.annotations.as_ref());
    let limitations = [("labels", labels), ("annotations", annotations)].into_iter().filter_map(|(field, all)| {
        let refused = all.into_iter().flatten().filter(|(key, _)| !managed.allows_key(key));
        let refused: Vec<&str> = refused.map(|(key, _)| key.as_str()).collect();
        let at = FieldPath::new("spec").child("infrastructure").child(field);
        (!refused.is_empty()).then(|| {
            let message = format!(
                "The class allows none of these keys (its spec.overrideBounds.infrastructureKeys), so no object gets them: {}.",
                refused.join(", ")
            );
            Refusal::limited(at, message)
        })
    });
    limitations.collect()
}

/// The parameters of an IngressClass.
pub(crate) fn of_ingress_class(
    class: &IngressClass,
    proxies: &Proxies,
    options: &Options,
) -> Result<Parameters, Refusal> {
    let Some((at, name)) = named_by_ingress_class(class)? else { return Ok(Parameters::Unset) };
    let found = find(&at, name, proxies)?;
    let layers = ProxyLayers { gateway: None, class: Some(found.named()) };
    let name: Arc<str> = class.metadata.name.as_deref().unwrap_or_default().into();
    let parameters =
        layers.merge(&at, options, |port| DataPlaneKey::Ingress { class: name.clone(), port })?;
    let attached = found.proxy.spec.attached.as_ref();
    let attached = attached.filter(|_| parameters.layout(options) == Layout::PerPort);
    match attached.and_then(refusals::of_ingress_ports) {
        None => Ok(parameters),
        Some(refusal) => Err(found.refuse(&at, &refusal)),
    }
}

/// The settings for the Ingresses of a class. Invalid parameters count as absent.
pub(crate) fn ingress_settings(class: &IngressClass, proxies: &Proxies) -> IngressSettings {
    let found =
        named_by_ingress_class(class).ok().flatten().and_then(|(at, name)| find(&at, name, proxies).ok());
    found.and_then(|found| found.proxy.spec.ingress.clone()).unwrap_or_default()
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

    /// The refusal of the field that names it.
    fn refuse(&self, at: &FieldPath, refusal: &Refusal) -> Refusal {
        let message = format!("{} {} cannot be used: {refusal}", Kind::PingsixProxy, self.name);
        Refusal::new(at.clone(), Reason::InvalidParameters, message)
    }
}

/// The PingsixProxy of this name, or a refusal of the field that names it.
fn find<'p>(at: &FieldPath, name: ObjectName, proxies: &'p Proxies) -> Result<ResolvedProxy<'p>, Refusal> {
    let Some(proxy) = proxies.get(&name) else {
        let message = format!("There is no {} {name} that can be read.", Kind::PingsixProxy);
        return Err(Refusal::new(at.clone(), Reason::InvalidParameters, message));
    };
    let found = ResolvedProxy { name, proxy };
    match refusals(proxy).first() {
        None => Ok(found),
        Some(refusal) => Err(found.refuse(at, refusal)),
    }
}

#[cfg(test)]
mod tests;
