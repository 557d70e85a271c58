//! Capabilities that PingSIX lacks, or has with a limit: one table that says who serves each of them, and at what cost.
//!
//! A capability is a part of a rule, a policy or a listener: a filter, a condition, a field, a setting of TLS. The table
//! (`capability/table.rs`) has a row for each, with the fields that ask for it, its executors, and the message for the
//! author where no executor of the data plane serves it. Whatever is wrong with the input itself is not in the table.
//!
//! A message about a lack of PingSIX exists once, in the table, and a new executor changes the row. Annotations of other
//! controllers have a table of their own (`annotations/`), because their messages are for users of these controllers.
//! Bounds are not in the table either: budgets, and the memory of patterns.
//!
//! # Who asks
//!
//! | stage | question |
//! |---|---|
//! | normalisation | none: it does not know the data planes of a route. It records a refusal or a limitation for each lack, and the refusal keeps its capability (`Refusal::capability`) |
//! | attachment of routes | which refusals of a rule are served by the owner's data planes? (`Route::without_served_lacks`) |
//! | attachment of listeners | does an executor serve the protocol, the certificates of clients, the 421? ([`Capability::is_served`]) |
//! | policies, backends | none yet: they refuse at the spot, because their models have no value of what they refuse |
//! | lowering | none yet: it refuses what its documents cannot express, by rows of the table |
//!
//! A row names an executor only if the model has the value that the executor needs, and the executor has a lowering.
//! Otherwise the rule would be served without the value: a condition by a regular expression would hold for every value.

mod table;

pub use table::Capability;

use super::Reason;

/// A process of a data plane, or a role of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Executor {
    /// PingSIX, which every data plane has. In a row of the table, PingSIX serves the capability in part, and the cost says
    /// in which part.
    PingSix,
    /// [`Options::responder`](super::Options::responder): the sidecar as an upstream that answers by itself.
    Responder,
    /// The sidecar as a proxy for TCP, UDP and TLS: managed data planes, or [`Options::stream`](super::Options::stream).
    StreamProxy,
    /// The sidecar that terminates TLS in front of PingSIX: managed data planes with `spec.managed.sidecar.https`.
    TlsFront,
}

impl Executor {
    /// The name in the documentation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PingSix => "PingSIX",
            Self::Responder => "responder",
            Self::StreamProxy => "stream proxy",
            Self::TlsFront => "sidecar in front",
        }
    }
}

/// The executors of a data plane besides PingSIX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Executors {
    pub(crate) responder: bool,
    pub(crate) stream_proxy: bool,
    pub(crate) tls_front: bool,
}

impl Executors {
    const fn have(self, executor: Executor) -> bool {
        match executor {
            Executor::PingSix => true,
            Executor::Responder => self.responder,
            Executor::StreamProxy => self.stream_proxy,
            Executor::TlsFront => self.tls_front,
        }
    }
}

/// The row of a capability.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CapabilityRow {
    /// The fields that ask for the capability, as Markdown.
    pub fields: &'static str,
    /// The executors, each with its cost: the conditions, the limit or the price of its service.
    pub executors: &'static [(Executor, &'static str)],
    /// The reason of the verdict without an executor: [`Reason::Limited`] if the rest is served.
    pub reason: Reason,
    /// The message without an executor. Each `{}` stands for a value.
    pub message: &'static str,
    /// The message for authors of routes, if the field belongs to a policy that others may have written.
    pub message_to_routes: &'static str,
    /// The row in `docs/explanation/limits.md` by its first cell; empty for a smaller difference.
    pub limit: &'static str,
    /// The features of Gateway API that are not claimed for lack of the capability.
    pub unclaimed: &'static [&'static str],
}

impl Capability {
    /// Whether a data plane with these executors serves the capability as asked. PingSIX alone does not.
    pub(crate) fn is_served(self, executors: Executors) -> bool {
        let mut of_row = self.row().executors.iter().map(|(executor, _)| *executor);
        of_row.any(|executor| executor != Executor::PingSix && executors.have(executor))
    }

    /// The message.
    pub(crate) fn message(self, values: &[&str]) -> String {
        fill(self.row().message, values)
    }

    /// The message for authors of routes.
    pub(crate) fn message_to_routes(self, values: &[&str]) -> String {
        fill(self.row().message_to_routes, values)
    }
}

/// Replaces the placeholders of a message. Braces in values stay as they are.
fn fill(message: &str, values: &[&str]) -> String {
    let mut values = values.iter().copied();
    let mut parts = Vec::new();
    for (index, part) in message.split("{}").enumerate() {
        if index > 0 {
            parts.push(values.next().unwrap_or_default());
        }
        parts.push(part);
    }
    // A text without spare capacity: a data plane may have a refusal for each rule.
    parts.concat()
}

#[cfg(test)]
mod tests;
