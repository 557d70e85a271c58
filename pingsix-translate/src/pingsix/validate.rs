//! PingSIX's acceptance rules: the violations for which PingSIX refuses a configuration, and the configurations that
//! PingSIX accepts and then misinterprets.
//!
//! PingSIX validates the whole prefix and drops the whole update for one violation, so a sink must never write a
//! document with a violation. A violation names the document, the field, and the mirrored source file of PingSIX. The
//! rules of single fields are `garde` attributes of the types; all other rules are below this module.
//!
//! [`validate`] checks a typed [`Config`]. [`validate_pairs`] and [`validate_static`] check any PingSIX configuration in its
//! stored form. They also report violations that the types cannot express: wrong types, nulls, integers written as `1.0`,
//! and ignored fields. [`AcceptanceCheck`] checks the changed documents of a configuration alone. [`order_dependence`] finds
//! tables whose answers depend on PingSIX's random order of insertion.

mod acceptance;
mod budget;
mod closure;
mod context;
mod document;
mod inspect;
mod pattern;
mod pem;
mod plugin;
mod raw;
mod ssl;
mod upstream;
mod violation;

use std::collections::BTreeSet;

pub use self::acceptance::AcceptanceCheck;
pub use self::budget::{BYTES_BUDGET, BYTES_LIMIT, ENTRIES_BUDGET, matcher_entries};
pub use self::closure::order_dependence;
use self::context::Context;
pub(crate) use self::inspect::{encode, summary};
pub use self::inspect::{referring, write_order};
pub(crate) use self::pem::{
    CertificateError, check_authorities, check_for_sidecar, check_leaf_and_key, read_authorities,
    read_certificates, read_public_key, write_section,
};
pub use self::raw::{validate_pairs, validate_static};
pub use self::violation::{Severity, Subject, Violation, is_refused, is_unfit};

pub use super::rule::Rule;
use super::{Config, DocumentKey};

/// The properties of the PingSIX that reads the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidateOptions {
    /// The prefix, which counts towards the size of every key.
    pub prefix: String,
    /// The largest size of a list response in bytes; [`BYTES_BUDGET`] leaves room below the hard [`BYTES_LIMIT`].
    pub bytes_budget: usize,
    /// The largest number of matcher entries, the sum over all routes of hosts times paths.
    pub entries_budget: usize,
    /// The treatment of nodes with DNS names.
    pub dns_names: DnsNames,
    /// Whether the PingSIX decrypts secrets.
    pub encryption: Encryption,
}

impl Default for ValidateOptions {
    fn default() -> Self {
        Self {
            prefix: "/pingsix".to_owned(),
            bytes_budget: BYTES_BUDGET,
            entries_budget: ENTRIES_BUDGET,
            dns_names: DnsNames::Warn,
            encryption: Encryption::Off,
        }
    }
}

/// The treatment of nodes with DNS names. PingSIX refuses the whole configuration while a name does not resolve and
/// its upstream has no other usable node. A check in advance cannot know this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DnsNames {
    /// The check assumes that the name resolves, and reports the risk as [`Severity::Misbehaves`].
    #[default]
    Warn,
    /// The check assumes that the name does not resolve: [`Severity::RejectedLate`] unless another node is an address.
    Refuse,
}

/// Whether PingSIX runs with `data_encryption`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encryption {
    /// Encryption envelopes are refused.
    #[default]
    Off,
    /// The check assumes that well-formed envelopes decrypt to valid secrets.
    On,
    /// Envelopes are plain texts, as in PingSIX's static form.
    Literal,
}

/// Every violation of a configuration, in the order of its documents.
///
/// A [`Config`] lacks the violations that only raw JSON can express.
pub fn validate(config: &Config, options: &ValidateOptions) -> Vec<Violation> {
    validate_known(config, &BTreeSet::new(), config.size_in_bytes(&options.prefix), options)
}

/// As [`validate`], with the keys of undecodable documents, so references to them are not dangling, and with the size
/// of the stored documents.
fn validate_known(
    config: &Config,
    undecodable: &BTreeSet<DocumentKey>,
    bytes: usize,
    options: &ValidateOptions,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (key, value) in config.iter() {
        let context = Context { config, undecodable, options, key };
        document::check(value, &context, &mut violations);
    }
    pattern::check_conflicts(config, &mut violations);
    ssl::check_server_names(config, &mut violations);
    budget::check(config, bytes, options, &mut violations);
    violations
}

#[cfg(test)]
mod tests;
