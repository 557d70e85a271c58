//! The differences, for people and for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Difference, Replayed};
use crate::answer::{Answer, Request};
use crate::report::ReportFormat;
use crate::words::{counted, printable};

impl Replayed {
    /// The differences as text.
    pub fn render(&self, format: ReportFormat) -> String {
        match format {
            ReportFormat::Text => self.text(),
            ReportFormat::Markdown => self.markdown(),
            ReportFormat::Json => self.json(),
        }
    }

    fn unknown(&self) -> usize {
        self.unknown.values().sum()
    }

    fn different(&self) -> usize {
        self.differences.iter().map(|difference| difference.count).sum()
    }

    fn summary(&self) -> String {
        let all = self.different() + self.same + self.unknown();
        format!(
            "{}: {} answered otherwise, {} as before, {} with an unknown former answer",
            counted(all, "request"),
            self.different(),
            self.same,
            self.unknown()
        )
    }

    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        for difference in &self.differences {
            let _ = writeln!(text, "{}", printable(difference.title()));
            let of_old = (&difference.before.answer, difference.before.by.as_ref());
            for (word, (answer, by)) in
                [("before", of_old), ("after", (&difference.after, difference.after_by.as_ref()))]
            {
                let by = by.map(|by| format!(", by {by}")).unwrap_or_default();
                for (index, line) in in_words(answer).into_iter().enumerate() {
                    let (word, by) = if index == 0 { (word, by.as_str()) } else { ("", "") };
                    let _ = writeln!(text, "  {word:<6}  {}", printable(format!("{line}{by}")));
                }
            }
        }
        let _ = writeln!(text, "{}", self.summary());
        for (why, count) in &self.unknown {
            let _ = writeln!(text, "  unknown  {}: {}", counted(*count, "request"), printable(why.clone()));
        }
        for one in &self.skipped {
            let _ = writeln!(text, "  skipped  line {}: {}", one.line, printable(one.why.clone()));
        }
        if self.skipped_count > self.skipped.len() {
            let _ = writeln!(
                text,
                "  skipped  {} more",
                counted(self.skipped_count - self.skipped.len(), "line")
            );
        }
        text
    }

    fn markdown(&self) -> String {
        let mut text = String::from("# Replay\n\n");
        if self.differs() {
            text.push_str("| request | before | after |\n|---|---|---|\n");
        }
        let cell = |text: String| printable(text).replace('|', "\\|").replace('<', "&lt;");
        for difference in &self.differences {
            let [before, after] =
                [&difference.before.answer, &difference.after].map(|answer| in_words(answer).join("; "));
            let _ = writeln!(text, "| {} | {} | {} |", cell(difference.title()), cell(before), cell(after));
        }
        let _ = writeln!(text, "\n{}", self.summary());
        text
    }

    fn json(&self) -> String {
        let differences: Vec<Value> = self
            .differences
            .iter()
            .map(|one| {
                json!({
                    "request": line(&one.request), "client": one.request.client, "count": one.count,
                    "before": in_json(&one.before.answer, one.before.by.as_ref()),
                    "after": in_json(&one.after, one.after_by.as_ref()),
                })
            })
            .collect();
        let unknown: Vec<Value> =
            self.unknown.iter().map(|(why, count)| json!({ "reason": why, "count": count })).collect();
        let skipped: Vec<Value> =
            self.skipped.iter().map(|one| json!({ "line": one.line, "reason": one.why })).collect();
        let counts = json!({
            "different": self.different(), "same": self.same, "unknown": self.unknown(), "skipped": self.skipped_count,
        });
        let all =
            json!({ "differences": differences, "unknown": unknown, "skipped": skipped, "counts": counts });
        format!("{all:#}\n")
    }
}

impl Difference {
    /// The request, with the names of headers on which answers may depend.
    fn title(&self) -> String {
        let mut title = line(&self.request);
        let names: Vec<&str> = self.request.headers.iter().map(|(name, _)| name.as_str()).collect();
        if !names.is_empty() {
            let _ = write!(title, " with {}", names.join(", "));
        }
        if let Some(client) = self.request.client {
            let _ = write!(title, " from {client}");
        }
        if self.count > 1 {
            let _ = write!(title, " ({} requests)", self.count);
        }
        title
    }
}

fn line(request: &Request) -> String {
    let scheme = if request.https { "https" } else { "http" };
    format!("{} {scheme}://{}{}", request.method, request.host, request.with_query(&request.path))
}

/// An answer, a line for each backend.
fn in_words(answer: &Answer) -> Vec<String> {
    match answer {
        Answer::Backends { backends, checks } => {
            let total: u64 = backends.values().sum();
            let checks: Vec<&str> = checks.iter().map(String::as_str).collect();
            let checks =
                if checks.is_empty() { String::new() } else { format!(", after {}", checks.join(", ")) };
            let one = |(backend, share): (&crate::answer::Backend, &u64)| {
                let share = if backends.len() > 1 { format!("{share} of {total}: ") } else { String::new() };
                let host = backend.host.as_deref().unwrap_or("the endpoint");
                format!(
                    "{share}Service {} port {} gets {} for {host}{checks}",
                    backend.service, backend.port, backend.target
                )
            };
            backends.iter().map(one).collect()
        }
        Answer::Redirect { status, location } => vec![format!("{status} to {location}")],
        Answer::Status(status) => vec![status.to_string()],
        Answer::Closed => vec!["no listener takes the connection".to_owned()],
        Answer::Unknown(why) => vec![format!("unknown: {why}")],
    }
}

fn in_json(answer: &Answer, by: Option<&String>) -> Value {
    let mut value = match answer {
        Answer::Backends { backends, checks } => {
            let backends: Vec<Value> = backends
                .iter()
                .map(|(backend, weight)| {
                    json!({
                        "service": backend.service.to_string(), "port": backend.port, "weight": weight,
                        "target": backend.target, "host": backend.host,
                    })
                })
                .collect();
            json!({ "kind": "backends", "backends": backends, "checks": checks })
        }
        Answer::Redirect { status, location } => {
            json!({ "kind": "redirect", "status": status, "location": location })
        }
        Answer::Status(status) => json!({ "kind": "status", "status": status }),
        Answer::Closed => json!({ "kind": "closed" }),
        Answer::Unknown(why) => json!({ "kind": "unknown", "reason": why }),
    };
    if let Some(by) = by {
        value["by"] = json!(by);
    }
    value
}
