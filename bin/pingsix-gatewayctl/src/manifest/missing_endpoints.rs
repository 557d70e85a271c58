//! Services whose endpoints get requests, and that have none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pingsix_translate::crd::AnnotationDialect;
use pingsix_translate::snapshot::{
    Ingress, Service, backends_of_ingress, class_of_ingress, default_ingress_classes, proxy_of_ingress_class,
    service_of_slice,
};
use pingsix_translate::{Kind, ObjectName, read_annotations};

use super::{Manifests, key};
use crate::finding::{Finding, Level, reason};

/// Names each Service without an EndpointSlice whose endpoints would get requests, once.
pub(super) fn report(manifests: &mut Manifests) {
    let with_slices: BTreeSet<ObjectName> =
        manifests.objects.endpoint_slices().filter_map(|(_, slice)| service_of_slice(slice)).collect();
    let uses = Uses::of(manifests);
    let missing = uses.needed().into_iter().filter(|(name, _)| {
        // A Service that is only another name has no endpoints in a cluster either.
        let is_service = uses.services.get(name).is_some_and(|service| !service.is_external_name);
        is_service && !with_slices.contains(name)
    });
    let missing: Vec<(ObjectName, Substitute)> = missing.collect();
    let answer_503 = missing.iter().all(|(_, substitute)| *substitute == Substitute::NotAlways);
    if let ([(first, _), _, ..], true) = (missing.as_slice(), with_slices.is_empty() && answer_503) {
        let message = format!(
            "The input has no EndpointSlice, so requests to its {} Services get 503, and connections are refused; \
             --endpoints supplies endpoints, for example {first}=IP:PORT.",
            missing.len()
        );
        manifests.findings.push(Finding {
            place: None,
            object: String::new(),
            field: String::new(),
            severity: Level::Warning,
            reason: reason::NO_ENDPOINT_SLICES.to_owned(),
            message,
        });
        return;
    }
    for (name, substitute) in missing {
        let key = key(Kind::Service, &name);
        let consequence = match substitute {
            Substitute::Always => "the default backends of Ingresses answer in its place",
            Substitute::NotAlways => "requests to this Service get 503, and connections are refused",
        };
        manifests.findings.push(Finding {
            place: manifests.location(&key).cloned(),
            object: key.to_string(),
            field: String::new(),
            severity: Level::Warning,
            reason: reason::NO_ENDPOINT_SLICES.to_owned(),
            message: format!(
                "No EndpointSlice is given, so {consequence}; --endpoints {name}=IP:PORT supplies endpoints."
            ),
        });
    }
}

/// Whether another Service answers for one without endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Substitute {
    /// All Ingresses that send requests to the Service have a `default-backend`.
    Always,
    NotAlways,
}

/// The objects that use Services.
struct Uses<'m> {
    manifests: &'m Manifests,
    services: BTreeMap<&'m ObjectName, &'m Service>,
    default_class: Option<Arc<str>>,
}

impl<'m> Uses<'m> {
    fn of(manifests: &'m Manifests) -> Self {
        let services = manifests.objects.services().map(|(name, service)| (name, &**service)).collect();
        let classes = manifests.objects.ingress_classes().map(|(_, class)| &**class);
        let default_class = default_ingress_classes(classes).into_iter().next();
        Self { manifests, services, default_class }
    }

    /// The Services to whose endpoints routes and Ingresses send something.
    fn needed(&self) -> BTreeMap<ObjectName, Substitute> {
        let routes = self.manifests.objects.routes();
        let mut needed: BTreeMap<ObjectName, Substitute> = routes
            .flat_map(|route| route.backends())
            .map(|service| (service, Substitute::NotAlways))
            .collect();
        for (name, ingress) in self.manifests.objects.ingresses() {
            for (backend, substitute) in self.needed_by_ingress(&name.namespace, ingress) {
                let entry = needed.entry(backend).or_insert(substitute);
                if substitute == Substitute::NotAlways {
                    *entry = substitute;
                }
            }
        }
        needed
    }

    fn needed_by_ingress(&self, namespace: &Arc<str>, ingress: &Ingress) -> Vec<(ObjectName, Substitute)> {
        let annotations =
            read_annotations(self.dialects_of(ingress), namespace, ingress.metadata.annotations.as_ref());
        let of_namespace = |service: &str| ObjectName::new(namespace.clone(), service);
        let default = annotations.default_backend.as_deref().map(of_namespace);
        let default = default.filter(|default| self.services.contains_key(default));
        let uses = backends_of_ingress(ingress).map(of_namespace).map(|backend| match &default {
            Some(default) if *default != backend => (backend, Substitute::Always),
            Some(_) | None => (backend, Substitute::NotAlways),
        });
        let of_default = default.iter().map(|default| (default.clone(), Substitute::NotAlways));
        let by_cluster_ip = |backend: &ObjectName| {
            annotations.by_cluster_ip
                && self.services.get(backend).is_some_and(|service| service.cluster_ip.is_some())
        };
        uses.chain(of_default).filter(|(backend, _)| !by_cluster_ip(backend)).collect()
    }

    /// The dialects of the annotations that the class of an Ingress reads.
    fn dialects_of(&self, ingress: &Ingress) -> &'m [AnnotationDialect] {
        let objects = &self.manifests.objects;
        let written = class_of_ingress(ingress).or(self.default_class.as_deref());
        let class = objects.ingress_classes().find(|(name, _)| Some(&*name.name) == written);
        let proxy = class.and_then(|(_, class)| proxy_of_ingress_class(class));
        let proxy = proxy.and_then(|proxy| objects.proxies().find(|(name, _)| **name == proxy));
        let settings = proxy.and_then(|(_, proxy)| proxy.spec.ingress.as_ref());
        settings.map(|settings| settings.annotations.as_slice()).unwrap_or_default()
    }
}
