//! `--replay`: requests of a file, asked of the model of the original and of the translated output.
//!
//! ```text
//! file ──► lines (curl, HAR, access log) ──► requests ──┬─► original ──┐
//!                                                       └─► output ────┴──► same ──► differences
//! ```

mod har;
mod host;
mod lines;
mod log;
mod print;
mod same;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::answer::{Answer, Answers, Request};
use super::error::ReplayError;
use super::original::{Original, Told};
pub use host::ReplayHost;
use lines::{Lines, Skipped};
pub(crate) use same::is_same;
#[cfg(test)]
pub(crate) use same::is_same_location;

/// The most requests that are replayed.
const MAX_REQUESTS: usize = 200_000;

/// The most lines that are named because they are no requests.
const MAX_SKIPPED: usize = 50;

/// A request whose answers differ.
#[derive(Debug)]
struct Difference {
    request: Request,
    before: Told,
    after: Answer,
    /// The object and the field behind the new answer.
    after_by: Option<String>,
    /// The number of such requests.
    count: usize,
}

/// Requests as text.
#[derive(Clone, Copy, Debug)]
pub struct Requests<'a> {
    /// Command lines of curl, lines of access logs, or a HAR file.
    pub text: &'a str,
    /// The host of requests that name none.
    pub host: Option<&'a ReplayHost>,
}

/// The result of a replay.
#[derive(Debug, Default)]
pub struct Replayed {
    differences: Vec<Difference>,
    same: usize,
    /// The number of requests whose former answer is unknown, by reason.
    unknown: BTreeMap<String, usize>,
    /// The first lines that are no requests.
    skipped: Vec<Skipped>,
    skipped_count: usize,
}

impl Replayed {
    /// Whether an answer differs.
    pub const fn differs(&self) -> bool {
        !self.differences.is_empty()
    }
}

/// Asks the requests of a text. `objects` are those of the input.
///
/// # Errors
///
/// When the text has no request, or too many.
pub(crate) fn replay(
    Requests { text, host }: Requests<'_>,
    objects: &[Value],
    answers: &Answers<'_>,
) -> Result<Replayed, ReplayError> {
    let Lines { requests, skipped } = lines::read(text, host, objects);
    if requests.is_empty() {
        let skipped = skipped.into_iter().next().map(|one| (one.line, one.why));
        return Err(ReplayError::NoRequest { skipped });
    }
    let mut counts: BTreeMap<Request, usize> = BTreeMap::new();
    for request in requests {
        *counts.entry(request).or_default() += 1;
    }
    if counts.len() > MAX_REQUESTS {
        return Err(ReplayError::TooMany { most: MAX_REQUESTS });
    }
    // Endpoints come and go, and the translation takes Services without them for ready, too.
    let original = Original::read(objects, true);
    let mut replayed = Replayed { skipped_count: skipped.len(), skipped, ..Replayed::default() };
    replayed.skipped.truncate(MAX_SKIPPED);
    // Clients with different addresses and the same answers are one difference.
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for (request, count) in counts {
        let before = original.answer(&request);
        if let Answer::Unknown(why) = &before.answer {
            *replayed.unknown.entry(why.clone()).or_default() += count;
            continue;
        }
        let after = answers.answer(&request);
        if is_same(&before, &after, &request) {
            replayed.same += count;
            continue;
        }
        let same = format!("{:?}", (&Request { client: None, ..request.clone() }, &before, &after));
        let index = *known.entry(same).or_insert(replayed.differences.len());
        if let Some(difference) = replayed.differences.get_mut(index) {
            difference.count += count;
            continue;
        }
        let source = answers.brief(&request).and_then(|brief| brief.source);
        let after_by = source.map(|source| format!("{} {}", source.object, source.field));
        replayed.differences.push(Difference { request, before, after, after_by, count });
    }
    Ok(replayed)
}

/// The hosts of an input, and their properties in a line of a log.
#[derive(Default)]
struct Hosts {
    /// The hosts with rules for a port of a Service, by the name of the upstream in the log of ingress-nginx.
    of_upstream: BTreeMap<String, BTreeSet<String>>,
    with_tls: BTreeSet<String>,
}
