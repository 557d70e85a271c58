//! Names that an author may have meant.

use strsim::damerau_levenshtein;

/// The longest name for which a similar one is looked for, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// The name that the author probably meant, among the existing ones.
///
/// Names differ by one letter in three, at most three, without regard to case. A name that contains the other one counts
/// too if no other name does.
pub(crate) fn similar<'n>(written: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    if written.len() > MAX_NAME_BYTES {
        return None;
    }
    let lower = written.to_ascii_lowercase();
    let names: Vec<&str> =
        names.into_iter().filter(|name| *name != written && name.len() <= MAX_NAME_BYTES).collect();
    if let Some((_, name)) = closest(&lower, &names) {
        return Some(name);
    }
    let contains = |name: &str| {
        let name = name.to_ascii_lowercase();
        lower.len() >= 4 && name.len() >= 4 && (name.contains(&lower) || lower.contains(&name))
    };
    let mut containing = names.iter().filter(|name| contains(name));
    containing.next().copied().filter(|_| containing.next().is_none())
}

/// The kind or group that the author probably misspelled. Kubernetes has kinds whose names contain others.
pub(crate) fn misspelled<'n>(written: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    if written.len() > MAX_NAME_BYTES {
        return None;
    }
    let names: Vec<&str> = names.into_iter().collect();
    closest(&written.to_ascii_lowercase(), &names).map(|(_, name)| name)
}

fn closest<'n>(lower: &str, names: &[&'n str]) -> Option<(usize, &'n str)> {
    let bound = (lower.len() / 3).min(3);
    let length = |name: &str| name.chars().count();
    let names = names.iter().filter(|name| length(name).abs_diff(length(lower)) <= bound);
    let distances = names.map(|name| (damerau_levenshtein(lower, &name.to_ascii_lowercase()), *name));
    distances.filter(|(distance, _)| *distance <= bound).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_similar_to_one_with_few_other_letters() {
        let fields = ["backendRefs", "filters", "matches", "name", "timeouts"];
        let names =
            ["backendRef", "matchs", "Timeouts", "hostname", "ports"].map(|name| similar(name, fields));
        assert_eq!(names, [Some("backendRefs"), Some("matches"), Some("timeouts"), Some("name"), None]);
        let types = ["Exact", "PathPrefix", "RegularExpression"];
        assert_eq!(similar("prefix", types), Some("PathPrefix"));
        assert_eq!(similar("Regex", types), None);
        assert_eq!(similar("web", ["web-public", "web-private"]), None);
        assert_eq!(similar(&"a".repeat(1000), ["a"]), None);
    }

    #[test]
    fn kinds_that_kubernetes_has_are_not_taken_for_others() {
        let kinds = ["Service", "Secret", "ConfigMap", "Namespace"];
        assert_eq!(misspelled("Services", kinds), Some("Service"));
        assert_eq!(
            ["ServiceAccount", "Pod", "Node", "Endpoints"].map(|kind| misspelled(kind, kinds)),
            [None; 4]
        );
    }
}
