//! How clients take what they are told.
//!
//! A client that mirrors a scope as PingSIX does lists it and then watches it on the same connection. Of what it
//! cannot use it says nothing: it lets go of its watch and lists again after a second, and while it cannot use what it
//! lists, it lists again and again, three seconds after each answer, and opens no watch (`src/config/etcd.rs` of PingSIX).
//! What follows from that, and how sure it is:
//!
//! - A revision is **accepted** by a client that has been written it and still watches a while later. That is silence, and a
//!   client that is paused or cut off is silent too.
//! - It is **proven** when the client has also answered a ping that was sent later, for answers come in order; or when it asks
//!   to follow what comes after it, which it does with what it could use.
//! - What a list answered is **refused** by a client that then waits as long as PingSIX does and lists again, on the same
//!   connection, without a watch in between. One such pause is enough after it has let go of a watch in PingSIX's way, two when
//!   it has watched at all, and three when it has not; and then only while nobody watches. A client that looks around or polls
//!   waits otherwise, or is no program made with what PingSIX is made with.
//!
//! A connection that is lost says nothing, and a client that comes with a new one is not known. Nor does one list say
//! anything: a client with several servers may watch elsewhere, and lists at once when it is sent away from there.
//!
//! That is all etcd's protocol lets one know: what a client finds wrong later, while it watches on, does not show here.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use tonic::metadata::MetadataMap;

use super::store::KeyRange;
use crate::desired::Scope;
use crate::revision::Revision;

/// How long a client watches on that has taken what it was told. PingSIX lets go within milliseconds.
const TAKEN: Duration = Duration::from_secs(1);

/// From the end of a watch to the list that follows, when PingSIX could not use what it was told: it sleeps one second. The
/// end may be noticed late.
const AFTER_WATCH: Range<Duration> = Duration::from_millis(500)..Duration::from_millis(2_900);

/// From the answer to a list to the next request, when PingSIX cannot use it: it reads the answer, and sleeps three seconds.
/// Who asks every three seconds comes earlier, who asks every five seconds later, and who was sent away by another server
/// comes at once.
const AFTER_LIST: Range<Duration> = Duration::from_millis(2_990)..Duration::from_millis(4_500);

/// How late it may come when it has let go of a watch in its way before: reading takes it longer when it has little to run on.
const LATEST: Duration = Duration::from_secs(8);

/// For how long a client refuses that does not list any more.
const FORGOTTEN: Duration = Duration::from_secs(15);

/// What PingSIX is made with names itself in every request.
const PROGRAM: &str = "tonic/";

/// How the clients of a scope take what they are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reception {
    /// How many clients there are that watch, or have watched and are still connected.
    pub clients: usize,
    /// What all of those that watch have accepted, as far as their silence tells: everything up to this revision.
    pub accepted: Option<Revision>,
    /// What all of those that watch have certainly received and not refused: everything up to this revision.
    pub proven: Option<Revision>,
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
    /// When it let go of its last watch, until it lists.
    let_go: Option<Instant>,
    /// Whether it listed after that as PingSIX does when it could not use what it was told.
    has_dropped: bool,
    /// What was listed since it last wanted to watch, and when that was answered.
    listed: Option<(i64, Instant)>,
    /// How often it has waited as PingSIX does and listed again since then.
    retries: u32,
    /// What was listed before the last of them, when there are enough.
    refused: Option<i64>,
}

/// What a watch was told.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    accepted: Standing,
    proven: Standing,
    /// What was written when the client last answered a ping: it has received that when it answers the next one.
    before_ping: Option<i64>,
}

/// A revision that holds once it has stood for long enough.
#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    /// What has.
    taken: i64,
    /// What came last.
    last: Option<(i64, Instant)>,
}

impl Standing {
    fn at(self, now: Instant) -> i64 {
        match self.last {
            Some((revision, since)) if now.duration_since(since) >= TAKEN => revision,
            Some(_) | None => self.taken,
        }
    }

    fn set(&mut self, revision: i64, now: Instant) {
        *self = Self { taken: self.at(now), last: Some((revision, now)) };
    }
}

/// A request to list, when it came and whether from a program like PingSIX.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    at: Instant,
    is_like_pingsix: bool,
}

