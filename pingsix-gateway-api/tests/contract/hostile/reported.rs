//! A request that got further than it may, with all that it takes to see that again.

use std::fmt;

use super::attack::{Attack, Draft};
use super::bench::Exchange;
use super::judge::Violation;
use super::site::Site;

pub(super) struct ReportedViolation {
    pub(super) seen: usize,
    pub(super) place: String,
    text: String,
}

impl ReportedViolation {
    /// The key of violations of one kind.
    pub(super) fn key(site: &Site, attack: &Attack, violation: &Violation) -> String {
        let part = &site.parts[violation.part];
        let whole = if part.path.is_whole() { ", the whole host" } else { "" };
        format!("{:?}: {:?}{whole}", attack.names(), violation.kind)
    }

    pub(super) fn new(said: &str, site: &Site, attack: &Attack, exchange: &Exchange) -> Self {
        Self::of(&format!("{said}\n{:?}", attack.spellings), site, &attack.draft(site), exchange, attack.part)
    }

    pub(super) fn of_control(site: &Site, draft: &Draft, exchange: &Exchange, part: usize) -> Self {
        Self::of("", site, draft, exchange, part)
    }

    fn of(said: &str, site: &Site, draft: &Draft, exchange: &Exchange, part: usize) -> Self {
        let documents = site.manifests().into_iter().map(|object| serde_saphyr::to_string(&object).unwrap());
        let manifests = documents.collect::<Vec<_>>().join("---\n");
        let part = &site.parts[part];
        let answer = exchange.reply.as_ref().map(|reply| reply.status);
        Self {
            seen: 1,
            place: String::new(),
            text: format!(
                "{said}\n  part {} {:?} {:?} demands {:?}\n  {:?} from {} for {:?}{}\n  {}\n  answer {answer:?}, \
                 the backend got {:?}\n{manifests}",
                part.name,
                part.hosts,
                part.path,
                part.demands,
                draft.protocol,
                draft.peer,
                draft.visitor,
                if draft.mapped { ", on an IPv6 socket" } else { "" },
                exchange.message.shown(),
                exchange.received,
            ),
        }
    }
}

impl fmt::Display for ReportedViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seen {} times, first with {}\n{}", self.seen, self.place, self.text)
    }
}
