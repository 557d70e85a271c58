//! Answers of a class that differ from those of the original by design: one predicate for each difference that
//! `docs/reference/annotations.md` and `docs/reference/mapping.md` name.

use super::explained::Compared;
use super::generate::Dialect;
use super::ingresses::{self, Ingress, Path};
use crate::answer::Answer;
use crate::report::Place;

/// A path that decides, with its Ingress.
struct Decision<'a> {
    ingress: Ingress<'a>,
    host: Option<&'a str>,
    path: Option<Path<'a>>,
}

impl<'a> Decision<'a> {
    fn of(compared: &Compared<'a>, place: &Place) -> Option<Self> {
        let ingress = ingresses::at(compared.objects, place)?;
        let (host, path) = (ingress.host_at(&place.field), ingress.path_at(&place.field));
        Some(Self { ingress, host, path })
    }

    /// The path, or all paths of the host if the host decides as a whole.
    fn paths(&self) -> impl Iterator<Item = Path<'a>> {
        let (host, path) = (self.host, self.path);
        let of_host = self.ingress.paths().filter(move |one| path.is_none() && Some(one.host) == host);
        path.into_iter().chain(of_host)
    }
}

/// Whether paths have one host, text and type.
fn is_alike(one: Path<'_>, other: Path<'_>) -> bool {
    one.host == other.host && one.text == other.text && one.is_exact() == other.is_exact()
}

/// The decisions in both worlds.
struct Case<'a> {
    compared: &'a Compared<'a>,
    before: Option<Decision<'a>>,
    after: Option<Decision<'a>>,
}

