//! The scenarios and the examples, asked of the real PingSIX.

mod backends;
mod case;
mod nginx;
mod sample;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use pingsix_gateway_sidecar::responder::{Options as ResponderOptions, Reach, Responder};
use pingsix_translate::pingsix::Config;

use backends::Backends;
use case::{Case, examples, migrations, scenarios};
use sample::{Answered, Sample};

use crate::client::{Client, Protocol};
use crate::etcd::Etcd;
use crate::process::{Listener, Pair, PingSix, Verdict, WAIT_TIMEOUT};
use crate::run::{binary, print_message};

/// Every data plane is published here in its turn.
const SCOPE: &str = "/contract/scenarios";

/// The number of publications of each data plane; PingSIX draws another order each time.
const EDITIONS: usize = 2;

/// After how many publications PingSIX is started anew.
const PUBLICATIONS: usize = 40;

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
    faults: Vec<String>,
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
        let planes = case.translate(self.responder);
        let mut left: Vec<(String, &Sample)> = Vec::new();
        for sample in &case.samples {
            match case.plane_of(sample) {
                Some(plane) => left.push((plane, sample)),
                None => self.tally.unsendable += 1,
            }
        }
        for (prefix, config) in planes {
            self.tally.planes += 1;
            let (here, elsewhere) = left.into_iter().partition(|(plane, _)| prefix.ends_with(plane));
            let samples: Vec<(String, &Sample)> = here;
            left = elsewhere;
            self.tally.samples += samples.len();
            for edition in 0..EDITIONS {
                if let Err(fault) = self.publish(&config).await {
                    self.tally.faults.push(format!("{} ({prefix}): {fault}", case.name));
                    break;
                }
                for (_, sample) in samples.iter().filter(|(_, one)| edition == 0 || !one.is_counted()) {
                    self.ask(case, sample).await;
                }
            }
        }
        // An owner with unusable parameters has no publication. A PingSIX without documents serves nothing.
        for (_, sample) in left {
            self.tally.samples += 1;
            match self.publish(&Config::new()).await {
                Ok(()) => self.ask(case, sample).await,
                Err(fault) => self.tally.faults.push(format!("{}: {fault}", case.name)),
            }
        }
    }

    async fn publish(&mut self, config: &Config) -> Result<(), String> {
        let config = self.backends.with_local_backends(config, self.responder).await;
        self.tally.publications += 1;
        let revision = self.etcd.publish(SCOPE, &config, self.tally.publications).await;
        if self.tally.publications.is_multiple_of(PUBLICATIONS) {
            self.restart().await;
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

    async fn ask(&mut self, case: &Case, sample: &Sample) {
        for protocol in sample.protocols() {
            let address = self.pingsix.addresses().of(protocol);
            let output = match answers(sample, protocol, address).await {
                Ok(answers) => {
                    self.tally.requests += answers.len();
                    self.tally.certificates += usize::from(sample.certificate.is_some());
                    sample.fault(&answers, &case.material)
                }
                Err(error) => Some(error),
            };
            let Sample { request, headers, .. } = sample;
            self.tally.faults.extend(
                output.map(|output| format!("{}: {request} {headers:?} {protocol:?}: {output}", case.name)),
            );
        }
    }
}

/// The answer to a request that is repeated over one connection.
async fn answers(sample: &Sample, protocol: Protocol, address: SocketAddr) -> Result<Vec<Answered>, String> {
    let request = protocol.carry(&sample.request());
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
    let Tally { cases, planes, publications, starts, samples, unsendable, requests, certificates, faults } =
        harness.tally;
    print_message(&format!(
        "{test}: {planes} data planes of {cases} {what} in {publications} publications and {starts} process starts; \
         {requests} answers to {samples} different requests compared, with {certificates} certificates; {unsendable} \
         requests find no listener to connect to"
    ));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
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
