//! A real Kubernetes control plane for tests: etcd, an API server and, where asked for, controllers, as processes of
//! the test that wants them.
//!
//! ```no_run
//! # async fn a_test() -> Result<(), Box<dyn std::error::Error>> {
//! use pingsix_test_cluster::{Channel, TestCluster};
//!
//! let Some(cluster) = TestCluster::builder().crds(Channel::Standard).start_or_skip().await else { return Ok(()) };
//! let namespaces = kube::Api::<k8s_openapi::api::core::v1::Namespace>::all(cluster.admin());
//! cluster.api_server().kill().await?;
//! assert!(namespaces.get("default").await.is_err());
//! cluster.api_server().start().await?;
//! assert!(namespaces.get("default").await.is_ok());
//! # Ok(()) }
//! ```
//!
//! - Clusters do not meet: each has a folder, an authority for its certificate and a port of its own, and its etcd
//!   listens on a socket in that folder only.
//! - Every process ends with the test, even with a killed one: its supervisor ends the process when the test's end of
//!   a pipe is closed.
//! - A program has no more of them at a time than the machine has processors, or eight: the next one waits for its
//!   turn, however many tests run side by side.
//! - Pods run where a [`Builder::node`] is asked for, in a network that the test makes for itself.
//! - `just cluster` builds what is run. Where that has not been done, tests print `NOT RUN` and why, unless
//!   `PINGSIX_CLUSTER=required` asks for failures instead.

mod access;
mod authority;
mod build;
mod builder;
mod cluster;
mod error;
mod folder;
mod manifest;
mod network;
mod node;
mod process;
mod ready;
mod supervisor;
mod turn;
mod user;

pub use build::NotBuilt;
pub use builder::{Builder, CONTROLLERS, Channel, tool_or_skip};
pub use cluster::TestCluster;
pub use error::Error;
pub use network::in_own_network;
pub use node::Node;
pub use process::Process;
pub use user::User;
