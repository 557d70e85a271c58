//! The guide from ingress-nginx runs from its first command to its last.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::root;

const PAGE: &str = "docs/how-to/from-ingress-nginx.md";

/// Objects of a cluster, for the program that stands for kubectl.
const INPUT: &str = "testdata/migrations/nginx-guide/input.yaml";

/// Stands for kubectl: it reads the objects, and takes manifests that are there.
const KUBECTL: &str = r#"#!/bin/sh
case "$*" in
"get "*" -o yaml") cat "$INPUT" ;;
"get gateway "*) grep -q "^kind: Gateway$" gateway-api.yaml ;;
"apply "*"-f "*) for file; do :; done; grep -q "^kind: " "$file" ;;
"delete gateway "*) ;;
*) echo "kubectl $*: not known" >&2; exit 1 ;;
esac
"#;

/// Stands for curl: it asks the program for the answer to the request.
const CURL: &str = r#"#!/bin/sh
for url; do :; done
pingsix-gatewayctl explain all.yaml --layout per-port GET "$url"
"#;

/// The commands of a page that are no examples with their output, one after another.
fn commands(page: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut is_command = false;
    for line in page.lines().map(str::trim) {
        match line {
            "```sh" => is_command = true,
            "```" => is_command = false,
            _ if is_command && !line.starts_with("cargo run ") => commands.push(line.to_owned()),
            _ => {}
        }
    }
    commands
}

fn program(directory: &Path, name: &str, text: &str) {
    let path = directory.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn every_command_of_the_guide_from_ingress_nginx_succeeds() {
    let page = fs::read_to_string(root().join(PAGE)).unwrap();
    let commands = commands(&page);
    assert_eq!(commands.len(), 13, "{commands:#?}");
    let directory = tempfile::tempdir().unwrap();
    let programs = directory.path().join("bin");
    fs::create_dir(&programs).unwrap();
    program(&programs, "kubectl", KUBECTL);
    program(&programs, "curl", CURL);
    let own = Path::new(env!("CARGO_BIN_EXE_pingsix-gatewayctl"));
    std::os::unix::fs::symlink(own, programs.join("pingsix-gatewayctl")).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut outputs = Vec::new();
    for command in &commands {
        let output = Command::new("sh")
            .args(["-e", "-c", command])
            .current_dir(directory.path())
            .env("PATH", &path)
            .env("INPUT", root().join(INPUT).canonicalize().unwrap())
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {errors}");
        outputs.push(String::from_utf8(output.stdout).unwrap());
    }
    let answers: Vec<&String> = outputs.iter().filter(|output| output.contains("  answer ")).collect();
    let [served, redirected] = answers.as_slice() else { panic!("{answers:?}") };
    assert!(served.contains("Service shop/shop"), "{served}");
    assert!(redirected.contains("308"), "{redirected}");
    let kept = fs::read_to_string(directory.path().join("ingresses.yaml")).unwrap();
    assert!(kept.contains("  name: orders-pingsix\n") && kept.contains("kind: PingsixProxy\n"), "{kept}");
    let written = fs::read_to_string(directory.path().join("gateway-api.yaml")).unwrap();
    assert!(written.contains("kind: SecurityPolicy\n") && !written.contains("kind: Service\n"), "{written}");
}
