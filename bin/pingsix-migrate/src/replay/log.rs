//! Lines of access logs in the combined format, in the form with the virtual host before them, and in that of ingress-nginx.

use std::net::IpAddr;

use super::{Hosts, ReplayHost};
use crate::answer::Request;

/// The statuses of redirects to HTTPS.
const REDIRECTS: [&str; 2] = ["301", "308"];

/// The request of a line. The error is the reason.
pub(super) fn read(line: &str, given: Option<&ReplayHost>, hosts: &Hosts) -> Result<Request, String> {
    let no_log = "the line is neither a command line of curl nor one of an access log in the combined format";
    let (before, rest) = line.split_once('[').ok_or(no_log)?;
    let (_, rest) = rest.split_once("] \"").ok_or(no_log)?;
    let (asked, rest) = quoted(rest).ok_or(no_log)?;
    let words: Vec<&str> = before.split_whitespace().collect();
    let (virtual_host, client) = match words.as_slice() {
        [client, _, ..] if client.parse::<IpAddr>().is_ok() => (None, *client),
        [host, client, _, ..] => (Some(*host), *client),
        _ => return Err(no_log.to_owned()),
    };
    let mut words = asked.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err("the request of the line is no request of HTTP".to_owned());
    };
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    if !is_method || !target.starts_with('/') || !version.starts_with("HTTP/") {
        return Err("the request of the line is no request of HTTP".to_owned());
    }
    let status = rest.split_whitespace().next().unwrap_or_default();
    let (host, https) = match (virtual_host, given) {
        (Some(host), _) => {
            let (name, port) = host.rsplit_once(':').unwrap_or((host, ""));
            let https = match port {
                "443" => Some(true),
                "80" => Some(false),
                _ => None,
            };
            (if matches!(port, "80" | "443") { name } else { host }.to_owned(), https)
        }
        (None, Some(given)) => (given.host.clone(), given.https),
        (None, None) => (of_upstream(rest, hosts)?, None),
    };
    let https = https.unwrap_or_else(|| hosts.has_tls(&host) && !REDIRECTS.contains(&status));
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    Ok(Request {
        method: method.to_owned(),
        https,
        host,
        path: path.to_owned(),
        query: query.map(str::to_owned),
        http2: version == "HTTP/2.0",
        client: client.parse().ok(),
        ..Request::default()
    })
}

/// The text up to the closing quote, without escapes, and the rest.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut read = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((read, text.get(at + 1..)?)),
            '\\' => read.push(letters.next()?.1),
            letter => read.push(letter),
        }
    }
    None
}

/// The host of a line of ingress-nginx, which names the upstream in brackets behind the times.
fn of_upstream(rest: &str, hosts: &Hosts) -> Result<String, String> {
    // Behind the last quote, which closes the name of the client's program.
    let times = rest.rsplit_once('"').map_or(rest, |(_, times)| times);
    let name = times.split_once(" [").and_then(|(_, rest)| rest.split_once(']'));
    let none = "the line names no host. --replay-host gives one";
    let (name, _) = name.ok_or(none)?;
    let of_upstream = hosts.of_upstream.get(name).map(|hosts| hosts.iter().collect::<Vec<_>>());
    match of_upstream.as_deref() {
        Some([host]) if !host.is_empty() && !host.starts_with('*') => Ok((*host).clone()),
        Some(_) => {
            Err("the line names no host, and several hosts have its backend. --replay-host gives one"
                .to_owned())
        }
        None => Err(none.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMBINED: &str =
        r#"192.0.2.1 - alice [29/Nov/2026:08:00:00 +0000] "GET /cart?a=1 HTTP/1.1" 200 12 "-" "agent \"x\"""#;

    fn hosts() -> Hosts {
        Hosts {
            of_upstream: [("shop-cart-80".to_owned(), ["shop.example.com".to_owned()].into())].into(),
            with_tls: ["shop.example.com".to_owned()].into(),
        }
    }

    #[test]
    fn lines_name_their_host_in_three_ways() {
        let given = "http://a.example:8080".parse().unwrap();
        let request = read(COMBINED, Some(&given), &hosts()).unwrap();
        assert_eq!((request.host.as_str(), request.https), ("a.example:8080", false));
        assert_eq!((request.path.as_str(), request.query.as_deref()), ("/cart", Some("a=1")));
        assert_eq!(request.client, "192.0.2.1".parse().ok());
        assert!(read(COMBINED, None, &hosts()).is_err());
        for (prefix, host, https) in [
            ("shop.example.com:443", "shop.example.com", true),
            ("shop.example.com:80", "shop.example.com", false),
            ("shop.example.com", "shop.example.com", true),
            ("other.example", "other.example", false),
        ] {
            let request = read(&format!("{prefix} {COMBINED}"), None, &hosts()).unwrap();
            assert_eq!((request.host.as_str(), request.https), (host, https), "{prefix}");
        }
        let ingress = format!("{COMBINED} 300 0.001 [shop-cart-80] [] 10.0.0.1:8080 12 0.001 200 abc");
        let request = read(&ingress, None, &hosts()).unwrap();
        assert_eq!((request.host.as_str(), request.https), ("shop.example.com", true));
        let request = read(&ingress.replace("\" 200", "\" 308"), None, &hosts()).unwrap();
        assert!(!request.https);
        assert!(read(&ingress.replace("shop-cart-80", "shop-other-80"), None, &hosts()).is_err());
    }

    #[test]
    fn other_lines_have_a_reason() {
        for line in [
            "",
            "nothing",
            "192.0.2.1 - - [now]",
            "192.0.2.1 - - [now] \"GET /",
            "192.0.2.1 - - [now] \"\\x16\\x03\\x01\" 400 0",
            "192.0.2.1 - - [now] \"-\" 408 0",
            "192.0.2.1 - - [now] \"CONNECT a:443 HTTP/1.1\" 400 0",
        ] {
            assert!(read(line, None, &hosts()).is_err(), "{line}");
        }
    }
}
