//! A scenario: its files, and what translation makes of its input here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use pingsix_translate::pingsix::Config;
use serde_json::{Map, Value};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

use super::sample::Sample;

/// What the prefixes start with that PingSIX never reads.
const STREAMS: &str = "/pingsix-stream/";

/// A scenario that can be translated.
pub(super) struct Case {
    pub(super) name: String,
    directory: PathBuf,
    options: Vec<String>,
    pub(super) samples: Vec<Sample>,
    pub(super) material: Material,
}

/// What the manifests say of things that requests meet, read without translation.
pub(super) struct Material {
    /// The addresses of each Service, on any of its ports.
    addresses: BTreeMap<String, BTreeSet<String>>,
    /// The first certificate of each Secret that has one, in DER.
    certificates: BTreeMap<String, Vec<u8>>,
    /// Ports and protocols of the listeners that are served.
    doors: BTreeSet<(u64, String)>,
}

/// All scenarios, sorted by name.
pub(super) fn cases() -> Vec<Case> {
    let below = |path: &Path| {
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect::<Vec<_>>()
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/scenarios");
    let mut all: Vec<PathBuf> = below(&root).iter().flat_map(|area| below(area)).collect();
    all.sort();
    all.into_iter().map(Case::read).collect()
}

impl Case {
    fn read(directory: PathBuf) -> Self {
        let names: Vec<&str> = directory.iter().rev().take(2).map(|part| part.to_str().unwrap()).collect();
        let name = format!("{}/{}", names[1], names[0]);
        let input = fs::read_to_string(directory.join("input.yaml")).unwrap();
        let options = input.lines().find_map(|line| line.strip_prefix("# Options: ")).unwrap_or_default();
        let options = options.split_whitespace().map(str::to_owned).collect();
        let samples = fs::read_to_string(directory.join("requests.yaml")).ok();
        let samples = samples.map(|text| {
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}/requests.yaml: {error}"))
        });
        let status = fs::read_to_string(directory.join("status.yaml")).unwrap();
        let status: Value = serde_saphyr::from_str(&status).unwrap();
        let material = Material::of(&input, &status["status"]);
        Self { name, directory, options, samples: samples.unwrap_or_default(), material }
    }

    fn run(&self, arguments: &[&str], options: &[String]) -> Vec<u8> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pingsix-gatewayctl"));
        let output = command.current_dir(&self.directory).args(arguments).args(options).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}: {arguments:?}: {said}", self.name);
        output.stdout
    }

    /// The documents of each prefix PingSIX reads, where the responder, if there is one, has this address. Those for
    /// streams are read by others.
    pub(super) fn translate(&self, responder: SocketAddr) -> BTreeMap<String, Config> {
        let mut options = self.options.clone();
        match options.iter().position(|option| option == "--responder") {
            Some(at) if options[at + 1] == "off" => {}
            Some(at) => options[at + 1] = responder.to_string(),
            None => options.extend(["--responder".to_owned(), responder.to_string()]),
        }
        let stored = self.run(&["translate", "input.yaml", "-o", "etcd-json"], &options);
        let stored: Map<String, Value> = serde_json::from_slice(&stored).unwrap();
        let shown = fs::read_to_string(self.directory.join("config.yaml")).unwrap();
        let shown: Map<String, Value> = serde_saphyr::from_str(&shown).unwrap();
        let mut planes = BTreeMap::new();
        let mut placed = 0;
        for prefix in shown.keys() {
            let below = format!("{prefix}/");
            let pairs = stored.iter().filter(|(key, _)| key.starts_with(&below));
            let pairs: Vec<_> = pairs.map(|(key, value)| (key.as_str(), value.to_string())).collect();
            placed += pairs.len();
            if prefix.starts_with(STREAMS) {
                continue;
            }
            planes.insert(prefix.clone(), Config::from_pairs(prefix, pairs).unwrap());
        }
        assert_eq!(placed, stored.len(), "{}: documents below no prefix, or below several", self.name);
        planes
    }

    /// Whether somebody could connect to send the request: to a port and protocol that a listener serves, or to the
    /// PingSIX of a port on its own. Where there is neither, one that serves several ports might answer all the same,
    /// because it cannot tell them apart.
    pub(super) fn can_be_sent(&self, sample: &Sample) -> bool {
        let is_per_port = self.options.iter().any(|option| option == "per-port");
        sample.cause.as_deref() != Some("listener") || is_per_port || self.material.has_door_for(sample)
    }

    /// What the prefix of the data plane ends with that a request arrives at, as `explain` says; `None` where nothing
    /// takes it.
    pub(super) fn plane_of(&self, sample: &Sample) -> Option<String> {
        if sample.closed {
            return None;
        }
        let (method, url) = sample.request.split_once(' ').unwrap();
        let mut arguments = vec!["explain", "input.yaml", method, url, "-o", "json"];
        arguments.extend(sample.gateway.iter().flat_map(|name| ["--gateway", name]));
        let explanations: Value = serde_json::from_slice(&self.run(&arguments, &self.options)).unwrap();
        let plane = explanations[0]["dataPlane"].as_str();
        let plane = plane.unwrap_or_else(|| panic!("{}: {} arrives nowhere", self.name, sample.request));
        let class = plane.strip_prefix("IngressClass/");
        Some(class.map_or_else(|| format!("/{plane}"), |class| format!("-ingress/{class}")))
    }
}

