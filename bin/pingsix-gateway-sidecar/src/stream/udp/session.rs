//! One session: the target and the node of the datagrams of one client.
//!
//! A session keeps its node while the documents allow it. Otherwise, and after a refusal, it chooses again with the next
//! datagram of its client: another node of its upstream, or another target of the route if the route has its target no
//! more. A rejected session keeps its target too, so that its share is given to no other target.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use pingsix_translate::stream::RejectReason;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::super::routes::{Route, Target};
use super::super::socket::is_ours;
use super::link::{Ends, Link};
use super::metrics::{Dropped, Unsent};
use super::places::Place;
use super::rate::Rate;
use super::{Front, Shared};

/// The most nodes that are tried for one datagram.
const MAX_NODES: usize = 3;

/// The port of sessions, and the limits of their links.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) shared: Arc<Shared>,
    pub(super) front: Arc<Front>,
    /// The tasks that pass answers on.
    pub(super) tasks: TaskTracker,
    /// The rate of new links.
    pub(super) rate: Rate,
}

/// The state of the documents that a session was compared with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Current<'a> {
    pub(super) route: &'a Arc<Route>,
    pub(super) generation: u64,
}

/// The session of one client.
#[derive(Debug)]
pub(super) struct Session {
    ends: Ends,
    route: Arc<Route>,
    target: Target,
    /// The node; none if the target rejects.
    link: Option<Linked>,
    began: u64,
    /// The documents that allow this choice.
    generation: u64,
    /// The time since when documents do not allow it.
    withdrawn: Option<u64>,
    _place: Place,
}

/// A link with the task of its answers.
#[derive(Debug)]
struct Linked {
    link: Arc<Link>,
    _answers: AbortOnDropHandle<()>,
}

impl Session {
    /// Chooses a target, and a node.
    pub(super) fn begin(
        ends: Ends,
        current: Current<'_>,
        place: Place,
        context: &mut Context,
    ) -> Result<Self, Dropped> {
        let mut session = Self {
            ends,
            route: Arc::clone(current.route),
            target: current.route.next(),
            link: None,
            began: context.front.clock.now(),
            generation: current.generation,
            withdrawn: None,
            _place: place,
        };
        session.connect(context)?;
        Ok(session)
    }

    /// The time of the last datagram in either direction, or of the rejection: a client that is rejected has another
    /// choice some time later, however often it asks.
    pub(super) fn last(&self) -> u64 {
        self.link.as_ref().map_or(self.began, |linked| linked.link.last())
    }

    /// The link for a datagram of the client, after another choice if one is due.
    ///
    /// # Errors
    /// The datagram has to be dropped.
    pub(super) fn link(
        &mut self,
        current: Current<'_>,
        context: &mut Context,
    ) -> Result<&Arc<Link>, Dropped> {
        if self.generation != current.generation {
            if !self.is_allowed(current.route) {
                self.choose(current.route, context)?;
            }
            self.generation = current.generation;
            self.withdrawn = None;
        }
        if self.link.as_ref().is_some_and(|linked| linked.link.take_refused()) {
            self.reconnect(context)?;
        }
        match (&self.link, &self.target) {
            (Some(linked), _) => Ok(&linked.link),
            (None, Target::Reject(word)) => Err(Dropped::Route(*word)),
            // The document of the upstream is absent or cannot be used.
            (None, Target::Upstream(_)) => Err(Dropped::Route(RejectReason::Invalid)),
        }
    }

    /// The time for which the documents have not allowed the session.
    pub(super) fn withdrawn_for(&mut self, current: Option<Current<'_>>, now: u64) -> u64 {
        let Some(Current { route, generation }) = current else { return 0 };
        if self.generation == generation {
            return 0;
        }
        if self.is_allowed(route) {
            (self.generation, self.withdrawn) = (generation, None);
            return 0;
        }
        now.saturating_sub(*self.withdrawn.get_or_insert(now))
    }

    /// Whether the choice is one of a route and of the nodes in force.
    fn is_allowed(&mut self, route: &Arc<Route>) -> bool {
        if !Arc::ptr_eq(&self.route, route) {
            if !route.has(&self.target) {
                return false;
            }
            self.route = Arc::clone(route);
        }
        let Target::Upstream(upstream) = &self.target else { return true };
        match (upstream.nodes(), &self.link) {
            (Some(nodes), Some(linked)) => nodes.has(linked.link.node().address),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    /// Chooses a node, and before that a target if the route has the former one no more.
    fn choose(&mut self, route: &Arc<Route>, context: &mut Context) -> Result<(), Dropped> {
        if !route.has(&self.target) {
            self.target = route.next();
        }
        self.route = Arc::clone(route);
        self.reconnect(context)
    }

    /// Connects to another node, or to the same one if no other is better.
    pub(super) fn reconnect(&mut self, context: &mut Context) -> Result<(), Dropped> {
        if !context.rate.take(context.front.clock.now()) {
            return Err(Dropped::Rate);
        }
        self.connect(context)
    }

    fn connect(&mut self, context: &Context) -> Result<(), Dropped> {
        let nodes = match &self.target {
            Target::Upstream(upstream) => upstream.nodes(),
            Target::Reject(_) => None,
        };
        let now = context.front.clock.now();
        let Some(nodes) = nodes else {
            (self.link, self.began) = (None, now);
            return Ok(());
        };
        let mut tried: Vec<SocketAddr> = Vec::new();
        while tried.len() < MAX_NODES
            && let Some(node) = nodes.pick(&tried, Instant::now())
        {
            let address = node.address;
            tried.push(address);
            if self.link.as_ref().is_some_and(|linked| linked.link.node().address == address) {
                return Ok(());
            }
            if context.shared.sources.is_ours(address) {
                tracing::debug!(%address, "a node is a port of this proxy");
                continue;
            }
            match Link::connect(Arc::clone(&node).enter(), self.ends, now) {
                Ok(link) => {
                    let link = Arc::new(link);
                    let answers = Arc::clone(&link).answer(Arc::clone(&context.front));
                    let answers = AbortOnDropHandle::new(context.tasks.spawn(answers));
                    self.link = Some(Linked { link, _answers: answers });
                    return Ok(());
                }
                Err(error) if is_ours(&error) => return Err(Dropped::Unsent(Unsent::Resources)),
                Err(error) => {
                    tracing::debug!(%address, %error, "cannot send to a node");
                    context.front.metrics.refusals.inc();
                    node.failed(Instant::now());
                }
            }
        }
        Err(Dropped::Unreachable)
    }
}
