//! A writer that changes subjects continuously.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use kube::Client;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use pingsix_translate::Kind;
use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use serde_json::Value;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::objects::ABSENT;
use super::subjects::{Sort, Subject, Write};
use crate::test_env::objects;

/// The interval of ticks.
const TICK_INTERVAL: Duration = Duration::from_millis(100);

/// The number of changes per tick: about a hundred a second, with bursts.
const CHANGES_PER_TICK: std::ops::RangeInclusive<usize> = 4..=10;
const CHANGES_PER_BURST: std::ops::RangeInclusive<usize> = 25..=50;

/// The percentage of ticks with many changes.
const BURST_PERCENT: u32 = 10;

/// The time limit of a change, on a busy machine.
pub(crate) const CHANGE_TIMEOUT: Duration = Duration::from_mins(1);

/// The number of changes by sort.
pub(crate) type Counts = BTreeMap<Sort, usize>;

/// The variant that each subject is in; at first each is in its first.
pub(crate) type Variants = Vec<usize>;

/// Makes this many changes, or fewer if one is never observed. A subject changes again only after its last change was
/// observed.
pub(crate) async fn make_changes(
    client: &Client,
    subjects: &Arc<Vec<Subject>>,
    now: &mut Variants,
    count: usize,
    rng: &mut StdRng,
) -> Counts {
    let mut changed: Vec<Instant> = vec![Instant::now(); subjects.len()];
    let mut counts = Counts::new();
    let mut made = 0;
    let mut ticks = interval(TICK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while made < count {
        ticks.tick().await;
        let burst = if rng.random_ratio(BURST_PERCENT, 100) { CHANGES_PER_BURST } else { CHANGES_PER_TICK };
        let burst = rng.random_range(burst).min(count - made);
        let (mut free, mut is_late) = (Vec::new(), false);
        for (index, subject) in
            subjects.iter().enumerate().filter(|(_, subject)| subject.sort != Sort::Stable)
        {
            if subject.states.is_settled() {
                free.push(index);
            } else {
                is_late |= changed[index].elapsed() > CHANGE_TIMEOUT;
            }
        }
        if is_late {
            // The caller that waits for the rest finds the missing change.
            return counts;
        }
        free.shuffle(rng);
        free.truncate(burst);
        let writes: Vec<Write> = free
            .iter()
            .map(|index| {
                let subject = &subjects[*index];
                let (next, write) = subject.change(now[*index], rng);
                now[*index] = next;
                subject.states.change(subject.state(next));
                *counts.entry(subject.sort).or_insert(0) += 1;
                write
            })
            .collect();
        made += writes.len();
        join_all(writes.iter().map(|write| perform(client, write))).await;
        for index in free {
            changed[index] = Instant::now();
        }
    }
    counts
}

/// Waits until every change was observed, and returns the missing ones.
pub(crate) async fn wait_until_observed(subjects: &[Subject]) -> Vec<String> {
    let started = Instant::now();
    loop {
        let open: Vec<String> = subjects
            .iter()
            .filter(|subject| !subject.states.is_settled())
            .map(|subject| format!("the last change of {} was not seen", subject.name))
            .collect();
        if open.is_empty() || started.elapsed() > CHANGE_TIMEOUT {
            return open;
        }
        sleep(Duration::from_millis(20)).await;
    }
}

async fn perform(client: &Client, write: &Write) {
    let namespace = |kind: Kind| if kind == Kind::ReferenceGrant { ABSENT } else { "default" };
    match write {
        Write::Create(kind, object) => create(client, *kind, object).await,
        Write::Merge(kind, name, change) => {
            let objects = objects(client, *kind, namespace(*kind));
            objects.patch(name, &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
        }
        Write::Delete(kind, namespace, name) => {
            objects(client, *kind, namespace).delete(name, &DeleteParams::default()).await.unwrap();
        }
        Write::Nothing => {}
    }
}

/// Makes an object.
pub(crate) async fn create(client: &Client, kind: Kind, object: &Value) {
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
    objects(client, kind, namespace).create(&PostParams::default(), &object).await.unwrap();
}
