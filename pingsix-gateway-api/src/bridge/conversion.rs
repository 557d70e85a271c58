//! The conversion of one data plane, again and again.

use std::collections::BTreeMap;
use std::sync::Arc;

use pingsix_sink::{Desired, Document, Key, OrderHint, Owner, Scope, SinkError};
use pingsix_translate::pingsix::validate::{
    AcceptanceCheck, Subject, ValidateOptions, Violation, validate, write_order,
};
use pingsix_translate::pingsix::{Config, DocumentKey, LazyDocument};
use pingsix_translate::status::{Problem, Reason, Severity};
use pingsix_translate::{Change, DataPlane, DataPlaneKey, ObjectKey, Options, Origin, Provenance, SharedMap};

use super::quarantine::quarantine;
use super::{BridgeError, Bridged, origins_of, owner_of};

/// Converts one data plane repeatedly, at the cost of the changed documents while the data plane has no violations.
#[derive(Debug, Default)]
pub(crate) struct Bridge {
    conversion: Option<Conversion>,
}

/// The last conversion.
#[derive(Debug)]
struct Conversion {
    key: DataPlaneKey,
    options: Options,
    acceptance: ValidateOptions,
    /// The check of the documents of translation.
    check: AcceptanceCheck,
    /// The desired documents with their origins, as translation has them.
    config: Config,
    provenance: SharedMap<DocumentKey, Provenance>,
    desired: Desired,
}

impl Bridge {
    /// As [`bridge`](super::bridge()).
    ///
    /// # Errors
    ///
    /// As [`bridge`](super::bridge()).
    pub(crate) fn bridge(
        &mut self,
        key: &DataPlaneKey,
        plane: &DataPlane,
        options: &Options,
    ) -> Result<Bridged, BridgeError> {
        let last = self.conversion.take().filter(|last| last.key == *key && last.options == *options);
        let conversion = match last {
            Some(last) => last,
            None => Conversion::new(key, options)?,
        };
        self.conversion.insert(conversion).convert(plane)
    }
}

impl Conversion {
    fn new(key: &DataPlaneKey, options: &Options) -> Result<Self, BridgeError> {
        let prefix = key.prefix(&options.root);
        let scope =
            Scope::new(&prefix).map_err(|source| BridgeError::Key { data_plane: key.clone(), source })?;
        Ok(Self {
            key: key.clone(),
            options: options.clone(),
            acceptance: ValidateOptions {
                prefix,
                bytes_budget: options.budget.bytes,
                entries_budget: options.budget.matcher_entries,
                ..ValidateOptions::default()
            },
            check: AcceptanceCheck::default(),
            config: Config::new(),
            provenance: SharedMap::new(),
            desired: Desired::empty(scope),
        })
    }

    fn convert(&mut self, plane: &DataPlane) -> Result<Bridged, BridgeError> {
        let owner = Arc::new(self.key.owner());
        self.check.update(&plane.config);
        let (config, quarantined, violations) = if self.check.is_passed(&self.acceptance) {
            (plane.config.clone(), Vec::new(), Vec::new())
        } else {
            let failure = |key: &DocumentKey| plane.provenance.get(key).map_or(500, Provenance::failure);
            quarantine(&plane.config, failure, |config| validate(config, &self.acceptance))
        };
        let (refused, remarks): (Vec<_>, Vec<_>) = violations.into_iter().partition(Violation::is_refusal);
        if !refused.is_empty() {
            return Err(BridgeError::Refused { data_plane: self.key.clone(), violations: refused });
        }
        self.deliver(&config, &plane.provenance, &owner)
            .map_err(|source| BridgeError::Key { data_plane: self.key.clone(), source })?;

        let origins = |key: &DocumentKey| origins_of(&plane.provenance, key, &owner);
        let mut problems = Vec::new();
        for entry in &quarantined {
            problems.extend(origins(&entry.key).into_iter().map(|origin| Problem {
                field: origin.field(),
                object: origin.object,
                severity: Severity::Error,
                reason: Reason::Quarantined,
                message: entry.message.clone(),
            }));
        }
        for Violation { subject, field, message, .. } in remarks.into_iter().filter(|one| !one.is_intended())
        {
            let (origin, message) = match subject {
                Subject::Configuration | Subject::Key(_) => (None, message),
                Subject::Document(key) => {
                    let colon = if field.is_empty() { "" } else { ": " };
                    (origins(&key).into_iter().next(), format!("{key}{colon}{field}: {message}"))
                }
            };
            let origin = origin.unwrap_or_else(|| Origin::object(owner.clone()));
            problems.push(Problem {
                field: origin.field(),
                object: origin.object,
                severity: Severity::Warning,
                reason: Reason::Limited,
                message,
            });
        }
        problems.sort();
        problems.dedup();
        Ok(Bridged { desired: self.desired.clone(), config, quarantined, problems })
    }

    /// Changes the desired documents into those of a configuration. After an error, nothing has changed.
    fn deliver(
        &mut self,
        config: &Config,
        provenance: &SharedMap<DocumentKey, Provenance>,
        owner: &Arc<ObjectKey>,
    ) -> Result<(), SinkError> {
        let mut changed: BTreeMap<Key, Option<Document>> = BTreeMap::new();
        for change in config.documents().changes(self.config.documents()) {
            let (key, document) = match change {
                Change::Added(key, document) | Change::Replaced(key, _, document) => {
                    (key, Some(sink_document(key, document, owner_of(provenance, key, owner))?))
                }
                Change::Removed(key, _) => (key, None),
            };
            changed.insert(Key::new(key.to_string())?, document);
        }
        for change in provenance.changes(&self.provenance) {
            let (Change::Added(key, _) | Change::Replaced(key, ..) | Change::Removed(key, _)) = change;
            let sink_key = Key::new(key.to_string())?;
            if !changed.contains_key(&sink_key)
                && let Some(document) = self.desired.documents().get(&sink_key)
            {
                let owner = owner_of(provenance, key, owner);
                changed.insert(sink_key, Some(Document { owner, ..document.clone() }));
            }
        }
        let documents = self.desired.documents().with_changes(changed);
        self.desired = Desired::new(self.desired.scope().clone(), documents);
        (self.config, self.provenance) = (config.clone(), provenance.clone());
        Ok(())
    }
}

fn sink_document(key: &DocumentKey, document: &LazyDocument, owner: Owner) -> Result<Document, SinkError> {
    Ok(Document {
        key: Key::new(key.to_string())?,
        value: document.json(),
        order: OrderHint(write_order(key, document)),
        owner,
    })
}
