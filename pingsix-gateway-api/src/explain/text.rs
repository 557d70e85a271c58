//! The text of an explanation.

use std::fmt;

use super::{
    Answer, Backend, Check, ClosedCause, Explanation, FailedCondition, HeaderChange, Listener, MatchedRoute,
    MissReason, PolicyPlugins, RejectedMatch, Sent, Step, StepResult, Target,
};

/// The width of labels, in characters.
const LABEL_WIDTH: usize = 12;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.request.port.map(|port| format!(" on port {port}")).unwrap_or_default();
        writeln!(f, "{} {} ({}{port})", self.request.method, self.request.url, self.request.version)?;
        line(f, "data plane", self.data_plane.as_deref().unwrap_or("none"))?;
        let listeners: Vec<String> = self.listeners.iter().map(Listener::to_string).collect();
        lines(f, "listener", &listeners)?;
        if let Some(route) = &self.route {
            lines(f, "route", &route_lines(route))?;
        }
        let steps: Vec<String> =
            self.steps.iter().enumerate().map(|(at, step)| step_line(at + 1, step)).collect();
        lines(f, "tried", &steps)?;
        lines(f, "before", &self.before.iter().map(Check::to_string).collect::<Vec<_>>())?;
        lines(f, "answer", &answer_lines(&self.answer))?;
        lines(f, "problem", &self.problems)?;
        let mut rejected: Vec<String> = self.rejected.iter().map(rejected_line).collect();
        if self.more_rejected > 0 {
            rejected.push(format!("and {} more", self.more_rejected));
        }
        lines(f, "not chosen", &rejected)
    }
}

/// Explanations for people, as `pingsix-gatewayctl explain` prints them.
pub fn in_words(explanations: &[Explanation]) -> String {
    if explanations.is_empty() {
        return "No Gateway or IngressClass is served.\n".to_owned();
    }
    explanations.iter().map(Explanation::to_string).collect::<Vec<_>>().join("\n")
}

fn line(f: &mut fmt::Formatter<'_>, label: &str, text: &str) -> fmt::Result {
    writeln!(f, "  {label:LABEL_WIDTH$}{text}")
}

/// Writes lines with the label before the first one.
fn lines(f: &mut fmt::Formatter<'_>, label: &str, texts: &[String]) -> fmt::Result {
    texts.iter().enumerate().try_for_each(|(at, text)| line(f, if at == 0 { label } else { "" }, text))
}

/// The route in lines, the most important one first.
pub(crate) fn route_lines(route: &MatchedRoute) -> Vec<String> {
    let MatchedRoute { key, host, path, methods, priority, plugins, policies, objects, purpose } = route;
    let host = host.as_deref().unwrap_or("any");
    let methods = if methods.is_empty() { String::new() } else { format!(", method {}", methods.join(", ")) };
    let mut lines = vec![format!("{key}: host {host}, path {path}{methods}, priority {priority}")];
    if !plugins.is_empty() {
        lines.push(format!("plugins: {}", plugins.join(", ")));
    }
    for PolicyPlugins { policy, plugins } in policies {
        lines.push(format!("plugins of {policy}: {}", plugins.join(", ")));
    }
    if !objects.is_empty() {
        lines.push(format!("with {}", objects.join(", ")));
    }
    lines.extend(purpose.iter().map(|purpose| format!("It {purpose}.")));
    lines
}

fn step_line(number: usize, step: &Step) -> String {
    let who = match &step.source {
        Some(source) => format!("{} {}", source.object, source.field),
        None => NO_SOURCE.to_owned(),
    };
    format!("{number}. {who}: {}", step.result)
}

/// The step at the end of a list of conditions.
pub(crate) const NO_SOURCE: &str = "404, since all conditions failed";

impl fmt::Display for StepResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decides => f.write_str("decides"),
            Self::NotReached => f.write_str("not reached"),
            Self::Fails { conditions } => {
                let failed: Vec<String> = conditions.iter().map(failed_condition).collect();
                write!(f, "no: {}", failed.join(", nor "))
            }
        }
    }
}

fn failed_condition(condition: &FailedCondition) -> String {
    let FailedCondition { expected, found } = condition;
    if found.is_empty() { format!("{expected} (absent)") } else { format!("{expected} (found \"{found}\")") }
}

