//! The replacements of values and names.

use serde_json::{Value, json};

use super::mutation::RAW;
use crate::rng::SeededRng;

const PATHS: [&str; 30] = [
    "",
    "foo",
    "/",
    "/x/{a",
    "/x/a}",
    "/{}",
    "/{*}",
    "/{*a}/b",
    "/{a}.json",
    "/{{x}}",
    "/{a}{b}",
    "/{*p}",
    "/a/{b}/c",
    "/{b}/{b}",
    "/é",
    "/ ",
    "/a b",
    "/%zz",
    "{*p}",
    "{a}",
    "/{a:b}",
    "/{*a*}",
    "/{a*}",
    "/{{",
    "/}}",
    "/a{*p}",
    "/v{x}",
    "/{é}",
    "/\u{0}",
    "/a?b#c",
];

const HOSTS: [&str; 24] = [
    "",
    "*",
    "*.x",
    "a.*",
    "{a}",
    "a}",
    "*{",
    "A.B",
    "a:80",
    "{{a}}",
    "é.x",
    " ",
    "*.*.x",
    "**",
    "*.",
    ".",
    "*a",
    "a.b.",
    "[::1]",
    "{*p}",
    "{*p}.x",
    "x.{a}",
    "\u{130}.x",
    "a\u{0}b",
];

const METHODS: [&str; 12] =
    ["", "get", "G T", "GÉT", "ANY", "GET,POST", "*", "a/b", "\u{0}", "G\n", "!#$%&'*+-.^_`|~", "CONNECT"];

const NODES: [&str; 50] = [
    "127.0.0.1:0",
    "127.0.0.1:1",
    "127.0.0.1:65535",
    "127.0.0.1:65536",
    "127.0.0.1:+80",
    "127.0.0.1:-1",
    "127.0.0.1:00080",
    "127.0.0.1:99999999999999999999",
    "127.0.0.1",
    "127.0.0.1:",
    ":80",
    "",
    " ",
    " 127.0.0.1:80",
    "127.0.0.1:80 ",
    "127.0.0.1:80:80",
    "127.0.0.1:\u{663}",
    "999.1.1.1:80",
    "256.1.1.1",
    "1.2.3:80",
    "127.1:80",
    "127.0.0.01:80",
    "0x7f.0.0.1:80",
    "2130706433:80",
    "[::1]",
    "[::1]:80",
    "[::1]:0",
    "[::1]:65536",
    "[::1]80",
    "[::1]:",
    "::1",
    "::1:80",
    "[]:80",
    "[abc]:80",
    "[fe80::1%eth0]:80",
    "[::ffff:1.2.3.4]:80",
    "[::g]:80",
    "[::1",
    "a_b.invalid:80",
    "a.invalid.:80",
    "-a.invalid:80",
    "a-.invalid:80",
    "a..invalid:80",
    "x.invalid",
    "x.invalid:80",
    "localhost:80",
    "LOCALHOST:80",
    "http://127.0.0.1",
    "127.0.0.1/8",
    "\u{212a}.invalid:80",
];

const PATTERNS: [&str; 20] = [
    "",
    "(",
    "[",
    "(?=x)",
    "(a)\\1",
    "(?:a{1000}){1000}",
    "(?P<n>a",
    "(?<n>a)",
    "*",
    "\\p{Greek}",
    "\\p{Nope}",
    "(?i)x",
    "(?-u)\\xff",
    "\\Q",
    "a**",
    "a{2,1}",
    "\\",
    "(?x: )",
    "[[:alpha:]]",
    "\u{0}",
];

const NETWORKS: [&str; 24] = [
    "",
    "x",
    "10.0.0.1",
    "10.0.0.0/33",
    "10.0.0.1/8",
    "::/0",
    "::1",
    "::/129",
    "10.0.0.0/255.0.0.0",
    "10.0.0.0/255.0.255.0",
    "10.0.0.0/0.0.0.0",
    "10.0.0.0/0.0.0.255",
    "10.0.0.0/",
    "/8",
    "10.0.0.0/08",
    "10.0.0.0/+8",
    "10.0.0.0/-1",
    "010.0.0.1",
    " 10.0.0.1",
    "::ffff:1.2.3.4",
    "fe80::1%1",
    "10.0.0.0/ffff::",
    "1.2.3",
    "10.0.0.0/255.0.0.0/8",
];

const HEADERS: [&str; 16] = [
    "",
    "a b",
    "é",
    "x\n",
    "X_Y",
    ":authority",
    "*",
    " x ",
    "a,b",
    "x: y",
    "x:y",
    "x",
    ":",
    "x:\u{0}",
    "Content-Length: 5",
    "x : y",
];

