//! A conversion with the judgement of its output.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use pingsix_translate::manifest::{Decoded, decode_known_fields};
use pingsix_translate::selection::IndexedObjects;
use pingsix_translate::{Kind, ObjectKey, Objects, Options};
use serde_json::Value;

use super::asked::{self, Asked};
use super::choices::Choices;
use super::convert::{self, Account, Converted};
use super::error::{ManifestError, ReplayError};
use super::input::Input;
use super::judge;
use super::origins::Origins;
use super::replay::{self, Replayed, Requests};
use super::report::Report;
use super::translated::Translated;

/// The result of a migration.
///
/// The type keeps what the report comes from, because freeing all of its values one by one takes a tenth of the time of a
/// migration. A program that ends may forget the result.
pub struct Migration {
    objects: Vec<(ObjectKey, Arc<Value>)>,
    report: Report,
    account: Account,
    _basis: (Vec<Asked>, Origins, Translated),
}

impl Migration {
    /// The objects of the output, in the order in which they are applied.
    pub fn objects(&self) -> &[(ObjectKey, Arc<Value>)] {
        &self.objects
    }

    /// Drops the objects of the output that are as they were in the input.
    pub fn drop_unchanged(&mut self) {
        self.objects.retain(|(key, value)| !self.account.is_unchanged(key, value));
    }

    /// The verdict on each field.
    pub const fn report(&self) -> &Report {
        &self.report
    }
}

impl fmt::Debug for Migration {
    /// The objects hold secrets, so their number alone is shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Migration").field("objects", &self.objects.len()).finish_non_exhaustive()
    }
}

/// Converts the input, and judges the output by its translation with these options.
pub fn migrate(input: Input, choices: &Choices, options: Options) -> Migration {
    let Input { sources, report, .. } = input;
    let asked = asked::asked(&sources);
    let adopts = adopts(choices);
    let Converted { objects, origins, mut report, account } = convert::convert(sources, choices, report);
    // Neither needs the result of the other, and each takes a good part of the time.
    let (translated, ()) = rayon::join(
        || Translated::new(&objects, adopts, options),
        || account.complete(&objects, &mut report),
    );
    judge::judge(&asked, &objects, &origins, &translated, &mut report);
    Migration { objects, report, account, _basis: (asked, origins, translated) }
}

/// Asks requests of a model of the original and of the output.
///
/// # Errors
///
/// When the text has no request, or too many.
pub fn replay(
    input: Input,
    choices: &Choices,
    options: Options,
    requests: Requests<'_>,
) -> Result<Replayed, ReplayError> {
    let Input { sources, report, .. } = input;
    let created = sources.as_created();
    let adopts = adopts(choices);
    let Converted { objects, .. } = convert::convert(sources, choices, report);
    replay::replay(requests, &created, &Translated::new(&objects, adopts, options).answers())
}

/// The objects that a conversion needs by name, and those to which its output refers, existing or not. Only a conversion knows
/// them, because their names lie deep in plugins.
///
/// # Errors
///
/// When a value is no object.
pub fn referents(values: Vec<Value>, choices: &Choices) -> Result<BTreeSet<ObjectKey>, ManifestError> {
    let Input { sources, report, .. } = Input::of_values(values)?;
    let asked = sources.asked();
    let written = convert::convert(sources, choices, report).objects;
    let mut objects = Objects::default();
    for (_, value) in written {
        if let Decoded::Object { object, .. } = decode_known_fields(Arc::unwrap_or_clone(value)) {
            objects.insert(object);
        }
    }
    let indexed = IndexedObjects::from(objects);
    let is_read = |key: &&ObjectKey| matches!(key.kind, Kind::Service | Kind::Secret | Kind::ConfigMap);
    let mut referents: BTreeSet<ObjectKey> = indexed.dependencies().filter(is_read).cloned().collect();
    referents.extend(asked.take());
    Ok(referents)
}

/// Whether Gateways of other controllers become those of this one. Copies stand beside the originals.
const fn adopts(choices: &Choices) -> bool {
    choices.name_suffix.is_none()
}
