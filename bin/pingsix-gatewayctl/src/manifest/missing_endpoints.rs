//! Services whose endpoints get requests, and that have none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pingsix_translate::crd::AnnotationDialect;
use pingsix_translate::snapshot::{
    AnyRoute, Ingress, Object, Objects, Service, backends_of_ingress, class_of_ingress,
    default_ingress_classes, proxy_of_ingress_class, service_of_slice,
};
use pingsix_translate::{Kind, ObjectName, read_annotations};

use super::{Manifests, key};
use crate::finding::{Finding, Level, reason};

/// A finding for each Service without an EndpointSlice whose endpoints would get requests.
pub(super) fn find(manifests: &Manifests) -> Vec<Finding> {
    let uses = Uses::of(&manifests.objects);
    let missing: Vec<(ObjectName, Substitute)> = uses.without_endpoints().into_iter().collect();
    let answer_503 = missing.iter().all(|(_, substitute)| *substitute == Substitute::NotAlways);
    if let ([(first, _), _, ..], true) = (missing.as_slice(), uses.with_slices.is_empty() && answer_503) {
        let message = format!(
            "The input has no EndpointSlice, so requests to its {} Services get 503, and connections are refused; \
             --endpoints supplies endpoints, for example {first}=IP:PORT.",
            missing.len()
        );
        return vec![Finding::new(Level::Warning, reason::NO_ENDPOINT_SLICES, message)];
    }
    let findings = missing.into_iter().map(|(name, substitute)| {
        let key = key(Kind::Service, &name);
        let consequence = match substitute {
            Substitute::Always => "the default backends of Ingresses answer in its place",
            Substitute::NotAlways => "requests to this Service get 503, and connections are refused",
        };
        let message = format!(
            "No EndpointSlice is given, so {consequence}; --endpoints {name}=IP:PORT supplies endpoints."
        );
        Finding::new(Level::Warning, reason::NO_ENDPOINT_SLICES, message)
            .about(&key, manifests.location(&key))
    });
    findings.collect()
}

/// Whether another Service answers for one without endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Substitute {
    /// All Ingresses that send requests to the Service have a `default-backend`.
    Always,
    NotAlways,
}

/// The objects that use Services.
struct Uses<'o> {
    objects: &'o Objects,
    with_slices: BTreeSet<ObjectName>,
    /// The Services that have no EndpointSlice and should.
    without_slices: BTreeSet<&'o ObjectName>,
    default_class: Option<Arc<str>>,
}

impl<'o> Uses<'o> {
    fn of(objects: &'o Objects) -> Self {
        let with_slices: BTreeSet<ObjectName> =
            objects.endpoint_slices().filter_map(|(_, slice)| service_of_slice(slice)).collect();
        // A Service that is only another name has no endpoints in a cluster either.
        let services = objects.services().filter(|(_, service)| !service.is_external_name);
        let without_slices =
            services.map(|(name, _)| name).filter(|name| !with_slices.contains(*name)).collect();
        let default_class =
            default_ingress_classes(objects.ingress_classes().map(|(_, class)| &**class)).into_iter().next();
        Self { objects, with_slices, without_slices, default_class }
    }

    /// The Services without EndpointSlices to whose endpoints routes and Ingresses send something.
    fn without_endpoints(&self) -> BTreeMap<ObjectName, Substitute> {
        let mut missing = BTreeMap::new();
        if self.without_slices.is_empty() {
            return missing;
        }
        // The spec of a route takes time to decode.
        let names_one =
            |route: &AnyRoute| route.services().iter().any(|name| self.without_slices.contains(name));
        let backends = self.objects.routes().filter(names_one).flat_map(|route| route.backends());
        missing.extend(backends.map(|backend| (backend, Substitute::NotAlways)));
        for (name, ingress) in self.objects.ingresses() {
            for (backend, substitute) in self.needed_by_ingress(&name.namespace, ingress) {
                let entry = missing.entry(backend).or_insert(substitute);
                if substitute == Substitute::NotAlways {
                    *entry = substitute;
                }
            }
        }
        missing.retain(|name, _| self.without_slices.contains(name));
        missing
    }

    fn service(&self, name: &ObjectName) -> Option<Arc<Service>> {
        match self.objects.get(&key(Kind::Service, name)) {
            Some(Object::Service(service)) => Some(service),
            Some(_) | None => None,
        }
    }

    fn needed_by_ingress(&self, namespace: &Arc<str>, ingress: &Ingress) -> Vec<(ObjectName, Substitute)> {
        let annotations =
            read_annotations(self.dialects_of(ingress), namespace, ingress.metadata.annotations.as_ref());
        let of_namespace = |service: &str| ObjectName::new(namespace.clone(), service);
        let default = annotations.default_backend.as_deref().map(of_namespace);
        let default = default.filter(|default| self.service(default).is_some());
        let uses = backends_of_ingress(ingress).map(of_namespace).map(|backend| match &default {
            Some(default) if *default != backend => (backend, Substitute::Always),
            Some(_) | None => (backend, Substitute::NotAlways),
        });
        let of_default = default.iter().map(|default| (default.clone(), Substitute::NotAlways));
        let by_cluster_ip = |backend: &ObjectName| {
            annotations.by_cluster_ip
                && self.service(backend).is_some_and(|service| service.cluster_ip.is_some())
        };
        uses.chain(of_default).filter(|(backend, _)| !by_cluster_ip(backend)).collect()
    }

    /// The dialects of the annotations that the class of an Ingress reads.
    fn dialects_of(&self, ingress: &Ingress) -> &'o [AnnotationDialect] {
        let objects = self.objects;
        let written = class_of_ingress(ingress).or(self.default_class.as_deref());
        let class = objects.ingress_classes().find(|(name, _)| Some(&*name.name) == written);
        let proxy = class.and_then(|(_, class)| proxy_of_ingress_class(class));
        let proxy = proxy.and_then(|proxy| objects.proxies().find(|(name, _)| **name == proxy));
        proxy.map(|(_, proxy)| proxy.spec.annotation_dialects()).unwrap_or_default()
    }
}
