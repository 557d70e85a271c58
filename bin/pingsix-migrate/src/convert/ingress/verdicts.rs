//! A verdict on each annotation of an Ingress.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::annotations::{
    self, AnnotationProblem, DirectiveOfSnippet, IGNORED_ANNOTATIONS, Purpose, Support,
};
use pingsix_translate::{Kind, ObjectKey, ObjectName, read_custom_headers};
use serde_json::Value;

use super::annotated::{Annotated, PathEntry};
use super::chosen::{CLASS_ANNOTATION, is_foreign, is_unread, loss_without};
use super::dialect::{Dialect, PASSTHROUGH};
use super::plugin_annotations::is_plugin;
use super::{exposure, hosts, plugins};
use crate::convert::{Draft, ownership};
use crate::plugin::networks;
use crate::report::{Place, Reason, Report};
use crate::source::{Sources, list};

/// The annotations that a canary has of its own in ingress-nginx.
const OF_CANARIES: [&str; 2] = ["load-balance", "upstream-hash-by"];

/// The programs whose annotations count for Ingresses and for Gateways.
const COMPANIONS: [&str; 2] = ["cert-manager.io", "external-dns.alpha.kubernetes.io"];

/// The policies of the input for each Ingress. They lose their target once the Ingress goes.
pub(super) fn policies_of_ingresses(sources: &Sources) -> BTreeMap<ObjectName, Vec<&ObjectKey>> {
    let mut all: BTreeMap<ObjectName, Vec<&ObjectKey>> = BTreeMap::new();
    for (key, policy) in
        [Kind::SecurityPolicy, Kind::TrafficPolicy].into_iter().flat_map(|kind| sources.kept_of(kind))
    {
        for target in list(policy, "/spec/targetRefs") {
            let text = |field: &str| target.get(field).and_then(Value::as_str).unwrap_or_default();
            if text("kind") == Kind::Ingress.as_str() {
                let ingress = ObjectName::new(key.name.namespace.clone(), text("name"));
                all.entry(ingress).or_default().push(key);
            }
        }
    }
    all
}

