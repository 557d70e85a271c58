//! Compatibility with `etcdctl`. Runs when `etcdctl` is on the PATH.

use crate::authority;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::authority::Authority;
use crate::wire::{Served, WAIT_TIMEOUT};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use pingsix_sink::contract::documents::{desired, document, scope};
use pingsix_sink::{Desired, EmbeddedEtcd, Key, Sink};
use pingsix_test_programs::{Output, find, run};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

struct Etcdctl {
    program: PathBuf,
    served: Served,
}

impl Etcdctl {
    /// A server with one scope; `None` without etcdctl.
    async fn new() -> Option<Self> {
        let program = find("etcdctl")?;
        let served = Served::start(EmbeddedEtcd::builder()).await;
        let web = desired("/p/web", &[("upstreams/u", "U"), ("routes/a", "A"), ("routes/b", "B")]);
        served.etcd.publish(&web).await.unwrap();
        served.etcd.open();
        Some(Self { program, served })
    }

    fn arguments(&self, command: &str) -> Vec<String> {
        let mut arguments = vec![format!("--endpoints={}", self.served.address)];
        arguments.extend(command.split_whitespace().map(str::to_owned));
        arguments
    }

    async fn run(&self, command: &str) -> Output {
        run(&self.program, self.arguments(command)).await
    }

    async fn out(&self, command: &str) -> String {
        let output = self.run(command).await;
        assert!(output.ok, "{command}: {output:?}");
        output.out
    }

