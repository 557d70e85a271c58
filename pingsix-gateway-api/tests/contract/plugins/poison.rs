//! Random configurations of all plugins: PingSIX builds those that the rules accept, and answers requests with them.

use std::collections::BTreeMap;

use pingsix_translate::pingsix::Request;
use pingsix_translate::pingsix::plugin::PLUGIN_NAMES;
use pingsix_translate::pingsix::validate::{DnsNames, ValidateOptions, is_refused, is_unfit, validate_pairs};
use serde_json::{Value, json};

use super::SCOPES;
use crate::acceptance::{changed, rich_plugins};
use crate::client::Protocol;
use crate::harness::{Harness, get};
use crate::rng::SeededRng;
use crate::run::{binary, cases, print_message, seed};

/// Routes that are published together.
const ROUTES_PER_PUBLICATION: usize = 500;

/// The rules' opinion of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Opinion {
    Fit,
    Harmful,
    Refused,
}

fn opinion(plugins: &Value) -> Opinion {
    let upstream = json!({ "nodes": { "127.0.0.1:9": 1 } });
    let route = json!({ "uri": "/", "upstream": upstream, "plugins": plugins });
    let options = ValidateOptions { dns_names: DnsNames::Refuse, ..ValidateOptions::default() };
    let violations = validate_pairs([("/pingsix/routes/r", route.to_string())], &options);
    match (is_refused(&violations), is_unfit(&violations)) {
        (true, _) => Opinion::Refused,
        (false, true) => Opinion::Harmful,
        (false, false) => Opinion::Fit,
    }
}

/// The configurations from which random ones are made. A traffic split has no upstream but the Route's own.
fn samples() -> Vec<(&'static str, Value)> {
    let mut samples = rich_plugins();
    samples.retain(|(name, _)| *name != "traffic-split");
    let targets = json!([{ "weight": 3 }, { "weight": 0 }]);
    let split = json!({ "rules": [{ "vars": [["http_x-a", "==", "b"]], "weighted_upstreams": targets }] });
    samples.push(("traffic-split", split));
    samples
}

/// Whether the plugin delays requests beyond the timeout of the test.
fn delays(config: &Value) -> bool {
    config.pointer("/delay/duration").or_else(|| config.pointer("/0/0")).and_then(Value::as_f64) > Some(0.5)
}

/// Whether the configuration itself sets this status.
fn asks_for(name: &str, config: &Value, status: u16) -> bool {
    let written: &[&str] = match name {
        "fault-injection" => &["/abort/http_status"],
        "limit-count" => &["/rejected_code"],
        "redirect" => &["/ret_code"],
        "response-rewrite" => &["/status_code"],
        _ => &[],
    };
    let is_written = |place: &&str| config.pointer(place).and_then(Value::as_u64) == Some(status.into());
    // The default of `limit-count`.
    written.iter().any(is_written) || (name, status) == ("limit-count", 503)
}

/// Requests that reach most parts of the plugins.
fn probes() -> [(Protocol, Request); 4] {
    const ORIGIN: &str = "http://a.t";
    let preflight = get("/x").method("OPTIONS").header("Access-Control-Request-Method", "GET");
    [
        (Protocol::Http1, get("/x")),
        (Protocol::Http1, get("/x/y?q=1").header("Origin", ORIGIN).header("X-A", "b").header("x-key", "a")),
        (
            Protocol::H2c,
            get("/x?token=1").header("Authorization", "Basic dTpw").header("Accept-Encoding", "br"),
        ),
        (Protocol::H2c, preflight.header("Origin", ORIGIN)),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_answers_under_every_configuration_that_the_rules_accept() {
    const TEST: &str = "random plugins";
    let Some(binary) = binary(TEST) else { return };
    let wanted = (cases() / 10).max(1);
    let samples = samples();
    let mut rng = SeededRng::new(seed(), 1);
    let mut drawn = Vec::new();
    let mut opinions: BTreeMap<Opinion, usize> = BTreeMap::new();
    while drawn.len() < wanted {
        let (name, config) = &samples[rng.below(samples.len())];
        let Some(config) = changed(&mut rng, config) else { continue };
        let plugins = json!({ *name: config });
        let opinion = opinion(&plugins);
        *opinions.entry(opinion).or_default() += 1;
        // The tests of acceptance show that PingSIX refuses the others.
        if opinion != Opinion::Refused {
            drawn.push((*name, config, plugins, opinion));
        }
    }
    let names: std::collections::BTreeSet<&str> = drawn.iter().map(|(name, ..)| *name).collect();
    assert!(wanted < 1000 || names == PLUGIN_NAMES.into(), "{names:?}");
    let (upstream, mut asked, mut failed) = (json!({}), 0, Vec::new());
    for (number, batch) in drawn.chunks(ROUTES_PER_PUBLICATION).enumerate() {
        let routes = batch.iter().map(|(_, _, plugins, _)| (plugins, &upstream));
        // PingSIX builds harmful ones, too.
        let harness = Harness::start(&binary, &format!("{SCOPES}/poison-{number}"), routes).await;
        for (route, (name, config, _, opinion)) in batch.iter().enumerate() {
            if *opinion == Opinion::Harmful || delays(config) {
                continue;
            }
            for (protocol, request) in probes() {
                let reply = harness.try_ask(protocol, route, &request).await;
                asked += 1;
                let is_sound = reply
                    .as_ref()
                    .is_ok_and(|reply| reply.status < 500 || asks_for(name, config, reply.status));
                if !is_sound {
                    let reply = reply.map(|reply| reply.status);
                    failed.push(format!("{name} {config}: {protocol:?} {request:?}: {reply:?}"));
                }
            }
        }
    }
    print_message(&format!("{TEST}: {asked} answers, seed {}, the rules say {opinions:?}", seed()));
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
}
