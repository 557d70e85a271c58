//! Manifests with sample requests, from a scenario or an example set, and their translation.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use pingsix_translate::pingsix::Config;
use pingsix_translate::stream::{Arrival, Destination, StreamConfig};
use serde_json::{Map, Value};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

use super::sample::Sample;

/// The beginning of prefixes that PingSIX never reads.
const STREAMS: &str = "/pingsix-stream/";

/// Manifests that can be translated.
pub(super) struct Case {
    pub(super) name: String,
    /// The folder of the program.
    directory: PathBuf,
    /// The manifests, below it.
    input: String,
    options: Vec<String>,
    pub(super) samples: Vec<Sample>,
    pub(super) material: Material,
}

/// The parts of manifests that requests depend on, read without translation.
pub(super) struct Material {
    /// The addresses of each Service, on any of its ports.
    addresses: BTreeMap<String, BTreeSet<String>>,
    /// The first certificate of each Secret that has one, in DER.
    certificates: BTreeMap<String, Vec<u8>>,
}

/// The documents of a case.
pub(super) struct Documents {
    /// Those that PingSIX reads, by prefix.
    pub(super) planes: BTreeMap<String, Config>,
    pub(super) streams: Streams,
}

/// The stream documents of a case, which the sidecar reads.
pub(super) struct Streams(Vec<StreamConfig>);

impl Streams {
    /// The address of PingSIX at which the sidecar passes a request on, if it terminates TLS for the request.
    pub(super) fn front_of(&self, sample: &Sample) -> Option<String> {
        let (name, port) = sample.server_name_and_port();
        self.0.iter().filter(|_| sample.is_tls()).find_map(|config| {
            let (_, route) = config.route_for(port, Arrival::Tls(name))?;
            let upstream = route.targets.iter().find_map(|target| match &target.to {
                Destination::Upstream(id) => config.upstream(id).filter(|upstream| upstream.local),
                Destination::Reject(_) => None,
            });
            upstream?.nodes.keys().next().cloned()
        })
    }
}

/// All scenarios, sorted by name.
pub(super) fn scenarios() -> Vec<Case> {
    let areas = directories(&testdata("scenarios"));
    areas.iter().flat_map(|area| directories(area)).map(Case::scenario).collect()
}

/// All sets of examples, sorted by name.
pub(super) fn examples() -> Vec<Case> {
    directories(&testdata("examples")).iter().map(|set| Case::example(set)).collect()
}

/// The outputs of all migrations, sorted by name.
pub(super) fn migrations() -> Vec<Case> {
    directories(&testdata("migrations")).into_iter().map(Case::migration).collect()
}

fn testdata(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(folder)
}

