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
mod output;
mod ownership;
mod parent;
mod plugin_config;
mod route;
mod rules;
mod settings;
mod tls;
mod upstream;

use std::sync::Arc;

use pingsix_translate::ObjectKey;
use serde_json::Value;

use super::choices::Choices;
use super::consumer::{self, Consumers};
use super::origins::Origins;
use super::owner::Owners;
use super::report::Report;
use super::source::{SourceKind, Sources};
pub(crate) use account::Account;
use global::Protection;
use output::Output;
use parent::Parent;
use plugin_config::PluginConfigs;
use tls::RefusedHosts;
use upstream::Upstreams;

/// The input, the choices, and what the stages before have found, for the rules that depend on it. It holds secrets, so the type
/// has no `Debug`.
struct Context<'a> {
    sources: &'a Sources,
    choices: &'a Choices,
    owners: Owners,
    consumers: Consumers,
    plugin_configs: PluginConfigs,
    upstreams: Upstreams,
    refused_hosts: RefusedHosts,
    /// The protection by policies of Gateways.
    protection: Protection,
}

/// The conversion while objects are written.
struct Draft<'a> {
    context: &'a Context<'a>,
    output: &'a mut Output,
    report: &'a mut Report,
}

/// The result of a conversion. It holds secrets, so the type has no `Debug`.
pub(crate) struct Converted {
    /// In the order in which they are applied.
    pub(crate) objects: Vec<(ObjectKey, Arc<Value>)>,
    pub(crate) origins: Origins,
    pub(crate) report: Report,
    pub(crate) account: Account,
}

/// Converts all objects. The report names all fields once [`Account::complete`] has completed it.
pub(crate) fn convert(mut sources: Sources, choices: &Choices, mut report: Report) -> Converted {
    let mut predecessors = sources.take_predecessors();
    let classes = predecessors.class_names();
    let only_class = if classes.len() == 1 { classes.into_iter().next() } else { None };
    let gateway = Parent::choose(&predecessors, ingress::namespaces(&sources), &sources, choices);
    let owners = Owners { only_class, gateway: gateway.name.clone() };
    let mut output = Output::new(gateway);
    for (key, value) in &sources.kept {
        output.objects.keep(key.clone(), Arc::clone(value));
    }
    // The order: what rules refer to comes before them, and plugins of the Gateway before those of rules.
    let written = (&mut output.objects, &mut report);
    let consumers = consumer::convert(&mut predecessors, &sources, (choices, &owners), written);
    let mut context = Context {
        sources: &sources,
        choices,
        owners,
        consumers,
        plugin_configs: PluginConfigs::default(),
        upstreams: Upstreams::default(),
        refused_hosts: RefusedHosts::default(),
        protection: Protection::default(),
    };
    context.plugin_configs = plugin_config::read(&mut predecessors, &context, &mut report);
    let mut draft = Draft { context: &context, output: &mut output, report: &mut report };
    context.upstreams = upstream::convert(&mut predecessors, &mut draft);
    let mut draft = Draft { context: &context, output: &mut output, report: &mut report };
    context.refused_hosts = tls::convert(&mut predecessors, &mut draft);
    let mut draft = Draft { context: &context, output: &mut output, report: &mut report };
    context.protection = global::convert(&mut predecessors, &mut draft);
    let draft = &mut Draft { context: &context, output: &mut output, report: &mut report };
    route::convert(predecessors.take(SourceKind::ApisixRoute), draft);
    gateway_api::convert(&mut predecessors, draft);
    ingress::convert(draft);
    layer4::refuse_policies(&mut predecessors, draft);
    plugin_config::note_unused(&context.plugin_configs, &draft.output.used_configs, draft.report);
    gateway::finish(draft);
    copies::write(draft);
    ownership::report(draft);
    let (objects, origins) = output.objects.finish();
    Converted { objects, origins, report, account: Account::new(sources, choices.allow_weaker.clone()) }
}
