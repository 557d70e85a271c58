//! Names and label values of the objects of an owner.
//!
//! They follow from the owner alone, so they never change, and no two owners of a namespace share one. A longer
//! name than Kubernetes allows is cut and ends with a digest of the complete name.

use pingsix_translate::infrastructure::Infrastructure;
use pingsix_translate::{Kind, ObjectKey, ObjectName};

use crate::digest::short_digest;

/// The length limit of the name of a Service, and of the value of a label.
const MAX_NAME_BYTES: usize = 63;

/// Room for what names have behind that of the Service.
const RESERVED_SUFFIX_BYTES: usize = "-certificate".len();

/// The names of everything that is made for an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    /// Of the Deployment, the Service, the `ServiceAccount` and the `PodDisruptionBudget`.
    pub(super) main: String,
    /// Of the Secret with the configuration of processes.
    pub(super) config: String,
    /// Of the Secret with what the feed asks for.
    pub(super) feed: String,
    /// Of the Secret with the certificate for clients that ask for no name, or for an unknown one.
    pub(super) certificate: String,
}

impl Names {
    pub(super) fn of(owner: &ObjectKey) -> Self {
        let mark = if owner.kind == Kind::IngressClass { "-pingsix-ingress" } else { "-pingsix" };
        let main =
            format!("{}{mark}", label(&owner.name.name, MAX_NAME_BYTES - RESERVED_SUFFIX_BYTES - mark.len()));
        Self {
            config: format!("{main}-config"),
            feed: format!("{main}-feed"),
            certificate: format!("{main}-certificate"),
            main,
        }
    }
}

/// The Secret with what the data planes of an owner show the feed.
pub(super) fn feed_secret(infrastructure: &Infrastructure) -> ObjectName {
    ObjectName::new(infrastructure.namespace.clone(), Names::of(&infrastructure.owner).feed)
}

/// The Secret with what the processes of an owner are configured with.
pub(super) fn config_secret(infrastructure: &Infrastructure) -> ObjectName {
    ObjectName::new(infrastructure.namespace.clone(), Names::of(&infrastructure.owner).config)
}

/// A DNS label that begins with a letter, as the name of a Service has to, of at most `limit` characters. A valid
/// label stays as it is.
fn label(name: &str, limit: usize) -> String {
    let is_label = name.starts_with(|first: char| first.is_ascii_lowercase()) && !name.contains('.');
    if is_label && name.len() <= limit {
        return name.to_owned();
    }
    let digest = short_digest(name);
    let kept = limit.saturating_sub(digest.len() + "g-".len() + "-".len());
    let cut: String =
        name.chars().take(kept).map(|letter| if letter == '.' { '-' } else { letter }).collect();
    let first = if cut.starts_with(|first: char| first.is_ascii_lowercase()) { "" } else { "g-" };
    format!("{first}{}-{digest}", cut.trim_end_matches('-'))
}

/// A name as the value of a label.
pub(super) fn label_value(name: &str) -> String {
    if name.len() <= MAX_NAME_BYTES {
        return name.to_owned();
    }
    let digest = short_digest(name);
    let cut: String = name.chars().take(MAX_NAME_BYTES - digest.len() - "-".len()).collect();
    format!("{}-{digest}", cut.trim_end_matches(['-', '.', '_']))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::rngs::StdRng;
    use rand::{Rng as _, SeedableRng as _};

    use super::*;

    fn gateway(name: &str) -> Names {
        Names::of(&ObjectKey::new(Kind::Gateway, "infra", name))
    }

    fn all(names: Names) -> [String; 4] {
        [names.main, names.config, names.feed, names.certificate]
    }

    fn is_service_name(name: &str) -> bool {
        let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        name.len() <= 63
            && name.starts_with(|first: char| first.is_ascii_lowercase())
            && !name.ends_with('-')
            && name.bytes().all(letters)
    }

    #[test]
    fn a_short_name_is_kept() {
        let names = gateway("web");
        assert_eq!(
            (names.main.as_str(), names.certificate.as_str()),
            ("web-pingsix", "web-pingsix-certificate")
        );
        let class = Names::of(&ObjectKey::new(Kind::IngressClass, "", "web"));
        assert_eq!(class.config, "web-pingsix-ingress-config");
    }

    #[test]
    fn a_name_that_no_service_can_have_is_changed_and_stays_distinct() {
        for name in [
            "a.b",
            "a-b",
            "0-web",
            "0.web",
            &"a".repeat(253),
            &format!("{}b", "a".repeat(252)),
            &"-.".repeat(9),
        ] {
            for made in all(gateway(name)) {
                assert!(is_service_name(&made), "{name}: {made}");
            }
        }
        assert_ne!(gateway("a.b"), gateway("a-b"));
        assert_ne!(gateway(&"a".repeat(253)), gateway(&"a".repeat(252)));
    }

    #[test]
    fn every_name_is_valid_and_no_two_owners_share_one() {
        let mut random = StdRng::seed_from_u64(1);
        let (mut seen, mut owners) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..20_000 {
            let longest = if random.random_bool(0.8) { 4 } else { 251 };
            let length = random.random_range(1..=longest);
            let inner: String =
                (0..length).map(|_| ['a', 'b', '0', '-', '.'][random.random_range(0..5)]).collect();
            let name = format!("a{inner}z");
            let kind = if random.random_bool(0.5) { Kind::Gateway } else { Kind::IngressClass };
            let owner = ObjectKey::new(kind, "infra", name.as_str());
            if !owners.insert(owner.clone()) {
                continue;
            }
            for made in all(Names::of(&owner)) {
                assert!(is_service_name(&made), "{owner}: {made}");
                assert!(seen.insert(made.clone()), "{owner}: {made}");
            }
            let value = label_value(&name);
            assert!(
                value.len() <= 63 && value.ends_with(|last: char| last.is_ascii_alphanumeric()),
                "{value}"
            );
        }
    }
}
