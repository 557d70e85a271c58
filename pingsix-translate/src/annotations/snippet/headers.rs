//! Directives that change headers.

use gateway_api::experimental::httproutes as api;

use super::{Understood, exact, limited};
use crate::annotations::{request_headers, response_headers};

/// The headers that ingress-nginx sends to every backend (`rootfs/etc/nginx/template/nginx.tmpl`).
const SENT: [&str; 11] = [
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-proto",
    "x-forwarded-scheme",
    "x-original-forwarded-for",
    "x-original-forwarded-host",
    "x-real-ip",
    "x-request-id",
    "x-scheme",
    "proxy",
];

/// The changes of headers, by name.
#[derive(Default)]
pub(super) struct Headers {
    /// For backends; `None` is no such header.
    sent: Vec<(String, Option<String>)>,
    responses: Vec<(String, Change)>,
}

/// The change of a header of responses.
enum Change {
    /// `more_set_headers`
    Set(String),
    /// `more_clear_headers`
    Cleared,
    /// `add_header`
    Added(String),
    /// `proxy_hide_header`
    Hidden,
    /// `proxy_hide_header` and `add_header`
    Replaced(String),
}

const TWICE: &str = "another directive changes the same header";

const VARIABLE: &str = "its value has a variable";

const RESPONSES: &str = "becomes responseHeaderModifier of the rules";

/// Headers that let connections change to WebSocket. ingress-nginx and PingSIX send them without a directive, too.
fn for_websockets(name: &str, value: &str) -> Option<Understood> {
    if name.eq_ignore_ascii_case("upgrade") && value == "$http_upgrade" {
        return Some(exact("has no effect, because PingSIX lets connections change to WebSocket"));
    }
    let is_connection = name.eq_ignore_ascii_case("connection");
    match value.to_ascii_lowercase().as_str() {
        "$connection_upgrade" | "$http_connection" if is_connection => {
            Some(exact("has no effect, because PingSIX lets connections change to WebSocket"))
        }
        "upgrade" if is_connection => {
            Some(limited("has no effect: PingSIX sends the header for WebSockets alone"))
        }
        _ => None,
    }
}

fn constant(value: &str) -> Result<&str, &'static str> {
    if value.contains('$') { Err(VARIABLE) } else { Ok(value) }
}

