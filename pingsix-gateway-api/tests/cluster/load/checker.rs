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

/// One answer alone.
pub(crate) fn only(answer: impl Into<String>) -> Answers {
    Answers::from([answer.into()])
}

/// Whether some response proves the transition between two states.
pub(crate) fn distinguishes(before: &State, after: &State) -> bool {
    before.iter().zip(after).any(|(before, after)| !after.is_subset(before))
}

/// The states of one subject.
#[derive(Debug)]
pub(crate) struct SubjectStates {
    history: Mutex<History>,
}

#[derive(Debug)]
struct History {
    states: Vec<State>,
    /// The last state that an answer has shown.
    seen: usize,
    /// The start of each change.
    made: Vec<Instant>,
    /// The times until the observation of changes that no later change replaced.
    latencies: Vec<Duration>,
}

/// The last observed state at the time of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentRequest(usize);

/// An invalid response.
#[derive(Debug)]
pub(crate) struct InvalidResponse {
    answer: String,
    /// The number of pending changes.
    changes: usize,
    valid: Vec<Answers>,
    /// Whether the response would have been valid before.
    is_reverted: bool,
}

impl SubjectStates {
    pub(crate) fn new(state: State) -> Self {
        let (made, latencies) = (vec![Instant::now()], Vec::new());
        Self { history: Mutex::new(History { states: vec![state], seen: 0, made, latencies }) }
    }

    /// Records the start of a change.
    pub(crate) fn change(&self, state: State) {
        let mut history = self.history.lock();
        history.states.push(state);
        history.made.push(Instant::now());
    }

    /// Whether all changes were observed.
    pub(crate) fn is_settled(&self) -> bool {
        let history = self.history.lock();
        history.seen + 1 == history.states.len()
    }

    /// The times until changes were observed.
    pub(crate) fn latencies(&self) -> Vec<Duration> {
        self.history.lock().latencies.clone()
    }

    /// Records the start of a request.
    pub(crate) fn send(&self) -> SentRequest {
        SentRequest(self.history.lock().seen)
    }

    /// Checks the response to a request.
    pub(crate) fn check(&self, sent: SentRequest, probe: usize, answer: &str) -> Result<(), InvalidResponse> {
        let mut history = self.history.lock();
        let is_right = |state: &State| state[probe].contains(answer);
        let Some(first) = history.states[sent.0..].iter().position(is_right) else {
            return Err(InvalidResponse {
                answer: answer.to_owned(),
                changes: history.states.len() - sent.0 - 1,
                valid: history.states[sent.0..].iter().map(|state| state[probe].clone()).collect(),
                is_reverted: history.states[..sent.0].iter().any(is_right),
            });
        };
        if sent.0 + first > history.seen {
            history.seen = sent.0 + first;
            let lag = history.made[history.seen].elapsed();
            history.latencies.push(lag);
        }
        Ok(())
    }
}

impl fmt::Display for InvalidResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { answer, changes, valid, is_reverted } = self;
        write!(f, "answered {answer:?} with {changes} changes on their way; right were, in turn, {valid:?}")?;
        if *is_reverted { f.write_str("; it had been right before") } else { Ok(()) }
    }
}

#[test]
fn a_response_from_before_is_invalid_after_one_from_after() {
    let states = SubjectStates::new(vec![only("a"), only("x")]);
    let early = states.send();
    assert!(states.check(early, 0, "b").is_err());
    states.change(vec![only("b"), only("x")]);
    assert!(states.check(early, 0, "a").is_ok() && states.check(early, 1, "x").is_ok());
    assert!(!states.is_settled(), "nothing has shown the change");
    let between = states.send();
    assert!(states.check(early, 0, "b").is_ok() && states.is_settled());
    assert!(states.check(between, 0, "a").is_ok(), "it was sent before that was seen");
    let wrong = states.check(states.send(), 0, "a").unwrap_err();
    assert!(wrong.is_reverted && wrong.changes == 0, "{wrong}");
    assert!(states.check(states.send(), 1, "x").is_ok());
}

#[test]
fn a_response_from_neither_state_is_always_invalid() {
    let states = SubjectStates::new(vec![only("a")]);
    states.change(vec![["b", "c"].map(str::to_owned).into()]);
    states.change(vec![only("d")]);
    for valid in ["a", "b", "c", "d"] {
        assert!(states.check(SentRequest(0), 0, valid).is_ok(), "{valid}");
    }
    assert!(states.check(SentRequest(0), 0, "e").is_err());
    assert!(distinguishes(&vec![only("a")], &vec![["a", "b"].map(str::to_owned).into()]));
    assert!(!distinguishes(&vec![["a", "b"].map(str::to_owned).into()], &vec![only("a")]));
}
