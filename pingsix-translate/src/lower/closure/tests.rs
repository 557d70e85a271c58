//! Tables small enough to be closed by hand.

use super::super::table::{Answer, TableKey, TableRoute};
use super::*;
use crate::model::Budget;

fn route(host: &str, kind: PathKind, path: &str) -> TableRoute {
    let host = Hostname::parse(host).ok();
    let path = Path::parse(kind, path).0;
    TableRoute {
        key: TableKey { zone: None, original: host.clone(), path, method: None }.into(),
        host,
        answer: Answer::Guard,
    }
}

fn prefix(host: &str, path: &str) -> TableRoute {
    route(host, PathKind::Prefix, path)
}

fn exact(host: &str, path: &str) -> TableRoute {
    route(host, PathKind::Exact, path)
}

fn matched(routes: &[TableRoute]) -> Vec<Matched<'_>> {
    routes.iter().map(|route| Matched { path: route.key.path.as_ref(), host: route.host.as_ref() }).collect()
}

/// `hosts` and `uris` of each Route, as they are written.
fn closed(routes: &[TableRoute]) -> Vec<(String, String)> {
    close(&matched(routes), &mut Room::unlimited())
        .unwrap()
        .into_iter()
        .map(|closed| (closed.hosts.join(" "), closed.uris.join(" ")))
        .collect()
}

fn expect(hosts: &str, uris: &str) -> (String, String) {
    (hosts.to_owned(), uris.to_owned())
}

#[test]
fn a_prefix_lists_what_it_covers_before_itself() {
    assert_eq!(
        closed(&[prefix("", "/"), prefix("", "/foo"), exact("", "/foobar")]),
        [
            expect("", "/foobar /foo/ /foo / /foo/{*p} /{*p}"),
            // `/foobar` is not below `/foo`.
            expect("", "/foo/ /foo /foo/{*p}"),
            expect("", "/foobar"),
        ]
    );
}

/// The Route for other spellings has a pattern for each, and the Routes around them list those they cover.
#[test]
fn other_spellings_are_patterns_of_one_route() {
    let spellings = |path: &str| {
        let route = prefix("", path);
        let path = route.key.path.as_ref().unwrap().spellings();
        TableRoute { key: TableKey { path, ..(*route.key).clone() }.into(), ..route }
    };
    let routes = [prefix("", "/"), prefix("", "/a"), spellings("/a")];
    let closed = closed(&routes);
    for pattern in ["//{*p}", "/./{*p}", "/a;", "/a;{*p}", "/%61", "/%61{*p}", "/a%2F{*p}"] {
        let lists = |index: usize| closed[index].1.split(' ').any(|other| other == pattern);
        assert_eq!([lists(0), lists(1), lists(2)], [true, false, true], "{pattern} in {closed:?}");
    }
    assert!(!closed[2].1.split(' ').any(|pattern| pattern == "//"));
}

#[test]
fn a_wildcard_lists_the_hosts_it_covers_and_their_patterns() {
    assert_eq!(
        closed(&[prefix("*.test", "/"), exact("a.test", "/x"), exact("other", "/y")]),
        [
            expect("a.test *.test", "/x / /{*p}"),
            // Narrower than everything: nothing to list.
            expect("a.test", "/x"),
            expect("other", "/y"),
        ]
    );
}

/// `*.test` carries the path of `c.test` into the routers of `*.a.test` and `b.a.test`, where the prefixes of others
/// cover it: they must list it too, although it never was a path of theirs.
#[test]
fn patterns_travel_along_nested_wildcards() {
    let [wide, middle, narrow, far] = closed(&[
        prefix("*.test", "/"),
        prefix("*.a.test", "/x"),
        prefix("b.a.test", "/x"),
        exact("c.test", "/x/z"),
    ])
    .try_into()
    .unwrap();
    assert_eq!(wide, expect("b.a.test c.test *.a.test *.test", "/x/z /x/ /x / /x/{*p} /{*p}"));
    assert_eq!(middle, expect("b.a.test *.a.test", "/x/z /x/ /x /x/{*p}"));
    assert_eq!(narrow, expect("b.a.test", "/x/z /x/ /x /x/{*p}"));
    assert_eq!(far, expect("c.test", "/x/z"));
}

/// A wildcard may carry patterns that another one carries into it: one pass is not enough.
#[test]
fn the_closure_is_a_fixpoint() {
    let routes = [
        prefix("*.c.test", "/x"),
        prefix("*.b.c.test", "/x/y"),
        prefix("*.test", "/x/y"),
        exact("d.test", "/x/y/z"),
    ];
    // From `d.test` by `*.test` to every router; under `*.c.test` the prefix `/x` meets it.
    let [narrow_x, ..] = closed(&routes).try_into().unwrap_or_else(|_| <[(String, String); 4]>::default());
    assert_eq!(narrow_x.1, "/x/y/z /x/y/ /x/y /x/ /x /x/y/{*p} /x/{*p}");
    let entries: usize =
        close(&matched(&routes), &mut Room::unlimited()).unwrap().iter().map(Closed::matcher_entries).sum();
    // Two hosts of seven patterns, one of four, four of four, one of one.
    assert_eq!(entries, 2 * 7 + 4 + 4 * 4 + 1);
}

#[test]
fn a_closure_there_is_no_room_for_is_given_up() {
    let routes = [prefix("*.test", "/"), exact("a.test", "/x")];
    let fits = |matcher_entries| {
        close(&matched(&routes), &mut Room::of(Budget { bytes: usize::MAX, matcher_entries })).is_some()
    };
    // Two hosts of three patterns, one of one.
    assert!(fits(7));
    assert!(!fits(6));
}
