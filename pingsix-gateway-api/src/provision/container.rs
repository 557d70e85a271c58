//! The parts that the containers of PingSIX and of the sidecar have in common.

use serde_json::{Value, json};

use super::Plan;
use super::process::{FEED, FOLDER};

/// The time of service after the stop signal, in seconds. PingSIX closes its sockets at once, so load balancers must
/// remove the Pod before.
pub(super) const STOP_DELAY_SECONDS: u32 = 10;

/// The probes of life and readiness of a program with status pages, on a port by number or name.
pub(super) fn status_probes(port: &Value) -> [Value; 2] {
    [("/status/live", 10), ("/status/ready", 2)].map(|(path, period)| {
        json!({ "httpGet": { "path": path, "port": port }, "periodSeconds": period, "timeoutSeconds": 3 })
    })
}

/// The pause between the decision to end a Pod and the stop signal.
pub(super) fn pause() -> Value {
    json!({ "preStop": { "sleep": { "seconds": STOP_DELAY_SECONDS } } })
}

pub(super) fn security() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": { "drop": ["ALL"] },
    })
}

/// The mounts of the configuration of a container, in its subfolder, and of the client certificate for the feed.
pub(super) fn own_mounts(plan: &Plan<'_>, volume: &str, subfolder: &str) -> Vec<Value> {
    let mut mounts = vec![mount(volume, &format!("{FOLDER}/{subfolder}"))];
    if plan.installation.has_tls() {
        mounts.push(mount("feed", FEED));
    }
    mounts
}

pub(super) fn mount(volume: &str, path: &str) -> Value {
    json!({ "name": volume, "mountPath": path, "readOnly": true })
}
