//! Parameters of managed data planes.

use k8s_openapi::api::core::v1::{Affinity, ResourceRequirements};
use serde_json::Value;

use super::layers::Layers;
use crate::crd::Managed;
use crate::infrastructure::{
    DisruptionLimit, ManagedParameters, ProcessParameters, SchedulingParameters, SecretKey, ServiceParameters,
};
use crate::model::ObjectName;

/// Merges parameters that are valid by themselves.
pub(super) fn read(managed: &Layers<'_, Managed>) -> Result<ManagedParameters, String> {
    let sidecar = managed.part(|managed| managed.sidecar.as_ref());
    let budget = managed.first(|managed| managed.disruption_budget.as_ref());
    Ok(ManagedParameters {
        image: managed.first(|managed| managed.image.as_ref()),
        replicas: managed.first(|managed| managed.replicas.as_ref()),
        resources: resources(&managed.part(|managed| managed.resources.as_ref())),
        service: service(managed)?,
        scheduling: scheduling(managed),
        disruption_budget: budget.and_then(|budget| {
            let least = budget.min_available.map(DisruptionLimit::MinAvailable);
            least.or_else(|| budget.max_unavailable.map(DisruptionLimit::MaxUnavailable))
        }),
        service_account_name: managed.first(|managed| managed.service_account_name.as_ref()),
        pod_template_patch: managed.first(|managed| managed.pod_template_patch.as_ref()).map(|patch| patch.0),
        process: process(managed),
        sidecar_image: sidecar.first(|sidecar| sidecar.image.as_ref()),
        sidecar_resources: resources(&sidecar.part(|sidecar| sidecar.resources.as_ref())),
        sidecar_drain_seconds: sidecar.first(|sidecar| sidecar.drain_seconds.as_ref()),
        sidecar_https: sidecar.first(|sidecar| sidecar.https.as_ref()).unwrap_or_default(),
        infrastructure_keys: None,
    })
}

fn resources(resources: &Layers<'_, ResourceRequirements>) -> Option<ResourceRequirements> {
    let some = |map: std::collections::BTreeMap<_, _>| Some(map).filter(|map| !map.is_empty());
    (!resources.is_empty()).then(|| ResourceRequirements {
        claims: resources.first(|resources| resources.claims.as_ref()),
        limits: some(resources.map(|resources| resources.limits.as_ref())),
        requests: some(resources.map(|resources| resources.requests.as_ref())),
    })
}

/// Merges the parameters of the Service. Both may be valid and the result invalid.
fn service(managed: &Layers<'_, Managed>) -> Result<ServiceParameters, String> {
    let service = managed.part(|managed| managed.service.as_ref());
    let parameters = ServiceParameters {
        kind: service.first(|service| service.kind.as_ref()).unwrap_or_default(),
        annotations: service.map(|service| Some(&service.annotations)),
        load_balancer_class: service.first(|service| service.load_balancer_class.as_ref()),
        external_traffic_policy: service.first(|service| service.external_traffic_policy.as_ref()),
    };
    match super::refusals::service(
        parameters.kind,
        parameters.load_balancer_class.is_some(),
        parameters.external_traffic_policy.is_some(),
    ) {
        None => Ok(parameters),
        Some((field, message)) => {
            Err(format!("spec.managed.service.{field} of the Gateway and of its class conflict: {message}"))
        }
    }
}

fn scheduling(managed: &Layers<'_, Managed>) -> SchedulingParameters {
    let scheduling = managed.part(|managed| managed.scheduling.as_ref());
    let affinity = scheduling.first(|scheduling| scheduling.affinity.as_ref());
    SchedulingParameters {
        node_selector: scheduling.map(|scheduling| Some(&scheduling.node_selector)),
        tolerations: scheduling.list(|scheduling| &scheduling.tolerations),
        // An affinity that cannot be decoded is refused, and is ignored here.
        affinity: affinity
            .and_then(|affinity| serde_json::from_value::<Affinity>(Value::Object(affinity.0)).ok()),
        topology_spread_constraints: scheduling.list(|scheduling| &scheduling.topology_spread_constraints),
        priority_class_name: scheduling.first(|scheduling| scheduling.priority_class_name.as_ref()),
    }
}

fn process(managed: &Layers<'_, Managed>) -> ProcessParameters {
    let process = managed.part(|managed| managed.process.as_ref());
    let status = process.part(|process| process.status.as_ref());
    let keyring = process.first_with_name(|process| {
        process.data_encryption.as_ref().map(|encryption| &encryption.keyring_secret_ref)
    });
    ProcessParameters {
        threads: process.first(|process| process.threads.as_ref()),
        log_level: process.first(|process| process.log_level.as_ref()).unwrap_or_default(),
        stale_after_seconds: status.first(|status| status.stale_after_seconds.as_ref()),
        fail_readiness_when_stale: status
            .first(|status| status.fail_readiness_when_stale.as_ref())
            .unwrap_or_default(),
        metrics_port: process.first(|process| process.metrics.as_ref().map(|metrics| &metrics.port)),
        keyring: keyring.map(|(proxy, keyring)| SecretKey {
            secret: ObjectName::new(proxy.namespace.clone(), keyring.name.as_str()),
            key: keyring.key.clone(),
        }),
    }
}
