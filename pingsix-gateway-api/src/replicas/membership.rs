//! The live replicas, according to their records.

use std::collections::BTreeMap;
use std::time::Duration;

use pingsix_sink::Revision;
use tokio::time::Instant;

use super::record::{Record, replica};

/// The interval of renewals of a replica.
pub(super) const RENEWAL_INTERVAL: Duration = Duration::from_secs(5);

/// The number of our own renewals without one of another replica after which it is gone.
const RENEWALS_UNTIL_GONE: u64 = 3;

/// The number of our own renewals after which its record may be removed.
const RENEWALS_UNTIL_REMOVAL: u64 = 12;

/// The observed replicas.
#[derive(Debug)]
pub(super) struct Membership {
    own: String,
    /// The last observed record of this replica.
    own_record: String,
    /// The number of our own observed renewals, and the time of the last one.
    renewals: u64,
    last_renewal: Option<Instant>,
    others: BTreeMap<String, Other>,
}

#[derive(Debug)]
struct Other {
    text: String,
    /// The record; `None` if another program wrote the annotation.
    record: Option<Record>,
    last_renewal: Instant,
    /// The number of our own observed renewals at that time.
    renewals: u64,
    /// Whether the replica has renewed since our first observation.
    is_live: bool,
}

/// The changes after an observation.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MembershipChange {
    /// The readers of other replicas may differ.
    pub(super) is_change: bool,
    /// A new replica was observed.
    pub(super) is_new: bool,
    /// The highest reported reading of the shared time.
    pub(super) time: Option<Revision>,
}

impl Membership {
    pub(super) const fn new(own: String) -> Self {
        Self { own, own_record: String::new(), renewals: 0, last_renewal: None, others: BTreeMap::new() }
    }

    /// Applies the annotations of the Lease.
    pub(super) fn observe(&mut self, annotations: &BTreeMap<String, String>) -> MembershipChange {
        let now = Instant::now();
        let mut change = MembershipChange::default();
        let present = self.present_names();
        let records: BTreeMap<&str, &String> =
            annotations.iter().filter_map(|(name, text)| Some((replica(name)?, text))).collect();
        if let Some(text) = records.get(&*self.own)
            && **text != self.own_record
        {
            self.own_record = (*text).clone();
            // A record also changes with its readers, which is no renewal.
            if self.last_renewal.is_none_or(|last| now.duration_since(last) >= RENEWAL_INTERVAL / 2) {
                self.renewals += 1;
                self.last_renewal = Some(now);
            }
        }
        self.others.retain(|name, _| records.contains_key(&**name));
        for (name, text) in records {
            let known = self.others.get(name);
            if name == self.own || known.is_some_and(|known| known.text == *text) {
                continue;
            }
            let record: Option<Record> = serde_json::from_str(text).ok();
            let time = record.as_ref().and_then(Record::time);
            change.time = change.time.max(time);
            change.is_new |= known.is_none();
            let last = known.and_then(|known| known.record.as_ref());
            change.is_change |= match (last, &record) {
                (Some(last), Some(record)) => !record.has_equal_content(last),
                (None, None) => false,
                (Some(_), None) | (None, Some(_)) => true,
            };
            // The quarantines of the replica count from now on.
            change.is_change |= known.is_some_and(|known| !known.is_live);
            let is_live = known.is_some();
            let other =
                Other { text: text.clone(), record, last_renewal: now, renewals: self.renewals, is_live };
            self.others.insert(name.to_owned(), other);
        }
        change.is_change |= present != self.present_names();
        change
    }

    fn is_present(&self, other: &Other) -> bool {
        self.renewals.saturating_sub(other.renewals) < RENEWALS_UNTIL_GONE
    }

    fn present_names(&self) -> Vec<String> {
        let present = self.others.iter().filter(|(_, other)| self.is_present(other));
        present.map(|(name, _)| name.clone()).collect()
    }

    /// The other live replicas, each with the time of its last record.
    pub(super) fn present(&self) -> impl Iterator<Item = (&Record, Instant)> {
        let present = self.others.values().filter(|other| self.is_present(other));
        present.filter_map(|other| Some((other.record.as_ref()?, other.last_renewal)))
    }

    /// The names of the records of live replicas that have renewed since our first observation. A record of an ended
    /// process is not among them.
    pub(super) fn live(&self) -> impl Iterator<Item = (&str, &Record)> {
        let live = self.others.iter().filter(|(_, other)| other.is_live && self.is_present(other));
        live.filter_map(|(name, other)| Some((&**name, other.record.as_ref()?)))
    }

