//! ApisixPluginConfig and PluginConfig: plugins that rules refer to by name.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::ObjectName;

use super::{Context, Draft};
use crate::plugin::{self, PluginUse, Switch};
use crate::report::{Place, Reason, Report};
use crate::source::{Predecessors, Source, SourceKind};

/// Plugins that rules refer to by name.
struct NamedPlugins {
    plugins: Vec<PluginUse>,
    /// Whether a part of the object is not understood.
    is_lost: bool,
    place: Place,
}

/// All of them by name.
#[derive(Default)]
pub(super) struct PluginConfigs(BTreeMap<(SourceKind, ObjectName), NamedPlugins>);

/// Reads all of them, for the rules that use them.
pub(super) fn read(
    predecessors: &mut Predecessors,
    context: &Context<'_>,
    report: &mut Report,
) -> PluginConfigs {
    let mut configs = PluginConfigs::default();
    for (kind, switch) in
        [(SourceKind::ApisixPluginConfig, Switch::Enable), (SourceKind::PluginConfig, Switch::Always)]
    {
        for source in predecessors.take(kind) {
            let Source { name, place, mut spec, .. } = source;
            let before = report.losses();
            if kind == SourceKind::ApisixPluginConfig {
                let _ = context.owners.of_class(&mut spec, report);
            }
            let items = spec.list("plugins", report);
            let plugins = plugin::read(items, switch, report);
            spec.finish(report);
            let is_lost = report.losses() > before;
            configs.0.insert((kind, name), NamedPlugins { plugins, is_lost, place });
        }
    }
    configs
}

/// The plugins of an object, for a rule.
pub(super) fn find(
    kind: SourceKind,
    name: &ObjectName,
    place: &Place,
    draft: &mut Draft<'_>,
) -> Vec<PluginUse> {
    let context = draft.context;
    let Some(named) = context.plugin_configs.0.get(&(kind, name.clone())) else {
        let message = format!(
            "The input has no {} {name}, so the plugins of the rule are unknown. Give it, too.",
            kind.as_str()
        );
        draft.report.blocking(place, Reason::LostReferent, message);
        return Vec::new();
    };
    draft.output.used_configs.insert((kind, name.clone()));
    if named.is_lost {
        let message = format!("{} {name} is not understood.", kind.as_str());
        draft.report.blocking(place, Reason::LostReferent, message);
    } else {
        draft
            .report
            .exact(place, format!("The plugins of {} {name} become parts of the rule.", kind.as_str()));
    }
    named.plugins.clone()
}

/// Names the objects that no rule of the input uses.
pub(super) fn note_unused(
    configs: &PluginConfigs,
    used: &BTreeSet<(SourceKind, ObjectName)>,
    report: &mut Report,
) {
    for (_, named) in configs.0.iter().filter(|(key, _)| !used.contains(*key)) {
        let message = "No rule of the input uses the object, so it becomes nothing.";
        report.limited(&named.place.at("spec"), Reason::NoEffect, message);
    }
}
