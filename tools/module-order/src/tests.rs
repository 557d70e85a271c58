use std::path::Path;

use super::*;

/// The violations of an order by files.
fn check(order: &str, files: &[(&str, &str)]) -> Vec<String> {
    let sources = Sources::new(files.iter().copied()).unwrap();
    Order::parse(order).unwrap().iter().flat_map(|order| violations(order, &sources)).collect()
}

#[test]
fn the_workspace_keeps_to_the_declared_order() {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR"));
    let orders = Order::parse(&std::fs::read_to_string(tool.join("order.txt")).unwrap()).unwrap();
    assert!(!orders.is_empty());
    let found: Vec<String> = orders
        .iter()
        .flat_map(|order| {
            let src = tool.join("../..").join(&order.directory).join("src");
            violations(order, &Sources::read(&src).unwrap())
        })
        .collect();
    assert!(found.is_empty(), "tools/module-order/order.txt is not kept to:\n{}", found.join("\n"));
}

#[test]
fn an_import_of_a_later_module_is_named() {
    let files = [
        ("lib", "mod model; mod lower; mod status;"),
        ("model", ""),
        ("lower", "use crate::{model::Kind, status::{self, Verdict as Told}};"),
        ("lower/plane", "fn f() -> super::super::status::Reason { crate::status::reason() }"),
        ("status", "pub(crate) use crate::lower::Plane;"),
    ];
    assert_eq!(
        check("[a]\nmodel\nlower\nstatus", &files),
        [
            "a: lower imports crate::status, but status comes after lower",
            "a: lower imports crate::status::Verdict, but status comes after lower",
            "a: lower::plane imports crate::status::reason, but status comes after lower",
            "a: lower::plane imports super::super::status::Reason, but status comes after lower",
        ]
    );
    assert_eq!(
        check("[a]\nmodel\nlower status", &files).last().unwrap(),
        "a: status imports crate::lower::Plane, but lower is of the same layer as status"
    );
}

#[test]
fn comments_strings_and_tests_import_nothing() {
    let files = [
        ("lib", "mod early; mod late; #[cfg(test)] mod fixture;"),
        (
            "early",
            r#"//! See [`crate::late`].
            const TEXT: &str = "crate::late"; // crate::late
            fn f() -> impl Iterator<Item = u8> + use<> { [1].into_iter() }
            #[cfg(test)]
            use crate::late::{One, Other};
            #[cfg(test)]
            mod tests { use crate::late::One; }
            #[cfg(test)]
            mod more_tests;"#,
        ),
        ("early/more_tests", "use crate::late::One;"),
        ("early/more_tests/deep", "use crate::late::One;"),
        ("fixture", "use crate::late::One;"),
        ("late", "use crate::early::f;"),
    ];
    assert_eq!(check("[a]\nearly\nlate", &files), [""; 0]);
}

#[test]
fn a_re_export_counts_for_where_it_comes_from() {
    let files = [
        ("lib", "mod early; mod late; pub use late::{Report, words::Word as Spoken};"),
        ("early", "fn f(report: crate::Report, word: crate::Spoken) {}"),
        ("late", "mod words;"),
        ("late/words", ""),
    ];
    assert_eq!(
        check("[a]\nearly\nlate", &files),
        [
            "a: early imports crate::Report, but late comes after early",
            "a: early imports crate::Spoken, but late comes after early"
        ]
    );
}

#[test]
fn modules_below_a_module_have_an_order_too() {
    let files = [
        ("lib", "mod engine; mod words;"),
        ("engine", "mod one; mod other; use other::Other; struct Engine;"),
        ("engine/one", "use super::{Engine, Other}; use crate::words::Word;"),
        ("engine/other", "use super::one::One;"),
        ("words", "use crate::engine::other::Other;"),
    ];
    assert_eq!(
        check("[a::engine]\none\nother", &files),
        ["a: engine::one imports super::Other, but other comes after one"]
    );
}

#[test]
fn the_order_names_each_module() {
    let files = [("lib", "mod one; mod other;"), ("one", ""), ("other", "")];
    assert_eq!(
        check("# All of them.\n[a]\none # the first\ngone", &files),
        ["a: other has no place in the order", "a: gone does not exist"]
    );
    assert_eq!(Order::parse("one"), Err("no crate is named before: one".to_owned()));
}

#[test]
fn no_modules_of_the_workspace_import_each_other() {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = [
        "pingsix-translate",
        "pingsix-sink",
        "pingsix-store",
        "pingsix-gateway-api",
        "bin/pingsix-gateway-controller",
        "bin/pingsix-gateway-sidecar",
        "bin/pingsix-gatewayctl",
        "bin/pingsix-migrate",
    ];
    let mut errors = Vec::new();
    for directory in crates {
        for ImportCycle { parent, imports } in
            import_cycles(&Sources::read(&tool.join("../..").join(directory).join("src")).unwrap())
        {
            let name =
                if parent.is_empty() { directory.to_owned() } else { format!("{directory}::{parent}") };
            errors.push(format!("Modules of {name} import each other:\n  {}", imports.join("\n  ")));
        }
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

#[test]
fn modules_that_import_each_other_are_a_cycle() {
    let files = [
        ("lib", "mod engine; mod words;"),
        ("engine", "mod one; mod other; mod third; struct Engine;"),
        ("engine/one", "use super::{Engine, other::Other}; use crate::words::Word;"),
        ("engine/other", "use super::third::Third;"),
        ("engine/third", "fn f(one: super::one::One) {}"),
        ("words", ""),
    ];
    let [cycle] = import_cycles(&Sources::new(files.iter().copied()).unwrap()).try_into().unwrap();
    assert_eq!(cycle.parent, "engine");
    assert_eq!(
        cycle.imports,
        [
            "engine::one imports super::other::Other, and other leads back to one",
            "engine::other imports super::third::Third, and third leads back to other",
            "engine::third imports super::one::One, and one leads back to third",
        ]
    );
}
