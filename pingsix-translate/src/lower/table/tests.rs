//! Tables small enough to be compiled by hand.

use super::*;
use crate::model::{Budget, Kind};
use crate::normalise::{Expectation, PathKind, Variable};

/// A match: hostname of its route, path prefix, method, and the value a header must have.
type Written = (&'static str, &'static str, Option<&'static str>, Option<&'static str>);

/// The parts of a match that a row borrows.
type Parsed = (Option<Hostname>, Path, Option<&'static str>, Vec<Condition>);

/// The owner of borrowed parts.
struct Parts {
    route: Arc<ObjectKey>,
    rows: Vec<Parsed>,
    /// The indices of protected rows.
    protected: Vec<usize>,
}

impl Parts {
    fn of(rows: &[Written]) -> Self {
        let row = |&(hostname, path, method, header): &Written| {
            let header = header.map(|value| Condition {
                variable: Variable::Header("x".to_owned()),
                expectation: Expectation::Equals(value.to_owned()),
            });
            let path = Path::parse(PathKind::Prefix, path).0.unwrap();
            (Hostname::parse(hostname).ok(), path, method, header.into_iter().collect())
        };
        Self {
            route: Arc::new(ObjectKey::new(Kind::HttpRoute, "infra", "r")),
            rows: rows.iter().map(row).collect(),
            protected: Vec::new(),
        }
    }

    fn zone(&self, hostname: Option<&str>) -> Zone<'_> {
        let mut groups: BTreeMap<Option<Hostname>, Vec<Row<'_>>> = BTreeMap::new();
        for (index, (hostname, path, method, conditions)) in self.rows.iter().enumerate() {
            groups.entry(hostname.clone()).or_default().push(Row {
                rule: RuleRef { route: 0, rule: index },
                route: &self.route,
                age: Age::of(&kube::core::ObjectMeta::default()),
                section: Section::Match { rule: index, index: 0 },
                specificity: hostname_precedence(hostname.as_ref()),
                path,
                method: *method,
                conditions,
                scheme: RequestScheme::Any,
                state: RowState::Served,
                is_closing: false,
                access: Access {
                    chains: None,
                    is_forwarding: true,
                    is_protected: self.protected.contains(&index),
                },
            });
        }
        let hostname = hostname.map(|name| Hostname::parse(name).unwrap());
        Zone { guarded: hostname.is_some(), hostname, groups }
    }
}

/// The Routes of a zone, last in the order first, as `host path method: indices of the rows it tries (those it leaves
/// nothing to)`.
fn compile(zone: Option<&str>, rows: &[Written]) -> Vec<String> {
    compile_parts(zone, &Parts::of(rows))
}

fn compile_parts(zone: Option<&str>, parts: &Parts) -> Vec<String> {
    let Compiled { groups, mut routes, .. } =
        compile_zone(parts.zone(zone), false, |_| true, &mut Room::unlimited()).unwrap();
    routes.sort_by_key(|route| route.key.priority(false));
    let describe = |route: &TableRoute| {
        let host = route.host.as_ref().map_or("any", |host| host.as_str());
        let path = route.key.path.as_ref().map_or("", |path| &path.text);
        let rows = |rows: &[RowIndex]| {
            let rule = |&(group, row): &RowIndex| groups[group].1[row].section.rule().unwrap().to_string();
            rows.iter().map(rule).collect::<Vec<_>>().join(" ")
        };
        let (list, shadowed) = match &route.answer {
            Answer::Decide { list, shadowed, .. } => (list, shadowed),
            Answer::OtherSpelling(protected) => return format!("{host} not {path}: {}", rows(protected)),
            Answer::Guard => return format!("{host}: guard"),
        };
        let method = route.key.method.unwrap_or("any");
        let shadowed = if shadowed.is_empty() { String::new() } else { format!(" ({})", rows(shadowed)) };
        format!("{host} {path} {method}: {}{shadowed}", rows(list))
    };
    routes.iter().map(describe).collect()
}

#[test]
fn a_conditional_cell_continues_with_what_is_wider() {
    let rows = [("a.test", "/api", None, Some("v1")), ("a.test", "/", None, None), ("", "/", None, None)];
    assert_eq!(compile(None, &rows), ["any / any: 2", "a.test / any: 1", "a.test /api any: 0 1"]);
}

