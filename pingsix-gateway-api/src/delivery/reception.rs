//! The content of status pages over time: accepted revisions, and the refused one.
//!
//! PingSIX keeps the text of an error until its next publication, and shows a revision as observed before it judges the
//! revision (`src/core/status.rs`). So the page may show a new revision with an old error for as long as PingSIX takes.
//! The page has no time of the error. An error that appears after a moment without one is new. An error that was there
//! before counts for a later revision after a time longer than PingSIX was ever observed to take.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pingsix_sink::Revision;
use tokio::time::Instant;

use super::shortened;
use super::status_page::{InstancePages, StatusPage, StatusUrl};
use crate::acceptance::Reception;

/// The shortest time for which a page must stay the same.
const MIN_STABLE_TIME: Duration = Duration::from_millis(500);

/// The time of PingSIX for a document, at four times its need of one core; a thousand Routes take 22 ms.
const TIME_PER_DOCUMENT: Duration = Duration::from_micros(100);

/// The tolerated multiple of the longest observed time.
const TOLERATED_MULTIPLE: u32 = 3;

/// The longest wait.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// The pages of a data plane at their last change.
#[derive(Clone, Debug, Default)]
pub struct PageReader {
    instances: BTreeMap<StatusUrl, Instance>,
    /// The number of documents of the data plane.
    documents: usize,
}

#[derive(Clone, Debug, Default)]
struct Instance {
    error: Option<ReportedError>,
    last_read: Option<Instant>,
    /// The newest revision that it has observed.
    observed: i64,
    /// The time from which the instance has worked on the revision; `None` if it was published or refused.
    since: Option<Instant>,
    /// The longest recent time from observation to publication.
    slowest: Duration,
}

#[derive(Clone, Debug)]
struct ReportedError {
    observed: i64,
    published: i64,
    message: Arc<str>,
    since: Instant,
    /// Whether the error was reported for an earlier revision too, and may be outdated.
    is_older: bool,
}

impl PageReader {
    /// Records the number of documents, because PingSIX takes time for each.
    pub(crate) const fn expects(&mut self, documents: usize) {
        self.documents = documents;
    }

    /// Records the pages. Unreadable pages and pages of instances at other replicas are ignored; `None` if no page is
    /// left.
    pub fn read(&mut self, pages: &InstancePages, now: Instant) -> Option<Reception> {
        self.instances.retain(|url, _| pages.contains_key(url));
        let read = pages.iter().filter_map(|(url, page)| Some((url, page.as_ref().ok()?)));
        let mut read = read.filter(|(_, page)| !page.is_elsewhere).peekable();
        read.peek()?;
        let documents = u32::try_from(self.documents).unwrap_or(u32::MAX);
        let mut reception: Option<Reception> = None;
        for (url, page) in read {
            let accepted = Revision::new(page.published_revision);
            let instance = self.instances.entry(url.clone()).or_default();
            let was_read = instance.time(page, now);
            let refused = instance.failure(page, was_read, TIME_PER_DOCUMENT.saturating_mul(documents), now);
            reception = Some(match reception {
                None => Reception { accepted, refused },
                Some(others) => {
                    let accepted = accepted.min(others.accepted);
                    let refused = refused.max(others.refused);
                    Reception { accepted, refused }
                }
            });
        }
        reception
    }
}

impl Instance {
    /// Measures an upper bound of the time from observation to publication. Returns whether the page was read before.
    fn time(&mut self, page: &StatusPage, now: Instant) -> bool {
        let last_read = self.last_read.replace(now);
        let is_published = page.published_revision >= page.observed_revision;
        if page.observed_revision > self.observed {
            self.observed = page.observed_revision;
            self.since = (!is_published).then(|| last_read.unwrap_or(now));
            if is_published {
                // Faster than the interval of polls.
                self.slowest = self.slowest * 7 / 8;
            }
        } else if is_published && let Some(since) = self.since.take() {
            self.slowest = now.duration_since(since).max(self.slowest * 7 / 8);
        }
        last_read.is_some()
    }

