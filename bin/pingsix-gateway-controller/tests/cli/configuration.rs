//! Arguments, variables and exit codes.

use std::process::Output;

use crate::program;

fn run(arguments: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } =
        program().args(arguments).envs(variables.iter().copied()).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[test]
fn help_reads_well() {
    let (code, help, _) = run(&["--help"], &[("PINGSIX_GATEWAY_ROOT", "/canary")]);
    assert_eq!(code, Some(0));
    for part in [
        "Serves the Gateways, routes and Ingresses of a Kubernetes cluster with PingSIX.",
        "Exit codes: 0 after SIGTERM or SIGINT, 1 after a failure, 2 for a configuration that cannot be used.",
        "--feed-address <IP:PORT>",
        "[env: PINGSIX_GATEWAY_FEED_ADDRESS]",
        "[default: 127.0.0.1:2379]",
        "--leader-elect[=<true|false>]",
    ] {
        assert!(help.contains(part), "{part} is not in\n{help}");
    }
    let headings = [
        "Translation:",
        "Watching:",
        "Statuses:",
        "Feed:",
        "Leader election:",
        "Pace:",
        "Kubernetes:",
        "Operations:",
    ];
    let places: Vec<_> =
        headings.iter().map(|heading| help.find(&format!("\n{heading}\n")).unwrap()).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(help.find("--config <") < help.find("--check-config"), "in the order of declaration");
    assert!(help.find("--controller-name") < help.find("--budget-bytes"), "in the order of declaration");
    assert!(!help.contains("canary"));
    let (code, version, _) = run(&["--version"], &[]);
    assert_eq!(
        (code, version.as_str()),
        (Some(0), concat!("pingsix-gateway-controller ", env!("CARGO_PKG_VERSION"), "\n"))
    );
}

#[test]
fn a_flag_counts_more_than_a_variable_and_that_more_than_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config.yaml");
    std::fs::write(&file, "root: /file\nlayout: perPort\nlog: {format: json}\nwatch: {namespaces: [c]}\n")
        .unwrap();
    let (code, printed, errors) = run(
        &["--print-config", "--root=/flag"],
        &[
            ("PINGSIX_GATEWAY_CONFIG", file.to_str().unwrap()),
            ("PINGSIX_GATEWAY_ROOT", "/variable"),
            ("PINGSIX_GATEWAY_LOG_FORMAT", "text"),
            ("PINGSIX_GATEWAY_WATCH_NAMESPACES", "a,b"),
            // Of a Service called pingsix-gateway.
            ("PINGSIX_GATEWAY_PORT", "tcp://10.0.0.1:80"),
        ],
    );
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    for line in ["root: /flag\n", "  format: text\n", "layout: perPort\n", "  - a\n", "  - b\n"] {
        assert!(printed.contains(line), "{line} is not in\n{printed}");
    }
    assert!(!printed.contains("- c\n"), "{printed}");
}

#[test]
fn an_invalid_option_is_named_and_exits_with_2() {
    let (code, output, errors) = run(
        &["--check-config", "--pace-rest-factor=x"],
        &[("PINGSIX_GATEWAY_FEED_ADDRESS", "192.0.2.1:2379"), ("PINGSIX_GATEWAY_LEADER_ELECT", "")],
    );
    assert_eq!((code, output.as_str()), (Some(2), ""));
    let lines: Vec<_> = errors.lines().collect();
    assert_eq!(lines.len(), 3, "{errors}");
    assert_eq!(lines[0], "error: --pace-rest-factor: \"x\": expected a whole number");
    assert!(
        lines[1].starts_with("error: PINGSIX_GATEWAY_FEED_ADDRESS: \"192.0.2.1:2379\" can be reached"),
        "{errors}"
    );
    assert_eq!(lines[2], "error: PINGSIX_GATEWAY_LEADER_ELECT: \"\": expected true or false");
    assert_eq!(run(&["--check-config"], &[]), (Some(0), String::new(), String::new()));
}

#[test]
fn arguments_that_do_not_exist_end_with_2() {
    let (code, _, errors) = run(&["--feed-adress=127.0.0.1:1"], &[]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("--feed-address"), "a similar one is suggested: {errors}");
    assert_eq!(run(&["--check-config", "--print-config"], &[]).0, Some(2));
}

#[test]
fn without_an_api_server_it_ends_with_1() {
    let (code, _, errors) = run(
        &["--health-address=127.0.0.1:0", "--debug-address=off", "--feed-address=127.0.0.1:0"],
        &[("HOME", "/nowhere")],
    );
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains("error: cannot find the API server"), "{errors}");
    assert!(errors.contains("kube.config"), "{errors}");
}
