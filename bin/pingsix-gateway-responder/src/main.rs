//! Runs the responder.
fn main() {}
