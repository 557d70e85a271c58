//! `migrate`: the goldens of `testdata/migrations`, and the command line.
//!
//! `UPDATE_MIGRATIONS=1` writes the present output and report beside the inputs; read the difference.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::sample;
use crate::support::{Run, command, run_with};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/migrations")
}

/// A directory with `input.yaml`, `output.yaml`, `report.txt` and `requests.yaml`.
struct Case {
    directory: PathBuf,
}

fn cases() -> Vec<Case> {
    let entries = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
    let mut directories: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    directories.sort();
    directories.into_iter().map(|directory| Case { directory }).collect()
}

impl Case {
    fn name(&self) -> String {
        self.directory.file_name().unwrap().to_str().unwrap().to_owned()
    }

    fn read(&self, file: &str) -> String {
        let path = self.directory.join(file);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The words behind a mark in the first lines of the input.
    fn words(&self, mark: &str) -> Vec<String> {
        let input = self.read("input.yaml");
        let line = input.lines().find_map(|line| line.strip_prefix(&format!("# {mark}: ")));
        line.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
    }

    fn run(&self, arguments: &[String]) -> Run {
        let output = command().current_dir(&self.directory).args(arguments).output().unwrap();
        Run {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn migrate(&self) -> Run {
        let mut arguments = vec!["migrate".to_owned(), "input.yaml".to_owned()];
        arguments.extend(self.words("Arguments"));
        self.run(&arguments)
    }

    /// Runs a subcommand on the output, with the options of the translation.
    fn on_output(&self, subcommand: &str, arguments: &[String]) -> Run {
        let mut all = vec![subcommand.to_owned(), "output.yaml".to_owned()];
        all.extend(arguments.iter().cloned());
        all.extend(self.words("Options"));
        self.run(&all)
    }

    fn faults(&self, update: bool) -> Vec<String> {
        let mut faults = Vec::new();
        let migrated = self.migrate();
        for (file, text) in [("output.yaml", &migrated.out), ("report.txt", &migrated.err)] {
            let path = self.directory.join(file);
            let held = fs::read_to_string(&path).unwrap_or_default();
            if held == *text {
                continue;
            }
            if update {
                fs::write(&path, text).unwrap();
            } else {
                faults.push(format!("{file} should be:\n{text}"));
            }
        }
        let has_losses = migrated.err.lines().any(|line| {
            ["  impossible  ", "  withheld    ", "  weaker      "].iter().any(|mark| line.starts_with(mark))
        });
        if migrated.code != i32::from(has_losses) {
            faults.push(format!("the exit code is {}", migrated.code));
        }
        // The output of a second run on the output is the output: what is ours stays as it is.
        let checked = self.on_output("check", &[]);
        let expected = self.words("Check").join(" ");
        if expected.is_empty() && checked.code != 0 {
            faults.push(format!("check finds:\n{}{}", checked.out, checked.err));
        } else if !expected.is_empty() && !checked.out.contains(&expected) {
            faults.push(format!("check does not find {expected:?}:\n{}", checked.out));
        }
        let explain = |arguments: &[String]| {
            let run = self.on_output("explain", arguments);
            assert!(run.code < 2, "{}: {}", self.name(), run.err);
            run.out
        };
        faults.extend(sample::check(&self.read("requests.yaml"), &explain));
        for secret in self.words("Secrets") {
            if migrated.err.contains(&secret) {
                faults.push(format!("the report has the secret {secret}"));
            }
            if outside_of_secrets(&migrated.out, &secret) {
                faults.push(format!("an object other than a Secret has the secret {secret}"));
            }
        }
        faults
    }
}

/// Whether a text stands in an object that is not a Secret.
fn outside_of_secrets(stream: &str, secret: &str) -> bool {
    stream.split("\n---\n").any(|document| {
        document.contains(secret) && !document.lines().any(|line| line.trim() == "kind: Secret")
    })
}

#[test]
fn every_migration_becomes_what_its_files_say() {
    let update = std::env::var_os("UPDATE_MIGRATIONS").is_some_and(|value| !value.is_empty());
    let mut faults = Vec::new();
    for case in cases() {
        let found = case.faults(update);
        if !found.is_empty() {
            faults.push(format!("== {}\n{}", case.name(), found.join("\n")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

#[test]
fn every_migration_says_what_it_shows() {
    for case in cases() {
        let first = case.read("input.yaml").lines().next().unwrap_or_default().to_owned();
        let sentence = first.strip_prefix("# Shows: ").unwrap_or_default();
        assert!(sentence.len() > 20 && sentence.ends_with('.'), "{}: {first:?}", case.name());
    }
}

#[test]
fn there_are_enough_migrations() {
    let names: BTreeSet<String> = cases().iter().map(Case::name).collect();
    assert!(names.len() >= 25, "{} migrations", names.len());
}

/// The plugins of the services that PingSIX gets, by name.
fn plugins(manifests: &str) -> Vec<(String, Value)> {
    let run = run_with(manifests, ["translate", "-", "-o", "etcd-json"]);
    let documents = run.json();
    let documents = documents.as_object().unwrap().iter();
    let services = documents.filter(|(key, _)| key.contains("/services/"));
    let plugins = services.filter_map(|(_, service)| service["plugins"].as_object());
    plugins.flatten().map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[test]
fn every_key_of_a_consumer_is_admitted_and_none_is_refused() {
    let case = Case { directory: root().join("keys") };
    let found = plugins(&case.migrate().exits(0).out);
    let [(name, config)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(name, "key-auth");
    let mut keys: Vec<&str> =
        config["keys"].as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["alices-key", "bobs-key"]);
    assert_eq!(config["query"], "apikey");
}
