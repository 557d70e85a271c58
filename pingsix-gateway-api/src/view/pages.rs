//! The pages, each with a file.

pub(super) mod data_planes;
pub(super) mod explain;
pub(super) mod findings;
pub(super) mod overview;
mod owner;
mod route;
pub(super) mod routes;

use pingsix_translate::ObjectKey;

use super::Model;
use super::part::Part;

/// The page of an object; `None` if it has none.
pub(super) fn object(model: &Model, key: &ObjectKey, part: Part) -> Option<String> {
    match model.owners.get(key) {
        Some(view) => Some(owner::page(model, key, view, part)),
        None => route::page(model, key),
    }
}
