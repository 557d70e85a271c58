//! Refusals as gRPC statuses.

use tonic::Status;

use super::Services;
use super::range::RangeError;
use crate::embedded::access::{Denied, Reader};
use crate::embedded::peer::Peer;
use crate::embedded::store::{KeyRange, StoreError};
use crate::proto::etcdserverpb::RangeRequest;
use crate::proto::etcdserverpb::range_request::{SortOrder, SortTarget};

/// Message for a range without a published scope. Readers of a feed distinguish it from other reasons to wait.
pub(crate) const UNKNOWN_SCOPE: &str = "no published scope has keys in this range";

pub(super) const COMPACTED: &str = "etcdserver: mvcc: required revision has been compacted";

/// etcd's message, whose limit is that of a request.
pub(super) const TOO_LARGE: &str = "etcdserver: request is too large";

/// Length limit of the key and the range end of a request: several times the longest published key.
pub(super) const MAX_KEY_LEN: usize = 4 * 1024;

/// Length limit of a key in the log. Clients choose keys, which may be as long as a request.
const MAX_LOGGED_KEY_LEN: usize = 256;

/// The beginning of a key, for the log.
pub(super) fn truncated_key(key: &[u8]) -> String {
    String::from_utf8_lossy(key.get(..MAX_LOGGED_KEY_LEN).unwrap_or(key)).into_owned()
}

/// The refusal of a write.
pub(super) fn read_only() -> Status {
    Status::failed_precondition(
        "this server is read-only: its keys are published by the program that runs it",
    )
}

/// Refuses a key that is longer than any published key.
pub(super) fn check_key_length<const N: usize>(keys: [&[u8]; N]) -> Result<(), Status> {
    if keys.iter().any(|key| key.len() > MAX_KEY_LEN) {
        return Err(Status::invalid_argument(TOO_LARGE));
    }
    Ok(())
}

pub(super) fn empty_key() -> Status {
    Status::invalid_argument("etcdserver: key is not provided")
}

/// Refuses an invalid list with the status of etcd. The server has lists in the order of keys alone, so other orders are
/// refused as unimplemented.
pub(super) fn check_range(request: &RangeRequest) -> Result<(), Status> {
    if request.key.is_empty() {
        return Err(empty_key());
    }
    check_key_length([&request.key, &request.range_end])?;
    let bounds = [
        request.min_mod_revision,
        request.max_mod_revision,
        request.min_create_revision,
        request.max_create_revision,
    ];
    let is_by_key = request.sort_target() == SortTarget::Key && request.sort_order() != SortOrder::Descend;
    if is_by_key && bounds == [0; 4] {
        Ok(())
    } else {
        Err(Status::unimplemented("a list has all keys of its range in their order, and no other one"))
    }
}

pub(super) fn shutting_down() -> Status {
    Status::unavailable("the server is shutting down")
}

impl From<Denied> for Status {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Unauthenticated => Status::invalid_argument("etcdserver: user name is empty"),
            Denied::Expired => Status::unauthenticated("the certificate of the client is no longer valid"),
            Denied::NotPermitted => Status::permission_denied("etcdserver: permission denied"),
        }
    }
}

impl Services {
    /// Authenticates a client.
    pub(super) fn reader(&self, peer: &Peer) -> Result<Reader, Status> {
        self.replica.access.reader(peer.certificate()).map_err(|denied| self.deny(denied))
    }

    /// Checks that `reader` may read all of `range`.
    pub(super) fn permit(&self, reader: &Reader, range: &KeyRange) -> Result<(), Status> {
        reader.check(range).map_err(|denied| self.deny(denied))
    }

    pub(super) fn deny(&self, denied: Denied) -> Status {
        self.replica.counters.update(|stats| stats.denied += 1);
        denied.into()
    }

    /// The status of a failed range or transaction.
    pub(super) fn range_error(&self, range_error: RangeError) -> Status {
        match range_error {
            RangeError::Range(range, refusal) => self.refuse(&range, refusal),
            RangeError::Compacted => Status::out_of_range(COMPACTED),
            RangeError::Future => {
                Status::out_of_range("etcdserver: mvcc: required revision is a future revision")
            }
            RangeError::TooLarge => Status::resource_exhausted(
                "the lists of a request have more bytes than one answer may hold, or it looks at too many keys",
            ),
        }
    }

    /// The status of a refused range. Unknown scopes are logged, because they result from a mistyped prefix.
    pub(super) fn refuse(&self, range: &KeyRange, refusal: StoreError) -> Status {
        self.replica.counters.update(|stats| stats.refused += 1);
        match refusal {
            StoreError::NotComplete => Status::unavailable("the first complete publication is still to come"),
            StoreError::UnknownScope => {
                self.log_unknown(range);
                Status::unavailable(UNKNOWN_SCOPE)
            }
        }
    }

    fn log_unknown(&self, range: &KeyRange) {
        let key = truncated_key(range.start());
        if self.unknown.should_log(&key) {
            let known: Vec<String> = self
                .replica
                .read(|store| store.scopes().take(32).map(|(scope, _)| scope.to_string()).collect());
            tracing::warn!(key, ?known, "a client requested an unpublished prefix");
        }
    }
}
