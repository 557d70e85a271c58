//! The known limits: spellings by which a request passes a protection. The list is compared with the documentation by
//! the tests of `pingsix-gatewayctl`.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::attack::Attack;
use super::judge::{Violation, ViolationKind};
use super::site::Site;

/// One limit.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Limit {
    pub(super) name: String,
    /// The spellings that show it, each by itself; none if a request shows it however it is spelled.
    #[serde(default)]
    spellings: Vec<String>,
    /// The kind of violations to which the limit applies: `reached` or `astray`; every kind if absent.
    fault: Option<String>,
    /// Where the limit is, if not everywhere.
    through: Option<Way>,
    /// Whether it also concerns a part that is the whole of its host.
    #[serde(default)]
    of_whole_hosts: bool,
    /// The first cell of its row in the table of `docs/how-to/protect-a-route.md`.
    #[allow(dead_code, reason = "read by the test of the documentation")]
    row: String,
}

/// The parts between which the request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Way {
    /// One for a wildcard or for every host.
    WideHost,
    /// A prefix with less or other protection, below the protected part.
    OtherPrefix,
    /// An older rule for the path that is closed in place of an expression.
    OlderRule,
}

/// Spellings that show no limit by themselves: the credentials or the forwarded address for another rule that serves the
/// request in place of the protected one, another name of a wildcard, the same host again or one of another part, spellings of a host that the Route
/// of a protected rule lists, and spellings of a path that are answered. Behind an element that a limit adds to a path, they go
/// on unanswered.
const HELPERS: [&str; 19] = [
    "address/claimed",
    "credential/of-another",
    "host/below",
    "host/brackets",
    "host/trailing-dot",
    "host/twice",
    "host/two",
    "path/backslash",
    "path/case-of-hex",
    "path/dot",
    "path/double-slash",
    "path/encoded-all",
    "path/encoded-dot",
    "path/encoded-letter",
    "path/encoded-slash",
    "path/nul",
    "path/parameter",
    "path/parameter-alone-before",
    "path/parameter-before",
];

/// The first limit that an attack shows, if the list explains all of the spellings that the attack needs.
pub(super) fn known<'l>(
    limits: &'l [Limit],
    site: &Site,
    attack: &Attack,
    violation: &Violation,
    service: &str,
) -> Option<&'l Limit> {
    let names = attack.names();
    let shows = |limit: &Limit, name: &str| limit.spellings.iter().any(|own| own == name);
    // A request that goes by a wide host may choose among the rules for that host by its path.
    let is_elsewhere = limits.iter().any(|limit| {
        limit.through == Some(Way::WideHost)
            && limit.is_there(site, violation, service)
            && names.iter().any(|name| shows(limit, name))
    });
    let is_whole = site.parts[violation.part].path.is_whole() && !is_elsewhere;
    let there: Vec<&Limit> = limits
        .iter()
        .filter(|limit| limit.is_there(site, violation, service) && (limit.of_whole_hosts || !is_whole))
        .collect();
    if let Some(limit) = there.iter().find(|limit| limit.spellings.is_empty()) {
        return Some(limit);
    }
    let explains = |name: &str| there.iter().find(|limit| shows(limit, name)).copied();
    let found: Vec<(bool, Option<&Limit>)> =
        names.iter().map(|name| (HELPERS.contains(name), explains(name))).collect();
    let is_known = found.iter().all(|(helps, limit)| *helps || limit.is_some());
    found.into_iter().filter(|_| is_known).find_map(|(_, limit)| limit)
}

/// The list.
pub(super) fn limits() -> Vec<Limit> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contract/hostile/limits.yaml");
    serde_saphyr::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

impl Limit {
    /// Whether the limit may be what a violation shows.
    fn is_there(&self, site: &Site, violation: &Violation, service: &str) -> bool {
        let kind = match violation.kind {
            ViolationKind::Reached => "reached",
            ViolationKind::Astray => "astray",
        };
        let is_way = match self.through {
            None => true,
            Some(Way::WideHost) => site.is_wide(service),
            Some(Way::OtherPrefix) => site.has_other_prefix(violation.part),
            Some(Way::OlderRule) => site.is_closed_too_late(violation.part),
        };
        is_way && self.fault.as_ref().is_none_or(|own| own == kind)
    }
}
