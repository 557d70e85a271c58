//! The Deployment, its Pods, and how many of them may be taken away.

use std::collections::BTreeMap;

use pingsix_translate::infrastructure::{DisruptionLimit, PortProtocol};
use pingsix_translate::pingsix::process::GRACE_PERIOD_SECONDS;
use serde_json::{Value, json};

use super::container::{STOP_DELAY_SECONDS, mount, own_mounts, pause, security, status_probes};
use super::process::{CERTIFICATE, FOLDER};
use super::{CONFIGURATION, DATA_PLANE, Plan, Process, keys, merge, sidecar};

/// The remaining time for the end of a Pod, in seconds.
const MARGIN_SECONDS: u32 = 5;

/// The user and the group of all processes. Kubernetes cannot distinguish the named user of an image from root.
const USER_ID: u32 = 65_532;

/// The Deployment without the common fields.
///
/// `digest` is the digest of its configuration, and `keyring` the number of its keyring.
pub(super) fn deployment(plan: &Plan<'_>, digest: &str, keyring: u64) -> Value {
    let mut spec = json!({
        "revisionHistoryLimit": 3,
        "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 0, "maxSurge": 1 } },
        "selector": { "matchLabels": plan.selector() },
        "template": template(plan, digest, keyring),
    });
    // Without a number, an autoscaler or an administrator owns the scale. An earlier number is handed over.
    if let Some(replicas) = plan.infrastructure.parameters.replicas {
        spec["replicas"] = json!(replicas);
    }
    json!({ "spec": spec })
}

/// The `PodDisruptionBudget` without the common fields.
pub(super) fn budget(plan: &Plan<'_>) -> Value {
    let (field, limit) = match &plan.infrastructure.parameters.disruption_budget {
        None => ("maxUnavailable", json!(1)),
        Some(DisruptionLimit::MaxUnavailable(limit)) => ("maxUnavailable", json!(limit)),
        Some(DisruptionLimit::MinAvailable(limit)) => ("minAvailable", json!(limit)),
    };
    json!({ "spec": {
        field: limit,
        "selector": { "matchLabels": plan.selector() },
        // One that is not ready serves nothing, and must not keep a node from being drained.
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    } })
}

/// The template with the patch. The patch changes the metadata of the Gateway, but not the labels by which the Deployment and
/// the Service select Pods.
fn template(plan: &Plan<'_>, digest: &str, keyring: u64) -> Value {
    let mut labels = plan.own_labels();
    labels.insert(DATA_PLANE.to_owned(), "true".to_owned());
    let mut annotations = BTreeMap::from([(CONFIGURATION.to_owned(), digest.to_owned())]);
    if keyring > 0 {
        annotations.insert(keys::EDITION.to_owned(), keyring.to_string());
    }
    let ours = json!({ "metadata": { "labels": labels, "annotations": annotations } });
    let mut template = json!({
        "metadata": { "labels": plan.infrastructure.labels, "annotations": plan.annotations() },
        "spec": pod(plan),
    });
    if let Some(patch) = &plan.infrastructure.parameters.pod_template_patch {
        merge::merge(&mut template, &Value::Object(patch.clone()));
    }
    merge::merge(&mut template, &ours);
    template
}

fn pod(plan: &Plan<'_>) -> Value {
    let parameters = &plan.infrastructure.parameters;
    let scheduling = &parameters.scheduling;
    let account = parameters.service_account_name.as_ref().unwrap_or(&plan.names.main);
    let mut containers: Vec<Value> = plan.processes.iter().map(|process| container(plan, process)).collect();
    let mut end = STOP_DELAY_SECONDS + 2 * GRACE_PERIOD_SECONDS + MARGIN_SECONDS;
    if plan.streams.is_some() {
        // The sidecar ends after the others.
        end += sidecar::drain_seconds(plan);
    }
    let mut before = vec![sidecar::container(plan)];
    if containers.is_empty() {
        containers.append(&mut before);
    }
    let mut pod = json!({
        "serviceAccountName": account,
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": end,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": USER_ID,
            "runAsGroup": USER_ID,
            "fsGroup": USER_ID,
            "seccompProfile": { "type": "RuntimeDefault" },
        },
        "initContainers": before,
        "containers": containers,
        "volumes": volumes(plan),
        "topologySpreadConstraints": spread(plan),
    });
    if !scheduling.node_selector.is_empty() {
        pod["nodeSelector"] = json!(scheduling.node_selector);
    }
    if !scheduling.tolerations.is_empty() {
        pod["tolerations"] = json!(scheduling.tolerations);
    }
    if let Some(affinity) = &scheduling.affinity {
        pod["affinity"] = json!(affinity);
    }
    if let Some(class) = &scheduling.priority_class_name {
        pod["priorityClassName"] = json!(class);
    }
    pod
}

