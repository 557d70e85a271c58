//! The record of a replica.

use std::collections::BTreeMap;

use pingsix_sink::{Revision, Scope};
use serde::{Deserialize, Serialize};

use super::name_of;
use super::report::{Confirmed, Written};
use super::turns::{group_of, in_turns};

/// The prefix of the names of annotations.
const PREFIX: &str = "replica.pingsix.io/";

/// Maximum number of data planes in a record: about 50 KB. An object of Kubernetes may have 256 KB of annotations, and the
/// report takes up to 30 KB. Beyond the maximum, namespaces take turns.
const MAX_DATA_PLANES: usize = 2_048;

/// The record of a replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The identity of the replica.
    pub(super) identity: String,
    /// Its reading of the shared time: other with each renewal. None before there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) time: Option<i64>,
    /// The number of records so far.
    #[serde(rename = "told")]
    pub(super) renewals: u64,
    /// The number of readers of a data plane, by the name from [`name_of`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) readers: BTreeMap<String, usize>,
    /// The confirmations of instances that read from it, by the same names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) confirmed: BTreeMap<String, Confirmed>,
    /// The quarantines of refused objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) found: Vec<Written>,
}

impl Record {
    pub(super) fn time(&self) -> Option<Revision> {
        self.time.and_then(Revision::new)
    }

    /// Whether two records have equal content.
    pub(super) fn has_equal_content(&self, other: &Self) -> bool {
        (&self.readers, &self.confirmed, &self.found) == (&other.readers, &other.confirmed, &other.found)
    }
}

/// The readers in the record, by short names.
pub(super) fn encoded_readers(readers: &BTreeMap<Scope, usize>) -> BTreeMap<String, usize> {
    let there = readers.iter().filter(|(_, readers)| **readers > 0);
    let there = in_turns(there.map(|(scope, readers)| (group_of(scope), (scope, *readers))));
    there.into_iter().take(MAX_DATA_PLANES).map(|(scope, readers)| (name_of(scope), readers)).collect()
}

/// The name of the annotation of a replica.
pub(super) fn annotation(replica: &str) -> String {
    format!("{PREFIX}{replica}")
}

/// The replica that an annotation is of, if it is of one.
pub(super) fn replica(annotation: &str) -> Option<&str> {
    annotation.strip_prefix(PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_many_data_planes_stays_within_bounds() {
        let readers =
            (0..10_000).map(|plane| (Scope::new(format!("/pingsix/infra/{plane}")).unwrap(), plane % 2));
        let readers = encoded_readers(&readers.collect());
        assert_eq!(readers.len(), MAX_DATA_PLANES);
        let record = Record {
            identity: "pod_0123456789abcdef".to_owned(),
            time: Some(i64::MAX),
            renewals: u64::MAX,
            readers,
            confirmed: BTreeMap::new(),
            found: Vec::new(),
        };
        let text = serde_json::to_string(&record).unwrap();
        assert!(text.len() < 52_000, "{}", text.len());
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
        assert!(encoded_readers(&BTreeMap::from([(Scope::new("/p").unwrap(), 0)])).is_empty());
    }

    #[test]
    fn a_namespace_with_many_data_planes_leaves_room_for_others() {
        let scope =
            |namespace: &str, plane: usize| Scope::new(format!("/pingsix/{namespace}/{plane}")).unwrap();
        let mut readers: BTreeMap<Scope, usize> = (0..5_000).map(|plane| (scope("aaa", plane), 1)).collect();
        let victim: Vec<Scope> = (0..100).map(|plane| scope("shop", plane)).collect();
        readers.extend(victim.iter().map(|scope| (scope.clone(), 1)));
        let encoded = encoded_readers(&readers);
        assert!(
            encoded.len() == MAX_DATA_PLANES
                && victim.iter().all(|scope| encoded.contains_key(&name_of(scope)))
        );
    }
}
