//! Migrations from ingress-nginx, with their requests asked of nginx.
//!
//! `nginx.conf` beside a migration has the servers and locations that ingress-nginx documents for its input. So the
//! expected answers are those of the original, and not only those of PingSIX. In that file, the upstream
//! `<namespace>_<name>` stands for the endpoints of a Service.

use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use pingsix_test_programs::{find, free_address};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::sleep;

use super::backends::Backends;
use super::case::{Case, migrations};
use super::sample::Sample;
use super::{Arrival, answers};
use crate::client::Protocol;
use crate::process::WAIT_TIMEOUT;
use crate::run::print_message;

/// The interval of tries to connect.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// The settings of all locations. Backends get the Host of the client, as in ingress-nginx.
const COMMON: &str = "
    access_log off;
    proxy_http_version 1.1;
    proxy_set_header Host $http_host;
";

/// A running nginx.
struct Nginx {
    address: SocketAddr,
    _process: Child,
    _directory: TempDir,
}

impl Nginx {
    /// Starts nginx with the servers of a case.
    async fn start(program: &Path, servers: &str, upstreams: &str) -> Self {
        let (address, directory) = (free_address(), TempDir::new().unwrap());
        let paths: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("    {name}_temp_path {name};\n"))
            .concat();
        // Each server listens on the one address.
        let servers = servers.replace("server {", &format!("server {{\n        listen {address};"));
        let configuration = format!(
            "daemon off;\nmaster_process off;\nerror_log stderr;\npid nginx.pid;\nevents {{}}\nhttp {{{COMMON}{paths}{upstreams}{servers}}}\n"
        );
        std::fs::write(directory.path().join("nginx.conf"), configuration).unwrap();
        let log = directory.path().join("log");
        let mut process = Command::new(program)
            .arg("-p")
            .arg(directory.path())
            .args(["-c", "nginx.conf", "-e", "stderr"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let started = std::time::Instant::now();
        while TcpStream::connect(address).await.is_err() {
            let has_ended = process.try_wait().unwrap().is_some();
            assert!(
                !has_ended && started.elapsed() < WAIT_TIMEOUT,
                "nginx does not start: {}",
                std::fs::read_to_string(&log).unwrap()
            );
            sleep(RETRY_INTERVAL).await;
        }
        Self { address, _process: process, _directory: directory }
    }

    /// The problems of the answers to the requests of a case.
    async fn problems(&self, case: &Case) -> Vec<String> {
        let mut problems = Vec::new();
        for sample in &case.samples {
            let protocol = Protocol::of(&sample.request(false));
            let problem = match answers(&Arrival { sample, address: None }, protocol, self.address).await {
                Ok(answers) => sample.problem(&answers, &case.material),
                Err(error) => Some(error),
            };
            let Sample { request, headers, .. } = sample;
            problems
                .extend(problem.map(|problem| format!("{}: {request} {headers:?}: {problem}", case.name)));
        }
        problems
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nginx_answers_the_migrations_as_their_requests_say() {
    let Some(program) = find("nginx") else { return };
    let mut backends = Backends::new();
    let (mut cases, mut samples, mut problems) = (0, 0, Vec::new());
    for case in migrations() {
        let Some(servers) = case.read("nginx.conf") else { continue };
        let mut upstreams = String::new();
        for (service, endpoints) in case.material.services() {
            let mut addresses = String::new();
            for endpoint in endpoints {
                addresses += &format!(" server {};", backends.plain(endpoint).await);
            }
            if !addresses.is_empty() {
                upstreams += &format!("    upstream {} {{{addresses} }}\n", service.replace('/', "_"));
            }
        }
        let nginx = Nginx::start(&program, &servers, &upstreams).await;
        problems.extend(nginx.problems(&case).await);
        cases += 1;
        samples += case.samples.len();
    }
    print_message(&format!("nginx: {samples} requests of {cases} migrations"));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(cases > 4);
}
