//! What status pages say, read over time: which revisions were taken, and which was refused.
//!
//! PingSIX keeps the text of a fault until it publishes something, so a fault may be older than what it has observed since
//! (`src/core/status.rs`): it judges in its own time what it observes. A fault counts for a revision when the page has said
//! the same for a moment, the revision as well as the fault.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pingsix_sink::Revision;
use tokio::time::Instant;

use super::shortened;
use super::status_page::{StatusPage, StatusUrl};
use crate::acceptance::Reception;

/// How long PingSIX takes at most to judge what it has observed, in which no name has to be resolved; a thousand Routes
/// take it 22 ms.
const JUDGED: Duration = Duration::from_millis(500);

/// The pages of a data plane, as they were when they last said something else.
#[derive(Clone, Debug, Default)]
pub struct PageReader {
    faults: BTreeMap<StatusUrl, Fault>,
}

#[derive(Clone, Debug)]
struct Fault {
    observed: i64,
    said: Arc<str>,
    since: Instant,
}

impl PageReader {
    /// Takes in what the pages say now; nothing comes of those that cannot be read, or are of instances that read from
    /// another replica, and nothing at all if all are.
    pub fn read(
        &mut self,
        pages: &BTreeMap<StatusUrl, Result<StatusPage, String>>,
        now: Instant,
    ) -> Option<Reception> {
        self.faults.retain(|url, _| pages.contains_key(url));
        let read = pages.iter().filter_map(|(url, page)| Some((url, page.as_ref().ok()?)));
        let mut read = read.filter(|(_, page)| !page.is_elsewhere).peekable();
        read.peek()?;
        let mut reception: Option<Reception> = None;
        for (url, page) in read {
            let accepted = Revision::new(page.published_revision);
            let refused = self.fault(url, page, now);
            reception = Some(match reception {
                None => Reception { accepted, refused },
                Some(others) => Reception {
                    accepted: accepted.min(others.accepted),
                    refused: refused.max(others.refused),
                },
            });
        }
        reception
    }

    fn fault(&mut self, url: &StatusUrl, page: &StatusPage, now: Instant) -> Option<(Revision, Arc<str>)> {
        let Some(said) = page.refusal() else {
            self.faults.remove(url);
            return None;
        };
        let said = shortened(said);
        let observed = page.observed_revision;
        let is_same = |fault: &&mut Fault| fault.observed == observed && *fault.said == *said;
        let Some(fault) = self.faults.get_mut(url).filter(is_same) else {
            self.faults.insert(url.clone(), Fault { observed, said: said.into(), since: now });
            return None;
        };
        let is_judged = now.duration_since(fault.since) >= JUDGED;
        Some((Revision::new(observed).filter(|_| is_judged)?, fault.said.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(index: u16) -> StatusUrl {
        format!("http://127.0.0.1:{}", 7000 + index).parse().unwrap()
    }

    /// A page that can be read.
    fn page(published: i64, observed: i64, fault: Option<&str>) -> StatusPage {
        StatusPage {
            published_revision: published,
            observed_revision: observed,
            error_kind: fault.map(|_| "candidate_invalid".to_owned()),
            last_error: fault.map(ToOwned::to_owned),
            ..StatusPage::default()
        }
    }

    /// What was accepted, and what was refused at which revision.
    type Read = (Option<i64>, Option<(i64, String)>);

    fn read(reader: &mut PageReader, pages: &[Option<StatusPage>], now: Instant) -> Option<Read> {
        let pages = pages.iter().cloned().enumerate().map(|(index, page)| {
            (url(u16::try_from(index).unwrap()), page.ok_or_else(|| "no answer".to_owned()))
        });
        let Reception { accepted, refused } = reader.read(&pages.collect(), now)?;
        Some((accepted.map(Revision::get), refused.map(|(at, said)| (at.get(), said.to_string()))))
    }

    #[test]
    fn a_fault_counts_for_what_was_observed_when_it_has_stood_for_a_moment() {
        let (mut reader, start) = (PageReader::default(), Instant::now());
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!(read(&mut reader, &[Some(page(7, 7, None))], at(0)), Some((Some(7), None)));
        assert_eq!(read(&mut reader, &[Some(page(7, 9, Some("bad")))], at(100)), Some((Some(7), None)));
        let refused = Some((Some(7), Some((9, "bad".to_owned()))));
        assert_eq!(read(&mut reader, &[Some(page(7, 9, Some("bad")))], at(600)), refused);
        // The next is observed, and what is said is still of the one before.
        assert_eq!(read(&mut reader, &[Some(page(7, 12, Some("bad")))], at(700)), Some((Some(7), None)));
        assert_eq!(read(&mut reader, &[Some(page(12, 12, None))], at(750)), Some((Some(12), None)));
        assert_eq!(read(&mut reader, &[Some(page(12, 13, Some("bad")))], at(800)), Some((Some(12), None)));
        assert_eq!(read(&mut reader, &[Some(page(12, 13, Some("worse")))], at(1300)), Some((Some(12), None)));
        let refused = Some((Some(12), Some((13, "worse".to_owned()))));
        assert_eq!(read(&mut reader, &[Some(page(12, 13, Some("worse")))], at(1800)), refused);
    }

    #[test]
    fn all_that_can_be_read_have_to_accept_and_one_is_enough_to_refuse() {
        let (mut reader, start) = (PageReader::default(), Instant::now());
        assert_eq!(read(&mut reader, &[None, None], start), None);
        assert_eq!(read(&mut reader, &[], start), None);
        let pages = [Some(page(9, 9, None)), Some(page(7, 9, Some("bad"))), None];
        read(&mut reader, &pages, start);
        let refused = Some((Some(7), Some((9, "bad".to_owned()))));
        assert_eq!(read(&mut reader, &pages, start + JUDGED), refused);
        let pages = [Some(page(9, 9, None)), Some(page(0, 9, None)), None];
        assert_eq!(read(&mut reader, &pages, start + JUDGED), Some((None, None)), "one has nothing yet");
    }
}
