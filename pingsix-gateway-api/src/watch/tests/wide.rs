//! Wide watches, for more referenced objects than are watched by name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::time::Duration;

use kube_runtime::watcher;
use pingsix_translate::snapshot::Secret;
use pingsix_translate::{Kind, ObjectKey};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};

use super::consumer::{Consumer, named};
use crate::fixture::api_server::{ApiServer, Fate, RecordedRequest, Verb};
use crate::watch::{Answer, Input, NameBounds, WatchOptions};
use crate::world::Event;

const SECRET: Kind = Kind::Secret;

fn key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new(SECRET, namespace, name)
}

fn secret(namespace: &str, name: &str, value: u64) -> Value {
    let mut secret = named(namespace, name);
    secret["stringData"] = json!({"value": value.to_string()});
    secret
}

fn bounded(names_per_namespace: usize, watches: usize) -> WatchOptions {
    WatchOptions { names: NameBounds { names_per_namespace, watches }, ..WatchOptions::default() }
}

/// Whether a request is for several objects.
fn is_wide(seen: &RecordedRequest) -> bool {
    seen.kind == Some(SECRET) && seen.field("metadata.name").is_none()
}

fn answers(consumer: &Consumer, is: impl Fn(&Answer) -> bool) -> usize {
    consumer.answers.values().filter(|answer| is(answer)).count()
}

fn present(consumer: &Consumer) -> usize {
    answers(consumer, |answer| *answer == Answer::Present)
}

fn watches(consumer: &Consumer) -> (i64, i64) {
    (consumer.watches.stats().by_name(), consumer.watches.stats().wide())
}

