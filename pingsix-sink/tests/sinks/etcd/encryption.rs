//! Secrets in etcd in the form of PingSIX's `data_encryption`.

use pingsix_sink::difference::differences;
use pingsix_sink::resource::Keyring;
use pingsix_sink::{Changed, Desired, EtcdSink, Sink as _};

use super::etcd_test::EtcdTest;
use crate::authority::Authority;
use crate::data_plane::{PingSix, backend};
use pingsix_sink::contract::documents::{desired, scope};

const ENVELOPE: &str = "$pingsix-enc:v1$";

fn sink(etcd_test: &EtcdTest, keyring: &[&str]) -> EtcdSink {
    let keyring = Keyring::new(keyring.iter().copied()).unwrap();
    etcd_test.builder().keyring(keyring).build().unwrap()
}

/// A certificate, a Route with key authentication, and one without.
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
    let Some(etcd_test) = EtcdTest::start().await else { return };
    let state = state("sesame", r#"{"nodes":{"127.0.0.1:1":1}}"#);
    let first = sink(&etcd_test, &["old"]);
    first.publish(&state).await.unwrap();
    let contents = etcd_test.contents(&scope("/p/web")).await;
    for (key, value) in &contents {
        assert!(!value.contains("sesame") && !value.contains("PRIVATE KEY"), "{key}: {value}");
        let has_secret = key.contains("/ssls/") || key.contains("guarded");
        assert_eq!(value.contains(ENVELOPE), has_secret, "{key}: {value}");
    }

    // By the same sink, and by another one after a restart.
    for sink in [&first, &sink(&etcd_test, &["old"])] {
        assert_eq!(sink.publish(&state).await.unwrap().changed, Changed::default());
    }

    // With a new key, exactly the documents with secrets are rewritten.
    let rotated = sink(&etcd_test, &["new", "old"]);
    let differences = differences(&rotated.documents(state.scope()).await.unwrap(), state.documents());
    assert!(differences.changes.is_empty() && differences.unknown.is_empty(), "{differences:?}");
    let published = rotated.publish(&state).await.unwrap();
    assert_eq!(published.changed, Changed { updated: 2, ..Changed::default() });
    let again = sink(&etcd_test, &["new"]);
    assert_eq!(again.publish(&state).await.unwrap().changed, Changed::default());

    // A sink without a keyring replaces unreadable secrets.
    let plain = etcd_test.sink();
    assert_eq!(plain.publish(&state).await.unwrap().changed, Changed { updated: 2, ..Changed::default() });
    assert!(etcd_test.contents(&scope("/p/web")).await.values().all(|value| !value.contains(ENVELOPE)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_reads_what_is_encrypted_with_its_keyring() {
    let Some(binary) = pingsix_test_programs::pingsix() else { return };
    let Some(etcd_test) = EtcdTest::start().await else { return };
    let directory = tempfile::tempdir().unwrap();
    let upstream = format!(r#"{{"nodes":{{"{}":1}}}}"#, backend("one").await);
    let etcd = etcd_test.etcd.address();
    let options = "\x20 data_encryption:\n    enable: true\n    keyring: [\"new\", \"old\"]\n";

    // The key with which an instance encrypts, and one with which it only decrypts.
    let mut last = sink(&etcd_test, &["old"]).publish(&state("before", &upstream)).await.unwrap().revision;
    let pingsix = PingSix::start_with(&binary, directory.path(), &etcd.to_string(), options);
    for (keyring, key) in [("old", "sesame"), ("new", "other"), ("new", "open-sesame")] {
        let published = sink(&etcd_test, &[keyring]).publish(&state(key, &upstream)).await.unwrap();
        last = published.revision;
        pingsix.wait_published(last.get()).await;
        assert_eq!(pingsix.get("/open").await, (200, "one".to_owned()));
        assert_eq!(pingsix.get("/guarded").await.0, 401);
        assert_eq!(pingsix.get(&format!("/guarded?apikey={key}")).await.0, 200);
    }

    // PingSIX refuses secrets that it cannot decrypt; otherwise the test would pass without encryption.
    let refused = sink(&etcd_test, &["unknown"]).publish(&state("last", &upstream)).await.unwrap();
    let mut tries = tokio::time::interval(std::time::Duration::from_millis(50));
    for _ in 0..40 {
        tries.tick().await;
        assert_eq!(pingsix.status("published_revision").await, Some(last.get()));
    }
    assert!(refused.revision > last);
    assert_eq!(pingsix.get("/guarded?apikey=open-sesame").await.0, 200);
    pingsix.kill().await;
}
