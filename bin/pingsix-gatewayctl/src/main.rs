//! Works with Gateway API manifests without a cluster.
fn main() {}
