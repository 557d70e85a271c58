//! The guides about migrations run from their first command to their last.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use pingsix_test_programs::commands;
use serde_json::Value;

use crate::root;

/// Stands for kubectl: it takes manifests that are there, and has the Gateways of the files.
const KUBECTL: &str = r#"#!/bin/sh
case "$*" in
"get gateway "*) grep -q "^  name: $3$" *.yaml ;;
"apply "*"-f "*) for file; do :; done; grep -q "^kind: " "$file" ;;
"delete gateway "* | "delete httproute "*) ;;
*) echo "kubectl $*: not known" >&2; exit 1 ;;
esac
"#;

/// Stands for curl: at the new address, it asks the program for the answer to the request.
const CURL: &str = r#"#!/bin/sh
case "$*" in *:198.51.100.7*) echo "the answer of the old controller"; exit ;; esac
left=$#
while [ "$left" -gt 0 ]; do
  case "$1" in
  -i) shift; left=$((left - 1)) ;;
  --resolve) shift 2; left=$((left - 2)) ;;
  *) set -- "$@" "$1"; shift; left=$((left - 1)) ;;
  esac
done
exec pingsix-gatewayctl explain all.yaml $OPTIONS GET "$@"
"#;

/// Runs the program, which reads the input of the guide and its class in the place of a cluster.
const PROGRAM: &str = r#"#!/bin/sh
for argument; do
  shift
  case "$argument" in
  --cluster) set -- "$@" "$INPUT" class.yaml ;;
  *) set -- "$@" "$argument" ;;
  esac
done
exec "$PROGRAM" "$@"
"#;

/// A page whose commands run one after another.
struct Guide {
    page: &'static str,
    /// The objects of the cluster.
    input: &'static str,
    /// Further arguments of `explain`.
    options: &'static str,
    /// The number of its commands.
    commands: usize,
}

fn program(directory: &Path, name: &str, text: &str) {
    let path = directory.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

impl Guide {
    /// Runs the commands in a new directory. Returns it with the answers to requests.
    fn run(&self) -> (tempfile::TempDir, Vec<String>) {
        let page = fs::read_to_string(root().join(self.page)).unwrap();
        // Other commands are examples with their output.
        let commands: Vec<&str> =
            commands(&page).into_iter().filter(|command| !command.starts_with("cargo run ")).collect();
        assert_eq!(commands.len(), self.commands, "{commands:#?}");
        let directory = tempfile::tempdir().unwrap();
        let programs = directory.path().join("bin");
        fs::create_dir(&programs).unwrap();
        program(&programs, "kubectl", KUBECTL);
        program(&programs, "curl", CURL);
        program(&programs, "pingsix-gatewayctl", PROGRAM);
        // The reader saves the first manifest of the page, which is the class.
        let (_, class) = page.split_once("```yaml\n").unwrap();
        let (class, _) = class.split_once("```").unwrap();
        fs::write(directory.path().join("class.yaml"), class).unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let mut answers = Vec::new();
        for command in &commands {
            let output = Command::new("sh")
                .args(["-e", "-c", command])
                .current_dir(directory.path())
                .env("PATH", &path)
                .env("INPUT", root().join(self.input).canonicalize().unwrap())
                .env("OPTIONS", self.options)
                .env("PROGRAM", env!("CARGO_BIN_EXE_pingsix-gatewayctl"))
                .output()
                .unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {command}: {errors}", self.page);
            let output = String::from_utf8(output.stdout).unwrap();
            if output.contains("  answer ") {
                answers.push(output);
            }
        }
        (directory, answers)
    }
}

#[test]
fn every_command_of_the_guide_from_ingress_nginx_succeeds() {
    let guide = Guide {
        page: "docs/how-to/from-ingress-nginx.md",
        input: "testdata/migrations/nginx-guide/input.yaml",
        options: "--layout per-port",
        commands: 14,
    };
    let (directory, answers) = guide.run();
    let [served, redirected] = answers.as_slice() else { panic!("{answers:?}") };
    assert!(served.contains("shop/pingsix:443") && served.contains("Service shop/shop"), "{served}");
    assert!(redirected.contains("308"), "{redirected}");
    let kept = fs::read_to_string(directory.path().join("ingresses.yaml")).unwrap();
    assert!(kept.contains("  name: orders-pingsix\n") && kept.contains("kind: PingsixProxy\n"), "{kept}");
    let written = fs::read_to_string(directory.path().join("gateway-api.yaml")).unwrap();
    assert!(written.contains("kind: SecurityPolicy\n") && !written.contains("kind: Service\n"), "{written}");
}

#[test]
fn every_command_of_the_guide_from_apisix_succeeds() {
    let guide = Guide {
        page: "docs/how-to/from-apisix.md",
        input: "testdata/migrations/keys/input.yaml",
        options: "",
        commands: 8,
    };
    let (directory, answers) = guide.run();
    assert_eq!(answers.len(), 2);
    for answer in answers {
        // The model does not know keys, and names the policy that asks for them.
        assert!(answer.contains("SecurityPolicy shop/orders: key-auth"), "{answer}");
        // The class has managed data planes, one for each port.
        assert!(answer.contains("shop/pingsix:80"), "{answer}");
    }
    let written = fs::read_to_string(directory.path().join("gateway-api.yaml")).unwrap();
    assert!(written.contains("kind: SecurityPolicy\n") && !written.contains("kind: Service\n"), "{written}");
}

#[test]
fn every_command_of_the_guide_from_the_go_controller_succeeds() {
    let guide = Guide {
        page: "docs/how-to/from-the-go-controller.md",
        input: "testdata/migrations/go-controller-copies/input.yaml",
        options: "",
        commands: 14,
    };
    let (directory, answers) = guide.run();
    let [asked, open] = answers.as_slice() else { panic!("{answers:?}") };
    assert!(asked.contains("HTTPRoute shop/orders-pingsix") && asked.contains("key-auth"), "{asked}");
    assert!(open.contains("Service shop/site") && !open.contains("key-auth"), "{open}");
    // The guide applies no object of the Go controller again.
    let written = fs::read_to_string(directory.path().join("copies.yaml")).unwrap();
    let documents = serde_saphyr::from_multiple::<Value>(&written).unwrap();
    let is_served = |object: &&Value| ["Gateway", "HTTPRoute"].iter().any(|kind| object["kind"] == *kind);
    let names = documents.iter().filter(is_served).map(|object| object["metadata"]["name"].as_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["web-pingsix", "beta-pingsix", "orders-pingsix"]);
}