/// The answer in lines, the most important one first. Lines with details begin with two spaces.
pub(crate) fn answer_lines(answer: &Answer) -> Vec<String> {
    match answer {
        Answer::Forward { backends } => {
            let total: u64 = backends.iter().map(|backend| u64::from(backend.weight)).sum();
            backends.iter().flat_map(|backend| backend_lines(backend, total)).collect()
        }
        Answer::Status { status, by, why } => vec![format!("{status}, given by {by}"), why.clone()],
        Answer::Redirect { status, location } => vec![format!("{status}, Location: {location}")],
        Answer::Preflight { allowed: true } => vec!["204, CORS preflight".to_owned()],
        Answer::Preflight { allowed: false } => vec!["403, CORS preflight that is not allowed".to_owned()],
        Answer::NotFound { why, .. } => vec!["404".to_owned(), why.clone()],
        Answer::Closed { cause, why, if_open } => {
            let (closed, otherwise) = match cause {
                ClosedCause::Listener => (
                    "none: no listener accepts the connection",
                    "PingSIX cannot tell ports apart. If it has one open for this all the same, it answers:",
                ),
                ClosedCause::Http2WithoutTls => {
                    ("none: the connection is closed", "A process of PingSIX without ports with TLS answers:")
                }
            };
            let mut lines = vec![closed.to_owned(), why.clone()];
            if let Some(answer) = if_open {
                lines.push(otherwise.to_owned());
                lines.extend(answer_lines(answer).into_iter().map(|line| format!("  {line}")));
            }
            lines
        }
        Answer::Connection { backends } => {
            let total: u64 = backends.iter().map(|backend| u64::from(backend.weight)).sum();
            let mut lines = vec!["the connection goes on, whatever is asked over it:".to_owned()];
            lines.extend(backends.iter().flat_map(|backend| backend_lines(backend, total)));
            lines
        }
    }
}

fn backend_lines(backend: &Backend, total: u64) -> Vec<String> {
    let share = match u64::from(backend.weight) {
        weight if weight == total => String::new(),
        weight => format!("{weight} of {total}: "),
    };
    let target = match &backend.target {
        Target::Service { service, port } => format!("Service {service} port {port}"),
        Target::Status { status } => format!("{status}, given by the responder"),
        Target::Rejected { rejected } => format!("closed ({rejected})"),
        Target::Redirect {} => "the responder, which redirects".to_owned(),
        Target::Unknown {} => "an upstream".to_owned(),
    };
    let with = if backend.objects.is_empty() {
        String::new()
    } else {
        format!(", with {}", backend.objects.join(", "))
    };
    let mut lines = vec![format!("{share}{target}{with}")];
    let endpoints = || backend.endpoints.keys().map(String::as_str);
    match &backend.sends {
        Some(sent) => lines.extend(sent_lines(sent, &endpoints().collect::<Vec<_>>())),
        None if matches!(backend.target, Target::Status { .. }) => {}
        None => lines.extend(endpoints().map(|endpoint| format!("  {endpoint}"))),
    }
    lines
}

/// The request that one of the endpoints gets.
fn sent_lines(sent: &Sent, endpoints: &[&str]) -> Vec<String> {
    let Sent { method, target, host, headers } = sent;
    let host = host.as_ref().map_or_else(|| "without a host".to_owned(), |host| format!("host {host}"));
    let (first, endpoints) = match endpoints {
        [endpoint] => (format!("  sends {method} {target} to {endpoint}, {host}"), &[][..]),
        _ => (format!("  sends {method} {target}, {host}, to one of"), endpoints),
    };
    let endpoints = endpoints.iter().map(|endpoint| format!("  {endpoint}"));
    let headers = headers.iter().map(|HeaderChange { name, values }| match values.as_slice() {
        [] => format!("  without header {name}"),
        values => format!("  with header {name}: {}", values.join(", ")),
    });
    std::iter::once(first).chain(endpoints).chain(headers).collect()
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plugin, policy, effect } = self;
        write!(f, "{plugin}: {effect}")?;
        policy.iter().try_for_each(|policy| write!(f, " ({policy})"))
    }
}

fn rejected_line(rejected_match: &RejectedMatch) -> String {
    let RejectedMatch { source, reason } = rejected_match;
    format!("{} {}: {reason}", source.object, source.field)
}

impl fmt::Display for MissReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outranked { by } => write!(f, "it matches, but comes after {by}"),
            Self::Plaintext {} => f.write_str("it redirects requests without TLS, and this one has TLS"),
            Self::Method { methods } => write!(f, "it is for method {}", methods.join(", ")),
            Self::Path { path } => write!(f, "its path is {path}"),
            Self::Listener { hostname } => {
                write!(f, "its listener serves {hostname}, and another is more specific")
            }
            Self::Host { host } => write!(f, "its host is {host}"),
        }
    }
}
