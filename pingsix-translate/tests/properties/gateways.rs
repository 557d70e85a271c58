//! Several Gateways with routes of their own and routes they share: each is served as if it were alone.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::case::{Case, Setting, Tally, documents};
use crate::probe::Probe;

/// The Gateways of a table.
pub(crate) const GATEWAYS: [&str; 2] = ["public", "private"];

/// Compares the answers of each Gateway with the oracle's.
///
/// # Errors
///
/// The first disagreement, in words.
pub(crate) fn check(
    objects: &[Value],
    setting: Setting,
    probes: &[Probe],
    seed: u64,
) -> Result<Tally, String> {
    let mut tally = Tally::default();
    for gateway in GATEWAYS {
        let checked = Case::around(gateway, objects, setting).check(probes, 2, seed);
        tally.add(checked.map_err(|disagreement| format!("Gateway {gateway}: {disagreement}"))?);
    }
    Ok(tally)
}

/// Takes everything away that is attached to another Gateway alone, and looks for what changes; `None` when nothing
/// does.
pub(crate) fn interference(objects: &[Value], setting: Setting) -> Option<String> {
    for gateway in GATEWAYS {
        let own: Vec<Value> = objects.iter().filter(|object| concerns(object, gateway)).cloned().collect();
        let (among_others, alone) =
            (Case::around(gateway, objects, setting), Case::around(gateway, &own, setting));
        if documents(&among_others.translation) != documents(&alone.translation) {
            return Some(format!("the documents of Gateway {gateway} depend on what is attached to another"));
        }
        if among_others.translation.verdicts != alone.translation.verdicts {
            return Some(format!("the verdicts of Gateway {gateway} depend on what is attached to another"));
        }
    }
    None
}

/// Whether an object can matter to a Gateway: all but other Gateways and routes that do not name it.
fn concerns(object: &Value, gateway: &str) -> bool {
    match object["kind"].as_str() {
        Some("Gateway") => object["metadata"]["name"] == gateway,
        Some("HTTPRoute" | "GRPCRoute") => parents(object).contains(gateway),
        _ => true,
    }
}

/// The names of the Gateways a route names.
pub(crate) fn parents(route: &Value) -> BTreeSet<&str> {
    let parents = route["spec"]["parentRefs"].as_array().into_iter().flatten();
    parents.filter_map(|parent| parent["name"].as_str()).collect()
}