#[tokio::test(start_paused = true)]
async fn fifty_thousand_names_take_one_watch_and_the_room_of_stored_objects() {
    let server = ApiServer::default();
    for name in ["s7", "s49999"] {
        server.apply(SECRET, secret("shop", name, 1));
    }
    for index in 0..500 {
        server.apply(SECRET, secret("shop", &format!("private{index}"), 1));
    }
    server.apply(SECRET, secret("blog", "tls", 1));
    let mut consumer = Consumer::of(&server, WatchOptions::default());
    consumer.complete().await;
    let tasks = Handle::current().metrics().num_alive_tasks();
    let mut keys: BTreeSet<ObjectKey> = (0..50_000).map(|index| key("shop", &format!("s{index}"))).collect();
    keys.insert(key("blog", "tls"));
    consumer.watches.set_references(keys.clone());
    consumer.until("all are answered", |consumer| consumer.answers.len() == 50_001).await;
    consumer.during(Duration::from_secs(5)).await;
    assert_eq!(present(&consumer), 3);
    // The stored objects: the referenced Secrets, and the versions of all in the namespace.
    assert_eq!(consumer.world.reader::<Secret>().len(), 3);
    assert_eq!(consumer.watches.stats().versions(), 502);
    assert_eq!(watches(&consumer), (1, 1));
    assert_eq!(server.open_watches(SECRET), 2);
    assert!(Handle::current().metrics().num_alive_tasks() <= tasks + 2);
    let lists = server.asked(SECRET, Verb::List);
    assert_eq!(lists.iter().filter(|list| is_wide(list)).count(), 502_usize.div_ceil(16));
    assert!(lists.iter().filter(|list| is_wide(list)).all(|list| list.namespace.as_deref() == Some("shop")));

    // The Secret appears, is rotated, and goes; unreferenced Secrets cause no input.
    consumer.log.clear();
    server.apply(SECRET, secret("shop", "private1", 2));
    server.apply(SECRET, secret("shop", "s3", 1));
    consumer.until("it appears", |consumer| consumer.answers[&key("shop", "s3")] == Answer::Present).await;
    server.apply(SECRET, secret("shop", "s3", 2));
    consumer
        .until("it is rotated", |consumer| {
            consumer.count_logged("Apply(Watched { key: \"Secret shop/s3\"") == 2
        })
        .await;
    server.remove(SECRET, "shop", "s3");
    consumer.until("it is gone", |consumer| consumer.answers[&key("shop", "s3")] == Answer::Absent).await;
    assert_eq!(consumer.count_logged("private"), 0);
    assert_eq!(consumer.world.reader::<Secret>().len(), 3);

    // Other fifty thousand names take another list, not a request each.
    let asked = server.count(SECRET, Verb::List);
    let mut others: BTreeSet<ObjectKey> =
        (0..50_000).map(|index| key("shop", &format!("t{index}"))).collect();
    others.insert(key("shop", "private3"));
    consumer.watches.set_references(others);
    let is_last = |consumer: &Consumer| {
        consumer.answers.len() == 50_001 && !consumer.answers.contains_key(&key("shop", "s0"))
    };
    consumer.until("all are answered", is_last).await;
    assert_eq!(present(&consumer), 1);
    assert_eq!(consumer.world.reader::<Secret>().len(), 1);
    assert_eq!(server.count(SECRET, Verb::List) - asked, 502_usize.div_ceil(16));

    // With few names, each has its watch again.
    consumer.watches.set_references([key("shop", "private3"), key("shop", "t5")].into());
    consumer.during(Duration::from_secs(5)).await;
    assert_eq!((watches(&consumer), consumer.watches.stats().versions()), ((2, 0), 0));
    assert_eq!(server.open_watches(SECRET), 2);
    assert_eq!((present(&consumer), consumer.answers.len()), (1, 2));
    consumer.watches.set_references(BTreeSet::new());
    consumer.during(Duration::from_secs(5)).await;
    assert_eq!((watches(&consumer), server.open_watches(SECRET), consumer.answers.len()), ((0, 0), 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_namespace_has_as_many_names_as_there_is_room_for() {
    let server = ApiServer::default();
    let mut keys = BTreeSet::new();
    for index in 0..100 {
        server.apply(SECRET, secret("shop", &format!("s{index:02}"), 1));
        keys.insert(key("shop", &format!("s{index:02}")));
    }
    server.apply(SECRET, secret("blog", "tls", 1));
    keys.insert(key("blog", "tls"));
    server.script(|seen| if is_wide(seen) { Fate::Failed(403) } else { Fate::Served });
    let mut consumer = Consumer::of(&server, bounded(8, 40));
    // Five of them are known when the others come.
    let few: BTreeSet<ObjectKey> = (90..95).map(|index| key("shop", &format!("s{index}"))).collect();
    consumer.watches.set_references(few.clone());
    consumer.until("the first are known", |consumer| present(consumer) == 5).await;
    consumer.watches.set_references(keys);
    consumer.until("all are answered", |consumer| consumer.answers.len() == 101).await;
    consumer.during(Duration::from_mins(3)).await;
    assert!(
        few.iter().all(|key| consumer.answers[key] == Answer::Present),
        "watched objects keep their watch"
    );
    assert_eq!(consumer.answers[&key("blog", "tls")], Answer::Present);
    assert_eq!(present(&consumer), 9);
    let names_the_bound = |answer: &Answer| {
        let start = "100 objects of namespace shop are referred to, 8 of them are watched by name, and the list of the \
                     namespace is forbidden: ";
        matches!(answer, Answer::Forbidden { message } if message.starts_with(start))
    };
    assert_eq!(answers(&consumer, names_the_bound), 92);
    assert_eq!(consumer.count_logged("Answered"), 101, "each is answered once");
    assert_eq!(server.open_watches(SECRET), 9);
    assert_eq!(watches(&consumer), (9, 1));
    // The permission arrives.
    server.script(|_| Fate::Served);
    consumer.until("all are there", |consumer| present(consumer) == 101).await;
    consumer.during(Duration::from_mins(1)).await;
    assert_eq!((watches(&consumer), server.open_watches(SECRET)), ((1, 1), 2));
    // After another refusal, the known objects stay.
    server.script(|seen| if is_wide(seen) { Fate::Failed(403) } else { Fate::Served });
    server.compact();
    consumer.until("it is forbidden", |consumer| answers(consumer, names_the_bound) == 92).await;
    consumer.during(Duration::from_mins(1)).await;
    assert_eq!((present(&consumer), consumer.world.reader::<Secret>().len()), (9, 101));
}

#[tokio::test(start_paused = true)]
async fn names_in_many_namespaces_take_one_watch_of_all() {
    let server = ApiServer::default();
    let mut keys = BTreeSet::new();
    for index in 0..50 {
        server.apply(SECRET, secret(&format!("n{index:02}"), "tls", 1));
        server.apply(SECRET, secret(&format!("n{index:02}"), "private", 1));
        keys.insert(key(&format!("n{index:02}"), "tls"));
    }
    server.script(|seen| if is_wide(seen) { Fate::Failed(403) } else { Fate::Served });
    let mut consumer = Consumer::of(&server, bounded(8, 40));
    consumer.watches.set_references(keys.clone());
    consumer.until("all are answered", |consumer| consumer.answers.len() == 50).await;
    consumer.during(Duration::from_mins(2)).await;
    let is_refused = |answer: &Answer| {
        let message = "Objects are referred to in more than 40 namespaces, and the list of all namespaces is forbidden.";
        *answer == Answer::Forbidden { message: message.to_owned() }
    };
    assert_eq!((present(&consumer), answers(&consumer, is_refused)), (40, 10));
    assert_eq!(server.open_watches(SECRET), 40);
    server.script(|_| Fate::Served);
    consumer.until("all are there", |consumer| present(consumer) == 50).await;
    consumer.during(Duration::from_mins(1)).await;
    assert_eq!((watches(&consumer), server.open_watches(SECRET)), ((0, 1), 1));
    assert_eq!(consumer.world.reader::<Secret>().len(), 50);
    // A namespace that comes later.
    server.apply(SECRET, secret("later", "tls", 1));
    keys.insert(key("later", "tls"));
    consumer.watches.set_references(keys.clone());
    consumer.until("it is known", |consumer| present(consumer) == 51).await;
    server.remove(SECRET, "later", "tls");
    consumer.until("it is gone", |consumer| consumer.answers[&key("later", "tls")] == Answer::Absent).await;
    consumer.during(Duration::from_secs(1)).await;
    assert_eq!((watches(&consumer), server.open_watches(SECRET)), ((0, 1), 1));
    assert_eq!(consumer.count_logged("Absent"), 1);
    // Few again.
    consumer.watches.set_references(keys.into_iter().take(20).collect());
    consumer.during(Duration::from_secs(5)).await;
    assert_eq!((watches(&consumer), server.open_watches(SECRET)), ((20, 0), 20));
    assert_eq!((present(&consumer), consumer.count_logged("Gone")), (19, 1));
}

/// A list before the reference is no answer: the object may have been created together with the reference.
#[tokio::test(start_paused = true)]
async fn a_name_that_comes_later_is_read_though_the_watch_may_be_behind() {
    let server = ApiServer::default();
    let mut keys: BTreeSet<ObjectKey> = (0..10).map(|index| key("shop", &format!("s{index}"))).collect();
    let mut consumer = Consumer::of(&server, bounded(8, 40));
    consumer.watches.set_references(keys.clone());
    consumer.until("all are answered", |consumer| consumer.answers.len() == 10).await;
    consumer.during(Duration::from_secs(1)).await;
    server.deaden_watches(SECRET);
    server.apply(SECRET, secret("shop", "new", 1));
    keys.insert(key("shop", "new"));
    keys.insert(key("shop", "other"));
    consumer.watches.set_references(keys.clone());
    consumer.until("both are known", |consumer| consumer.answers.len() == 12).await;
    assert_eq!(consumer.answers[&key("shop", "new")], Answer::Present);
    assert_eq!(consumer.answers[&key("shop", "other")], Answer::Absent);
    assert_eq!(consumer.count_logged("Gone"), 0);
    // The object keeps its own watch until the wide one knows the object, too.
    consumer.during(Duration::from_secs(1)).await;
    assert_eq!(watches(&consumer), (1, 1));
    server.apply(SECRET, secret("shop", "new", 2));
    consumer.until("it is rotated", |consumer| consumer.count_logged("Secret shop/new\", ..") == 2).await;
    consumer.during(Duration::from_mins(10)).await;
    assert_eq!(watches(&consumer), (0, 1));
    assert_eq!(consumer.count_logged("Secret shop/new\", .."), 2, "another watch does not report it again");
}

/// A list that started before the reference and ends after it is no answer either.
#[tokio::test(start_paused = true)]
async fn a_list_answers_for_the_names_that_were_there_when_it_began() {
    let server = ApiServer::default();
    let mut keys: BTreeSet<ObjectKey> = (0..10).map(|index| key("shop", &format!("s{index}"))).collect();
    let late = Fate::Slow { before: Duration::ZERO, after: Duration::from_secs(10) };
    server.script(move |seen| if is_wide(seen) && seen.verb == Verb::List { late } else { Fate::Served });
    let mut consumer = Consumer::of(&server, bounded(8, 40));
    consumer.watches.set_references(keys.clone());
    consumer.during(Duration::from_secs(5)).await;
    assert_eq!(consumer.answers.len(), 0);
    server.apply(SECRET, secret("shop", "new", 1));
    keys.insert(key("shop", "new"));
    consumer.watches.set_references(keys);
    consumer.until("all are answered", |consumer| consumer.answers.len() == 11).await;
    assert_eq!(consumer.answers[&key("shop", "new")], Answer::Present);
    assert_eq!(consumer.count_logged("Absent"), 10);
}

/// The number of inputs about an object.
fn count_inputs(consumer: &Consumer, name: &str) -> usize {
    consumer.count_logged(&format!("Secret shop/{name}\", .."))
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_watched_until_each_name_has_its_own_watch() {
    let server = ApiServer::default();
    let keys: BTreeSet<ObjectKey> = (0..10).map(|index| key("shop", &format!("s{index}"))).collect();
    let few: BTreeSet<ObjectKey> = keys.iter().take(2).cloned().collect();
    for key in &keys {
        server.apply(SECRET, secret("shop", &key.name.name, 1));
    }
    let mut consumer = Consumer::of(&server, bounded(8, 40));
    consumer.watches.set_references(keys.clone());
    consumer.until("all are answered", |consumer| consumer.answers.len() == 10).await;
    consumer.during(Duration::from_secs(1)).await;
    let late = Fate::Slow { before: Duration::ZERO, after: Duration::from_secs(10) };
    server.script(move |seen| if is_wide(seen) { Fate::Served } else { late });
    consumer.watches.set_references(few.clone());
    consumer.during(Duration::from_secs(1)).await;
    assert_eq!(watches(&consumer), (2, 1));
    server.apply(SECRET, secret("shop", "s0", 2));
    consumer.during(Duration::from_secs(1)).await;
    assert_eq!(
        count_inputs(&consumer, "s0"),
        2,
        "a change is reported while the lists of the names are under way"
    );
    consumer.during(Duration::from_mins(1)).await;
    assert_eq!(watches(&consumer), (2, 0));
    assert_eq!(
        (count_inputs(&consumer, "s0"), count_inputs(&consumer, "s1")),
        (2, 1),
        "an older version is not reported"
    );
    // As many again, and back; meanwhile neither the watch of the namespace nor those of the names get on.
    server.script(|_| Fate::Served);
    consumer.watches.set_references(keys);
    consumer.during(Duration::from_mins(1)).await;
    assert_eq!(watches(&consumer), (0, 1));
    server.script(|seen| if seen.verb == Verb::List { Fate::Failed(500) } else { Fate::Served });
    consumer.watches.set_references(few);
    consumer.during(Duration::from_secs(1)).await;
    server.apply(SECRET, secret("shop", "s0", 3));
    consumer.during(Duration::from_secs(1)).await;
    assert_eq!(count_inputs(&consumer, "s0"), 3);
    server.compact();
    server.apply(SECRET, secret("shop", "s0", 4));
    consumer.during(Duration::from_mins(1)).await;
    assert_eq!(
        (count_inputs(&consumer, "s0"), watches(&consumer)),
        (3, (2, 0)),
        "nobody waits for a list that is of no use"
    );
    server.script(|_| Fate::Served);
    consumer.until("the name has its watch", |consumer| count_inputs(consumer, "s0") == 4).await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_cannot_be_listed_leaves_names_to_their_own_watches() {
    let server = ApiServer::default();
    let keys: BTreeSet<ObjectKey> = (0..10).map(|index| key("shop", &format!("s{index}"))).collect();
    for key in &keys {
        server.apply(SECRET, secret("shop", &key.name.name, 1));
    }
    let mut consumer = Consumer::of(&server, bounded(8, 40));
    consumer.watches.set_references(keys.clone());
    consumer.until("all are answered", |consumer| consumer.answers.len() == 10).await;
    consumer.during(Duration::from_secs(1)).await;
    // The watch of the namespace is silent, and the watch of the name has a newer state.
    server.deaden_watches(SECRET);
    server.apply(SECRET, secret("shop", "s0", 2));
    consumer.watches.set_references(keys.into_iter().take(2).collect());
    consumer.during(Duration::from_secs(1)).await;
    assert_eq!((count_inputs(&consumer, "s0"), watches(&consumer)), (1, (2, 1)));
    // The watch restarts too late to resume, and cannot list.
    server.script(|seen| match (is_wide(seen), seen.verb) {
        (true, Verb::Watch) => Fate::Failed(410),
        (true, _) => Fate::Failed(500),
        (false, _) => Fate::Served,
    });
    consumer.until("the newer version is told", |consumer| count_inputs(consumer, "s0") == 2).await;
    consumer.during(Duration::from_secs(5)).await;
    assert_eq!((count_inputs(&consumer, "s1"), watches(&consumer)), (1, (2, 0)));
}

/// The known state of the objects in a random history.
struct Oracle {
    /// Objects that always exist.
    stay: BTreeSet<ObjectKey>,
    /// Objects that never exist.
    never: BTreeSet<ObjectKey>,
    /// The newest reported version.
    told: BTreeMap<ObjectKey, u64>,
}

impl Oracle {
    fn judge(&mut self, input: &Input) {
        match input {
            Input::Answered { key, answer: Answer::Absent } | Input::Gone(key) => {
                assert!(!self.stay.contains(key), "{key} is there all the time");
            }
            Input::Answered { key, answer: Answer::Present } => {
                assert!(!self.never.contains(key), "{key} was never there");
            }
            Input::Event(Event::Secret(watcher::Event::Apply(object))) => {
                let now: u64 = object.version().unwrap().parse().unwrap();
                let before = self.told.insert(object.key(), now).unwrap_or_default();
                assert!(before <= now, "{} went back from {before} to {now}", object.key());
            }
            Input::Answered { .. } | Input::Event(_) | Input::Released(_) | Input::Availability { .. } => {}
        }
    }

    async fn during(&mut self, consumer: &mut Consumer, time: Duration) {
        let deadline = Instant::now() + time;
        while let Ok(Some(input)) = timeout_at(deadline, consumer.inputs.recv()).await {
            self.judge(&input);
            consumer.apply(input);
        }
    }
}

/// The fate of wide requests and of requests for one name, and the longest response time, in seconds.
#[derive(Default)]
struct Weather {
    wide: AtomicU16,
    by_name: AtomicU16,
    slow: AtomicU64,
}

impl Weather {
    fn set(&self, random: &mut fastrand::Rng) {
        let code = |random: &mut fastrand::Rng| [0, 0, 0, 403, 500][random.usize(0..5)];
        self.wide.store(code(random), Ordering::Relaxed);
        self.by_name.store(code(random), Ordering::Relaxed);
        self.slow.store(random.u64(0..3), Ordering::Relaxed);
    }

    fn heal(&self) {
        self.wide.store(0, Ordering::Relaxed);
        self.by_name.store(0, Ordering::Relaxed);
        self.slow.store(0, Ordering::Relaxed);
    }

    fn fate(&self, seen: &RecordedRequest, random: &mut fastrand::Rng) -> Fate {
        let code = if is_wide(seen) { &self.wide } else { &self.by_name }.load(Ordering::Relaxed);
        let mut pause = || Duration::from_millis(random.u64(0..=1000) * self.slow.load(Ordering::Relaxed));
        match code {
            _ if seen.kind != Some(SECRET) => Fate::Served,
            0 => Fate::Slow { before: pause(), after: pause() },
            code => Fate::Failed(code),
        }
    }
}

/// Objects and references change, while watches of all widths replace each other, fail and are forbidden. An existing
/// object never counts as absent, no version goes back, and the final state is that of the server.
#[tokio::test(start_paused = true)]
async fn no_history_loses_an_object_while_watches_replace_each_other() {
    let histories: u64 =
        std::env::var("PROPERTY_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(60);
    let (mut wide, mut refused) = (0, 0);
    for seed in 0..histories {
        let mut random = fastrand::Rng::with_seed(seed);
        let server = ApiServer::default();
        let keys: Vec<ObjectKey> =
            (0..24).map(|index| key(["shop", "blog", "pay"][index % 3], &format!("s{index}"))).collect();
        let mut oracle = Oracle { stay: BTreeSet::new(), never: BTreeSet::new(), told: BTreeMap::new() };
        for (index, key) in keys.iter().enumerate() {
            match index % 5 {
                0..3 => drop(oracle.stay.insert(key.clone())),
                3 => drop(oracle.never.insert(key.clone())),
                _ => {}
            }
        }
        let apply = |key: &ObjectKey, value: u64| {
            server.apply(SECRET, secret(&key.name.namespace, &key.name.name, value));
        };
        for key in &oracle.stay {
            apply(key, 0);
        }
        let weather = Arc::new(Weather::default());
        let (of_requests, mut fates) = (weather.clone(), random.fork());
        server.script(move |seen| of_requests.fate(seen, &mut fates));
        // Now and then three namespaces are too many.
        let bound = if seed % 3 == 0 { 5 } else { 12 };
        let mut consumer = Consumer::of(&server, bounded(3, bound));
        let mut wanted = BTreeSet::new();
        for step in 1..=40 {
            match random.u8(0..10) {
                0..3 => {
                    let share = random.f64();
                    wanted = keys.iter().filter(|_| random.f64() < share).cloned().collect();
                    consumer.watches.set_references(wanted.clone());
                }
                3..6 => {
                    for _ in 0..random.usize(1..6) {
                        let key = &keys[random.usize(0..keys.len())];
                        if oracle.stay.contains(key) {
                            apply(key, step);
                        } else if server.has(SECRET, &key.name.namespace, &key.name.name) {
                            server.remove(SECRET, &key.name.namespace, &key.name.name);
                        } else if !oracle.never.contains(key) {
                            apply(key, step);
                        }
                        oracle.during(&mut consumer, Duration::from_millis(random.u64(0..500))).await;
                    }
                }
                6 => weather.set(&mut random),
                7 => weather.heal(),
                8 => match random.u8(0..3) {
                    0 => server.compact(),
                    1 => server.end_watches(SECRET),
                    _ => server.break_watches(SECRET),
                },
                _ => {}
            }
            let pause = [0, 1, 100, 3_000, 20_000][random.usize(0..5)];
            oracle.during(&mut consumer, Duration::from_millis(pause)).await;
            let (by_name, all) = watches(&consumer);
            assert!(
                by_name + all <= 3 * i64::try_from(bound).unwrap(),
                "seed {seed}, step {step}: {by_name} and {all} watches"
            );
            wide += all;
            refused += answers(&consumer, |answer| matches!(answer, Answer::Forbidden { .. }));
        }
        weather.heal();
        oracle.during(&mut consumer, Duration::from_mins(10)).await;
        let answered: BTreeSet<ObjectKey> = consumer.answers.keys().cloned().collect();
        assert_eq!(answered, wanted, "seed {seed}");
        for key in &wanted {
            let (namespace, name) = (&*key.name.namespace, &*key.name.name);
            let is_there = server.has(SECRET, namespace, name);
            let expected = if is_there { Answer::Present } else { Answer::Absent };
            assert_eq!(consumer.answers[key], expected, "seed {seed}: {key}");
            assert_eq!(consumer.has(SECRET, namespace, name), is_there, "seed {seed}: {key}");
            if is_there {
                let held = serde_json::to_value(&*consumer.get::<Secret>(namespace, name)).unwrap();
                let there = server.get_of(SECRET, namespace, name).unwrap();
                assert_eq!(held["stringData"], there["stringData"], "seed {seed}: {key}");
            }
        }
        assert_eq!(consumer.world.reader::<Secret>().len(), present(&consumer), "seed {seed}");
        let (by_name, all) = watches(&consumer);
        assert!(by_name + all <= i64::try_from(bound).unwrap(), "seed {seed}: {by_name} and {all} watches");
        assert_eq!(i64::try_from(server.open_watches(SECRET)).unwrap(), by_name + all, "seed {seed}");
    }
    assert!(wide > 100 && refused > 100, "{wide} {refused}");
}
