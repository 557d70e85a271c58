//! The input of a migration, as programs hand it over.

use std::fmt;

use pingsix_translate::manifest::documents;
use rayon::prelude::*;
use serde_json::Value;

use super::error::{InputError, ManifestError};
use super::report::Report;
use super::source::Sources;

/// The objects of the input.
#[derive(Default)]
pub struct Input {
    pub(crate) sources: Sources,
    /// The verdicts of the reader: names, kinds and fields that cannot be converted.
    pub(crate) report: Report,
    count: usize,
}

impl Input {
    /// Takes objects that are in no file.
    ///
    /// # Errors
    ///
    /// When one of them is no object.
    pub fn of_values(values: impl IntoIterator<Item = Value>) -> Result<Self, ManifestError> {
        let mut input = Self::default();
        for value in values {
            input.count += input.sources.add(value, &mut input.report)?;
        }
        Ok(input)
    }

    /// Adds the documents of a file. Of two objects with one name, the first counts.
    ///
    /// # Errors
    ///
    /// When a document is not valid.
    pub fn add_text(&mut self, file: &str, text: &str) -> Result<(), InputError> {
        let documents = documents(text).into_par_iter();
        let decoded: Vec<_> = documents.map(|document| (document.line(), document.decode())).collect();
        for (line, value) in decoded {
            let file = || file.to_owned();
            let value = value.map_err(|error| InputError::NotYaml {
                file: file(),
                line: error.line,
                message: error.message,
            })?;
            let added = self.sources.add(value, &mut self.report);
            self.count += added.map_err(|source| InputError::NotAManifest { file: file(), line, source })?;
        }
        Ok(())
    }

    /// Whether there is no object.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl fmt::Debug for Input {
    /// The objects hold secrets, so their number alone is shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").field("count", &self.count).finish_non_exhaustive()
    }
}