/// The other spellings have a Route only if a row with less protection takes them.
#[test]
fn other_spellings_of_exposed_paths_come_between_prefixes_and_exact_paths() {
    let with_protected = |rows: &[Written], protected: &[usize]| {
        compile_parts(None, &Parts { protected: protected.to_vec(), ..Parts::of(rows) })
    };
    let rows =
        [("a.test", "/", None, None), ("a.test", "/b/c", None, None), ("a.test", "/b/c/d", None, None)];
    assert_eq!(
        with_protected(&rows, &[1]),
        ["a.test / any: 0", "a.test /b/c any: 1", "a.test /b/c/d any: 2", "a.test not /b/c: 1"]
    );
    for protected in [&[0][..], &[0, 1], &[0, 1, 2]] {
        assert_eq!(
            with_protected(&rows, protected),
            ["a.test / any: 0", "a.test /b/c any: 1", "a.test /b/c/d any: 2"]
        );
    }
    // A wider hostname takes what the host leaves, and a protected rule for all paths leaves nothing.
    let rows = [("*.test", "/", None, None), ("a.test", "/b", None, None), ("a.test", "/", None, None)];
    assert_eq!(with_protected(&rows[..2], &[1]), ["*.test / any: 0", "a.test /b any: 1", "a.test not /b: 1"]);
    assert_eq!(with_protected(&rows, &[1, 2]), ["*.test / any: 0", "a.test / any: 2", "a.test /b any: 1"]);
}

/// Under `/` of the host, the wider hostname matters for `/api` only.
#[test]
fn a_wider_hostname_with_a_longer_path_makes_a_virtual_cell() {
    let rows =
        [("a.test", "/", None, Some("v1")), ("*.test", "/api", None, None), ("*.test", "/", None, None)];
    assert_eq!(
        compile(None, &rows),
        ["*.test / any: 2", "*.test /api any: 1", "a.test / any: 0 2", "a.test /api any: 0 1"]
    );
}

/// Under the conditional `/api`, only GET requests continue with the row for GET.
#[test]
fn a_wider_cell_with_a_method_makes_a_virtual_cell() {
    let rows = [
        ("a.test", "/api", None, Some("v1")),
        ("a.test", "/", Some("GET"), None),
        ("a.test", "/", None, None),
    ];
    assert_eq!(
        compile(None, &rows),
        ["a.test / any: 2", "a.test / GET: 1", "a.test /api any: 0 2", "a.test /api GET: 0 1"]
    );
}

#[test]
fn a_virtual_cell_that_would_change_nothing_is_left_out() {
    // The row for `/api` has conditions that were tried before, so it is never reached.
    let rows = [
        ("a.test", "/", None, Some("v1")),
        ("*.test", "/api", None, Some("v1")),
        ("*.test", "/", None, None),
    ];
    assert_eq!(compile(None, &rows), ["*.test / any: 2", "*.test /api any: 1 2", "a.test / any: 0 2"]);
}

#[test]
fn without_conditions_nothing_continues() {
    let rows =
        [("a.test", "/", None, None), ("*.test", "/api", None, None), ("a.test", "/", None, Some("v"))];
    // More headers come first within a cell, whatever the order of the rules.
    assert_eq!(compile(None, &rows), ["*.test /api any: 1", "a.test / any: 2 0"]);
}

#[test]
fn the_guard_of_a_zone_comes_after_guards_for_every_path() {
    let key = |zone: &str, original: Option<&str>, path: Option<Path>| TableKey {
        zone: Hostname::parse(zone).ok(),
        original: original.map(|name| Hostname::parse(name).unwrap()),
        path,
        method: None,
    };
    let ascending = [
        key("*.test", Some("a.test"), Some(Path::root())),
        key("a.test", None, None),
        key("a.test", None, Some(Path::unwritten())),
        key("a.test", None, Some(Path::root())),
        key("a.test", Some("*.test"), Some(Path::unwritten())),
    ];
    let priorities: Vec<u32> = ascending.iter().map(|key| key.priority(false)).collect();
    assert!(priorities.is_sorted_by(|one, other| one < other), "{priorities:?}");
}

