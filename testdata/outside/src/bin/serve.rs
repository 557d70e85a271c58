//! The documents of manifests are served to PingSIX over the etcd protocol.

use pingsix_gateway_api::{EmbeddedEtcd, Objects, Options, Pipeline, Sink as _};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let objects = Objects::try_from_yaml(&std::io::read_to_string(std::io::stdin())?)?;
    let etcd = EmbeddedEtcd::builder().state_file("revisions").start().await?;
    for (data_plane, desired) in Pipeline::new(Options::default()).run(&objects).desired() {
        println!("{data_plane}: {}", etcd.publish(desired).await?.changed);
    }
    // Before this, a PingSIX waits. An empty answer would delete its configuration.
    etcd.open();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:2379").await?;
    etcd.serve(listener, CancellationToken::new()).await?;
    Ok(())
}