impl Headers {
    /// `proxy_set_header`: an empty value keeps the header of the client back.
    pub(super) fn send(&mut self, name: &str, value: &str) -> Result<Understood, &'static str> {
        if let Some(understood) = for_websockets(name, value) {
            return Ok(understood);
        }
        let value = constant(value)?;
        if name.eq_ignore_ascii_case("host") {
            return Err(
                "ingress-nginx sends another Host, too, and the annotation upstream-vhost replaces it",
            );
        }
        if self.sent.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
            return Err(TWICE);
        }
        let is_sent = SENT.iter().any(|sent| name.eq_ignore_ascii_case(sent));
        if is_sent && value.is_empty() {
            return Ok(exact("has no effect, because ingress-nginx sets the header"));
        }
        self.sent.push((name.to_owned(), Some(value.to_owned()).filter(|value| !value.is_empty())));
        Ok(if is_sent {
            limited(
                "becomes requestHeaderModifier of the rules; ingress-nginx sends a value of its own before this one",
            )
        } else {
            exact("becomes requestHeaderModifier of the rules")
        })
    }

    /// `add_header`. Without `always`, responses with most errors do not get the header.
    pub(super) fn add(&mut self, name: &str, value: &str, always: bool) -> Result<Understood, &'static str> {
        let value = constant(value)?.to_owned();
        // nginx replaces the times of a response, and sends no header without a value.
        if ["last-modified", "etag"].iter().any(|special| name.eq_ignore_ascii_case(special)) {
            return Err("nginx computes the header");
        }
        if value.is_empty() {
            return Ok(exact("has no effect, because its value is empty"));
        }
        match self.response(name) {
            None => self.responses.push((name.to_owned(), Change::Added(value))),
            Some(change @ Change::Hidden) => *change = Change::Replaced(value),
            Some(_) => return Err(TWICE),
        }
        Ok(if always {
            exact(RESPONSES)
        } else {
            limited("becomes responseHeaderModifier of the rules, for responses with errors, too")
        })
    }

    /// `proxy_hide_header`.
    pub(super) fn hide(&mut self, name: &str) -> Result<Understood, &'static str> {
        match self.response(name) {
            None => self.responses.push((name.to_owned(), Change::Hidden)),
            Some(change) => match change {
                Change::Added(value) => *change = Change::Replaced(std::mem::take(value)),
                Change::Hidden | Change::Replaced(_) => {}
                Change::Set(_) | Change::Cleared => return Err(TWICE),
            },
        }
        Ok(exact(RESPONSES))
    }

    /// `more_set_headers`: each word is a header. One without a value is removed.
    pub(super) fn set(&mut self, words: &[&str]) -> Result<Understood, &'static str> {
        for word in words {
            if word.starts_with('-') {
                return Err("it is for some responses alone");
            }
            let (name, value) = word.split_once(':').unwrap_or((word, ""));
            let value = constant(value)?.trim_start_matches([' ', '\t']);
            let change = if value.is_empty() { Change::Cleared } else { Change::Set(value.to_owned()) };
            self.replace(name.trim_end(), change)?;
        }
        Ok(exact(RESPONSES))
    }

    /// `more_clear_headers`: each word is a header.
    pub(super) fn clear(&mut self, words: &[&str]) -> Result<Understood, &'static str> {
        for word in words {
            if word.starts_with('-') {
                return Err("it is for some responses alone");
            }
            if word.contains('*') {
                return Err("it names headers by a pattern");
            }
            let name = word.split(':').next().unwrap_or_default();
            self.replace(name, Change::Cleared)?;
        }
        Ok(exact(RESPONSES))
    }

    /// Of several directives of headers-more for one header, the last counts.
    fn replace(&mut self, name: &str, change: Change) -> Result<(), &'static str> {
        match self.response(name) {
            None => self.responses.push((name.to_owned(), change)),
            Some(known @ (Change::Set(_) | Change::Cleared)) => *known = change,
            Some(Change::Added(_) | Change::Hidden | Change::Replaced(_)) => return Err(TWICE),
        }
        Ok(())
    }

    fn response(&mut self, name: &str) -> Option<&mut Change> {
        let known = self.responses.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name));
        known.map(|(_, change)| change)
    }

    /// The filters of a rule.
    pub(super) fn filters(self) -> Vec<api::HttpRouteRulesFilters> {
        let mut request = api::HttpRouteRulesFiltersRequestHeaderModifier::default();
        for (name, value) in self.sent {
            match value {
                Some(value) => request
                    .set
                    .get_or_insert_default()
                    .push(api::HttpRouteRulesFiltersRequestHeaderModifierSet { name, value }),
                None => request.remove.get_or_insert_default().push(name),
            }
        }
        let mut response = api::HttpRouteRulesFiltersResponseHeaderModifier::default();
        for (name, change) in self.responses {
            match change {
                Change::Set(value) | Change::Replaced(value) => response
                    .set
                    .get_or_insert_default()
                    .push(api::HttpRouteRulesFiltersResponseHeaderModifierSet { name, value }),
                Change::Added(value) => response
                    .add
                    .get_or_insert_default()
                    .push(api::HttpRouteRulesFiltersResponseHeaderModifierAdd { name, value }),
                Change::Cleared | Change::Hidden => response.remove.get_or_insert_default().push(name),
            }
        }
        let mut filters = Vec::new();
        if request != api::HttpRouteRulesFiltersRequestHeaderModifier::default() {
            filters.push(request_headers(request));
        }
        if response != api::HttpRouteRulesFiltersResponseHeaderModifier::default() {
            filters.push(response_headers(response));
        }
        filters
    }
}