#[test]
fn within_a_zone_the_original_hostname_decides_and_the_guard_is_last() {
    let rows =
        [("*.test", "/long", None, None), ("*.a.test", "/x", None, None), ("", "/longest", None, None)];
    assert_eq!(
        compile(Some("*.a.test"), &rows),
        ["*.a.test: guard", "*.a.test /longest any: 2", "*.a.test /long any: 0", "*.a.test /x any: 1"]
    );
}

#[test]
fn a_prefix_whose_requests_one_with_a_slash_takes_has_no_route() {
    let rows = [("a.test", "/foo", None, None), ("a.test", "/foo/", None, None)];
    assert_eq!(compile(None, &rows), ["a.test /foo/ any: 1 (0)"]);
    // The list continues if the row with a slash has conditions.
    let rows = [("a.test", "/foo", None, None), ("a.test", "/foo/", None, Some("v1"))];
    assert_eq!(compile(None, &rows), ["a.test /foo/ any: 1 0"]);
    let rows = [("a.test", "/foo", Some("GET"), None), ("a.test", "/foo/", None, Some("v1"))];
    assert_eq!(compile(None, &rows), ["a.test /foo/ any: 1", "a.test /foo/ GET: 1 0"]);
}

#[test]
fn a_prefix_of_which_one_with_a_slash_takes_a_method_only_keeps_its_route() {
    let rows = [
        ("a.test", "/foo", None, None),
        ("a.test", "/foo", Some("GET"), None),
        ("a.test", "/foo", Some("PUT"), None),
        ("a.test", "/foo/", Some("GET"), None),
    ];
    assert_eq!(compile(None, &rows), ["a.test /foo any: 0", "a.test /foo PUT: 2", "a.test /foo/ GET: 3 (1)"]);
}

/// All of them are served by the same hosts, and the original hostname precedes the path.
#[test]
fn a_cell_that_a_more_specific_hostname_covers_has_no_route() {
    let rows = [
        ("*.a.test", "/x", None, None),
        ("*.test", "/x/long", None, None),
        ("*.test", "/y", Some("GET"), None),
        ("", "/y", None, None),
        ("", "/y/z", Some("GET"), None),
    ];
    assert_eq!(
        compile(Some("*.a.test"), &rows),
        ["*.a.test: guard", "*.a.test /y any: 3", "*.a.test /y GET: 2 (4)", "*.a.test /x any: 0 (1)"]
    );
    // One of its hosts is not all of them.
    let rows = [("b.a.test", "/", None, None), ("*.a.test", "/", None, None)];
    assert_eq!(
        compile(Some("*.a.test"), &rows),
        ["*.a.test: guard", "*.a.test / any: 1", "b.a.test / any: 0"]
    );
}

/// The Route of the more specific hostname continues with it, so it does not count as unreached.
#[test]
fn a_cell_that_only_continues_others_has_no_route() {
    let rows = [("*.a.test", "/", None, Some("v1")), ("*.test", "/x", None, None)];
    assert_eq!(
        compile(Some("*.a.test"), &rows),
        ["*.a.test: guard", "*.a.test / any: 0", "*.a.test /x any: 0 1"]
    );
}

#[test]
fn a_narrower_zone_precedes_everything_of_a_wider_one() {
    let key = |zone: &str, original: &str, path: Option<&str>| TableKey {
        zone: Hostname::parse(zone).ok(),
        original: Hostname::parse(original).ok(),
        path: path.map(|text| Path::parse(PathKind::Exact, text).0.unwrap()),
        method: path.map(|_| "GET"),
    };
    assert!(
        key("*.a.test", "", None).priority(false) > key("*.test", "b.a.test", Some("/x")).priority(false)
    );
    let longest = format!("{}.{}", "a".repeat(63), vec!["b"; 95].join("."));
    let largest = key(&longest, &longest, Some("/x")).priority(false);
    assert!(largest < 1 << 31);
}

#[test]
fn a_table_there_is_no_room_for_is_given_up() {
    let rows = [("a.test", "/api", None, Some("v1")), ("a.test", "/", None, None)];
    let parts = Parts::of(&rows);
    let room = |bytes: usize| {
        let mut room = Room::of(Budget { bytes, matcher_entries: 0 });
        compile_zone(parts.zone(None), false, |_| true, &mut room).is_some()
    };
    let needed = Room::of_route(0) + Room::of_route(1);
    assert!(room(needed));
    assert!(!room(needed - 1));
}
