//! The conversion of a translated data plane into the documents that a sink publishes.
//!
//! The bridge first checks every document by PingSIX's acceptance rules, because PingSIX drops a whole update for one
//! invalid document. Translation emits valid documents, so the check finds a violation only after a bug. Then it limits
//! the damage to the documents at fault, and fails closed:
//!
//! 1. A **Route** at fault is *closed*: it keeps its hosts, paths, methods and priority, and answers 500 itself. A
//!    Route for rules of GRPCRoutes alone answers 503, which their clients take for `UNAVAILABLE`. Its requests never
//!    fall to another rule. A Route with a reference to an omitted document is closed, too.
//! 2. A Route with invalid patterns is closed for its valid patterns. Without a valid pattern, the Route is *left out*,
//!    and the next broader Route answers.
//! 3. An upstream, service or certificate at fault is left out. Rule 1 then closes the Routes with references to it.
//! 4. A global rule is never left out, because it may protect every request. A violation in a global rule, or a
//!    configuration beyond its size, prevents the publication ([`BridgeError::Refused`]). The last publication stays in
//!    force.
//!
//! [`Bridged::quarantined`] lists each measure, and [`Bridged::problems`] has the objects behind the documents.

mod conversion;
mod quarantine;
pub(crate) mod stream;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use pingsix_sink::{Desired, Owner, Scope, SinkError};
use pingsix_translate::pingsix::validate::Violation;
use pingsix_translate::pingsix::{Config, DocumentKey};
use pingsix_translate::status::Problem;
use pingsix_translate::{
    DataPlane, DataPlaneKey, ObjectKey, Options, Origin, PolicyPlugins, Provenance, SharedMap,
};

pub(crate) use conversion::Bridge;
pub use quarantine::{Measure, Quarantined};
pub use stream::{BridgedStream, bridge_stream};

/// A data plane, ready to be published.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Bridged {
    /// The desired documents, under the data plane's prefix.
    pub desired: Desired,
    /// The same documents, decoded: the configuration after quarantine.
    pub config: Config,
    /// The documents that PingSIX would have refused; normally none.
    pub quarantined: Vec<Quarantined>,
    /// The problems by object: an error for a document in quarantine, a warning for a document that PingSIX accepts but
    /// handles in another way than its text suggests.
    pub problems: Vec<Problem>,
}

/// A data plane cannot be published.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BridgeError {
    /// The prefix or a key cannot be used.
    #[error("data plane {data_plane} has no valid keys")]
    Key {
        /// The data plane.
        data_plane: DataPlaneKey,
        /// The error of the key.
        #[source]
        source: SinkError,
    },
    /// PingSIX would refuse the configuration, and no single document is the cause.
    #[error("data plane {data_plane} would be refused by PingSIX: {}", sentences(violations))]
    Refused {
        /// The data plane.
        data_plane: DataPlaneKey,
        /// The violated rules.
        violations: Vec<Violation>,
    },
}

fn sentences(violations: &[Violation]) -> String {
    violations.iter().map(|violation| violation.message.as_str()).collect::<Vec<_>>().join(" ")
}

/// Converts a translated data plane into the documents of a sink; see [`mod@crate::bridge`].
///
/// A pure function: equal arguments give equal bytes. `options` are those of the translation.
///
/// # Errors
///
/// [`BridgeError`] if nothing can be published. Callers keep the last publication then.
pub fn bridge(key: &DataPlaneKey, plane: &DataPlane, options: &Options) -> Result<Bridged, BridgeError> {
    Bridge::default().bridge(key, plane, options)
}

/// The owner of a document.
fn owner_of(
    provenance: &SharedMap<DocumentKey, Provenance>,
    key: &DocumentKey,
    owner: &Arc<ObjectKey>,
) -> Owner {
    if let Some(Provenance::Policies { policies }) = provenance.get(key) {
        return Owner::shared(Arc::new(PoliciesOfService(policies.clone())));
    }
    let origins = origins_of(provenance, key, owner);
    Owner::shared(origins.first().map_or_else(|| owner.clone(), |origin| origin.object.clone()))
}

/// The policies of a service, each with its plugins: several policies share one document.
struct PoliciesOfService(Box<[PolicyPlugins]>);

impl fmt::Display for PoliciesOfService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (policy, plugins)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{policy}")?;
            if self.0.len() > 1 {
                write!(f, " ({})", plugins.join(", "))?;
            }
        }
        Ok(())
    }
}

/// The empty set of documents, for a deleted data plane.
///
/// # Errors
///
/// [`BridgeError::Key`] for an invalid prefix.
pub fn withdrawn(key: &DataPlaneKey, options: &Options) -> Result<Desired, BridgeError> {
    let scope = Scope::new(key.prefix(&options.root));
    Ok(Desired::empty(scope.map_err(|source| BridgeError::Key { data_plane: key.clone(), source })?))
}

/// The origins of a document, one per object and at least one: the rules of a Route.
pub(crate) fn origins_of(
    provenance: &SharedMap<DocumentKey, Provenance>,
    key: &DocumentKey,
    owner: &Arc<ObjectKey>,
) -> Vec<Origin> {
    let mut origins: Vec<Origin> = match provenance.get(key) {
        Some(Provenance::Rules { decisions, redirect, .. }) => {
            let decisive = decisions.iter().filter_map(|decision| decision.origin.as_ref());
            redirect.as_deref().into_iter().chain(decisive).cloned().collect()
        }
        Some(Provenance::Backend { service, .. }) => vec![Origin::object(service.clone())],
        Some(Provenance::Certificate { by, .. }) => by.iter().map(|by| by.origin()).collect(),
        Some(Provenance::Telemetry { proxies }) => proxies.iter().cloned().map(Origin::object).collect(),
        Some(Provenance::Policies { policies }) => {
            policies.iter().map(|(policy, _)| Origin::object(policy.clone())).collect()
        }
        Some(
            Provenance::Guard { .. } | Provenance::Status { .. } | Provenance::Redirect | Provenance::Filters,
        )
        | None => Vec::new(),
    };
    let mut seen = std::collections::BTreeSet::new();
    origins.retain(|origin| seen.insert(origin.object.clone()));
    if origins.is_empty() {
        origins.push(Origin::object(owner.clone()));
    }
    origins
}
