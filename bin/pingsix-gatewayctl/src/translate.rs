//! `translate`: manifests to PingSIX configuration.

use anyhow::Context as _;
use pingsix_translate::{DataPlaneKey, Options};
use serde_json::{Map, Value, json};

use crate::arguments::{DefaultInput, Input, TranslateArguments, TranslateOutput};
use crate::finding::{Tally, print_grouped};
use crate::plane::Translated;
use crate::review::review;
use crate::{Exit, Streams, input, yaml};

pub(crate) fn run(
    arguments: &TranslateArguments,
    default: DefaultInput,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let input = Input::choose(&arguments.paths, &arguments.cluster, default)?;
    let manifests = input::load(&input, &arguments.translation.endpoints, streams.err)?;
    let options = arguments.translation.options();
    let mut translated = Translated::new(&manifests, &options);
    translated.require_verdicts(&options);
    match arguments.output {
        TranslateOutput::Yaml => {
            for (key, config) in configs(&translated) {
                writeln!(streams.out, "---\n# data plane {key}, etcd prefix {}", key.prefix(&options.root))?;
                if matches!(key, DataPlaneKey::Stream { .. }) {
                    writeln!(streams.out, "# for a stream proxy, not for PingSIX")?;
                }
                let lists = yaml::encode(&config)?;
                writeln!(streams.out, "{}", lists.trim_end())?;
            }
        }
        TranslateOutput::Json => {
            let planes: Vec<Value> = configs(&translated)
                .map(|(key, config)| {
                    json!({
                        "dataPlane": key.to_string(), "prefix": key.prefix(&options.root), "config": config,
                    })
                })
                .collect();
            print_json(&json!({ "dataPlanes": planes }), streams)?;
        }
        TranslateOutput::EtcdJson => print_json(&Value::Object(etcd(&translated, &options)?), streams)?,
        TranslateOutput::Status => {
            for status in translated.statuses(&options) {
                writeln!(streams.out, "---\n{}", yaml::encode(&status)?.trim_end())?;
            }
        }
        TranslateOutput::Review => {
            streams.out.write_all(review(&translated, &options).as_bytes())?;
        }
    }
    let tally = Tally::of(&translated.findings);
    // A review has them already.
    if tally != Tally::default() && arguments.output != TranslateOutput::Review {
        streams.out.flush()?;
        print_grouped(&translated.findings, streams.err)?;
        writeln!(streams.err, "{tally}")?;
    }
    Ok(if tally.errors > 0 { Exit::Problems } else { Exit::Success })
}

/// The lists of documents of each data plane: PingSIX's, then those for stream proxies.
fn configs(translated: &Translated) -> impl Iterator<Item = (&DataPlaneKey, Value)> {
    let pingsix = translated
        .output
        .planes
        .iter()
        .filter_map(|(key, plane)| Some((key, plane.bridged.as_ref()?.config.to_static())));
    let streams = translated
        .output
        .streams
        .iter()
        .filter_map(|(key, streams)| Some((key, streams.bridged.as_ref()?.config.to_static())));
    pingsix.chain(streams)
}

fn print_json(value: &Value, streams: &mut Streams<'_>) -> anyhow::Result<()> {
    writeln!(streams.out, "{}", serde_json::to_string_pretty(value)?)?;
    Ok(())
}

/// Every key with its value, as they are served.
fn etcd(translated: &Translated, options: &Options) -> anyhow::Result<Map<String, Value>> {
    let pingsix = translated.output.planes.iter().filter_map(|(key, plane)| {
        let config = &plane.bridged.as_ref()?.config;
        Some(config.to_pairs(&key.prefix(&options.root)).collect::<Vec<_>>())
    });
    let streams = translated.output.streams.iter().filter_map(|(key, streams)| {
        Some(streams.bridged.as_ref()?.config.to_pairs(&key.prefix(&options.root)).collect::<Vec<_>>())
    });
    let mut pairs = Map::new();
    for (key, value) in pingsix.chain(streams).flatten() {
        let value = serde_json::from_str(&value).with_context(|| format!("cannot print {key}"))?;
        pairs.insert(key, value);
    }
    Ok(pairs)
}
