//! The RPCs, one file per etcd service. Status codes and texts are etcd's wherever clients act on them.

mod kv;
mod maintenance;
mod range;
mod refusal;
mod shared_body;
mod txn;
mod watch;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::Request;

use super::log_limiter::LogLimiter;
use super::peer::Peer;
use super::replica::Replica;
use crate::proto::etcdserverpb::ResponseHeader;
use crate::proto::etcdserverpb::kv_server::KvServer;
use crate::proto::etcdserverpb::maintenance_server::MaintenanceServer;
use crate::proto::etcdserverpb::watch_server::WatchServer;
pub(crate) use refusal::UNKNOWN_SCOPE;
use shared_body::WithSharedBodies;

/// The id of the only cluster: "pingsix" in ASCII.
const CLUSTER_ID: u64 = 0x0070_696e_6773_6978;
/// The id of its only member.
const MEMBER_ID: u64 = CLUSTER_ID + 1;

/// Size limit of a request that may read or write keys, as in etcd.
const MAX_KEY_REQUEST_BYTES: usize = 1_536 * 1024;

/// Size limit of any other request: two keys and a few numbers.
const MAX_OTHER_REQUEST_BYTES: usize = 64 * 1024;

/// State that all services of one listener share.
#[derive(Clone, Debug)]
pub(super) struct Services {
    replica: Arc<Replica>,
    shutdown: CancellationToken,
    tasks: TaskTracker,
    /// The logged unknown prefixes.
    unknown: Arc<LogLimiter>,
}

impl Services {
    pub(super) fn new(replica: Arc<Replica>, shutdown: CancellationToken) -> Self {
        Self { replica, shutdown, tasks: TaskTracker::new(), unknown: Arc::default() }
    }

    /// The tasks that serve watch streams.
    pub(super) fn tasks(&self) -> TaskTracker {
        self.tasks.clone()
    }

    pub(super) fn kv(&self) -> WithSharedBodies<KvServer<kv::Kv>> {
        let kv = KvServer::new(kv::Kv(self.clone()));
        WithSharedBodies(kv.max_decoding_message_size(MAX_KEY_REQUEST_BYTES))
    }

    pub(super) fn watch(&self) -> WithSharedBodies<WatchServer<watch::Watch>> {
        let watch = WatchServer::new(watch::Watch(self.clone()));
        WithSharedBodies(watch.max_decoding_message_size(MAX_OTHER_REQUEST_BYTES))
    }

    pub(super) fn maintenance(&self) -> MaintenanceServer<maintenance::Maintenance> {
        MaintenanceServer::new(maintenance::Maintenance(self.clone()))
            .max_decoding_message_size(MAX_OTHER_REQUEST_BYTES)
    }

    /// A header with the current revision.
    fn header(&self) -> ResponseHeader {
        header(self.replica.read(super::store::Store::header))
    }
}

/// The connection of a request.
fn peer<T>(request: &Request<T>) -> Arc<Peer> {
    let peer = request.extensions().get::<Arc<Peer>>();
    Arc::clone(peer.expect("the server adds the peer of its connection to each request"))
}

fn header(revision: i64) -> ResponseHeader {
    ResponseHeader { cluster_id: CLUSTER_ID, member_id: MEMBER_ID, revision, raft_term: 1 }
}
