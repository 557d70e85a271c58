//! Upper bounds of the bytes of Routes, rows and the documents that they need.

use crate::backends::Action;
use crate::lower::lowering::Lowering;
use crate::lower::naming::telemetry;
use crate::lower::plane::{Misdirected, ZoneListeners};
use crate::lower::redirect::{headers, instruction, native, to_https};
use crate::lower::route_sizes::{ROUTE_SIZES, RouteSizes};
use crate::lower::table::RequestScheme;
use crate::model::Hostname;
use crate::normalise::{Condition, Conditions, Filters, VarsSize};
use crate::pingsix::{Plugins, json_len, listed_bytes};

/// Bytes of a Route without hosts, patterns, rows and the prefix of its key.
pub(super) fn route_bytes(method: Option<&str>) -> usize {
    ROUTE_SIZES.route + method.map_or(0, |method| ROUTE_SIZES.method + method.len())
}

/// The bytes of the rule that answers 421, in a Route of a zone. It matches requests at another address than the zone's.
pub(super) fn address_bytes(zone: &ZoneListeners) -> usize {
    let RouteSizes { split, split_rule, address, target, .. } = *ROUTE_SIZES;
    match zone.misdirected {
        Some(Misdirected::UnlessAt(_)) => split + split_rule + address + target,
        Some(Misdirected::All) | None => 0,
    }
}

/// Bytes of the name of a Route whose first row is of a route.
pub(super) fn name_bytes(lowering: &Lowering<'_>, route: usize) -> usize {
    let name = &lowering.routes[route].route.key.name;
    if lowering.options.route_names { ROUTE_SIZES.name + name.namespace.len() + name.name.len() } else { 0 }
}

/// Bytes of the global rule for telemetry.
pub(super) fn telemetry_bytes(lowering: &Lowering<'_>) -> usize {
    let Some((key, document, _)) = telemetry(lowering.plane) else { return 0 };
    lowering.prefix() + listed_bytes(&key, &document)
}

/// Bytes that a row without filters adds to the list of its cell, and to every other one it stands in.
pub(super) fn row_bytes(conditions: &Conditions, action: &Action) -> usize {
    let RouteSizes { split, split_rule, target, .. } = *ROUTE_SIZES;
    let targets = action.targets.len().saturating_mul(target);
    if conditions.is_empty() && action.targets.len() == 1 {
        // The Route has the id of the only target in any case.
        return 0;
    }
    let VarsSize { lists, bytes } = conditions.vars_size();
    bytes as usize + (split_rule + targets).saturating_mul(lists as usize) + split
}

/// Bytes of all plugins that may come of filters, with the charge for the memory of their patterns.
pub(super) fn filter_bytes(
    lowering: &Lowering<'_>,
    zone: usize,
    filters: &Filters,
    host: Option<&Hostname>,
) -> usize {
    let entrances = &lowering.plane.zones[zone].entrances;
    let mut plugins = Plugins::default();
    let mut bytes = 0;
    if let Some(redirect) = &filters.redirect {
        let all = entrances.iter().map(std::slice::from_ref).chain([entrances.as_slice()]);
        for entrances in all {
            for plugin in [native(redirect, host, entrances), to_https(redirect, host)].into_iter().flatten()
            {
                let mut alone = Plugins::default();
                alone.insert(&plugin);
                bytes = bytes.max(json_len(&alone));
            }
        }
        let instruction = instruction(redirect, entrances)
            .or_else(|| instruction(redirect, entrances.get(..1).unwrap_or_default()));
        filters.lower(instruction.as_ref().map(headers), None, &mut plugins);
    } else if let Some(response) = &filters.response {
        plugins.insert(&response.lower());
    } else {
        filters.lower(None, None, &mut plugins);
    }
    bytes + json_len(&plugins) + ROUTE_SIZES.plugins + filters.pattern_charge()
}

/// Whether requests may go on after a row.
pub(super) fn is_conditional(conditions: &[Condition], scheme: RequestScheme) -> bool {
    !conditions.is_empty() || scheme != RequestScheme::Any
}
