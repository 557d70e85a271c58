//! The controller's parts on a real API server. Where it is not built, these tests say that they did not run.

mod watch;
