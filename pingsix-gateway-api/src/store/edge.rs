//! The declaration of references of a kind.

use std::fmt;
use std::hash::Hash;

/// A target of references: a name of any type. There is a blanket implementation.
pub trait Target: Clone + Eq + Ord + Hash + fmt::Debug + 'static {}

impl<T: Clone + Eq + Ord + Hash + fmt::Debug + 'static> Target for T {}

/// A type of references from objects of kind `K`. [`Edge::concerns`] and [`Edge::depends_on`] create edges in a
/// `static`.
#[non_exhaustive]
pub struct Edge<K, T> {
    /// The name in dumps and metrics, for example `backend`.
    pub name: &'static str,
    /// The affected end of a change.
    pub direction: Direction,
    /// Adds the targets of an object, repetitions allowed. The function depends on the object alone.
    pub targets: fn(&K, &mut Vec<T>),
}

impl<K, T> Edge<K, T> {
    /// A change of an object affects its targets: a route concerns its Gateway.
    pub const fn concerns(name: &'static str, targets: fn(&K, &mut Vec<T>)) -> Self {
        Self { name, direction: Direction::Concerns, targets }
    }

    /// A change of a target affects the object: a route depends on its Services.
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

/// The end of an edge that a change of the other end affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// A change of the object affects the target: a route concerns its Gateway, an EndpointSlice its Service.
    Concerns,
    /// A change of the target affects the object: a Gateway depends on its GatewayClass, a route on its Services.
    DependsOn,
}
