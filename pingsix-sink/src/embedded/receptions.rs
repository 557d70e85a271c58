//! How clients take what they are told.
//!
//! A client that mirrors a scope as PingSIX does lists it and then watches it on the same connection. Of what it
//! cannot use it says nothing: it lets go of its watch and lists again after a second, and while it cannot use what it
//! lists, it lists again and again, every three seconds, and opens no watch (`src/config/etcd.rs` of PingSIX). So
//!
//! - a revision is **accepted** by a client that was told of it and still watches a while later, and
//! - what a list answered is **refused** by a client that lists again on the same connection without having watched.
//!
//! A connection that is lost says nothing, and a client that comes with a new one is not known. Nor does one list say
//! anything: a client with several servers may watch elsewhere. Who lists now and then and has never watched, as a program
//! does that looks around, refuses nothing while somebody watches.
//!
//! That is all etcd's protocol lets one know: what a client finds wrong later, while it watches on, does not show here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::store::KeyRange;
use crate::desired::Scope;
use crate::revision::Revision;

/// How long a client watches on that has taken what it was told. PingSIX lets go within milliseconds.
const TAKEN: Duration = Duration::from_secs(1);

/// How long a client waits at least before it lists again what it could not use.
const AGAIN: Duration = Duration::from_millis(500);

/// How the clients of a scope take what they are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reception {
    /// How many clients there are that watch, or have watched and are still connected.
    pub clients: usize,
    /// What all of those that watch have accepted: everything up to this revision.
    pub accepted: Option<Revision>,
    /// What one of them has refused: what it was given at this revision.
    pub refused: Option<Revision>,
}

/// What connected clients have listed and watched.
#[derive(Clone, Debug)]
pub(super) struct Receptions(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    /// How often somebody should look again.
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    last: u64,
    clients: BTreeMap<u64, Vec<Mirror>>,
    /// Whether somebody will be told to look again; and how much has happened by now.
    is_announced: bool,
    happened: u64,
}

/// A range that a client mirrors.
#[derive(Debug)]
struct Mirror {
    range: KeyRange,
    /// Watches that are open, and what they were told.
    watches: usize,
    told: Option<Told>,
    has_watched: bool,
    /// What was listed since it last watched, and when.
    listed: Option<(i64, Instant)>,
    /// What was listed before that, and not watched.
    refused: Option<i64>,
}

/// What a watch was told.
#[derive(Clone, Copy, Debug)]
struct Told {
    revision: i64,
    at: Instant,
    /// What stood for long enough before.
    taken: i64,
}

impl Default for Receptions {
    fn default() -> Self {
        Self(Arc::new(Inner { state: Mutex::default(), changes: watch::Sender::new(0) }))
    }
}

/// A client, until its connection is closed.
#[derive(Debug)]
pub(super) struct Client {
    receptions: Receptions,
    id: u64,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.receptions.0.state.lock().clients.remove(&self.id);
        self.receptions.0.changes.send_modify(|changes| *changes += 1);
    }
}

impl Receptions {
    /// Counts a connection until what is returned is dropped.
    pub(super) fn connect(&self) -> Client {
        let mut state = self.0.state.lock();
        state.last += 1;
        let id = state.last;
        state.clients.insert(id, Vec::new());
        Client { receptions: self.clone(), id }
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// How the clients of a scope take what they are told.
    pub(super) fn of(&self, scope: &Scope) -> Reception {
        let state = self.0.state.lock();
        let mirrors: Vec<&Mirror> =
            state.clients.values().flatten().filter(|mirror| mirror.range.covers(scope)).collect();
        let is_watched = mirrors.iter().any(|mirror| mirror.watches > 0);
        let now = Instant::now();
        let refusing = mirrors.iter().filter(|mirror| mirror.has_watched || !is_watched);
        let refused = refusing.filter_map(|mirror| mirror.refused).max();
        let watched = mirrors.iter().filter(|mirror| mirror.watches > 0);
        let accepted = watched.map(|mirror| mirror.accepted(now)).min().flatten();
        Reception {
            clients: mirrors.iter().filter(|mirror| mirror.has_watched).count(),
            accepted: accepted.and_then(Revision::new),
            refused: refused.and_then(Revision::new),
        }
    }

    /// Notes what happens to a mirror, and has somebody look when it has shown what comes of it.
    fn note(&self, client: u64, range: &KeyRange, what: impl FnOnce(&mut Mirror)) {
        let mut state = self.0.state.lock();
        let Some(mirrors) = state.clients.get_mut(&client) else { return };
        let at = mirrors.iter().position(|mirror| mirror.range == *range).unwrap_or_else(|| {
            mirrors.push(Mirror::new(range.clone()));
            mirrors.len() - 1
        });
        what(&mut mirrors[at]);
        state.happened += 1;
        if !std::mem::replace(&mut state.is_announced, true) {
            drop(state);
            // The last watches may end with the runtime, and then nobody looks any more.
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(self.clone().announce());
            }
        }
    }

    /// Has somebody look until everything has shown that has happened.
    async fn announce(self) {
        loop {
            let before = self.0.state.lock().happened;
            // A moment more, for whoever looks to find it past.
            tokio::time::sleep(TAKEN + Duration::from_millis(1)).await;
            self.0.changes.send_modify(|changes| *changes += 1);
            let mut state = self.0.state.lock();
            if state.happened == before {
                state.is_announced = false;
                return;
            }
        }
    }
}

impl Mirror {
    const fn new(range: KeyRange) -> Self {
        Self { range, watches: 0, told: None, has_watched: false, listed: None, refused: None }
    }

    /// What it has taken.
    fn accepted(&self, now: Instant) -> Option<i64> {
        self.told.map(|told| told.settled(now)).filter(|revision| *revision > 0)
    }
}

