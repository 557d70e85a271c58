//! The sessions of one port.

use std::collections::HashMap;

use super::link::Ends;

/// The number of parts of the sessions. One part is ordered at a time, so that one order serves for many evictions.
const SESSION_PARTS: usize = 64;

/// Sessions by the addresses of their clients; the hash has a random key, so no client can choose collisions.
#[derive(Debug)]
pub(super) struct Sessions<S> {
    by_ends: HashMap<Ends, S>,
    /// The least recently used sessions at some time, with the time of their last use; the last element is the oldest.
    oldest: Vec<(u64, Ends)>,
}

impl<S> Sessions<S> {
    pub(super) fn new() -> Self {
        Self { by_ends: HashMap::new(), oldest: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_ends.is_empty()
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.by_ends.len()
    }

    pub(super) fn get_mut(&mut self, ends: &Ends) -> Option<&mut S> {
        self.by_ends.get_mut(ends)
    }

    /// Adds a session, and returns it.
    pub(super) fn insert(&mut self, ends: Ends, session: S) -> &mut S {
        self.by_ends.entry(ends).insert_entry(session).into_mut()
    }

    /// Removes the other sessions.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&mut S) -> bool) {
        self.by_ends.retain(|_, session| keep(session));
    }

    /// Removes the least recently used session. `last` is the time of the last use of a session; times never decrease.
    ///
    /// The order of a part of the sessions is kept: sessions that have not been used since then are still older than
    /// all others.
    pub(super) fn take_oldest(&mut self, last: impl Fn(&S) -> u64) -> Option<S> {
        while let Some((time, ends)) = self.oldest.pop() {
            if self.by_ends.get(&ends).is_some_and(|session| last(session) == time) {
                return self.by_ends.remove(&ends);
            }
        }
        let all = self.by_ends.iter().map(|(ends, session)| (last(session), *ends));
        self.oldest = all.collect();
        let part = self.oldest.len().div_ceil(SESSION_PARTS);
        if part < self.oldest.len() {
            self.oldest.select_nth_unstable(part);
            self.oldest.truncate(part);
            self.oldest.shrink_to_fit();
        }
        self.oldest.sort_unstable_by(|one, other| other.cmp(one));
        // Without another look at the time: if all sessions are in constant use, any is as good.
        let (_, ends) = self.oldest.pop()?;
        self.by_ends.remove(&ends)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ends(port: u16) -> Ends {
        Ends { client: ([127, 0, 0, 1], port).into(), asked: None }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn the_least_recently_used_goes_first(uses in prop::collection::vec((0..300_u16, 0..4_u8), 0..3_000)) {
            let mut sessions = Sessions::new();
            let mut model: Vec<u16> = Vec::new();
            for (time, (port, kind)) in (0..).zip(uses) {
                if kind == 0 {
                    let oldest = sessions.take_oldest(|(time, _)| *time).map(|(_, port)| port);
                    prop_assert_eq!(oldest, if model.is_empty() { None } else { Some(model.remove(0)) });
                } else {
                    match sessions.get_mut(&ends(port)) {
                        Some((last, _)) => *last = time,
                        None => {
                            sessions.insert(ends(port), (time, port));
                        }
                    }
                    model.retain(|known| *known != port);
                    model.push(port);
                }
                prop_assert_eq!(sessions.len(), model.len());
            }
        }
    }
}