/// Reports on each annotation, and closes the Ingress if its protection would be lost. `policies` are those of the input for it.
pub(super) fn judge(ingress: &mut Annotated, policies: &[&ObjectKey], draft: &mut Draft<'_>) {
    let context = draft.context;
    let before = draft.report.losses();
    let is_canary = ingress.read.canary.is_some();
    let keeps = context.choices.keep_ingress;
    if !ingress.is_bypassed && !is_canary {
        users(ingress, context.sources, draft.report);
    }
    let given_up = annotations::ignored(&ingress.annotations);
    let names: Vec<(&String, &String)> = ingress.annotations.iter().collect();
    let mut problems: Problems<'_> = BTreeMap::new();
    for problem in ingress.read.problems() {
        problems.entry(problem.annotation.as_deref().unwrap_or_default()).or_default().push(problem);
    }
    for (name, value) in names {
        let at = ingress.at(name);
        let report = &mut *draft.report;
        match name.split_once('/') {
            Some((domain, short)) if domain == ingress.dialect.domain() => {
                if given_up.contains(name.as_str()) || given_up.contains(short) {
                    report.limited(
                        &at,
                        Reason::NoEffect,
                        format!("The Ingress gives the annotation up in {IGNORED_ANNOTATIONS}."),
                    );
                } else if ingress.is_bypassed && !is_of_host(ingress, short) {
                    let message = "TLS passes through, and plaintext is redirected, so no request depends on the annotation.";
                    report.exact(&at, message);
                } else if is_canary && OF_CANARIES.contains(&short) {
                    let message = "The canary has the setting of the Ingress whose requests it takes, and ingress-nginx lets \
                                   it have its own.";
                    report.limited(&at, Reason::NoEffect, message);
                } else if is_canary && !short.starts_with("canary") {
                    report.exact(&at, "A canary has the annotations of the Ingress whose requests it takes.");
                } else {
                    of_dialect(ingress, (short, value), &problems, (&at, keeps), report);
                }
            }
            _ if name == CLASS_ANNOTATION => {}
            _ if name == IGNORED_ANNOTATIONS => {
                report.exact(&at, "The annotations that it names are left out.");
            }
            // The report names these once for all copies.
            _ if keeps && ownership::is_owned(name) => {
                report.exact(&at, "The annotation stays with the original of the copy.");
            }
            _ if is_foreign(name) => report.blocking(&at, Reason::ForeignAnnotation, loss_without(name)),
            _ if is_unread(name) => {
                let Dialect { name: controller, .. } = ingress.dialect;
                let message = format!(
                    "{controller} reads annotations of {} alone, so this one has no effect there either.",
                    ingress.dialect.domain()
                );
                report.exact(&at, message);
            }
            Some((domain, _)) if COMPANIONS.contains(&domain) && !keeps => {
                let message = "The other program reads the annotation from Gateways, too. Give it to the Gateway before the Ingress goes.";
                report.limited(&at, Reason::ForeignAnnotation, message);
            }
            _ if ownership::is_owned(name) => {
                report.exact(
                    &at,
                    "The annotation belongs to a tool that writes the Ingress, and no route needs it.",
                );
            }
            _ => report.limited(
                &at,
                Reason::ForeignAnnotation,
                "The annotation is not one of the controller, and no route needs it.",
            ),
        }
    }
    if ingress.is_bypassed {
        refuse_policies(ingress, policies, draft.report);
    } else if !is_canary {
        if !keeps {
            plugins::convert(ingress, draft);
        }
        networks_of(ingress, draft.report);
        refuse_policies(ingress, policies, draft.report);
        if !keeps {
            custom_headers(ingress, context.sources, draft.report);
        }
    }
    if draft.report.losses() > before && !ingress.may_be_weaker {
        ingress.is_closed = true;
    }
    if ingress.is_closed {
        let object = ingress.place.object.replacen(' ', "/", 1);
        let without = "writes it without the parts that are impossible";
        let (message, consequence) = if is_canary {
            ("The canary is not understood, so it gets no requests.", without)
        } else if closing(ingress).iter().all(|name| is_redirect(name)) && ingress.read.is_closed() {
            let message = "The Ingress redirects in a way that PingSIX lacks. All of its paths answer 503.";
            (message, "serves its backends instead")
        } else {
            let message = "The Ingress is protected, or may be, in a way that PingSIX lacks. All of its paths answer 503.";
            (message, without)
        };
        draft.report.withhold(&ingress.place, format!("{message} --allow-weaker {object} {consequence}."));
    }
}

/// Whether an annotation redirects requests to a URL.
fn is_redirect(name: &str) -> bool {
    name.ends_with("-redirect") || name.ends_with("/rewrite-target")
}

/// Whether an annotation says which hosts there are, and what becomes of their connections.
fn is_of_host(ingress: &Annotated, name: &str) -> bool {
    let redirects = [ingress.dialect.to_https].into_iter().chain(ingress.dialect.to_https_by_default);
    [PASSTHROUGH, hosts::ALIAS, hosts::WWW].into_iter().chain(redirects).any(|known| known == name)
}

/// Policies of the input for the Ingress would lose their target.
fn refuse_policies(ingress: &Annotated, policies: &[&ObjectKey], report: &mut Report) {
    for policy in policies {
        let message = format!("{policy} is for the Ingress, and has no target once the Ingress goes.");
        report.blocking(&ingress.place, Reason::LostReferent, message);
    }
}

/// The problems of annotations by their whole names.
type Problems<'a> = BTreeMap<&'a str, Vec<&'a AnnotationProblem>>;

