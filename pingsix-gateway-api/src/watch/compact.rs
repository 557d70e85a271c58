//! Compact forms of texts that every object has.
//!
//! There are thousands of objects. Most of their versions are numbers, their uids are UUIDs, and their statuses differ
//! in times alone. Other texts are stored unchanged, so every form is lossless.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use pingsix_translate::snapshot::Pool;
use serde_json::Value;

/// A `resourceVersion`, or an empty text. The API server's versions are numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Number(u64),
    Text(Box<str>),
}

impl From<&str> for Version {
    fn from(text: &str) -> Self {
        let number = text.parse::<u64>().ok().filter(|number| number.to_string() == text);
        number.map_or_else(|| Self::Text(text.into()), Self::Number)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

/// A `uid`. The API server's uids are UUIDs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Uid {
    Uuid([u8; 16]),
    Text(Box<str>),
}

impl Uid {
    fn uuid(text: &str) -> Option<Self> {
        let digits: String = text.chars().filter(|letter| *letter != '-').collect();
        let uuid = Self::Uuid(u128::from_str_radix(&digits, 16).ok()?.to_be_bytes());
        (uuid.to_string() == text).then_some(uuid)
    }
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        Self::uuid(text).unwrap_or_else(|| Self::Text(text.into()))
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uuid(bytes) => {
                for (index, byte) in bytes.iter().enumerate() {
                    let dash = if matches!(index, 4 | 6 | 8 | 10) { "-" } else { "" };
                    write!(f, "{dash}{byte:02x}")?;
                }
                Ok(())
            }
            Self::Text(text) => text.fmt(f),
        }
    }
}

/// A status in two parts. The statuses of a Gateway's routes mostly differ in their times, so they share the first
/// part.
#[derive(Clone, Debug)]
pub(super) struct CompactStatus {
    /// The status as JSON, with an index of `times` in place of each time.
    shape: Arc<str>,
    times: Times,
}

/// Distinct times, in Unix seconds.
#[derive(Clone, Debug)]
enum Times {
    /// One time for all conditions, the usual case.
    One(i64),
    /// Several times, or none.
    Many(Box<[i64]>),
}

impl Times {
    fn as_slice(&self) -> &[i64] {
        match self {
            Self::One(time) => std::slice::from_ref(time),
            Self::Many(times) => times,
        }
    }
}

impl From<Vec<i64>> for Times {
    fn from(times: Vec<i64>) -> Self {
        if let [time] = times[..] { Self::One(time) } else { Self::Many(times.into()) }
    }
}

/// The field with the time of a condition.
const TIME: &str = "lastTransitionTime";

impl CompactStatus {
    pub(super) fn new(mut status: Value) -> Self {
        let mut times = Vec::new();
        // A number in place of a time would look like an index.
        if !any_time(&mut status, &mut |time| time.is_number()) {
            any_time(&mut status, &mut |time| {
                if let Some(second) = time.as_str().and_then(second_of) {
                    let known = times.iter().position(|known| *known == second);
                    let at = known.unwrap_or_else(|| {
                        times.push(second);
                        times.len() - 1
                    });
                    *time = at.into();
                }
                false
            });
        }
        Self { shape: status.to_string().into(), times: times.into() }
    }

    pub(super) fn read(&self) -> Value {
        let mut status = serde_json::from_str(&self.shape).unwrap_or_default();
        let times = self.times.as_slice();
        if !times.is_empty() {
            any_time(&mut status, &mut |time| {
                let second = time.as_u64().and_then(|at| times.get(usize::try_from(at).ok()?));
                if let Some(second) = second.and_then(|second| Timestamp::from_second(*second).ok()) {
                    *time = second.to_string().into();
                }
                false
            });
        }
        status
    }
}

/// The Unix second of a time in the form of the API server.
fn second_of(text: &str) -> Option<i64> {
    let time: Timestamp = text.parse().ok()?;
    let second = Timestamp::from_second(time.as_second()).ok()?;
    (second.to_string() == text).then(|| second.as_second())
}

/// Calls a function with the value of every time field, until the function returns `true`.
fn any_time(value: &mut Value, visit: &mut dyn FnMut(&mut Value) -> bool) -> bool {
    match value {
        Value::Object(fields) => fields
            .iter_mut()
            .any(|(name, field)| if name == TIME { visit(field) } else { any_time(field, visit) }),
        Value::Array(elements) => elements.iter_mut().any(|element| any_time(element, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

impl CompactStatus {
    pub(super) fn share(&mut self, pool: &mut Pool) {
        pool.text(&mut self.shape);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn usual_texts_are_compact_and_other_texts_are_kept() {
        for text in ["1", "18446744073709551615", "007", "", "a"] {
            assert_eq!(Version::from(text).to_string(), text);
        }
        assert!(matches!(Version::from("42"), Version::Number(42)));
        assert!(matches!(Version::from("007"), Version::Text(_)));
        let uuid = "0f8fad5b-d9cb-469f-a165-70867728950e";
        let upper = uuid.to_uppercase();
        for text in [uuid, &upper, "uid-cart", "", "1"] {
            assert_eq!(Uid::from(text).to_string(), text);
        }
        assert!(matches!(Uid::from(uuid), Uid::Uuid(_)));
        assert!(size_of::<Version>() <= 16 && size_of::<Option<Uid>>() <= 24);
    }

    fn status(times: [Value; 3]) -> Value {
        let [one, two, three] = times;
        json!({
            "parents": [{"conditions": [{"type": "A", "lastTransitionTime": one}, {"lastTransitionTime": two}]}],
            "theirs": {"lastTransitionTime": three, "deep": [[1, null, "x"]]},
        })
    }

    #[test]
    fn a_status_is_read_as_it_was_sent() {
        for times in [
            [json!("2026-01-01T00:00:00Z"), json!("2026-01-01T00:00:00Z"), json!("2026-01-02T03:04:05Z")],
            [json!("2026-01-01T00:00:00.5Z"), json!("2026-01-01T01:00:00+01:00"), json!(null)],
            [json!("2026-01-01T00:00:00Z"), json!(0), json!(1)],
            [json!("-002026-01-01T00:00:00Z"), json!({"lastTransitionTime": 0}), json!(["soon"])],
        ] {
            let status = status(times);
            assert_eq!(CompactStatus::new(status.clone()).read().to_string(), status.to_string());
        }
        assert_eq!(CompactStatus::new(Value::Null).read(), Value::Null);
    }

    #[test]
    fn statuses_that_differ_in_time_share_a_text() {
        let (mut pool, at) = (Pool::default(), |time: &str| {
            CompactStatus::new(status([time.into(), time.into(), time.into()]))
        });
        let (mut one, mut other) = (at("2026-01-01T00:00:00Z"), at("2026-01-02T00:00:00Z"));
        one.share(&mut pool);
        other.share(&mut pool);
        assert!(Arc::ptr_eq(&one.shape, &other.shape));
        assert_eq!(one.times.as_slice().len(), 1);
        assert_ne!(one.read(), other.read());
    }
}
