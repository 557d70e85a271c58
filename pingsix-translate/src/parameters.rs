//! Parameters: what a class and a Gateway say about their data planes, read, checked and put together.
//!
//! What a Gateway says overrides what its class says, field by field; lists, and what makes sense only as a whole, are
//! overridden as a whole. Some fields are for the class alone unless it allows otherwise: who may write a Gateway need
//! not be trusted with what runs in its Pods, or with where configuration goes.

mod attached;
mod flaw;
mod layers;
mod managed;
mod overrides;
mod reference;
mod share;
mod sink;

use std::sync::Arc;

pub(crate) use self::flaw::flaws;
use self::reference::{named_by_class, named_by_gateway, named_by_ingress_class};
pub(crate) use self::share::{share_of_gateway, share_of_ingress_class};
use crate::crd::{HostOwnership, PingsixProxy};
use crate::infrastructure::{AttachedParameters, ManagedParameters};
use crate::model::{DataPlaneKey, FieldPath, Kind, Layout, Limit, ObjectName, Options, Reason, Refusal};
use crate::snapshot::{Gateway, GatewayClass, IngressClass, Proxies, key_of};

/// Who runs the data planes of an owner, and how.
#[derive(Clone, Debug, Default)]
pub(crate) enum Parameters {
    /// Nobody says: somebody else runs them, as the options have it.
    #[default]
    Unsaid,
    /// Somebody else.
    Attached(Arc<AttachedParameters>),
    /// The controller.
    Managed(Arc<ManagedParameters>),
}

impl Parameters {
    /// How the listeners of a Gateway are spread over data planes.
    pub(crate) fn layout(&self, options: &Options) -> Layout {
        match self {
            Self::Unsaid => options.layout,
            Self::Attached(parameters) => parameters.layout.unwrap_or(options.layout),
            Self::Managed(_) => Layout::PerPort,
        }
    }

    /// Of data planes that somebody else runs.
    pub(crate) const fn attached(&self) -> Option<&Arc<AttachedParameters>> {
        match self {
            Self::Attached(parameters) => Some(parameters),
            Self::Unsaid | Self::Managed(_) => None,
        }
    }

    /// Of data planes that the controller runs.
    pub(crate) fn managed(&self) -> Option<&ManagedParameters> {
        match self {
            Self::Managed(parameters) => Some(parameters),
            Self::Unsaid | Self::Attached(_) => None,
        }
    }
}

/// A PingsixProxy that can be used, and its name.
#[derive(Clone, Copy, Debug)]
struct Named<'a> {
    name: &'a ObjectName,
    proxy: &'a PingsixProxy,
}

/// Who says what about one owner: the class, and a Gateway in its place.
#[derive(Clone, Copy, Debug, Default)]
struct Sayings<'a> {
    gateway: Option<Named<'a>>,
    class: Option<Named<'a>>,
}