    /// The number of readers of a data plane at the other replicas.
    pub(super) fn readers_of(&self, name: &str) -> usize {
        self.present().filter_map(|(record, _)| record.readers.get(name)).sum()
    }

    /// Replicas that have been gone for so long that their records have no use.
    pub(super) fn forgotten(&self) -> Vec<String> {
        let forgotten = self
            .others
            .iter()
            .filter(|(_, other)| self.renewals.saturating_sub(other.renewals) >= RENEWALS_UNTIL_REMOVAL);
        forgotten.map(|(name, _)| name.clone()).collect()
    }

    /// Whether enough time has passed to exclude any other replica.
    pub(super) fn is_alone(&self) -> bool {
        self.renewals >= 2 && !self.others.values().any(|other| other.is_live)
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::annotation;
    use super::*;

    fn record(identity: &str, renewals: u64, readers: usize) -> (String, String) {
        let readers = BTreeMap::from([("plane".to_owned(), readers)]);
        let time = i64::try_from(renewals).ok().map(|renewals| renewals + 1);
        let (confirmed, found) = (BTreeMap::new(), Vec::new());
        let record = Record { identity: identity.to_owned(), time, renewals, readers, confirmed, found };
        (annotation(identity), serde_json::to_string(&record).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_replica_is_gone_after_several_renewals_of_ours_without_its_own() {
        let mut membership = Membership::new("own".to_owned());
        let change = membership.observe(&[record("own", 1, 5), record("other", 1, 2)].into());
        assert_eq!(change, MembershipChange { is_change: true, is_new: true, time: Revision::new(2) });
        assert_eq!(membership.readers_of("plane"), 2, "our own are counted elsewhere");
        for renewals in 2..4 {
            tokio::time::advance(RENEWAL_INTERVAL).await;
            let change = membership.observe(&[record("own", renewals, 5), record("other", 1, 2)].into());
            assert_eq!((change, membership.readers_of("plane")), (MembershipChange::default(), 2));
        }
        // A pause of our own renewals takes no replica for gone.
        tokio::time::advance(RENEWAL_INTERVAL * 1_000).await;
        assert_eq!(
            membership.observe(&[record("own", 3, 5), record("other", 1, 2)].into()),
            MembershipChange::default()
        );
        // Neither does a change of our readers.
        tokio::time::advance(RENEWAL_INTERVAL).await;
        let change = membership.observe(&[record("own", 4, 5), record("other", 1, 2)].into());
        assert_eq!((change.is_change, membership.readers_of("plane")), (true, 0));
        assert!(membership.forgotten().is_empty() && membership.present().next().is_none());
        // The replica may come back.
        let change = membership.observe(&[record("own", 4, 5), record("other", 2, 3)].into());
        assert_eq!((change.is_change, membership.readers_of("plane")), (true, 3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_report_between_renewals_takes_no_replica_for_gone() {
        let mut membership = Membership::new("own".to_owned());
        for renewals in 1..100 {
            membership.observe(&[record("own", renewals, 5), record("other", 1, 2)].into());
            tokio::time::advance(Duration::from_millis(50)).await;
        }
        assert_eq!(membership.readers_of("plane"), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn records_of_dead_replicas_are_forgotten_and_nonsense_too() {
        let mut membership = Membership::new("own".to_owned());
        let nonsense = (annotation("odd"), "nonsense".to_owned());
        for renewals in 1..14 {
            assert!(membership.forgotten().is_empty());
            let elsewhere = ("another.example/other".to_owned(), String::new());
            membership.observe(
                &[record("own", renewals, 0), record("other", 1, 2), nonsense.clone(), elsewhere].into(),
            );
            assert_eq!(membership.is_alone(), renewals >= 2);
            tokio::time::advance(RENEWAL_INTERVAL).await;
        }
        assert_eq!(membership.forgotten(), ["odd", "other"]);
        let change = membership.observe(&[record("own", 14, 0)].into());
        assert!(!change.is_change && membership.forgotten().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_replica_that_renews_keeps_another_from_being_alone() {
        let mut membership = Membership::new("own".to_owned());
        for renewals in 1..4 {
            membership.observe(&[record("own", renewals, 0), record("other", renewals, 2)].into());
            tokio::time::advance(RENEWAL_INTERVAL).await;
            assert!(!membership.is_alone());
        }
        let change = membership.observe(&[record("own", 4, 0)].into());
        assert!(change.is_change && !change.is_new, "it has taken its record away");
    }
}
