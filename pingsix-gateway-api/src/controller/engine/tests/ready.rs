//! Readiness, after any history of watches.

use std::collections::BTreeSet;

use pingsix_translate::Kind;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};

use super::*;
use crate::fixture::generate::object;
use crate::watch::Availability;

#[tokio::test(start_paused = true)]
async fn after_any_history_of_watches_a_ready_controller_is_ready() {
    let mut listed = 0;
    for seed in 0..40 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut rig = Rig::ready();
        // A list that has begun either ends, or begins anew.
        let mut lists = BTreeSet::new();
        for step in 0..60 {
            let kind = *Kind::ALL.choose(&mut random).expect("there are kinds");
            let message = || "so it is".to_owned();
            match random.random_range(0..9) {
                0 => rig.hear(Input::Availability {
                    kind,
                    availability: Availability::Unreachable { message: message() },
                }),
                1 => rig.hear(Input::Availability {
                    kind,
                    availability: Availability::Forbidden { message: message() },
                }),
                2 => {
                    rig.hear(Input::Availability {
                        kind,
                        availability: Availability::Absent { message: message() },
                    });
                    rig.tell(kind, watcher::Event::Init);
                    rig.tell(kind, watcher::Event::InitDone);
                    lists.remove(&kind);
                }
                3 => rig.hear(Input::Availability { kind, availability: Availability::Watching }),
                4 => {
                    rig.tell(kind, watcher::Event::Init);
                    lists.insert(kind);
                }
                5 if !lists.is_empty() => {
                    let ended = lists.pop_first().expect("it is not empty");
                    rig.tell(ended, watcher::Event::InitDone);
                    listed += 1;
                }
                6 if lists.contains(&kind) => {
                    rig.tell(kind, watcher::Event::InitApply(object(kind, step, &mut random)));
                }
                7 => {
                    tokio::time::advance(Duration::from_secs(random.random_range(1..100))).await;
                    rig.engine.handle(Message::Tick);
                    rig.settle();
                }
                _ if lists.contains(&kind) => {}
                _ => rig.apply(kind, object(kind, step, &mut random)),
            }
            assert!(rig.is_ready(), "seed {seed}, step {step}, {kind}: {}", rig.health.readiness().text);
        }
        rig.settle();
        assert!(rig.is_ready(), "seed {seed}: {}", rig.health.readiness().text);
    }
    assert!(listed > 50, "{listed}");
}
