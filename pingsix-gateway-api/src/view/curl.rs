//! Command lines of curl, as requests to explain.
//!
//! The parser reads the options that shape a request, skips those that do not, and refuses all others by name: an option
//! that is silently dropped would make the explanation one of another request. The same holds for what a shell would
//! replace. The command line ends where a shell begins another command.
//!
//! The words are those of `shell-words`; a crate for options would replace few lines, as each effect is of curl alone.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::form::Form;
use crate::explain::has_scheme;

/// The most words of a command line.
const MAX_WORDS: usize = 200;

/// The reason for which a command line is no request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CurlError {
    #[error("The command line has an open quote.")]
    Quote,
    #[error("The command line has more than {MAX_WORDS} words.")]
    TooLong,
    #[error("The command line does not begin with curl.")]
    NotCurl,
    #[error("The option {0} of curl has no value.")]
    Value(String),
    #[error("The option {0} of curl is unsupported here: {1}.")]
    Unsupported(String, &'static str),
    #[error("The command line has no URL.")]
    NoUrl,
    #[error("The command line has several URLs.")]
    SeveralUrls,
    #[error("A shell replaces {0}. Write its value, or put the text into single quotes.")]
    Expansion(String),
    #[error("A redirection is followed by further words. Write redirections at the end.")]
    Redirection,
    #[error("curl refuses -I beside a body.")]
    HeadWithBody,
    #[error("Leave credentials out of the URL: they are not verified here, and pasted text may be kept.")]
    Credentials,
    #[error("curl takes brackets and braces for patterns: {0}. Write one URL, or add the option -g.")]
    Pattern(String),
}

/// The reason for the refusal of options with credentials.
const CREDENTIALS: &str =
    "leave credentials out, because they are not verified here, and pasted text may be kept";

