//! The report of a replica beside its readers, and its format.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pingsix_sink::Scope;
use pingsix_translate::{Kind, ObjectKey, Origin, Section};
use serde::{Deserialize, Serialize};

use super::name_of;
use super::turns::{group_of, in_turns};
use crate::acceptance::{Culprit, Quarantine};

/// Maximum number of instances in a report: 15 KB at most. Further ones are left out; namespaces take turns.
const MAX_INSTANCES: usize = 200;

/// The size limit of the quarantines in a report, in bytes. The rest waits until reported quarantines end. Namespaces
/// take turns, and in each turn the shorter quarantines come first.
const MAX_QUARANTINE_BYTES: usize = 12_000;

/// The report of a replica beside its readers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReplicaReport {
    /// The confirmations of instances that read from it.
    pub(crate) confirmed: BTreeMap<Scope, Confirmed>,
    /// The quarantines of these instances, by owner.
    pub(crate) found: BTreeMap<ObjectKey, Vec<Quarantine>>,
}

/// The confirmations of instances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Confirmed {
    /// The digest of the content.
    pub(crate) content: String,
    /// The digest of each instance.
    pub(crate) by: BTreeSet<String>,
}

/// A quarantine as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Written {
    /// The owner.
    of: String,
    /// Objects, by kind, namespace and name.
    what: Vec<String>,
    /// The objects without a former version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    absent: Vec<String>,
    /// Which part of the one object is in quarantine; none when all of them are held back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    #[serde(rename = "said")]
    message: String,
    version: String,
}

/// The confirmations in a report, by short names of data planes.
pub(super) fn confirmed(report: &ReplicaReport) -> BTreeMap<String, Confirmed> {
    let all = report.confirmed.iter().flat_map(|(scope, Confirmed { content, by })| {
        by.iter().map(move |instance| (group_of(scope), (scope, content, instance)))
    });
    let mut written: BTreeMap<String, Confirmed> = BTreeMap::new();
    for (scope, content, instance) in in_turns(all).into_iter().take(MAX_INSTANCES) {
        let confirmed = written.entry(name_of(scope));
        let confirmed =
            confirmed.or_insert_with(|| Confirmed { content: content.clone(), by: BTreeSet::new() });
        confirmed.by.insert(instance.clone());
    }
    written
}

/// The quarantines in a report.
pub(super) fn found(report: &ReplicaReport) -> Vec<Written> {
    let mut left = MAX_QUARANTINE_BYTES;
    let mut all: Vec<(&str, (usize, Written))> = Vec::new();
    for (owner, of) in &report.found {
        all.extend(of.iter().map(|one| {
            let written = Written::of(owner, one);
            let length = serde_json::to_string(&written).map_or(usize::MAX, |text| escaped(&text));
            (&*owner.name.namespace, (length, written))
        }));
    }
    all.sort_by_key(|(_, (length, _))| *length);
    let fits = |(length, written): (usize, Written)| {
        let fits = length <= left;
        left -= if fits { length } else { 0 };
        fits.then_some(written)
    };
    in_turns(all).into_iter().filter_map(fits).collect()
}

/// The length of a text within a record, which is a text within the object: escaped characters are escaped twice.
fn escaped(text: &str) -> usize {
    text.len() + text.bytes().filter(|byte| matches!(byte, b'"' | b'\\')).count()
}

impl Written {
    fn of(owner: &ObjectKey, Quarantine { culprit, message, version }: &Quarantine) -> Self {
        let (message, version, of) = (message.to_string(), version.clone(), text_of(owner));
        let (what, absent, at) = match culprit {
            Culprit::Source(source) => (vec![text_of(&source.object)], vec![], Some(at(source.section))),
            Culprit::Parts { served, absent } => {
                (served.iter().map(text_of).collect(), absent.iter().map(text_of).collect(), None)
            }
        };
        Self { of, what, absent, at, message, version }
    }

    /// Owner and quarantine; `None` when this is not one of ours.
    pub(super) fn read(&self) -> Option<(ObjectKey, Quarantine)> {
        let keys = |texts: &[String]| -> Option<BTreeSet<ObjectKey>> {
            texts.iter().map(|text| object(text)).collect()
        };
        let culprit = match &self.at {
            Some(at) => {
                let object = Arc::new(object(self.what.first()?)?);
                Culprit::Source(Origin { object, section: section(at)? })
            }
            None => Culprit::Parts { served: keys(&self.what)?, absent: keys(&self.absent)? },
        };
        let quarantine =
            Quarantine { culprit, message: self.message.as_str().into(), version: self.version.clone() };
        Some((object(&self.of)?, quarantine))
    }
}

fn text_of(object: &ObjectKey) -> String {
    format!("{}/{}/{}", object.kind, object.name.namespace, object.name.name)
}

fn object(text: &str) -> Option<ObjectKey> {
    let mut words = text.splitn(3, '/');
    let (kind, namespace, name) = (words.next()?, words.next()?, words.next()?);
    let kind = Kind::ALL.iter().find(|known| known.as_str() == kind)?;
    Some(ObjectKey::new(*kind, namespace, name))
}

