//! HAR files: the requests that a browser has recorded.

use http::uri::Uri;
use serde::Deserialize;

use crate::answer::Request;

#[derive(Debug, Deserialize)]
struct Har {
    log: Log,
}

#[derive(Debug, Deserialize)]
struct Log {
    #[serde(default)]
    entries: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    request: Recorded,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Recorded {
    method: String,
    url: String,
    #[serde(default)]
    http_version: String,
    #[serde(default)]
    headers: Vec<Header>,
    #[serde(default)]
    body_size: i64,
}

#[derive(Debug, Deserialize)]
struct Header {
    name: String,
    value: String,
}

/// The requests of a file, or the reasons, in the order of the entries.
pub(super) fn read(text: &str) -> Result<Vec<Result<Request, String>>, String> {
    let har: Har = serde_json::from_str(text)
        .map_err(|error| format!("the file is no HAR: line {}, column {}", error.line(), error.column()))?;
    Ok(har.log.entries.into_iter().map(|entry| request(entry.request)).collect())
}

fn request(recorded: Recorded) -> Result<Request, String> {
    let uri: Uri = recorded.url.parse().map_err(|_| "the URL cannot be read".to_owned())?;
    let https = match uri.scheme_str() {
        Some("http" | "ws") => false,
        Some("https" | "wss") => true,
        _ => return Err("the URL is neither one of HTTP nor of HTTPS".to_owned()),
    };
    let authority = uri.authority().ok_or("the URL has no host")?.as_str();
    let host = authority.rsplit('@').next().unwrap_or(authority).to_owned();
    // Browsers record pseudo-headers of HTTP/2, too.
    let headers = recorded
        .headers
        .into_iter()
        .filter(|header| !header.name.starts_with(':') && !header.name.eq_ignore_ascii_case("host"));
    Ok(Request {
        method: recorded.method,
        https,
        host,
        path: uri.path().to_owned(),
        query: uri.query().map(str::to_owned),
        headers: headers.map(|header| (header.name, header.value)).collect(),
        http2: recorded.http_version.to_ascii_lowercase().contains("/2") || recorded.http_version == "h2",
        body: u64::try_from(recorded.body_size).unwrap_or(0),
        ..Request::default()
    })
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn recorded_requests_are_read_and_others_have_reasons() {
        let har = r#"{ "log": { "version": "1.2", "entries": [
            { "request": { "method": "POST", "url": "https://shop.example.com:8443/cart?a=1", "httpVersion": "h2", "bodySize": 12,
                           "headers": [{ "name": ":path", "value": "/" }, { "name": "X-Env", "value": "a" }] } },
            { "request": { "method": "GET", "url": "data:text/plain,a" } } ] } }"#;
        let requests = read(har).unwrap();
        let first = requests[0].as_ref().unwrap();
        assert_eq!((first.host.as_str(), first.path.as_str()), ("shop.example.com:8443", "/cart"));
        assert_eq!((first.https, first.http2, first.body), (true, true, 12));
        assert_eq!(first.headers, [("X-Env".to_owned(), "a".to_owned())]);
        assert!(requests[1].is_err());
        assert!(read("{ \"log\": 1 }").is_err());
    }
}
