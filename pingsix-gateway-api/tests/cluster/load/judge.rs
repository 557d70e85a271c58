//! Valid responses over time.
//!
//! A subject passes through states, one change after the other. During a change, a response may be from the state
//! before or after. After one response that is only valid after the change, no later request may be answered from
//! before: a client never sees a change reverted.

use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The answers that a probe may get, each in one line.
pub(crate) type Answers = BTreeSet<String>;

/// The right answer to each probe of a subject.
pub(crate) type State = Vec<Answers>;

/// One answer and nothing else.
pub(crate) fn only(answer: impl Into<String>) -> Answers {
    Answers::from([answer.into()])
}

/// Whether some response proves the transition between two states.
pub(crate) fn shows(before: &State, after: &State) -> bool {
    before.iter().zip(after).any(|(before, after)| !after.is_subset(before))
}

/// The states of one subject.
#[derive(Debug)]
pub(crate) struct Book {
    pages: Mutex<Pages>,
}

#[derive(Debug)]
struct Pages {
    states: Vec<State>,
    /// The last state that an answer has shown.
    seen: usize,
    /// The start of each change.
    made: Vec<Instant>,
    /// The times until the observation of changes that no later change replaced.
    lags: Vec<Duration>,
}

/// The last observed state at the time of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent(usize);

/// An invalid response.
#[derive(Debug)]
pub(crate) struct Wrong {
    answer: String,
    /// The number of pending changes.
    changes: usize,
    right: Vec<Answers>,
    /// Whether the response would have been valid before.
    is_back: bool,
}

impl Book {
    pub(crate) fn new(state: State) -> Self {
        let (made, lags) = (vec![Instant::now()], Vec::new());
        Self { pages: Mutex::new(Pages { states: vec![state], seen: 0, made, lags }) }
    }

    /// Records the start of a change.
    pub(crate) fn change(&self, state: State) {
        let mut pages = self.pages.lock();
        pages.states.push(state);
        pages.made.push(Instant::now());
    }

    /// Whether all changes were observed.
    pub(crate) fn is_settled(&self) -> bool {
        let pages = self.pages.lock();
        pages.seen + 1 == pages.states.len()
    }

    /// The times until changes were observed.
    pub(crate) fn lags(&self) -> Vec<Duration> {
        self.pages.lock().lags.clone()
    }

    /// Records the start of a request.
    pub(crate) fn send(&self) -> Sent {
        Sent(self.pages.lock().seen)
    }

    /// Checks the response to a request.
    pub(crate) fn judge(&self, sent: Sent, probe: usize, answer: &str) -> Result<(), Wrong> {
        let mut pages = self.pages.lock();
        let is_right = |state: &State| state[probe].contains(answer);
        let Some(first) = pages.states[sent.0..].iter().position(is_right) else {
            return Err(Wrong {
                answer: answer.to_owned(),
                changes: pages.states.len() - sent.0 - 1,
                right: pages.states[sent.0..].iter().map(|state| state[probe].clone()).collect(),
                is_back: pages.states[..sent.0].iter().any(is_right),
            });
        };
        if sent.0 + first > pages.seen {
            pages.seen = sent.0 + first;
            let lag = pages.made[pages.seen].elapsed();
            pages.lags.push(lag);
        }
        Ok(())
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { answer, changes, right, is_back } = self;
        write!(f, "answered {answer:?} with {changes} changes on their way; right were, in turn, {right:?}")?;
        if *is_back { f.write_str("; it had been right before") } else { Ok(()) }
    }
}

#[test]
fn an_answer_as_before_is_wrong_once_one_as_after_was_seen() {
    let book = Book::new(vec![only("a"), only("x")]);
    let early = book.send();
    assert!(book.judge(early, 0, "b").is_err());
    book.change(vec![only("b"), only("x")]);
    assert!(book.judge(early, 0, "a").is_ok() && book.judge(early, 1, "x").is_ok());
    assert!(!book.is_settled(), "nothing has shown the change");
    let between = book.send();
    assert!(book.judge(early, 0, "b").is_ok() && book.is_settled());
    assert!(book.judge(between, 0, "a").is_ok(), "it was sent before that was seen");
    let wrong = book.judge(book.send(), 0, "a").unwrap_err();
    assert!(wrong.is_back && wrong.changes == 0, "{wrong}");
    assert!(book.judge(book.send(), 1, "x").is_ok());
}

#[test]
fn what_is_neither_before_nor_after_is_wrong_at_any_time() {
    let book = Book::new(vec![only("a")]);
    book.change(vec![["b", "c"].map(str::to_owned).into()]);
    book.change(vec![only("d")]);
    for right in ["a", "b", "c", "d"] {
        assert!(book.judge(Sent(0), 0, right).is_ok(), "{right}");
    }
    assert!(book.judge(Sent(0), 0, "e").is_err());
    assert!(shows(&vec![only("a")], &vec![["a", "b"].map(str::to_owned).into()]));
    assert!(!shows(&vec![["a", "b"].map(str::to_owned).into()], &vec![only("a")]));
}
