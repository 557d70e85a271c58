//! The liveness and the readiness of the controller.
//!
//! Readiness is a list of gates. Each gate is declared before the server responds for the first time, and closed until
//! the responsible component opens it. Liveness is a heartbeat of the reconciling task, which also runs while nothing changes.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The health of the controller. Clones share it.
#[derive(Clone, Debug)]
pub struct Health {
    state: Arc<Mutex<State>>,
    /// The longest time without a heartbeat.
    limit: Duration,
}

#[derive(Debug, Default)]
struct State {
    gates: Vec<(&'static str, Condition)>,
    heartbeat: Option<Instant>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Condition {
    Open,
    Closed { reason: Cow<'static, str> },
}

/// A condition of readiness. Clones share the gate.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    state: Arc<Mutex<State>>,
    index: usize,
}

/// The response to a health request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// Whether the check passed.
    pub(crate) ok: bool,
    /// A line for each check, and one for the result.
    pub(crate) text: String,
}

impl Health {
    /// A health without gates and heartbeats. After the first heartbeat, each next one is due within `limit`.
    pub fn new(limit: Duration) -> Self {
        Self { state: Arc::default(), limit }
    }

    /// Declares a gate, closed for a reason.
    pub(crate) fn gate(&self, name: &'static str, reason: impl Into<Cow<'static, str>>) -> Gate {
        let mut state = self.state.lock();
        state.gates.push((name, Condition::Closed { reason: reason.into() }));
        Gate { state: Arc::clone(&self.state), index: state.gates.len() - 1 }
    }

    /// Records a heartbeat of the reconciling task. Call this at least every [`interval`](Self::interval), at rest too.
    pub(crate) fn record_heartbeat(&self) {
        self.state.lock().heartbeat = Some(Instant::now());
    }

    /// The interval of heartbeats: several fit into the time limit.
    pub fn interval(&self) -> Duration {
        self.limit / 4
    }

    /// Whether every gate is open. Without gates, the controller is not ready.
    pub(crate) fn readiness(&self) -> Report {
        let state = self.state.lock();
        let ok = !state.gates.is_empty() && state.gates.iter().all(|(_, gate)| *gate == Condition::Open);
        let mut text = String::new();
        for (name, condition) in &state.gates {
            match condition {
                Condition::Open => line(&mut text, name, None),
                Condition::Closed { reason } => line(&mut text, name, Some(reason)),
            }
        }
        conclude(ok, text, "readyz")
    }

    /// Whether the last heartbeat is recent. The check passes before the first heartbeat: a restart does not help a
    /// controller that waits for the API server.
    pub(crate) fn liveness(&self) -> Report {
        let heartbeat = self.state.lock().heartbeat;
        let silence = heartbeat.map(|at| at.elapsed()).filter(|silence| *silence > self.limit);
        let reason = silence.map(|silence| {
            format!("no heartbeat for {} s, and {} s are allowed", silence.as_secs(), self.limit.as_secs())
        });
        let mut text = String::new();
        line(&mut text, "reconcile", reason.as_deref());
        conclude(reason.is_none(), text, "livez")
    }
}

impl Gate {
    /// Opens the gate.
    pub(crate) fn open(&self) {
        self.set(Condition::Open);
    }

    /// Closes the gate, for a reason.
    pub(crate) fn close(&self, reason: impl Into<Cow<'static, str>>) {
        self.set(Condition::Closed { reason: reason.into() });
    }

    fn set(&self, condition: Condition) {
        if let Some((name, current)) = self.state.lock().gates.get_mut(self.index) {
            if *current == condition {
                return;
            }
            match (&condition, &*current) {
                (Condition::Open, _) => tracing::info!(gate = name, "readiness gate opened"),
                (Condition::Closed { reason }, Condition::Open) => {
                    tracing::info!(gate = name, %reason, "readiness gate closed");
                }
                (Condition::Closed { reason }, Condition::Closed { .. }) => {
                    tracing::debug!(gate = name, %reason, "readiness gate is still closed");
                }
            }
            *current = condition;
        }
    }
}

/// Adds a line in the format of the API server's own health pages.
fn line(text: &mut String, name: &str, reason: Option<&str>) {
    let _ = match reason {
        None => writeln!(text, "[+]{name} ok"),
        Some(reason) => writeln!(text, "[-]{name} failed: {reason}"),
    };
}

fn conclude(ok: bool, mut text: String, page: &str) -> Report {
    let _ = writeln!(text, "{page} check {}", if ok { "passed" } else { "failed" });
    Report { ok, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_needs_every_gate_and_names_those_that_are_closed() {
        let health = Health::new(Duration::from_mins(1));
        assert!(!health.readiness().ok, "a health without gates is not ready");
        let watches = health.gate("watches", "Gateways are not listed yet");
        let published = health.gate("published", "nothing is published yet");
        watches.open();
        assert_eq!(
            health.readiness(),
            Report {
                ok: false,
                text: "[+]watches ok\n[-]published failed: nothing is published yet\nreadyz check failed\n"
                    .to_owned()
            }
        );
        published.clone().open();
        let report = health.readiness();
        assert_eq!(
            (report.ok, report.text.as_str()),
            (true, "[+]watches ok\n[+]published ok\nreadyz check passed\n")
        );
        watches.close(format!("{} watches were lost", 2));
        assert!(health.readiness().text.contains("[-]watches failed: 2 watches were lost"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_heartbeat_that_is_missed_ends_liveness_until_the_next() {
        let health = Health::new(Duration::from_mins(1));
        tokio::time::advance(Duration::from_hours(1)).await;
        assert!(health.liveness().ok, "the reconciler has not begun");
        health.record_heartbeat();
        tokio::time::advance(Duration::from_mins(1)).await;
        assert!(health.liveness().ok);
        tokio::time::advance(Duration::from_secs(5)).await;
        let report = health.liveness();
        assert!(!report.ok);
        assert_eq!(
            report.text,
            "[-]reconcile failed: no heartbeat for 65 s, and 60 s are allowed\nlivez check failed\n"
        );
        health.clone().record_heartbeat();
        assert!(health.liveness().ok);
    }
}
