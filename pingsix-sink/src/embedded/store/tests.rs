use std::collections::BTreeMap;

use proptest::prelude::*;

use super::testing::{block, documents, everything, publish, records_at, state};
use super::*;
use crate::desired::DocumentSet;

/// The revisions of the commits for a watch of `range` that has seen everything below `next`.
fn unseen(store: &Store, range: &KeyRange, next: i64) -> Result<Vec<i64>, Compacted> {
    Ok(store.position(range, next, None)?.revisions(next))
}

/// All records.
fn records(store: &Store) -> Vec<Arc<Record>> {
    store.select(&everything()).iter().cloned().collect()
}

proptest! {
    /// Every revision in the history has its state, and no other has one.
    #[test]
    fn the_history_has_earlier_states_or_is_compacted(
        states in prop::collection::vec(state(), 1..12), commits in 1usize..8, limit in 80usize..400,
    ) {
        let scope = Scope::new("/p/web").unwrap();
        let mut store = Store::new(block(100, 10_000), HistoryBounds { commits, bytes: 1 << 20 });
        store.complete();
        let mut seen = Vec::new();
        let mut before = DocumentSet::default();
        for state in states {
            let now = documents(&state);
            publish(&mut store, &scope, &before, &now, limit);
            seen.push((store.header(), records(&store)));
            before = now;
            let bytes: usize = store.scopes.iter().map(|log| log.bytes).sum();
            prop_assert_eq!(store.history_size().1, bytes);
            let size = store.size_of(&scope).unwrap();
            prop_assert_eq!(size.documents, before.len());
            let listed: usize = records(&store).iter().map(|record| record.listed_bytes()).sum();
            prop_assert_eq!(size.bytes, listed);
        }
        for (revision, held) in seen {
            match records_at(&store, revision) {
                Some(after) => prop_assert_eq!(after, held),
                None => prop_assert!(revision + 1 < store.floor()),
            }
        }
    }

    /// A client that lists once and applies the change to each later state has the same records as a client that lists
    /// again.
    #[test]
    fn a_list_and_the_changes_after_it_make_the_next_list(
        states in prop::collection::vec(state(), 2..10), limit in 80usize..400,
    ) {
        let scope = Scope::new("/p/web").unwrap();
        let mut store = Store::new(block(100, 10_000), HistoryBounds { commits: 1_000, bytes: 1 << 20 });
        let mut before = documents(&states[0]);
        publish(&mut store, &scope, &DocumentSet::default(), &before, limit);
        store.complete();
        let mut mirror: BTreeMap<Box<[u8]>, Arc<Record>> =
            records(&store).into_iter().map(|record| (record.key.clone(), record)).collect();
        let mut next = store.header() + 1;
        for state in &states[1..] {
            let now = documents(state);
            publish(&mut store, &scope, &before, &now, limit);
            before = now;
        }
        for revision in unseen(&store, &everything(), next).unwrap() {
            prop_assert!(revision >= next);
            let position = store.position(&everything(), next, None).unwrap();
            for states in position.until(revision) {
                let (before, after) = states.unwrap();
                prop_assert_eq!(after.revision(), revision);
                for change in after.since(before, &everything()) {
                    prop_assert_eq!(change.revision, revision);
                    match change.after {
                        Some(record) => mirror.insert(record.key.clone(), Arc::clone(record)),
                        None => mirror.remove(change.key),
                    };
                }
            }
            next = revision + 1;
        }
        let held = records(&store).into_iter().map(|record| (record.key.clone(), record));
        prop_assert_eq!(mirror, held.collect::<BTreeMap<_, _>>());
    }
}

#[test]
fn the_newest_publication_is_kept_whole_whatever_the_bounds() {
    let scope = Scope::new("/p/web").unwrap();
    let mut store = Store::new(block(1, 1_000), HistoryBounds { commits: 1, bytes: 1 });
    store.complete();
    let listed = store.header();
    let all = documents(&(0..8).map(|id| (id, 3)).collect());
    publish(&mut store, &scope, &DocumentSet::default(), &all, 80);
    assert_eq!(store.history_size().0, 8);
    assert_eq!(unseen(&store, &everything(), listed + 1).unwrap().len(), 8);
    publish(&mut store, &scope, &all, &DocumentSet::default(), 10_000);
    assert_eq!(store.history_size().0, 1);
    assert_eq!(unseen(&store, &everything(), listed + 1).unwrap_err(), Compacted(store.floor()));
}