const ENUMS: [&str; 30] = [
    "",
    "http",
    "https",
    "HTTP",
    "tcp",
    "Tcp",
    "grpc",
    "grpcs",
    "roundrobin",
    "RoundRobin",
    "chash",
    "ketama",
    "vars",
    "head",
    "header",
    "cookie",
    "pass",
    "node",
    "rewrite",
    "HS384",
    "HS512",
    "RS256",
    "ES256",
    "EdDSA",
    "none",
    "uuid",
    "range_id",
    "local",
    "cluster",
    "deny",
];

const TEXTS: [&str; 22] = [
    "",
    " ",
    "x",
    "*",
    "**",
    "\u{0}",
    "é",
    "a\nb",
    "$pingsix-enc:v1$",
    "$pingsix-enc:v1$AAAA",
    "$pingsix-enc:v1$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "$pingsix-enc:v2$AAAA",
    "0",
    "1",
    "true",
    "null",
    "/",
    "u",
    "missing",
    "%",
    "c2VjcmV0",
    "c2VjcmV0=",
];

const NUMBERS: [&str; 46] = [
    "0", "-0", "1", "-1", "2", "5", "8", "9", "10", "11", "12", "16", "24", "25", "99", "100", "101", "199",
    "200", "399", "400", "599", "600", "999", "1000", "3600", "65535", "65536", "86400", "86401", "1.0",
    "1.5", "0.5", "-0.1", "0.0", "1e3", "1e400", "01", "+1", "1.", ".5", "0x1", "NaN", "\"1\"", "null",
    "1e-3",
];

/// The weights that would cost too much memory.
const LARGE: [&str; 10] = [
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
];

pub(super) fn number(rng: &mut SeededRng, weight: bool) -> Value {
    let text = if !weight && rng.percent(25) { rng.one(&LARGE) } else { rng.one(&NUMBERS) };
    json!(format!("{RAW}{text}"))
}

/// A value of any type.
pub(super) fn any(rng: &mut SeededRng, weight: bool) -> Value {
    match rng.below(9) {
        0..2 => Value::Null,
        2 => json!(true),
        3 => json!({}),
        4 => json!([]),
        5 => number(rng, weight),
        6 => json!(rng.one(&TEXTS)),
        7 => json!([rng.one(&TEXTS)]),
        _ => json!({ rng.one(&TEXTS): rng.one(&TEXTS) }),
    }
}

/// Another text for a field.
pub(super) fn string(rng: &mut SeededRng, field: &str, old: &str) -> String {
    if rng.percent(10) {
        return rng.one(&TEXTS).to_owned();
    }
    if rng.percent(15) {
        return altered(rng, old);
    }
    let pool: &[&str] = match field {
        "uri" | "uris" | "http_path" => &PATHS,
        "host" | "hosts" | "snis" | "upstream_host" | "redirect_host" => &HOSTS,
        "method" | "methods" | "cache_http_methods" | "allow_methods" => &METHODS,
        "regex_uri" | "no_cache_str" | "allow_origins_by_regex" => &PATTERNS,
        "whitelist" | "blacklist" | "trusted_proxies" => &NETWORKS,
        "headers" | "req_headers" | "vary" | "name" | "add" | "remove" | "header_name" | "header" => &HEADERS,
        "type"
        | "scheme"
        | "pass_host"
        | "hash_on"
        | "algorithm"
        | "key_type"
        | "scope"
        | "key_missing_policy"
        | "forwarded_header_error_policy" => &ENUMS,
        _ => &TEXTS,
    };
    rng.one(pool).to_owned()
}

fn altered(rng: &mut SeededRng, old: &str) -> String {
    match rng.below(7) {
        0 => old.to_uppercase(),
        1 => old.to_lowercase(),
        2 => format!(" {old}"),
        3 => format!("{old}\n"),
        4 => old.chars().skip(1).collect(),
        5 => old.chars().rev().collect(),
        _ => format!("{old}{old}"),
    }
}

/// Another name for an entry of the object `parent`.
pub(super) fn name(rng: &mut SeededRng, parent: &str, old: &str) -> String {
    let pool: &[&str] = match parent {
        "nodes" => &NODES,
        "plugins" => {
            let plugins = pingsix_translate::pingsix::plugin::PLUGIN_NAMES;
            if rng.percent(60) {
                return plugins[rng.below(plugins.len())].to_owned();
            }
            &["", "nope", "Redirect", "limit-req", "serverless", "cors ", "traffic_split"]
        }
        "headers" | "set" => &HEADERS,
        _ => return if rng.percent(50) { altered(rng, old) } else { rng.one(&TEXTS).to_owned() },
    };
    rng.one(pool).to_owned()
}