impl Material {
    fn of(input: &str, status: &Value) -> Self {
        let documents: Vec<Value> = serde_saphyr::from_multiple(input).unwrap_or_default();
        let mut material =
            Self { addresses: BTreeMap::new(), certificates: BTreeMap::new(), doors: BTreeSet::new() };
        for document in &documents {
            let items = document["items"].as_array();
            items.map_or(std::slice::from_ref(document), Vec::as_slice).iter().for_each(|object| {
                material.read(object, status);
            });
        }
        material
    }

    fn read(&mut self, object: &Value, status: &Value) {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
        let name_in = |name: &Value| format!("{namespace}/{}", name.as_str().unwrap_or_default());
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        match object["kind"].as_str() {
            Some("EndpointSlice") => {
                let service = name_in(&object["metadata"]["labels"]["kubernetes.io/service-name"]);
                let known = self.addresses.entry(service).or_default();
                for address in list(&object["endpoints"]).iter().flat_map(|one| list(&one["addresses"])) {
                    let address = address.as_str().unwrap();
                    let host =
                        if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
                    known
                        .extend(list(&object["ports"]).iter().map(|port| format!("{host}:{}", port["port"])));
                }
            }
            Some("Secret") => {
                let encoded = object["data"]["tls.crt"].as_str();
                let chain = encoded.and_then(|text| BASE64_STANDARD.decode(text).ok());
                let plain = object["stringData"]["tls.crt"].as_str().map(|text| text.as_bytes().to_vec());
                let chain = plain.or(chain);
                let first = chain.and_then(|chain| CertificateDer::from_pem_slice(&chain).ok());
                let held = first.map(|first| (name_in(&object["metadata"]["name"]), first.to_vec()));
                self.certificates.extend(held);
            }
            Some(kind @ ("Gateway" | "ListenerSet")) => {
                let judged =
                    list(&status[format!("{kind} {}", name_in(&object["metadata"]["name"]))]["listeners"]);
                let is_refused = |name: &Value| {
                    let mut verdicts = judged.iter().filter(|verdict| verdict["name"] == *name);
                    verdicts.any(|verdict| {
                        list(&verdict["conditions"]).iter().any(|one| one["reason"] == "Invalid")
                    })
                };
                let served = list(&object["spec"]["listeners"]);
                let served = served.iter().filter(|listener| !is_refused(&listener["name"]));
                self.doors.extend(served.filter_map(|listener| {
                    Some((listener["port"].as_u64()?, listener["protocol"].as_str()?.to_owned()))
                }));
            }
            _ => {}
        }
    }

    /// Whether an address is one of a Service's.
    pub(super) fn is_endpoint(&self, service: &str, address: &str) -> bool {
        self.addresses.get(service).is_some_and(|known| known.contains(address))
    }

    /// The Secret a certificate is from.
    pub(super) fn secret_of(&self, certificate: &[u8]) -> Option<&str> {
        let mut all = self.certificates.iter();
        all.find(|(_, held)| *held == certificate).map(|(name, _)| name.as_str())
    }

    /// Whether some listener that is served has the port and protocol that a client speaks.
    fn has_door_for(&self, sample: &Sample) -> bool {
        let protocol = if sample.is_tls() { "HTTPS" } else { "HTTP" };
        self.doors.contains(&(sample.port(), protocol.to_owned()))
    }
}
