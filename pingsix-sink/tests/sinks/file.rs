//! The file sink, and the real PingSIX with its files.

use crate::gateway;
use std::fs;
use std::path::{Path, PathBuf};

use crate::authority::Authority;
use pingsix_sink::contract::documents::{desired, scope};
use pingsix_sink::file::FileLocation;
use pingsix_sink::{Changed, Desired, Effect, FileSink, Sink};
use pingsix_test_programs::{free_address, pingsix};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A directory with a base configuration, and the file of the sink.
struct Files(TempDir);

impl Files {
    fn new(base: &str) -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        fs::write(files.base(), base).unwrap();
        files
    }

    fn base(&self) -> PathBuf {
        self.0.path().join("base.yaml")
    }

    fn config(&self) -> PathBuf {
        self.0.path().join("config.yaml")
    }

    async fn sink(&self) -> FileSink {
        FileSink::open(FileLocation::File(self.config()), Some(self.base())).await.unwrap()
    }

    fn read(&self) -> String {
        fs::read_to_string(self.config()).unwrap()
    }
}

const BASE: &str = "pingsix:
  listeners: [{ address: 127.0.0.1:80 }]
upstreams:
- { id: mine, nodes: { '127.0.0.1:9': 1 } }
";

fn web(documents: &[(&str, &str)]) -> Desired {
    desired("/p/web", documents)
}

