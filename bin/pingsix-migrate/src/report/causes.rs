//! Problems by cause: many objects often have one problem.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Entry, Place, Reason, Verdict};

/// The fields of objects that have one verdict for one reason, with one sentence.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cause<'a> {
    pub(super) verdict: Verdict,
    pub(super) reason: Reason,
    /// The annotation, or the path of the field. With several fields, the path has no indices.
    pub(super) field: Cow<'a, str>,
    /// With several objects, the name of each object is `NAMESPACE/NAME`.
    pub(super) message: Cow<'a, str>,
    /// The fields of one object follow each other.
    pub(super) places: Vec<&'a Place>,
    family: Family,
}

/// The causes that differ only by their sentences, in the order of the report: by verdict, by number of objects, and by the
/// first object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Family {
    verdict: Verdict,
    objects: Reverse<usize>,
    first: usize,
}

impl Cause<'_> {
    /// Whether two causes differ only by their sentences.
    pub(super) fn is_like(&self, other: &Cause<'_>) -> bool {
        self.family == other.family
    }

    /// Each object once.
    pub(super) fn objects(&self) -> Vec<&str> {
        let mut objects: Vec<&str> = self.places.iter().map(|place| &*place.object).collect();
        objects.dedup();
        objects
    }
}

/// The causes of the problems of a report, the most severe first. The entries of one object follow each other.
pub(super) fn causes<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<Cause<'a>> {
    // With the last object of each.
    let mut families: BTreeMap<(Verdict, Reason, Cow<'a, str>), (Family, &str)> = BTreeMap::new();
    let mut indices: BTreeMap<(Verdict, Reason, Cow<'a, str>, Cow<'a, str>), usize> = BTreeMap::new();
    let mut causes: Vec<Cause<'a>> = Vec::new();
    for (position, entry) in entries.filter(|entry| entry.verdict != Verdict::Exact).enumerate() {
        let Entry { place, verdict, reason, message } = entry;
        let (verdict, reason, object) = (*verdict, *reason, &*place.object);
        let (field, general) = (general_field(&place.field), general_message(message, object));
        let family = families.entry((verdict, reason, field.clone()));
        let (family, last) = family.or_insert((Family { verdict, objects: Reverse(0), first: position }, ""));
        if std::mem::replace(last, object) != object {
            family.objects.0 += 1;
        }
        let index = *indices.entry((verdict, reason, field.clone(), general.clone())).or_insert(causes.len());
        match causes.get_mut(index) {
            Some(cause) => {
                cause.field = field;
                if cause.places.last().is_some_and(|last| *last.object != *object) {
                    cause.message = general;
                }
                cause.places.push(place);
            }
            None => causes.push(Cause {
                verdict,
                reason,
                field: annotation(&place.field).unwrap_or(&place.field).into(),
                message: message.into(),
                places: vec![place],
                family: *family,
            }),
        }
    }
    for cause in &mut causes {
        if let Some((family, _)) = families.get(&(cause.verdict, cause.reason, general_field(&cause.field))) {
            cause.family = *family;
        }
    }
    causes.sort_by_key(|cause| (cause.family, Reverse(cause.places.len())));
    causes
}

/// The annotation of a field.
fn annotation(field: &str) -> Option<&str> {
    field.strip_prefix("metadata.annotations[")?.strip_suffix(']')
}

/// The annotation of a field, or its path without indices.
pub(super) fn general_field(field: &str) -> Cow<'_, str> {
    if let Some(annotation) = annotation(field) {
        return annotation.into();
    }
    if !field.contains('[') {
        return field.into();
    }
    let mut general = String::with_capacity(field.len());
    for (number, part) in field.split('[').enumerate() {
        if number > 0 {
            general.push('[');
        }
        general.push_str(part.trim_start_matches(|letter: char| letter.is_ascii_digit()));
    }
    general.into()
}

/// A sentence without the name of its own object.
fn general_message<'a>(message: &'a str, object: &str) -> Cow<'a, str> {
    let Some((kind, name)) = object.split_once(' ') else { return message.into() };
    if name.is_empty() || !message.contains(name) {
        return message.into();
    }
    let mut general = String::with_capacity(message.len());
    let mut rest = message;
    while let Some((before, after)) = rest.split_once(name) {
        general.push_str(before);
        let is_own = before.strip_suffix([' ', '/']).is_some_and(|before| before.ends_with(kind))
            && !after.strip_prefix(['.', '-']).unwrap_or(after).starts_with(char::is_alphanumeric);
        general.push_str(if !is_own {
            name
        } else if name.contains('/') {
            "NAMESPACE/NAME"
        } else {
            "NAME"
        });
        rest = after;
    }
    general.push_str(rest);
    general.into()
}

#[cfg(test)]
mod tests {
    use super::super::Report;
    use super::*;

    #[test]
    fn many_objects_with_one_problem_are_one_cause() {
        let mut report = Report::default();
        for name in ["a", "b", "ab"] {
            let place = Place::object(format!("Ingress n/{name}"));
            report.exact(&place.at("spec"), "One.");
            let body = place.at("metadata.annotations[nginx.ingress.kubernetes.io/proxy-body-size]");
            report.impossible(&body, Reason::BodySize, "Two.");
            let message = format!("Three. --allow-weaker Ingress/n/{name} and Ingress n/abc.");
            report.add(&place, Verdict::Withheld, Reason::NotWritten, message);
        }
        let place = Place::object("Ingress n/b");
        report.limited(&place.at("spec.rules").item(0), Reason::DifferentPath, "Four.");
        report.limited(&place.at("spec.rules").item(1), Reason::DifferentPath, "Four.");
        report.limited(&place.at("spec.rules").item(1), Reason::DifferentPath, "Five.");
        let found = causes(report.entries());
        let shown: Vec<_> = found
            .iter()
            .map(|cause| {
                (cause.verdict, &*cause.field, &*cause.message, cause.objects().len(), cause.places.len())
            })
            .collect();
        assert_eq!(
            shown,
            [
                (
                    Verdict::Withheld,
                    "",
                    "Three. --allow-weaker Ingress/NAMESPACE/NAME and Ingress n/abc.",
                    3,
                    3
                ),
                (Verdict::Impossible, "nginx.ingress.kubernetes.io/proxy-body-size", "Two.", 3, 3),
                (Verdict::Limited, "spec.rules[]", "Four.", 1, 2),
                (Verdict::Limited, "spec.rules[1]", "Five.", 1, 1),
            ]
        );
        assert!(found[2].is_like(&found[3]) && !found[1].is_like(&found[2]));
    }
}
