//! Whether a route changes what a more specific rule of another one answers, whatever their ages.

use pingsix_translate::DataPlane;
use pingsix_translate::pingsix::{RouteTable, Router};
use serde_json::Value;

use crate::answer::answer;
use crate::case::{Case, Setting};
use crate::probe::Probe;

/// The number of compared requests: a more specific rule decides them, and the route has a rule for them, too.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Compared {
    pub(crate) all: u64,
    /// Those whose rule is younger than the route.
    pub(crate) younger: u64,
}

impl Compared {
    pub(crate) fn add(&mut self, other: Self) {
        self.all += other.all;
        self.younger += other.younger;
    }
}

/// Takes each route of a table away and compares the answers of more specific rules.
///
/// # Errors
///
/// The first answer that depends on a wider route.
pub(crate) fn compare(objects: &[Value], setting: Setting, probes: &[Probe]) -> Result<Compared, String> {
    let mut compared = Compared::default();
    let with = Case::new(objects, setting);
    for (index, object) in objects
        .iter()
        .enumerate()
        .filter(|(_, object)| object["kind"].as_str().is_some_and(|kind| kind.ends_with("Route")))
    {
        let mut fewer = objects.to_vec();
        fewer.remove(index);
        let without = Case::new(&fewer, setting);
        let metadata = &object["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        let route = format!("{}/{}", text("namespace"), text("name"));
        for (port, plane) in without.planes() {
            let other =
                with.planes().into_iter().find(|(other, _)| *other == port).and_then(|(_, plane)| plane);
            let (Some(plane), Some(other)) = (plane, other) else { continue };
            let tables = [RouteTable::new(&plane.config), RouteTable::new(&other.config)];
            let [alone, beside] = tables.each_ref().map(inserted);
            let (alone, beside) = (alone?, beside?);
            for probe in probes {
                let (probe, _) = without.world.meet(port, probe);
                // PingSIX answers preflights for a host, path and method before it looks at conditions, by the CORS filter of
                // the list; a rule that answers errors has none.
                if probe.is_preflight() {
                    continue;
                }
                let decided = |case: &Case, plane: &DataPlane, router: &Router<'_>| {
                    answer(&case.world, plane, router, &probe.request())
                };
                let before = decided(&without, plane, &alone)?;
                let Some(rule) = &before.rule else { continue };
                let Some(is_younger) = with.world.outranks(port, &probe, rule, &route) else { continue };
                compared.all += 1;
                compared.younger += u64::from(is_younger);
                let after = decided(&with, other, &beside)?;
                if after != before {
                    return Err(format!("{probe:#?}: because of {route}, {before:?} becomes {after:?}"));
                }
            }
        }
    }
    Ok(compared)
}

fn inserted<'c>(table: &RouteTable<'c>) -> Result<Router<'c>, String> {
    table.insert_in(0..table.len()).map_err(|error| error.to_string())
}