    async fn txn(&self, input: &str) -> Output {
        let mut child = Command::new(&self.program)
            .args(self.arguments("txn"))
            .env("ETCDCTL_API", "3")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
        let output = tokio::time::timeout(WAIT_TIMEOUT, child.wait_with_output()).await.unwrap().unwrap();
        Output {
            ok: output.status.success(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

#[tokio::test]
async fn get_reads_prefixes_ranges_and_single_keys() {
    let Some(ctl) = Etcdctl::new().await else { return };
    let all = "/p/web/routes/a\nA\n/p/web/routes/b\nB\n/p/web/upstreams/u\nU\n";
    assert_eq!(ctl.out("get --prefix /p/web/").await, all);
    assert_eq!(ctl.out("get --prefix /p").await, all);
    assert_eq!(ctl.out("get /p/web/routes/a").await, "/p/web/routes/a\nA\n");
    assert_eq!(ctl.out("get /p/web/routes/a /p/web/routes/b").await, "/p/web/routes/a\nA\n");
    assert_eq!(ctl.out("get --from-key /p/web/routes/b --print-value-only").await, "B\nU\n");
    assert_eq!(ctl.out("get --prefix /p/web/ --limit 1").await, "/p/web/routes/a\nA\n");
    assert_eq!(
        ctl.out("get --prefix /p/web/ --keys-only").await.lines().filter(|line| !line.is_empty()).count(),
        3
    );
    let json = ctl.out("get --prefix /p/web/ --keys-only --limit 2 -w json").await;
    assert!(json.contains("\"more\":true") && json.contains("\"count\":3"), "{json}");
    assert!(json.contains(&format!("\"revision\":{}", ctl.served.etcd.revision())), "{json}");
    assert!(!json.contains("\"value\""), "{json}");
    let present = format!("get --prefix /p/web/ --rev {}", ctl.served.etcd.revision());
    assert_eq!(ctl.out(&present).await, all);
    let unknown = ctl.run("get --prefix /q/ --command-timeout=2s").await;
    assert!(!unknown.ok, "{unknown:?}");
}

#[tokio::test]
async fn watch_prints_history_and_changes() {
    let Some(ctl) = Etcdctl::new().await else { return };
    let listed = ctl.served.etcd.revision().get();
    ctl.served.etcd.publish(&desired("/p/web", &[("upstreams/u", "U"), ("routes/a", "2")])).await.unwrap();
    let mut child = Command::new(&ctl.program)
        .args(ctl.arguments(&format!("watch --prefix /p/web/ --prev-kv --rev {}", listed + 1)))
        .env("ETCDCTL_API", "3")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut expect = async |expected: &[&str]| {
        for line in expected {
            let printed =
                tokio::time::timeout(WAIT_TIMEOUT, lines.next_line()).await.expect("a line in time");
            assert_eq!(printed.unwrap().unwrap(), *line);
        }
    };
    let past = [
        "PUT",
        "/p/web/routes/a",
        "A",
        "/p/web/routes/a",
        "2",
        "DELETE",
        "/p/web/routes/b",
        "B",
        "/p/web/routes/b",
        "",
    ];
    expect(&past).await;
    ctl.served.etcd.publish(&desired("/p/web", &[("upstreams/u", "U"), ("routes/a", "3")])).await.unwrap();
    expect(&["PUT", "/p/web/routes/a", "2", "/p/web/routes/a", "3"]).await;
    child.kill().await.unwrap();

    let compacted = ctl.run("watch --prefix /p/web/ --rev 1").await;
    assert!(compacted.err.contains("required revision has been compacted"), "{compacted:?}");
}

#[tokio::test]
async fn a_watch_of_an_unknown_prefix_waits_for_its_first_publication() {
    let Some(ctl) = Etcdctl::new().await else { return };
    let mut child = Command::new(&ctl.program)
        .args(ctl.arguments("watch --prefix /p/new/"))
        .env("ETCDCTL_API", "3")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while ctl.served.etcd.stats().refused == 0 {
        assert!(Instant::now() < deadline, "etcdctl watches");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    ctl.served.etcd.publish(&desired("/p/new", &[])).await.unwrap();
    while ctl.served.etcd.stats().watches == 0 {
        assert!(Instant::now() < deadline, "etcdctl goes on");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    ctl.served.etcd.publish(&desired("/p/new", &[("routes/a", "1")])).await.unwrap();
    for expected in ["PUT", "/p/new/routes/a", "1"] {
        let printed = tokio::time::timeout(WAIT_TIMEOUT, lines.next_line()).await.expect("a line in time");
        assert_eq!(printed.unwrap().unwrap(), expected);
    }
}

/// Duration of the changes at a hundred a second.
fn churn() -> Duration {
    let seconds = std::env::var("CHURN_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(3))
}

/// A reader of the events that `etcdctl watch` prints as JSON, one response per line.
fn parse(line: &str, mirror: &mut BTreeMap<String, Vec<u8>>) {
    let response: serde_json::Value = serde_json::from_str(line).unwrap();
    assert!(response["Canceled"] != true, "{response}");
    let text =
        |value: &serde_json::Value| BASE64_STANDARD.decode(value.as_str().unwrap_or_default()).unwrap();
    for event in response["Events"].as_array().unwrap() {
        let key = String::from_utf8(text(&event["kv"]["key"])).unwrap();
        if event["type"] == 1 {
            mirror.remove(&key);
        } else {
            mirror.insert(key, text(&event["kv"]["value"]));
        }
    }
}

/// The history is much shorter than the changes during a rest of the watch. `just churn` runs this for a minute.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_lives_through_thousands_of_creates_and_a_churn() {
    const CREATES: usize = 3_000;
    let Some(program) = find("etcdctl") else { return };
    let served = Served::start(EmbeddedEtcd::builder().history(50, 1 << 20)).await;
    let mut published = Desired::empty(scope("/p/web"));
    served.etcd.publish(&published).await.unwrap();
    served.etcd.open();
    let ctl = Etcdctl { program, served };
    let mut child = Command::new(&ctl.program)
        .args(ctl.arguments("watch --prefix /p/web/ -w json"))
        .env("ETCDCTL_API", "3")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let reading = tokio::spawn(async move {
        let mut mirror = BTreeMap::new();
        while !mirror.contains_key("/p/web/routes/last") {
            let line =
                tokio::time::timeout(WAIT_TIMEOUT, lines.next_line()).await.expect("a line in time").unwrap();
            parse(&line.expect("etcdctl goes on"), &mut mirror);
        }
        mirror
    });
    let etcd = ctl.served.etcd.clone();
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while etcd.stats().watches == 0 {
        assert!(Instant::now() < deadline, "etcdctl watches");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    let mut publish = async |changes: Vec<(String, Option<String>)>| {
        let changes = changes.into_iter().map(|(key, value)| {
            let document = value.map(|value| document(&key, value));
            (Key::new(key).unwrap(), document)
        });
        let documents = published.documents().with_changes(changes.collect());
        published = Desired::new(scope("/p/web"), documents);
        etcd.publish(&published).await.unwrap();
    };
    let mut all = String::new();
    for id in 0..CREATES {
        // A route of its own, and one that names all of them.
        write!(all, "/{id:0>20}").unwrap();
        publish(vec![
            (format!("routes/{id}"), Some("{}".to_owned())),
            ("routes/all".to_owned(), Some(all.clone())),
        ])
        .await;
    }
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    let started = Instant::now();
    for step in 0_usize.. {
        if started.elapsed() > churn() {
            break;
        }
        ticks.tick().await;
        // One of ten steps creates or deletes a route, and the others change one.
        let turn = (step % 20 < 10).then(|| step.to_string());
        publish(vec![
            (format!("routes/{}", step % 10), turn),
            (format!("routes/{}", 10 + step % 90), Some(step.to_string())),
            ("routes/all".to_owned(), Some(format!("{step}{all}"))),
        ])
        .await;
    }
    publish(vec![("routes/last".to_owned(), Some(String::new()))]).await;

    let mirror = reading.await.unwrap();
    let listed = ctl.served.list("/p/web/").await.unwrap();
    let listed = listed.kvs.iter().map(|kv| (String::from_utf8(kv.key.to_vec()).unwrap(), kv.value.to_vec()));
    assert_eq!(mirror, listed.collect::<BTreeMap<_, _>>());
    let stats = etcd.stats();
    assert_eq!((stats.watches_compacted, stats.streams_stalled, stats.watches), (0, 0, 1), "{stats:?}");
    println!("{stats:?}");
    child.kill().await.unwrap();
}

#[tokio::test]
async fn transactions_read_and_writes_are_refused() {
    let Some(ctl) = Etcdctl::new().await else { return };
    let read =
        ctl.txn("value(\"/p/web/routes/a\") = \"A\"\n\nget /p/web/routes/a\n\nget /p/web/routes/b\n\n").await;
    assert!(
        read.ok && read.out.contains("SUCCESS") && read.out.ends_with("/p/web/routes/a\nA\n"),
        "{read:?}"
    );
    let other =
        ctl.txn("mod(\"/p/web/routes/a\") = \"7\"\n\nget /p/web/routes/a\n\nget /p/web/routes/b\n\n").await;
    assert!(
        other.ok && other.out.contains("FAILURE") && other.out.ends_with("/p/web/routes/b\nB\n"),
        "{other:?}"
    );
    let refusals = [
        ctl.txn("\nput /p/web/routes/a x\n\n\n").await,
        ctl.run("put /p/web/routes/a x").await,
        ctl.run("del /p/web/routes/a").await,
        ctl.run("compact 3").await,
    ];
    for refusal in refusals {
        assert!(!refusal.ok && refusal.err.contains("read-only"), "{refusal:?}");
    }
    assert_eq!(ctl.out("get /p/web/routes/a").await, "/p/web/routes/a\nA\n");
}

#[tokio::test]
async fn health_and_status_are_answered() {
    let Some(ctl) = Etcdctl::new().await else { return };
    let health = ctl.run("endpoint health").await;
    assert!(health.ok && format!("{}{}", health.out, health.err).contains("is healthy"), "{health:?}");
    let status = ctl.out("endpoint status -w json").await;
    assert!(status.contains(&format!("\"revision\":{}", ctl.served.etcd.revision())), "{status}");
    assert!(ctl.out("endpoint status").await.contains("3.5.0"));
    assert!(ctl.out("alarm list").await.is_empty());
    let snapshot = ctl.run("snapshot save /dev/null").await;
    assert!(!snapshot.ok, "{snapshot:?}");
}

#[tokio::test]
async fn health_is_bad_before_the_first_publication() {
    let Some(program) = find("etcdctl") else { return };
    let served = Served::start(EmbeddedEtcd::builder()).await;
    let endpoint = format!("--endpoints={}", served.address);
    let health = run(&program, [endpoint.as_str(), "endpoint", "health", "--command-timeout=2s"]).await;
    assert!(!health.ok, "{health:?}");
}

#[tokio::test]
async fn with_a_client_ca_a_certificate_of_it_is_needed() {
    let Some(program) = find("etcdctl") else { return };
    let (servers, clients, foreign) =
        (Authority::new("servers"), Authority::new("clients"), Authority::new("foreign"));
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let served =
        Served::start(EmbeddedEtcd::builder().tls(servers.issue(1).server().client_ca_pem(clients.pem())))
            .await;
    served.etcd.publish(&desired("/p/web", &[("routes/a", "A")])).await.unwrap();
    served.etcd.open();

    let (known, stranger) = (clients.issue(2), foreign.issue(2));
    let get = async |arguments: &[String]| {
        let mut all = vec![format!("--endpoints=https://{}", served.address)];
        all.extend_from_slice(arguments);
        all.extend(["--command-timeout=3s", "get", "--prefix", "/p/web/"].map(str::to_owned));
        run(&program, all).await
    };
    let trust = format!("--cacert={}", file("ca.crt", &servers.pem()));
    let pair = |name: &str, pair: &authority::Pair| {
        [
            format!("--cert={}", file(&format!("{name}.crt"), &pair.certificate)),
            format!("--key={}", file(&format!("{name}.key"), &pair.key)),
        ]
    };
    let [certificate, key] = pair("known", &known);
    let listed = get(&[trust.clone(), certificate.clone(), key.clone()]).await;
    assert!(listed.ok && listed.out == "/p/web/routes/a\nA\n", "{listed:?}");

    let [foreign_certificate, foreign_key] = pair("stranger", &stranger);
    let wrong = format!("--cacert={}", file("wrong.crt", &foreign.pem()));
    for refused in [
        get(std::slice::from_ref(&trust)).await,
        get(&[trust, foreign_certificate, foreign_key]).await,
        get(&[wrong, certificate, key]).await,
    ] {
        assert!(!refused.ok && refused.out.is_empty(), "{refused:?}");
    }
    assert_eq!(served.etcd.stats().lists, 1);
}
