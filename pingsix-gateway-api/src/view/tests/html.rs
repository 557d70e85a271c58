//! A reader of the HTML that `maud` writes: every tag is closed, and every value is quoted.

use std::collections::BTreeSet;

use regex::Regex;

/// Elements without content.
const VOID: [&str; 5] = ["br", "input", "link", "meta", "hr"];

/// A start tag, an end tag, or text.
#[derive(Clone, Debug)]
enum Part {
    Start(String, Vec<(String, String)>),
    End,
    Text(String),
}

/// A page.
pub(super) struct Document(Vec<Part>);

fn unescaped(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    text.replace("&amp;", "&")
}

impl Document {
    pub(super) fn parse(page: &str) -> Self {
        let tag = Regex::new(r#"<(/?)([a-z][a-z0-9]*)((?:\s+[a-z-]+(?:="[^"<>]*")?)*)>"#).unwrap();
        let attribute = Regex::new(r#"([a-z-]+)(?:="([^"]*)")?"#).unwrap();
        let rest = page.strip_prefix("<!DOCTYPE html>").expect("the page begins with its type");
        let (mut parts, mut from, mut open) = (Vec::new(), 0, Vec::new());
        for found in tag.captures_iter(rest) {
            let whole = found.get(0).unwrap();
            let text = &rest[from..whole.start()];
            assert!(!text.contains(['<', '>']), "unescaped: {text:?}");
            parts.push(Part::Text(unescaped(text)));
            from = whole.end();
            let name = found[2].to_owned();
            if &found[1] == "/" {
                assert_eq!(open.pop().as_ref(), Some(&name), "near {}", &rest[from.saturating_sub(80)..from]);
                parts.push(Part::End);
                continue;
            }
            if !VOID.contains(&&*name) {
                open.push(name.clone());
            }
            let attributes = attribute.captures_iter(&found[3]);
            let attributes = attributes.map(|pair| {
                (pair[1].to_owned(), pair.get(2).map_or(String::new(), |value| unescaped(value.as_str())))
            });
            parts.push(Part::Start(name, attributes.collect()));
        }
        assert_eq!((open, &rest[from..]), (Vec::new(), ""), "all elements are closed");
        Self(parts)
    }

    fn starts(&self) -> impl Iterator<Item = (&str, &[(String, String)])> {
        self.0.iter().filter_map(|part| match part {
            Part::Start(name, attributes) => Some((name.as_str(), attributes.as_slice())),
            Part::End | Part::Text(_) => None,
        })
    }

    /// All texts, with one space in the place of spaces and tags.
    pub(super) fn text(&self) -> String {
        let texts = self.0.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Start(..) | Part::End => None,
        });
        texts.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
    }

    /// The text of the element with an id, which has no elements.
    pub(super) fn text_of(&self, id: &str) -> String {
        let at = self.0.iter().position(
            |part| matches!(part, Part::Start(_, attributes) if attributes.contains(&("id".to_owned(), id.to_owned()))),
        );
        let Part::Text(text) = &self.0[at.expect(id) + 1] else { panic!("{id} begins with an element") };
        text.clone()
    }

    /// The addresses of links.
    pub(super) fn links(&self) -> Vec<String> {
        let links = self
            .starts()
            .filter(|(name, _)| *name == "a")
            .map(|(_, attributes)| attribute(attributes, "href"));
        links.map(|link| link.unwrap().to_owned()).collect()
    }

    /// Fails for a page that a keyboard or a screen reader cannot use.
    pub(super) fn assert_usable(&self, page: &str) {
        let count = |wanted: &str| self.starts().filter(|(name, _)| *name == wanted).count();
        for landmark in ["main", "header", "footer", "h1", "title"] {
            assert_eq!(count(landmark), 1, "{landmark} of {page}");
        }
        let ids: Vec<&str> =
            self.starts().filter_map(|(_, attributes)| attribute(attributes, "id")).collect();
        let distinct: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(ids.len(), distinct.len(), "ids of {page}: {ids:?}");
        let labels: BTreeSet<&str> = self
            .starts()
            .filter(|(name, _)| *name == "label")
            .filter_map(|(_, label)| attribute(label, "for"))
            .collect();
        let mut level = 0;
        for (name, attributes) in self.starts() {
            match name {
                "html" => assert_eq!(attribute(attributes, "lang"), Some("en"), "{page}"),
                "th" => assert!(matches!(attribute(attributes, "scope"), Some("row" | "col")), "{page}"),
                "input" if attribute(attributes, "type") == Some("hidden") => {}
                "input" | "select" | "textarea" => {
                    let id = attribute(attributes, "id").expect("a field has an id");
                    assert!(labels.contains(id), "{id} of {page} has a label");
                }
                "h1" | "h2" | "h3" => {
                    let own: usize = name[1..].parse().unwrap();
                    assert!(own <= level + 1, "{name} of {page} follows a heading of level {level}");
                    level = own;
                }
                "style" => panic!("{page} has a style of its own"),
                "script" => assert_eq!(attribute(attributes, "src"), Some("/view/script.js"), "{page}"),
                _ => {}
            }
            for (attribute, value) in attributes {
                assert!(attribute != "style" && !attribute.starts_with("on"), "{attribute} of {page}");
                let is_address = matches!(&**attribute, "href" | "src" | "action");
                assert!(!is_address || value.starts_with(['/', '#']), "{page} leads to {value}");
            }
        }
        assert_eq!(count("table"), count("caption"), "tables of {page}");
    }
}

fn attribute<'d>(attributes: &'d [(String, String)], name: &str) -> Option<&'d str> {
    attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}