#[test]
fn opening_the_gate_drops_the_history_and_keeps_the_state() {
    let scope = Scope::new("/p/web").unwrap();
    let mut store = Store::new(block(1, 1_000), HistoryBounds { commits: 100, bytes: 1 << 20 });
    let (one, two) = (documents(&[(1, 1)].into()), documents(&[(1, 2)].into()));
    publish(&mut store, &scope, &DocumentSet::default(), &one, 10_000);
    assert_eq!(store.admit(&everything()), Err(StoreError::NotComplete));
    publish(&mut store, &scope, &one, &two, 10_000);
    store.complete();
    assert_eq!(store.admit(&everything()), Ok(()));
    assert_eq!(store.floor(), store.header());
    assert_eq!(store.select(&everything()).len(), 1);
    assert_eq!(unseen(&store, &everything(), store.header()).unwrap().len(), 1);
}

#[test]
fn a_header_leaves_the_reserved_numbers_only_for_other_reserved_ones() {
    let mut store = Store::new(block(10, 12), HistoryBounds { commits: 9, bytes: 99 });
    assert!(store.next_revisions(3).is_none());
    assert_eq!(store.next_revisions(2), Some(11..=12));
    store.raise(13);
    assert_eq!(store.header(), 10);
    store.extend(block(13, 20));
    assert_eq!(store.header(), 10, "a block that follows does not move the header");
    assert_eq!(store.next_revisions(3), Some(11..=13));
    store.extend(block(50, 60));
    assert_eq!(store.header(), 50, "a block further on does, for the numbers between are not ours");
    assert!([10, 50].iter().all(|given| store.has_issued(*given)));
    assert!([9, 12, 20, 21, 49, 51].iter().all(|other| !store.has_issued(*other)), "not given, or not here");
    store.extend(block(30, 40));
    assert_eq!(store.next_revisions(10), Some(51..=60), "a block from before is not used");
}

/// A publication of documents with values of so many bytes.
fn publish_sized(store: &mut Store, scope: &Scope, before: &mut DocumentSet, round: u8) {
    // Each publication deletes a key of the one before.
    let now = documents(&(0..3).chain([3 + round % 2]).map(|id| (id, 100 + round)).collect());
    publish(store, scope, before, &now, 10_000);
    *before = now;
}

#[test]
fn a_busy_scope_drops_only_its_own_history() {
    let (busy, quiet) = (Scope::new("/p/busy").unwrap(), Scope::new("/p/quiet").unwrap());
    let mut store = Store::new(block(1, 10_000), HistoryBounds { commits: 1_000, bytes: 100_000 });
    let (mut of_busy, mut of_quiet) = (DocumentSet::default(), DocumentSet::default());
    publish_sized(&mut store, &busy, &mut of_busy, 0);
    store.complete();
    for round in 0..3 {
        publish_sized(&mut store, &quiet, &mut of_quiet, round);
    }
    for round in 0..200 {
        publish_sized(&mut store, &busy, &mut of_busy, round % 100 + 1);
        assert!(store.history_size().1 <= 100_000, "{:?}", store.history_size());
    }
    let range = |scope: &Scope| {
        let (key, end) = scope.key_range();
        KeyRange::new(key, end)
    };
    assert!(unseen(&store, &range(&busy), 2).is_err());
    assert_eq!(unseen(&store, &range(&quiet), 2).unwrap().len(), 3);
    assert_eq!(unseen(&store, &everything(), 2).unwrap_err(), Compacted(store.floor()));
}

#[test]
fn a_range_costs_the_scopes_it_has_keys_of_and_no_others() {
    let mut store = Store::new(block(1, 10_000), HistoryBounds { commits: 10, bytes: 1 << 20 });
    // By name "/p/a" precedes "/p/a-1"; by key the order is reversed.
    let names = ["/p/a", "/p/a-1", "/p/a:1", "/p/b", "/q/a"];
    for name in names {
        publish_sized(&mut store, &Scope::new(name).unwrap(), &mut DocumentSet::default(), 0);
    }
    for (start, end, expected) in [
        ("\0", "\0", 5),
        ("/p/", "/p0", 4),
        ("/p/a/", "/p/a0", 1),
        ("/p/a-1/k/0", "", 1),
        ("/p/a", "/p/b", 3),
        ("/p/a/k/3", "/p/b/k/1", 3),
        ("/p/c", "/p/d", 0),
        ("/p/b", "/p/a", 0),
    ] {
        let range = KeyRange::new(start, end);
        let overlapping: Vec<&Scope> = store.overlapping(&range).map(|log| &log.scope).collect();
        let expected_scopes = store.scopes().map(|(scope, _)| scope).filter(|scope| range.overlaps(scope));
        assert_eq!(overlapping, expected_scopes.collect::<Vec<_>>(), "{start:?} {end:?}");
        assert_eq!(overlapping.len(), expected, "{start:?} {end:?}");
    }
    assert_eq!(records(&store).len(), 20);
    assert!(records(&store).is_sorted_by_key(|record| record.key.clone()));
}
