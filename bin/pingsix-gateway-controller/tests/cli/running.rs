//! The running controller, where no API server answers: pages, logs, signals.

use crate::process::{Controller, get};
use crate::program;

/// No server listens there.
const KUBECONFIG: &str = "\
apiVersion: v1
kind: Config
current-context: test
clusters: [{name: test, cluster: {server: 'http://127.0.0.1:1'}}]
users: [{name: test, user: {token: canary-token}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
";

fn start(arguments: &[&str]) -> Controller {
    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = directory.path().join("kubeconfig");
    std::fs::write(&kubeconfig, KUBECONFIG).unwrap();
    Controller::start(directory, &kubeconfig, arguments, &[])
}

#[test]
fn pages_are_served_and_a_signal_ends_it_in_order() {
    let mut controller = start(&["--debug-address=127.0.0.1:0"]);
    let health = controller.address_of("health");
    let debug = controller.address_of("debug");
    let feed = controller.line_of(|line| line["message"] == "serving the etcd protocol");
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
    let (status, pages) = get(debug, "/debug");
    assert_eq!(status, 200);
    let (_, pages) = pages.split_once("\r\n\r\n").unwrap();
    let pages: Vec<String> = serde_json::from_str(pages).unwrap();
    let documented = include_str!("../../../../docs/reference/operations.md");
    let undocumented: Vec<_> =
        pages.iter().filter(|page| !documented.contains(&format!("| `{page}` |"))).collect();
    assert!(
        !pages.is_empty() && undocumented.is_empty(),
        "docs/reference/operations.md lacks {undocumented:?}"
    );
    assert_eq!(get(health, "/debug").0, 404);

    controller.signal("-TERM");
    let stopping = controller.line(|line| line["message"] == "stopping");
    assert_eq!(stopping["signal"], "SIGTERM");
    controller.line(|line| line["message"] == "stopped serving");
    controller.line(|line| line["message"] == "stopped");
    assert_eq!(controller.ended(), Some(0));
    assert!(!format!("{:?}", controller.logged).contains("canary-token"));
}

#[test]
fn ctrl_c_ends_it_too() {
    let mut controller = start(&["--debug-address=off"]);
    controller.line(|line| line["message"] == "serving the etcd protocol");
    controller.signal("-INT");
    assert_eq!(controller.line(|line| line["message"] == "stopping")["signal"], "SIGINT");
    assert_eq!(controller.ended(), Some(0));
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
    // The first request follows the start of the feed.
    let kubeconfig = directory.path().join("kubeconfig");
    std::fs::write(&kubeconfig, KUBECONFIG).unwrap();
    let output = program()
        .args(["--health-address=127.0.0.1:0", "--debug-address=off", "--feed-address=127.0.0.1:0"])
        .arg(format!("--kube-config={}", kubeconfig.display()))
        .arg(format!("--feed-tls-cert={}", cert.display()))
        .arg(format!("--feed-tls-key={}", key.display()))
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(errors.contains("cannot start the feed (feed.tls): ") && errors.contains("tls.crt"), "{errors}");
    assert!(!errors.contains("canary-key"), "{errors}");
}
