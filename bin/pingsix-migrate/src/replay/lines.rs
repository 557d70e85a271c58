//! A text as requests. The form of each line follows from its beginning.

use pingsix_gateway_api::view::pasted_request;
use serde_json::Value;

use super::{Hosts, ReplayHost, har, log};
use crate::answer::Request;

/// The most bytes of a line.
const MAX_LINE_BYTES: usize = 32 << 10;

/// A line, or an entry of a HAR file, that is no request.
#[derive(Debug)]
pub(super) struct Skipped {
    /// The number of the line or the entry, from 1.
    pub(super) line: usize,
    pub(super) why: String,
}

/// The requests of a text.
#[derive(Default)]
pub(super) struct Lines {
    pub(super) requests: Vec<Request>,
    pub(super) skipped: Vec<Skipped>,
}

impl Lines {
    fn add(&mut self, line: usize, request: Result<Request, String>) {
        match request {
            Ok(request) => self.requests.push(request),
            Err(why) => self.skipped.push(Skipped { line, why }),
        }
    }
}

pub(super) fn read(text: &str, host: Option<&ReplayHost>, objects: &[Value]) -> Lines {
    let mut lines = Lines::default();
    if text.trim_start().starts_with('{') {
        match har::read(text) {
            Ok(requests) => {
                for (index, request) in requests.into_iter().enumerate() {
                    lines.add(index + 1, request);
                }
            }
            Err(why) => lines.add(1, Err(why)),
        }
        return lines;
    }
    let hosts = Hosts::of(objects);
    let mut numbered = text.lines().enumerate();
    while let Some((index, line)) = numbered.next() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line.len() > MAX_LINE_BYTES {
            lines.add(index + 1, Err(format!("the line has more than {MAX_LINE_BYTES} bytes")));
        } else if is_curl(line) {
            let mut command = line.to_owned();
            // A shell goes on behind a backslash.
            while command.ends_with('\\') && command.len() <= MAX_LINE_BYTES {
                command.pop();
                let Some((_, next)) = numbered.next() else { break };
                command.push_str(next.trim_end());
            }
            lines.add(index + 1, curl(&command));
        } else {
            lines.add(index + 1, log::read(line, host, &hosts));
        }
    }
    lines
}

fn is_curl(line: &str) -> bool {
    let line = line.strip_prefix("$ ").unwrap_or(line);
    let word = line.split_whitespace().next().unwrap_or_default();
    word.rsplit('/').next() == Some("curl")
}

fn curl(command: &str) -> Result<Request, String> {
    let asked = pasted_request(command)?.request;
    Ok(Request {
        method: asked.method,
        https: asked.tls,
        host: asked.host.unwrap_or_default(),
        path: asked.path,
        query: asked.query,
        headers: asked.headers,
        http2: asked.http2,
        ..Request::default()
    })
}

impl Hosts {
    fn of(objects: &[Value]) -> Self {
        let mut hosts = Self::default();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        for ingress in objects.iter().filter(|object| object["kind"] == "Ingress") {
            let namespace = ingress["metadata"]["namespace"].as_str().unwrap_or("default");
            for tls in list(&ingress["spec"]["tls"]) {
                let names = list(&tls["hosts"]);
                hosts
                    .with_tls
                    .extend(names.iter().filter_map(|name| Some(name.as_str()?.to_ascii_lowercase())));
            }
            for rule in list(&ingress["spec"]["rules"]) {
                let host = rule["host"].as_str().unwrap_or_default().to_ascii_lowercase();
                for path in list(&rule["http"]["paths"]) {
                    let service = &path["backend"]["service"];
                    let (name, port) = (&service["name"], &service["port"]);
                    let port = port["number"].as_u64().map(|number| number.to_string());
                    let port = port.or_else(|| Some(service["port"]["name"].as_str()?.to_owned()));
                    let upstream = format!(
                        "{namespace}-{}-{}",
                        name.as_str().unwrap_or_default(),
                        port.unwrap_or_default()
                    );
                    hosts.of_upstream.entry(upstream).or_default().insert(host.clone());
                }
            }
        }
        for tls in objects.iter().filter(|object| object["kind"] == "ApisixTls") {
            let names = list(&tls["spec"]["hosts"]);
            hosts.with_tls.extend(names.iter().filter_map(|name| Some(name.as_str()?.to_ascii_lowercase())));
        }
        hosts
    }

    /// Whether an object of the input has a certificate for a host.
    pub(super) fn has_tls(&self, host: &str) -> bool {
        let name = host.split(':').next().unwrap_or_default();
        let wildcard = name.split_once('.').map(|(_, rest)| format!("*.{rest}"));
        self.with_tls.contains(name) || wildcard.is_some_and(|wildcard| self.with_tls.contains(&wildcard))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_its_own_form() {
        let text = "# a comment\n\ncurl -H 'X-Env: a' \\\n  https://shop.example.com/cart\nnonsense\n\
                    shop.example.com:80 192.0.2.1 - - [now] \"GET /a HTTP/1.1\" 200 1\ncurl -u me http://a.example/\n";
        let Lines { requests, skipped } = read(text, None, &[]);
        assert_eq!(requests.len(), 2);
        assert_eq!((requests[0].path.as_str(), requests[0].https), ("/cart", true));
        assert_eq!(requests[1].path, "/a");
        assert_eq!(skipped.iter().map(|one| one.line).collect::<Vec<_>>(), [5, 7]);
        assert!(!skipped[1].why.contains("page"), "{}", skipped[1].why);
    }
}