impl Told {
    fn settled(self, now: Instant) -> i64 {
        if now.duration_since(self.at) >= TAKEN { self.revision } else { self.taken }
    }
}

impl Client {
    /// It was answered a list of a range.
    pub(super) fn listed(&self, range: &KeyRange, revision: i64) {
        self.receptions.note(self.id, range, |mirror| {
            let now = Instant::now();
            if let Some((before, at)) = mirror.listed
                && now.duration_since(at) >= AGAIN
                && mirror.watches == 0
            {
                mirror.refused = Some(before);
            }
            mirror.listed = Some((revision, now));
        });
        self.receptions.0.changes.send_modify(|changes| *changes += 1);
    }

    /// It watches a range, of which it knows everything up to a revision.
    pub(super) fn watches(&self, range: &KeyRange, known: i64) {
        self.receptions.note(self.id, range, |mirror| {
            mirror.watches += 1;
            mirror.has_watched = true;
            (mirror.listed, mirror.refused) = (None, None);
            mirror.told = Some(Told { revision: known, at: Instant::now(), taken: 0 });
        });
    }

    /// It was told what a range holds at a revision.
    pub(super) fn told(&self, range: &KeyRange, revision: i64) {
        self.receptions.note(self.id, range, |mirror| {
            let now = Instant::now();
            let taken = mirror.told.map_or(0, |told| told.settled(now));
            mirror.told = Some(Told { revision, at: now, taken });
        });
    }

    /// A watch of a range has ended.
    pub(super) fn left(&self, range: &KeyRange) {
        self.receptions.note(self.id, range, |mirror| {
            mirror.watches = mirror.watches.saturating_sub(1);
            if mirror.watches == 0 {
                mirror.told = None;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn range() -> KeyRange {
        KeyRange::new(Bytes::from_static(b"/p/web/"), Bytes::from_static(b"/p/web0"))
    }

    fn of(receptions: &Receptions) -> (usize, Option<i64>, Option<i64>) {
        let Reception { clients, accepted, refused } = receptions.of(&Scope::new("/p/web").unwrap());
        (clients, accepted.map(Revision::get), refused.map(Revision::get))
    }

    async fn pass(time: Duration) {
        tokio::time::sleep(time).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_watches_on_has_taken_what_it_was_told() {
        let receptions = Receptions::default();
        let client = receptions.connect();
        client.listed(&range(), 7);
        client.watches(&range(), 7);
        assert_eq!(of(&receptions), (1, None, None));
        pass(TAKEN).await;
        assert_eq!(of(&receptions), (1, Some(7), None));
        client.told(&range(), 9);
        assert_eq!(of(&receptions), (1, Some(7), None));
        pass(TAKEN / 2).await;
        client.told(&range(), 12);
        pass(TAKEN / 2).await;
        assert_eq!(of(&receptions), (1, Some(7), None), "neither has stood for long");
        pass(TAKEN / 2).await;
        assert_eq!(of(&receptions), (1, Some(12), None));
        // Of two, both have to.
        let other = receptions.connect();
        other.watches(&range(), 12);
        assert_eq!(of(&receptions), (2, None, None));
        pass(TAKEN).await;
        assert_eq!(of(&receptions), (2, Some(12), None));
        other.told(&range(), 20);
        pass(TAKEN).await;
        assert_eq!(of(&receptions), (2, Some(12), None));
        drop(client);
        assert_eq!(of(&receptions), (1, Some(20), None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_lets_go_and_lists_again_and_again_refuses() {
        let receptions = Receptions::default();
        let mut changes = receptions.changes();
        let client = receptions.connect();
        client.listed(&range(), 7);
        client.watches(&range(), 7);
        pass(TAKEN).await;
        client.told(&range(), 9);
        client.left(&range());
        pass(Duration::from_secs(1)).await;
        client.listed(&range(), 10);
        pass(Duration::from_secs(3)).await;
        assert_eq!(of(&receptions), (1, None, None), "it may watch elsewhere");
        changes.mark_unchanged();
        client.listed(&range(), 15);
        assert!(changes.has_changed().unwrap());
        assert_eq!(of(&receptions), (1, None, Some(10)), "what it lists next is another matter");
        client.watches(&range(), 15);
        pass(TAKEN).await;
        assert_eq!(of(&receptions), (1, Some(15), None));
        // A connection that is lost says nothing, nor does the first list on another.
        client.told(&range(), 20);
        client.left(&range());
        drop(client);
        let restarted = receptions.connect();
        restarted.listed(&range(), 20);
        pass(Duration::from_mins(1)).await;
        assert_eq!(of(&receptions), (0, None, None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_begins_with_what_it_cannot_use_is_known_by_listing_again() {
        let receptions = Receptions::default();
        let client = receptions.connect();
        client.listed(&range(), 7);
        // At once is no retry.
        client.listed(&range(), 7);
        assert_eq!(of(&receptions), (0, None, None));
        pass(Duration::from_secs(3)).await;
        client.listed(&range(), 7);
        assert_eq!(of(&receptions), (0, None, Some(7)));
        // Beside one that watches, it may be anybody.
        let other = receptions.connect();
        other.watches(&range(), 7);
        pass(TAKEN).await;
        assert_eq!(of(&receptions), (1, Some(7), None));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_told_to_look_when_nothing_happens() {
        let receptions = Receptions::default();
        let client = receptions.connect();
        client.watches(&range(), 7);
        pass(TAKEN * 4).await;
        let mut changes = receptions.changes();
        changes.mark_unchanged();
        pass(Duration::from_hours(1)).await;
        assert!(!changes.has_changed().unwrap());
        client.told(&range(), 8);
        pass(TAKEN * 4).await;
        assert!(changes.has_changed().unwrap());
    }
}
