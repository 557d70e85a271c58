//! Secrets lie in etcd as PingSIX's `data_encryption` has them.

use pingsix_sink::difference::differences;
use pingsix_sink::resource::Keyring;
use pingsix_sink::{Changed, Desired, EtcdSink, Sink as _};

use super::lab::Lab;
use crate::authority::Authority;
use crate::data_plane::{PingSix, backend};
use crate::documents::{desired, scope};

const ENVELOPE: &str = "$pingsix-enc:v1$";

fn sink(lab: &Lab, keyring: &[&str]) -> EtcdSink {
    let keyring = Keyring::new(keyring.iter().copied()).unwrap();
    lab.builder().keyring(keyring).build().unwrap()
}

/// A certificate, a Route that asks for a key, and one that asks for none.
fn state(key: &str, upstream: &str) -> Desired {
    let pair = Authority::new("test").issue(1);
    let ssl =
        serde_json::json!({"cert": pair.certificate, "key": pair.key, "snis": ["a.example"]}).to_string();
    let plugins = serde_json::json!({"key-auth": {"key": key, "query": "apikey"}});
    let guarded = serde_json::json!({"uri": "/guarded", "upstream_id": "a", "plugins": plugins}).to_string();
    desired(
        "/p/web",
        &[
            ("routes/guarded", &guarded),
            ("routes/open", r#"{"uri":"/open","upstream_id":"a"}"#),
            ("ssls/a", &ssl),
            ("upstreams/a", upstream),
        ],
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_lie_there_encrypted_and_equal_content_is_written_once() {
    let Some(lab) = Lab::start().await else { return };
    let state = state("sesame", r#"{"nodes":{"127.0.0.1:1":1}}"#);
    let first = sink(&lab, &["old"]);
    first.publish(&state).await.unwrap();
    let held = lab.held(&scope("/p/web")).await;
    for (key, value) in &held {
        assert!(!value.contains("sesame") && !value.contains("PRIVATE KEY"), "{key}: {value}");
        let has_secret = key.contains("/ssls/") || key.contains("guarded");
        assert_eq!(value.contains(ENVELOPE), has_secret, "{key}: {value}");
    }

    // By the same sink, and by another one after a restart.
    for sink in [&first, &sink(&lab, &["old"])] {
        assert_eq!(sink.publish(&state).await.unwrap().changed, Changed::default());
    }

    // With a new key, whatever holds a secret is written anew, and nothing else.
    let rotated = sink(&lab, &["new", "old"]);
    let differences = differences(&rotated.documents(state.scope()).await.unwrap(), state.documents());
    assert!(differences.changes.is_empty() && differences.unknown.is_empty(), "{differences:?}");
    let published = rotated.publish(&state).await.unwrap();
    assert_eq!(published.changed, Changed { updated: 2, ..Changed::default() });
    let again = sink(&lab, &["new"]);
    assert_eq!(again.publish(&state).await.unwrap().changed, Changed::default());

    // A sink that has no key does not leave what nobody could read.
    let plain = lab.sink();
    assert_eq!(plain.publish(&state).await.unwrap().changed, Changed { updated: 2, ..Changed::default() });
    assert!(lab.held(&scope("/p/web")).await.values().all(|value| !value.contains(ENVELOPE)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_reads_what_is_encrypted_with_its_keyring() {
    let Some(binary) = pingsix_test_programs::pingsix() else { return };
    let Some(lab) = Lab::start().await else { return };
    let directory = tempfile::tempdir().unwrap();
    let upstream = format!(r#"{{"nodes":{{"{}":1}}}}"#, backend("one").await);
    let etcd = lab.etcd.address();
    let options = "\x20 data_encryption:\n    enable: true\n    keyring: [\"new\", \"old\"]\n";

    // The key by which an instance encrypts, and one that it only decrypts with.
    let mut last = sink(&lab, &["old"]).publish(&state("before", &upstream)).await.unwrap().revision;
    let pingsix = PingSix::start_with(&binary, directory.path(), etcd, options);
    for (keyring, key) in [("old", "sesame"), ("new", "other"), ("new", "open-sesame")] {
        let published = sink(&lab, &[keyring]).publish(&state(key, &upstream)).await.unwrap();
        last = published.revision;
        pingsix.wait_published(last.get()).await;
        assert_eq!(pingsix.get("/open").await, (200, "one".to_owned()));
        assert_eq!(pingsix.get("/guarded").await.0, 401);
        assert_eq!(pingsix.get(&format!("/guarded?apikey={key}")).await.0, 200);
    }

    // What it cannot decrypt, it does not take: the test would pass without encryption otherwise.
    let refused = sink(&lab, &["unknown"]).publish(&state("last", &upstream)).await.unwrap();
    let mut tries = tokio::time::interval(std::time::Duration::from_millis(50));
    for _ in 0..40 {
        tries.tick().await;
        assert_eq!(pingsix.status("published_revision").await, Some(last.get()));
    }
    assert!(refused.revision > last);
    assert_eq!(pingsix.get("/guarded?apikey=open-sesame").await.0, 200);
    pingsix.kill().await;
}
