//! HTTPRouteFilters: the filters to which rules refer by `extensionRef`.
//!
//! Each filter is read once for all referring rules, because a regular expression costs much more than the rest.

use std::collections::BTreeMap;
use std::sync::Arc;

use garde::Validate as _;

use super::direct_response::DirectResponse;
use super::pattern;
use super::rewrite::RegexRewrite;
use crate::crd::{FilterPath, HttpRouteFilter};
use crate::model::{Capability, ObjectName};
use crate::parameters::api_path;
use crate::responder::encode_path;
use crate::shared_map::SharedMap;

/// The HTTPRouteFilters of a snapshot.
#[derive(Debug, Default)]
pub(crate) struct Extensions(BTreeMap<ObjectName, Result<Extension, String>>);

/// The effect of an HTTPRouteFilter.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Extension {
    Rewrite(Arc<RegexRewrite>),
    Response(Arc<DirectResponse>),
}

/// The most references to groups in a substitution. Each may stand for the whole path of a request.
const MAX_REFERENCES: usize = 9;

impl Extensions {
    pub(crate) fn new(filters: &SharedMap<ObjectName, Arc<HttpRouteFilter>>) -> Self {
        Self(filters.iter().map(|(name, filter)| (name.clone(), Extension::read(filter))).collect())
    }

    /// Takes in how a filter is now; `None` if it is gone.
    pub(crate) fn update(&mut self, name: &ObjectName, filter: Option<&HttpRouteFilter>) {
        match filter {
            Some(filter) => self.0.insert(name.clone(), Extension::read(filter)),
            None => self.0.remove(name),
        };
    }

    /// The filter with a name, or the field and the reason for which it cannot be used. `None` if there is no such filter.
    pub(super) fn get(&self, name: &ObjectName) -> Option<&Result<Extension, String>> {
        self.0.get(name)
    }
}

impl Extension {
    /// Reads a filter; the error names the unusable field and the reason.
    fn read(filter: &HttpRouteFilter) -> Result<Self, String> {
        let spec = &filter.spec;
        // Bounds come first, because the cost of the rest depends on the lengths.
        if let Err(report) = spec.validate() {
            let refused = report.iter().map(|(path, error)| {
                format!("{}: The value cannot be used: {error}.", api_path(&path.to_string()))
            });
            return Err(refused.collect::<Vec<_>>().join(" "));
        }
        match (&spec.url_rewrite, &spec.direct_response) {
            (Some(rewrite), None) => RegexRewrite::read(&rewrite.path)
                .map(|rewrite| Self::Rewrite(Arc::new(rewrite)))
                .map_err(|error| format!("spec.urlRewrite.path.{error}")),
            (None, Some(response)) => DirectResponse::read(response)
                .map(|response| Self::Response(Arc::new(response)))
                .map_err(|error| format!("spec.directResponse.{error}")),
            (None, None) | (Some(_), Some(_)) => {
                Err("spec: Exactly one of urlRewrite and directResponse has to be set.".to_owned())
            }
        }
    }
}

impl RegexRewrite {
    /// Reads a rewrite within the bounds of its definition; the error names the unusable field.
    pub(crate) fn read(written: &FilterPath) -> Result<Self, String> {
        let FilterPath { pattern, substitution, kind: _ } = written;
        let parsed = regex_syntax::parse(pattern).map_err(|error| not_a_pattern(&error))?;
        let properties = parsed.properties();
        if !(properties.look_set_prefix().contains(regex_syntax::hir::Look::Start)
            && properties.look_set_suffix().contains(regex_syntax::hir::Look::End))
        {
            return Err(format!("pattern: {}", Capability::RegexForPartOfPath.message(&[])));
        }
        // The syntax of PingSIX, with tighter bounds.
        let memory = pattern::memory(&parsed).map_err(|error| format!("pattern: {error}"))?;
        let template = encode_path(substitution);
        check_references(&template, properties.explicit_captures_len())?;
        Ok(Self { pattern: pattern.clone(), template, memory })
    }
}

/// Checks that each `$` in a substitution begins the number of a group. PingSIX leaves others as they are, and replaces
/// the number of a missing group by nothing (`src/core/plugin.rs`).
fn check_references(template: &str, groups: usize) -> Result<(), String> {
    let mut count = 0;
    for after in template.split('$').skip(1) {
        count += 1;
        let digits = after.len() - after.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
        let digits = &after[..digits];
        if digits.is_empty() {
            return Err(
                "substitution: A dollar sign stands before the number of a group; write %24.".to_owned()
            );
        }
        if !digits.parse().is_ok_and(|group: usize| (1..=groups).contains(&group)) {
            return Err(format!("substitution: ${digits} is no group of the pattern, which has {groups}."));
        }
    }
    if count > MAX_REFERENCES {
        return Err(format!(
            "substitution: There are {count} references to groups, and at most {MAX_REFERENCES} may be."
        ));
    }
    Ok(())
}

fn not_a_pattern(error: &impl ToString) -> String {
    let error = error.to_string();
    // The first lines of a message draw the place in the pattern.
    let reason = error.lines().last().unwrap_or_default();
    format!("pattern: PingSIX cannot compile it: {}.", reason.trim().trim_start_matches("error: "))
}

#[cfg(test)]
mod tests;
