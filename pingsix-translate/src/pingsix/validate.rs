//! PingSIX's acceptance rules: what it refuses, when, and what it accepts but then gets wrong.
//!
//! PingSIX validates the whole prefix and drops the whole update for one fault in it, so nothing that it would
//! refuse may be written. Every rule here names the document, the field, and the PingSIX source file it
//! mirrors. The rules of single fields stand on the types, as `garde` attributes; the ones that need more than
//! a field stand below this module.
//!
//! [`validate`] takes a typed [`Config`]; [`validate_raw`], [`validate_pairs`] and [`validate_static`] take any
//! PingSIX configuration in the form it is stored in, and also report what the types cannot express: wrong
//! types, nulls, integers written as `1.0`, fields PingSIX ignores. [`order_dependence`] flags tables whose
//! answers depend on PingSIX's random order of insertion.

mod budget;
mod closure;
mod document;
mod pattern;
mod pem;
mod plugin;
mod raw;
pub(super) mod rules;
mod ssl;
mod upstream;
mod violation;

use std::collections::BTreeSet;

pub use self::budget::{BYTES_BUDGET, BYTES_LIMIT, ENTRIES_BUDGET, matcher_entries};
pub use self::closure::order_dependence;
pub(crate) use self::pem::{
    check_authorities, check_chain_and_key, check_leaf_and_key, read_certificates, write_section,
};
pub use self::raw::{validate_pairs, validate_raw, validate_static};
pub use self::violation::{Rule, Severity, Subject, Violation, is_refused, is_unfit};

use super::{Config, DocumentKey, Route};

/// What the acceptance rules need to know about the PingSIX that will read the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidateOptions {
    /// The prefix, which counts towards the size of every key.
    pub prefix: String,
    /// The most bytes a list response may have; [`BYTES_BUDGET`] leaves room below the hard [`BYTES_LIMIT`].
    pub bytes_budget: usize,
    /// The most matcher entries, that is the sum over all routes of hosts times paths.
    pub entries_budget: usize,
    /// What a node that is a DNS name means.
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

/// What a node that is a DNS name means. PingSIX refuses the whole configuration while a name does not
/// resolve and no other node of its upstream is usable, which nobody can know in advance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DnsNames {
    /// The name is taken to resolve, and a violation of [`Severity::Misbehaves`] points at the risk.
    #[default]
    Warn,
    /// The name is taken not to resolve: [`Severity::RejectedLate`] unless another node is an address.
    Refuse,
}

/// Whether PingSIX runs with `data_encryption`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encryption {
    /// Encryption envelopes are refused.
    #[default]
    Off,
    /// Well-formed envelopes are taken to decrypt, and to decrypt to what fits.
    On,
    /// Envelopes are texts like any other, as in PingSIX's static form.
    Literal,
}

/// Every fault of a configuration, in the order of its documents.
///
/// The rules look at the values as they are; a [`Config`] has already lost what only raw JSON can express.
pub fn validate(config: &Config, options: &ValidateOptions) -> Vec<Violation> {
    validate_known(config, &BTreeSet::new(), config.size_in_bytes(&options.prefix), options)
}

/// The faults of one document of a configuration: those that are not about several documents at once, and references
/// that lead nowhere. Nothing for a key without a document.
pub fn validate_document(config: &Config, key: &DocumentKey, options: &ValidateOptions) -> Vec<Violation> {
    let mut violations = Vec::new();
    if let Some(value) = config.get(key) {
        let context = document::Context { config, undecodable: &BTreeSet::new(), options, key };
        document::check(value, &context, &mut violations);
    }
    violations
}

/// Whether the path patterns of a route could conflict with those of others: whether any has parameters or doubled
/// braces.
pub fn may_conflict(route: &Route) -> bool {
    route.path_patterns().iter().any(|pattern| pattern::is_peculiar(pattern))
}

/// As [`validate`], with keys of documents that exist but could not be decoded, so that references to them are
/// not dangling, and with the size of what is really stored.
fn validate_known(
    config: &Config,
    undecodable: &BTreeSet<DocumentKey>,
    bytes: usize,
    options: &ValidateOptions,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (key, value) in config.iter() {
        let context = document::Context { config, undecodable, options, key };
        document::check(value, &context, &mut violations);
    }
    pattern::check_conflicts(config, &mut violations);
    ssl::check_server_names(config, &mut violations);
    budget::check(config, bytes, options, &mut violations);
    violations
}

#[cfg(test)]
mod tests;