fn at(section: Section) -> String {
    match section {
        Section::Whole => "whole".to_owned(),
        Section::Rule(rule) => format!("rule/{rule}"),
        Section::Match { rule, index } => format!("match/{rule}/{index}"),
        Section::DefaultBackend => "default".to_owned(),
        Section::Tls(index) => format!("tls/{index}"),
    }
}

fn section(text: &str) -> Option<Section> {
    let words: Vec<&str> = text.split('/').collect();
    Some(match words[..] {
        ["whole"] => Section::Whole,
        ["rule", rule] => Section::Rule(rule.parse().ok()?),
        ["match", rule, index] => Section::Match { rule: rule.parse().ok()?, index: index.parse().ok()? },
        ["default"] => Section::DefaultBackend,
        ["tls", index] => Section::Tls(index.parse().ok()?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(index: usize) -> ObjectKey {
        ObjectKey::new(Kind::Gateway, "infra", format!("web-{index}"))
    }

    fn quarantine(culprit: Culprit) -> Quarantine {
        let message = "\"unknown\" plugin: ".repeat(20).into();
        Quarantine { culprit, message, version: "0123456789abcdef".to_owned() }
    }

    #[test]
    fn a_quarantine_is_read_as_it_was_written() {
        let route = ObjectKey::new(Kind::HttpRoute, "infra", "cart");
        let class = ObjectKey::new(Kind::GatewayClass, "", "pingsix");
        let sections = [
            Section::Whole,
            Section::Rule(3),
            Section::Match { rule: 1, index: 2 },
            Section::DefaultBackend,
            Section::Tls(4),
        ];
        let sources = sections
            .map(|section| quarantine(Culprit::Source(Origin { object: Arc::new(route.clone()), section })));
        let parts = Culprit::Parts { served: [route.clone()].into(), absent: [class].into() };
        for quarantine in sources.into_iter().chain([quarantine(parts)]) {
            let written = serde_json::to_string(&Written::of(&owner(0), &quarantine)).unwrap();
            let read: Written = serde_json::from_str(&written).unwrap();
            assert_eq!(read.read(), Some((owner(0), quarantine)));
        }
        for (what, at) in
            [("HTTPRoute/infra", "rule/1"), ("Fleet/infra/a", "rule/1"), ("Secret/a/b", "rule/x")]
        {
            let (of, what) = (text_of(&owner(0)), vec![what.to_owned()]);
            let (message, version, at) = (String::new(), String::new(), Some(at.to_owned()));
            assert_eq!(Written { of, what, absent: vec![], at, message, version }.read(), None);
        }
    }

    #[test]
    fn a_report_stays_within_bounds() {
        let mut report = ReplicaReport::default();
        for index in 0..2_000 {
            let object = Arc::new(ObjectKey::new(Kind::HttpRoute, "infra", format!("route-{index}")));
            let culprit = Culprit::Source(Origin { object, section: Section::Rule(0) });
            report.found.insert(owner(index), vec![quarantine(culprit)]);
            let scope = Scope::new(format!("/pingsix/infra/{index}")).unwrap();
            let content = "0123456789abcdef0123456789abcdef".to_owned();
            report.confirmed.insert(scope, Confirmed { content, by: [format!("{index:016x}")].into() });
        }
        let (confirmed, found) = (confirmed(&report), found(&report));
        assert_eq!(confirmed.len(), MAX_INSTANCES);
        let escaped = |text: String| serde_json::to_string(&text).unwrap().len();
        let length = escaped(serde_json::to_string(&confirmed).unwrap());
        assert!(length < 25_000, "{length}");
        let length = escaped(serde_json::to_string(&found).unwrap());
        assert!((10_000..13_000).contains(&length), "{length}");
    }

    #[test]
    fn a_namespace_with_much_to_tell_leaves_room_for_others() {
        let mut report = ReplicaReport::default();
        let content = "0123456789abcdef0123456789abcdef".to_owned();
        let mut add = |namespace: &str, index: usize, objects: usize| {
            let route = |route| ObjectKey::new(Kind::HttpRoute, namespace, format!("route-{route}"));
            let culprit =
                Culprit::Parts { served: (0..objects).map(route).collect(), absent: BTreeSet::new() };
            let of = ObjectKey::new(Kind::Gateway, namespace, format!("web-{index}"));
            report.found.insert(of, vec![quarantine(culprit)]);
            let scope = Scope::new(format!("/pingsix/{namespace}/web-{index}")).unwrap();
            let by = (0..50).map(|instance| format!("{namespace}{index}{instance:08x}")).collect();
            report.confirmed.insert(scope, Confirmed { content: content.clone(), by });
        };
        // One quarantine that fills most of the record, and a hundred more.
        add("aaa", 0, 350);
        (1..100).for_each(|index| add("aaa", index, 1));
        add("shop", 0, 1);
        let of_shop = |written: &&Written| written.of == "Gateway/shop/web-0";
        assert_eq!(found(&report).iter().filter(of_shop).count(), 1);
        let shop = name_of(&Scope::new("/pingsix/shop/web-0").unwrap());
        assert_eq!(confirmed(&report)[&shop].by.len(), 50);
    }
}