    fn failure(
        &mut self,
        page: &StatusPage,
        was_read: bool,
        expected: Duration,
        now: Instant,
    ) -> Option<(Revision, Arc<str>)> {
        let Some(message) = page.refusal() else {
            self.error = None;
            return None;
        };
        let (message, observed, published) =
            (shortened(message), page.observed_revision, page.published_revision);
        let error = match self.error.take() {
            Some(before) if before.observed == observed && *before.message == *message => before,
            before => {
                // A publication clears the error, so an error after it is new.
                let stays =
                    |before: &ReportedError| *before.message == *message && before.published == published;
                let is_older = before.as_ref().map_or(!was_read, stays);
                ReportedError { observed, published, message: message.into(), since: now, is_older }
            }
        };
        let limit = if error.is_older {
            expected.max(self.slowest.saturating_mul(TOLERATED_MULTIPLE)).clamp(MIN_STABLE_TIME, MAX_WAIT)
        } else {
            MIN_STABLE_TIME
        };
        let is_judged = now.duration_since(error.since) >= limit;
        let refused = Revision::new(observed).filter(|_| is_judged).map(|at| (at, error.message.clone()));
        self.error = Some(error);
        if refused.is_some() {
            self.since = None;
        }
        refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::status_page::PageError;

    fn url(index: u16) -> StatusUrl {
        format!("http://127.0.0.1:{}", 7000 + index).parse().unwrap()
    }

    /// A readable page.
    fn page(published: i64, observed: i64, error: Option<&str>) -> StatusPage {
        StatusPage {
            published_revision: published,
            observed_revision: observed,
            error_kind: error.map(|_| "candidate_invalid".to_owned()),
            last_error: error.map(ToOwned::to_owned),
            ..StatusPage::default()
        }
    }

    /// The accepted revision, and the refused one with its error.
    type Read = (Option<i64>, Option<(i64, String)>);

    fn read(reader: &mut PageReader, pages: &[Option<StatusPage>], now: Instant) -> Option<Read> {
        let pages = pages
            .iter()
            .cloned()
            .enumerate()
            .map(|(index, page)| (url(u16::try_from(index).unwrap()), page.ok_or(PageError::Withheld)));
        let Reception { accepted, refused } = reader.read(&pages.collect(), now)?;
        Some((accepted.map(Revision::get), refused.map(|(at, message)| (at.get(), message.to_string()))))
    }

    #[test]
    fn an_error_counts_for_what_was_observed_when_it_has_stood_for_a_moment() {
        let (mut reader, start) = (PageReader::default(), Instant::now());
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!(read(&mut reader, &[Some(page(7, 7, None))], at(0)), Some((Some(7), None)));
        assert_eq!(read(&mut reader, &[Some(page(7, 9, Some("bad")))], at(100)), Some((Some(7), None)));
        let refused = Some((Some(7), Some((9, "bad".to_owned()))));
        assert_eq!(read(&mut reader, &[Some(page(7, 9, Some("bad")))], at(600)), refused);
        // The page shows the next revision as observed, with the error of the former one.
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
        assert_eq!(read(&mut reader, &pages, start + MIN_STABLE_TIME), refused);
        let pages = [Some(page(9, 9, None)), Some(page(0, 9, None)), None];
        assert_eq!(
            read(&mut reader, &pages, start + MIN_STABLE_TIME),
            Some((None, None)),
            "one has nothing yet"
        );
    }

    #[test]
    fn an_earlier_error_counts_once_pingsix_has_had_the_time_to_judge() {
        let at = |start: Instant, millis| start + Duration::from_millis(millis);
        let read_at = |reader: &mut PageReader, page: StatusPage, now| {
            read(reader, &[Some(page)], now).unwrap().1.map(|(revision, _)| revision)
        };
        // By the number of documents, and by the time it took before.
        for (documents, took, limit) in [(10, 0, 500), (20_000, 0, 2_000), (10, 4_000, 12_000)] {
            let (mut reader, start) = (PageReader::default(), Instant::now());
            reader.expects(documents);
            let mut page_at = |millis, shown| read_at(&mut reader, shown, at(start, millis));
            page_at(0, page(7, 7, None));
            page_at(took / 2, page(7, 8, None));
            page_at(took, page(8, 8, None));
            let base = took + 1_000;
            // The error was absent before, so it is new.
            assert_eq!(page_at(base, page(8, 9, Some("bad"))), None);
            assert_eq!(page_at(base + 500, page(8, 9, Some("bad"))), Some(9));
            let base = base + 1_000;
            assert_eq!(page_at(base, page(8, 12, Some("bad"))), None);
            assert_eq!(page_at(base + limit - 1, page(8, 12, Some("bad"))), None, "{documents} {took}");
            assert_eq!(page_at(base + limit, page(8, 12, Some("bad"))), Some(12));
            // PingSIX has published since, which has cleared the error.
            let base = base + limit + 1_000;
            assert_eq!(page_at(base, page(12, 13, Some("bad"))), None);
            assert_eq!(page_at(base + 500, page(12, 13, Some("bad"))), Some(13));
        }
    }

    #[test]
    fn an_error_that_is_there_at_first_may_be_of_any_revision() {
        let (mut reader, start) = (PageReader::default(), Instant::now());
        reader.expects(20_000);
        let refused = |reader: &mut PageReader, millis| {
            let now = start + Duration::from_millis(millis);
            read(reader, &[Some(page(7, 9, Some("bad")))], now).unwrap().1
        };
        assert_eq!(refused(&mut reader, 0), None);
        assert_eq!(refused(&mut reader, 1_900), None);
        assert!(refused(&mut reader, 2_000).is_some());
    }

    #[test]
    fn an_instance_that_was_slow_once_is_not_waited_for_for_ever() {
        let (mut reader, mut now) = (PageReader::default(), Instant::now());
        let mut shown = |shown| {
            now += Duration::from_secs(5);
            read(&mut reader, &[Some(shown)], now);
        };
        shown(page(1, 1, None));
        shown(page(1, 2, None));
        shown(page(2, 2, None));
        for revision in 3..60 {
            shown(page(revision, revision, None));
        }
        assert!(reader.instances.values().all(|instance| instance.slowest < MIN_STABLE_TIME / 10));
    }
}