/// The verdict on an annotation of the Ingress's controller.
fn of_dialect(
    ingress: &Annotated,
    (name, value): (&str, &str),
    problems: &Problems<'_>,
    (at, keeps): (&Place, bool),
    report: &mut Report,
) {
    let dialect = ingress.dialect;
    if name == PASSTHROUGH && ingress.passes_tls() {
        return;
    }
    if is_plugin(dialect, name) && !keeps {
        plugin(ingress, name, at, report);
        return;
    }
    if name == RESPONSE_STATUS && ingress.read.response_status.is_some() && !keeps {
        let message =
            "No filter of an HTTPRoute changes the status of a response. Responses of backends keep theirs.";
        return report.impossible(at, Reason::UnsupportedAnnotation, message);
    }
    let whole = dialect.whole_name(name);
    let depends_on_others = dialect.is_setting(name) || name == dialect.to_https || name == hosts::ALIAS;
    let lines: Vec<&DirectiveOfSnippet> =
        ingress.read.directives.iter().filter(|line| line.annotation == name).collect();
    let has_lines = !lines.is_empty() && !ingress.read.is_closed();
    for DirectiveOfSnippet { sentence, is_exact, .. } in lines.iter().filter(|_| has_lines) {
        if *is_exact {
            report.exact(at, sentence.as_str());
        } else {
            report.limited(at, Reason::Snippet, sentence.as_str());
        }
    }
    let is_line = |problem: &AnnotationProblem| lines.iter().any(|line| line.sentence == problem.message);
    let own = problems.get(whole.as_str()).into_iter().flatten().copied();
    let problems: Vec<&AnnotationProblem> = own.filter(|problem| !is_line(problem)).collect();
    let known = annotations::annotation(dialect.annotations, name);
    for AnnotationProblem { purpose, message, is_honoured, is_ignored, .. } in &problems {
        let reason = reason_of_problem(known, name, *is_honoured);
        match purpose {
            _ if *is_ignored => {
                let Dialect { name: controller, .. } = dialect;
                report.limited(at, Reason::NoEffect, format!("{message} {controller} ignores it, too."));
            }
            _ if *is_honoured && depends_on_others && !keeps => {}
            _ if *is_honoured => report.limited(at, reason, message.as_str()),
            Purpose::Protects => {
                let effect = if reason == Reason::UnsupportedRewrite {
                    "No backend gets the requests instead."
                } else {
                    "The annotation protects the Ingress."
                };
                report.blocking(at, reason, format!("{message} {effect}"));
            }
            Purpose::Tunes => {
                report.impossible(at, reason, format!("{message} Requests are served without it."));
            }
        }
    }
    let Some(known) = known else { return };
    // Others report on these, because their verdict depends on more than the value.
    let is_checked = dialect.is_range(name)
        || (name == "auth-secret" && ingress.read.security.basic_auth.is_some())
        || (dialect.is_setting(name) && !keeps)
        || (name == CUSTOM_HEADERS && ingress.read.custom_headers.is_some() && !keeps)
        || (name == hosts::WWW && !ingress.more_hosts().redirects.is_empty() && !keeps)
        || (name == dialect.to_https && ingress.read.https.without_tls && !keeps)
        || has_lines;
    if !problems.is_empty() || is_checked {
        return;
    }
    let is_redirected = |path: &PathEntry| {
        ingress.read.rewriting.as_ref().is_none_or(|rewriting| rewriting.read(&path.path).is_ok())
    };
    if name == "rewrite-target"
        && ingress.read.redirects()
        && !ingress.paths().map(|(_, path)| path).all(is_redirected)
    {
        let message = "The paths that can be redirected so are; the others have a verdict of their own.";
        return report.limited(at, Reason::UnsupportedRewrite, message);
    }
    if value.trim().is_empty() {
        return report.exact(at, "The value is empty, so the annotation asks for nothing.");
    }
    match known.support {
        Support::NoEffect => report.exact(at, "No answer of PingSIX depends on it."),
        Support::Impossible { .. } => {
            report.exact(at, "The value asks for nothing that PingSIX would do otherwise.");
        }
        Support::Exact | Support::Limited(_) if keeps => {
            honoured(ingress, name, at, "The annotation stays.", report);
        }
        Support::Exact | Support::Limited(_) if name == "default-backend" && !value.is_empty() => {
            let message =
                "Without endpoints, a rule of an HTTPRoute answers 503. Requests are served without it.";
            report.impossible(at, Reason::UnsupportedAnnotation, message);
        }
        Support::Exact | Support::Limited(_) if name == "service-upstream" && ingress.read.by_cluster_ip => {
            let message = "The rules of an HTTPRoute send requests to the endpoints of a Service.";
            report.limited(at, Reason::DifferentConnection, message);
        }
        Support::Exact | Support::Limited(_) => honoured(ingress, name, at, becomes(ingress, name), report),
    }
}

