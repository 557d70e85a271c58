//! Orders for the task of a port.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::super::routes::Route;

/// The order for the task of a port.
#[derive(Clone, Debug)]
pub(super) enum Order {
    /// Serve this route.
    Serve(Arc<Route>),
    /// The port has had no route since this time.
    Removed(Instant),
}

/// The order, and what became of it.
#[derive(Debug)]
pub(super) struct Control {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    order: Order,
    /// The reason why the port cannot be listened on.
    error: Option<String>,
    /// The task takes no more orders.
    has_ended: bool,
}

impl Control {
    pub(super) fn new(route: Arc<Route>) -> Self {
        let state = State { order: Order::Serve(route), error: None, has_ended: false };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    /// Orders to serve a route. False if the task has ended.
    pub(super) fn serve(&self, route: &Arc<Route>) -> bool {
        let mut state = self.state.lock();
        state.order = Order::Serve(Arc::clone(route));
        self.changed.notify_one();
        !state.has_ended
    }

    /// Orders to end.
    pub(super) fn remove(&self) {
        self.state.lock().order = Order::Removed(Instant::now());
        self.changed.notify_one();
    }

    /// Returns when the order may have changed.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The order in force.
    pub(super) fn order(&self) -> Order {
        self.state.lock().order.clone()
    }

    /// The task ends, unless it has to serve again.
    pub(super) fn end(&self) -> bool {
        let mut state = self.state.lock();
        state.has_ended = matches!(state.order, Order::Removed(_));
        state.has_ended
    }

    /// The port can be listened on, or cannot for a reason.
    pub(super) fn set_error(&self, error: Option<String>) {
        self.state.lock().error = error;
    }

    /// Whether the port is listened on, or the reason why it is not. `None` if it is removed.
    pub(super) fn is_bound(&self) -> Option<Result<(), String>> {
        let state = self.state.lock();
        match state.order {
            Order::Serve(_) => Some(state.error.clone().map_or(Ok(()), Err)),
            Order::Removed(_) => None,
        }
    }
}
