//! The nodes of an upstream, and the choice of one.
//!
//! Routes refer to an [`Upstream`], whose nodes are replaced in place: endpoints come and go without a new table of
//! routes. A node that stays keeps its state, and a connection keeps its node whatever becomes of the document.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use pingsix_sink::backoff::doubled;

use super::choice::{index_at, sums};

/// The rest of a node after its first failure.
const FIRST_REST: Duration = Duration::from_secs(1);
/// The longest rest.
const MAX_REST: Duration = Duration::from_secs(30);

/// A reference of routes to the nodes of one document.
#[derive(Debug, Default)]
pub(super) struct Upstream {
    /// `None` if the document is absent or cannot be used.
    nodes: RwLock<Option<Arc<Nodes>>>,
}

impl Upstream {
    /// The nodes in force.
    pub(super) fn nodes(&self) -> Option<Arc<Nodes>> {
        self.nodes.read().clone()
    }

    /// Replaces the nodes; a node that stays keeps its state.
    pub(super) fn set(&self, weights: &BTreeMap<SocketAddr, u32>) {
        let former = self.nodes();
        let kept = |address: &SocketAddr| {
            let nodes = &former.as_ref()?.all;
            let index = nodes.binary_search_by_key(address, |node| node.address).ok()?;
            nodes.get(index).cloned()
        };
        let nodes = Nodes {
            all: weights
                .keys()
                .map(|address| kept(address).unwrap_or_else(|| Arc::new(Node::new(*address))))
                .collect(),
            weights: weights.values().copied().collect(),
            cumulative: sums(weights.values().copied()),
        };
        *self.nodes.write() = (!weights.is_empty()).then(|| Arc::new(nodes));
    }

    /// Rejects all connections.
    pub(super) fn clear(&self) {
        *self.nodes.write() = None;
    }
}

/// At least one node, in the order of addresses.
#[derive(Debug)]
pub(super) struct Nodes {
    all: Box<[Arc<Node>]>,
    weights: Box<[u32]>,
    /// The sums of the weights.
    cumulative: Box<[u64]>,
}

impl Nodes {
    /// A node for a connection that has failed at the nodes of `tried`: of two drawn by weight, the one with fewer
    /// connections for its weight. Resting nodes are left out unless all rest. `None` if all are tried.
    pub(super) fn pick(&self, tried: &[SocketAddr], now: Instant) -> Option<Arc<Node>> {
        // Nearly always neither of the first two is left out, and the others need not be looked at.
        if tried.is_empty()
            && let Some((one, other)) = draw_two(&self.cumulative)
            && !self.all[one].rests(now)
            && !self.all[other].rests(now)
        {
            return Some(self.less_busy(one, other));
        }
        let untried = || (0..self.all.len()).filter(|index| !tried.contains(&self.all[*index].address));
        let awake: Vec<usize> = untried().filter(|index| !self.all[*index].rests(now)).collect();
        let candidates = if awake.is_empty() { untried().collect() } else { awake };
        let (one, other) = draw_two(&sums(candidates.iter().map(|index| self.weights[*index])))?;
        Some(self.less_busy(candidates[one], candidates[other]))
    }

    /// Whether a node has this address.
    pub(super) fn has(&self, address: SocketAddr) -> bool {
        self.all.binary_search_by_key(&address, |node| node.address).is_ok()
    }

    /// The addresses, in order.
    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.all.iter().map(|node| node.address)
    }

    fn less_busy(&self, one: usize, other: usize) -> Arc<Node> {
        let load = |index: usize, weight: u32| {
            let active = self.all[index].active.load(Ordering::Relaxed);
            active.saturating_mul(usize::try_from(weight).unwrap_or(usize::MAX))
        };
        // Connections for each unit of weight, compared without a division.
        let first = load(one, self.weights[other]) <= load(other, self.weights[one]);
        Arc::clone(&self.all[if first { one } else { other }])
    }
}

/// Two indices drawn by weight, given the sums of the weights; `None` without any.
fn draw_two(cumulative: &[u64]) -> Option<(usize, usize)> {
    let draw = || index_at(cumulative, fastrand::u64(..));
    (!cumulative.is_empty()).then(|| (draw(), draw()))
}

/// One node.
#[derive(Debug)]
pub(super) struct Node {
    /// The place to connect to.
    pub(super) address: SocketAddr,
    active: AtomicUsize,
    health: Mutex<Health>,
}

#[derive(Debug, Default)]
struct Health {
    /// The rests since the last connection.
    rests: u32,
    until: Option<Instant>,
}

