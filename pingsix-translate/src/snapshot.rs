//! Stage 0: the closed set of objects one Gateway may see.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use gateway_api::experimental::httproutes::HttpRoute;
pub use gateway_api::gatewayclasses::GatewayClass;
pub use gateway_api::gateways::Gateway;
pub use gateway_api::referencegrants::ReferenceGrant;
pub(crate) use k8s_openapi::api::core::v1::ServicePort;
pub use k8s_openapi::api::core::v1::{Namespace, Secret, Service};
pub use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::core::ObjectMeta;

use crate::object::{Kind, ObjectKey, ObjectName};
use crate::route::parent_refs;

/// The label that names the Service of an EndpointSlice.
const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";

/// Everything translation may look at for one Gateway. Cut by [`Objects::snapshot`], or built by hand.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The Gateway.
    pub gateway: Arc<Gateway>,
    /// Routes with a parentRef to the Gateway, by name.
    pub http_routes: BTreeMap<ObjectName, Arc<HttpRoute>>,
    /// Services the routes refer to.
    pub services: BTreeMap<ObjectName, Arc<Service>>,
    /// EndpointSlices by the Service they belong to, sorted by name.
    pub endpoint_slices: BTreeMap<ObjectName, Vec<Arc<EndpointSlice>>>,
    /// ReferenceGrants in namespaces that are referred to.
    pub reference_grants: BTreeMap<ObjectName, Arc<ReferenceGrant>>,
    /// Secrets the listeners refer to.
    pub secrets: BTreeMap<ObjectName, Arc<Secret>>,
    /// Namespaces of the routes.
    pub namespaces: BTreeMap<Arc<str>, Arc<Namespace>>,
}

/// One object of a kind translation reads.
#[derive(Clone, Debug)]
pub enum Object {
    /// A GatewayClass.
    GatewayClass(Arc<GatewayClass>),
    /// A Gateway.
    Gateway(Arc<Gateway>),
    /// An HTTPRoute.
    HttpRoute(Arc<HttpRoute>),
    /// A ReferenceGrant.
    ReferenceGrant(Arc<ReferenceGrant>),
    /// A Service.
    Service(Arc<Service>),
    /// An EndpointSlice.
    EndpointSlice(Arc<EndpointSlice>),
    /// A Secret.
    Secret(Arc<Secret>),
    /// A Namespace.
    Namespace(Arc<Namespace>),
}

impl Object {
    /// What the object is.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::GatewayClass(_) => Kind::GatewayClass,
            Self::Gateway(_) => Kind::Gateway,
            Self::HttpRoute(_) => Kind::HttpRoute,
            Self::ReferenceGrant(_) => Kind::ReferenceGrant,
            Self::Service(_) => Kind::Service,
            Self::EndpointSlice(_) => Kind::EndpointSlice,
            Self::Secret(_) => Kind::Secret,
            Self::Namespace(_) => Kind::Namespace,
        }
    }

    /// Its metadata.
    pub fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::GatewayClass(object) => &object.metadata,
            Self::Gateway(object) => &object.metadata,
            Self::HttpRoute(object) => &object.metadata,
            Self::ReferenceGrant(object) => &object.metadata,
            Self::Service(object) => &object.metadata,
            Self::EndpointSlice(object) => &object.metadata,
            Self::Secret(object) => &object.metadata,
            Self::Namespace(object) => &object.metadata,
        }
    }

    /// Its identity.
    pub fn key(&self) -> ObjectKey {
        key_of(self.kind(), self.metadata())
    }
}

/// The identity of an object with this metadata.
pub(crate) fn key_of(kind: Kind, metadata: &ObjectMeta) -> ObjectKey {
    let namespace = if kind.is_namespaced() { metadata.namespace.as_deref().unwrap_or_default() } else { "" };
    ObjectKey::new(kind, namespace, metadata.name.as_deref().unwrap_or_default())
}

/// A plain collection of objects, from which snapshots are cut. Tools without a cluster use it; a controller
/// keeps indexed stores instead and builds [`Snapshot`] from those.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    gateway_classes: BTreeMap<Arc<str>, Arc<GatewayClass>>,
    gateways: BTreeMap<ObjectName, Arc<Gateway>>,
    http_routes: BTreeMap<ObjectName, Arc<HttpRoute>>,
    reference_grants: BTreeMap<ObjectName, Arc<ReferenceGrant>>,
    services: BTreeMap<ObjectName, Arc<Service>>,
    endpoint_slices: BTreeMap<ObjectName, Arc<EndpointSlice>>,
    secrets: BTreeMap<ObjectName, Arc<Secret>>,
    namespaces: BTreeMap<Arc<str>, Arc<Namespace>>,
}

impl Objects {
    /// Adds an object, or replaces the one with the same key; returns whether one was replaced.
    pub fn insert(&mut self, object: Object) -> bool {
        let ObjectKey { name, .. } = object.key();
        match object {
            Object::GatewayClass(object) => self.gateway_classes.insert(name.name, object).is_some(),
            Object::Gateway(object) => self.gateways.insert(name, object).is_some(),
            Object::HttpRoute(object) => self.http_routes.insert(name, object).is_some(),
            Object::ReferenceGrant(object) => self.reference_grants.insert(name, object).is_some(),
            Object::Service(object) => self.services.insert(name, object).is_some(),
            Object::EndpointSlice(object) => self.endpoint_slices.insert(name, object).is_some(),
            Object::Secret(object) => self.secrets.insert(name, object).is_some(),
            Object::Namespace(object) => self.namespaces.insert(name.name, object).is_some(),
        }
    }