fn decode(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

#[tokio::test]
async fn documents_join_what_the_base_has() {
    let files = Files::new(BASE);
    let sink = files.sink().await;
    let state = web(&[
        ("routes/r", r#"{"uri":"/{*p}","upstream_id":"u"}"#),
        ("upstreams/u", r#"{"id":"other","nodes":{"127.0.0.1:8":1}}"#),
    ]);
    let published = sink.publish(&state).await.unwrap();
    assert_eq!(published.changed, Changed { created: 2, ..Changed::default() });
    assert_eq!(sink.effect(), Effect::OnRestart);
    assert_eq!(
        decode(&files.read()),
        json!({
            "pingsix": {"listeners": [{"address": "127.0.0.1:80"}]},
            "upstreams": [
                {"id": "mine", "nodes": {"127.0.0.1:9": 1}},
                {"id": "u", "nodes": {"127.0.0.1:8": 1}},
            ],
            "routes": [{"id": "r", "uri": "/{*p}", "upstream_id": "u"}],
        })
    );
    assert_eq!(sink.documents(&scope("/p/web")).await.unwrap().unwrap().len(), 2, "without the user's own");
}

#[tokio::test]
async fn equal_content_is_not_written_again_also_by_the_next_process() {
    let files = Files::new(BASE);
    let state = web(&[("upstreams/u", r#"{"nodes":{"127.0.0.1:8":1}}"#)]);
    let first = files.sink().await.publish(&state).await.unwrap();
    let (written, text) = (fs::metadata(files.config()).unwrap().modified().unwrap(), files.read());

    let sink = files.sink().await;
    let again = sink.publish(&state).await.unwrap();
    assert!(again.changed.is_empty());
    assert_eq!(again.revision, first.revision);
    assert_eq!(fs::metadata(files.config()).unwrap().modified().unwrap(), written);

    // A change and its reversal: the text is the same except for its revision.
    let other = web(&[
        ("upstreams/u", r#"{"nodes":{"127.0.0.1:7":1}}"#),
        ("upstreams/v", r#"{"nodes":{"127.0.0.1:8":1}}"#),
    ]);
    let second = sink.publish(&other).await.unwrap();
    assert_eq!(second.changed, Changed { created: 1, updated: 1, deleted: 0 });
    assert!(second.revision > first.revision);
    let third = sink.publish(&state).await.unwrap();
    assert_eq!(third.changed, Changed { created: 0, updated: 1, deleted: 1 });
    assert_eq!(files.read().split_once('\n').unwrap().1, text.split_once('\n').unwrap().1);
    let empty = sink.publish(&Desired::empty(scope("/p/web"))).await.unwrap();
    assert_eq!(empty.changed.deleted, 1);
    assert_eq!(decode(&files.read()), decode(BASE));
}

#[tokio::test]
async fn foreign_changes_of_the_file_are_reverted_and_the_base_is_read_again() {
    let files = Files::new(BASE);
    let sink = files.sink().await;
    let state = web(&[("upstreams/u", r#"{"nodes":{"127.0.0.1:8":1}}"#)]);
    let first = sink.publish(&state).await.unwrap();
    let good = files.read();
    for edited in [
        good.replace("127.0.0.1:8", "127.0.0.1:6"),
        format!("{good}routes: [{{ id: x }}]\n"),
        format!("{good}: ]"),
    ] {
        fs::write(files.config(), edited).unwrap();
        let mended = sink.publish(&state).await.unwrap();
        assert!(mended.changed.total() == 1 && mended.revision > first.revision, "{mended:?}");
        assert_eq!(files.read().split_once('\n').unwrap().1, good.split_once('\n').unwrap().1);
    }
    fs::remove_file(files.config()).unwrap();
    sink.publish(&state).await.unwrap();
    fs::write(files.base(), BASE.replace(":80", ":81")).unwrap();
    let published = sink.publish(&state).await.unwrap();
    assert!(published.changed.is_empty(), "no document changed");
    assert!(files.read().contains("127.0.0.1:81"));
}

#[tokio::test]
async fn foreign_files_and_base_resources_are_not_replaced() {
    let files = Files::new(BASE);
    let sink = files.sink().await;
    let clash = sink.publish(&web(&[("upstreams/mine", "{}")])).await.unwrap_err();
    let base = files.base().display().to_string();
    assert_eq!(
        clash.to_string(),
        format!("document upstreams/mine of test has the id of a resource in the base configuration {base}")
    );
    assert!(!files.config().exists());

    fs::write(files.config(), BASE).unwrap();
    let error = sink.publish(&web(&[])).await.unwrap_err().to_string();
    assert!(error.contains("config.yaml was not written by this program"), "{error}");
    assert_eq!(files.read(), BASE);
    fs::write(files.config(), "").unwrap();
    sink.publish(&web(&[])).await.unwrap();

    let error = sink.publish(&Desired::empty(scope("/p/api"))).await.unwrap_err();
    assert_eq!(error.category(), "one_scope", "{error}");
    let again = files.sink().await;
    let error = again.publish(&Desired::empty(scope("/p/api"))).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the target is for one scope: it holds /p/web, and /p/api cannot be published to it"
    );

    let itself = FileSink::open(FileLocation::File(files.base()), Some(files.base())).await.unwrap();
    let error = itself.publish(&web(&[])).await.unwrap_err().to_string();
    assert!(error.contains("is the base configuration"), "{error}");
    assert_eq!(fs::read_to_string(files.base()).unwrap(), BASE);
}

#[tokio::test]
async fn a_base_that_cannot_be_used_is_named_and_leaves_the_file_alone() {
    let files = Files::new(BASE);
    let sink = files.sink().await;
    sink.publish(&web(&[])).await.unwrap();
    let good = files.read();
    for (base, problem) in [
        ("pingsix: { etcd: { host: [x] } }", "has pingsix.etcd, and with it PingSIX ignores"),
        ("- a", "is no mapping"),
        ("routes: {}", "has resources that are no list"),
        ("a: sesame\nb: \"sesame", "line"),
        ("a: 1\n---\nb: 2", "is not YAML, or several documents of it"),
    ] {
        fs::write(files.base(), base).unwrap();
        let error = sink.publish(&web(&[("upstreams/u", "{}")])).await.unwrap_err().to_string();
        assert!(error.contains("base.yaml") && error.contains(problem), "{error}");
        assert!(!error.contains("sesame"), "{error}");
    }
    fs::remove_file(files.base()).unwrap();
    assert!(sink.publish(&web(&[])).await.unwrap_err().is_retryable());
    assert_eq!(files.read(), good);
}

#[tokio::test]
async fn a_directory_has_a_file_for_each_scope() {
    let directory = tempfile::tempdir().unwrap();
    let open = || FileSink::open(FileLocation::Directory(directory.path().to_owned()), None);
    let sink = open().await.unwrap();
    let first = sink.publish(&desired("/p/web", &[("upstreams/u", "{}")])).await.unwrap();
    let second = sink.publish(&desired("/p/web:80", &[("upstreams/u", "{}")])).await.unwrap();
    assert!(second.revision > first.revision);
    assert!(
        directory.path().join("p/web.yaml").is_file() && directory.path().join("p/web:80.yaml").is_file()
    );

    let sink = open().await.unwrap();
    let error = sink.publish(&Desired::empty(scope("/p/web/inner"))).await.unwrap_err();
    assert_eq!(error.category(), "scope_overlap");
    let third = sink.publish(&Desired::empty(scope("/p/web"))).await.unwrap();
    assert!(third.revision > second.revision, "revisions grow over processes");
    for outside in ["/../web", "/p/../../web", "/.p"] {
        let error = sink.publish(&Desired::empty(scope(outside))).await.unwrap_err().to_string();
        assert!(error.contains("begins with a dot"), "{error}");
    }
}

#[tokio::test]
async fn a_revision_of_a_file_does_not_go_back_from_one_leader_to_the_next() {
    let files = Files::new(BASE);
    let (one, other) = (files.sink().await, files.sink().await);
    let mut last = 0;
    for round in 1..6 {
        let sink = if round % 2 == 0 { &other } else { &one };
        let path = format!(r#"{{"uri":"/{round}"}}"#);
        let published = sink.publish(&web(&[("routes/r", &path)])).await.unwrap();
        assert!(published.revision.get() > last, "{} after {last}", published.revision);
        last = published.revision.get();
    }
}

/// A stalled leader resumes after another one has taken over: here, the base configuration blocks for a while.
#[cfg(unix)]
#[tokio::test]
async fn a_publication_that_was_given_up_puts_nothing_in_its_place_any_more() {
    let files = Files::new(BASE);
    let before = [("routes/r", r#"{"uri":"/before"}"#)];
    files.sink().await.publish(&web(&before)).await.unwrap();
    fs::remove_file(files.base()).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(files.base()).status().unwrap().success());
    let stalled = files.sink().await;
    let desired = web(&[("routes/r", r#"{"uri":"/of-the-one-before"}"#)]);
    let given_up =
        tokio::time::timeout(std::time::Duration::from_millis(50), stalled.publish(&desired)).await;
    assert!(given_up.is_err(), "it waits for the base configuration");
    let text = files.read();
    // The stalled publication resumes: a pipe can be written to when a process reads it.
    let base = files.base();
    tokio::task::spawn_blocking(move || fs::write(base, BASE).unwrap()).await.unwrap();
    fs::remove_file(files.base()).unwrap();
    fs::write(files.base(), BASE).unwrap();
    // Publications are ordered, so the abandoned one is over.
    let next = stalled.publish(&web(&before)).await.unwrap();
    assert!(next.changed.is_empty(), "the file is as it was");
    assert_eq!(files.read(), text);
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_the_file_and_no_other_file_is_left() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let files = Files::new(BASE);
    // Files of an earlier process must neither be followed nor keep their mode.
    let trap = files.0.path().join("trap");
    fs::write(&trap, "kept").unwrap();
    std::os::unix::fs::symlink(&trap, files.0.path().join(".config.yaml.new")).unwrap();
    fs::write(files.config(), "").unwrap();
    fs::set_permissions(files.config(), fs::Permissions::from_mode(0o644)).unwrap();
    files.sink().await.publish(&web(&[("ssls/s", r#"{"key":"k"}"#)])).await.unwrap();
    assert_eq!(mode(&files.config()), 0o600);
    assert_eq!(fs::read_to_string(trap).unwrap(), "kept");
    let mut names: Vec<_> =
        fs::read_dir(files.0.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["base.yaml", "config.yaml", "trap"]);

    let directory = files.0.path().join("made/for/it");
    let sink = FileSink::open(FileLocation::Directory(directory.clone()), None).await.unwrap();
    sink.publish(&web(&[])).await.unwrap();
    assert_eq!(mode(&directory), 0o700);
}

/// Strings that YAML readers may parse as other types.
const STRINGS: [&str; 22] = [
    "yes",
    "No",
    "on",
    "y",
    "null",
    "~",
    "",
    "1.0",
    "012",
    "0o14",
    "1_000",
    "1e3",
    "12:30:45",
    "2001-01-01",
    "a: b",
    "- x",
    "#c",
    "x #y",
    " lead",
    "tail ",
    "*a",
    "<<",
];

fn headers() -> Vec<Value> {
    STRINGS.iter().enumerate().map(|(n, text)| json!({"name": format!("X-{n}"), "value": text})).collect()
}

#[tokio::test]
async fn every_string_comes_back_as_it_was() {
    let files = Files::new(BASE);
    let sink = files.sink().await;
    let value = json!({
        "strings": STRINGS, "headers": headers(),
        "pem": "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n",
        "lines": ["a\n", "a", "a\n\n", "\n", "  a\n b", "a\r\nb", "\u{2028}", "é", "\u{7f}", "tab\t"],
        "numbers": [0, -1, 1.5, u64::MAX], "empty": {}, "none": [], "null": null, "true": true,
    });
    let state = web(&[("routes/r", &value.to_string())]);
    sink.publish(&state).await.unwrap();
    let held = sink.documents(&scope("/p/web")).await.unwrap().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&held.iter().next().unwrap().value).unwrap(), value);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_loads_the_file_as_it_is_and_routes() {
    let Some(binary) = pingsix() else { return };
    let directory = tempfile::tempdir().unwrap();
    let proxy = free_address();
    let base = directory.path().join("base.yaml");
    let own = gateway::backend("own").await;
    fs::write(
        &base,
        format!(
            "{}pingsix:\n  listeners:\n  - address: {proxy}\nupstreams:\n- id: own\n  nodes: {{ \"{own}\": 1 }}\nroutes:\n\
             - {{ id: own, uri: /own, upstream_id: own }}\n",
            gateway::pingora(directory.path())
        ),
    )
    .unwrap();
    let pair = Authority::new("authority").issue(1);
    let one = gateway::echo().await;
    let upstream = json!({"nodes": {one.to_string(): 1}}).to_string();
    let route = json!({
        "uris": ["/a", "/a/", "/a/{*p}"], "upstream_id": "u", "priority": 7,
        "plugins": {"proxy-rewrite": {"headers": {"set": headers()}, "regex_uri": ["^/a(/.*)?$", "$1"]}},
    });
    let ssl = json!({"cert": pair.certificate, "key": pair.key, "snis": ["feed.test"]});
    let rule = json!({"plugins": {"request-id": {}}});
    let state = web(&[
        ("upstreams/u", &upstream),
        ("services/s", r#"{"upstream_id":"u"}"#),
        ("routes/r", &route.to_string()),
        ("routes/s", r#"{"uri":"/s","service_id":"s"}"#),
        ("global_rules/g", &rule.to_string()),
        ("ssls/s", &ssl.to_string()),
    ]);
    let config = directory.path().join("config.yaml");
    let sink = FileSink::open(FileLocation::File(config.clone()), Some(base)).await.unwrap();
    sink.publish(&state).await.unwrap();

    let log = directory.path().join("log");
    let running = gateway::Gateway::start(&binary, &config, &log);
    assert_eq!(gateway::answers(proxy, "/own", 200).await, "own");
    assert!(gateway::answers(proxy, "/s", 200).await.starts_with("GET /s "));
    let asked = gateway::answers(proxy, "/a/x", 200).await;
    for (number, text) in STRINGS.iter().enumerate() {
        let header = format!("\r\nx-{number}: {text}\r\n");
        assert!(asked.to_lowercase().contains(&header.to_lowercase()), "{header:?} in {asked}");
    }
    drop(running);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_publication_that_is_given_up_never_wins_over_a_later_one() {
    let files = Files::new(BASE);
    let sink = files.sink().await;
    let mut given_up = 0;
    for round in 0..100 {
        let state = |port: usize| {
            web(&[("upstreams/u", &json!({"nodes": {format!("127.0.0.1:{port}"): 1}}).to_string())])
        };
        let (older, newer) = (state(1 + 2 * round), state(2 + 2 * round));
        let mut dropped = Box::pin(sink.publish(&older));
        // On a busy machine, the writing thread may end before the first poll returns.
        given_up += usize::from(futures::poll!(&mut dropped).is_pending());
        drop(dropped);
        sink.publish(&newer).await.unwrap();
        // Remaining work of the abandoned publication happens now.
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        let held = sink.documents(newer.scope()).await.unwrap().unwrap();
        assert!(held.same_content(newer.documents()), "round {round}");
    }
    assert!(given_up > 50, "{given_up} publications were given up");
}
