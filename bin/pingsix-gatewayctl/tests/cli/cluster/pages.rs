//! Lists in several pages.

use serde_json::json;

use super::scripted::{Scripted, list};
use crate::support::{Run, run};

fn check(server: &Scripted) -> Run {
    let files = server.kubeconfig(&json!({}));
    let path = files.path().join("config.yaml");
    run(["check", "--cluster", "--kubeconfig", path.to_str().unwrap()])
}

/// The tokens of the pages that were asked for, and the largest numbers of objects in a page.
fn pages(server: &Scripted) -> Vec<(Option<String>, usize)> {
    let asked = server.asked().into_iter();
    let page = |asked: super::scripted::Asked| {
        let next = asked.parameter("continue").map(str::to_owned);
        (next, asked.parameter("limit").unwrap().parse().unwrap())
    };
    asked.map(page).collect()
}

/// An expired page answers 410. The objects of the pages before it are not of the same moment as the new list.
#[test]
fn a_list_whose_next_page_expires_begins_again() {
    let first = std::sync::atomic::AtomicBool::new(true);
    let server = Scripted::start(move |asked| {
        let expires = || first.swap(false, std::sync::atomic::Ordering::Relaxed);
        Some(match asked.parameter("continue") {
            None => (200, list(0..2, Some("second"))),
            Some(_) if expires() => {
                (410, json!({ "kind": "Status", "code": 410, "reason": "Expired" }).to_string())
            }
            Some(_) => (200, list(2..3, None)),
        })
    });
    // Each Service counts once: a second one of the same name would be an error. The one error is that Services alone give
    // nothing to check.
    check(&server).exits(1).prints("1 error, 0 warnings (3 objects");
    let second = || Some("second".to_owned());
    assert_eq!(pages(&server), [(None, 500), (second(), 500), (None, 500), (second(), 500)]);
}

#[test]
fn a_list_that_expires_again_and_again_is_named() {
    let server = Scripted::start(|asked| {
        Some(match asked.parameter("continue") {
            None => (200, list(0..2, Some("second"))),
            Some(_) => (410, "{}".to_owned()),
        })
    });
    check(&server)
        .exits(2)
        .prints_error("cannot list Service: the pages of the list expire before they are read");
    assert_eq!(pages(&server).len(), 6);
}

#[test]
fn a_page_that_is_too_large_is_asked_for_in_halves() {
    const OVERSIZED_PAGE_BYTES: usize = 65 << 20;
    let server = Scripted::start(|asked| {
        let limit: usize = asked.parameter("limit")?.parse().ok()?;
        Some(match asked.parameter("continue") {
            _ if limit > 125 => (200, " ".repeat(OVERSIZED_PAGE_BYTES)),
            None => (200, list(0..2, Some("second"))),
            Some(_) => (200, list(2..3, None)),
        })
    });
    check(&server).exits(1).prints("1 error, 0 warnings (3 objects");
    let second = Some("second".to_owned());
    assert_eq!(pages(&server), [(None, 500), (None, 250), (None, 125), (second, 125)]);
}