/// The documented difference behind an answer of a class.
pub(super) fn difference(compared: &Compared<'_>, dialect: Dialect) -> Option<&'static str> {
    let before = compared.before().and_then(|place| Decision::of(compared, &place));
    let after = compared.places.iter().find_map(|place| Decision::of(compared, place));
    let case = Case { compared, before, after };
    let slash = ("a prefix with a slash at its end takes the path without the slash", case.lacks_slash());
    let differences = match dialect {
        Dialect::Nginx => vec![
            ("a wildcard stands for one label or more", case.has_several_labels()),
            ("a request that no path of its host matches falls to wider hosts", case.is_of_wider_host()),
            ("upper and lower case differ", case.is_regular() && case.has_capitals()),
            ("each Ingress decides for its own paths", case.is_regular_by_another()),
            ("the exact path / beside regular expressions has its requests", case.is_exact_root()),
            ("the path with the longer literal prefix has the request", case.is_longer_text()),
            slash,
            ("an Ingress without annotations is not redirected to HTTPS", case.is_unannotated()),
            ("a host has a certificate if any Ingress lists the host", case.is_listed()),
            ("a canary has no share of other paths with the Service", case.is_of_canary()),
            ("a Service may be that of a canary and of another Ingress at once", case.is_of_both()),
            ("of equally old Ingresses, the first by name counts", case.is_equally_old()),
        ],
        Dialect::Apisix => {
            vec![("a path of the type ImplementationSpecific is a prefix", case.is_below_path()), slash]
        }
    };
    differences.into_iter().find(|(_, is_it)| *is_it).map(|(words, _)| words)
}

impl<'a> Case<'a> {
    fn ingresses(&self) -> impl Iterator<Item = Ingress<'a>> {
        ingresses::of(self.compared.objects)
    }

    fn decisions(&self) -> impl Iterator<Item = &Decision<'a>> {
        self.before.iter().chain(&self.after)
    }

    fn paths(&self) -> impl Iterator<Item = Path<'a>> {
        self.decisions().filter_map(|decision| decision.path)
    }

    /// Ingresses with locations of their own.
    fn mains(&self) -> impl Iterator<Item = Ingress<'a>> {
        self.ingresses().filter(|ingress| !ingress.is_canary())
    }

    /// The host whose server has the request in ingress-nginx; empty for the one of all other hosts.
    fn server(&self) -> &'a str {
        let host = self.compared.request.host.as_str();
        let around = host.split_once('.').map(|(_, domain)| format!("*.{domain}")).unwrap_or_default();
        let hosts = || self.mains().flat_map(Ingress::hosts);
        let name = |host: &&'a str| if host.is_empty() { "_" } else { *host };
        let with_alias = || self.mains().filter(|main| main.has_alias(host));
        let alias = || with_alias().flat_map(Ingress::hosts).min_by_key(name);
        hosts()
            .find(|own| *own == host)
            .or_else(alias)
            .or_else(|| hosts().find(|own| *own == around))
            .unwrap_or_default()
    }

    /// Whether ingress-nginx reads the paths of the host as regular expressions.
    fn is_regular(&self) -> bool {
        let server = self.server();
        self.mains().any(|main| {
            let target = main.annotation("rewrite-target");
            let asks = |text: &str| {
                main.annotation("use-regex") == Some("true") || target.is_some_and(|target| target != text)
            };
            let mut own = main.paths().filter(|path| path.host == server).map(|path| path.text);
            main.hosts().any(|host| host == server) && (asks("/") || own.any(asks))
        })
    }

    fn has_capitals(&self) -> bool {
        self.compared.request.path.contains(|letter: char| letter.is_ascii_uppercase())
    }

    fn has_several_labels(&self) -> bool {
        self.compared.places.iter().any(|place| self.compared.has_several_labels(place))
    }

    /// No path of the server takes the request in ingress-nginx, and a rule for more hosts does here.
    fn is_of_wider_host(&self) -> bool {
        let host = self.after.as_ref().and_then(|after| after.host);
        let is_wide = |host: &str| host.is_empty() || host.starts_with('*');
        self.compared.told.is_fallback && host.is_some_and(|host| is_wide(host) && host != self.server())
    }

    fn is_regular_by_another(&self) -> bool {
        self.is_regular() && self.decisions().any(|decision| !decision.ingress.has_patterns())
    }

    fn is_exact_root(&self) -> bool {
        let path = self.after.as_ref().and_then(|after| after.path);
        self.is_regular() && path.is_some_and(|path| path.text == "/" && path.is_exact())
    }

    fn is_longer_text(&self) -> bool {
        let [before, after] = [&self.before, &self.after].map(|one| one.as_ref().and_then(|one| one.path));
        let (Some(before), Some(after)) = (before, after) else { return false };
        self.is_regular() && before != after && before.text.len() >= after.text.len()
    }

    fn lacks_slash(&self) -> bool {
        let mut places = self.compared.before().into_iter().chain(self.compared.places.iter().cloned());
        places.any(|place| self.compared.lacks_slash(&place))
    }

    fn is_unannotated(&self) -> bool {
        let is_own =
            |location: &str| location.starts_with(&format!("https://{}", self.compared.request.host));
        let is_redirected = matches!(&self.compared.told.answer, Answer::Redirect { status: 308, location } if is_own(location));
        let before = self.before.as_ref();
        is_redirected && before.is_some_and(|before| !before.ingress.has_annotations())
    }

    /// The class redirects the host, and no Ingress with rules for the host has a certificate.
    fn is_listed(&self) -> bool {
        let server = self.server();
        let is_redirected = matches!(self.compared.answer, Answer::Redirect { status: 308, .. });
        let has_tls =
            |main: Ingress<'_>| main.tls_hosts().next().is_some() && main.hosts().any(|host| host == server);
        is_redirected
            && self.ingresses().any(|one| one.tls_hosts().next().is_some())
            && !self.mains().any(has_tls)
    }

    fn canaries(&self) -> impl Iterator<Item = Ingress<'a>> {
        self.ingresses().filter(|ingress| ingress.is_canary())
    }

    /// Whether another path with the Service has a canary, or a path of a canary is not that of the request.
    fn is_of_canary(&self) -> bool {
        let is_share = |answer: &Answer| matches!(answer, Answer::Backends { .. });
        let has_share = is_share(&self.compared.told.answer) && is_share(self.compared.answer);
        let is_divided = |path: Path<'a>| {
            let same = self.mains().flat_map(Ingress::paths);
            let mut same = same.filter(|other| (other.service, other.port) == (path.service, path.port));
            same.any(|other| {
                other != path && self.canaries().flat_map(Ingress::paths).any(|one| is_alike(one, other))
            })
        };
        has_share && self.paths().any(is_divided)
    }

    /// Whether a path of a rule that decides, or a share, is one of a Service of a canary and of another Ingress, or is the path
    /// of the canary.
    fn is_of_both(&self) -> bool {
        let mut of_canaries = self.canaries().flat_map(Ingress::paths);
        let decided = || self.decisions().flat_map(Decision::paths);
        of_canaries.any(|canary| {
            let is_same = |path: Path<'_>| (path.service, path.port) == (canary.service, canary.port);
            let is_other_share = self.compared.is_other_share(canary.service);
            self.mains().flat_map(Ingress::paths).any(is_same)
                && (is_other_share || decided().any(|path| is_same(path) || is_alike(path, canary)))
        })
    }

    fn is_equally_old(&self) -> bool {
        let is_pair = |one: Ingress<'_>, other: Ingress<'_>| {
            one.name() != other.name() && one.created() == other.created()
        };
        let of_paths = match (&self.before, &self.after) {
            (Some(before), Some(after)) => {
                let has_one = before.path.zip(after.path).is_some_and(|(one, other)| {
                    (one.host, one.text, one.is_exact()) == (other.host, other.text, other.is_exact())
                });
                has_one && is_pair(before.ingress, after.ingress)
            }
            _ => false,
        };
        // The oldest Ingress of a host decides about requests that no path takes.
        let server = self.server();
        let of_server = || self.mains().filter(|main| main.hosts().any(|host| host == server));
        let of_host = || of_server().any(|one| of_server().any(|other| is_pair(one, other)));
        let of_canaries = || self.canaries().any(|one| self.canaries().any(|other| is_pair(one, other)));
        of_paths || (self.compared.told.is_fallback && of_host()) || of_canaries()
    }

    fn is_below_path(&self) -> bool {
        let path = self.after.as_ref().and_then(|after| after.path);
        path.is_some_and(|path| {
            path.kind == "ImplementationSpecific" && path.text != self.compared.request.path
        })
    }
}
