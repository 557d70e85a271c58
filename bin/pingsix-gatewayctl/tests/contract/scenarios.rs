//! The scenarios, asked of the real PingSIX.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::process::Command;

use pingsix_translate::pingsix::Request;
use serde::Deserialize;
use serde_json::Value;

use crate::client::{Addresses, Reply, ask_all, speaks_http2};
use crate::echo::{BACKEND, Echo, HEADER_SEEN, TARGET_SEEN};
use crate::process::{Listener, PingSix};
use crate::run::{binary, say};
use crate::serve::Serve;

/// How often PingSIX is started on each data plane; each time it draws another order.
const STARTS: usize = 2;

/// How often each request is asked after each start, over each version of HTTP.
const REPEATS: usize = 6;

/// What scenarios write addresses with, and what stands for it here.
const ADDRESSES: &str = "10.0.0.";

/// An entry of `requests.yaml`.
#[derive(Clone, Deserialize)]
struct Sample {
    request: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    http2: bool,
    gateway: Option<String>,
    backends: Option<BTreeMap<String, u64>>,
    status: Option<u16>,
    cause: Option<String>,
    location: Option<String>,
    preflight: Option<bool>,
    #[serde(default)]
    closed: bool,
    /// What the backend sees: `target`, `host`, and headers that start with `x-`; an empty text is none.
    #[serde(default)]
    sees: BTreeMap<String, String>,
    /// Response headers the client gets; an empty text is none.
    #[serde(default)]
    gets: BTreeMap<String, String>,
}

impl Sample {
    /// Whether somebody could send the request to a data plane.
    fn arrives(&self) -> bool {
        !self.closed && self.cause.as_deref() != Some("listener")
    }

    fn request(&self) -> Request {
        let (method, url) = self.request.split_once(' ').unwrap();
        let (_, rest) = url.split_once("://").unwrap();
        let (host, target) = rest.split_at(rest.find('/').unwrap());
        let (path, query) =
            target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let request = Request { query: query.map(str::to_owned), ..Request::get(host, path) }.method(method);
        self.headers.iter().fold(request, |request, (name, value)| request.header(name, value))
    }
}

/// A scenario on addresses of this machine.
struct Scenario {
    name: String,
    directory: tempfile::TempDir,
    options: Vec<String>,
    samples: Vec<Sample>,
    /// The documents by prefix, as they are shown.
    config: String,
}

