//! Whether a report, or the findings of a class, explain an answer that differs from that of the original.

use serde_json::Value;

use super::ingresses::{self, PATHS};
use super::served::Said;
use crate::answer::{Answer, Request};
use crate::original::Told;
use crate::report::Place;

/// An answer of a way, beside that of the original.
pub(super) struct Compared<'a> {
    pub(super) objects: &'a [Value],
    pub(super) request: &'a Request,
    pub(super) told: &'a Told,
    pub(super) answer: &'a Answer,
    /// The paths behind the answer.
    pub(super) places: &'a [Place],
}

impl Compared<'_> {
    /// The path, or the Ingress, behind the answer of the original.
    pub(super) fn before(&self) -> Option<Place> {
        let mut words = self.told.by.as_ref()?.split(' ');
        let object = words.by_ref().take(2).collect::<Vec<_>>().join(" ");
        Some(Place { object: object.into(), field: words.next().unwrap_or_default().to_owned() })
    }

    /// The sentence about an Ingress that decides in either world, and about its path or the difference.
    pub(super) fn explanation<'s>(&self, said: &'s [Said]) -> Option<&'s Said> {
        let deciding: Vec<Place> = self.before().into_iter().chain(self.places.iter().cloned()).collect();
        said.iter().find(|one| {
            let mut own = deciding.iter().filter(|decided| decided.object == one.place.object);
            own.any(|decided| self.concerns(one, decided))
                || self.is_of_canary(one)
                || self.is_of_alias(one)
                || self.is_of_host(one)
                || (deciding.is_empty() && self.has_no_listener() && one.reason == "NotWritten")
        })
    }

    /// Whether a sentence about an Ingress that decides concerns the request.
    fn concerns(&self, said: &Said, decided: &Place) -> bool {
        let field = said.place.field.as_str();
        if let Some(annotation) = annotation_of(field) {
            return self.may_change(annotation);
        }
        if field.starts_with("spec.tls") {
            return self.request.https || self.has_redirect();
        }
        let Some((rule, rest)) = field.split_once(PATHS) else {
            return match said.reason.as_str() {
                "DifferentMatch" => self.has_several_labels(decided),
                "DifferentScope" => self.told.is_fallback || self.has_redirect(),
                _ => true,
            };
        };
        let path = format!("{rule}{PATHS}{}]", rest.split(']').next().unwrap_or_default());
        let is_slash = said.reason == "DifferentAnswer";
        (decided.field.starts_with(&path) || !decided.field.contains(PATHS))
            && (!is_slash || self.lacks_slash(&said.place))
    }

    /// Whether an annotation may be the cause of the difference. Others are for connections, counts and scripts.
    fn may_change(&self, annotation: &str) -> bool {
        match annotation {
            "app-root"
            | "force-ssl-redirect"
            | "from-to-www-redirect"
            | "http-redirect"
            | "http-redirect-code"
            | "http-to-https"
            | "permanent-redirect"
            | "permanent-redirect-code"
            | "ssl-redirect"
            | "temporal-redirect" => self.has_redirect(),
            "allowlist-source-range"
            | "auth-secret"
            | "auth-type"
            | "blocklist-source-range"
            | "denylist-source-range"
            | "http-allow-methods"
            | "http-block-methods"
            | "whitelist-source-range" => self.has_refusal(),
            // The path of a canary decides.
            "canary"
            | "rewrite-target"
            | "rewrite-target-regex"
            | "rewrite-target-regex-template"
            | "svc-namespace"
            | "use-regex" => true,
            _ => false,
        }
    }

    fn answers(&self) -> [&Answer; 2] {
        [&self.told.answer, self.answer]
    }

    fn has_redirect(&self) -> bool {
        self.answers().iter().any(|answer| matches!(answer, Answer::Redirect { .. }))
    }

    /// Whether a client is refused in one world, or other clients than before.
    fn has_refusal(&self) -> bool {
        match self.answers() {
            [Answer::Backends { checks: before, .. }, Answer::Backends { checks: after, .. }] => {
                before != after
            }
            answers => {
                answers.iter().any(|answer| matches!(answer, Answer::Status(401 | 403 | 405 | 500 | 503)))
            }
        }
    }

    /// Whether a wildcard of the path that decides, or of an Ingress as a whole, stands for several labels of the host.
    pub(super) fn has_several_labels(&self, decided: &Place) -> bool {
        let Some(ingress) = ingresses::at(self.objects, decided) else { return false };
        let own = ingress.host_at(&decided.field);
        let all = ingress.hosts().filter(|_| own.is_none());
        own.into_iter().chain(all).any(|host| {
            let domain = host.strip_prefix('*');
            let labels = domain.and_then(|domain| self.request.host.strip_suffix(domain));
            labels.is_some_and(|labels| labels.contains('.'))
        })
    }

    /// Whether the request is for a path without the slash at its end.
    pub(super) fn lacks_slash(&self, place: &Place) -> bool {
        let path = ingresses::at(self.objects, place).and_then(|ingress| ingress.path_at(&place.field));
        let without = path.and_then(|path| path.text.strip_suffix('/')).filter(|without| !without.is_empty());
        without == Some(self.request.path.as_str())
    }

    /// Whether a sentence is about a canary whose Service has another share than before.
    fn is_of_canary(&self, said: &Said) -> bool {
        let canary = ingresses::at(self.objects, &said.place).filter(|ingress| ingress.is_canary());
        let mut services = canary.into_iter().flat_map(|canary| canary.paths().map(|path| path.service));
        services.any(|service| self.is_other_share(service))
    }

    /// Whether a Service has another share of the requests than before.
    pub(super) fn is_other_share(&self, service: &str) -> bool {
        let [before, after] = self.answers().map(|answer| share(answer, service));
        before != after
    }

    /// Whether a sentence is about the alias that the request is for.
    fn is_of_alias(&self, said: &Said) -> bool {
        let ingress = ingresses::at(self.objects, &said.place);
        annotation_of(&said.place.field) == Some("server-alias")
            && ingress.is_some_and(|ingress| ingress.has_alias(&self.request.host))
    }

    /// Whether a sentence is about the requests for a host that no path takes.
    fn is_of_host(&self, said: &Said) -> bool {
        let around = self.request.host.split_once('.').map(|(_, domain)| format!("*.{domain}"));
        let is_own = |host: &str| host == self.request.host || Some(host) == around.as_deref();
        let ingress = ingresses::at(self.objects, &said.place);
        self.told.is_fallback
            && said.reason == "DifferentScope"
            && ingress.is_some_and(|ingress| ingress.hosts().any(is_own))
    }

    /// Without any rule, a Gateway has no listener, and connections are closed instead of answered with 404.
    fn has_no_listener(&self) -> bool {
        self.told.answer == Answer::Status(404) && *self.answer == Answer::Closed
    }
}

/// The name of the annotation at a field.
fn annotation_of(field: &str) -> Option<&str> {
    field.strip_prefix("metadata.annotations[")?.trim_end_matches(']').rsplit('/').next()
}

/// The share of a Service in ten thousand.
fn share(answer: &Answer, service: &str) -> u64 {
    let Answer::Backends { backends, .. } = answer else { return 0 };
    let all: u64 = backends.values().sum();
    let own = backends.iter().filter(|(backend, _)| *backend.service.name == *service);
    own.map(|(_, share)| share).sum::<u64>() * 10_000 / all.max(1)
}
