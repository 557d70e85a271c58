//! Credentials from a program that the kubeconfig names, as clouds have them.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::scripted::{Scripted, list};
use crate::support::{Manifests, Run, run};

/// A server that knows one token.
fn server() -> Scripted {
    Scripted::start(|asked| {
        let is_known = asked.authorization == "Bearer token-of-the-program";
        (!is_known).then(|| (401, "{}".to_owned())).or_else(|| Some((200, list(0..1, None))))
    })
}

/// Runs `check` with a program as the source of credentials.
fn check(server: &Scripted, script: &str) -> Run {
    let program = Manifests::new(&[("credentials", &format!("#!/bin/sh\n{script}\n"))]);
    let path = program.path().join("credentials");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let exec: Value = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
        "command": path.to_str().unwrap(), "args": ["get-token"],
        "env": [{ "name": "PROFILE", "value": "shop" }],
    });
    let files = server.kubeconfig(&json!({ "exec": exec }));
    let path = files.path().join("config.yaml");
    let run = run(["check", "--cluster", "--kubeconfig", path.to_str().unwrap()]);
    assert!(!run.err.contains("token-of") && !run.out.contains("token-of"), "{}", run.err);
    run
}

/// A script that prints a token.
fn prints(token: &str) -> String {
    let credential = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": { "token": token },
    });
    format!("[ \"$1\" = get-token ] && [ \"$PROFILE\" = shop ] && echo '{credential}'")
}

#[test]
fn a_program_of_the_kubeconfig_gives_the_credentials() {
    let server = server();
    check(&server, &prints("token-of-the-program")).exits(1).prints("1 error, 0 warnings (1 object");
    assert!(!server.asked().is_empty());
    check(&server, &prints("token-of-another-program"))
        .exits(2)
        .prints_error("cannot list Service: the API server does not accept the credentials of the user");
}

#[test]
fn a_program_without_credentials_is_named() {
    let server = server();
    for script in ["echo token-of-the-program >&2; exit 3", "echo '{\"token-of\": 1}'", "exit 0"] {
        let failed = check(&server, script).exits(2);
        assert!(failed.err.starts_with("error: cannot "), "{script}: {}", failed.err);
    }
    assert!(server.asked().is_empty());
}
