//! The container of the sidecar: the answers that PingSIX cannot give itself, and the connections of TCP, UDP and TLS.
//!
//! The sidecar of a Gateway reads stream documents from the start, so listeners for streams come and go without another
//! Pod: they change the Service and the documents alone.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::infrastructure::Infrastructure;
use pingsix_translate::stream::{FRONT_PORT, listening_ports};
use serde_json::{Value, json};

use super::container::{own_mounts, pause, security, status_probes};
use super::ports::ProcessPorts;
use super::process::{FEED, FOLDER};
use super::{Installation, Plan};

/// The port of the sidecar's status page.
pub(super) const STATUS_PORT: u16 = 7086;

/// The key of the Secret of processes with the key of the sidecar's status page.
pub(super) const STATUS_KEY: &str = "status-key";

/// The volume with the key of the status page.
pub(super) const VOLUME: &str = "config-sidecar";

/// The folder of that volume, below the folder of configurations.
const SUBFOLDER: &str = "sidecar";

/// The default time limit of connections, in seconds.
const DEFAULT_DRAIN_SECONDS: u32 = 30;

/// The stream role of a Gateway's sidecars: the prefix of its documents, and its ports.
pub(super) struct Streams<'i> {
    /// The prefix of the documents.
    prefix: String,
    tcp: &'i BTreeSet<u16>,
    udp: &'i BTreeSet<u16>,
    /// The ports of other processes of the Pod.
    taken: BTreeSet<u16>,
    /// The ports in the Pod, by port of clients.
    listening: BTreeMap<u16, u16>,
}

impl<'i> Streams<'i> {
    pub(super) fn of(
        infrastructure: &'i Infrastructure,
        installation: &Installation,
        processes: &BTreeMap<u16, ProcessPorts>,
    ) -> Option<Self> {
        let streams = infrastructure.streams.as_ref()?;
        let of_processes = processes.values().flat_map(ProcessPorts::all);
        let taken: BTreeSet<u16> =
            of_processes.chain(ports_of_sidecar(infrastructure, installation)).collect();
        Some(Self {
            prefix: streams.data_plane.prefix(&installation.root),
            listening: listening_ports(streams.tcp.union(&streams.udp).copied(), taken.clone()),
            tcp: &streams.tcp,
            udp: &streams.udp,
            taken,
        })
    }

    /// The ports of TCP and TLS, and the ports in the Pod that stand for them.
    pub(super) fn tcp(&self) -> impl Iterator<Item = (u16, u16)> {
        self.listening(self.tcp)
    }

    /// The ports of UDP, likewise.
    pub(super) fn udp(&self) -> impl Iterator<Item = (u16, u16)> {
        self.listening(self.udp)
    }

    fn listening(&self, ports: &BTreeSet<u16>) -> impl Iterator<Item = (u16, u16)> {
        ports.iter().filter_map(|port| Some((*port, *self.listening.get(port)?)))
    }

    fn arguments(&self, installation: &Installation) -> Vec<String> {
        let mut arguments = vec!["--streams".to_owned()];
        arguments.extend(installation.feed.iter().map(|endpoint| format!("--streams-endpoint={endpoint}")));
        arguments.push(format!("--streams-prefix={}", self.prefix));
        if installation.has_tls() {
            let files = [("ca", "ca.crt"), ("cert", "tls.crt"), ("key", "tls.key")];
            arguments.extend(files.map(|(option, file)| format!("--streams-{option}={FEED}/{file}")));
        } else {
            arguments.push("--streams-allow-plaintext".to_owned());
        }
        let taken: Vec<String> = self.taken.iter().map(ToString::to_string).collect();
        arguments.push(format!("--streams-taken-ports={}", taken.join(",")));
        arguments
    }
}

/// The ports of the sidecar itself, and the port of PingSIX behind it.
pub(super) fn ports_of_sidecar(
    infrastructure: &Infrastructure,
    installation: &Installation,
) -> impl Iterator<Item = u16> {
    let behind = infrastructure.parameters.sidecar_https.then_some(FRONT_PORT);
    [installation.responder.port(), STATUS_PORT].into_iter().chain(behind)
}

/// The time that connections have when a sidecar ends, in seconds.
pub(super) fn drain_seconds(plan: &Plan<'_>) -> u32 {
    plan.infrastructure.parameters.sidecar_drain_seconds.unwrap_or(DEFAULT_DRAIN_SECONDS)
}

/// The container. It starts before PingSIX and ends after it; in a Pod without PingSIX it is the only one.
pub(super) fn container(plan: &Plan<'_>) -> Value {
    let parameters = &plan.infrastructure.parameters;
    let resources = parameters.sidecar_resources.as_ref().map_or_else(
        || json!({ "requests": { "cpu": "10m", "memory": "16Mi" }, "limits": { "memory": "256Mi" } }),
        |resources| json!(resources),
    );
    let mut arguments =
        vec!["--responder".to_owned(), format!("--responder-listen={}", plan.installation.responder)];
    if let Some(streams) = &plan.streams {
        arguments.extend(streams.arguments(plan.installation));
        arguments.push(format!("--status-listen=0.0.0.0:{STATUS_PORT}"));
        arguments.push(format!("--status-key-file={FOLDER}/{SUBFOLDER}/{STATUS_KEY}"));
    }
    arguments.push(format!("--drain-seconds={}", drain_seconds(plan)));
    arguments.push("--log-format=json".to_owned());
    let mut container = json!({
        "name": "sidecar",
        "image": parameters.sidecar_image.as_ref().unwrap_or(&plan.installation.sidecar_image),
        "args": arguments,
        "resources": resources,
        "securityContext": security(),
    });
    if plan.streams.is_some() {
        // Scrapers of metrics and network policies find the port by its name.
        container["ports"] =
            json!([{ "name": "metrics-sidecar", "containerPort": STATUS_PORT, "protocol": "TCP" }]);
        let [live, ready] = status_probes(&json!(STATUS_PORT));
        (container["livenessProbe"], container["readinessProbe"]) = (live, ready);
        container["volumeMounts"] = own_mounts(plan, VOLUME, SUBFOLDER).into();
    }
    if plan.processes.is_empty() {
        container["lifecycle"] = pause();
    } else {
        container["restartPolicy"] = json!("Always");
    }
    container
}
