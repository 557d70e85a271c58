//! The addresses of the pages.

use pingsix_translate::ObjectKey;

use crate::about::About;

/// The root of all pages.
pub(super) const ROOT: &str = "/view";

/// An address with parameters. Empty parameters are left out.
pub(super) fn address(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(parameters.iter().filter(|(_, value)| !value.is_empty()));
    let query = query.finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// The address of the page of an object.
pub(super) fn object_address(key: &ObjectKey) -> String {
    address("/view/object", &[("about", &About(key.clone()).to_string())])
}