/// The effect of an option on a request.
#[derive(Clone, Copy, Debug)]
enum Effect {
    /// A header `NAME: VALUE`.
    Header,
    /// A header with this name, which an empty value removes. The last option counts.
    HeaderNamed(&'static str),
    Method,
    Url,
    /// A body, which makes the method POST.
    Body,
    /// A body of JSON, with its headers.
    Json,
    /// Cookies, unless the value is the name of a file.
    Cookie,
    /// An effect without a value.
    Flag(fn(&mut Read)),
    /// No effect on the request, and no value.
    None,
    /// No effect on the request, and a value.
    NoneWithValue,
    /// The reason for the refusal.
    Refused(&'static str),
}

impl Effect {
    const fn has_value(self) -> bool {
        matches!(
            self,
            Self::Header
                | Self::HeaderNamed(_)
                | Self::Method
                | Self::Url
                | Self::Body
                | Self::Json
                | Self::Cookie
                | Self::NoneWithValue
        )
    }
}

/// An option with one letter, if there is one, and its long name.
type Row = (Option<char>, &'static str, Effect);

/// The options, as curl's manual has them.
const OPTIONS: &[Row] = &[
    (Some('H'), "header", Effect::Header),
    (Some('X'), "request", Effect::Method),
    (None, "url", Effect::Url),
    (Some('A'), "user-agent", Effect::HeaderNamed("User-Agent")),
    (Some('e'), "referer", Effect::HeaderNamed("Referer")),
    (Some('b'), "cookie", Effect::Cookie),
    (Some('I'), "head", Effect::Flag(|read| read.implied.extend(["HEAD"]))),
    (Some('d'), "data", Effect::Body),
    (None, "data-ascii", Effect::Body),
    (None, "data-binary", Effect::Body),
    (None, "data-raw", Effect::Body),
    (None, "data-urlencode", Effect::Body),
    (None, "json", Effect::Json),
    (None, "http2", Effect::Flag(|read| read.http2 = true)),
    (None, "http2-prior-knowledge", Effect::Flag(|read| read.http2 = true)),
    (None, "http1.1", Effect::Flag(|read| read.http2 = false)),
    (Some('0'), "http1.0", Effect::Refused("PingSIX is modelled for HTTP/1.1 and HTTP/2")),
    (None, "http3", Effect::Refused("PingSIX is modelled for HTTP/1.1 and HTTP/2")),
    (Some('u'), "user", Effect::Refused(CREDENTIALS)),
    (None, "oauth2-bearer", Effect::Refused(CREDENTIALS)),
    (Some('G'), "get", Effect::Refused("write the query into the URL")),
    (Some('F'), "form", Effect::Refused("use -X POST with the header Content-Type")),
    (Some('T'), "upload-file", Effect::Refused("use -X PUT")),
    (Some('x'), "proxy", Effect::Refused("a proxy may change the request")),
    (Some(':'), "next", Effect::Refused("one request is explained at a time")),
    (Some('K'), "config", Effect::Refused("the file is not read")),
    (Some('v'), "verbose", Effect::None),
    (Some('s'), "silent", Effect::None),
    (Some('S'), "show-error", Effect::None),
    (Some('k'), "insecure", Effect::None),
    (Some('i'), "include", Effect::None),
    (Some('i'), "show-headers", Effect::None),
    (Some('f'), "fail", Effect::None),
    (None, "fail-with-body", Effect::None),
    (Some('L'), "location", Effect::None),
    (Some('N'), "no-buffer", Effect::None),
    (Some('g'), "globoff", Effect::Flag(|read| read.glob_off = true)),
    (Some('O'), "remote-name", Effect::None),
    (Some('4'), "ipv4", Effect::None),
    (Some('6'), "ipv6", Effect::None),
    (Some('#'), "progress-bar", Effect::None),
    (None, "compressed", Effect::Flag(|read| read.add("Accept-Encoding", "deflate, gzip"))),
    (None, "path-as-is", Effect::Flag(|read| read.path_as_is = true)),
    (Some('o'), "output", Effect::NoneWithValue),
    (Some('w'), "write-out", Effect::NoneWithValue),
    (Some('m'), "max-time", Effect::NoneWithValue),
    (Some('D'), "dump-header", Effect::NoneWithValue),
    (Some('E'), "cert", Effect::NoneWithValue),
    (None, "connect-timeout", Effect::NoneWithValue),
    (None, "resolve", Effect::NoneWithValue),
    (None, "connect-to", Effect::NoneWithValue),
    (None, "cacert", Effect::NoneWithValue),
    (None, "key", Effect::NoneWithValue),
    (None, "retry", Effect::NoneWithValue),
    (None, "retry-all-errors", Effect::None),
    (None, "retry-connrefused", Effect::None),
    (None, "retry-delay", Effect::NoneWithValue),
    (None, "retry-max-time", Effect::NoneWithValue),
    (None, "max-redirs", Effect::NoneWithValue),
    (None, "no-progress-meter", Effect::None),
    (None, "interface", Effect::NoneWithValue),
];

/// A request that grows with each option.
#[derive(Debug, Default)]
struct Read {
    url: Option<String>,
    method: Option<String>,
    /// The methods that options imply.
    implied: BTreeSet<&'static str>,
    headers: Vec<String>,
    /// Headers of other options than `-H`, which replaces them.
    added: BTreeMap<&'static str, String>,
    /// The headers that `-H` takes from those of curl.
    removed: Vec<String>,
    http2: bool,
    /// Whether brackets and braces of the URL have no meaning.
    glob_off: bool,
    path_as_is: bool,
}

impl Read {
    fn apply(&mut self, name: &str, effect: Effect, value: String) -> Result<(), CurlError> {
        match effect {
            Effect::Header => self.header(value),
            Effect::HeaderNamed(header) => {
                // `;auto` is about redirects alone.
                let end = value.find(";auto").filter(|_| header == "Referer").unwrap_or(value.len());
                self.add(header, &value[..end]);
            }
            Effect::Method => self.method = Some(value),
            Effect::Url => self.url(value)?,
            Effect::Body => {
                self.implied.insert("POST");
                let form = || "application/x-www-form-urlencoded".to_owned();
                self.added.entry("Content-Type").or_insert_with(form);
            }
            Effect::Json => {
                self.implied.insert("POST");
                self.add("Content-Type", "application/json");
                self.add("Accept", "application/json");
            }
            Effect::Cookie if value.is_empty() => {}
            Effect::Cookie if value.contains('=') => {
                let cookies = self.added.entry("Cookie").or_default();
                if !cookies.is_empty() {
                    cookies.push(';');
                }
                cookies.push_str(&value);
            }
            Effect::Cookie => return Err(CurlError::Unsupported(name.to_owned(), "the file is not read")),
            Effect::Flag(apply) => apply(self),
            Effect::None | Effect::NoneWithValue => {}
            Effect::Refused(why) => return Err(CurlError::Unsupported(name.to_owned(), why)),
        }
        Ok(())
    }

    fn add(&mut self, header: &'static str, value: &str) {
        self.added.insert(header, value.to_owned());
    }

    /// curl sends a header without value for `NAME;`, and removes a header of its own for `NAME:`.
    fn header(&mut self, text: String) {
        match (text.split_once(':'), text.strip_suffix(';')) {
            (Some((name, value)), _) if value.trim().is_empty() => self.removed.push(name.to_owned()),
            (None, Some(name)) => self.headers.push(format!("{name}:")),
            (Some(_) | None, _) => self.headers.push(text),
        }
    }

    /// All headers of the request, one per line.
    fn all_headers(mut self) -> String {
        let given = self.headers.iter().filter_map(|header| header.split_once(':')).map(|(name, _)| name);
        let known: BTreeSet<String> =
            given.chain(self.removed.iter().map(String::as_str)).map(str::to_ascii_lowercase).collect();
        self.added.entry("Accept").or_insert_with(|| "*/*".to_owned());
        for (name, value) in self.added {
            if !value.is_empty() && !known.contains(&name.to_ascii_lowercase()) {
                self.headers.push(format!("{name}: {value}"));
            }
        }
        self.headers.join("\n")
    }

    fn url(&mut self, url: String) -> Result<(), CurlError> {
        if self.url.replace(url).is_some() { Err(CurlError::SeveralUrls) } else { Ok(()) }
    }

    /// The URL of the request.
    fn request_url(&mut self) -> Result<String, CurlError> {
        let url = self.url.take().ok_or(CurlError::NoUrl)?;
        if !self.glob_off && is_pattern(&url) {
            return Err(CurlError::Pattern(shortened(&url)));
        }
        let end = authority(&url).end;
        if has_credentials(&url) {
            return Err(CurlError::Credentials);
        }
        let (before, rest) = url.split_at(end);
        let (path, query) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
        let path = if self.path_as_is { path.to_owned() } else { without_dot_segments(path) };
        Ok(format!("{before}{path}{query}"))
    }
}

/// The request of a command line.
pub(super) fn parse(line: &str) -> Result<Form, CurlError> {
    let words = shell_words::split(command(line.trim())?).map_err(|_| CurlError::Quote)?;
    if words.len() > MAX_WORDS {
        return Err(CurlError::TooLong);
    }
    let mut words = words.into_iter();
    // Command lines in documentation begin with a prompt.
    let is_curl = |word: &str| word.rsplit('/').next() == Some("curl");
    match words.next().as_deref() {
        Some("$") if words.next().as_deref().is_some_and(is_curl) => {}
        Some(word) if is_curl(word) => {}
        Some(_) | None => return Err(CurlError::NotCurl),
    }
    let mut read = Read::default();
    let mut only_urls = false;
    while let Some(word) = words.next() {
        if only_urls || !word.starts_with('-') || word == "-" {
            read.url(word)?;
        } else if word == "--" {
            only_urls = true;
        } else if let Some(name) = word.strip_prefix("--") {
            let row = OPTIONS.iter().find(|(_, long, _)| *long == name);
            let (_, _, effect) = row.ok_or_else(|| unknown(&word))?;
            let value = if effect.has_value() { next_value(&word, &mut words)? } else { String::new() };
            read.apply(&word, *effect, value)?;
        } else {
            letters(&word, &mut words, &mut read)?;
        }
    }
    let url = read.request_url()?;
    if read.implied.len() > 1 {
        return Err(CurlError::HeadWithBody);
    }
    let implied = read.implied.first().copied().unwrap_or("GET");
    let method = read.method.take().unwrap_or_else(|| implied.to_owned());
    let http2 = read.http2;
    Ok(Form { method, url, headers: read.all_headers(), http2, ..Form::default() })
}

/// The first command of a line, without redirections at its end.
///
/// # Errors
///
/// [`CurlError::Expansion`]: a part that a shell replaces. [`CurlError::Redirection`]: words after a redirection.
fn command(line: &str) -> Result<&str, CurlError> {
    let mut quote = None;
    let mut before = ' ';
    let mut characters = line.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let next = characters.peek().map_or(' ', |(_, next)| *next);
        match (quote, character) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => {
                characters.next();
            }
            (None, '\'' | '"') => quote = Some(character),
            (_, '`') => return Err(CurlError::Expansion("`...`".to_owned())),
            (_, '$') => {
                let is_quote = next == '\'' && quote.is_none();
                if is_quote || next.is_ascii_alphanumeric() || "({_@*?$!#-".contains(next) {
                    return Err(expansion(&line[at..]));
                }
            }
            (None, '{') => {
                let inside = line[at..].split(['}', ' ']).next().unwrap_or_default();
                if inside.contains(',') || inside.contains("..") {
                    return Err(expansion(&line[at..]));
                }
            }
            (None, '|' | ';' | '&' | '\n') => return Ok(&line[..at]),
            (None, '#') if before.is_whitespace() => return Ok(&line[..at]),
            (None, '<' | '>') => {
                // The number of a descriptor, as in 2>/dev/null.
                let without = line[..at].trim_end_matches(|digit: char| digit.is_ascii_digit());
                let start = if without.ends_with(char::is_whitespace) { without.len() } else { at };
                return if is_redirection(&line[start..]) {
                    Ok(&line[..start])
                } else {
                    Err(CurlError::Redirection)
                };
            }
            (_, _) => {}
        }
        before = character;
    }
    Ok(line)
}

/// Whether the rest of a line has nothing but redirections, up to another command.
fn is_redirection(rest: &str) -> bool {
    let mut has_target = true;
    for word in rest.lines().next().unwrap_or_default().split_whitespace() {
        if word.starts_with(['|', ';', '&', '#']) {
            return true;
        }
        if !word.contains(['<', '>']) && has_target {
            return false;
        }
        if word.ends_with(';') {
            return true;
        }
        has_target = !word.ends_with(['<', '>']);
    }
    true
}

fn expansion(text: &str) -> CurlError {
    let word = text.split([' ', '"', '/']).next().unwrap_or_default();
    CurlError::Expansion(shortened(word))
}

/// The place of host and port in a URL.
fn authority(url: &str) -> Range<usize> {
    let start = if has_scheme(url) { url.find("://").map_or(0, |at| at + 3) } else { 0 };
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    start..end
}

/// Whether a URL has a user or a password.
pub(super) fn has_credentials(url: &str) -> bool {
    url[authority(url)].contains('@')
}

/// A path without its segments `.` and `..` (RFC 3986, 5.2.4).
fn without_dot_segments(path: &str) -> String {
    let Some(path) = path.strip_prefix('/') else { return path.to_owned() };
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                // A slash stays at the end.
                if is_last {
                    kept.push("");
                }
            }
            segment => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

/// Options of one letter, several of which share a word. The value of the last one may follow in the same word.
fn letters(word: &str, words: &mut impl Iterator<Item = String>, read: &mut Read) -> Result<(), CurlError> {
    let mut rest = word.strip_prefix('-').unwrap_or(word);
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        let name = format!("-{letter}");
        let row = OPTIONS.iter().find(|(short, _, _)| *short == Some(letter));
        let (_, _, effect) = row.ok_or_else(|| unknown(&name))?;
        if !effect.has_value() {
            read.apply(&name, *effect, String::new())?;
            continue;
        }
        let value = if rest.is_empty() { next_value(&name, words)? } else { rest.to_owned() };
        return read.apply(&name, *effect, value);
    }
    Ok(())
}

