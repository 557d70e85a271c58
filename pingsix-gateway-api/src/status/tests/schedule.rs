//! Random schedules of verdicts and errors.

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use super::*;

/// Verdicts, other controllers, a late store, errors and changes of leadership come in any order. In the end every
/// status has the wanted parts, and the last foreign parts.
#[tokio::test(start_paused = true)]
async fn statuses_converge_after_any_schedule() {
    for seed in 0..10 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut rig = Rig::new();
        let names: Vec<String> = (0..5).map(|index| format!("r{index}")).collect();
        for name in &names {
            rig.put(&route_path(name), route(name, 1));
        }
        let mut fate = StdRng::seed_from_u64(seed ^ 0xfa7e);
        rig.api.script(move |_| match fate.random_range(0..12) {
            0 => Fate::Unanswered,
            1 => Fate::Failed(500),
            2 => Fate::Failed(429),
            3 => Fate::Failed(403),
            4..7 => {
                Fate::Slow { before: ms(fate.random_range(0..2000)), after: ms(fate.random_range(0..2000)) }
            }
            _ => Fate::Served,
        });
        let (mut said, mut others, mut generations) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for step in 0..300 {
            let name = names[random.random_range(0..names.len())].clone();
            match random.random_range(0..10) {
                0..4 => {
                    // The verdict is on the generation in the world, which may be an older one.
                    let known = rig.known[&route_path(&name)]["metadata"]["generation"].as_i64().unwrap();
                    rig.board.set(route_key(&name), judged(&name, &format!("{step}"), known));
                    said.insert(name, Some(format!("{step}")));
                }
                4 => {
                    rig.board.set(route_key(&name), Wanted::Released);
                    said.insert(name, None);
                }
                5 | 6 => {
                    let entry = foreign_entry(&format!("{step}"));
                    rig.api.change(&route_path(&name), |object| {
                        let mut parents = object["status"]["parents"].as_array().cloned().unwrap_or_default();
                        parents.retain(|entry| entry["controllerName"] != THEIRS);
                        parents.push(entry.clone());
                        object["status"]["parents"] = json!(parents);
                    });
                    others.insert(name, entry);
                }
                7 => {
                    let generation = generations.entry(name.clone()).or_insert(1);
                    *generation += 1;
                    let generation = *generation;
                    rig.api.change(&route_path(&name), |object| {
                        object["metadata"]["generation"] = json!(generation);
                    });
                }
                8 => rig.watch(),
                _ if random.random_bool(0.3) => rig.follow(),
                _ => rig.lead(),
            }
            sleep(ms(random.random_range(0..300))).await;
        }
        rig.lead();
        rig.api.script(|_| Fate::Served);
        rig.run(secs(60)).await;
        // The last verdict is on the newest generation.
        for name in said.keys().cloned().collect::<Vec<_>>() {
            let generation = generations.get(&name).copied().unwrap_or(1);
            if said[&name].is_some() {
                rig.board.set(route_key(&name), judged(&name, "last", generation));
                said.insert(name, Some("last".to_owned()));
            }
        }
        rig.run(secs(60)).await;
        for (name, said) in &said {
            let status = rig.status(&route_path(name));
            assert_eq!(&message(&status), said, "seed {seed}, {name}");
            let mut entries = status["parents"].as_array().into_iter().flatten();
            let theirs = entries.rfind(|entry| entry["controllerName"] == THEIRS);
            assert_eq!(theirs, others.get(name), "seed {seed}, {name}");
        }
        let at_rest = rig.api.seen(|_| true).len();
        rig.run(secs(600)).await;
        assert_eq!(rig.api.seen(|_| true).len(), at_rest, "seed {seed}");
    }
}
