//! Header modifiers (Gateway API `HTTPHeaderFilter`).

use std::collections::BTreeSet;

use gateway_api::experimental::httproutes as api;

use crate::model::{Capability, FieldPath, Reason, Refusal};
use crate::pingsix::plugin::{self, EXPANDED_IN_HEADERS, Header, ResponseHeaders};
use crate::responder::REDIRECT_HEADER;

/// Changes to the headers of a message. Two that have the same effect are equal: names are lower-case, lists are
/// sorted by name, and a name occurs in one list only where the order would matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeaderChanges {
    /// Replaces every value; one entry per name.
    pub(crate) set: Vec<(String, String)>,
    /// Appended values; those of one name in the order written.
    pub(crate) add: Vec<(String, String)>,
    pub(crate) remove: Vec<String>,
}

/// The changed message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Request,
    Response,
}

/// Headers a route must not touch: they frame the message, or PingSIX and the responder live by them.
const RESERVED: [&str; 5] = ["content-length", "transfer-encoding", "connection", "upgrade", REDIRECT_HEADER];

impl HeaderChanges {
    pub(crate) fn is_empty(&self) -> bool {
        self.set.is_empty() && self.add.is_empty() && self.remove.is_empty()
    }

    /// Reads a modifier of requests.
    pub(crate) fn of_request(
        filter: &api::HttpRouteRulesFiltersRequestHeaderModifier,
        at: &FieldPath,
        refusals: &mut Vec<Refusal>,
    ) -> Self {
        let set = filter.set.iter().flatten().map(|header| (&header.name, &header.value));
        let add = filter.add.iter().flatten().map(|header| (&header.name, &header.value));
        Self::read(Message::Request, set, add, filter.remove.as_deref(), at, refusals)
    }

    /// Reads a modifier of responses.
    pub(crate) fn of_response(
        filter: &api::HttpRouteRulesFiltersResponseHeaderModifier,
        at: &FieldPath,
        refusals: &mut Vec<Refusal>,
    ) -> Self {
        let set = filter.set.iter().flatten().map(|header| (&header.name, &header.value));
        let add = filter.add.iter().flatten().map(|header| (&header.name, &header.value));
        Self::read(Message::Response, set, add, filter.remove.as_deref(), at, refusals)
    }

    fn read<'a>(
        message: Message,
        set: impl Iterator<Item = (&'a String, &'a String)>,
        add: impl Iterator<Item = (&'a String, &'a String)>,
        remove: Option<&[String]>,
        at: &FieldPath,
        refusals: &mut Vec<Refusal>,
    ) -> Self {
        let mut changes = Self::default();
        for (index, (name, value)) in set.enumerate() {
            let at = || at.child("set").index(index);
            if let Some(header) = checked(message, name, Some(value), at, refusals) {
                // Gateway API: of equivalent names, only the first entry counts.
                if !changes.set.iter().any(|(earlier, _)| *earlier == header) {
                    changes.set.push((header, value.clone()));
                }
            }
        }
        for (index, (name, value)) in add.enumerate() {
            let at = || at.child("add").index(index);
            if let Some(header) = checked(message, name, Some(value), at, refusals) {
                changes.add.push((header, value.clone()));
            }
        }
        for (index, name) in remove.unwrap_or_default().iter().enumerate() {
            let at = || at.child("remove").index(index);
            changes.remove.extend(checked(message, name, None, at, refusals));
        }
        changes.in_order()
    }

    /// Sorts, and settles the order set, add, remove, whichever order the lists are applied in.
    fn in_order(mut self) -> Self {
        self.remove.sort();
        self.remove.dedup();
        let Self { set, add, remove } = &mut self;
        set.retain(|(name, _)| !remove.contains(name));
        add.retain(|(name, _)| !remove.contains(name));
        set.sort();
        // Stable: values of one name keep their order.
        add.sort_by(|(left, _), (right, _)| left.cmp(right));
        self
    }

    /// Both changes, one after the other; `None` when they touch the same header.
    pub(crate) fn then(&self, next: &Self) -> Option<Self> {
        let names = self.names();
        if next.names().iter().any(|name| names.contains(name)) {
            return None;
        }
        let mut both = self.clone();
        both.set.extend(next.set.iter().cloned());
        both.add.extend(next.add.iter().cloned());
        both.remove.extend(next.remove.iter().cloned());
        Some(both.in_order())
    }

    fn names(&self) -> BTreeSet<&str> {
        let values = self.set.iter().chain(&self.add).map(|(name, _)| name.as_str());
        values.chain(self.remove.iter().map(String::as_str)).collect()
    }
}

