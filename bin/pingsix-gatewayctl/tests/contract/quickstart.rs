//! The quickstart, with its requests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pingsix_translate::pingsix::Request;
use serde::Deserialize;

use crate::client::ask_all;
use crate::echo::{BACKEND, Echo};
use crate::process::PingSix;
use crate::run::{binary, print_message};
use crate::serve::Serve;

const SCOPE: &str = "/pingsix/quickstart/web";

const SERVICES: [&str; 5] = ["site", "cart", "cart-canary", "api-v1", "api-v2"];

/// The number of repetitions of each request after each start; a tenth of the traffic shows in as many.
const REPEATS: usize = 150;

/// A request of the quickstart and what becomes of it.
#[derive(Deserialize)]
struct Expectation {
    request: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    backends: BTreeMap<String, u32>,
    status: Option<u16>,
}

impl Expectation {
    fn request(&self) -> Request {
        let (method, url) = self.request.split_once(' ').unwrap();
        let url = url.strip_prefix("http://").unwrap();
        let (host, path) = url.split_at(url.find('/').unwrap());
        let request = Request::get(host, path).method(method);
        self.headers.iter().fold(request, |request, (name, value)| request.header(name, value))
    }
}

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_answers_the_quickstart_as_its_requests_say() {
    const TEST: &str = "quickstart";
    const STARTS: usize = 5;
    let Some(binary) = binary(TEST) else { return };
    let text = fs::read_to_string(testdata().join("quickstart.requests.yaml")).unwrap();
    let expectations: Vec<Expectation> = serde_saphyr::from_str(&text).unwrap();
    let mut echoes = Vec::new();
    for service in SERVICES {
        echoes.push(Echo::start(&format!("quickstart/{service}")).await);
    }
    let endpoints: Vec<_> = echoes.iter().map(|echo| (echo.name.clone(), echo.address)).collect();
    let mut compared = 0;
    for _ in 0..STARTS {
        let serve = Serve::start(&testdata().join("quickstart"), &endpoints, "shared").await;
        let pingsix = PingSix::start(&binary, serve.etcd, SCOPE).await;
        for expectation in &expectations {
            let replies = ask_all(pingsix.address, &vec![expectation.request(); REPEATS]).await;
            let status = expectation.status.unwrap_or(200);
            assert!(replies.iter().all(|reply| reply.status == status), "{}", expectation.request);
            let backends: BTreeSet<&str> = replies.iter().filter_map(|reply| reply.header(BACKEND)).collect();
            let expected: BTreeSet<&str> = expectation.backends.keys().map(String::as_str).collect();
            assert_eq!(backends, expected, "{}", expectation.request);
            compared += replies.len();
        }
    }
    print_message(&format!(
        "{TEST}: {compared} requests compared, {} different ones, in {STARTS} process starts",
        expectations.len()
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_follows_a_manifest_that_changes_on_disk() {
    const TEST: &str = "changing manifests";
    const CHANGES: usize = 10;
    const WAIT_TIMEOUT: Duration = Duration::from_secs(20);
    let Some(binary) = binary(TEST) else { return };
    let directory = tempfile::tempdir().unwrap();
    for file in ["gateway.yaml", "backends.yaml", "routes.yaml"] {
        fs::copy(testdata().join("quickstart").join(file), directory.path().join(file)).unwrap();
    }
    let echoes = [Echo::start("quickstart/site").await, Echo::start("quickstart/cart").await];
    let endpoints: Vec<_> = echoes.iter().map(|echo| (echo.name.clone(), echo.address)).collect();
    let serve = Serve::start(directory.path(), &endpoints, "shared").await;
    let pingsix = PingSix::start(&binary, serve.etcd, SCOPE).await;
    let routes = fs::read_to_string(directory.path().join("routes.yaml")).unwrap();
    let mut slowest = Duration::ZERO;
    for change in 0..CHANGES {
        let path = format!("/moved-{change}");
        let asked = [Request::get("shop.example.com", &path)];
        let before = ask_all(pingsix.address, &asked).await;
        assert_eq!(before[0].header(BACKEND), Some("quickstart/site"));
        fs::write(directory.path().join(".new"), routes.replace("value: /cart", &format!("value: {path}")))
            .unwrap();
        fs::rename(directory.path().join(".new"), directory.path().join("routes.yaml")).unwrap();
        let changed = Instant::now();
        while ask_all(pingsix.address, &asked).await[0].header(BACKEND) != Some("quickstart/cart") {
            assert!(changed.elapsed() < WAIT_TIMEOUT, "{path} is not served: {}", pingsix.log());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        slowest = slowest.max(changed.elapsed());
    }
    print_message(&format!("{TEST}: {CHANGES} changes served, the slowest after {} ms", slowest.as_millis()));
}
