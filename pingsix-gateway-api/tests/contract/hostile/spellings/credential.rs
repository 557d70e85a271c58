//! Credentials that are wrong, or right for another part, in every place.

use super::{Named, one};
use crate::hostile::attack::add_credentials;

const NAMES: [&str; 8] = [
    "apikey",
    "APIKEY",
    "Apikey",
    "X-Api-Key",
    "x-api-key",
    "X_Api_Key",
    "Authorization",
    "Proxy-Authorization",
];

const VALUES: [&str; 11] = [
    "",
    " ",
    "key",
    "key-of-",
    "Basic",
    "Basic ",
    "Basic Og==",
    "Basic YWxpY2U6",
    "Bearer ",
    "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSIsImV4cCI6NDEwMjQ0NDgwMCwiaXNzIjoiaHR0cHM6Ly9sb2dpbi5leGFtcGxlIiwiYXVkIjoic2hvcCJ9.",
    "alice:password",
];

pub(super) const SPELLINGS: &[Named] = &[
    ("credential/wrong", |draft, scene| {
        draft.header(one(&NAMES, scene), VALUES[scene.roll / 8 % VALUES.len()]);
    }),
    ("credential/twice", |draft, scene| {
        for value in [VALUES[scene.roll / 8 % VALUES.len()], "x"] {
            draft.header(one(&NAMES, scene), value);
        }
    }),
    ("credential/query", |draft, scene| {
        let queries = [
            "key=",
            "key=x&key=y",
            "k%65y=x",
            "key",
            "apikey=x",
            "jwt=x",
            "KEY=x",
            "key=%00",
            "&key=&",
            "key[]=x",
        ];
        draft.query = Some(one(&queries, scene).to_owned());
    }),
    ("credential/cookie", |draft, scene| {
        let cookies = ["=x", "jwt=x", "jwt=; jwt=", "=", "apikey=x; apikey=y", "token=x", ";;=;"];
        draft.header("Cookie", one(&cookies, scene));
    }),
    ("credential/of-another", |draft, scene| {
        let parts = scene.site.parts.iter().enumerate();
        let others: Vec<_> =
            parts.filter(|(_, part)| part.name != scene.part.name && !part.is_open()).collect();
        let other = others.get(scene.roll % others.len().max(1));
        if let Some((index, other)) = other.filter(|_| draft.visitor.credential_of.is_none()) {
            add_credentials(draft, other);
            draft.visitor.credential_of = Some(*index);
        }
    }),
    ("credential/hop-by-hop", |draft, scene| {
        let names =
            ["apikey", "Authorization", "Host", "close, X-Api-Key", "Cookie", "Content-Length", "x-probe"];
        draft.header("Connection", one(&names, scene));
    }),
    ("credential/cache", |draft, scene| {
        let headers = [
            ("X-Bypass-Cache", "1"),
            ("Cache-Control", "no-cache"),
            ("Range", "bytes=0-0"),
            ("Upgrade", "h2c"),
        ];
        let (name, value) = one(&headers, scene);
        draft.header(name, value);
    }),
];