impl<'a> Sayings<'a> {
    /// Puts together what is said. `at` is where the Gateway, or else the class, names what it says.
    fn together(
        self,
        at: &FieldPath,
        options: &Options,
        plane_of: impl Fn(Option<u16>) -> DataPlaneKey,
    ) -> Result<Parameters, Refusal> {
        let refuse = |message| Refusal::new(at.clone(), Reason::InvalidParameters, message);
        let managed = layers::Layers::of(self, |named: Named<'a>| named.proxy.spec.managed.as_ref());
        if !managed.is_empty() {
            return Ok(Parameters::Managed(Arc::new(managed::read(&managed).map_err(refuse)?)));
        }
        let attached = layers::Layers::of(self, |named: Named<'a>| named.proxy.spec.attached.as_ref());
        if attached.is_empty() {
            return Ok(Parameters::Unsaid);
        }
        Ok(Parameters::Attached(Arc::new(attached::read(&attached, options, plane_of).map_err(refuse)?)))
    }
}

/// The parameters of a Gateway, and what it asks for that its class does not allow and that is therefore not used.
pub(crate) fn of_gateway(
    gateway: &Gateway,
    class: Option<&GatewayClass>,
    proxies: &Proxies,
    options: &Options,
) -> Result<(Parameters, Vec<Limit>), Refusal> {
    let key = key_of(Kind::Gateway, &gateway.metadata);
    let of_class = class.map_or(Ok(None), |class| {
        // A Gateway does not mend what is wrong with its class.
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
        overrides::check(own.named(), of_class.as_ref().map(Found::named))
            .map_err(|message| Refusal::new(field.clone(), Reason::InvalidParameters, message))?;
    }
    let class = of_class.as_ref().map(Found::named);
    let trimmed = own.as_ref().map(|(field, own)| (&own.name, overrides::trim(own.named(), class, field)));
    let gateway = trimmed.as_ref().map(|(name, (proxy, _))| Named { name, proxy });
    let sayings = Sayings { gateway, class };
    let plane = |port| DataPlaneKey::Gateway { gateway: key.name.clone(), port };
    let parameters = sayings.together(&at, options, plane)?;
    Ok((parameters, trimmed.map(|(_, (_, limits))| limits).unwrap_or_default()))
}

/// The parameters of an IngressClass.
pub(crate) fn of_ingress_class(
    class: &IngressClass,
    proxies: &Proxies,
    options: &Options,
) -> Result<Parameters, Refusal> {
    let Some((at, name)) = named_by_ingress_class(class)? else { return Ok(Parameters::Unsaid) };
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
    let sayings = Sayings { gateway: None, class: Some(found.named()) };
    let name = class.metadata.name.as_deref().unwrap_or_default();
    let options = Options { layout: Layout::Shared, ..options.clone() };
    sayings.together(&at, &options, |_| DataPlaneKey::Ingress { class: name.into() })
}

/// Whose the hosts of an IngressClass are. Parameters that cannot be used say nothing.
pub(crate) fn host_ownership(class: &IngressClass, proxies: &Proxies) -> HostOwnership {
    let found =
        named_by_ingress_class(class).ok().flatten().and_then(|(at, name)| find(&at, name, proxies).ok());
    let settings = found.and_then(|found| found.proxy.spec.ingress.as_ref());
    settings.map(|settings| settings.host_ownership).unwrap_or_default()
}

/// The parameters that a GatewayClass names, as far as they can be judged without a Gateway.
pub(crate) fn of_gateway_class(
    class: &GatewayClass,
    proxies: &Proxies,
    options: &Options,
) -> Result<Parameters, Refusal> {
    let Some((at, name)) = named_by_class(class)? else { return Ok(Parameters::Unsaid) };
    let found = find(&at, name, proxies)?;
    let sayings = Sayings { gateway: None, class: Some(found.named()) };
    let nobody = ObjectName::new("", "");
    sayings.together(&at, options, |port| DataPlaneKey::Gateway { gateway: nobody.clone(), port })
}

/// A PingsixProxy that was found.
#[derive(Debug)]
struct Found<'a> {
    name: ObjectName,
    proxy: &'a PingsixProxy,
}

impl Found<'_> {
    const fn named(&self) -> Named<'_> {
        Named { name: &self.name, proxy: self.proxy }
    }
}

fn find<'p>(at: &FieldPath, name: ObjectName, proxies: &'p Proxies) -> Result<Found<'p>, Refusal> {
    let refuse = |message| Refusal::new(at.clone(), Reason::InvalidParameters, message);
    let kind = Kind::PingsixProxy;
    let Some(proxy) = proxies.get(&name) else {
        return Err(refuse(format!("There is no {kind} {name} that can be read.")));
    };
    match flaws(proxy).first() {
        None => Ok(Found { name, proxy }),
        Some(flaw) => Err(refuse(format!("{kind} {name} cannot be used: {flaw}"))),
    }
}

#[cfg(test)]
mod tests;
