//! The slots of concurrent translations.
//!
//! Light owners have as many threads as there are processors, between two and eight, and heavy owners one fewer, because
//! each translation takes memory of its own. Heavy owners cannot delay light ones by number or length of their
//! translations. Some translations of light owners wait for each thread, so that an idle thread finds the next one at once.

use super::Capacity;

/// The number of light translations in progress for each thread, the running one included.
const LIGHT_TRANSLATIONS_PER_THREAD: usize = 8;

/// The number of translations in progress and its limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobSlots {
    threads: usize,
    light: usize,
    heavy: usize,
}

impl JobSlots {
    /// For so many processors.
    pub(crate) fn of(processors: usize) -> Self {
        Self { threads: processors.clamp(2, 8), light: 0, heavy: 0 }
    }

    /// The number of threads for light owners.
    pub(crate) const fn threads(&self) -> usize {
        self.threads
    }

    /// The owners that may begin; `None` without a free slot.
    pub(crate) const fn capacity(&self) -> Option<Capacity> {
        if self.light >= self.threads * LIGHT_TRANSLATIONS_PER_THREAD {
            None
        } else if self.light + self.heavy >= self.threads || self.heavy + 1 >= self.threads {
            Some(Capacity::LightOnly)
        } else {
            Some(Capacity::Any)
        }
    }

    /// One begins.
    pub(crate) const fn take(&mut self, is_light: bool) {
        *self.of_kind(is_light) += 1;
    }

    /// One has ended.
    pub(crate) const fn free(&mut self, is_light: bool) {
        let count = self.of_kind(is_light);
        *count = count.saturating_sub(1);
    }

    const fn of_kind(&mut self, is_light: bool) -> &mut usize {
        if is_light { &mut self.light } else { &mut self.heavy }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, VecDeque};
    use std::time::Duration;

    use pingsix_translate::{Kind, ObjectKey};
    use rand::rngs::StdRng;
    use rand::{Rng as _, SeedableRng as _};
    use tokio::time::Instant;

    use super::*;
    use crate::reconcile::{Pace, Queue, Turn};

    const MILLISECOND: Duration = Duration::from_millis(1);

    /// An owner that wants its next turn so long after the end of the last one.
    #[derive(Clone, Copy)]
    struct Demand {
        job: Duration,
        pause: Duration,
    }

    /// The demand of one owner in the simulation.
    #[derive(Clone, Copy, Debug, Default)]
    struct Share {
        turns: u32,
        took: Duration,
        longest_wait: Duration,
    }

    fn owner(number: usize) -> ObjectKey {
        ObjectKey::new(Kind::Gateway, "infra", &*number.to_string())
    }

    /// Serves these owners for a time, on idle processors. The first part of the time is not counted, because no owner has
    /// a debt yet.
    fn serve(demands: &[Demand], processors: usize, warm_up: Duration, time: Duration) -> Vec<Share> {
        let (start, mut now) = (Instant::now(), Instant::now());
        // Rests would hide what turns make of it.
        let mut queue = Queue::new(Pace { rest_factor: 0, ..Pace::default() });
        let mut slots = JobSlots::of(processors);
        let numbers: BTreeMap<ObjectKey, usize> =
            (0..demands.len()).map(|number| (owner(number), number)).collect();
        let mut shares = vec![Share::default(); demands.len()];
        let mut ready: VecDeque<Turn> = VecDeque::new();
        let mut running: Vec<(Instant, Turn)> = Vec::new();
        let mut pausing: Vec<(Instant, usize)> = (0..demands.len()).map(|number| (now, number)).collect();
        while now < start + warm_up + time {
            pausing.retain(|(until, number)| {
                if *until <= now {
                    queue.push(owner(*number), *until);
                }
                *until > now
            });
            while let Some(turn) = slots.capacity().and_then(|capacity| queue.turn(now, capacity)) {
                slots.take(turn.is_light);
                ready.push_back(turn);
            }
            // A heavy owner has a thread of its own.
            let light =
                |running: &[(Instant, Turn)]| running.iter().filter(|(_, turn)| turn.is_light).count();
            while let Some(place) =
                ready.iter().position(|turn| !turn.is_light || light(&running) < slots.threads())
                && let Some(turn) = ready.remove(place)
            {
                let number = numbers[&turn.owner];
                if now >= start + warm_up {
                    let share = &mut shares[number];
                    share.turns += 1;
                    share.took += demands[number].job;
                    share.longest_wait = share.longest_wait.max(now - turn.due);
                }
                running.push((now + demands[number].job, turn));
            }
            let soonest = running.iter().map(|(end, _)| *end).chain(pausing.iter().map(|(until, _)| *until));
            let soonest =
                soonest.chain(slots.capacity().and_then(|capacity| queue.next_turn(capacity))).min().unwrap();
            assert!(soonest > now, "it does not go round and round");
            now = soonest;
            running.retain(|(end, turn)| {
                if *end <= now {
                    let number = numbers[&turn.owner];
                    slots.free(turn.is_light);
                    queue.rest(&turn.owner, now, demands[number].job);
                    pausing.push((now + demands[number].pause, number));
                }
                *end > now
            });
        }
        shares
    }

