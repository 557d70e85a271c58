//! The scenarios and the examples, asked of the real PingSIX.

mod backends;
mod case;
mod nginx;
mod sample;

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use pingsix_gateway_sidecar::responder::{Options as ResponderOptions, Reach, Responder};
use pingsix_translate::pingsix::Config;

use backends::Backends;
use case::{Case, Documents, examples, migrations, scenarios};
use sample::{Answered, Sample};

use crate::client::{Client, Protocol};
use crate::etcd::Etcd;
use crate::process::{Listener, Pair, PingSix, Verdict, WAIT_TIMEOUT};
use crate::run::{binary, print_message};

/// Every data plane is published here in its turn.
const SCOPE: &str = "/contract/scenarios";

/// The number of publications of each data plane; PingSIX draws another order each time.
const PUBLICATIONS_PER_DATA_PLANE: usize = 2;

/// After how many publications PingSIX is started anew.
const PUBLICATIONS_PER_START: usize = 40;

/// A request, and the address of PingSIX at which the sidecar passes it on, if the sidecar terminates TLS.
struct Arrival<'a> {
    sample: &'a Sample,
    address: Option<String>,
}

impl Arrival<'_> {
    const fn is_fronted(&self) -> bool {
        self.address.is_some()
    }
}

/// The documents with the address of a process in place of one behind a sidecar.
fn at_address(config: &Config, address: Option<&str>, process: SocketAddr) -> Config {
    let Some(address) = address else { return config.clone() };
    let quoted = |address: &str| format!("\"{address}\"");
    let pairs = config.to_pairs(SCOPE);
    let pairs =
        pairs.map(|(key, value)| (key, value.replace(&quoted(address), &quoted(&process.to_string()))));
    Config::from_pairs(SCOPE, pairs).unwrap()
}

#[derive(Default)]
struct Tally {
    cases: usize,
    planes: usize,
    publications: usize,
    starts: usize,
    samples: usize,
    unsendable: usize,
    requests: usize,
    certificates: usize,
    problems: Vec<String>,
}

/// PingSIX with what it is configured and asked with.
struct Harness {
    binary: PathBuf,
    etcd: Etcd,
    pingsix: Pair,
    backends: Backends,
    responder: SocketAddr,
    tally: Tally,
}

/// Processes for every protocol, which trust the backends' authority.
async fn start(binary: &Path, etcd: &Etcd, backends: &Backends) -> Pair {
    let ca = backends.authority();
    let plaintext = PingSix::start_trusting(&ca, Listener::Plaintext, binary, etcd.address, SCOPE);
    let tls = PingSix::start_trusting(&ca, Listener::Tls, binary, etcd.address, SCOPE);
    Pair { plaintext: plaintext.await, tls: tls.await }
}

impl Harness {
    async fn new(binary: PathBuf) -> Self {
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let responder =
            Responder::bind(loopback, Reach::Loopback, ResponderOptions::default()).await.unwrap();
        let address = responder.local_addr().unwrap();
        tokio::spawn(responder.run(std::future::pending()));
        let etcd = Etcd::start(&[SCOPE.to_owned()]).await;
        let backends = Backends::new();
        let pingsix = start(&binary, &etcd, &backends).await;
        let tally = Tally { starts: 2, ..Tally::default() };
        Self { binary, etcd, pingsix, backends, responder: address, tally }
    }

    async fn restart(&mut self) {
        self.pingsix = start(&self.binary, &self.etcd, &self.backends).await;
        self.tally.starts += 2;
    }

