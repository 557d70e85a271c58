//! The sidecar with its defaults, and one thread because it has one processor.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value, json};

use super::{NAME, Service, write};
use crate::certificate::Certificate;
use crate::documents;
use crate::process::{Process, Processor, pinned};

pub(super) fn command(folder: &Path, service: Service, port: u16, backend: SocketAddr) -> Command {
    let mut all = vec![documents::upstream("u", backend)];
    match service {
        Service::Tcp | Service::Bulk => all.push(documents::route("tcp", port, "u")),
        Service::Udp => all.push(documents::route("udp", port, "u")),
        Service::Passthrough => all.push(documents::named(port, NAME, None, "u")),
        Service::Terminate => {
            all.push(documents::certificate("s", &Certificate::new(&[NAME])));
            all.push(documents::named(port, NAME, Some("s"), "u"));
        }
        Service::Https => {
            all.push(documents::certificate("s", &Certificate::new(&[NAME])));
            let (key, mut route) = documents::named(port, NAME, Some("s"), "u");
            route["alpn"] = json!(["h2", "http/1.1"]);
            all.push((key, route));
        }
    }
    let mut lists: Map<String, Value> = Map::new();
    for (key, mut document) in all {
        let (list, id) = key.split_once('/').unwrap();
        document["id"] = json!(id);
        lists.entry(list).or_insert_with(|| json!([])).as_array_mut().unwrap().push(document);
    }
    let output = json!({"dataPlanes": [{"prefix": "/pingsix-stream/bench/web", "config": lists}]});
    let file = write(folder, "streams.json", &output.to_string());
    let mut command = sidecar();
    command.args(["--streams-file", &file]);
    command
}

/// A sidecar with the documents of an etcd.
pub(crate) fn from_feed(address: &str, prefix: &str) -> Process {
    let endpoint = format!("http://{address}");
    Process::start(sidecar().args(["--streams-endpoint", &endpoint, "--streams-prefix", prefix]))
}

fn sidecar() -> Command {
    let mut command = pinned(Processor::Proxy, env!("CARGO_BIN_EXE_pingsix-gateway-sidecar"));
    command.args(["--streams", "--streams-local-nodes"]).env("RUST_LOG", "warn");
    command
}
