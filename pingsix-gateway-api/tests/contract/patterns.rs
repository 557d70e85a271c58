//! Patterns of paths: the memory of PingSIX under the worst ones that a data plane takes, and requests that use it up.

use std::sync::Arc;

use pingsix_translate::{Object, ObjectName, Objects, Options, Translation, translate};
use serde_json::{Value, json};

use crate::client::{Client, Protocol};
use crate::echo::Echo;
use crate::etcd::Etcd;
use crate::expectations::get;
use crate::objects::{gateway_and_service, object, with_nodes};
use crate::process::{PingSix, Verdict, WAIT_TIMEOUT};
use crate::run::{binary, print_message};

/// The pattern of the path of a rule.
type Pattern = fn(usize) -> String;

/// The rules, each with a filter of its own.
const RULES: usize = 400;

/// Rules of a route.
const RULES_PER_ROUTE: usize = 16;

/// The bound of the memory of PingSIX, with the documents of all rules.
const MAX_MEMORY_BYTES: usize = 200_000_000;

/// As many threads as PingSIX has by default.
const THREADS: u8 = 2;

/// Gateway `infra/public` with rules for `/p0`, `/p1` and so on, whose paths are rewritten by patterns.
fn world(pattern: impl Fn(usize) -> String) -> Objects {
    let mut objects = gateway_and_service(&json!({ "port": 80 }), 8080);
    for rule in 0..RULES {
        objects.insert(Object::HttpRouteFilter(object(json!({
            "metadata": { "namespace": "infra", "name": format!("filter-{rule}") },
            "spec": { "urlRewrite": { "path": {
                "type": "ReplaceRegexMatch", "pattern": pattern(rule), "substitution": "/x",
            } } },
        }))));
    }
    for route in 0..RULES / RULES_PER_ROUTE {
        let rules: Vec<Value> = (route * RULES_PER_ROUTE..(route + 1) * RULES_PER_ROUTE)
            .map(|rule| {
                let filter = json!({
                    "group": "pingsix.io", "kind": "HTTPRouteFilter", "name": format!("filter-{rule}"),
                });
                json!({
                    "matches": [{ "path": { "value": format!("/p{rule}") } }],
                    "filters": [{ "type": "ExtensionRef", "extensionRef": filter }],
                    "backendRefs": [{ "name": "shop", "port": 80 }],
                })
            })
            .collect();
        objects.insert(Object::HttpRoute(object(json!({
            "metadata": { "namespace": "infra", "name": format!("route-{route}") },
            "spec": { "parentRefs": [{ "name": "public" }], "rules": rules },
        }))));
    }
    objects
}

fn translated(objects: &Objects) -> Translation {
    let snapshot = objects.snapshot(&ObjectName::new("infra", "public")).unwrap();
    translate(&snapshot, &Options::default())
}

/// The rules that PingSIX has a pattern for.
fn patterns_of(translation: &Translation) -> usize {
    let config = &translation.data_planes.values().next().unwrap().config;
    config.to_pairs("").filter(|(_, document)| document.contains("regex_uri")).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_stays_within_its_memory_under_the_worst_patterns_that_pass() {
    const TEST: &str = "memory of patterns";
    const SCOPE: &str = "/contract/patterns";
    let Some(binary) = binary(TEST) else { return };
    // States without end, each within the bounds of its own.
    let refused = translated(&world(|rule| format!("^/p{rule}/(?:[ab]*a[ab]{{13}}c)*(.*)$")));
    assert_eq!(patterns_of(&refused), 0);
    let text = format!("{:?}", refused.verdicts);
    assert!(text.contains(
        "HTTPRouteFilter infra/filter-0 cannot be used: spec.urlRewrite.path.pattern: PingSIX may need"
    ));

    let kinds: [(&str, Pattern, Vec<&str>); 4] = [
        // The backtracking keeps its place for each slash of a path.
        ("several ways", |rule| format!("^/p{rule}/(.*)/(.*)$"), vec!["/", "ab/"]),
        // Each byte has several alternatives.
        ("alternatives", |rule| format!("^/p{rule}/(?:a|b|/)*(.*)$"), vec!["a/b", "/"]),
        // The states of a DFA, each of which takes a long path.
        ("states", |rule| format!("^/p{rule}/.*a[ab/]{{6}}$"), vec!["ab/aaba/bb/aabab/b", "a/bbaba"]),
        // The compiled size.
        ("Unicode", |rule| format!(r"^/p{rule}/([\w/]+)$"), vec!["ab/", "1/"]),
    ];
    for (name, pattern, parts) in kinds {
        let etcd = Etcd::start(&[SCOPE.to_owned()]).await;
        let pingsix = PingSix::start_threads(THREADS, &binary, etcd.address, SCOPE).await;
        let idle = pingsix.resident_bytes();
        let shop = Echo::start("shop").await;
        let translation = translated(&world(pattern));
        let admitted = patterns_of(&translation);
        assert!(admitted > 0, "{name}");
        if admitted < RULES {
            let text = format!("{:?}", translation.verdicts);
            assert!(
                text.contains("For the memory that PingSIX may need for its regular expressions"),
                "{name}"
            );
        }
        let config = &translation.data_planes.values().next().unwrap().config;
        let config = with_nodes(config, &[shop.address.to_string()]).await;
        let revision = etcd.publish(SCOPE, &config, 1).await;
        assert_eq!(pingsix.verdict(revision, WAIT_TIMEOUT).await, Verdict::Accepted);
        let parts: Arc<[String]> = parts
            .iter()
            .flat_map(|part| [60_000, 8_000, 1_000].map(|bytes| part.repeat(bytes / part.len())))
            .collect();
        let asking: Vec<_> = (0..4)
            .map(|_| {
                let (address, parts) = (pingsix.address, parts.clone());
                tokio::spawn(async move {
                    let mut client = Client::new(Protocol::Http1, address, None);
                    let mut answered = 0;
                    for rule in 0..RULES {
                        for part in &*parts {
                            let reply = client.ask(&get(&format!("/p{rule}/{part}"))).await.unwrap();
                            answered += usize::from(reply.status == 200);
                        }
                    }
                    answered
                })
            })
            .collect();
        for answered in asking {
            assert!(answered.await.unwrap() >= admitted, "{name}");
        }
        let used = pingsix.resident_bytes();
        print_message(&format!("{TEST}: {name}: {admitted} patterns, {idle} bytes idle, {used} bytes used"));
        assert!(used < MAX_MEMORY_BYTES, "{name}: {used} bytes for {admitted} patterns");
    }
}
