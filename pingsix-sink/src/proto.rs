//! The wire types of etcd's v3 API, client and server, generated from `proto/*.proto`.
//!
//! The definitions are the part that this crate uses. `proto/codegen` writes both files. `Debug` of messages that may
//! carry a private key or a password is written here by hand and shows lengths only.
//!
//! `testdata/programs` has this file as a module, too: tests play clients and servers of etcd.

/// Keys, values and changes.
#[rustfmt::skip]
#[allow(
    missing_docs, unreachable_pub, dead_code, clippy::all, clippy::pedantic, clippy::allow_attributes_without_reason,
    reason = "generated code"
)]
#[path = "proto/mvccpb.rs"]
pub mod mvccpb;

/// Requests, responses and services.
#[rustfmt::skip]
#[allow(
    missing_docs, unreachable_pub, dead_code, missing_debug_implementations,
    clippy::all, clippy::pedantic, clippy::allow_attributes_without_reason,
    reason = "generated code"
)]
#[path = "proto/etcdserverpb.rs"]
pub mod etcdserverpb;

use std::fmt;

use etcdserverpb::compare::TargetUnion;
use etcdserverpb::{AuthenticateRequest, Compare, PutRequest};
use mvccpb::KeyValue;

impl fmt::Debug for KeyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyValue")
            .field("key", &self.key)
            .field("bytes", &self.value.len())
            .field("create_revision", &self.create_revision)
            .field("mod_revision", &self.mod_revision)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for PutRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PutRequest")
            .field("key", &self.key)
            .field("bytes", &self.value.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for AuthenticateRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthenticateRequest").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for Compare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compare")
            .field("key", &self.key)
            .field("range_end", &self.range_end)
            .field("result", &self.result().as_str_name())
            .field("target", &self.target().as_str_name())
            .field("operand", &self.target_union)
            .finish()
    }
}

impl fmt::Debug for TargetUnion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(number) => write!(f, "Version({number})"),
            Self::CreateRevision(number) => write!(f, "CreateRevision({number})"),
            Self::ModRevision(number) => write!(f, "ModRevision({number})"),
            Self::Lease(number) => write!(f, "Lease({number})"),
            Self::Value(value) => write!(f, "Value({} bytes)", value.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_never_shows_values_or_passwords() {
        let value = bytes::Bytes::from_static(b"secret");
        let texts = [
            format!("{:?}", KeyValue { value: value.clone(), ..KeyValue::default() }),
            format!("{:?}", PutRequest { value: value.clone(), ..PutRequest::default() }),
            format!("{:?}", TargetUnion::Value(value)),
            format!("{:?}", AuthenticateRequest { name: "root".into(), password: "secret".into() }),
        ];
        assert!(texts.iter().all(|text| !text.contains("secret")), "{texts:?}");
    }
}
