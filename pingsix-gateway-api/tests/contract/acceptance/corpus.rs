//! Sound documents of every kind and with every plugin.

mod material;
mod samples;

use serde_json::{Value, json};

use super::Documents;
use super::mutation::{Case, mutate, text};
use crate::rng::SeededRng;
use material::Material;
use samples::{documents, plugins, split};

/// A rich configuration of each plugin.
pub(super) fn rich_plugins() -> Vec<(&'static str, Value)> {
    plugins(&Material::new())
}

/// Documents that stand in a prefix together, and others that may join them one at a time.
pub(super) struct Corpus {
    healthy: Documents,
    subjects: Vec<(String, Value)>,
    material: Material,
}

impl Corpus {
    pub(super) fn new() -> Self {
        let material = Material::new();
        let healthy = [
            ("upstreams/u", json!({ "nodes": { "127.0.0.1:9": 1 } })),
            ("services/s", json!({ "upstream_id": "u", "hosts": ["s.t"] })),
            ("routes/r", json!({ "uri": "/r", "host": "r.t", "upstream_id": "u" })),
            ("routes/q", json!({ "uris": ["/", "/q"], "service_id": "s" })),
            ("global_rules/g", json!({ "plugins": { "request-id": {} } })),
            ("ssls/t", json!({ "cert": material.cert, "key": material.key, "snis": ["t.t", "*.t.t"] })),
        ];
        let healthy = healthy.into_iter().map(|(key, value)| (key.to_owned(), text(&value).into())).collect();
        let mut subjects = documents(&material);
        for (name, config) in plugins(&material) {
            let mut route = json!({ "uri": "/x", "host": "x.t", "upstream_id": "u" });
            route["plugins"] = json!({ name: config });
            subjects.push((format!("routes/{name}"), route));
        }
        let split = json!({ "traffic-split": split() });
        subjects.push(("services/split".to_owned(), json!({ "upstream_id": "u", "plugins": split })));
        subjects.push(("global_rules/split".to_owned(), json!({ "plugins": split })));
        Self { healthy, subjects, material }
    }

    pub(super) fn healthy(&self) -> &Documents {
        &self.healthy
    }

    /// The subjects themselves.
    pub(super) fn sound_cases(&self) -> Vec<Case> {
        self.subjects.iter().map(|(key, value)| Case::put("sound", key, value)).collect()
    }

    /// A subject, changed once, or twice now and then.
    pub(super) fn mutate(&self, rng: &mut SeededRng) -> Case {
        let (key, value) = &self.subjects[rng.below(self.subjects.len())];
        let mut value = value.clone();
        let holds_pem = value.get("cert").is_some() || value.get("tls").is_some();
        if holds_pem && rng.percent(50) {
            let texts = self.material.texts();
            let pem = &texts[rng.below(texts.len())];
            let places: &[&str] = if value.get("tls").is_some() {
                &["/tls/client_cert", "/tls/client_key"]
            } else {
                &["/cert", "/key"]
            };
            let place = rng.one(places);
            *value.pointer_mut(place).unwrap() = json!(pem);
            return Case::put(format!("{place} becomes another text"), key, &value);
        }
        let mut what = mutate(rng, &mut value);
        if rng.percent(10) && value.is_object() {
            what += &format!(" and {}", mutate(rng, &mut value));
        }
        Case::put(what, key, &value)
    }

