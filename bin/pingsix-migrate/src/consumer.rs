//! Consumers: their credentials become Secrets.

mod reader;

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::ObjectName;

use super::objects::NewSecret;
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

    /// The consumers with these credentials, once each Secret is written and has a name.
    pub(crate) fn of(
        credentials: Vec<NewCredential>,
        mut write: impl FnMut(NewSecret) -> ObjectName,
    ) -> Self {
        let mut consumers = Self::default();
        for NewCredential { owner, secret, kind } in credentials {
            let secret = write(secret);
            let pool = consumers.pools.entry(owner).or_default();
            match kind {
                CredentialKind::Keys => {
                    pool.keys.insert(secret);
                }
                CredentialKind::Basic { consumer } => pool.basic.push(Credential { consumer, value: secret }),
                CredentialKind::Jwt { consumer, algorithm, field, clock_skew } => {
                    let value = JwtKey { algorithm, field, secret, clock_skew };
                    pool.jwt.push(Credential { consumer, value });
                }
            }
        }
        consumers
    }
}

/// A Secret with credentials, before it has a name.
pub(crate) struct NewCredential {
    owner: Owner,
    secret: NewSecret,
    kind: CredentialKind,
}

/// The use of a Secret with credentials.
enum CredentialKind {
    /// Each entry is a key.
    Keys,
    /// The entries are a user and a password.
    Basic { consumer: String },
    /// The entry is a key for tokens.
    Jwt { consumer: String, algorithm: String, field: &'static str, clock_skew: u64 },
}