/// Over nodes, unless parameters have another constraint.
fn spread(plan: &Plan<'_>) -> Value {
    let asked = &plan.infrastructure.parameters.scheduling.topology_spread_constraints;
    if asked.is_empty() {
        return json!([{
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": { "matchLabels": plan.selector() },
        }]);
    }
    let constraints = asked.iter().map(|constraint| {
        let mut constraint = json!(constraint);
        if constraint.get("labelSelector").is_none() {
            constraint["labelSelector"] = json!({ "matchLabels": plan.selector() });
        }
        constraint
    });
    constraints.collect()
}

/// The container of one process.
fn container(plan: &Plan<'_>, process: &Process) -> Value {
    let Process { listener, ports, .. } = process;
    let parameters = &plan.infrastructure.parameters;
    let port = |name: &str, port: u16| json!({ "name": format!("{name}-{listener}"), "containerPort": port, "protocol": "TCP" });
    let mut open: Vec<Value> = ports.traffic.map(|traffic| port("port", traffic)).into_iter().collect();
    open.push(port("status", ports.status));
    open.extend(ports.metrics.map(|metrics| port("metrics", metrics)));
    let [live, ready] = status_probes(&json!(format!("status-{listener}")));
    let resources = parameters.resources.as_ref().map_or_else(
        || json!({ "requests": { "cpu": "250m", "memory": "128Mi" }, "limits": { "memory": "1Gi" } }),
        |resources| json!(resources),
    );
    json!({
        "name": process.name(),
        "image": parameters.image.as_ref().unwrap_or(&plan.installation.image),
        // The image has no entry point.
        "command": ["pingsix", "-c", format!("{FOLDER}/{listener}/config.yaml")],
        "env": [{ "name": "RUST_LOG", "value": parameters.process.log_level.as_str() }],
        "ports": open,
        "startupProbe": { "httpGet": live["httpGet"], "periodSeconds": 1, "failureThreshold": 60 },
        "livenessProbe": live,
        // Its listeners are open before it has a configuration, and answer 404 until then.
        "readinessProbe": ready,
        "lifecycle": pause(),
        "resources": resources,
        "securityContext": security(),
        "volumeMounts": mounts(plan, process),
    })
}

fn config_volume(process: &Process) -> String {
    format!("config-{}", process.listener)
}

/// The volume mounts of a container: its own configuration only.
fn mounts(plan: &Plan<'_>, process: &Process) -> Value {
    let mut mounts = own_mounts(plan, &config_volume(process), &process.listener.to_string());
    if process.protocol == PortProtocol::Tls {
        mounts.push(mount("certificate", CERTIFICATE));
    }
    mounts.into()
}

fn volumes(plan: &Plan<'_>) -> Value {
    // 0440: for the group of the Pod.
    let secret = |name: &str| json!({ "secretName": name, "defaultMode": 0o440 });
    let mut volumes: Vec<Value> = plan
        .processes
        .iter()
        .map(|process| {
            let mut source = secret(&plan.names.config);
            source["items"] = json!([{ "key": process.config_file(), "path": "config.yaml" }]);
            json!({ "name": config_volume(process), "secret": source })
        })
        .collect();
    if plan.streams.is_some() {
        let mut source = secret(&plan.names.config);
        source["items"] = json!([{ "key": sidecar::STATUS_KEY, "path": sidecar::STATUS_KEY }]);
        volumes.push(json!({ "name": sidecar::VOLUME, "secret": source }));
    }
    if plan.installation.has_tls() {
        volumes.push(json!({ "name": "feed", "secret": secret(&plan.names.feed) }));
    }
    if plan.has_tls() {
        volumes.push(json!({ "name": "certificate", "secret": secret(&plan.names.certificate) }));
    }
    volumes.into()
}
