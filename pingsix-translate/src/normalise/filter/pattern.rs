//! The memory that PingSIX may need for regular expressions.
//!
//! PingSIX compiles the patterns of each Route (`src/plugins/proxy_rewrite.rs`) with `regex` 1.11, and asks for groups.
//! `regex` then takes one of these engines, each with a cache for each thread that has used the pattern:
//!
//! | engine | taken for | memory |
//! |---|---|---|
//! | one-pass DFA | groups, and each character leaves one way to go on | known when the pattern is compiled |
//! | lazy DFA | all other patterns | grows with the states that requests visit, up to 2 MiB |
//! | backtracking, or a simulation of the NFA | groups, after the lazy DFA | grows with the length of paths |
//!
//! So the memory is known from the pattern: the lazy DFA has at most the states of the complete one, whose size is
//! bounded while it is built, and the stack of the backtracking is as deep as the longest path has alternatives.

use regex_automata::dfa::{StartKind, dense, onepass};
use regex_automata::nfa::thompson::{Compiler, Config, NFA, State, WhichCaptures};
use regex_automata::util::primitives::StateID;
use regex_syntax::hir::Hir;

/// The most bytes of a compiled NFA. PingSIX has a compiled copy for each Route.
const NFA_SIZE: usize = 64 * 1024;

/// The most bytes of memory for one pattern of one Route.
const MAX_MEMORY: usize = 4 * 1024 * 1024;

/// The threads of a data plane, by default.
const THREADS: usize = 2;

/// Bytes of memory that are charged as one byte of documents. A data plane full of patterns stays below 200 MB.
const MEMORY_PER_BYTE: usize = 40;

/// Memory of the patterns of a Route that is not charged: PingSIX needs as much for any prefix that is rewritten.
const UNCHARGED_MEMORY: usize = 48 * 1024;

/// A prefix of this length takes [`UNCHARGED_MEMORY`] bytes, for which it is not charged.
const FREE_PREFIX: usize = 64;

/// The memory for a byte of a literal, with all engines: states of an NFA and of both kinds of DFA.
const LITERAL: usize = 1350;

/// The memory for the pattern of an origin with a wildcard of the length of [`FREE_ORIGIN`].
const ORIGIN: usize = 48 * 1024;

/// The length of `^https://[^/:]+\.shop\.example\.com$`.
const FREE_ORIGIN: usize = 36;

/// The longest path of a request (`http::Uri`).
const PATH: usize = 65_534;

/// The most bytes of a bitmap in which the backtracking marks pairs of a state and a place in the path.
const VISITED: usize = 256 * 1024;

/// Bytes of an entry of the stack of the backtracking.
const FRAME: usize = 16;

/// The most bytes of a lazy DFA.
const LAZY: usize = 2 * 1024 * 1024;

/// The most bytes of a complete DFA, and of the sets of states while it is built.
const DENSE: [usize; 2] = [128 * 1024, 128 * 1024];

/// The most bytes of a one-pass DFA.
const ONE_PASS: usize = 1024 * 1024;

/// The most pairs of a state of the NFA and a boundary of a group, if the groups are found by simulation: each byte of a
/// path may take a step for each.
const SIMULATED: usize = 768;

/// The memory for a pattern, or the reason why PingSIX does not get it.
pub(super) fn memory(pattern: &Hir) -> Result<usize, String> {
    let properties = pattern.properties();
    let compile = |captures| {
        let config = Config::new().nfa_size_limit(Some(NFA_SIZE)).shrink(false).which_captures(captures);
        Compiler::new().configure(config).build_from_hir(pattern).map_err(|_| {
            format!(
                "The compiled pattern takes more than {NFA_SIZE} bytes. [0-9] and [^/] take less than \\d and \\w, which \
                 hold for all of Unicode."
            )
        })
    };
    let nfa = compile(WhichCaptures::All)?;
    let groups = properties.explicit_captures_len();
    let (states, slots) = (nfa.states().len(), 2 * (groups + 1));
    let one_pass = if groups > 0 { one_pass(&nfa) } else { None };
    let is_simulated = groups > 0 && one_pass.is_none();
    if is_simulated && states * slots > SIMULATED {
        return Err(format!(
            "The pattern can match a path in several ways, so PingSIX tries them one by one. Its {states} states with \
             {slots} boundaries of groups are {}, and at most {SIMULATED} may be. {ADVICE}",
            states * slots
        ));
    }
    let mut of_thread =
        1024 + states * (16 * slots + 104) + 24 * nfa.byte_classes().alphabet_len().next_power_of_two();
    if one_pass.is_none() {
        of_thread += lazy(&compile(WhichCaptures::None)?).ok_or_else(too_much)?;
    }
    if is_simulated {
        let places = PATH.min(8 * VISITED / states);
        of_thread += VISITED.min(states * (PATH + 1) / 8) + places * alternatives(&nfa) * FRAME;
    }
    let memory = 20 * 1024 + 5 * nfa.memory_usage() + 2 * one_pass.unwrap_or_default() + THREADS * of_thread;
    if memory > MAX_MEMORY { Err(too_much()) } else { Ok(memory) }
}

/// A form of pattern that takes little.
const ADVICE: &str = "A pattern takes little where each character of a path leaves one way to go on, as ([^/]+)/ does and (.*)/ does not.";