/// The reason of a problem of an annotation.
fn reason_of_problem(known: Option<&annotations::Annotation>, name: &str, is_honoured: bool) -> Reason {
    match known.map(|known| &known.support) {
        _ if name.ends_with("-redirect") && is_honoured => Reason::DifferentAnswer,
        _ if name.ends_with("-redirect") => Reason::UnsupportedRewrite,
        _ if name == "proxy-body-size" => Reason::BodySize,
        _ if name.ends_with("-snippet") => Reason::Snippet,
        None | Some(Support::Impossible { .. }) => Reason::UnsupportedAnnotation,
        Some(Support::Limited(_)) if is_honoured => Reason::Limitation,
        Some(_) => Reason::InvalidValue,
    }
}

/// Reports an annotation that is honoured. One that protects paths is so for the spelling that is written.
fn honoured(ingress: &Annotated, name: &str, at: &Place, message: &str, report: &mut Report) {
    let is_closed = ingress.is_closed || ingress.read.is_closed() || !ingress.lost.is_empty();
    if is_closed && !ingress.may_be_weaker {
        let message = if ingress.read.canary.is_some() {
            "The canary gets no requests, so none depends on the annotation."
        } else {
            "All paths of the Ingress answer 503, so no request depends on the annotation."
        };
        report.exact(at, message);
    } else if ingress.is_exposed && exposure::is_protecting(name) {
        let message = format!("{message} {}", exposure::message(ingress.dialect));
        report.limited(at, Reason::DifferentPath, message);
    } else {
        report.exact(at, message);
    }
}

/// The verdict on an annotation that stands for a plugin, unless the conversion of the plugin has one.
fn plugin(ingress: &Annotated, name: &str, at: &Place, report: &mut Report) {
    let is_converted = match name {
        "enable-csrf" => ingress.own(name) == Some("true"),
        "csrf-key" => ingress.own("enable-csrf") == Some("true"),
        "key-auth-key" | "key-auth-header" | "key-auth-query" => ingress.own("auth-type") == Some("keyAuth"),
        "basic-auth-username" | "basic-auth-password" => ingress.own("auth-type") == Some("basicAuth"),
        _ => true,
    };
    if ingress.own(name).is_none() || !is_converted {
        report.exact(at, "The annotation asks for nothing.");
    }
}

/// Whether no path of the Ingress is rewritten to its target.
fn leaves_paths(ingress: &Annotated) -> bool {
    ingress.read.rewriting.as_ref().is_some_and(|rewriting| {
        ingress
            .paths()
            .all(|(_, path)| rewriting.read(&path.path).is_ok_and(|pattern| pattern.rewrite.is_none()))
    })
}