fn entries(path: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

fn directories(path: &Path) -> Vec<PathBuf> {
    entries(path).into_iter().filter(|path| path.is_dir()).collect()
}

/// The texts of all files below a directory.
fn texts(directory: &Path) -> Vec<String> {
    let of = |path: PathBuf| {
        if path.is_dir() { texts(&path) } else { vec![fs::read_to_string(path).unwrap()] }
    };
    entries(directory).into_iter().flat_map(of).collect()
}

impl Case {
    /// The flags stand in the manifests.
    fn scenario(directory: PathBuf) -> Self {
        let names: Vec<&str> = directory.iter().rev().take(2).map(|part| part.to_str().unwrap()).collect();
        let name = format!("{}/{}", names[1], names[0]);
        let input = fs::read_to_string(directory.join("input.yaml")).unwrap();
        let samples = fs::read_to_string(directory.join("requests.yaml")).unwrap_or_default();
        let (options, material) = (options(&input), Material::of(&[input]));
        Self {
            samples: read(&name, &samples),
            name,
            directory,
            input: "input.yaml".to_owned(),
            options,
            material,
        }
    }

    /// The flags stand above the requests, which lie beside the manifests.
    fn example(set: &Path) -> Self {
        let name = set.file_name().unwrap().to_str().unwrap().to_owned();
        let directory = set.parent().unwrap().to_owned();
        let samples = fs::read_to_string(set.with_extension("requests.yaml")).unwrap();
        let (options, material) = (options(&samples), Material::of(&texts(set)));
        Self { samples: read(&name, &samples), input: name.clone(), name, directory, options, material }
    }

    /// The flags stand in the input of the migration, and requests are for its output.
    fn migration(directory: PathBuf) -> Self {
        let name = directory.file_name().unwrap().to_str().unwrap().to_owned();
        let read_file = |file: &str| fs::read_to_string(directory.join(file)).unwrap();
        let samples = read(&name, &read_file("requests.yaml"));
        let options = options(&read_file("input.yaml"));
        let material = Material::of(&[read_file("output.yaml")]);
        Self { samples, name, input: "output.yaml".to_owned(), options, material, directory }
    }

    /// A further file of the case, if there is one.
    pub(super) fn read(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.directory.join(file)).ok()
    }

    fn run(&self, arguments: &[&str], options: &[String]) -> Vec<u8> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pingsix-gatewayctl"));
        let output = command.current_dir(&self.directory).args(arguments).args(options).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}: {arguments:?}: {stderr}", self.name);
        output.stdout
    }

    /// The documents, where the responder, if there is one, has this address.
    pub(super) fn translate(&self, responder: SocketAddr) -> Documents {
        let mut options = self.options.clone();
        match options.iter().position(|option| option == "--responder") {
            Some(at) if options[at + 1] == "off" => {}
            Some(at) => options[at + 1] = responder.to_string(),
            None => options.extend(["--responder".to_owned(), responder.to_string()]),
        }
        let stored = self.run(&["translate", &self.input, "-o", "etcd-json"], &options);
        let stored: Map<String, Value> = serde_json::from_slice(&stored).unwrap();
        let shown = self.run(&["translate", &self.input, "-o", "json"], &options);
        let shown: Value = serde_json::from_slice(&shown).unwrap();
        let (mut planes, mut streams) = (BTreeMap::new(), Vec::new());
        let mut placed = 0;
        for prefix in
            shown["dataPlanes"].as_array().unwrap().iter().map(|plane| plane["prefix"].as_str().unwrap())
        {
            let below = format!("{prefix}/");
            let pairs = stored.iter().filter(|(key, _)| key.starts_with(&below));
            let pairs: Vec<_> = pairs.map(|(key, value)| (key.as_str(), value.to_string())).collect();
            placed += pairs.len();
            if prefix.starts_with(STREAMS) {
                streams.push(StreamConfig::from_pairs(prefix, pairs).unwrap());
                continue;
            }
            planes.insert(prefix.to_owned(), Config::from_pairs(prefix, pairs).unwrap());
        }
        assert_eq!(placed, stored.len(), "{}: documents below no prefix, or below several", self.name);
        Documents { planes, streams: Streams(streams) }
    }

    /// The suffix of the prefix of the data plane for a request, according to `explain`; `None` for a request without a
    /// data plane, even on an open port.
    pub(super) fn plane_of(&self, sample: &Sample) -> Option<String> {
        if !sample.can_be_sent() {
            return None;
        }
        let (method, url) = sample.request.split_once(' ').unwrap();
        let mut arguments = vec!["explain", &self.input, method, url, "-o", "json"];
        arguments.extend(sample.gateway.iter().flat_map(|name| ["--gateway", name]));
        arguments.extend(sample.server_name.iter().flat_map(|name| ["--server-name", name]));
        arguments.extend(sample.ingress_class.iter().flat_map(|name| ["--ingress-class", name]));
        let explanations: Value = serde_json::from_slice(&self.run(&arguments, &self.options)).unwrap();
        let plane = explanations[0]["dataPlane"].as_str();
        let plane = plane.unwrap_or_else(|| panic!("{}: {} arrives nowhere", self.name, sample.request));
        let class = plane.strip_prefix("IngressClass/");
        Some(class.map_or_else(|| format!("/{plane}"), |class| format!("-ingress/{class}")))
    }
}

/// The flags of the line `# Options:`.
fn options(text: &str) -> Vec<String> {
    let line = text.lines().find_map(|line| line.strip_prefix("# Options: ")).unwrap_or_default();
    line.split_whitespace().map(str::to_owned).collect()
}

fn read(name: &str, samples: &str) -> Vec<Sample> {
    if samples.is_empty() {
        return Vec::new();
    }
    serde_saphyr::from_str(samples).unwrap_or_else(|error| panic!("{name}: requests.yaml: {error}"))
}

impl Material {
    /// The documents of the texts; none for invalid YAML.
    fn of(texts: &[String]) -> Self {
        let mut material = Self { addresses: BTreeMap::new(), certificates: BTreeMap::new() };
        let documents = texts.iter().flat_map(|text| serde_saphyr::from_multiple(text).unwrap_or_default());
        for document in documents.collect::<Vec<Value>>() {
            let items = document["items"].as_array();
            items.map_or(std::slice::from_ref(&document), Vec::as_slice).iter().for_each(|object| {
                material.read(object);
            });
        }
        material
    }

    fn read(&mut self, object: &Value) {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
        let name_in = |name: &Value| format!("{namespace}/{}", name.as_str().unwrap_or_default());
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        match object["kind"].as_str() {
            // Requests may go through the cluster IP.
            Some("Service") => {
                let ip = object["spec"]["clusterIP"].as_str().and_then(|ip| ip.parse::<IpAddr>().ok());
                let known = self.addresses.entry(name_in(&object["metadata"]["name"])).or_default();
                for port in list(&object["spec"]["ports"]) {
                    let port = port["port"].as_u64().and_then(|port| u16::try_from(port).ok());
                    known.extend(ip.zip(port).map(|(ip, port)| SocketAddr::new(ip, port).to_string()));
                }
            }
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
            _ => {}
        }
    }

    /// The Services with their addresses.
    pub(super) fn services(&self) -> impl Iterator<Item = (&String, &BTreeSet<String>)> {
        self.addresses.iter()
    }

    /// Whether a Service has this address.
    pub(super) fn is_endpoint(&self, service: &str, address: &str) -> bool {
        self.addresses.get(service).is_some_and(|known| known.contains(address))
    }

    /// The Secret a certificate is from.
    pub(super) fn secret_of(&self, certificate: &[u8]) -> Option<&str> {
        let mut all = self.certificates.iter();
        all.find(|(_, held)| *held == certificate).map(|(name, _)| name.as_str())
    }
}