fn too_much() -> String {
    format!("PingSIX may need more than {MAX_MEMORY} bytes of memory for the pattern. {ADVICE}")
}

/// Bytes that a document is charged for patterns with this memory.
pub(super) const fn charge(memory: usize) -> usize {
    memory.saturating_sub(UNCHARGED_MEMORY) / MEMORY_PER_BYTE
}

/// The memory for the pattern of a literal prefix.
pub(super) const fn memory_of_prefix(bytes: usize) -> usize {
    UNCHARGED_MEMORY + bytes.saturating_sub(FREE_PREFIX) * LITERAL
}

/// The memory for the patterns of origins with wildcards, of some lengths.
pub(super) fn memory_of_origins(lengths: impl Iterator<Item = usize>) -> usize {
    lengths.map(|bytes| ORIGIN + bytes.saturating_sub(FREE_ORIGIN) * LITERAL).sum()
}

/// Bytes of the one-pass DFA, if the pattern has one.
fn one_pass(nfa: &NFA) -> Option<usize> {
    let config = onepass::Config::new().starts_for_each_pattern(true).size_limit(Some(ONE_PASS));
    let built = onepass::Builder::new().configure(config).build_from_nfa(nfa.clone());
    built.ok().map(|dfa| dfa.memory_usage())
}

/// Bytes of a lazy DFA with all its states; `None` if there are too many, or if it may give up.
fn lazy(nfa: &NFA) -> Option<usize> {
    let [size, sets] = DENSE;
    let config = dense::Config::new()
        .start_kind(StartKind::Anchored)
        .accelerate(false)
        .dfa_size_limit(Some(size))
        .determinize_size_limit(Some(sets));
    let dfa = dense::Builder::new().configure(config).build_from_nfa(nfa).ok()?;
    let states = dfa.memory_usage() / (4 * dfa.stride());
    Some(LAZY.min(states * (8 * dfa.stride() + 160 + 2 * nfa.states().len())))
}

/// The most entries that the backtracking pushes for each byte of a long path.
///
/// Most bytes of a path are consumed on cycles of the NFA. So for each transition on a cycle, the states count that
/// follow without a byte and lead back to it.
fn alternatives(nfa: &NFA) -> usize {
    let states = nfa.states();
    let reached: Vec<Vec<bool>> = (0..states.len())
        .map(|state| reach(states, state, |state| (empty(state), consuming(state))))
        .collect();
    let of_transition = |state: usize, next: &StateID| {
        let leads_back = |other: usize| reached[other][state];
        if !leads_back(next.as_usize()) {
            return 0;
        }
        let follow = reach(states, next.as_usize(), |state| (empty(state), Vec::new()));
        let on_cycle = (0..states.len()).filter(|other| follow[*other] && leads_back(*other));
        on_cycle.map(|other| pushed(&states[other])).sum()
    };
    (0..states.len())
        .flat_map(|state| consuming(&states[state]).into_iter().map(move |next| (state, next)))
        .map(|(state, next)| of_transition(state, &next))
        .max()
        .unwrap_or_default()
}

/// The states that one of them leads to, itself included.
fn reach(states: &[State], from: usize, next: impl Fn(&State) -> (Vec<StateID>, Vec<StateID>)) -> Vec<bool> {
    let mut reached = vec![false; states.len()];
    let mut open = vec![from];
    while let Some(state) = open.pop() {
        if std::mem::replace(&mut reached[state], true) {
            continue;
        }
        let (empty, consuming) = next(&states[state]);
        open.extend(empty.iter().chain(&consuming).map(StateID::as_usize));
    }
    reached
}

/// The states that follow without a byte.
fn empty(state: &State) -> Vec<StateID> {
    match state {
        State::Look { next, .. } | State::Capture { next, .. } => vec![*next],
        State::Union { alternates } => alternates.to_vec(),
        State::BinaryUnion { alt1, alt2 } => vec![*alt1, *alt2],
        State::ByteRange { .. } | State::Sparse(_) | State::Dense(_) | State::Fail | State::Match { .. } => {
            Vec::new()
        }
    }
}

/// The states that follow a byte.
fn consuming(state: &State) -> Vec<StateID> {
    let mut next = match state {
        State::ByteRange { trans } => vec![trans.next],
        State::Sparse(sparse) => sparse.transitions.iter().map(|trans| trans.next).collect(),
        State::Dense(dense) => dense.transitions.to_vec(),
        State::Look { .. }
        | State::Union { .. }
        | State::BinaryUnion { .. }
        | State::Capture { .. }
        | State::Fail
        | State::Match { .. } => Vec::new(),
    };
    next.sort_unstable();
    next.dedup();
    next
}

/// The entries that a state adds to the stack of the backtracking.
fn pushed(state: &State) -> usize {
    match state {
        State::Union { alternates } => alternates.len().saturating_sub(1),
        State::BinaryUnion { .. } | State::Capture { .. } => 1,
        State::ByteRange { .. }
        | State::Sparse(_)
        | State::Dense(_)
        | State::Look { .. }
        | State::Fail
        | State::Match { .. } => 0,
    }
}

#[cfg(test)]
mod tests;
