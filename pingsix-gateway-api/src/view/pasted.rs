//! Pasted texts as requests to explain: a command line of curl, or the head of a request.

use super::curl;
use super::form::Form;
use crate::explain::Inquiry;

/// The message for a text that is none of the accepted forms.
const EXPECTED: &str = "The text is neither a command line of curl nor a request, such as \"GET /cart HTTP/1.1\" with the \
                        line \"Host: shop.example.com\" below.";

/// The request of a text. The error is a sentence.
pub(super) fn parse(text: &str) -> Result<Form, String> {
    let text = text.trim();
    if let Some(form) = head(text) {
        return form;
    }
    curl::parse(text).map_err(|error| {
        if error == curl::CurlError::NotCurl { EXPECTED.to_owned() } else { error.to_string() }
    })
}

/// The inquiry about a pasted text: a command line of curl, or the head of a request.
///
/// # Errors
///
/// The reason, in a sentence.
pub fn pasted_request(text: &str) -> Result<Inquiry, String> {
    parse(text)?.inquiry()
}

/// The head of a request: a request line, and headers up to an empty line. `None` without a request line.
fn head(text: &str) -> Option<Result<Form, String>> {
    let mut lines = text.lines().map(str::trim_end);
    let mut words = lines.next()?.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let version = words.next();
    let is_method =
        !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-');
    let is_target =
        target.starts_with('/') || target.starts_with("http://") || target.starts_with("https://");
    if !is_method || !is_target || words.next().is_some() {
        return None;
    }
    let http2 = match version {
        None | Some("HTTP/1.1") => false,
        Some("HTTP/2" | "HTTP/2.0") => true,
        Some(_) => return Some(Err("PingSIX is modelled for HTTP/1.1 and HTTP/2.".to_owned())),
    };
    // Browsers show the host of HTTP/2 as a pseudo-header.
    let headers = lines.take_while(|line| !line.is_empty());
    let headers: Vec<String> = headers
        .map(|line| {
            line.strip_prefix(":authority").map_or_else(|| line.to_owned(), |rest| format!("Host{rest}"))
        })
        .collect();
    let host = headers.iter().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim())
    });
    let url = match host {
        _ if !target.starts_with('/') => target.to_owned(),
        Some(host) => format!("http://{host}{target}"),
        None => return Some(Err("The request has no header Host.".to_owned())),
    };
    if curl::has_credentials(&url) {
        return Some(Err(curl::CurlError::Credentials.to_string()));
    }
    // The URL has the host already.
    let is_kept =
        |line: &&str| line.split_once(':').is_none_or(|(name, _)| !name.eq_ignore_ascii_case("host"));
    let kept: Vec<&str> =
        headers.iter().map(String::as_str).filter(|line| !target.starts_with('/') || is_kept(line)).collect();
    Some(Ok(Form { method: method.to_owned(), url, headers: kept.join("\n"), http2, ..Form::default() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_a_request_is_a_request() {
        let form =
            parse("POST /cart?a=b HTTP/1.1\r\nHost: shop.test:8080\r\nX-Env: canary\r\n\r\nbody: none\r\n")
                .unwrap();
        assert_eq!((&*form.method, &*form.url), ("POST", "http://shop.test:8080/cart?a=b"));
        assert_eq!((&*form.headers, form.http2), ("X-Env: canary", false));
        let form = parse("GET https://a.test/ HTTP/2\nhost: b.test").unwrap();
        assert_eq!((&*form.url, &*form.headers, form.http2), ("https://a.test/", "host: b.test", true));
        let form = parse("GET /a HTTP/2\n:authority: c.test\nx-a: b").unwrap();
        assert_eq!((&*form.url, &*form.headers, form.http2), ("http://c.test/a", "x-a: b", true));
        assert_eq!(parse("GET /").unwrap_err(), "The request has no header Host.");
        let credentials = parse("GET https://me:pw@a.test/ HTTP/2").unwrap_err();
        assert!(credentials.starts_with("Leave credentials out"), "{credentials}");
        assert_eq!(
            parse("GET / HTTP/3\nHost: a").unwrap_err(),
            "PingSIX is modelled for HTTP/1.1 and HTTP/2."
        );
    }

    #[test]
    fn a_command_line_is_one_and_other_texts_are_refused() {
        assert_eq!(parse(" curl http://a.test/ ").unwrap().url, "http://a.test/");
        assert!(parse("curl -u me URL").unwrap_err().starts_with("The option -u of curl"));
        for text in ["", "shop.example.com", "get / HTTP/1.1", "GET / HTTP/1.1 x", "Host: a.test"] {
            assert_eq!(parse(text).unwrap_err(), EXPECTED, "{text}");
        }
    }
}
