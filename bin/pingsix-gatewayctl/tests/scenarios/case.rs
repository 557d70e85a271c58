//! One scenario: its files, and the program's output for its input.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use pingsix_translate::pingsix::Config;
use pingsix_translate::pingsix::validate::{Rule, ValidateOptions, order_dependence, validate};
use pingsix_translate::stream::{self, StreamConfig};
use serde_json::{Map, Value};

use crate::diff::difference;

const RECIPE: &str = "If the change is meant, refresh with `just scenarios` and read the difference.";

/// A directory `<area>/<case>`.
pub(crate) struct Case {
    directory: PathBuf,
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All scenarios, sorted by name.
pub(crate) fn cases() -> Vec<Case> {
    let directories = |path: &Path| {
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect::<Vec<_>>()
    };
    let areas = directories(&root().join("testdata/scenarios"));
    let mut all: Vec<PathBuf> = areas.iter().flat_map(|area| directories(area)).collect();
    all.sort();
    all.into_iter().map(|directory| Case { directory }).collect()
}

impl Case {
    /// `<area>/<case>`
    pub(crate) fn name(&self) -> String {
        let names = self.directory.iter().rev().take(2).map(|name| name.to_str().unwrap());
        names.collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("/")
    }

    pub(crate) fn read(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.directory.join(file)).ok()
    }

    pub(crate) fn input(&self) -> String {
        self.read("input.yaml").unwrap_or_else(|| panic!("{} has no input.yaml", self.name()))
    }

    /// The flags of the line `# Options:`, for everything that translates.
    fn options(&self) -> Vec<String> {
        let input = self.input();
        let line = input.lines().find_map(|line| line.strip_prefix("# Options: "));
        line.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
    }

    /// Runs the program on the input, with the options of the scenario behind the arguments.
    pub(crate) fn run(&self, before: &[&str], after: &[String]) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_pingsix-gatewayctl"))
            .env_remove("RUST_LOG")
            .timeout(std::time::Duration::from_mins(1))
            .current_dir(&self.directory)
            .args(before)
            .arg("input.yaml")
            .args(after)
            .args(self.options())
            .output()
            .unwrap();
        let failed = !matches!(output.status.code(), Some(0 | 1));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!failed, "{}: {before:?} {after:?}: {stderr}", self.name());
        String::from_utf8(output.stdout).unwrap()
    }

    /// Compares the files with the present output, or writes them.
    pub(crate) fn compare(&self, update: bool) -> Vec<String> {
        let review = self.run(&["translate", "-o", "review"], &[]);
        let (config, status) = review.split_once("\n---\n").unwrap();
        let mut problems = Vec::new();
        for (file, text) in [("config.yaml", format!("{config}\n")), ("status.yaml", status.to_owned())] {
            let path = self.directory.join(file);
            let held = fs::read_to_string(&path).unwrap_or_default();
            if held == text {
                continue;
            }
            if update {
                fs::write(&path, text).unwrap();
                eprintln!("{}/{file} is refreshed", self.name());
            } else {
                let difference = difference(&held, &text);
                problems.push(format!("{file} is not what becomes of input.yaml:\n{difference}{RECIPE}"));
            }
        }
        problems
    }

    /// The documents as they are stored.
    fn stored(&self) -> Map<String, Value> {
        serde_json::from_str(&self.run(&["translate", "-o", "etcd-json"], &[])).unwrap()
    }

    /// The stream documents by prefix, as they are stored.
    pub(crate) fn stream_documents(&self) -> Vec<(String, StreamConfig)> {
        let shown: Value = serde_saphyr::from_str(&self.read("config.yaml").unwrap_or_default()).unwrap();
        let prefixes = shown.as_object().unwrap().keys().filter(|prefix| is_for_streams(prefix));
        let stored = self.stored();
        prefixes
            .map(|prefix| {
                let pairs = below(&stored, prefix);
                (prefix.clone(), StreamConfig::from_pairs(prefix, pairs).unwrap())
            })
            .collect()
    }

    /// Every problem a stream proxy would find with the documents as they are stored.
    pub(crate) fn refused_by_stream_proxies(&self) -> Vec<String> {
        let problems = self.stream_documents().into_iter().flat_map(|(prefix, config)| {
            let violations = stream::validate(&config);
            violations.into_iter().map(move |violation| format!("{prefix}: {violation:?}"))
        });
        problems.collect()
    }

    /// Every problem PingSIX would find with the documents as they are stored.
    pub(crate) fn refused_by_pingsix(&self) -> Vec<String> {
        let stored = self.stored();
        let shown: Value = serde_saphyr::from_str(&self.read("config.yaml").unwrap_or_default()).unwrap();
        let mut problems = Vec::new();
        let Some(shown) = shown.as_object() else { return vec!["there is no config.yaml".to_owned()] };
        for (prefix, documents) in shown {
            let pairs = below(&stored, prefix);
            if pairs.len() != documents.as_object().unwrap().len() {
                problems.push(format!("{prefix}: {} documents are stored", pairs.len()));
            }
            if is_for_streams(prefix) {
                continue;
            }
            let config = match Config::from_pairs(prefix, pairs) {
                Ok(config) => config,
                Err(error) => {
                    problems.push(format!("{prefix}: {error}"));
                    continue;
                }
            };
            let options = ValidateOptions { prefix: prefix.clone(), ..ValidateOptions::default() };
            let mut violations = validate(&config, &options);
            violations.extend(order_dependence(&config));
            // A path that is matched literally is the author's intent, and is accepted.
            violations.retain(|violation| violation.rule != Rule::LiteralWildcard);
            problems.extend(violations.iter().map(|violation| format!("{prefix}: {violation:?}")));
        }
        problems
    }
}

/// Whether the prefix is for stream proxies, and not for PingSIX.
fn is_for_streams(prefix: &str) -> bool {
    prefix.starts_with("/pingsix-stream/")
}

/// The documents below a prefix.
fn below(stored: &Map<String, Value>, prefix: &str) -> Vec<(String, String)> {
    let below = format!("{prefix}/");
    let pairs = stored.iter().filter(|(key, _)| key.starts_with(&below));
    pairs.map(|(key, value)| (key.clone(), value.to_string())).collect()
}
