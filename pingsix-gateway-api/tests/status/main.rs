//! Statuses, Events and Leases on a real API server, which knows what no script does: validation, defaults, no-op writes.

mod lab;
mod lease;
mod verdicts;