fn scenarios() -> Vec<PathBuf> {
    let below = |path: &Path| {
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect::<Vec<_>>()
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/scenarios");
    let mut all: Vec<PathBuf> = below(&root).iter().flat_map(|area| below(area)).collect();
    all.sort();
    all
}

impl Scenario {
    /// The scenario with other addresses; `None` when there is nothing to ask.
    fn new(path: &Path, addresses: &str) -> Option<Self> {
        let read = |file: &str| {
            fs::read_to_string(path.join(file)).ok().map(|text| text.replace(ADDRESSES, addresses))
        };
        let samples: Vec<Sample> = serde_saphyr::from_str(&read("requests.yaml")?).unwrap();
        let (input, config) = (read("input.yaml")?, read("config.yaml")?);
        let options = input.lines().find_map(|line| line.strip_prefix("# Options: ")).unwrap_or_default();
        let options = options.split_whitespace().map(str::to_owned).collect();
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("input.yaml"), input).unwrap();
        let samples: Vec<Sample> = samples.into_iter().filter(Sample::arrives).collect();
        let name = path.iter().rev().take(2).map(|part| part.to_str().unwrap()).collect::<Vec<_>>();
        let name = format!("{}/{}", name[1], name[0]);
        (!samples.is_empty()).then_some(Self { name, directory, options, samples, config })
    }

    /// Addresses that a backend of ours cannot have, or protocols it does not speak.
    fn is_beyond_us(&self) -> bool {
        ["scheme: https", "scheme: grpcs", "[2001:"].iter().any(|text| self.config.contains(text))
    }

    /// The prefix of the data plane a request arrives at, as `explain` says.
    fn scope(&self, sample: &Sample) -> String {
        let (method, url) = sample.request.split_once(' ').unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_pingsix-gatewayctl"));
        command.current_dir(self.directory.path()).args(["explain", "input.yaml", method, url, "-o", "json"]);
        command.args(&self.options).args(sample.gateway.iter().flat_map(|name| ["--gateway", name]));
        let out = command.output().unwrap().stdout;
        let explanations: Value = serde_json::from_slice(&out).unwrap();
        let plane = explanations[0]["dataPlane"].as_str().unwrap().to_owned();
        let prefixes = self.config.lines().filter_map(|line| {
            line.split_once(": {}").map_or_else(|| line.strip_suffix(':'), |(prefix, _)| Some(prefix))
        });
        let below = plane
            .strip_prefix("IngressClass/")
            .map_or(format!("/{plane}"), |class| format!("-ingress/{class}"));
        let mut found = prefixes.filter(|prefix| prefix.starts_with('/') && prefix.ends_with(&below));
        found.next().unwrap_or_else(|| panic!("{}: no prefix for {plane}", self.name)).to_owned()
    }

    /// The addresses of each Service, from the comments on the documents.
    fn addresses(&self) -> BTreeMap<String, BTreeSet<String>> {
        let config: Value = serde_saphyr::from_str(&self.config).unwrap();
        let planes = || config.as_object().unwrap().values();
        let mut addresses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut service = None;
        for line in self.config.lines() {
            if let Some(comment) = line.trim_start().strip_prefix("# Service ") {
                service = comment.split(' ').next().map(str::to_owned);
            } else if let Some(name) = service.take() {
                let key = line.trim().split(':').next().unwrap();
                let nodes = planes().filter_map(|plane| plane[key]["nodes"].as_object());
                addresses.entry(name).or_default().extend(nodes.flat_map(|nodes| nodes.keys().cloned()));
            }
        }
        addresses
    }

    /// Asks one data plane its requests, and says what is wrong.
    async fn compare(&self, asked: &Asked<'_>, samples: &[&Sample], tally: &mut Tally) -> Vec<String> {
        let addresses = self.addresses();
        let mut faults = Vec::new();
        for _ in 0..STARTS {
            let plaintext = PingSix::start(asked.binary, asked.etcd, asked.scope).await;
            let tls = if samples.iter().any(|sample| sample.is_tls()) {
                Some(PingSix::start_with(Listener::Tls, asked.binary, asked.etcd, asked.scope).await)
            } else {
                None
            };
            tally.starts += 1 + usize::from(tls.is_some());
            let doors = Addresses { plaintext: plaintext.address, tls: tls.as_ref().map(|tls| tls.address) };
            for sample in samples {
                let replies = ask_all(doors, &sample.travelling()).await;
                tally.requests += replies.len();
                if let Some(reply) = replies.iter().find(|reply| !sample.allows(reply, &addresses)) {
                    faults.push(format!(
                        "{} ({}): {} {:?}: status {}, {:?}",
                        self.name, asked.scope, sample.request, sample.headers, reply.status, reply.headers
                    ));
                }
            }
        }
        faults
    }
}

/// The data plane that is asked, and how it is started.
struct Asked<'a> {
    binary: &'a Path,
    etcd: std::net::SocketAddr,
    scope: &'a str,
}

impl Sample {
    fn is_tls(&self) -> bool {
        self.request.contains(" https://")
    }

    /// The request several times over each version of HTTP that can carry it.
    fn travelling(&self) -> Vec<Request> {
        let request = Request { tls: self.is_tls(), ..self.request() };
        let http1 = (!self.http2).then(|| vec![request.clone(); REPEATS]);
        let http2 = (self.http2 || speaks_http2(&request)).then(|| vec![request.over_http2(); REPEATS]);
        http1.into_iter().chain(http2).flatten().collect()
    }

    fn allows(&self, reply: &Reply, addresses: &BTreeMap<String, BTreeSet<String>>) -> bool {
        let has = |name: &str, wanted: &str| reply.header(name).unwrap_or_default() == wanted;
        let sees = self.sees.iter().all(|(name, wanted)| match name.as_str() {
            "target" => has(TARGET_SEEN, wanted),
            name => has(&format!("{HEADER_SEEN}{name}"), wanted),
        });
        let gets = self.gets.iter().all(|(name, wanted)| has(name, wanted));
        sees && gets && self.allows_answer(reply, addresses)
    }