impl Node {
    fn new(address: SocketAddr) -> Self {
        Self { address, active: AtomicUsize::new(0), health: Mutex::default() }
    }

    /// Counts a connection until the guard is dropped.
    pub(super) fn enter(self: Arc<Self>) -> Active {
        self.active.fetch_add(1, Ordering::Relaxed);
        Active(self)
    }

    /// A connection was made.
    pub(super) fn succeeded(&self) {
        *self.health.lock() = Health::default();
    }

    /// A connection could not be made. Those that fail at the same time are one failure.
    pub(super) fn failed(&self, now: Instant) {
        let mut health = self.health.lock();
        if health.until.is_none_or(|until| until <= now) {
            health.rests = health.rests.saturating_add(1);
            health.until = Some(now + doubled(FIRST_REST, health.rests, MAX_REST));
        }
    }

    fn rests(&self, now: Instant) -> bool {
        self.health.lock().until.is_some_and(|until| now < until)
    }
}

/// A connection that counts for a node.
#[derive(Debug)]
pub(super) struct Active(Arc<Node>);

impl Active {
    /// The node.
    pub(super) fn node(&self) -> &Node {
        &self.0
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream(nodes: &[(&str, u32)]) -> Upstream {
        let upstream = Upstream::default();
        upstream.set(&weights(nodes));
        upstream
    }

    fn weights(nodes: &[(&str, u32)]) -> BTreeMap<SocketAddr, u32> {
        nodes.iter().map(|(address, weight)| (address.parse().unwrap(), *weight)).collect()
    }

    #[test]
    fn a_node_that_failed_rests_longer_each_time_unless_all_rest() {
        let nodes = upstream(&[("10.0.0.1:1", 1), ("10.0.0.2:1", 1)]).nodes().unwrap();
        let mut now = Instant::now();
        let bad = Arc::clone(&nodes.all[0]);
        for seconds in [1, 2, 4, 8, 16, 30, 30] {
            bad.failed(now);
            bad.failed(now);
            for _ in 0..20 {
                assert_eq!(nodes.pick(&[], now).unwrap().address, nodes.all[1].address);
            }
            assert!(bad.rests(now + Duration::from_millis(seconds * 1_000 - 1)));
            now += Duration::from_secs(seconds);
            assert!(!bad.rests(now));
        }
        bad.failed(now);
        nodes.all[1].failed(now);
        let picks: Vec<_> = (0..50).map(|_| nodes.pick(&[], now).unwrap().address).collect();
        assert!(picks.contains(&bad.address) && picks.contains(&nodes.all[1].address));
        bad.succeeded();
        assert!(!bad.rests(now));
        bad.failed(now);
        assert!(!bad.rests(now + FIRST_REST), "a success forgets former failures");
    }

    #[test]
    fn a_tried_node_is_not_tried_again() {
        let nodes = upstream(&[("10.0.0.1:1", 1), ("10.0.0.2:1", 1)]).nodes().unwrap();
        let now = Instant::now();
        let first = nodes.pick(&[], now).unwrap().address;
        let second = nodes.pick(&[first], now).unwrap().address;
        assert_ne!(first, second);
        assert!(nodes.pick(&[first, second], now).is_none());
    }

    #[test]
    fn connections_spread_by_weight() {
        let nodes = upstream(&[("10.0.0.1:1", 1), ("10.0.0.2:1", 3), ("10.0.0.3:1", 1)]).nodes().unwrap();
        let now = Instant::now();
        let held: Vec<_> = (0..500).map(|_| nodes.pick(&[], now).unwrap().enter()).collect();
        let count = |index: usize| nodes.all[index].active.load(Ordering::Relaxed);
        assert!((85..=115).contains(&count(0)) && (270..=330).contains(&count(1)), "{nodes:?}");
        drop(held);
        assert_eq!(count(0) + count(1) + count(2), 0);
    }

    #[test]
    fn a_node_that_stays_keeps_its_state() {
        let upstream = upstream(&[("10.0.0.1:1", 1), ("10.0.0.2:1", 1)]);
        let before = upstream.nodes().unwrap();
        upstream.set(&weights(&[("10.0.0.2:1", 9), ("10.0.0.3:1", 1)]));
        let after = upstream.nodes().unwrap();
        assert!(Arc::ptr_eq(&before.all[1], &after.all[0]));
        assert!(after.has(before.all[1].address) && !after.has(before.all[0].address));
        upstream.clear();
        assert!(upstream.nodes().is_none());
        upstream.set(&BTreeMap::new());
        assert!(upstream.nodes().is_none());
    }
}
