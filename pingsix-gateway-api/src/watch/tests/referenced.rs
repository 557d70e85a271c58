//! Secrets and ConfigMaps by their names.

use std::time::Duration;

use pingsix_translate::snapshot::Secret;
use pingsix_translate::{Kind, ObjectKey};
use serde_json::{Value, json};

use super::feed::{Feed, named};
use crate::fixture::api_server::{ApiServer, Fate, Verb};
use crate::watch::{Answer, FaultCategory, NameBounds, SecretWatch, WatchOptions};

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

fn content(feed: &Feed, name: &str) -> Vec<u8> {
    feed.get::<Secret>("shop", name).data.as_ref().unwrap()["tls.crt"].0.clone()
}

fn refer(feed: &Feed, keys: &[ObjectKey]) {
    feed.watches.refer(keys.iter().cloned().collect());
}

#[tokio::test(start_paused = true)]
async fn only_what_is_referred_to_is_read_by_its_name() {
    let server = ApiServer::default();
    server.apply(SECRET, secret("tls", "b25l"));
    server.apply(SECRET, secret("private", "b25l"));
    let mut feed = Feed::of(&server, WatchOptions::default());
    feed.complete().await;
    assert_eq!(server.count(SECRET, Verb::List) + server.count(SECRET, Verb::Watch), 0);
    let authority = ObjectKey::new(Kind::ConfigMap, "shop", "ca");
    refer(&feed, &[key("tls"), key("later"), authority.clone()]);
    feed.until("all are answered", |feed| feed.answers.len() == 3).await;
    assert_eq!(feed.answers[&key("tls")], Answer::Present);
    assert_eq!(feed.answers[&key("later")], Answer::Absent);
    assert_eq!(feed.answers[&authority], Answer::Absent);
    assert_eq!(content(&feed, "tls"), b"one");
    for asked in server.asked(SECRET, Verb::List).iter().chain(&server.asked(SECRET, Verb::Watch)) {
        assert_eq!(asked.namespace.as_deref(), Some("shop"));
        assert!(["tls", "later"].contains(&asked.field("metadata.name").unwrap()));
    }
    // The object appears, is rotated, and goes.
    server.apply(SECRET, secret("later", "b25l"));
    feed.until("it appears", |feed| feed.answers[&key("later")] == Answer::Present).await;
    server.apply(SECRET, secret("later", "dHdv"));
    feed.until("it is rotated", |feed| content(feed, "later") == b"two").await;
    server.remove(SECRET, "shop", "later");
    feed.until("it is gone", |feed| feed.answers[&key("later")] == Answer::Absent).await;
    assert!(!feed.has(SECRET, "shop", "later"));
    assert!(!feed.has(SECRET, "shop", "private"));
    assert_eq!(feed.told("Secret(Init"), 0);
    assert_eq!((feed.watches.stats().by_name(), feed.watches.stats().wide()), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn what_is_no_longer_referred_to_is_let_go() {
    let server = ApiServer::default();
    server.apply(SECRET, secret("one", "b25l"));
    server.apply(SECRET, secret("two", "b25l"));
    let mut feed = Feed::of(&server, WatchOptions::default());
    refer(&feed, &[key("one"), key("two")]);
    feed.until("both are there", |feed| feed.answers.len() == 2).await;
    feed.during(Duration::from_secs(1)).await;
    assert_eq!(server.open_watches(SECRET), 2);
    refer(&feed, &[key("two")]);
    feed.until("one is let go", |feed| feed.told("Released") == 1).await;
    assert!(!feed.has(SECRET, "shop", "one") && feed.has(SECRET, "shop", "two"));
    server.apply(SECRET, secret("one", "dHdv"));
    feed.during(Duration::from_secs(1)).await;
    assert_eq!(server.open_watches(SECRET), 1);
    assert!(!feed.has(SECRET, "shop", "one"), "nothing is said of it any more");
    // The one that stayed was not read again.
    assert_eq!(server.count(SECRET, Verb::List), 2);
    refer(&feed, &[key("one"), key("two")]);
    feed.until("it is there again", |feed| feed.answers.contains_key(&key("one"))).await;
    assert_eq!(content(&feed, "one"), b"two");
}

#[tokio::test(start_paused = true)]
async fn one_that_may_not_be_read_is_answered_and_no_other_is_concerned() {
    let server = ApiServer::default();
    for name in ["open", "closed", "broken"] {
        server.apply(SECRET, secret(name, "b25l"));
    }
    server.fail_at(SECRET, Verb::List, "closed", Fate::Failed(403));
    server.fail_at(SECRET, Verb::List, "broken", Fate::Failed(500));
    let mut feed = Feed::of(&server, WatchOptions::default());
    refer(&feed, &[key("open"), key("closed"), key("broken")]);
    feed.during(Duration::from_mins(5)).await;
    assert_eq!(feed.answers[&key("open")], Answer::Present);
    assert!(matches!(feed.answers[&key("closed")], Answer::Forbidden { .. }));
    assert_eq!(feed.answers.get(&key("broken")), None, "an error is no answer");
    assert_eq!(feed.told("Answered"), 2, "an answer is given once");
    server.heal(SECRET);
    feed.until("both are there", |feed| {
        feed.answers.values().filter(|answer| **answer == Answer::Present).count() == 3
    })
    .await;

    // Known objects stay after a loss of permission or a server fault.
    server.fail_at(SECRET, Verb::List, "open", Fate::Failed(403));
    server.fail_at(SECRET, Verb::Watch, "open", Fate::Failed(403));
    server.fail_at(SECRET, Verb::List, "closed", Fate::Failed(503));
    server.fail_at(SECRET, Verb::Watch, "closed", Fate::Failed(503));
    server.compact();
    feed.until("it is forbidden", |feed| matches!(feed.answers[&key("open")], Answer::Forbidden { .. }))
        .await;
    feed.during(Duration::from_secs(100)).await;
    assert!(feed.has(SECRET, "shop", "open") && feed.has(SECRET, "shop", "closed"));
    assert_eq!(feed.answers[&key("closed")], Answer::Present);
    // One that was deleted meanwhile is found to be gone; the other is merely allowed again.
    server.remove(SECRET, "shop", "closed");
    server.heal(SECRET);
    feed.until("all is known", |feed| {
        feed.answers[&key("open")] == Answer::Present && feed.answers[&key("closed")] == Answer::Absent
    })
    .await;
    assert!(!feed.has(SECRET, "shop", "closed"));
    assert!(feed.watches.stats().faults(SECRET, FaultCategory::Forbidden) > 5);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_no_object_can_have_is_never_asked_for() {
    let server = ApiServer::default();
    server.apply(SECRET, secret("tls", "b25l"));
    let mut feed = Feed::of(&server, WatchOptions::default());
    let names = ["tls,metadata.name!=x", "", "../../tls", "UPPER", "-x", "x=y", &"x".repeat(254)];
    let mut keys: Vec<ObjectKey> = names.iter().map(|name| key(name)).collect();
    keys.push(ObjectKey::new(SECRET, "shop/secrets", "tls"));
    keys.push(ObjectKey::new(SECRET, "", "tls"));
    refer(&feed, &keys);
    feed.until("all are answered", |feed| feed.answers.len() == keys.len()).await;
    assert!(feed.answers.values().all(|answer| *answer == Answer::Absent));
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
    let mut feed = Feed::of(&server, WatchOptions { secrets, ..WatchOptions::default() });
    refer(&feed, &[key("tls"), ObjectKey::new(Kind::ConfigMap, "shop", "ca")]);
    feed.until("Secrets are known", |feed| feed.world.is_complete(SECRET) && feed.is_watching(SECRET)).await;
    assert!(feed.has(SECRET, "shop", "tls") && !feed.has(SECRET, "shop", "other"));
    feed.until("the ConfigMap is answered", |feed| feed.answers.len() == 1).await;
    assert_eq!((server.count(SECRET, Verb::List), server.count(SECRET, Verb::Watch)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_thousand_take_turns_and_one_task() {
    let server = ApiServer::default();
    let keys: Vec<ObjectKey> = (0..1000).map(|index| key(&format!("s{index}"))).collect();
    for index in 0..1000 {
        server.apply(SECRET, secret(&format!("s{index}"), "b25l"));
    }
    let mut feed = Feed::of(
        &server,
        WatchOptions {
            names: NameBounds { names_per_namespace: 1000, watches: 1000 },
            ..WatchOptions::default()
        },
    );
    feed.complete().await;
    refer(&feed, &keys);
    feed.until("all are there", |feed| feed.answers.len() == 1000).await;
    feed.during(Duration::from_secs(5)).await;
    assert_eq!(server.open_watches(SECRET), 1000);
    server.apply(SECRET, secret("s500", "dHdv"));
    feed.until("one is rotated", |feed| content(feed, "s500") == b"two").await;
    refer(&feed, &[]);
    feed.until("all are let go", |feed| feed.answers.is_empty()).await;
    feed.during(Duration::from_secs(5)).await;
    assert_eq!(server.open_watches(SECRET), 0);
}
