//! The conversion: objects of the predecessors in, objects of Gateway API and a report out. It does no I/O.

mod account;
mod backend;
mod competition;
mod conditions;
mod copies;
mod covering;
mod gateway;
mod gateway_api;
mod global;
mod ingress;
mod layer4;
mod matches;
mod ownership;
mod plugin_config;
mod route;
mod rules;
mod settings;
mod tls;
mod upstream;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pingsix_translate::{ObjectKey, ObjectName};
use serde_json::{Map, Value};

use super::choices::Choices;
use super::consumer::{self, Consumers, Owner};
use super::origins::Origins;
use super::output::Output;
use super::plugin::{Effects, PluginUse};
use super::report::{Place, Reason, Report, Verdict};
use super::source::{Fields, SourceKind, Sources};
pub(crate) use account::Account;
use gateway::Parent;
use upstream::Upstreams;

/// The state of a conversion. It holds secrets, so the type has no `Debug`.
pub(crate) struct Conversion {
    pub(crate) output: Output,
    pub(crate) report: Report,
    pub(crate) consumers: Consumers,
    choices: Choices,
    /// The only class of the input; a class without a name means this one.
    only_class: Option<String>,
    parent: Parent,
    /// Fields that policies of Gateways set, as far as they protect.
    global: BTreeMap<ObjectName, BTreeSet<String>>,
    /// Whether the original protects all rules in a way that is impossible here.
    global_is_lost: bool,
    /// Hosts whose clients need certificates in the original, by the ApisixTls that has them.
    refused_hosts: Vec<(ObjectName, Vec<String>)>,
    /// The same hosts, without the ApisixTls objects.
    all_refused_hosts: BTreeSet<String>,
    /// Matches of all rules, times their hosts.
    entries: usize,
    telemetry: Map<String, Value>,
    plugin_configs: BTreeMap<(SourceKind, ObjectName), NamedPlugins>,
    upstreams: Upstreams,
    /// Labels and annotations of other tools that copies do not have.
    disowned: BTreeSet<String>,
}

/// The result of a conversion. It holds secrets, so the type has no `Debug`.
pub(crate) struct Converted {
    /// In the order in which they are applied.
    pub(crate) objects: Vec<(ObjectKey, Arc<Value>)>,
    pub(crate) origins: Origins,
    pub(crate) report: Report,
    pub(crate) account: Account,
}

/// Plugins that rules refer to by name.
struct NamedPlugins {
    plugins: Vec<PluginUse>,
    /// Whether a part of the object is not understood.
    is_lost: bool,
    is_used: bool,
    place: Place,
}

/// Converts all objects. The report names all fields once [`Account::complete`] has completed it.
pub(crate) fn convert(mut sources: Sources, choices: Choices, report: Report) -> Converted {
    let classes = sources.class_names();
    let only_class = if classes.len() == 1 { classes.into_iter().next() } else { None };
    let parent = Parent::choose(&sources, &choices);
    let mut conversion = Conversion {
        output: Output::default(),
        report,
        consumers: Consumers::default(),
        choices,
        only_class,
        parent,
        global: BTreeMap::new(),
        global_is_lost: false,
        refused_hosts: Vec::new(),
        all_refused_hosts: BTreeSet::new(),
        entries: 0,
        telemetry: Map::new(),
        plugin_configs: BTreeMap::new(),
        upstreams: Upstreams::default(),
        disowned: BTreeSet::new(),
    };
    for (key, value) in &sources.kept {
        conversion.output.keep(key.clone(), Arc::clone(value));
    }
    // The order: what rules refer to comes before them, and plugins of the Gateway before those of rules.
    consumer::convert(&mut sources, &mut conversion);
    plugin_config::read(&mut sources, &mut conversion);
    upstream::convert(&mut sources, &mut conversion);
    tls::convert(&mut sources, &mut conversion);
    global::convert(&mut sources, &mut conversion);
    let routes = sources.take(SourceKind::ApisixRoute);
    route::convert(routes, &sources, &mut conversion);
    gateway_api::convert(&mut sources, &mut conversion);
    ingress::convert(&mut conversion, &sources);
    layer4::refuse_policies(&mut sources, &mut conversion);
    plugin_config::note_unused(&mut conversion);
    gateway::finish(&mut conversion);
    copies::write(&sources, &mut conversion);
    ownership::report(&mut conversion);
    let Conversion { output, report, choices, .. } = conversion;
    let (objects, origins) = output.finish();
    Converted { objects, origins, report, account: Account::new(sources, choices.allow_weaker) }
}

impl Conversion {
    /// Whether the user wants the object although it protects less than the original.
    pub(crate) fn may_be_weaker(&self, kind: SourceKind, name: &ObjectName) -> bool {
        self.is_named(kind.as_str(), name)
    }

    fn is_named(&self, kind: &str, name: &ObjectName) -> bool {
        self.choices.allow_weaker.contains(&(kind.to_owned(), name.clone()))
    }

    /// Notes that a part of an object is not written.
    pub(crate) fn withhold(&mut self, place: &Place, message: impl Into<String>) {
        self.report.add(place, Verdict::Withheld, Reason::NotWritten, message);
    }

    /// Likewise, of an object that is written as a whole once `--allow-weaker` names it.
    pub(crate) fn withhold_until_named(&mut self, place: &Place, message: &str) {
        let object = place.object.replacen(' ', "/", 1);
        let how = format!("--allow-weaker {object} writes it without the parts that are impossible.");
        self.withhold(place, format!("{message} {how}"));
    }

    /// Takes the class of an object.
    pub(crate) fn class(&mut self, spec: &mut Fields) -> Owner {
        let class = spec.text("ingressClassName", &mut self.report).filter(|(_, name)| !name.is_empty());
        if let Some((place, _)) = &class {
            let message = format!("Gateway {} takes the place of the class.", self.parent.name);
            self.report.exact(place, message);
        }
        let class = class.map(|(_, name)| name).or_else(|| self.only_class.clone());
        Owner::Class(class.unwrap_or_default())
    }

    /// Keeps what plugins ask of the telemetry of the data plane.
    fn keep_telemetry(&mut self, effects: &mut Effects) {
        for (name, value) in std::mem::take(&mut effects.telemetry) {
            self.telemetry.entry(name).or_insert(value);
        }
    }
}
