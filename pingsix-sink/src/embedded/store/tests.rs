use proptest::prelude::*;

use super::testing::{block, documents, everything, publish, state};
use super::*;
use crate::desired::DocumentSet;

proptest! {
    /// Every revision that is kept reads as it was, and every one that is not is refused.
    #[test]
    fn the_past_reads_as_it_was_or_is_refused(
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
            seen.push((store.header(), store.select(&everything(), None).unwrap()));
            before = now;
            prop_assert!(store.history_size().1 == store.history.iter().map(|commit| commit.bytes).sum::<usize>());
            let size = store.size_of(&scope).unwrap();
            prop_assert_eq!(size.documents, before.len());
            let listed: usize = store.keys.iter().map(|ByKey(record)| record.listed_bytes()).sum();
            prop_assert_eq!(size.bytes, listed);
        }
        for (revision, records) in seen {
            match store.select(&everything(), Some(revision)) {
                Ok(then) => prop_assert_eq!(then, records),
                Err(refusal) => {
                    prop_assert_eq!(refusal, Refusal::Compacted);
                    prop_assert!(revision < store.compacted());
                }
            }
        }
        prop_assert_eq!(store.select(&everything(), Some(store.header() + 1)).unwrap_err(), Refusal::Future);
    }

    /// A client that lists once and then applies what a watch gives has the same records as one that lists again.
    #[test]
    fn a_list_and_the_commits_after_it_make_the_next_list(
        states in prop::collection::vec(state(), 2..10), limit in 80usize..400,
    ) {
        let scope = Scope::new("/p/web").unwrap();
        let mut store = Store::new(block(100, 10_000), HistoryBounds { commits: 1_000, bytes: 1 << 20 });
        let mut before = documents(&states[0]);
        publish(&mut store, &scope, &DocumentSet::default(), &before, limit);
        store.complete();
        let mut mirror: BTreeMap<Box<[u8]>, Arc<Record>> =
            store.keys.iter().map(|ByKey(record)| (record.key.clone(), Arc::clone(record))).collect();
        let mut next = store.header() + 1;
        for state in &states[1..] {
            let now = documents(state);
            publish(&mut store, &scope, &before, &now, limit);
            before = now;
        }
        loop {
            let Unseen { commits, reached, more } = store.unseen(&everything(), next, 2).unwrap();
            prop_assert!(!more || commits.last().unwrap().revision == reached);
            for commit in commits {
                prop_assert!(commit.revision >= next);
                next = commit.revision + 1;
                for change in &commit.changes {
                    match change {
                        Change::Put { record, .. } => mirror.insert(record.key.clone(), Arc::clone(record)),
                        Change::Delete { gone, .. } => mirror.remove(&gone.key),
                    };
                }
            }
            if !more { break; }
        }
        let held = store.keys.iter().map(|ByKey(record)| (record.key.clone(), Arc::clone(record)));
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
    assert_eq!(store.unseen(&everything(), listed + 1, 99).unwrap().commits.len(), 8);
    publish(&mut store, &scope, &all, &DocumentSet::default(), 10_000);
    assert_eq!(store.history_size().0, 1);
    assert_eq!(store.unseen(&everything(), listed + 1, 99).unwrap_err(), Compacted(store.compacted()));
}

#[test]
fn opening_the_gate_forgets_what_came_before_but_not_the_present() {
    let scope = Scope::new("/p/web").unwrap();
    let mut store = Store::new(block(1, 1_000), HistoryBounds { commits: 100, bytes: 1 << 20 });
    let (one, two) = (documents(&[(1, 1)].into()), documents(&[(1, 2)].into()));
    publish(&mut store, &scope, &DocumentSet::default(), &one, 10_000);
    assert_eq!(store.admit(&everything()), Err(Refusal::NotComplete));
    publish(&mut store, &scope, &one, &two, 10_000);
    store.complete();
    assert_eq!(store.admit(&everything()), Ok(()));
    assert_eq!(store.compacted(), store.header());
    assert_eq!(store.select(&everything(), Some(store.header())).unwrap().len(), 1);
    assert_eq!(store.select(&everything(), Some(store.header() - 1)).unwrap_err(), Refusal::Compacted);
    assert_eq!(store.unseen(&everything(), store.header(), 9).unwrap().commits.len(), 1);
}

#[test]
fn a_header_leaves_the_reserved_numbers_only_for_other_reserved_ones() {
    let mut store = Store::new(block(10, 12), HistoryBounds { commits: 9, bytes: 99 });
    assert!(store.next_revisions(3).is_none());
    assert_eq!(store.next_revisions(2), Some(11..=12));
    assert!(!store.raise(13));
    assert_eq!(store.header(), 10);
    store.extend(block(13, 20));
    assert_eq!(store.header(), 10, "a block that follows does not move the header");
    assert_eq!(store.next_revisions(3), Some(11..=13));
    store.extend(block(50, 60));
    assert_eq!(store.header(), 50, "a block further on does, for the numbers between are not ours");
    assert!([10, 50].iter().all(|given| store.has_given(*given)));
    assert!([9, 12, 20, 21, 49, 51].iter().all(|other| !store.has_given(*other)), "not given, or not here");
    store.extend(block(30, 40));
    assert_eq!(store.next_revisions(10), Some(51..=60), "a block from before is not used");
}