    /// Faults that no change of one value makes: of keys, of texts that are no JSON, and between documents.
    pub(super) fn fixed_cases(&self) -> Vec<Case> {
        let route = text(&json!({ "uri": "/x", "host": "x.t", "upstream_id": "u" }));
        let keys = [
            "routes/a b",
            "routes/ä",
            "routes/{a}",
            "routes/a:b",
            "routes/a/b",
            "routes",
            "route/x",
            "consumers/x",
            "foo",
            "stream_routes/x",
            "plugin_metadata/x",
            "plugin_configs/x",
            "protos/x",
            "Routes/x",
            "routes /x",
            "a/b/c",
            ".foo",
            "routes/.x",
            "consumers/.x",
            "a/b/.c",
            "routes/.",
            "routes/..",
            "routes/a.b",
            ".pingsix_graph_revision",
            "routes/.pingsix_graph_revision",
            "secrets/x",
            "upstreams/a/",
            "ssl/x",
        ];
        let mut cases = Vec::new();
        for key in keys.into_iter().filter(|key| !key.ends_with('/')) {
            cases.push(Case::raw("key", key, route.as_bytes()));
        }
        for guard in ["1", "pingsix-graph-v1", "2", "", "pingsix-graph-v1\n"] {
            cases.push(Case::raw("guard", ".pingsix_graph_revision", guard.as_bytes()));
        }
        for value in [
            "",
            " ",
            "null",
            "true",
            "0",
            "\"\"",
            "[]",
            "{}",
            "not json",
            "{",
            "}",
            "{\"uri\":\"/x\"",
            "\u{feff}{}",
            "nul",
            "[{}]",
            "{'uri':'/x'}",
            "{\"a\":\"\\ud800\"}",
            "{\"a\":\"\\u0000\"}",
            "{\"a\":1e999}",
            "{\"a\":\"\t\"}",
            "{} {}",
            "{},",
            "{/**/}",
            "{\"plugins\":{}}",
            "{\"id\":1}",
            "{\"id\":\"x\"}",
            "{\"id\":null}",
        ] {
            for key in ["routes/x", "upstreams/x", "services/x", "global_rules/x", "ssls/x"] {
                cases.push(Case::raw("text", key, value.as_bytes()));
            }
        }
        for suffix in [" ", "\n", ",", "x", "\0", "}"] {
            cases.push(Case::raw("trailing text", "routes/x", format!("{route}{suffix}").as_bytes()));
        }
        cases.push(Case::raw(
            "no UTF-8",
            "routes/x",
            &[b"{\"uri\":\"/", &[0xff][..], b"\",\"upstream_id\":\"u\"}"].concat(),
        ));
        for depth in [100, 126, 127, 128, 129, 200] {
            let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            let value = format!(r#"{{"uri":"/x","host":"x.t","upstream_id":"u","deep":{deep}}}"#);
            cases.push(Case::raw("nesting", "routes/x", value.as_bytes()));
        }
        for key in ["upstreams/u", "services/s", "routes/r", "ssls/t", "global_rules/g"] {
            cases.push(Case::new("a dangling reference", vec![(key.to_owned(), None)]));
        }
        cases.extend(self.between_documents());
        cases
    }

    fn between_documents(&self) -> Vec<Case> {
        let Material { cert, key, .. } = &self.material;
        let mut cases = Vec::new();
        for snis in [
            json!(["t.t"]),
            json!(["T.T"]),
            json!(["*.t.t"]),
            json!(["*.T.t"]),
            json!(["a.t.t"]),
            json!(["*.a.t.t"]),
            json!(["*"]),
            json!(["x.t", "x.t"]),
            json!(["x.t", "X.T"]),
            json!(["*.x.t", "*.x.t"]),
            json!(["*.t"]),
            json!(["*t.t"]),
            json!(["t.t."]),
        ] {
            let ssl = json!({ "cert": cert, "key": key, "snis": snis });
            cases.push(Case::put("two certificates", "ssls/x", &ssl));
        }
        for (one, other) in [
            ("/x/{{a}}", "/x/{{a}}"),
            ("/{a}/b", "/{*p}"),
            ("/{a}", "/{*p}"),
            ("/{a}", "/{b}"),
            ("/{*a}", "/{*b}"),
            ("/{a}/x", "/{b}/y"),
            ("/x{a}", "/x{b}"),
            ("/x{a}", "/{b}"),
            ("/x/{a}", "/x/y"),
            ("/x", "/x"),
            ("/x{a}", "/x{*b}"),
            ("/{{", "/{{"),
            ("/}}", "/}}"),
            ("/{{a}}", "/{a}"),
            ("/{{a}}", "/{*p}"),
            ("/x/{a}/y", "/x/{b}"),
            ("/{a}/b/c", "/{b}/{*c}"),
        ] {
            for uris in [[one, other], [other, one]] {
                let route = json!({ "uris": uris, "host": "x.t", "upstream_id": "u" });
                cases.push(Case::put("patterns of one route", "routes/x", &route));
            }
            let route = |uri: &str| text(&json!({ "uri": uri, "host": "x.t", "upstream_id": "u" })).into();
            let changes =
                vec![("routes/x".to_owned(), Some(route(one))), ("routes/y".to_owned(), Some(route(other)))];
            cases.push(Case::new("patterns of two routes", changes));
        }
        for uris in [["/x/{*p}", "/x/a}"], ["/x/a}", "/x/{*p}"], ["/{*p}", "/{}"], ["/y/{*p}", "/x/a}"]] {
            let route = json!({ "uris": uris, "host": "x.t", "upstream_id": "u" });
            cases.push(Case::put("a malformed pattern beside another", "routes/x", &route));
            let narrow = json!({ "uris": ["/x/{a}", "/{a}"], "host": "x.t", "upstream_id": "u" });
            let changes = [("routes/x", route), ("routes/y", narrow)]
                .map(|(key, route)| (key.to_owned(), Some(text(&route).into())));
            cases.push(Case::new("a malformed pattern beside a narrow one", changes.into()));
        }
        for hosts in [["*.x", "{a.x"], ["{a.x", "*.x"], ["*.x", "{{a}}.x"], ["*.y", "{a.x"]] {
            let route = json!({ "uri": "/x", "hosts": hosts, "upstream_id": "u" });
            cases.push(Case::put("a malformed host beside another", "routes/x", &route));
        }
        for count in [24, 25, 26, 27] {
            let route = json!({ "uri": "/{p}".repeat(count), "host": "x.t", "upstream_id": "u" });
            cases.push(Case::put("parameters", "routes/x", &route));
        }
        cases
    }
}
