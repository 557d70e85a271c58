//! The versions of the installed Gateway API CRDs.

use std::collections::BTreeMap;

use super::{ConditionContent, ConditionStatus, GatewayClassVerdict};
use crate::model::{ConditionType, Reason};

/// The supported bundle versions: `major.minor`.
const SUPPORTED: [(u32, u32); 3] = [(1, 5), (1, 6), (1, 7)];

impl GatewayClassVerdict {
    /// Adds `SupportedVersion`. `bundles` has the name of every installed Gateway API CRD with its annotation
    /// `gateway.networking.k8s.io/bundle-version`; `None` if the CRDs cannot be read.
    #[must_use]
    pub fn with_bundles(mut self, bundles: Option<&BTreeMap<String, Option<String>>>) -> Self {
        self.conditions.put(ConditionType::SupportedVersion, judge_bundles(bundles), self.generation);
        self
    }
}

fn judge_bundles(bundles: Option<&BTreeMap<String, Option<String>>>) -> ConditionContent {
    let Some(bundles) = bundles else {
        let message = "The versions of the Gateway API CRDs cannot be read.".to_owned();
        return (ConditionStatus::Unknown, Reason::Pending, message);
    };
    let unknown: Vec<String> = bundles
        .iter()
        .filter(|(_, version)| !version.as_deref().is_some_and(is_supported))
        .map(|(name, version)| match version {
            Some(version) => format!("{name} ({version})"),
            None => format!("{name} (no version)"),
        })
        .collect();
    if unknown.is_empty() {
        let message = "The Gateway API CRDs are of a version that is supported.".to_owned();
        return (ConditionStatus::True, Reason::SupportedVersion, message);
    }
    let supported: Vec<String> = SUPPORTED.iter().map(|(major, minor)| format!("v{major}.{minor}")).collect();
    let message = format!(
        "These CRDs have versions other than {}; fields that are unknown have no effect: {}.",
        supported.join(", "),
        unknown.join(", "),
    );
    (ConditionStatus::False, Reason::UnsupportedVersion, message)
}

/// Whether the minor version of a version such as `v1.6.3` or `v1.7.0-rc.1` is supported.
fn is_supported(version: &str) -> bool {
    let mut numbers = version.strip_prefix('v').unwrap_or(version).split(['.', '-', '+']);
    let mut number = || numbers.next().and_then(|number| number.parse().ok());
    matches!((number(), number()), (Some(major), Some(minor)) if SUPPORTED.contains(&(major, minor)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(versions: &[(&str, Option<&str>)]) -> ConditionContent {
        let bundles = versions.iter().map(|(name, version)| ((*name).to_owned(), version.map(str::to_owned)));
        judge_bundles(Some(&bundles.collect()))
    }

    #[test]
    fn three_minor_versions_are_supported() {
        for version in ["v1.5.0", "v1.6.3", "v1.7.0", "v1.7.0-rc.1", "1.6.3"] {
            assert_eq!(judge(&[("gateways", Some(version))]).0, ConditionStatus::True, "{version}");
        }
        for version in ["v1.4.1", "v1.8.0", "v0.8.1", "v2.5.0", "", "v1", "main"] {
            assert_eq!(judge(&[("gateways", Some(version))]).0, ConditionStatus::False, "{version}");
        }
    }

    #[test]
    fn one_crd_of_another_version_is_named() {
        let (status, reason, message) =
            judge(&[("gateways", Some("v1.6.3")), ("httproutes", Some("v1.2.0")), ("tlsroutes", None)]);
        assert_eq!((status, reason), (ConditionStatus::False, Reason::UnsupportedVersion));
        assert!(message.ends_with("httproutes (v1.2.0), tlsroutes (no version)."), "{message}");
        assert!(!message.contains("gateways"));
    }

    #[test]
    fn the_support_of_unreadable_crds_is_unknown() {
        assert_eq!(judge_bundles(None).0, ConditionStatus::Unknown);
    }
}
