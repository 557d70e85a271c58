//! The conditions of a match, and the `vars` of `traffic-split` rules that they become.

use std::ops::Deref;

use thin_vec::ThinVec;

use super::{Condition, Expectation, Variable};
use crate::pingsix::json_len;

/// The conditions of a match, sorted, so that equal ones are equal in whatever order they were written.
///
/// The size of their `vars` is counted once, because every admission charges it ([`crate::lower`]).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Conditions {
    all: ThinVec<Condition>,
    vars: VarsSize,
}

/// The size of the result of [`vars_of`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct VarsSize {
    /// The number of lists.
    pub(crate) lists: u32,
    /// The length of all lists as JSON.
    pub(crate) bytes: u32,
}

impl VarsSize {
    /// The size for conditions.
    fn of(conditions: &[Condition]) -> Self {
        let lists = vars_of(conditions);
        let bytes: usize = lists.iter().map(json_len).sum();
        let bounded = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self { lists: bounded(lists.len()), bytes: bounded(bytes) }
    }
}

impl Conditions {
    /// The size of their `vars`.
    pub(crate) const fn vars_size(&self) -> VarsSize {
        self.vars
    }
}

impl Default for Conditions {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl From<Vec<Condition>> for Conditions {
    fn from(mut all: Vec<Condition>) -> Self {
        all.sort_unstable();
        Self { vars: VarsSize::of(&all), all: all.into_iter().collect() }
    }
}

impl Deref for Conditions {
    type Target = [Condition];

    fn deref(&self) -> &[Condition] {
        &self.all
    }
}

/// Limit of the spellings of a row's query values.
const MAX_SPELLINGS: usize = 8;

/// The `vars` of a row: usually one list; several when a query parameter can be spelled in several ways, since
/// PingSIX compares the text of the query as it arrived (`src/utils/request.rs`).
pub(crate) fn vars_of(conditions: &[Condition]) -> Vec<Vec<Vec<String>>> {
    let mut alternatives: Vec<Vec<Vec<String>>> = vec![Vec::with_capacity(conditions.len())];
    for condition in conditions {
        let spelled = spellings(condition);
        let mut next = Vec::with_capacity(alternatives.len() * spelled.len());
        for spelling in &spelled {
            for alternative in &alternatives {
                if next.len() < MAX_SPELLINGS {
                    let mut vars = alternative.clone();
                    vars.push(spelling.clone());
                    next.push(vars);
                }
            }
        }
        alternatives = next;
    }
    alternatives
}

/// `[variable, operator, value]` in each spelling.
fn spellings(condition: &Condition) -> Vec<Vec<String>> {
    let var = |name: String, expectation: Option<String>| match expectation {
        Some(value) => vec![name, "==".to_owned(), value],
        // A missing variable equals the empty text, and a present empty one is not distinguishable from it.
        None => vec![name, "!=".to_owned(), String::new()],
    };
    match (&condition.variable, &condition.expectation) {
        (Variable::Header(name), Expectation::Equals(value)) => {
            vec![var(format!("http_{name}"), Some(value.clone()))]
        }
        (Variable::Header(name), Expectation::Present) => vec![var(format!("http_{name}"), None)],
        (Variable::Query(name), Expectation::Equals(value)) => {
            let values = query_spellings(value);
            let names = query_spellings(name);
            names
                .iter()
                .flat_map(|name| {
                    values.iter().map(move |value| var(format!("arg_{name}"), Some(value.clone())))
                })
                .collect()
        }
        (Variable::Query(name), Expectation::Present) => {
            query_spellings(name).into_iter().map(|name| var(format!("arg_{name}"), None)).collect()
        }
    }
}

/// The ways clients write a text in a query: as it is, percent-encoded, and with `+` for blanks.
fn query_spellings(text: &str) -> Vec<String> {
    let plain = text.bytes().all(|byte| byte.is_ascii_graphic() && !b"#%&+\"<>".contains(&byte));
    let mut spellings = Vec::new();
    if plain {
        spellings.push(text.to_owned());
    }
    spellings.push(percent_encode(text, "%20"));
    spellings.push(percent_encode(text, "+"));
    spellings.sort();
    spellings.dedup();
    spellings
}

fn percent_encode(text: &str, blank: &str) -> String {
    use std::fmt::Write as _;
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' ' => encoded.push_str(blank),
            _ if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => encoded.push(char::from(byte)),
            _ => {
                // Writing to a String cannot fail.
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(name: &str, value: &str) -> Condition {
        Condition {
            variable: Variable::Query(name.to_owned()),
            expectation: Expectation::Equals(value.to_owned()),
        }
    }

    #[test]
    fn plain_values_have_one_spelling() {
        assert_eq!(vars_of(&[query("a", "b-1")]), [[["arg_a", "==", "b-1"]]]);
    }

    #[test]
    fn values_that_need_encoding_are_tried_in_each_spelling() {
        assert_eq!(query_spellings("a b"), ["a%20b", "a+b"]);
        assert_eq!(query_spellings("a/b"), ["a%2Fb", "a/b"]);
        assert_eq!(query_spellings("a&b"), ["a%26b"]);
    }

    #[test]
    fn the_number_of_spellings_is_bounded() {
        let many: Vec<Condition> = (0..10).map(|index| query(&format!("p{index}"), "a b/c")).collect();
        assert_eq!(vars_of(&many).len(), MAX_SPELLINGS);
    }

    #[test]
    fn no_conditions_are_one_empty_list() {
        assert_eq!(vars_of(&[]), [Vec::<Vec<String>>::new()]);
        assert_eq!(Conditions::default().vars_size(), VarsSize { lists: 1, bytes: 2 });
    }

    #[test]
    fn the_size_is_that_of_the_vars_as_json() {
        let header = |name: &str, expectation: Expectation| Condition {
            variable: Variable::Header(name.to_owned()),
            expectation,
        };
        let quoted = Expectation::Equals("\"\\".to_owned());
        let all = vec![query("p", "a b/c"), header("x-a", quoted), header("x-b", Expectation::Present)];
        let lists = vars_of(&{ Conditions::from(all.clone()) });
        let bytes: usize = lists.iter().map(|list| serde_json::to_string(list).unwrap().len()).sum();
        let size = Conditions::from(all).vars_size();
        assert_eq!((size.lists as usize, size.bytes as usize), (lists.len(), bytes));
    }
}