    /// Whether an object with this key is there.
    pub fn contains(&self, key: &ObjectKey) -> bool {
        match key.kind {
            Kind::GatewayClass => self.gateway_classes.contains_key(&key.name.name),
            Kind::Gateway => self.gateways.contains_key(&key.name),
            Kind::HttpRoute => self.http_routes.contains_key(&key.name),
            Kind::ReferenceGrant => self.reference_grants.contains_key(&key.name),
            Kind::Service => self.services.contains_key(&key.name),
            Kind::EndpointSlice => self.endpoint_slices.contains_key(&key.name),
            Kind::Secret => self.secrets.contains_key(&key.name),
            Kind::Namespace => self.namespaces.contains_key(&key.name.name),
        }
    }

    /// All GatewayClasses, by name.
    pub fn gateway_classes(&self) -> impl Iterator<Item = &Arc<GatewayClass>> {
        self.gateway_classes.values()
    }

    /// All Gateways, by name.
    pub fn gateways(&self) -> impl Iterator<Item = (&ObjectName, &Arc<Gateway>)> {
        self.gateways.iter()
    }

    /// All HTTPRoutes, by name.
    pub fn http_routes(&self) -> impl Iterator<Item = (&ObjectName, &Arc<HttpRoute>)> {
        self.http_routes.iter()
    }

    /// All Services, by name.
    pub fn services(&self) -> impl Iterator<Item = (&ObjectName, &Arc<Service>)> {
        self.services.iter()
    }

    /// The Service an EndpointSlice belongs to, for every slice.
    pub fn endpoint_slices(&self) -> impl Iterator<Item = (&ObjectName, &Arc<EndpointSlice>)> {
        self.endpoint_slices.iter()
    }

    /// Cuts what one Gateway may see; `None` when there is no such Gateway.
    pub fn snapshot(&self, gateway: &ObjectName) -> Option<Snapshot> {
        let object = self.gateways.get(gateway)?;
        let http_routes: BTreeMap<_, _> = self
            .http_routes
            .iter()
            .filter(|(name, route)| {
                parent_refs(route).any(|parent| parent.names_gateway(&name.namespace, gateway))
            })
            .map(|(name, route)| (name.clone(), route.clone()))
            .collect();

        let mut service_names = BTreeSet::new();
        let mut namespaces = BTreeSet::from([gateway.namespace.clone()]);
        for (name, route) in &http_routes {
            namespaces.insert(name.namespace.clone());
            for service in referenced_services(route, &name.namespace) {
                service_names.insert(service);
            }
        }
        let mut endpoint_slices: BTreeMap<ObjectName, Vec<Arc<EndpointSlice>>> = BTreeMap::new();
        for slice in self.endpoint_slices.values() {
            if let Some(service) = service_of_slice(slice)
                && service_names.contains(&service)
            {
                endpoint_slices.entry(service).or_default().push(slice.clone());
            }
        }
        let secret_names = referenced_secrets(object, &gateway.namespace);
        let referred: BTreeSet<&Arc<str>> =
            service_names.iter().chain(&secret_names).map(|name| &name.namespace).collect();
        Some(Snapshot {
            gateway: object.clone(),
            services: pick(&self.services, &service_names),
            secrets: pick(&self.secrets, &secret_names),
            http_routes,
            endpoint_slices,
            reference_grants: self
                .reference_grants
                .iter()
                .filter(|(name, _)| referred.contains(&name.namespace))
                .map(|(name, grant)| (name.clone(), grant.clone()))
                .collect(),
            namespaces: self
                .namespaces
                .iter()
                .filter(|(name, _)| namespaces.contains(*name))
                .map(|(name, namespace)| (name.clone(), namespace.clone()))
                .collect(),
        })
    }
}

fn pick<V: Clone>(from: &BTreeMap<ObjectName, V>, names: &BTreeSet<ObjectName>) -> BTreeMap<ObjectName, V> {
    names.iter().filter_map(|name| from.get(name).map(|value| (name.clone(), value.clone()))).collect()
}

/// The Services a route's backendRefs name, whether they exist or not.
pub fn referenced_services<'a>(
    route: &'a HttpRoute,
    namespace: &'a Arc<str>,
) -> impl Iterator<Item = ObjectName> + 'a {
    route.spec.rules.iter().flatten().flat_map(|rule| rule.backend_refs.iter().flatten()).filter_map(
        move |backend| {
            let is_service = backend.group.as_deref().unwrap_or_default().is_empty()
                && backend.kind.as_deref().is_none_or(|kind| kind == Kind::Service.as_str());
            let namespace = backend.namespace.as_deref().map_or_else(|| namespace.clone(), Arc::<str>::from);
            is_service.then(|| ObjectName::new(namespace, backend.name.as_str()))
        },
    )
}

/// The Secrets a Gateway's listeners name, whether they exist or not.
fn referenced_secrets(gateway: &Gateway, namespace: &str) -> BTreeSet<ObjectName> {
    gateway
        .spec
        .listeners
        .iter()
        .filter_map(|listener| listener.tls.as_ref())
        .flat_map(|tls| tls.certificate_refs.iter().flatten())
        .map(|secret| ObjectName::new(secret.namespace.as_deref().unwrap_or(namespace), secret.name.as_str()))
        .collect()
}

/// The Service an EndpointSlice belongs to.
pub fn service_of_slice(slice: &EndpointSlice) -> Option<ObjectName> {
    let service = slice.metadata.labels.as_ref()?.get(SERVICE_NAME_LABEL)?;
    Some(ObjectName::new(slice.metadata.namespace.as_deref().unwrap_or_default(), service.as_str()))
}
