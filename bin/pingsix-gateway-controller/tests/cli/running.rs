//! The running controller: pages, logs, signals.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use crate::program;

/// Nobody listens there.
const KUBECONFIG: &str = "\
apiVersion: v1
kind: Config
current-context: test
clusters: [{name: test, cluster: {server: 'http://127.0.0.1:1'}}]
users: [{name: test, user: {token: canary-token}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
";

/// How long any line may take to be logged.
const PATIENCE: Duration = Duration::from_secs(30);

struct Controller {
    process: Child,
    log: mpsc::Receiver<String>,
    /// What was logged so far.
    logged: Vec<Value>,
    _directory: tempfile::TempDir,
}

impl Drop for Controller {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Controller {
    fn start(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let kubeconfig = directory.path().join("kubeconfig");
        std::fs::write(&kubeconfig, KUBECONFIG).unwrap();
        let mut process = program()
            .args(["--health-address=127.0.0.1:0", "--feed-address=127.0.0.1:0"])
            .args(["--log-format=json", "--log-filter=debug", "--shutdown-grace=5s"])
            .arg(format!("--kube-config={}", kubeconfig.display()))
            .arg(format!("--feed-state-file={}", directory.path().join("revisions").display()))
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Read at once: a program whose log nobody reads waits with it.
        let (lines, log) = mpsc::channel();
        let stderr = BufReader::new(process.stderr.take().unwrap());
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).try_for_each(|line| lines.send(line))
        });
        Self { process, log, logged: Vec::new(), _directory: directory }
    }

    /// The next line of the log that is about something.
    fn line(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.log.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|fault| panic!("{fault}: {:?}", self.logged));
            let line: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
            self.logged.push(line.clone());
            if wanted(&line) {
                return line;
            }
        }
    }

    fn address_of(&mut self, server: &str) -> SocketAddr {
        let line = self.line(|line| line["server"] == server && line["message"] == "serving HTTP");
        line["address"].as_str().unwrap().parse().unwrap()
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.process.id().to_string()]).status().unwrap();
        assert!(status.success());
    }
}

fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer)
}

#[test]
fn pages_are_served_and_a_signal_ends_it_in_order() {
    let mut controller = Controller::start(&["--debug-address=127.0.0.1:0"]);
    let health = controller.address_of("health");
    let debug = controller.address_of("debug");
    let feed = controller.line(|line| line["message"] == "serving the etcd protocol");
    assert!(feed["timestamp"].is_string() && feed["level"] == "INFO", "{feed}");

    assert_eq!(get(health, "/livez").0, 200);
    let (status, page) = get(health, "/readyz");
    assert_eq!(status, 503, "nothing is known of the cluster: {page}");
    let (status, page) = get(health, "/metrics");
    assert_eq!(status, 200);
    assert!(
        page.contains("pingsix_gateway_build_info{version=")
            && page.contains("pingsix_gateway_feed_open 0\n"),
        "{page}"
    );
    assert_eq!(get(debug, "/debug").0, 200);
    assert_eq!(get(health, "/debug").0, 404);

    controller.signal("-TERM");
    let stopping = controller.line(|line| line["message"] == "stopping");
    assert_eq!(stopping["signal"], "SIGTERM");
    controller.line(|line| line["message"] == "stopped serving");
    controller.line(|line| line["message"] == "stopped");
    assert_eq!(controller.process.wait().unwrap().code(), Some(0));
    assert!(!format!("{:?}", controller.logged).contains("canary-token"));
}

#[test]
fn ctrl_c_ends_it_too() {
    let mut controller = Controller::start(&["--debug-address=off"]);
    controller.line(|line| line["message"] == "serving the etcd protocol");
    controller.signal("-INT");
    assert_eq!(controller.line(|line| line["message"] == "stopping")["signal"], "SIGINT");
    assert_eq!(controller.process.wait().unwrap().code(), Some(0));
    let debug = controller.logged.iter().any(|line| line["server"] == "debug");
    assert!(!debug, "nobody asked for dumps");
}

#[test]
fn an_address_that_is_taken_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let output = program()
        .args(["--health-address=127.0.0.1:0", "--feed-address=127.0.0.1:0"])
        .arg(format!("--debug-address={address}"))
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(errors.contains(&format!("cannot listen on {address} (debug.address)")), "{errors}");
}

#[test]
fn tls_that_cannot_be_used_is_named_and_its_key_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let [cert, key] = ["tls.crt", "tls.key"].map(|name| directory.path().join(name));
    std::fs::write(&cert, "no certificate").unwrap();
    std::fs::write(&key, "canary-key").unwrap();
    let output = program()
        .args(["--health-address=127.0.0.1:0", "--debug-address=off", "--feed-address=127.0.0.1:0"])
        .arg(format!("--feed-tls-cert={}", cert.display()))
        .arg(format!("--feed-tls-key={}", key.display()))
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(errors.contains("cannot start the feed (feed.tls): ") && errors.contains("tls.crt"), "{errors}");
    assert!(!errors.contains("canary-key"), "{errors}");
}