    #[test]
    fn light_owners_wait_for_no_heavy_one_however_many_burn_all_they_can() {
        let mut random = StdRng::seed_from_u64(1);
        for round in 0..60 {
            let processors = random.random_range(1..=8);
            let burning = random.random_range(1..=12);
            let mut demands: Vec<Demand> = (0..burning)
                .map(|_| Demand { job: random.random_range(50..3000) * MILLISECOND, pause: Duration::ZERO })
                .collect();
            let quick = Demand { job: 2 * MILLISECOND, pause: random.random_range(8..100) * MILLISECOND };
            demands.push(quick);
            // The first translation of each may be that of one that was light until then.
            let all: Duration = demands.iter().map(|demand| demand.job).sum();
            let shares = serve(&demands, processors, all, Duration::from_mins(1));
            let share = shares[burning];
            assert_eq!(share.longest_wait, Duration::ZERO, "round {round}: {share:?}");
            assert!(share.turns > 500, "round {round}: {share:?}");
        }
    }

    #[test]
    fn light_owners_wait_for_each_other_alone() {
        const QUICK: usize = 6;
        let mut random = StdRng::seed_from_u64(2);
        for round in 0..40 {
            let mut demands = vec![Demand { job: Duration::from_secs(1), pause: Duration::ZERO }; 5];
            demands.extend((0..QUICK).map(|_| Demand {
                job: random.random_range(1..=5) * MILLISECOND,
                pause: random.random_range(40..200) * MILLISECOND,
            }));
            let shares = serve(&demands, 2, Duration::from_secs(10), Duration::from_mins(1));
            for share in &shares[5..] {
                let others = u32::try_from(QUICK - 1).unwrap();
                assert!(share.longest_wait <= others * 5 * MILLISECOND, "round {round}: {share:?}");
            }
        }
    }

    #[test]
    fn a_heavy_owner_gets_only_its_share_however_long_its_translations_are() {
        // One slot for those that are heavy.
        let job = |milliseconds| Demand { job: milliseconds * MILLISECOND, pause: Duration::ZERO };
        let time = Duration::from_mins(2);
        let shares = serve(&[job(2000), job(200), job(100)], 2, Duration::from_secs(10), time);
        for share in shares {
            // A third, give or take some translations.
            assert!(share.took > time / 5 && share.took < time / 2, "{share:?}");
        }
        // One that wants less than a quarter of a processor gets it.
        let modest = Demand { job: 100 * MILLISECOND, pause: 400 * MILLISECOND };
        let shares = serve(&[job(1000), job(1000), job(1000), modest], 2, Duration::from_secs(10), time);
        assert!(shares[3].took > time / 10, "{shares:?}");
    }
}