fn next_value(name: &str, words: &mut impl Iterator<Item = String>) -> Result<String, CurlError> {
    words.next().ok_or_else(|| CurlError::Value(name.to_owned()))
}

/// Whether curl takes a part of a URL for a pattern: braces, or brackets around anything but an IPv6 address.
fn is_pattern(url: &str) -> bool {
    let is_literal = |text: &str| text.is_empty() || (text.contains(':') && !text.contains('-'));
    let mut brackets = url.match_indices('[').filter_map(|(at, _)| url[at + 1..].split_once(']'));
    url.contains('{') || brackets.any(|(inside, _)| !is_literal(inside))
}

fn unknown(name: &str) -> CurlError {
    CurlError::Unsupported(shortened(name), "its effect on the request is unknown")
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header that curl adds to each request.
    const ACCEPT: &str = "Accept: */*";

    fn read(line: &str) -> (String, String, String, bool) {
        let form = parse(line).unwrap();
        (form.method, form.url, form.headers, form.http2)
    }

    fn read_as(method: &str, url: &str, headers: &str) -> (String, String, String, bool) {
        (method.to_owned(), url.to_owned(), headers.to_owned(), false)
    }

    #[test]
    fn command_lines_are_requests() {
        let shop = "http://shop.example.com/cart";
        for line in [
            "curl http://shop.example.com/cart",
            "  $ curl -sSvik http://shop.example.com/cart ",
            "/usr/bin/curl --silent -o /dev/null -w '%{http_code}' --url http://shop.example.com/cart",
            "curl --resolve shop.example.com:80:127.0.0.1 \\\n  -L -- http://shop.example.com/cart",
            "curl -i --retry 5 --retry-all-errors -b '' -A '' http://shop.example.com/cart  # 200",
            "curl http://shop.example.com/cart 2>/dev/null | jq .",
            "curl http://shop.example.com/cart > out && echo 'done'",
            "curl http://shop.example.com/old/.././cart",
        ] {
            assert_eq!(read(line), read_as("GET", shop, ACCEPT), "{line}");
        }
        for (line, url) in [
            ("curl -g 'http://a.test/[1-3]{a}'", "http://a.test/[1-3]{a}"),
            ("curl -g 'http://[::1]/?$filter[name]=x'", "http://[::1]/?$filter[name]=x"),
            ("curl 'http://[::1]:80/?a[]=x'", "http://[::1]:80/?a[]=x"),
            ("curl 'a.test/b/../c?next=http://me@b.test/a/../d'", "a.test/c?next=http://me@b.test/a/../d"),
            ("curl http://a.test/ # costs $FOO", "http://a.test/"),
            ("curl http://a.test/\ncurl http://b.test/", "http://a.test/"),
            ("curl http://a.test/#b >out 2>&1 < in; echo", "http://a.test/#b"),
            ("curl --path-as-is http://a.test/a/../b", "http://a.test/a/../b"),
            ("curl http://a.test/../a/./b/..?c=/../d", "http://a.test/a/?c=/../d"),
            ("curl a.test", "a.test"),
            ("curl \"http://a.test/\\$b|c\"", "http://a.test/$b|c"),
        ] {
            assert_eq!(read(line), read_as("GET", url, ACCEPT), "{line}");
        }
        for (line, method) in [
            ("curl -I URL", "HEAD"),
            ("curl -XDELETE URL", "DELETE"),
            ("curl --request PUT URL", "PUT"),
            ("curl -sX PURGE URL", "PURGE"),
        ] {
            assert_eq!(read(line), read_as(method, "URL", ACCEPT), "{line}");
        }
    }

    #[test]
    fn headers_keep_their_order_and_their_values() {
        let line = "curl -H 'X-Env: canary' -H\"Host: shop.test\" -A me -b a=b --json '{}' -H 'X-Empty;' URL";
        let headers = "X-Env: canary\nHost: shop.test\nX-Empty:\nAccept: application/json\n\
                       Content-Type: application/json\nCookie: a=b\nUser-Agent: me";
        assert_eq!(read(line), read_as("POST", "URL", headers));
        assert!(parse("curl --http2 URL").unwrap().http2);
        assert!(!parse("curl --http2 --http1.1 URL").unwrap().http2);
    }

    #[test]
    fn headers_of_curl_are_added_unless_they_are_given() {
        let form = "Accept: */*\nContent-Type: application/x-www-form-urlencoded";
        let json = "Accept: application/json\nContent-Type: application/json";
        for (line, method, headers) in [
            ("curl -H Accept: URL", "GET", ""),
            ("curl --json '{}' -d x URL", "POST", json),
            ("curl -d x --json '{}' URL", "POST", json),
            ("curl -A me -H 'user-agent: you' URL", "GET", "user-agent: you\nAccept: */*"),
            ("curl -A one -A two URL", "GET", "Accept: */*\nUser-Agent: two"),
            ("curl -b a=b -b c=d URL", "GET", "Accept: */*\nCookie: a=b;c=d"),
            ("curl -b a=b -H 'Cookie: c=d' URL", "GET", "Cookie: c=d\nAccept: */*"),
            ("curl -e 'http://x;auto' URL", "GET", "Accept: */*\nReferer: http://x"),
            ("curl -A 'bot;auto' URL", "GET", "Accept: */*\nUser-Agent: bot;auto"),
            ("curl URL -d a=b", "POST", form),
            ("curl -X PATCH -da=b URL", "PATCH", form),
            (
                "curl -d a=b -H 'content-type: text/plain' URL",
                "POST",
                "content-type: text/plain\nAccept: */*",
            ),
            ("curl -d a=b -H Content-Type: URL", "POST", ACCEPT),
            ("curl --compressed URL", "GET", "Accept: */*\nAccept-Encoding: deflate, gzip"),
        ] {
            assert_eq!(read(line), read_as(method, "URL", headers), "{line}");
        }
    }

    #[test]
    fn an_option_without_a_known_effect_is_named() {
        for (line, message) in [
            ("curl -u me:secret URL", "The option -u of curl is unsupported here: leave credentials out"),
            ("curl -sz now URL", "The option -z of curl is unsupported here: its effect"),
            ("curl --request-target / URL", "The option --request-target of curl is unsupported here"),
            ("curl -b cookies.txt URL", "The option -b of curl is unsupported here: the file"),
            ("curl --http3 URL", "The option --http3 of curl is unsupported here: PingSIX"),
            ("curl -H", "The option -H of curl has no value."),
            ("curl -X GET", "The command line has no URL."),
            ("curl A B", "The command line has several URLs."),
            ("curl \"$URL/cart\"", "A shell replaces $URL."),
            ("curl URL -H $'x-a: b'", "A shell replaces $'x-a:."),
            ("curl URL -H \"x-a: $(date)\"", "A shell replaces $(date)."),
            ("curl `cat url`", "A shell replaces `...`."),
            ("curl -I -d a URL", "curl refuses -I beside a body."),
            ("curl http://me:secret@a.test/", "Leave credentials out of the URL"),
            ("curl http://a.test/[1-3]", "curl takes brackets and braces for patterns: http://a.test/[1-3]."),
            ("curl 'http://{a,b}.test/'", "curl takes brackets and braces for patterns"),
            ("curl 'http://a.test/?filter[name]=x'", "curl takes brackets and braces for patterns"),
            ("curl -g http://a.test/{b,c}", "A shell replaces {b,c}."),
            ("curl \"http://a.test/$1/x\"", "A shell replaces $1."),
            ("curl URL 2>/dev/null -H 'X-Env: canary'", "A redirection is followed by further words."),
            ("curl > out URL", "A redirection is followed by further words."),
            ("curl 'me:pw@a.test/x?next=http://b.test/'", "Leave credentials out of the URL"),
            ("wget A", "The command line does not begin with curl."),
            ("", "The command line does not begin with curl."),
            ("curl 'A", "The command line has an open quote."),
        ] {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.starts_with(message), "{line}: {error}");
        }
        let error = parse("curl -u me:secret URL").unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
        let long = format!("curl {}", "-s ".repeat(300));
        assert_eq!(parse(&long).unwrap_err(), CurlError::TooLong);
    }

    #[test]
    fn each_option_has_one_row() {
        for (at, (_, long, _)) in OPTIONS.iter().enumerate() {
            assert_eq!(OPTIONS.iter().position(|(_, other, _)| other == long), Some(at), "{long}");
        }
    }
}
