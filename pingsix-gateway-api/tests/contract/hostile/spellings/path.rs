//! Spellings of the path and of the method.

use super::{Named, one};
use crate::hostile::attack::{Draft, Scene};
use crate::hostile::reading::percent_decoded;

pub(super) const SPELLINGS: &[Named] = &[
    ("path/double-slash", |draft, scene| {
        let at = one(&slashes(&draft.path), scene);
        draft.path.insert(at, '/');
    }),
    ("path/dot", |draft, scene| insert(draft, scene, "/.")),
    ("path/dot-dot", |draft, scene| {
        insert(draft, scene, one(&["/x/..", "/admin/public/../..", "/login/.."], scene));
    }),
    ("path/encoded-dot", |draft, scene| insert(draft, scene, one(&["/%2e", "/%2E"], scene))),
    ("path/encoded-dot-dot", |draft, scene| {
        insert(draft, scene, one(&["/x/%2e%2e", "/x/.%2E", "/x/%2e.", "/admin/public/%2E%2e/.%2e"], scene));
    }),
    ("path/encoded-slash", |draft, scene| {
        let at = one(&slashes(&draft.path), scene);
        draft.path.replace_range(at..=at, one(&["%2f", "%2F"], scene));
        if !draft.path.starts_with('/') {
            draft.path.insert(0, '/');
        }
    }),
    ("path/encoded-slash-after-dot-dot", |draft, scene| {
        let rest = draft.path.split_off(1);
        draft.path += &format!("x/..{}{rest}", one(&["%2f", "%2F"], scene));
    }),
    ("path/encoded-letter", |draft, scene| {
        // A fragment goes no further.
        let sent = draft.path.split('#').next().unwrap_or_default();
        let letters: Vec<usize> =
            sent.bytes().enumerate().filter(|(_, b)| b.is_ascii_alphanumeric()).map(|(at, _)| at).collect();
        // A digit of an escape stays.
        let letters: Vec<usize> = letters.into_iter().filter(|&at| !is_in_escape(&draft.path, at)).collect();
        if let Some(&at) = letters.get(scene.roll % letters.len().max(1)) {
            let byte = draft.path.as_bytes()[at];
            let code = if scene.roll % 3 == 0 { format!("%{byte:02X}") } else { format!("%{byte:02x}") };
            draft.path.replace_range(at..=at, &code);
        }
    }),
    ("path/encoded-all", |draft, scene| {
        let decoded = percent_decoded(draft.path.as_bytes());
        let encode = |byte: &u8| match *byte {
            b'/' => "/".to_owned(),
            byte if scene.roll % 2 == 0 => format!("%{byte:02X}"),
            byte => format!("%{byte:02x}"),
        };
        draft.path = decoded.iter().map(encode).collect();
    }),
    ("path/case-of-hex", |draft, _| {
        let mut path = String::new();
        for (at, letter) in draft.path.char_indices() {
            path.push(if is_in_escape(&draft.path, at) { letter.to_ascii_lowercase() } else { letter });
        }
        draft.path = path;
    }),
    ("path/raw", |draft, _| {
        if let Ok(path) = String::from_utf8(percent_decoded(draft.path.as_bytes())) {
            draft.path = path;
        }
    }),
    ("path/parameter", |draft, scene| {
        let end = end_of_element(draft);
        draft.path.insert_str(end, one(&[";x=1", ";", ";x", "%3bx", "%3B"], scene));
    }),
    ("path/parameter-before", |draft, scene| insert(draft, scene, one(&["/;x", "/.;x"], scene))),
    ("path/parameter-alone-before", |draft, scene| insert(draft, scene, one(&["/;", "/.;", "/..;"], scene))),
    ("path/parameter-after-dot-dot", |draft, scene| insert(draft, scene, one(&["/x/..;", "/x/..;x"], scene))),
    ("path/backslash", |draft, scene| {
        let slash = one(&["\\", "%5c", "%5C"], scene);
        match slashes(&draft.path).get(scene.roll % 2).copied() {
            Some(at) if at > 0 => draft.path.replace_range(at..=at, slash),
            _ => draft.path.insert_str(1, slash),
        }
    }),
    ("path/backslash-after-dot-dot", |draft, scene| {
        insert(draft, scene, one(&["/x\\..", "/x%5c..", "/x%5C%2e%2e"], scene));
    }),
    ("path/upper-case", |draft, _| {
        let mut path = String::new();
        for (at, letter) in draft.path.char_indices() {
            path.push(if is_in_escape(&draft.path, at) { letter } else { letter.to_ascii_uppercase() });
        }
        draft.path = path;
    }),
    ("path/dropped-at-end", |draft, scene| {
        let end = end_of_element(draft);
        draft.path.insert_str(end, one(&[".", "%2e", "%20", ".%20", ".json"], scene));
    }),
    ("path/nul", |draft, scene| draft.path += one(&["%00", "%00.png"], scene)),
    ("path/trailing-slash", |draft, _| draft.path.push('/')),
    ("path/encoded-twice", |draft, scene| {
        let rest = draft.path.split_off(1);
        let byte = rest.as_bytes().first().filter(|byte| byte.is_ascii_alphabetic());
        draft.path += &match byte {
            Some(byte) if scene.roll % 2 == 0 => format!("%25{byte:02x}{}", &rest[1..]),
            _ => format!("{}{rest}", one(&["%c0%af", "%252f", "%C0%AF"], scene)),
        };
    }),
    ("path/encoded-query", |draft, scene| {
        let end = end_of_element(draft);
        draft.path.truncate(end);
        draft.path += one(&["%3fx", "%3F", "%23x", "%23"], scene);
    }),
    ("path/query", |draft, scene| {
        let query = one(&["", "x", "/../open", "x=1&x=2", ";x"], scene).to_owned();
        draft.query = Some(draft.query.take().map_or(query.clone(), |own| format!("{own}&{query}")));
    }),
    ("path/fragment", |draft, scene| draft.path += one(&["#", "#x"], scene)),
    ("path/absolute-form", |draft, scene| {
        let scheme = one(&["http", "https", "HTTP"], scene);
        draft.origin = draft.hosts.first().map(|host| format!("{scheme}://{host}"));
    }),
    ("path/header", |draft, scene| {
        let path = std::mem::replace(&mut draft.path, one(&["/", "/open", "/login"], scene).to_owned());
        draft.header(one(&["X-Original-URL", "X-Rewrite-URL"], scene), path);
    }),
    ("method/lower-case", |draft, _| draft.method = draft.method.to_lowercase()),
    ("method/header", |draft, scene| {
        let name = one(&["X-HTTP-Method-Override", "X-Http-Method", "x-method-override"], scene);
        let other = if draft.method == "GET" { "POST" } else { "GET" };
        let method = std::mem::replace(&mut draft.method, other.to_owned());
        draft.header(name, method);
    }),
    ("method/other", |draft, scene| {
        one(&["HEAD", "OPTIONS", "PURGE", "POST", "PUT", "TRACE"], scene).clone_into(&mut draft.method);
    }),
    ("method/preflight", |draft, _| {
        draft.header("Origin", "https://evil.example");
        let method = std::mem::replace(&mut draft.method, "OPTIONS".to_owned());
        draft.header("Access-Control-Request-Method", method);
    }),
];

/// The end of the first element with a letter or a digit.
fn end_of_element(draft: &Draft) -> usize {
    let named = draft.path.find(|letter: char| letter.is_ascii_alphanumeric());
    let slash = named.and_then(|named| Some(named + draft.path[named..].find('/')?));
    slash.unwrap_or(draft.path.len())
}

/// The places of slashes.
fn slashes(path: &str) -> Vec<usize> {
    path.match_indices('/').map(|(at, _)| at).collect()
}

/// Inserts whole segments before one of the path.
fn insert(draft: &mut Draft, scene: &Scene<'_>, segments: &str) {
    let at = if scene.roll % 4 == 3 { one(&slashes(&draft.path), scene) } else { 0 };
    draft.path.insert_str(at, segments);
}

/// Whether a byte is a digit of an escape.
fn is_in_escape(path: &str, at: usize) -> bool {
    let bytes = path.as_bytes();
    (at >= 1 && bytes[at - 1] == b'%') || (at >= 2 && bytes[at - 2] == b'%')
}
