//! Watches of Secrets and ConfigMaps by name.

use std::time::Duration;

use pingsix_translate::snapshot::Secret;
use pingsix_translate::{Kind, ObjectKey};
use serde_json::{Value, json};

use super::consumer::{Consumer, named};
use crate::api_error::ApiErrorCategory;
use crate::fixture::api_server::{ApiServer, Fate, Verb};
use crate::watch::{Answer, NameBounds, SecretWatch, WatchOptions};

const SECRET: Kind = Kind::Secret;

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(SECRET, "shop", name)
}

fn secret(name: &str, value: &str) -> Value {
    let mut secret = named("shop", name);
    secret["data"] = json!({"tls.crt": value});
    secret["type"] = json!("kubernetes.io/tls");
    secret
}

fn content(consumer: &Consumer, name: &str) -> Vec<u8> {
    consumer.get::<Secret>("shop", name).data.as_ref().unwrap()["tls.crt"].0.clone()
}

fn refer(consumer: &Consumer, keys: &[ObjectKey]) {
    consumer.watches.set_references(keys.iter().cloned().collect());
}

#[tokio::test(start_paused = true)]
async fn only_referenced_objects_are_read_by_name() {
    let server = ApiServer::default();
    server.apply(SECRET, secret("tls", "b25l"));
    server.apply(SECRET, secret("private", "b25l"));
    let mut consumer = Consumer::of(&server, WatchOptions::default());
    consumer.complete().await;
    assert_eq!(server.count(SECRET, Verb::List) + server.count(SECRET, Verb::Watch), 0);
    let authority = ObjectKey::new(Kind::ConfigMap, "shop", "ca");
    refer(&consumer, &[key("tls"), key("later"), authority.clone()]);
    consumer.until("all are answered", |consumer| consumer.answers.len() == 3).await;
    assert_eq!(consumer.answers[&key("tls")], Answer::Present);
    assert_eq!(consumer.answers[&key("later")], Answer::Absent);
    assert_eq!(consumer.answers[&authority], Answer::Absent);
    assert_eq!(content(&consumer, "tls"), b"one");
    for asked in server.asked(SECRET, Verb::List).iter().chain(&server.asked(SECRET, Verb::Watch)) {
        assert_eq!(asked.namespace.as_deref(), Some("shop"));
        assert!(["tls", "later"].contains(&asked.field("metadata.name").unwrap()));
    }
    // The object appears, is rotated, and goes.
    server.apply(SECRET, secret("later", "b25l"));
    consumer.until("it appears", |consumer| consumer.answers[&key("later")] == Answer::Present).await;
    server.apply(SECRET, secret("later", "dHdv"));
    consumer.until("it is rotated", |consumer| content(consumer, "later") == b"two").await;
    server.remove(SECRET, "shop", "later");
    consumer.until("it is gone", |consumer| consumer.answers[&key("later")] == Answer::Absent).await;
    assert!(!consumer.has(SECRET, "shop", "later"));
    assert!(!consumer.has(SECRET, "shop", "private"));
    assert_eq!(consumer.count_logged("Secret(Init"), 0);
    assert_eq!((consumer.watches.stats().by_name(), consumer.watches.stats().wide()), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn an_object_without_references_is_released() {
    let server = ApiServer::default();
    server.apply(SECRET, secret("one", "b25l"));
    server.apply(SECRET, secret("two", "b25l"));
    let mut consumer = Consumer::of(&server, WatchOptions::default());
    refer(&consumer, &[key("one"), key("two")]);
    consumer.until("both are there", |consumer| consumer.answers.len() == 2).await;
    consumer.during(Duration::from_secs(1)).await;
    assert_eq!(server.open_watches(SECRET), 2);
    refer(&consumer, &[key("two")]);
    consumer.until("one is let go", |consumer| consumer.count_logged("Released") == 1).await;
    assert!(!consumer.has(SECRET, "shop", "one") && consumer.has(SECRET, "shop", "two"));
    server.apply(SECRET, secret("one", "dHdv"));
    consumer.during(Duration::from_secs(1)).await;
    assert_eq!(server.open_watches(SECRET), 1);
    assert!(!consumer.has(SECRET, "shop", "one"), "nothing is said of it any more");
    // The one that stayed was not read again.
    assert_eq!(server.count(SECRET, Verb::List), 2);
    refer(&consumer, &[key("one"), key("two")]);
    consumer.until("it is there again", |consumer| consumer.answers.contains_key(&key("one"))).await;
    assert_eq!(content(&consumer, "one"), b"two");
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_object_is_answered_and_affects_no_other() {
    let server = ApiServer::default();
    for name in ["open", "closed", "broken"] {
        server.apply(SECRET, secret(name, "b25l"));
    }
    server.fail_at(SECRET, Verb::List, "closed", Fate::Failed(403));
    server.fail_at(SECRET, Verb::List, "broken", Fate::Failed(500));
    let mut consumer = Consumer::of(&server, WatchOptions::default());
    refer(&consumer, &[key("open"), key("closed"), key("broken")]);
    consumer.during(Duration::from_mins(5)).await;
    assert_eq!(consumer.answers[&key("open")], Answer::Present);
    assert!(matches!(consumer.answers[&key("closed")], Answer::Forbidden { .. }));
    assert_eq!(consumer.answers.get(&key("broken")), None, "an error is no answer");
    assert_eq!(consumer.count_logged("Answered"), 2, "an answer is given once");
    server.heal(SECRET);
    consumer
        .until("both are there", |consumer| {
            consumer.answers.values().filter(|answer| **answer == Answer::Present).count() == 3
        })
        .await;

    // Known objects stay after a loss of permission or a server error.
    server.fail_at(SECRET, Verb::List, "open", Fate::Failed(403));
    server.fail_at(SECRET, Verb::Watch, "open", Fate::Failed(403));
    server.fail_at(SECRET, Verb::List, "closed", Fate::Failed(503));
    server.fail_at(SECRET, Verb::Watch, "closed", Fate::Failed(503));
    server.compact();
    consumer
        .until("it is forbidden", |consumer| {
            matches!(consumer.answers[&key("open")], Answer::Forbidden { .. })
        })
        .await;
    consumer.during(Duration::from_secs(100)).await;
    assert!(consumer.has(SECRET, "shop", "open") && consumer.has(SECRET, "shop", "closed"));
    assert_eq!(consumer.answers[&key("closed")], Answer::Present);
    // One that was deleted meanwhile is found to be gone; the other is merely allowed again.
    server.remove(SECRET, "shop", "closed");
    server.heal(SECRET);
    consumer
        .until("all is known", |consumer| {
            consumer.answers[&key("open")] == Answer::Present
                && consumer.answers[&key("closed")] == Answer::Absent
        })
        .await;
    assert!(!consumer.has(SECRET, "shop", "closed"));
    assert!(consumer.watches.stats().errors(SECRET, ApiErrorCategory::Forbidden) > 5);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_no_object_can_have_is_never_asked_for() {
    let server = ApiServer::default();
    server.apply(SECRET, secret("tls", "b25l"));
    let mut consumer = Consumer::of(&server, WatchOptions::default());
    let names = ["tls,metadata.name!=x", "", "../../tls", "UPPER", "-x", "x=y", &"x".repeat(254)];
    let mut keys: Vec<ObjectKey> = names.iter().map(|name| key(name)).collect();
    keys.push(ObjectKey::new(SECRET, "shop/secrets", "tls"));
    keys.push(ObjectKey::new(SECRET, "", "tls"));
    refer(&consumer, &keys);
    consumer.until("all are answered", |consumer| consumer.answers.len() == keys.len()).await;
    assert!(consumer.answers.values().all(|answer| *answer == Answer::Absent));
    assert_eq!(server.count(SECRET, Verb::List), 0);
}

#[tokio::test(start_paused = true)]
async fn all_secrets_can_be_watched_at_once() {
    let server = ApiServer::default();
    server.apply(SECRET, secret("tls", "b25l"));
    let mut other = secret("other", "b25l");
    other["type"] = json!("Opaque");
    server.apply(SECRET, other);
    let secrets = SecretWatch::All { labels: None, fields: Some("type=kubernetes.io/tls".into()) };
    let mut consumer = Consumer::of(&server, WatchOptions { secrets, ..WatchOptions::default() });
    refer(&consumer, &[key("tls"), ObjectKey::new(Kind::ConfigMap, "shop", "ca")]);
    consumer
        .until("Secrets are known", |consumer| {
            consumer.world.is_complete(SECRET) && consumer.is_watching(SECRET)
        })
        .await;
    assert!(consumer.has(SECRET, "shop", "tls") && !consumer.has(SECRET, "shop", "other"));
    consumer.until("the ConfigMap is answered", |consumer| consumer.answers.len() == 1).await;
    assert_eq!((server.count(SECRET, Verb::List), server.count(SECRET, Verb::Watch)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_thousand_take_turns_and_one_task() {
    let server = ApiServer::default();
    let keys: Vec<ObjectKey> = (0..1000).map(|index| key(&format!("s{index}"))).collect();
    for index in 0..1000 {
        server.apply(SECRET, secret(&format!("s{index}"), "b25l"));
    }
    let mut consumer = Consumer::of(
        &server,
        WatchOptions {
            names: NameBounds { names_per_namespace: 1000, watches: 1000 },
            ..WatchOptions::default()
        },
    );
    consumer.complete().await;
    refer(&consumer, &keys);
    consumer.until("all are there", |consumer| consumer.answers.len() == 1000).await;
    consumer.during(Duration::from_secs(5)).await;
    assert_eq!(server.open_watches(SECRET), 1000);
    server.apply(SECRET, secret("s500", "dHdv"));
    consumer.until("one is rotated", |consumer| content(consumer, "s500") == b"two").await;
    refer(&consumer, &[]);
    consumer.until("all are let go", |consumer| consumer.answers.is_empty()).await;
    consumer.during(Duration::from_secs(5)).await;
    assert_eq!(server.open_watches(SECRET), 0);
}