impl Asked {
    /// One that comes now with this metadata.
    pub(super) fn now(metadata: &MetadataMap) -> Self {
        let program = metadata.get("user-agent").and_then(|program| program.to_str().ok());
        Self { at: Instant::now(), is_like_pingsix: program.is_some_and(|name| name.contains(PROGRAM)) }
    }
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
        let refused = refusing.filter_map(|mirror| mirror.refused(now)).max();
        let of_all = |what: fn(&Told) -> Standing| {
            let watched = mirrors.iter().filter(|mirror| mirror.watches > 0);
            let least = watched.map(|mirror| mirror.told.map_or(0, |told| what(&told).at(now))).min();
            least.filter(|revision| *revision > 0)
        };
        let (accepted, proven) = (of_all(|told| told.accepted), of_all(|told| told.proven));
        // What one refuses, others may not have read who are silent.
        let accepted = accepted.filter(|accepted| proven >= Some(*accepted) || refused < Some(*accepted));
        Reception {
            clients: mirrors.iter().filter(|mirror| mirror.has_watched).count(),
            accepted: accepted.max(proven).and_then(Revision::new),
            proven: proven.and_then(Revision::new),
            refused: refused.and_then(Revision::new),
        }
    }

    /// Notes what happens to the mirrors of a client if it is anything, and has somebody look when it has shown what comes of it.
    fn note(&self, client: u64, what: impl FnOnce(&mut Vec<Mirror>) -> bool) {
        let mut state = self.0.state.lock();
        let Some(mirrors) = state.clients.get_mut(&client) else { return };
        if !what(mirrors) {
            return;
        }
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
        Self {
            range,
            watches: 0,
            told: None,
            has_watched: false,
            let_go: None,
            has_dropped: false,
            listed: None,
            retries: 0,
            refused: None,
        }
    }

    /// The mirror of a range, which may be new.
    fn of<'m>(mirrors: &'m mut Vec<Self>, range: &KeyRange) -> &'m mut Self {
        let at = mirrors.iter().position(|mirror| mirror.range == *range).unwrap_or_else(|| {
            mirrors.push(Self::new(range.clone()));
            mirrors.len() - 1
        });
        &mut mirrors[at]
    }

    /// What it refuses, as long as it goes on to do so.
    fn refused(&self, now: Instant) -> Option<i64> {
        let (_, answered) = self.listed?;
        self.refused.filter(|_| now.duration_since(answered) < FORGOTTEN)
    }

    /// How often it has to wait as PingSIX does for that to be a refusal.
    const fn telling_retries(&self) -> u32 {
        match (self.has_dropped, self.has_watched) {
            (true, _) => 1,
            (false, true) => 2,
            (false, false) => 3,
        }
    }

    fn listed(&mut self, revision: i64, asked: Asked, now: Instant) {
        if let Some(let_go) = self.let_go.take() {
            self.has_dropped = AFTER_WATCH.contains(&asked.at.duration_since(let_go));
        }
        if let Some((before, answered)) = self.listed.replace((revision, now)) {
            let end = if self.has_dropped { LATEST } else { AFTER_LIST.end };
            let is_retry = self.watches == 0
                && asked.is_like_pingsix
                && (AFTER_LIST.start..end).contains(&asked.at.duration_since(answered));
            if is_retry {
                self.retries += 1;
                if self.retries >= self.telling_retries() {
                    self.refused = Some(before);
                }
            } else {
                // PingSIX does not do that, so neither is what was before a sign of it.
                (self.has_dropped, self.retries, self.refused) = (false, 0, None);
            }
        }
    }

    /// It could use what it has listed.
    fn follows(&mut self) {
        (self.let_go, self.has_dropped) = (None, false);
        (self.listed, self.retries, self.refused) = (None, 0, None);
    }
}

impl Client {
    /// It was answered a list of a range.
    pub(super) fn listed(&self, range: &KeyRange, revision: i64, asked: Asked) {
        self.receptions.note(self.id, |mirrors| {
            Mirror::of(mirrors, range).listed(revision, asked, Instant::now());
            true
        });
        self.receptions.0.changes.send_modify(|changes| *changes += 1);
    }

    /// It wants to watch a range, whether it may or is sent away.
    pub(super) fn follows(&self, range: &KeyRange) {
        // Who has listed nothing is not remembered for it.
        self.receptions.note(self.id, |mirrors| {
            let mirror = mirrors.iter_mut().find(|mirror| mirror.range == *range);
            mirror.map(Mirror::follows).is_some()
        });
    }

    /// It watches a range, of which it says that it knows everything up to a revision, if it says anything.
    pub(super) fn watches(&self, range: &KeyRange, known: Option<i64>) {
        self.receptions.note(self.id, |mirrors| {
            let mirror = Mirror::of(mirrors, range);
            mirror.follows();
            mirror.watches += 1;
            mirror.has_watched = true;
            let mut told = Told::default();
            if let Some(known) = known {
                let now = Instant::now();
                told.accepted.set(known, now);
                told.proven.set(known, now);
            }
            mirror.told = Some(told);
            true
        });
    }

    /// It was written what a range holds at a revision.
    pub(super) fn told(&self, range: &KeyRange, revision: i64) {
        self.receptions.note(self.id, |mirrors| {
            // The watch may be over by now.
            let told = mirrors.iter_mut().find(|mirror| mirror.range == *range);
            let Some(told) = told.and_then(|mirror| mirror.told.as_mut()) else { return false };
            told.accepted.set(revision, Instant::now());
            true
        });
    }

    /// It has answered a ping, so it has received what was written to it before that. Pings follow one another, so what was
    /// written before the last answer is older than this ping.
    pub(super) fn answered(&self) {
        self.receptions.note(self.id, |mirrors| {
            let (now, mut is_news) = (Instant::now(), false);
            for told in mirrors.iter_mut().filter_map(|mirror| mirror.told.as_mut()) {
                let received = told.before_ping;
                told.before_ping = told.accepted.last.map(|(revision, _)| revision);
                let known = told.proven.last.map(|(revision, _)| revision);
                if let Some(received) = received.filter(|received| Some(*received) > known) {
                    told.proven.set(received, now);
                    is_news = true;
                }
            }
            is_news
        });
    }

    /// A watch of a range has ended, and we have ended it or the client has let go.
    pub(super) fn left(&self, range: &KeyRange, is_cancelled: bool) {
        self.receptions.note(self.id, |mirrors| {
            let mirror = Mirror::of(mirrors, range);
            mirror.watches = mirror.watches.saturating_sub(1);
            if mirror.watches == 0 {
                mirror.told = None;
                mirror.let_go = (!is_cancelled).then(Instant::now);
            }
            true
        });
    }
}

#[cfg(test)]
mod tests;
