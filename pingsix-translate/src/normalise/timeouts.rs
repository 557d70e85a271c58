//! Timeouts and retries of a rule: properties of the way to a backend, not of the message.

use gateway_api::experimental::httproutes as api;

use crate::model::{Capability, Reason, Refusal, field};

/// The connection settings of a rule's backends, where its author sets them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TimeoutsAndRetries {
    /// Seconds, from 1.
    pub(crate) timeout: Option<u32>,
    /// The number of retries after a failed connection.
    pub(crate) retries: Option<u32>,
}

/// PingSIX's longest timeout in seconds (`src/config/mod.rs`), which replaces "none".
pub(crate) const MAX_TIMEOUT: u32 = 86_400;

/// PingSIX's limit of attempts (`pingora.max_retries`).
const MAX_RETRIES: u32 = 16;

impl TimeoutsAndRetries {
    /// Reads `timeouts` and `retry` of a rule.
    pub(crate) fn read(
        rule: usize,
        timeouts: Option<&api::HttpRouteRulesTimeouts>,
        retry: Option<&api::HttpRouteRulesRetry>,
        limitations: &mut Vec<Refusal>,
        refusals: &mut Vec<Refusal>,
    ) -> Self {
        Self {
            timeout: timeouts.and_then(|timeouts| read_timeouts(rule, timeouts, limitations, refusals)),
            retries: retry.and_then(|retry| read_retry(rule, retry, limitations, refusals)),
        }
    }
}

/// PingSIX has one idle timer per direction, so the shorter of the two becomes it.
fn read_timeouts(
    rule: usize,
    timeouts: &api::HttpRouteRulesTimeouts,
    limitations: &mut Vec<Refusal>,
    refusals: &mut Vec<Refusal>,
) -> Option<u32> {
    let at = field::rule(rule).child("timeouts");
    let fields =
        [("request", timeouts.request.as_deref()), ("backendRequest", timeouts.backend_request.as_deref())];
    let mut shortest: Option<u32> = None;
    let mut limited = Vec::new();
    for (name, text) in fields {
        let Some(text) = text else { continue };
        let Ok(duration) = text.parse::<gateway_api::Duration>() else {
            refusals.push(Refusal::new(
                at.child(name),
                Reason::UnsupportedValue,
                format!("\"{text}\" is not a duration such as 10s or 1m30s."),
            ));
            continue;
        };
        let millis = duration.as_millis();
        // "0s" turns the timeout off, or is the longest there is.
        let seconds = if millis == 0 { u128::from(MAX_TIMEOUT) } else { millis.div_ceil(1000) };
        let seconds = u32::try_from(seconds).unwrap_or(MAX_TIMEOUT).min(MAX_TIMEOUT);
        shortest = Some(shortest.map_or(seconds, |shortest| shortest.min(seconds)));
        if millis > 0 {
            limited.push(name);
        }
    }
    let seconds = shortest?;
    let limit = |name| Capability::TotalTimeout.limit_with(at.child(name), &[&seconds.to_string()]);
    limitations.extend(limited.into_iter().map(limit));
    Some(seconds)
}

fn read_retry(
    rule: usize,
    retry: &api::HttpRouteRulesRetry,
    limitations: &mut Vec<Refusal>,
    refusals: &mut Vec<Refusal>,
) -> Option<u32> {
    let at = field::rule(rule).child("retry");
    if retry.codes.as_ref().is_some_and(|codes| !codes.is_empty()) {
        refusals.push(Capability::RetryByStatus.refuse(at.child("codes")));
    }
    if retry.backoff.is_some() {
        refusals.push(Capability::RetryBackoff.refuse(at.child("backoff")));
    }
    let attempts = retry.attempts?;
    let Ok(attempts) = u32::try_from(attempts) else {
        let message = format!("{attempts} is not a number of attempts.");
        refusals.push(Refusal::new(at.child("attempts"), Reason::UnsupportedValue, message));
        return None;
    };
    if attempts > MAX_RETRIES {
        let most = MAX_RETRIES.to_string();
        limitations.push(Capability::ManyRetries.limit_with(at.child("attempts"), &[&most]));
    }
    Some(attempts.min(MAX_RETRIES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(rule: Value) -> (TimeoutsAndRetries, usize, Vec<String>) {
        let rule: api::HttpRouteRules = serde_json::from_value(rule).unwrap();
        let (mut limitations, mut refusals) = (Vec::new(), Vec::new());
        let timeouts = TimeoutsAndRetries::read(
            0,
            rule.timeouts.as_ref(),
            rule.retry.as_ref(),
            &mut limitations,
            &mut refusals,
        );
        (timeouts, limitations.len(), refusals.iter().map(|refusal| refusal.at.to_string()).collect())
    }

    #[test]
    fn timeouts_are_rounded_up_and_the_shorter_one_counts() {
        let timeout = |timeouts: Value| read(json!({ "timeouts": timeouts })).0.timeout;
        assert_eq!(timeout(json!({})), None);
        assert_eq!(timeout(json!({"request": "500ms"})), Some(1));
        assert_eq!(timeout(json!({"request": "1m30s", "backendRequest": "10s1ms"})), Some(11));
        assert_eq!(timeout(json!({"request": "0s"})), Some(86_400));
        assert_eq!(timeout(json!({"request": "0s", "backendRequest": "2s"})), Some(2));
        assert_eq!(timeout(json!({"request": "48h"})), Some(86_400));
    }

    #[test]
    fn a_timeout_is_a_limit_and_none_is_not() {
        assert_eq!(read(json!({"timeouts": {"request": "10s"}})).1, 1);
        assert_eq!(read(json!({"timeouts": {"request": "0s"}})).1, 0);
    }

    #[test]
    fn both_policies_name_the_effective_one_of_two_timeouts() {
        let timeouts: api::HttpRouteRulesTimeouts =
            serde_json::from_value(json!({"request": "30s", "backendRequest": "20s"})).unwrap();
        let mut limitations = Vec::new();
        read_timeouts(0, &timeouts, &mut limitations, &mut Vec::new());
        let fields: Vec<String> = limitations.iter().map(|limitation| limitation.at.to_string()).collect();
        assert_eq!(fields, ["spec.rules[0].timeouts.request", "spec.rules[0].timeouts.backendRequest"]);
        assert!(
            limitations.iter().all(|limitation| limitation.message.contains(" after 20 s ")),
            "{limitations:?}"
        );
    }

    #[test]
    fn nonsense_is_refused_at_its_field() {
        let (_, _, refused) = read(json!({
            "timeouts": {"request": "1.5s"}, "retry": {"attempts": -1, "codes": [500], "backoff": "1s"},
        }));
        assert_eq!(
            refused,
            [
                "spec.rules[0].timeouts.request",
                "spec.rules[0].retry.codes",
                "spec.rules[0].retry.backoff",
                "spec.rules[0].retry.attempts"
            ]
        );
    }

    #[test]
    fn attempts_become_retries() {
        let retries = |retry: Value| read(json!({ "retry": retry })).0.retries;
        assert_eq!(retries(json!({"attempts": 0})), Some(0));
        assert_eq!(retries(json!({"attempts": 3})), Some(3));
        assert_eq!(retries(json!({"attempts": 100})), Some(16));
        assert_eq!(retries(json!({})), None);
    }
}
