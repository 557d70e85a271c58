//! Serves the Gateways, routes and Ingresses of a cluster with PingSIX.
fn main() {}
