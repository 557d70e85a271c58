//! Spellings of the host.

use super::{Named, one};
use crate::hostile::attack::{Draft, Scene};

pub(super) const SPELLINGS: &[Named] = &[
    ("host/trailing-dot", |draft, scene| {
        edit(draft, |host| match scene.roll % 3 {
            0 => host.to_uppercase() + ".",
            roll => host.to_owned() + [".", ".:80"][roll - 1],
        });
    }),
    ("host/trailing-dots", |draft, scene| {
        edit(draft, |host| format!("{host}{}", one(&["..", "..:80", "..."], scene)));
    }),
    ("host/upper-case", |draft, _| edit(draft, str::to_uppercase)),
    ("host/port", |draft, scene| {
        let port = one(&[":80", ":8443", ":65535"], scene);
        edit(draft, |host| if host.contains(':') { host.to_owned() } else { format!("{host}{port}") });
    }),
    ("host/bad-port", |draft, scene| {
        edit(draft, |host| format!("{host}{}", one(&[":80:80", ":", ":x", ":80:", "::", ":99999"], scene)));
    }),
    ("host/user-info", |draft, scene| {
        edit(draft, |host| format!("{}{host}", one(&["x@", "x:y@", "open.example@", "@"], scene)));
    }),
    ("host/brackets", |draft, scene| {
        edit(draft, |host| one(&[format!("[{host}]"), format!("[{host}]:80")].each_ref(), scene).clone());
    }),
    ("host/padded", |draft, scene| {
        edit(draft, |host| {
            format!("{}{host}{}", one(&["\t", "  ", ""], scene), one(&[" ", "\t", ""], scene))
        });
    }),
    ("host/escaped", |draft, scene| {
        edit(draft, |host| {
            let byte = host.as_bytes()[0];
            one(
                &[
                    format!("%{byte:02x}{}", &host[1..]),
                    format!("{host}%2e"),
                    format!("{host}%00"),
                    format!("[{host}"),
                ]
                .each_ref(),
                scene,
            )
            .clone()
        });
    }),
    ("host/path", |draft, scene| {
        edit(draft, |host| format!("{host}{}", one(&["/", "/x", "?", "\\x", "#"], scene)));
    }),
    ("host/list", |draft, scene| {
        let other = cover(scene);
        edit(draft, |host| {
            one(&[format!("{other}, {host}"), format!("{host},{other}")].each_ref(), scene).clone()
        });
    }),
    ("host/two", |draft, scene| {
        let at = if scene.roll % 2 == 0 { 0 } else { draft.hosts.len() };
        draft.hosts.insert(at, cover(scene));
    }),
    ("host/twice", |draft, _| draft.hosts.extend(draft.hosts.first().cloned())),
    ("host/absolute-form", |draft, scene| {
        let Some(own) = draft.hosts.first().cloned() else { return };
        if scene.roll % 2 == 0 {
            draft.origin = Some(format!("http://{}", cover(scene)));
        } else {
            draft.origin = Some(format!("http://{own}"));
            draft.hosts[0] = cover(scene);
        }
    }),
    ("host/none", |draft, _| draft.hosts.clear()),
    ("host/without-authority", |draft, _| draft.without_authority = true),
    ("host/header", |draft, scene| {
        let Some(first) = draft.hosts.first_mut() else { return };
        let own = std::mem::replace(first, cover(scene));
        let name = one(&["X-Forwarded-Host", "X-Host", "X-Original-Host", "Forwarded"], scene);
        let value = if name == "Forwarded" { format!("for=1.2.3.4;host={own}") } else { own };
        draft.header(name, value);
    }),
    ("host/server-name", |draft, scene| draft.sni = cover(scene)),
    ("host/below", |draft, scene| edit(draft, |host| format!("{}{host}", one(&["x.", ".", "*."], scene)))),
];

/// Changes the last of the hosts, which is the protected one if there are several. Two changes of one host would be another
/// spelling than either.
fn edit(draft: &mut Draft, change: impl Fn(&str) -> String) {
    let is_plain = |host: &str| {
        host.ends_with(|last: char| last.is_ascii_alphanumeric())
            && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-*".contains(&byte))
    };
    if let Some(host) = draft.hosts.last_mut().filter(|host| is_plain(host)) {
        *host = change(host);
    }
}

/// A host of an open part, or one of no part.
fn cover(scene: &Scene<'_>) -> String {
    scene
        .cover
        .map_or_else(|| "unnamed.example".to_owned(), |index| scene.site.parts[index].sample_host(scene.roll))
}
