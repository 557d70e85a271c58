//! Redirects over each protocol: those the responder answers, and those PingSIX can answer itself.

mod matrix;
mod native;

use serde_json::{Value, json};

/// The one prefix of these tests' kind; each test has its own below it.
const SCOPES: &str = "/contract/redirect";

/// The plugins of a route that redirects so.
fn redirect(config: &Value) -> Value {
    json!({ "redirect": config })
}