/// The name in lower case, if PingSIX can make the change.
fn checked(
    message: Message,
    name: &str,
    value: Option<&str>,
    at: impl Fn() -> FieldPath,
    refusals: &mut Vec<Refusal>,
) -> Option<String> {
    let mut refuse = |at: FieldPath, message: String| {
        refusals.push(Refusal::new(at, Reason::UnsupportedValue, message));
    };
    let at_name = || if value.is_some() { at().child("name") } else { at() };
    let header = match header_name(name) {
        Ok(header) => header,
        Err(message) => {
            refuse(at_name(), message);
            return None;
        }
    };
    if message == Message::Request && header == http::header::HOST {
        refuse(at_name(), "The Host header is changed by a URLRewrite filter, not by a modifier.".to_owned());
        return None;
    }
    if let Some(value) = value {
        // PingSIX would answer every request with 500.
        if http::HeaderValue::from_str(value).is_err() {
            refuse(at().child("value"), format!("The value of header {name} is not visible ASCII."));
            return None;
        }
        if message == Message::Response
            && let Some(variable) = EXPANDED_IN_HEADERS.into_iter().find(|variable| value.contains(variable))
        {
            let at = at().child("value");
            refusals.push(Capability::VariableInHeader.refuse_with(at, &[variable, name]));
            return None;
        }
    }
    Some(header.as_str().to_owned())
}

/// The name of a header that routes and policies may change.
///
/// # Errors
///
/// Says why the header cannot be changed.
pub(crate) fn header_name(name: &str) -> Result<http::HeaderName, String> {
    match http::HeaderName::from_bytes(name.as_bytes()) {
        Err(_) => Err(format!("\"{name}\" is not a header name.")),
        Ok(header) if RESERVED.contains(&header.as_str()) => {
            Err(format!("Header {name} belongs to the gateway and cannot be modified."))
        }
        Ok(header) => Ok(header),
    }
}

impl HeaderChanges {
    /// The part of PingSIX's plugin `proxy-rewrite` that changes requests.
    pub(super) fn lower_request(&self) -> Option<plugin::HeaderChanges> {
        let header = |(name, value): &(String, String)| Header { name: name.clone(), value: value.clone() };
        (!self.is_empty()).then(|| plugin::HeaderChanges {
            set: self.set.iter().map(header).collect(),
            add: self.add.iter().map(header).collect(),
            remove: self.remove.clone(),
        })
    }

    /// The part of PingSIX's plugin `response-rewrite` that changes headers.
    pub(crate) fn lower_response(&self) -> Option<ResponseHeaders> {
        (!self.is_empty()).then(|| ResponseHeaders::Structured {
            set: self.set.iter().cloned().collect(),
            add: self.add.iter().map(|(name, value)| format!("{name}: {value}")).collect(),
            remove: self.remove.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn request(filter: Value) -> (HeaderChanges, Vec<String>) {
        let mut refusals = Vec::new();
        let at = FieldPath::new("filter");
        let changes = HeaderChanges::of_request(&serde_json::from_value(filter).unwrap(), &at, &mut refusals);
        (changes, refusals.iter().map(|refusal| refusal.at.to_string()).collect())
    }

    fn response(filter: Value) -> Vec<String> {
        let mut refusals = Vec::new();
        let at = FieldPath::new("filter");
        HeaderChanges::of_response(&serde_json::from_value(filter).unwrap(), &at, &mut refusals);
        refusals.iter().map(|refusal| refusal.at.to_string()).collect()
    }

    #[test]
    fn changes_with_one_effect_are_equal() {
        let (left, _) = request(json!({
            "set": [{"name": "X-B", "value": "1"}, {"name": "x-a", "value": "2"}, {"name": "X-A", "value": "3"}],
            "remove": ["X-C", "x-c"],
        }));
        let (right, _) = request(json!({
            "set": [{"name": "x-a", "value": "2"}, {"name": "x-b", "value": "1"}], "remove": ["x-c"],
        }));
        assert_eq!(left, right);
    }

    #[test]
    fn removed_headers_are_neither_set_nor_added() {
        let (changes, _) = request(json!({
            "set": [{"name": "X-A", "value": "1"}], "add": [{"name": "x-a", "value": "2"}], "remove": ["X-A"],
        }));
        assert_eq!(changes, HeaderChanges { remove: vec!["x-a".to_owned()], ..HeaderChanges::default() });
    }

    #[test]
    fn headers_that_pingsix_cannot_send_are_refused_at_their_field() {
        let (changes, refused) = request(json!({
            "set": [{"name": "a b", "value": "1"}, {"name": "X-A", "value": "line\nbreak"}, {"name": "Host", "value": "a"}],
            "add": [{"name": "Content-Length", "value": "1"}, {"name": "X-B", "value": "$remote_addr"}],
            "remove": ["x-pingsix-redirect"],
        }));
        assert_eq!(
            refused,
            [
                "filter.set[0].name",
                "filter.set[1].value",
                "filter.set[2].name",
                "filter.add[0].name",
                "filter.remove[0]"
            ]
        );
        assert_eq!(changes.add, [("x-b".to_owned(), "$remote_addr".to_owned())]);
        assert_eq!(
            response(
                json!({"set": [{"name": "X-B", "value": "a $remote_addr"}, {"name": "Host", "value": "a"}]})
            ),
            ["filter.set[0].value"]
        );
    }

    #[test]
    fn changes_of_different_headers_follow_one_another() {
        let (first, _) = request(json!({"set": [{"name": "X-A", "value": "1"}]}));
        let (second, _) = request(json!({"remove": ["X-B"]}));
        let both = first.then(&second).unwrap();
        assert_eq!((both.set.len(), both.remove.len()), (1, 1));
        assert_eq!(both.then(&second), None);
    }
}
