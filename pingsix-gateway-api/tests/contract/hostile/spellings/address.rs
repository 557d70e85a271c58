//! Spellings of the client's address: an attacker sends headers of its own, and a proxy in front adds the address that it
//! sees.

use super::{Named, one};

/// Addresses that some demand admits.
const ADMITTED: [&str; 4] = ["198.51.100.7", "127.0.0.9", "127.0.0.4", "::1"];

pub(super) const SPELLINGS: &[Named] = &[
    ("address/claimed", |draft, scene| draft.forwarded.claimed = Some(one(&ADMITTED, scene).into())),
    ("address/junk", |draft, scene| {
        let junk =
            ["x", "", "unknown", "_hidden", "1.2.3", "127.0.0.9:80", "\"", "1.2.3.4,", "198.51.100.7 x"];
        draft.forwarded.claimed = Some(one(&junk, scene).into());
    }),
    ("address/bytes", |draft, scene| {
        draft.forwarded.claimed = Some(one(&[&b"\xff"[..], b"\xc3\xa9, 198.51.100.7"], scene).into());
    }),
    ("address/port", |draft, scene| {
        let forms = [("", ":1234"), ("[", "]"), ("\"", "\""), ("", "%eth0")];
        let (before, after) = one(&forms, scene);
        draft.forwarded.client =
            draft.forwarded.client.take().map(|client| format!("{before}{client}{after}"));
    }),
    ("address/mapped", |draft, _| {
        draft.forwarded.client = draft.forwarded.client.take().map(|client| format!("::ffff:{client}"));
    }),
    ("address/several-lines", |draft, scene| {
        draft.forwarded.claimed = Some(one(&ADMITTED, scene).into());
        draft.forwarded.is_apart = true;
    }),
    ("address/not-forwarded", |draft, _| draft.forwarded.is_removed = true),
    ("address/passed-on", |draft, scene| {
        if draft.forwarded.client.take().is_some() {
            draft.forwarded.claimed = Some(one(&ADMITTED, scene).into());
        }
    }),
    ("address/real-ip", |draft, scene| draft.header("X-Real-IP", one(&ADMITTED, scene))),
    ("address/forwarded", |draft, scene| draft.header("Forwarded", format!("for={}", one(&ADMITTED, scene)))),
    ("address/other-header", |draft, scene| {
        let names =
            ["X-Client-IP", "True-Client-IP", "CF-Connecting-IP", "X-Cluster-Client-IP", "X_Forwarded_For"];
        draft.header(one(&names, scene), one(&ADMITTED, scene));
    }),
    ("address/hop-by-hop", |draft, scene| {
        draft.header("Connection", one(&["X-Forwarded-For", "close, X-Forwarded-For", "X-Real-IP"], scene));
    }),
    ("address/mapped-peer", |draft, _| draft.mapped = !draft.protocol.tls()),
];
