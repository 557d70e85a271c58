//! Kinds of routes, as the status of a listener names them.

/// Group and kind of a route.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RouteKind {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
}
