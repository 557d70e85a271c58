//! The declaration of references of a kind.

use std::fmt;
use std::sync::Arc;

/// A target of references: a name of any type. There is a blanket implementation.
pub trait Target: Clone + Ord + fmt::Debug + 'static {}

impl<T: Clone + Ord + fmt::Debug + 'static> Target for T {}

/// A type of references from objects of kind `K`. Clones share the function.
#[non_exhaustive]
pub struct Edge<K, T> {
    /// The name in dumps and metrics, for example `backend`.
    pub name: &'static str,
    /// The affected end of a change.
    pub direction: Direction,
    targets: Targets<K, T>,
}

/// Adds the targets of an object.
type Targets<K, T> = Arc<dyn Fn(&K, &mut Vec<T>) + Send + Sync>;

impl<K, T> Edge<K, T> {
    /// A change of an object affects its targets: a route concerns its Gateway. `targets` adds the targets of an object,
    /// repetitions allowed. The result depends on the object alone.
    pub fn concerns(name: &'static str, targets: impl Fn(&K, &mut Vec<T>) + Send + Sync + 'static) -> Self {
        Self { name, direction: Direction::Concerns, targets: Arc::new(targets) }
    }

    /// A change of a target affects the object: a route depends on its Services. `targets` is as for
    /// [`concerns`](Self::concerns).
    pub fn depends_on(name: &'static str, targets: impl Fn(&K, &mut Vec<T>) + Send + Sync + 'static) -> Self {
        Self { name, direction: Direction::DependsOn, targets: Arc::new(targets) }
    }

    /// Adds the targets of an object.
    pub(crate) fn add_targets(&self, object: &K, targets: &mut Vec<T>) {
        (self.targets)(object, targets);
    }
}

impl<K, T> Clone for Edge<K, T> {
    fn clone(&self) -> Self {
        Self { targets: Arc::clone(&self.targets), ..*self }
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
