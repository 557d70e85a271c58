//! The program as a plugin of kubectl.

use std::path::Path;

use assert_cmd::Command;
use pingsix_test_cluster::kubectl_or_skip;

use super::dump::{Dump, normal};
use crate::support::run;

fn plugin(arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-pingsix"));
    let output = command.args(arguments).timeout(std::time::Duration::from_mins(1)).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// The plugin reads the cluster unless files are named.
pub(super) fn input_is_the_cluster(kubeconfig: &Path, dump: &Dump) {
    let (code, out, err) = plugin(&["check", "--kubeconfig", kubeconfig.to_str().unwrap()]);
    let files = run(["check", dump.path()]);
    assert_eq!(code, files.code, "{err}");
    assert_eq!(normal(&out, dump.path()), normal(&files.out, dump.path()));
}

/// The commands of the page about this, which are a shell's but for names of programs.
pub(super) fn commands_of_the_page_run(kubeconfig: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/how-to/find-faults.md")).unwrap();
    let section = page.split("\n## ").find(|section| section.starts_with("Check a running cluster")).unwrap();
    let lines = section.split("```sh\n").skip(1).flat_map(|rest| rest.split("```").next().unwrap().lines());
    let (mut run, folder) = (0, tempfile::tempdir().unwrap());
    for line in lines.map(str::trim).filter(|line| !line.is_empty()) {
        let line = line
            .replace("kubectl pingsix", env!("CARGO_BIN_EXE_kubectl-pingsix"))
            .replace("pingsix-gatewayctl ", concat!(env!("CARGO_BIN_EXE_pingsix-gatewayctl"), " "));
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).env("KUBECONFIG", kubeconfig).current_dir(&folder);
        let output = shell.timeout(std::time::Duration::from_mins(1)).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 1)), "{line}: {output:?}");
        run += 1;
    }
    assert_eq!(run, 5);
    assert!(folder.path().join("kubectl_complete-pingsix").is_file());
}

#[test]
fn help_of_the_plugin_names_the_plugin() {
    let (code, out, _) = plugin(&["--help"]);
    assert_eq!(code, 0);
    assert!(out.contains("Usage: kubectl pingsix <COMMAND>"), "{out}");
    for command in
        ["check", "explain", "translate", "diff", "migrate", "serve", "pingsix-config", "completions"]
    {
        let (code, out, _) = plugin(&[command, "--help"]);
        assert_eq!(code, 0);
        assert!(out.contains(&format!("Usage: kubectl pingsix {command}")), "{out}");
        assert!(!out.contains("pingsix-gatewayctl"), "{out}");
    }
    assert!(plugin(&["--version"]).1.starts_with("kubectl-pingsix "));
    let (code, _, err) = plugin(&["check", "--unknown"]);
    assert!(code == 2 && err.contains("Usage: kubectl pingsix check"), "{err}");
}

#[test]
fn candidates_are_in_the_form_that_kubectl_reads() {
    let complete = |words: &[&str]| {
        let (code, out, err) = plugin(&[&["__complete", "--"], words].concat());
        assert_eq!(code, 0, "{err}");
        out
    };
    let commands = complete(&["c"]);
    assert!(commands.starts_with("check\t") && commands.contains("\ncompletions\t"), "{commands}");
    assert!(commands.contains("\ncrds\t") && commands.ends_with("\n:4\n"), "{commands}");
    assert!(!complete(&[""]).contains("__complete"));
    let options = complete(&["check", "--names"]);
    assert!(options.starts_with("--namespace\t") && options.ends_with("\n:4\n"), "{options}");
    assert_eq!(complete(&["translate", "-o", "et"]), "etcd-json\n:4\n");
    assert_eq!(complete(&["translate", "--output=et"]), "--output=etcd-json\n:4\n");
    assert_eq!(complete(&["check", "manif"]), ":0\n");
    assert_eq!(complete(&["nonsense", ""]), ":4\n");
    let script = plugin(&["completions", "kubectl"]).1;
    assert!(script.starts_with("#!/bin/sh\n") && script.contains("kubectl-pingsix __complete"), "{script}");
    run(["completions", "bash"]).exits(0).prints("pingsix-gatewayctl");
}

/// kubectl runs the executable `kubectl_complete-NAME` of the PATH with the words behind the name of the plugin, and reads a
/// candidate per line and the directive of cobra in the last line (kubectl: `pkg/cmd/plugin/plugin_completion.go`).
#[test]
fn kubectl_completes_the_plugin() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let Some(kubectl) = kubectl_or_skip() else { return };
    let folder = tempfile::tempdir().unwrap();
    symlink(env!("CARGO_BIN_EXE_kubectl-pingsix"), folder.path().join("kubectl-pingsix")).unwrap();
    let executable = folder.path().join("kubectl_complete-pingsix");
    std::fs::write(&executable, plugin(&["completions", "kubectl"]).1).unwrap();
    std::fs::set_permissions(&executable, std::fs::Permissions::from_mode(0o755)).unwrap();
    let complete = |words: &[&str]| {
        let mut command = Command::new(&kubectl);
        let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
        command.args(["__complete", "pingsix"]).args(words).env("PATH", path).env("HOME", folder.path());
        let output = command.timeout(std::time::Duration::from_mins(1)).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let (candidates, directive) = text.trim_end().rsplit_once('\n').unwrap_or(("", text.trim_end()));
        let directive: i32 = directive.strip_prefix(':').unwrap().parse().unwrap();
        let words = candidates.lines().map(|line| line.split('\t').next().unwrap().to_owned());
        (words.collect::<Vec<_>>(), directive)
    };
    assert_eq!(complete(&["expl"]), (vec!["explain".to_owned()], 4));
    assert_eq!(complete(&["check", "--names"]), (vec!["--namespace".to_owned()], 4));
    // The candidates are files, which the shell knows.
    assert_eq!(complete(&["check", ""]).1, 0);
    // A word that looks like an option of the program itself is one of the command line.
    assert_eq!(complete(&["--", ""]).1, 4);
}