/// The counterpart of an annotation that is honoured.
fn becomes(ingress: &Annotated, name: &str) -> &'static str {
    match name {
        "rewrite-target" if ingress.read.redirects() => {
            "The annotation becomes requestRedirect of the rules, with status 302."
        }
        "rewrite-target" if leaves_paths(ingress) => {
            "The paths are the target already, so no request is rewritten, as before."
        }
        _ if name.starts_with("rewrite-target") => "The rules of the paths rewrite the path.",
        "use-regex" => "The value asks for nothing.",
        "app-root" => "A rule redirects requests for the root with status 302.",
        "ssl-redirect" | "force-ssl-redirect" if ingress.read.redirects() => {
            "Another annotation redirects all requests before they are redirected to HTTPS."
        }
        "ssl-redirect" if ingress.read.https.with_tls => {
            "Plaintext is redirected to HTTPS with status 308 for hosts with a certificate."
        }
        "ssl-redirect" | "force-ssl-redirect" | "http-to-https" => {
            "The annotation itself redirects nothing to HTTPS."
        }
        "http-allow-methods" => "A rule of their own answers 405 to other methods.",
        "http-block-methods" if ingress.own("http-allow-methods").is_none() => {
            "A rule of their own answers 405 to these methods."
        }
        "http-block-methods" => "Only http-allow-methods counts, as in APISIX.",
        RESPONSE_STATUS => "The Ingress changes no status.",
        _ if name.contains("response-rewrite") => {
            if ingress.read.filters.iter().any(|filter| filter.response_header_modifier.is_some()) {
                "The annotation becomes responseHeaderModifier of the rules."
            } else {
                "The Ingress changes no response."
            }
        }
        "auth-type" | "auth-secret-type" if ingress.read.security.basic_auth.is_some() => {
            "The annotation becomes basicAuth of a SecurityPolicy."
        }
        "auth-type" | "auth-secret" | "auth-secret-type" => "The annotation counts together with others.",
        "satisfy" => "PingSIX demands all of the addresses and credentials that are set.",
        "upstream-vhost" => "The annotation becomes urlRewrite.hostname of the rules.",
        "x-forwarded-prefix" if ingress.own("rewrite-target").is_none() => {
            "ingress-nginx sends the header beside rewrite-target alone, so it is not sent."
        }
        "x-forwarded-prefix" => "The annotation becomes requestHeaderModifier of the rules.",
        "limit-rps" | "limit-rpm" | "proxy-body-size" => "The value is no limit.",
        "service-upstream" => "Requests go to the endpoints of the Services.",
        _ if name.starts_with("canary") && ingress.read.canary.is_none() => "The Ingress is no canary.",
        _ if name.starts_with("canary") => "The HTTPRoute of the Ingress with the same paths has the share.",
        _ if name.ends_with("cors") || name.starts_with("cors-") => {
            if ingress.read.security.cors.is_some() {
                "The annotation becomes cors of a SecurityPolicy."
            } else {
                "The Ingress allows no scripts of other origins."
            }
        }
        hosts::WWW => "The annotation redirects no host.",
        hosts::ALIAS => "The annotation has no alias.",
        _ if name.ends_with("-redirect-code") && !ingress.read.redirects() => {
            "The Ingress redirects no requests."
        }
        _ if name.ends_with("-redirect-code") => {
            "The annotation becomes requestRedirect.statusCode of the rules."
        }
        _ if name.ends_with("-redirect") => "The annotation becomes requestRedirect of the rules.",
        _ => "The annotation has a counterpart in the rules or policies.",
    }
}

/// Reports the lists of networks. The policy has the readable networks, and an annotation with another entry has a
/// problem.
fn networks_of(ingress: &mut Annotated, report: &mut Report) {
    let Some(mut authorization) = ingress.read.security.authorization.take() else { return };
    let names = ingress.dialect.allow.iter().chain(std::iter::once(&ingress.dialect.deny));
    for name in names.filter(|name| ingress.own(name).is_some()) {
        let whole = ingress.dialect.whole_name(name);
        if !ingress.read.problems().iter().any(|problem| problem.annotation.as_ref() == Some(&whole)) {
            let message = if ingress.read.redirects() && ingress.is_of_nginx() {
                "All requests are redirected before the addresses of clients are compared."
            } else {
                "The annotation becomes authorization of a SecurityPolicy: other clients get 403."
            };
            honoured(ingress, name, &ingress.at_own(name), message, report);
        }
    }
    for list in [&mut authorization.allow, &mut authorization.deny] {
        let texts = list.iter().map(|text| (ingress.place.clone(), text.clone())).collect();
        *list = networks(texts, &mut Report::default());
    }
    ingress.read.security.authorization = Some(authorization);
}

/// Checks the Secret with the users: PingSIX knows one user, and no file of htpasswd.
fn users(ingress: &mut Annotated, sources: &Sources, report: &mut Report) {
    let Some(basic) = &ingress.read.security.basic_auth else { return };
    let name = basic.secret_ref.name.as_str();
    let at = ingress.at_own("auth-secret");
    let key = ObjectKey::new(Kind::Secret, ingress.namespace(), name);
    let Some(secret) = sources.kept.get(&key) else {
        let message = format!("The input has no {key}. Its type has to be {BASIC_AUTH}, with one user.");
        return report.limited(&at, Reason::MissingReferent, message);
    };
    if secret.get("type").and_then(Value::as_str) == Some(BASIC_AUTH) {
        let message = "The annotation becomes basicAuth of a SecurityPolicy.";
        let entries = sources.secret(&key.name).unwrap_or_default();
        match other_users(ingress, &entries) {
            None => honoured(ingress, "auth-secret", &at, message, report),
            Some(difference) => {
                report.limited(&at, Reason::DifferentAnswer, format!("{message} {difference}"));
            }
        }
        return;
    }
    let message = format!(
        "{key} is a file of htpasswd, and PingSIX compares one user and password, of a Secret of type {BASIC_AUTH}."
    );
    let message = format!("{message} The annotation protects the Ingress.");
    report.blocking(&at, Reason::UnsuitableReferent, message);
    ingress.lost.insert(ingress.dialect.whole_name("auth-secret"));
    ingress.read.security.basic_auth = None;
}

