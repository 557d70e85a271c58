//! Consumers: their credentials become Secrets.

mod reader;

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::ObjectName;

use super::owner::Owner;
pub(crate) use reader::convert;

/// The credentials of one kind of a consumer.
#[derive(Clone, Debug)]
pub(crate) struct Credential<T> {
    /// The consumer in messages.
    pub(crate) consumer: String,
    pub(crate) value: T,
}

/// A key for tokens.
#[derive(Clone, Debug)]
pub(crate) struct JwtKey {
    pub(crate) algorithm: String,
    /// The field of the policy: `secretRef` or `publicKeyRef`.
    pub(crate) field: &'static str,
    pub(crate) secret: ObjectName,
    pub(crate) clock_skew: u64,
}

/// The consumers of one data plane of the original. Secrets are known by their names alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool {
    /// Secrets each of whose entries is a key.
    pub(crate) keys: BTreeSet<ObjectName>,
    /// Secrets with a user and a password.
    pub(crate) basic: Vec<Credential<ObjectName>>,
    pub(crate) jwt: Vec<Credential<JwtKey>>,
}

/// All consumers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Consumers {
    pools: BTreeMap<Owner, Pool>,
    empty: Pool,
}

impl Consumers {
    pub(crate) fn pool(&self, owner: &Owner) -> &Pool {
        self.pools.get(owner).unwrap_or(&self.empty)
    }
}