    fn allows_answer(&self, reply: &Reply, addresses: &BTreeMap<String, BTreeSet<String>>) -> bool {
        let backend = reply.header(BACKEND);
        if let Some(allowed) = self.preflight {
            let told = reply.header("access-control-allow-origin").is_some();
            return backend.is_none()
                && told == allowed
                && (reply.status < 300 || !allowed && reply.status == 403);
        }
        if let Some(wanted) = self.status {
            let location = self.location.as_deref().map(|location| self.absolute(location));
            let found = reply.header("location").map(|location| self.absolute(location));
            return backend.is_none() && reply.status == wanted && location == found;
        }
        let mut shares = self.backends.iter().flatten().map(|(name, _)| name);
        shares.any(|name| match (name.parse::<u16>(), backend) {
            (Ok(share), None) => share == reply.status,
            (Err(_), Some(backend)) => {
                reply.status == 200 && addresses.get(name).is_some_and(|known| known.contains(backend))
            }
            _ => false,
        })
    }

    /// A `Location` as clients read it: PingSIX writes some as paths, depending on the version of HTTP.
    fn absolute(&self, location: &str) -> String {
        let (_, url) = self.request.split_once(' ').unwrap();
        let (scheme, rest) = url.split_once("://").unwrap();
        let authority = rest.split('/').next().unwrap();
        if location.starts_with('/') {
            format!("{scheme}://{authority}{location}")
        } else {
            location.to_owned()
        }
    }
}

#[derive(Default)]
struct Tally {
    scenarios: usize,
    left_out: usize,
    starts: usize,
    requests: usize,
}

/// One backend per address of the scenario, which it names; `None` when somebody else has one of them.
async fn backends(scenario: &Scenario) -> Option<Vec<Echo>> {
    let mut echoes = Vec::new();
    let known: BTreeSet<String> = scenario.addresses().into_values().flatten().collect();
    for address in known {
        echoes.push(Echo::start_at(&address, address.parse().unwrap()).await.ok()?);
    }
    Some(echoes)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_answers_the_scenarios_as_their_requests_say() {
    const TEST: &str = "scenarios";
    let Some(binary) = binary(TEST) else { return };
    let mut tally = Tally::default();
    let mut faults = Vec::new();
    for path in scenarios() {
        let (scenario, echoes) = loop {
            let chance = RandomState::new().hash_one(()).to_le_bytes();
            let Some(scenario) = Scenario::new(&path, &format!("127.{}.{}.", chance[0], chance[1] % 255))
            else {
                break (None, None);
            };
            match backends(&scenario).await {
                _ if scenario.is_beyond_us() => break (Some(scenario), None),
                Some(echoes) => break (Some(scenario), Some(echoes)),
                None => {}
            }
        };
        let (Some(scenario), Some(_echoes)) = (scenario, echoes) else {
            tally.left_out += 1;
            continue;
        };
        tally.scenarios += 1;
        let mut arguments = scenario.options.clone();
        if !arguments.iter().any(|argument| argument == "--responder") {
            arguments.extend(["--responder", "127.0.0.1:0"].map(str::to_owned));
        }
        let serve = Serve::start_with(scenario.directory.path(), &arguments).await;
        let mut by_scope: BTreeMap<String, Vec<&Sample>> = BTreeMap::new();
        for sample in &scenario.samples {
            by_scope.entry(scenario.scope(sample)).or_default().push(sample);
        }
        for (scope, samples) in by_scope {
            let asked = Asked { binary: &binary, etcd: serve.etcd, scope: &scope };
            faults.extend(scenario.compare(&asked, &samples, &mut tally).await);
        }
    }
    let Tally { scenarios, left_out, starts, requests } = tally;
    say(&format!(
        "{TEST}: {requests} requests compared in {scenarios} scenarios, {starts} process starts; {left_out} without requests that can be sent here"
    ));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
