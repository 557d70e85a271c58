//! The task of one port: it has the datagrams of all clients of the port, and their sessions, without a lock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_udp::RecvMeta;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use super::control::{Control, Order};
use super::link::Ends;
use super::metrics::{Dropped, End};
use super::places::{Place, Share};
use super::run::Run;
use super::session::{Context, Current, Session};
use super::sessions::Sessions;

/// The time for which answers pass after the removal of the port, of the target or of the node of a session.
const ANSWER_GRACE_PERIOD: Duration = Duration::from_secs(5);
/// The time between two looks for idle sessions, at most.
const MAX_IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The pause after a failure to receive.
const RECEIVE_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The task of one port.
#[derive(Debug)]
pub(super) struct Port {
    context: Context,
    control: Arc<Control>,
    order: Order,
    /// The documents that `order` is of.
    generation: u64,
    sessions: Sessions<Session>,
    share: Arc<Share>,
    draining: bool,
}

impl Port {
    pub(super) fn new(context: Context, control: Arc<Control>) -> Self {
        let share = context.shared.places.join();
        let generation = context.shared.generation();
        let order = control.order();
        Self { context, control, order, generation, sessions: Sessions::new(), share, draining: false }
    }

    /// Serves the port until it is removed, until it is drained and has no session, or until `stop`.
    pub(super) async fn run(mut self, drain: CancellationToken, stop: CancellationToken) {
        let (front, share, control) =
            (Arc::clone(&self.context.front), Arc::clone(&self.share), Arc::clone(&self.control));
        let idle = self.context.shared.options.session_idle;
        let mut look = interval((idle / 8).clamp(Duration::from_millis(10), MAX_IDLE_CHECK_INTERVAL));
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.is_over() {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = drain.cancelled(), if !self.draining => self.draining = true,
                () = control.changed() => self.order = control.order(),
                () = share.owes() => (0..share.take_owed()).for_each(|_| self.evict()),
                _ = look.tick(), if !self.sessions.is_empty() => self.sweep(),
                received = front.socket.receive(|meta, run| self.receive(meta, run)) => {
                    if let Err(error) = received {
                        tracing::debug!(%error, "cannot receive datagrams, pausing");
                        sleep(RECEIVE_RETRY_DELAY).await;
                    }
                }
            }
        }
        self.close().await;
    }

    /// Whether the task ends. After that, the port cannot be served again by this task.
    fn is_over(&self) -> bool {
        if self.sessions.is_empty() && self.draining {
            return true;
        }
        let Order::Removed(since) = self.order else { return false };
        let grace = ANSWER_GRACE_PERIOD.min(self.context.shared.options.removed_grace);
        (self.sessions.is_empty() || since.elapsed() >= grace) && self.control.end()
    }

    /// Frees the port.
    async fn close(mut self) {
        let metrics = &self.context.front.metrics;
        self.sessions.retain(|_| {
            metrics.ended(End::Cut);
            false
        });
        self.context.shared.places.leave(&self.share);
        // The tasks of answers hold the socket.
        self.context.tasks.close();
        self.context.tasks.wait().await;
    }

    fn receive(&mut self, meta: &RecvMeta, run: Run<'_>) {
        let ends = Ends { client: meta.addr, asked: meta.dst_ip };
        if let Err((reason, count)) = self.pass(ends, run) {
            self.context.front.metrics.dropped(reason, count);
        }
    }

    /// Passes datagrams to the node of their session.
    ///
    /// # Errors
    /// Some, or all, are dropped for a reason.
    fn pass(&mut self, ends: Ends, run: Run<'_>) -> Result<(), (Dropped, usize)> {
        let all = |reason| (reason, run.count());
        self.update();
        let route = match &self.order {
            Order::Serve(route) => Arc::clone(route),
            Order::Removed(_) => return Err(all(Dropped::Closing)),
        };
        let current = Current { route: &route, generation: self.generation };
        if self.sessions.get_mut(&ends).is_none() {
            let session = self.begin(ends, current).map_err(all)?;
            self.context.front.metrics.began();
            self.sessions.insert(ends, session);
        }
        let Some(session) = self.sessions.get_mut(&ends) else { return Ok(()) };
        let link = session.link(current, &mut self.context).map_err(all)?;
        link.used(self.context.front.clock.now());
        let Err(rest) = link.send(run, &self.context.front) else { return Ok(()) };
        // The error is that of an earlier datagram, so these are still to be sent.
        let remaining = |reason| (reason, rest.count());
        session.reconnect(&mut self.context).map_err(remaining)?;
        let link = session.link(current, &mut self.context).map_err(remaining)?;
        link.send(rest, &self.context.front).map_err(|rest| (Dropped::Unreachable, rest.count()))
    }

    fn begin(&mut self, ends: Ends, current: Current<'_>) -> Result<Session, Dropped> {
        if self.draining {
            return Err(Dropped::Closing);
        }
        if self.context.shared.sources.refuses(ends.client, ends.asked) {
            return Err(Dropped::Source);
        }
        if !self.context.rate.take(self.context.front.clock.now()) {
            return Err(Dropped::Rate);
        }
        let place = self.place().ok_or(Dropped::Limit)?;
        Session::begin(ends, current, place, &mut self.context)
    }

    fn place(&mut self) -> Option<Place> {
        loop {
            if let Some(place) = self.context.shared.places.enter(&self.share) {
                return Some(place);
            }
            if self.sessions.is_empty() {
                return None;
            }
            self.evict();
        }
    }

    fn evict(&mut self) {
        if self.sessions.take_oldest(Session::last).is_some() {
            self.context.front.metrics.ended(End::Evicted);
        }
    }

    /// Follows the documents.
    fn update(&mut self) {
        let generation = self.context.shared.generation();
        if self.generation != generation {
            self.generation = generation;
            self.order = self.control.order();
        }
    }

    /// Ends the sessions that are idle, and those that the documents do not allow.
    fn sweep(&mut self) {
        self.update();
        let current = match &self.order {
            Order::Serve(route) => Some(Current { route, generation: self.generation }),
            Order::Removed(_) => None,
        };
        let front = &self.context.front;
        let now = front.clock.now();
        let idle = micros(self.context.shared.options.session_idle);
        let grace = micros(ANSWER_GRACE_PERIOD.min(self.context.shared.options.removed_grace));
        self.sessions.retain(|session| {
            let end = if now.saturating_sub(session.last()) >= idle {
                End::Idle
            } else if session.withdrawn_for(current, now) >= grace.max(1) {
                End::Withdrawn
            } else {
                return true;
            };
            front.metrics.ended(end);
            false
        });
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// A clock of microseconds, for times that fit into an atomic integer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock(Instant);

impl Clock {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    /// The microseconds since the start.
    pub(super) fn now(self) -> u64 {
        micros(self.0.elapsed())
    }
}
