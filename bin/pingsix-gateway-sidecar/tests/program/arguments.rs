//! Arguments that cannot be used.

use crate::process::command;

fn refused(arguments: &[&str]) -> String {
    let output = command(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn each_error_is_a_line_that_names_the_option() {
    const STREAMS: &str = "--streams";
    const ENDPOINT: &str = "--streams-endpoint=http://127.0.0.1:2379";
    const PREFIX: &str = "--streams-prefix=/pingsix-stream/shop/web";
    const FILE: &str = "--streams-file=a.yaml";
    for (arguments, errors) in [
        (&[][..], vec!["no role is asked for: use --responder or --streams"]),
        (
            &[ENDPOINT, PREFIX],
            vec![
                "no role is asked for: use --responder or --streams",
                "--streams-endpoint: needs --streams",
                "--streams-prefix: needs --streams",
            ],
        ),
        (&["--responder", FILE], vec!["--streams-file: needs --streams"]),
        (&["--responder", "--status-key-file=k"], vec!["--status-key-file: needs --status-listen"]),
        (&[STREAMS], vec!["--streams: needs --streams-endpoint or --streams-file"]),
        (&[STREAMS, ENDPOINT], vec!["--streams-endpoint: needs --streams-prefix"]),
        (&[STREAMS, ENDPOINT, PREFIX, FILE], vec!["--streams-file: excludes --streams-endpoint"]),
        (
            &[STREAMS, FILE, "--streams-ca=a.pem", "--streams-allow-plaintext"],
            vec![
                "--streams-ca: needs --streams-endpoint",
                "--streams-allow-plaintext: needs --streams-endpoint",
            ],
        ),
        (
            &[STREAMS, ENDPOINT, PREFIX, "--streams-ca=a.pem", "--streams-key=k.pem"],
            vec!["--streams-cert and --streams-key: each needs the other"],
        ),
        (
            &[STREAMS, ENDPOINT, PREFIX, "--streams-cert=c.pem", "--streams-key=k.pem"],
            vec!["--streams-cert: needs --streams-ca"],
        ),
    ] {
        let error = refused(arguments);
        let lines: Vec<&str> = error.lines().filter_map(|line| line.strip_prefix("error: ")).collect();
        assert_eq!(lines, errors, "{arguments:?}: {error}");
    }
    for (argument, problem) in [
        ("--streams-prefix=pingsix-stream", "does not start with a slash"),
        ("--drain-seconds=soon", "--drain-seconds"),
        ("--status-listen=localhost", "--status-listen"),
    ] {
        let error = refused(&[STREAMS, FILE, argument]);
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn endpoints_that_cannot_be_used_are_refused_with_the_options() {
    let fail = |endpoint: &str, more: &[&str]| {
        let endpoint = format!("--streams-endpoint={endpoint}");
        let output =
            command(&[&["--streams", &endpoint, "--streams-prefix=/s/web"], more].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{endpoint}");
        String::from_utf8(output.stderr).unwrap()
    };
    let error = fail("http://192.0.2.1:2379", &[]);
    assert!(error.contains("plaintext") && error.contains("--streams-allow-plaintext"), "{error}");
    let error = fail("https://192.0.2.1:2379", &["--streams-ca=/does/not/exist"]);
    assert!(error.contains("/does/not/exist") && error.contains("--streams-ca"), "{error}");
    let error = fail("http://root:hunter2@127.0.0.1:2379", &[]);
    assert!(!error.contains("hunter2"), "{error}");
}

#[test]
fn each_option_is_also_a_variable() {
    let mut process = command(&[]);
    process.env("PINGSIX_SIDECAR_STREAMS", "true").env("PINGSIX_SIDECAR_RESPONDER", "0");
    let output = process.output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(error, "error: --streams: needs --streams-endpoint or --streams-file\n");
}
