//! The mistakes of newcomers: a table that people can read.

use std::fs;
use std::path::Path;

use crate::support::{CART, GATEWAY, Manifests, route, run};

const TABLE: &str = include_str!("mistakes/mistakes.txt");

pub(crate) struct Mistake<'t> {
    pub(crate) title: &'t str,
    pub(crate) manifest: &'t str,
    /// The findings.
    pub(crate) says: &'t str,
}

pub(crate) fn mistakes() -> impl Iterator<Item = Mistake<'static>> {
    TABLE.split("\n=== ").skip(1).map(|block| {
        let (title, rest) = block.split_once('\n').unwrap();
        let (manifest, says) = rest.split_once("--- says\n").unwrap();
        Mistake { title, manifest, says: says.trim_end() }
    })
}

/// The findings of errors and warnings about the mistake.
fn findings(checked: &str, directory: &str) -> String {
    let checked = checked.replace(&format!("{directory}/"), "");
    let (mut kept, mut of_mistake) = (Vec::new(), false);
    for line in checked.lines() {
        if !line.starts_with("  ") {
            of_mistake = line.starts_with("mine.yaml");
        }
        if of_mistake && !line.starts_with("  info:") {
            kept.push(line);
        }
    }
    kept.join("\n")
}

#[test]
fn each_mistake_of_a_newcomer_gets_its_message_and_costs_nothing_else() {
    let mut table = TABLE.split("\n=== ").next().unwrap().to_owned();
    let mut wrong = Vec::new();
    for mistake in mistakes() {
        let manifests = Manifests::new(&[
            ("gateway.yaml", GATEWAY),
            ("cart.yaml", CART),
            ("cart-route.yaml", &route("cart", "/cart", "cart")),
            ("mine.yaml", mistake.manifest),
        ]);
        let checked = manifests.check();
        let path = manifests.path().to_str().unwrap();
        let found = findings(&checked.out, path);
        if found != mistake.says {
            wrong.push(format!("{}:\n{found}\ninstead of:\n{}", mistake.title, mistake.says));
        }
        run(["explain", path, "GET", "http://a.test/cart"]).exits(0).prints("Service shop/cart port 80");
        table = format!("{table}\n=== {}\n{}--- says\n{found}\n", mistake.title, mistake.manifest);
    }
    if std::env::var_os("UPDATE_MISTAKES").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/mistakes/mistakes.txt");
        fs::write(path, table).unwrap();
    } else {
        assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    }
}

#[test]
fn the_table_has_fifty_mistakes_with_a_finding_each() {
    assert!(mistakes().count() >= 50);
    for mistake in mistakes() {
        assert!(!mistake.says.is_empty(), "{}", mistake.title);
    }
}
