//! Every link of every page leads to an existing file and heading.
//!
//! Pages of `docs/` are also pages of a book. A relative link out of `docs/` works on GitHub and breaks in the book,
//! so these pages link to the rest of the repository by its address.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::root;

const REPOSITORY: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/");

/// The paths of all Markdown files, relative to the root of the repository.
fn pages() -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            let name = entry.file_name().into_string().unwrap();
            if entry.file_type().unwrap().is_dir() {
                if name != "target" && !name.starts_with('.') {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.insert(path);
            }
        }
    }
    found
}

/// The lines of a page that are no code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        is_code ^= fence;
        !is_code && !fence
    })
}

/// The text without code spans, which may show the syntax of links.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// The targets of the links of a page.
fn links(text: &str) -> Vec<String> {
    prose(text)
        .flat_map(|line| {
            let line = without_code(line);
            let links = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
            links.map(|(link, _)| link.to_owned()).collect::<Vec<_>>()
        })
        .collect()
}

/// The anchors of the headings of a page, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    prose(text)
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let anchor: String = title
                .chars()
                .filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'))
                .map(|letter| if letter == ' ' { '-' } else { letter })
                .collect();
            let count = seen.entry(anchor.clone()).or_default();
            *count += 1;
            if *count == 1 { anchor } else { format!("{anchor}-{}", *count - 1) }
        })
        .collect()
}

/// The path without `.` and `..`, or nothing if it leaves the repository.
fn normalised(path: &Path) -> Option<PathBuf> {
    let mut found = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => found.push(name),
            Component::ParentDir => {
                found.pop().then_some(())?;
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Some(found)
}

/// The problem of a link, if it has one.
fn problem(page: &Path, link: &str) -> Option<String> {
    let (target, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
    let path = if let Some(path) = target.strip_prefix(REPOSITORY) {
        PathBuf::from(path)
    } else if target.contains("://") || target.starts_with("mailto:") {
        return None;
    } else if target.is_empty() {
        page.to_owned()
    } else {
        let Some(path) = normalised(&page.parent().unwrap().join(target)) else {
            return Some("leaves the repository".to_owned());
        };
        if page.starts_with("docs") && !path.starts_with("docs") {
            return Some(format!("leaves the book; write {REPOSITORY}{}", path.display()));
        }
        path
    };
    let file = root().join(&path);
    if !file.exists() {
        return Some(format!("there is no {}", path.display()));
    }
    let anchor = anchor?;
    if path.extension().is_none_or(|extension| extension != "md") {
        return Some("has an anchor, and leads to no page".to_owned());
    }
    let known = anchors(&fs::read_to_string(file).unwrap());
    (!known.contains(anchor)).then(|| format!("{} has no heading {anchor}", path.display()))
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut problems = Vec::new();
    let mut found = 0;
    for page in pages() {
        for link in links(&fs::read_to_string(root().join(&page)).unwrap()) {
            found += 1;
            if let Some(problem) = problem(&page, &link) {
                problems.push(format!("{}: {link}: {problem}", page.display()));
            }
        }
    }
    assert!(found > 100, "{found}");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn faulty_links_are_found() {
    let page = Path::new("docs/reference/mapping.md");
    for good in ["#budgets", "sinks.md#etcd", "../explanation/tenancy.md", "https://example.com/x#y"] {
        assert_eq!(problem(page, good), None, "{good}");
    }
    assert_eq!(problem(page, &format!("{REPOSITORY}README.md")), None);
    let repository = format!("{REPOSITORY}nothing.md");
    for bad in ["#nothing", "nothing.md", "sinks.md#nothing", "../../README.md", "../../../x", &repository] {
        assert!(problem(page, bad).is_some(), "{bad}");
    }
    let text = "# A `b` c\n```sh\n# no [x](y)\n```\n## A b c\n[one](1.md), `[x](y)` and [two](#2)\n";
    assert_eq!(anchors(text), ["a-b-c", "a-b-c-1"].map(str::to_owned).into());
    assert_eq!(links(text), ["1.md", "#2"]);
}

#[test]
fn the_book_has_every_page_once() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let mut listed: Vec<PathBuf> = links(&summary).iter().map(|link| Path::new("docs").join(link)).collect();
    listed.push("docs/SUMMARY.md".into());
    listed.sort();
    let known: Vec<PathBuf> = pages().into_iter().filter(|page| page.starts_with("docs")).collect();
    assert_eq!(listed, known);
}

#[test]
fn the_glossary_has_at_most_forty_words_each_once() {
    let glossary = fs::read_to_string(root().join("docs/reference/glossary.md")).unwrap();
    let words: Vec<&str> = glossary
        .lines()
        .filter_map(|line| line.strip_prefix("| **")?.split_once("**"))
        .map(|(word, _)| word)
        .collect();
    assert!((20..=40).contains(&words.len()), "{} words", words.len());
    let folded: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    assert!(folded.windows(2).all(|pair| pair[0] < pair[1]), "sorted, each once: {words:?}");
    let rows = glossary.lines().filter(|line| line.starts_with('|')).count();
    assert_eq!(rows, words.len() + 2, "each row begins with its word");
}
