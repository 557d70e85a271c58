//! Command lines of `pingsix-gatewayctl` with the content of a page.

use pingsix_translate::{Budget, Kind, Layout, ObjectKey, Options};

use super::Model;

/// The name of the program.
const PROGRAM: &str = "pingsix-gatewayctl";

/// The responder of `pingsix-gatewayctl` by default.
const RESPONDER: &str = "127.0.0.1:8089";

/// The options of `pingsix-gatewayctl` for a translation with these options. Options with their default values are left
/// out. `route_names` and `attached_sinks` change no page, and have no option.
pub fn translation_options(options: &Options) -> Vec<String> {
    let default = Options::default();
    let Options { controller_name, layout, root, responder, budget, namespace_share, stream, .. } = options;
    let Budget { bytes, matcher_entries } = budget;
    let mut words = Vec::new();
    let mut add = |is_default: bool, name: &str, value: String| {
        if !is_default {
            words.extend([name.to_owned(), value]);
        }
    };
    let layout_word = match layout {
        Layout::Shared => "shared",
        Layout::PerPort => "per-port",
    };
    add(*layout == default.layout, "--layout", layout_word.to_owned());
    add(*controller_name == default.controller_name, "--controller-name", controller_name.clone());
    add(*root == default.root, "--root", root.clone());
    let responder = responder.map_or_else(|| "off".to_owned(), |address| address.to_string());
    add(responder == RESPONDER, "--responder", responder);
    add(*bytes == default.budget.bytes, "--budget-bytes", bytes.to_string());
    add(*matcher_entries == default.budget.matcher_entries, "--budget-entries", matcher_entries.to_string());
    let share = (*namespace_share).clamp(1, 100);
    add(share == default.namespace_share, "--budget-namespace-share", share.to_string());
    if *stream {
        words.push("--stream".to_owned());
    }
    words
}

/// A command line, with the input and the options of the translation of a model.
pub(super) fn line(model: &Model, command: &str, arguments: &[String]) -> String {
    let mut words = vec![PROGRAM.to_owned(), command.to_owned()];
    words.extend(model.input.iter().cloned());
    words.extend(translation_options(&model.options));
    words.extend(arguments.iter().cloned());
    shell_words::join(words)
}

/// An option with its value, in one word if the value looks like an option.
pub(super) fn option(name: &str, value: &str) -> Vec<String> {
    if value.starts_with('-') {
        vec![format!("{name}={value}")]
    } else {
        vec![name.to_owned(), value.to_owned()]
    }
}

/// The option of `explain` for a Gateway or an IngressClass.
pub(super) fn owner_option(owner: &ObjectKey) -> Vec<String> {
    if owner.kind == Kind::IngressClass {
        option("--ingress-class", &owner.name.name)
    } else {
        option("--gateway", &owner.name.to_string())
    }
}