    /// Publishes every data plane of a case in turn, and sends its sample requests.
    async fn run_case(&mut self, case: &Case) {
        self.tally.cases += 1;
        let Documents { planes, streams } = case.translate(self.responder);
        let mut left: Vec<(String, Arrival<'_>)> = Vec::new();
        for sample in &case.samples {
            match case.plane_of(sample) {
                Some(plane) => left.push((plane, Arrival { sample, address: streams.front_of(sample) })),
                None => self.tally.unsendable += 1,
            }
        }
        for (prefix, config) in planes {
            self.tally.planes += 1;
            let (here, elsewhere) = left.into_iter().partition(|(plane, _)| prefix.ends_with(plane));
            let arrivals: Vec<(String, Arrival<'_>)> = here;
            left = elsewhere;
            self.tally.samples += arrivals.len();
            let mut addresses: BTreeSet<Option<&str>> =
                arrivals.iter().map(|(_, arrival)| arrival.address.as_deref()).collect();
            if addresses.is_empty() {
                addresses.insert(None);
            }
            for (edition, address) in (0..PUBLICATIONS_PER_DATA_PLANE)
                .flat_map(|edition| addresses.iter().map(move |at| (edition, *at)))
            {
                if let Err(problem) = self.publish(&config, address).await {
                    self.tally.problems.push(format!("{} ({prefix}): {problem}", case.name));
                    break;
                }
                let of_address = arrivals.iter().filter(|(_, arrival)| arrival.address.as_deref() == address);
                for (_, arrival) in of_address.filter(|(_, one)| edition == 0 || !one.sample.is_counted()) {
                    self.ask(case, arrival).await;
                }
            }
        }
        // An owner with unusable parameters has no publication. A PingSIX without documents serves nothing.
        for (_, arrival) in left {
            self.tally.samples += 1;
            match self.publish(&Config::new(), None).await {
                Ok(()) => self.ask(case, &arrival).await,
                Err(problem) => self.tally.problems.push(format!("{}: {problem}", case.name)),
            }
        }
    }

    /// Publishes documents. Of the addresses at which the sidecar speaks to PingSIX, the one of this process is `address`.
    async fn publish(&mut self, config: &Config, address: Option<&str>) -> Result<(), String> {
        let local = self.backends.with_local_backends(config, self.responder).await;
        let config = || at_address(&local, address, self.pingsix.addresses().plaintext);
        self.tally.publications += 1;
        let mut revision = self.etcd.publish(SCOPE, &config(), self.tally.publications).await;
        if self.tally.publications.is_multiple_of(PUBLICATIONS_PER_START) {
            self.restart().await;
            if address.is_some() {
                // The new process has another address.
                let config = at_address(&local, address, self.pingsix.addresses().plaintext);
                revision = self.etcd.publish(SCOPE, &config, self.tally.publications).await;
            }
        }
        match self.pingsix.verdict(revision, WAIT_TIMEOUT).await {
            Verdict::Accepted => Ok(()),
            refused @ (Verdict::Refused(..) | Verdict::Silent) => {
                // A refusal stays on the page until the next publication.
                self.etcd.publish(SCOPE, &Config::new(), 0).await;
                self.restart().await;
                Err(format!("{refused:?}"))
            }
        }
    }

    async fn ask(&mut self, case: &Case, arrival: &Arrival<'_>) {
        let sample = arrival.sample;
        for protocol in sample.protocols(arrival.is_fronted()) {
            let address = self.pingsix.addresses().of(protocol);
            let output = match answers(arrival, protocol, address).await {
                Ok(answers) => {
                    self.tally.requests += answers.len();
                    self.tally.certificates += usize::from(sample.certificate.is_some());
                    sample.problem(&answers, &case.material)
                }
                Err(error) => Some(error),
            };
            let Sample { request, headers, .. } = sample;
            self.tally.problems.extend(
                output.map(|output| format!("{}: {request} {headers:?} {protocol:?}: {output}", case.name)),
            );
        }
    }
}

/// The answer to a request that is repeated over one connection.
async fn answers(
    arrival: &Arrival<'_>,
    protocol: Protocol,
    address: SocketAddr,
) -> Result<Vec<Answered>, String> {
    let sample = arrival.sample;
    let request = protocol.carry(&sample.request(arrival.is_fronted()));
    let mut client = Client::new(protocol, address, Some(sample.name()));
    let mut answers = Vec::new();
    for _ in 0..sample.repeats() {
        let reply = client.ask(&request).await?;
        answers.push(Answered { reply, certificate: client.certificate().map(<[u8]>::to_vec) });
    }
    Ok(answers)
}

/// Asks PingSIX the sample requests of all cases.
async fn compare(test: &str, what: &str, cases: Vec<Case>) {
    let Some(binary) = binary(test) else { return };
    let mut harness = Harness::new(binary).await;
    for case in &cases {
        harness.run_case(case).await;
    }
    let Tally { cases, planes, publications, starts, samples, unsendable, requests, certificates, problems } =
        harness.tally;
    print_message(&format!(
        "{test}: {planes} data planes of {cases} {what} in {publications} publications and {starts} process starts; \
         {requests} answers to {samples} different requests compared, with {certificates} certificates; {unsendable} \
         requests find no listener to connect to"
    ));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(samples > 0 && requests > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_answers_the_scenarios_as_their_requests_say() {
    compare("scenarios", "scenarios", scenarios()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_answers_the_examples_as_their_requests_say() {
    compare("examples", "sets of examples", examples()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_answers_the_outputs_of_migrations_as_their_requests_say() {
    compare("migrations", "migrations", migrations()).await;
}
