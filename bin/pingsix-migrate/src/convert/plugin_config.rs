//! ApisixPluginConfig and PluginConfig: plugins that rules refer to by name.

use pingsix_translate::ObjectName;

use super::{Conversion, NamedPlugins};
use crate::plugin::{self, PluginUse, Switch};
use crate::report::{Place, Reason};
use crate::source::{Source, SourceKind, Sources};

/// Reads all of them, for the rules that use them.
pub(super) fn read(sources: &mut Sources, conversion: &mut Conversion) {
    for (kind, switch) in
        [(SourceKind::ApisixPluginConfig, Switch::Enable), (SourceKind::PluginConfig, Switch::Always)]
    {
        for source in sources.take(kind) {
            let Source { name, place, mut spec, .. } = source;
            let before = conversion.report.losses();
            if kind == SourceKind::ApisixPluginConfig {
                let _ = conversion.class(&mut spec);
            }
            let items = spec.list("plugins", &mut conversion.report);
            let plugins = plugin::read(items, switch, &mut conversion.report);
            spec.finish(&mut conversion.report);
            let is_lost = conversion.report.losses() > before;
            let named = NamedPlugins { plugins, is_lost, is_used: false, place };
            conversion.plugin_configs.insert((kind, name), named);
        }
    }
}

/// The plugins of an object, for a rule.
pub(super) fn find(
    kind: SourceKind,
    name: &ObjectName,
    place: &Place,
    conversion: &mut Conversion,
) -> Vec<PluginUse> {
    let Some(named) = conversion.plugin_configs.get_mut(&(kind, name.clone())) else {
        let message = format!(
            "The input has no {} {name}, so the plugins of the rule are unknown. Give it, too.",
            kind.as_str()
        );
        conversion.report.blocking(place, Reason::LostReferent, message);
        return Vec::new();
    };
    named.is_used = true;
    if named.is_lost {
        conversion.report.blocking(
            place,
            Reason::LostReferent,
            format!("{} {name} is not understood.", kind.as_str()),
        );
    } else {
        conversion
            .report
            .exact(place, format!("The plugins of {} {name} become parts of the rule.", kind.as_str()));
    }
    named.plugins.clone()
}

/// Names the objects that no rule of the input uses.
pub(super) fn note_unused(conversion: &mut Conversion) {
    let unused = conversion.plugin_configs.values().filter(|named| !named.is_used);
    let places: Vec<Place> = unused.map(|named| named.place.clone()).collect();
    for place in places {
        conversion.report.limited(
            &place.at("spec"),
            Reason::NoEffect,
            "No rule of the input uses the object, so it becomes nothing.",
        );
    }
}
