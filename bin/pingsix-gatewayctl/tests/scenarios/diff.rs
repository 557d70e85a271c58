//! A line diff with context.

use std::fmt::Write as _;

/// Lines shown around a difference.
const CONTEXT_LINES: usize = 2;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Both,
    LazyDocument,
    New,
}

/// The lines to remove from one text (`-`) and to add (`+`) to get another.
pub(crate) fn difference(held: &str, new: &str) -> String {
    let lines = aligned(&held.lines().collect::<Vec<_>>(), &new.lines().collect::<Vec<_>>());
    let near = |index: usize| {
        let range = index.saturating_sub(CONTEXT_LINES)..(index + CONTEXT_LINES + 1).min(lines.len());
        lines[range].iter().any(|(side, _)| *side != Side::Both)
    };
    let mut out = String::new();
    let mut skipped = false;
    for (index, (side, line)) in lines.iter().enumerate() {
        if !near(index) {
            skipped = true;
            continue;
        }
        if std::mem::take(&mut skipped) {
            out.push_str("  ...\n");
        }
        let sign = match side {
            Side::Both => ' ',
            Side::LazyDocument => '-',
            Side::New => '+',
        };
        writeln!(out, "{sign} {line}").unwrap();
    }
    out
}

/// The longest common subsequence, and the lines between.
fn aligned<'a>(held: &[&'a str], new: &[&'a str]) -> Vec<(Side, &'a str)> {
    let mut common = vec![vec![0_usize; new.len() + 1]; held.len() + 1];
    for (i, left) in held.iter().enumerate().rev() {
        for (j, right) in new.iter().enumerate().rev() {
            common[i][j] =
                if left == right { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut lines = Vec::new();
    while i < held.len() || j < new.len() {
        if i < held.len() && j < new.len() && held[i] == new[j] {
            lines.push((Side::Both, held[i]));
            i += 1;
            j += 1;
        } else if i < held.len() && (j == new.len() || common[i + 1][j] >= common[i][j + 1]) {
            lines.push((Side::LazyDocument, held[i]));
            i += 1;
        } else {
            lines.push((Side::New, new[j]));
            j += 1;
        }
    }
    lines
}

#[test]
fn a_difference_shows_what_changed_and_little_else() {
    let held = "a\nb\nc\nd\ne\nf\ng\n";
    let new = "a\nb\nc\nd\nE\nf\ng\nh\n";
    assert_eq!(difference(held, new), "  ...\n  c\n  d\n- e\n+ E\n  f\n  g\n+ h\n");
}
