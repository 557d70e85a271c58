//! The references of a kind, declared once.

use std::fmt;
use std::hash::Hash;

/// A target of references: a name of any shape. Blanket implementation.
pub trait Target: Clone + Eq + Ord + Hash + fmt::Debug + 'static {}

impl<T: Clone + Eq + Ord + Hash + fmt::Debug + 'static> Target for T {}

/// One way in which objects of kind `K` refer to others. Made by [`Edge::concerns`] or [`Edge::depends_on`], in a `static`.
#[non_exhaustive]
pub struct Edge<K, T> {
    /// Its name in dumps and metrics, for example `backend`.
    pub name: &'static str,
    /// Which end has to be looked at again when the other changes.
    pub direction: Direction,
    /// Adds what an object refers to; repetitions do no harm. A function of the object alone.
    pub targets: fn(&K, &mut Vec<T>),
}

impl<K, T> Edge<K, T> {
    /// When an object changes, so do these: a route concerns its Gateway.
    pub const fn concerns(name: &'static str, targets: fn(&K, &mut Vec<T>)) -> Self {
        Self { name, direction: Direction::Concerns, targets }
    }

    /// When one of these changes, so does the object: a route depends on its Services.
    pub const fn depends_on(name: &'static str, targets: fn(&K, &mut Vec<T>)) -> Self {
        Self { name, direction: Direction::DependsOn, targets }
    }
}

impl<K, T> fmt::Debug for Edge<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Edge")
            .field("name", &self.name)
            .field("direction", &self.direction)
            .finish_non_exhaustive()
    }
}

/// Which end of an edge has to be looked at again when the other changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// When the object changes, so does its target: a route concerns its Gateway, an EndpointSlice its Service.
    Concerns,
    /// When the target changes, so does the object: a Gateway depends on its GatewayClass, a route on its Services.
    DependsOn,
}
