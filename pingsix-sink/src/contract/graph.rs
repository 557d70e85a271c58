//! Documents that refer to one another, for further tests of a sink.

use std::collections::{BTreeMap, BTreeSet};

use super::documents::desired;
use crate::desired::Desired;

/// Documents by seed, of which later kinds refer to earlier ones. The order of keys differs from the order of
/// deletion.
pub fn graph(seed: u64) -> Desired {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut documents: Vec<(String, String)> = Vec::new();
    for kind in ["upstreams", "services", "zones"] {
        let targets: Vec<String> = documents.iter().map(|(key, _)| key.clone()).collect();
        for id in (0..6).filter(|_| random.u8(..3) > 0).collect::<Vec<_>>() {
            let references: BTreeSet<&String> = (0..2).filter_map(|_| random.choice(&targets)).collect();
            let references: Vec<&str> = references.into_iter().map(String::as_str).collect();
            documents.push((format!("{kind}/{id}"), format!("{} {}", random.u8(..3), references.join(" "))));
        }
    }
    let documents: Vec<(&str, &str)> =
        documents.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    desired("/p/web", &documents)
}

/// Asserts that every reference of a [`graph`] resolves.
///
/// # Panics
///
/// When one does not.
pub fn assert_closed(state: &BTreeMap<String, String>) {
    for (key, value) in state {
        for reference in value.split(' ').skip(1).filter(|reference| !reference.is_empty()) {
            assert!(state.contains_key(reference), "{key} refers to {reference} in {state:?}");
        }
    }
}
