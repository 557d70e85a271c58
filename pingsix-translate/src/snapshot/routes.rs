//! Routes, with the fields that translation reads.

use std::fmt::{self, Debug};
use std::marker::PhantomData;
use std::sync::Arc;

use kube::Resource;
use kube::core::ObjectMeta;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};

use super::metadata::{Identified, Metadata, OfKind, share_namespace};
use super::pool::Pool;
use crate::model::{ObjectName, ParentRef};

/// A route without its status, which is no input of translation. Reads and writes the shape of the API.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "ApiObject<S>", bound(deserialize = "S: RouteSpec"))]
pub struct RouteObject<S> {
    /// `metadata`
    pub metadata: Metadata,
    /// `spec.parentRefs`, in order. Thousands of routes have the same ones.
    pub parent_refs: Arc<[ParentRef]>,
    /// The Services that the spec names; sorted. They are needed far more often than the rest of the spec.
    services: Box<[ObjectName]>,
    /// The HTTPRouteFilters that the spec names; sorted.
    filters: Box<[ObjectName]>,
    spec: Packed<S>,
}

impl<S: RouteSpec> RouteObject<S> {
    /// `spec` without its `parentRefs`. Each call decodes it: the specs of most routes in a cluster are rarely needed.
    pub fn spec(&self) -> S {
        self.spec.unpack()
    }

    /// The Services that backendRefs and mirrors name, existing or not; sorted, without repetitions.
    pub fn services(&self) -> &[ObjectName] {
        &self.services
    }

    /// The HTTPRouteFilters that filters of rules and backendRefs name, existing or not; sorted, without repetitions.
    pub fn filters(&self) -> &[ObjectName] {
        &self.filters
    }
}

/// The spec of a route of Gateway API.
pub trait RouteSpec: Clone + Debug + PartialEq + Serialize + DeserializeOwned {
    /// The type of the route with all fields of the API.
    type Wire: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Into<RouteObject<Self>>;

    /// Removes the parentRefs and returns them.
    fn take_parent_refs(&mut self) -> Arc<[ParentRef]>;

    /// The spec with parentRefs.
    #[must_use]
    fn with_parent_refs(self, parent_refs: &[ParentRef]) -> Self;

    /// The Services that backendRefs and mirrors name in a route of `namespace`, existing or not; sorted, without
    /// repetitions.
    fn services(&self, namespace: &Arc<str>) -> Box<[ObjectName]>;

    /// The HTTPRouteFilters that filters name in a route of `namespace`, existing or not; sorted, without repetitions.
    fn filters(&self, namespace: &Arc<str>) -> Box<[ObjectName]>;
}

/// The spec of a route as JSON, which takes a third of the memory of the generated type.
#[derive(Clone, PartialEq)]
struct Packed<S> {
    json: Box<str>,
    spec: PhantomData<fn() -> S>,
}

impl<S: RouteSpec> Packed<S> {
    fn new(spec: &S) -> Self {
        let json = serde_json::to_string(spec).expect("a spec has nothing that JSON has not");
        Self { json: json.into(), spec: PhantomData }
    }

    fn unpack(&self) -> S {
        serde_json::from_str(&self.json)
            .expect("it was written by the generated type, which reads what it writes")
    }
}

impl<S> fmt::Debug for Packed<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.json)
    }
}

/// The JSON of the API: metadata and spec.
#[derive(Serialize, Deserialize)]
pub(super) struct ApiObject<S> {
    pub(super) metadata: ObjectMeta,
    pub(super) spec: S,
}

impl<S: RouteSpec> From<ApiObject<S>> for RouteObject<S> {
    fn from(ApiObject { metadata, mut spec }: ApiObject<S>) -> Self {
        let (metadata, parent_refs) = (Metadata::from(&metadata), spec.take_parent_refs());
        let services = spec.services(&metadata.name.namespace);
        let filters = spec.filters(&metadata.name.namespace);
        Self { metadata, parent_refs, services, filters, spec: Packed::new(&spec) }
    }
}

impl<S: RouteSpec> Serialize for RouteObject<S> {
    fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        let spec = self.spec().with_parent_refs(&self.parent_refs);
        ApiObject { metadata: ObjectMeta::from(&self.metadata), spec }.serialize(serializer)
    }
}

impl<S: RouteSpec> Identified for RouteObject<S>
where
    Self: OfKind,
{
    type Wire = S::Wire;

    fn name(&self) -> ObjectName {
        self.metadata.name.clone()
    }

    fn generation(&self) -> i64 {
        self.metadata.generation
    }

    fn share(&mut self, pool: &mut Pool) {
        share_namespace(&mut self.metadata.name, pool);
        pool.parent_refs(&mut self.parent_refs);
        self.services.iter_mut().for_each(|service| pool.name(service));
        self.filters.iter_mut().for_each(|filter| pool.name(filter));
    }

    fn has_equal_content(&self, other: &Self) -> bool {
        self == other
    }

    fn text(&self) -> String {
        format!("{self:?}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{HttpRoute, wire};
    use super::*;

    #[test]
    fn pooled_parts_equal_the_original() {
        let written = json!({
            "metadata": {
                "name": "cart", "namespace": "shop", "generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {
                "parentRefs": [
                    {"name": "public", "namespace": "infra", "sectionName": "web", "port": 80},
                    {"group": "gateway.networking.k8s.io", "kind": "ListenerSet", "name": "more"},
                ],
                "hostnames": ["cart.example"], "rules": [{"backendRefs": [{"name": "cart", "port": 80}]}],
            },
        });
        let mut route: HttpRoute = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(&route).unwrap(), written);
        assert_eq!(
            HttpRoute::from(serde_json::from_value::<wire::HttpRoute>(written.clone()).unwrap()),
            route
        );

        let (mut pool, mut other): (_, HttpRoute) =
            (Pool::default(), serde_json::from_value(written).unwrap());
        route.share(&mut pool);
        other.share(&mut pool);
        assert!(Arc::ptr_eq(&route.parent_refs, &other.parent_refs));
        assert!(Arc::ptr_eq(&route.metadata.name.namespace, &other.metadata.name.namespace));
    }
}