/// The difference between the users that ingress-nginx reads in a Secret and its one user for PingSIX
/// (`annotations/auth/main.go`).
fn other_users(ingress: &Annotated, entries: &BTreeMap<String, Vec<u8>>) -> Option<&'static str> {
    if ingress.own("auth-secret-type") == Some("auth-map") {
        return Some(
            "ingress-nginx takes each key of the Secret for a user, and PingSIX admits the one of username.",
        );
    }
    let Some(file) = entries.get("auth") else {
        return Some(
            "ingress-nginx answers 503, because the Secret has no key auth, and PingSIX admits its user.",
        );
    };
    let file = String::from_utf8_lossy(file);
    let lines = file.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut users = lines.map(|line| line.split(':').next().unwrap_or_default().as_bytes());
    let is_same = users.next() == entries.get("username").map(Vec::as_slice) && users.next().is_none();
    (!is_same)
        .then_some("ingress-nginx admits the users of the key auth, and PingSIX the one of username alone.")
}

/// The annotation with the status of the responses of backends.
const RESPONSE_STATUS: &str = "response-rewrite-status-code";

/// The annotation with a ConfigMap of response headers.
const CUSTOM_HEADERS: &str = "custom-headers";

/// Adds the headers of a ConfigMap to the filters of all rules.
fn custom_headers(ingress: &mut Annotated, sources: &Sources, report: &mut Report) {
    let Some(name) = &ingress.read.custom_headers else { return };
    let at = ingress.at_own(CUSTOM_HEADERS);
    if *name.namespace != *ingress.namespace() {
        let message = "The ConfigMap is not in the namespace of the Ingress. Its headers are not set.";
        return report.impossible(&at, Reason::UnsuitableReferent, message);
    }
    let key = ObjectKey { kind: Kind::ConfigMap, name: name.clone() };
    let Some(config_map) = sources.kept.get(&key) else {
        let message = format!("The input has no {key}, so its headers are not set. Give it, too.");
        return report.impossible(&at, Reason::MissingReferent, message);
    };
    let data = config_map.get("data").and_then(Value::as_object);
    let texts = data
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    let mut problems = Vec::new();
    let filter = read_custom_headers(&texts.collect(), &mut problems);
    for problem in problems {
        report.impossible(&at, Reason::UnsuitableReferent, problem);
    }
    if let Some(filter) = filter {
        report.exact(&at, "The headers become responseHeaderModifier of the rules.");
        ingress.read.add_filter(filter);
    } else {
        report.limited(&at, Reason::NoEffect, "No header is set.");
    }
}

const BASIC_AUTH: &str = "kubernetes.io/basic-auth";

/// The annotations that close an Ingress, as far as giving them up opens the Ingress.
pub(super) fn closing(ingress: &Annotated) -> BTreeSet<String> {
    let problems = ingress.read.problems().iter().filter(|problem| problem.purpose == Purpose::Protects);
    let mut names: BTreeSet<String> = problems.filter_map(|problem| problem.annotation.clone()).collect();
    names.extend(ingress.lost.iter().cloned());
    // One of these without the others is a problem.
    let users = ["auth-type", "auth-secret", "auth-secret-type"].map(|name| ingress.dialect.whole_name(name));
    if users.iter().any(|name| names.contains(name)) {
        names.extend(users.into_iter().filter(|name| ingress.annotations.contains_key(name)));
    }
    names
}
