//! Services whose endpoints get requests, and whose EndpointSlices the input lacks.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_gateway_api::pipeline;
use pingsix_translate::ObjectName;
use pingsix_translate::snapshot::service_of_slice;
use pingsix_translate::status::{Reason, SHARE_OF_DEFAULT};

use super::Manifests;
use crate::finding::{Finding, Level, reason};

/// A finding for each Service that has no endpoints by the findings of translation, and no EndpointSlice.
pub(crate) fn find(manifests: &Manifests, of_translation: &[pipeline::Finding]) -> Vec<Finding> {
    let slices = manifests.objects.endpoint_slices();
    let with_slices: BTreeSet<ObjectName> = slices.filter_map(|(_, slice)| service_of_slice(slice)).collect();
    let without_endpoints = of_translation.iter().filter(|finding| {
        finding.reason == Reason::NoEndpoints.as_str() && !with_slices.contains(&finding.object.name)
    });
    let mut missing = BTreeMap::new();
    for pipeline::Finding { object, message, .. } in without_endpoints {
        *missing.entry(object).or_insert(true) &= message.contains(SHARE_OF_DEFAULT);
    }
    if missing.len() > 1 && with_slices.is_empty() && missing.values().all(|has_default| !has_default) {
        let first = missing.keys().next().map(|service| service.name.to_string()).unwrap_or_default();
        let message = format!(
            "The input has no EndpointSlice, so requests to its {} Services get 503, and connections are refused; \
             --endpoints supplies endpoints, for example {first}=IP:PORT.",
            missing.len()
        );
        return vec![Finding::new(Level::Warning, reason::NO_ENDPOINT_SLICES, message)];
    }
    let findings = missing.into_iter().map(|(service, has_default)| {
        let consequence = if has_default {
            "the default backends of Ingresses answer in its place"
        } else {
            "requests to this Service get 503, and connections are refused"
        };
        let message = format!(
            "No EndpointSlice is given, so {consequence}; --endpoints {}=IP:PORT supplies endpoints.",
            service.name
        );
        Finding::new(Level::Warning, reason::NO_ENDPOINT_SLICES, message)
            .about(service, manifests.location(service))
    });
    findings.collect()
}
