//! The subjects of changes: six of each sort, with unchanged ones beside them.

use pingsix_translate::Kind;
use serde_json::{Value, json};

use super::backends::{Backends, NAMES};
use super::checker::{Answers, State, SubjectStates, only};
use super::objects::{
    ABSENT, backend_ref, certificate_data, der, gateway, grant, listeners, prefix, route, secret, service,
    slice,
};
use super::subjects::{Listener, Probe, Sort, Subject, Write};
use crate::test_env::shop;

/// The number of listeners of the Gateway that come and go.
pub(super) const LISTENERS: usize = 3;

/// The number of certificates that one listener has in turn.
const CERTIFICATES_PER_LISTENER: usize = 3;

/// The number of subjects of each changing sort, except listeners, which share one Gateway.
pub(super) const SUBJECTS_PER_SORT: usize = 6;

/// The objects that are there at the start, and the subjects.
pub(crate) struct Fixtures {
    pub(crate) objects: Vec<(Kind, Value)>,
    pub(crate) subjects: Vec<Subject>,
}

impl Fixtures {
    pub(crate) fn new(backends: &Backends) -> Self {
        let mut fixtures = Self { objects: Vec::new(), subjects: Vec::new() };
        for name in NAMES {
            fixtures.objects.push((Kind::Service, service("default", name, name)));
            let slice = slice("default", name, backends, &[(name, name)]);
            fixtures.objects.push((Kind::EndpointSlice, slice));
        }
        fixtures.add_constant_subjects();
        for index in 0..SUBJECTS_PER_SORT {
            fixtures.switch_backends(index);
            fixtures.switch_matches(index);
            fixtures.add_changing_route(index);
            fixtures.shift_weights(index);
            fixtures.switch_filters(index);
            fixtures.move_endpoints(index, backends);
            fixtures.switch_ports(index, backends);
            fixtures.give_grants(index, backends);
            fixtures.rotate_certificate(index);
        }
        fixtures.switch_listeners();
        fixtures
    }

    fn push(&mut self, sort: Sort, index: usize, probes: Vec<Probe>, variants: Vec<(Write, State)>) {
        let state = variants[0].1.clone();
        self.subjects.push(Subject {
            name: format!("{sort:?}-{index}"),
            listener: Listener::Plain,
            probes,
            states: SubjectStates::new(state),
            sort,
            certificates: Vec::new(),
            variants,
        });
    }

    /// The constant subjects, which share hosts, Services and the Gateway with changing ones.
    fn add_constant_subjects(&mut self) {
        let routes = [
            ("stable", "stable.example", "a", "/", "stable.example", "/", "200 a /"),
            ("deep", "stable.example", "b", "/deep", "stable.example", "/deep/er", "200 b /deep/er"),
            ("shared", "shared.example", "a", "/", "shared.example", "/other", "200 a /other"),
            ("wild", "*.wild.example", "c", "/", "any.wild.example", "/w", "200 c /w"),
        ];
        for (index, (name, host, backend, path, asked, at, valid)) in routes.into_iter().enumerate() {
            let rules = json!([{"matches": [prefix(path)], "backendRefs": [backend_ref(backend)]}]);
            self.objects.push((Kind::HttpRoute, route(name, host, &rules)));
            let variants = vec![(Write::Nothing, vec![only(valid)])];
            self.push(Sort::Stable, index, vec![Probe::new(asked, at)], variants);
        }
        let nobody = vec![(Write::Nothing, vec![only("404")])];
        self.push(Sort::Stable, routes.len(), vec![Probe::new("nobody.example", "/")], nobody);
        let rules = json!([{"backendRefs": [backend_ref("b")]}]);
        self.objects.push((Kind::HttpRoute, route("safe", "safe.example", &rules)));
        let safe = vec![(Write::Nothing, vec![only("200 b /s")])];
        self.push(Sort::Stable, routes.len() + 1, vec![Probe::new("safe.example", "/s")], safe);
        self.behind_tls();
        let (certificate, key) = shop::pair("safe.example");
        self.objects.push((Kind::Secret, secret("safe", &certificate, &key)));
    }

    /// The subject that was pushed last is behind TLS.
    fn behind_tls(&mut self) -> &mut Subject {
        let subject = self.subjects.last_mut().unwrap();
        subject.listener = Listener::Secure;
        subject
    }

    fn switch_backends(&mut self, index: usize) {
        let (name, host) = (format!("backend-{index}"), format!("backend-{index}.example"));
        let rules = |backend: &str| json!([{"backendRefs": [backend_ref(backend)]}]);
        let variants = NAMES.map(|to| {
            let write = Write::Merge(Kind::HttpRoute, name.clone(), json!({"spec": {"rules": rules(to)}}));
            (write, vec![only(format!("200 {to} /x"))])
        });
        self.objects.push((Kind::HttpRoute, route(&name, &host, &rules("a"))));
        self.push(Sort::Backend, index, vec![Probe::new(&host, "/x")], variants.into());
    }

    /// A path below another, an exact one below that, and a header: each is present or absent.
    fn switch_matches(&mut self, index: usize) {
        let (name, host) = (format!("matches-{index}"), format!("matches-{index}.example"));
        let rules = |bits: usize| {
            let mut rules = vec![json!({"matches": [prefix("/")], "backendRefs": [backend_ref("a")]})];
            if bits & 1 != 0 {
                rules.push(json!({"matches": [prefix("/x")], "backendRefs": [backend_ref("b")]}));
            }
            if bits & 2 != 0 {
                let exact = json!({"path": {"type": "Exact", "value": "/x/y"}});
                rules.push(json!({"matches": [exact], "backendRefs": [backend_ref("c")]}));
            }
            if bits & 4 != 0 {
                let mut user = prefix("/");
                user["headers"] = json!([{"name": "x-user", "value": "one"}]);
                rules.push(json!({"matches": [user], "backendRefs": [backend_ref("c")]}));
            }
            Value::from(rules)
        };
        let answer =
            |is: bool, then: &str, otherwise: &str| if is { then.to_owned() } else { otherwise.to_owned() };
        let variants = (0..8).map(|bits| {
            let write = Write::Merge(Kind::HttpRoute, name.clone(), json!({"spec": {"rules": rules(bits)}}));
            let below = answer(bits & 1 != 0, "b", "a");
            let state = vec![
                only("200 a /"),
                only(format!("200 {below} /x/z")),
                only(format!("200 {} /x/y", answer(bits & 2 != 0, "c", &below))),
                only(format!("200 {} /u", answer(bits & 4 != 0, "c", "a"))),
            ];
            (write, state)
        });
        let variants = variants.collect();
        let mut user = Probe::new(&host, "/u");
        user.is_user = true;
        let probes = vec![Probe::new(&host, "/"), Probe::new(&host, "/x/z"), Probe::new(&host, "/x/y"), user];
        self.objects.push((Kind::HttpRoute, route(&name, &host, &rules(0))));
        self.push(Sort::Matches, index, probes, variants);
    }

    /// Beside nothing, beside a broader path of the same host, below a broader host.
    fn add_changing_route(&mut self, index: usize) {
        let name = format!("life-{index}");
        let (host, otherwise) = match index % 3 {
            0 => (format!("{name}.example"), "404".to_owned()),
            1 => ("shared.example".to_owned(), format!("200 a /{name}")),
            _ => (format!("{name}.wild.example"), format!("200 c /{name}")),
        };
        let path = format!("/{name}");
        let rules = json!([{"matches": [prefix(&path)], "backendRefs": [backend_ref("b")]}]);
        let variants = vec![
            (Write::Delete(Kind::HttpRoute, "default", name.clone()), vec![only(otherwise)]),
            (
                Write::Create(Kind::HttpRoute, route(&name, &host, &rules)),
                vec![only(format!("200 b {path}"))],
            ),
        ];
        self.push(Sort::Life, index, vec![Probe::new(&host, &path)], variants);
    }

    fn shift_weights(&mut self, index: usize) {
        let (name, host) = (format!("weights-{index}"), format!("weights-{index}.example"));
        let rules = |weights: [u32; NAMES.len()]| {
            let refs = NAMES.into_iter().zip(weights).map(|(name, weight)| {
                let mut backend = backend_ref(name);
                backend["weight"] = weight.into();
                backend
            });
            json!([{"backendRefs": refs.collect::<Vec<_>>()}])
        };
        let all = [[1, 0, 0], [1, 1, 0], [0, 0, 1], [3, 0, 1], [0, 1, 0], [0, 2, 1], [0, 0, 0]];
        let variants = all.map(|weights| {
            let rules = json!({"spec": {"rules": rules(weights)}});
            let of = NAMES.into_iter().zip(weights).filter(|(_, weight)| *weight > 0);
            let mut answers: Answers = of.map(|(name, _)| format!("200 {name} /w")).collect();
            if answers.is_empty() {
                answers = only("500");
            }
            (Write::Merge(Kind::HttpRoute, name.clone(), rules), vec![answers])
        });
        self.objects.push((Kind::HttpRoute, route(&name, &host, &rules(all[0]))));
        self.push(Sort::Weights, index, vec![Probe::new(&host, "/w")], variants.into());
    }

    fn switch_filters(&mut self, index: usize) {
        let (name, host) = (format!("filter-{index}"), format!("filter-{index}.example"));
        let redirect = |to: &str| json!({"type": "RequestRedirect", "requestRedirect": {"hostname": to, "statusCode": 302}});
        let set = |kind: &str, field: &str, header: &str, value: &str| json!({"type": kind, field: {"set": [{"name": header, "value": value}]}});
        let rewrite = json!({"type": "URLRewrite", "urlRewrite": {"path": {"type": "ReplaceFullPath", "replaceFullPath": "/r"}}});
        let unknown = json!({"type": "ExtensionRef", "extensionRef": {"group": "shop.example", "kind": "Coupon", "name": "none"}});
        let all = [
            (json!([]), "200 a /f"),
            (json!([redirect("one.example")]), "302 http://one.example/f"),
            (json!([redirect("two.example")]), "302 http://two.example/f"),
            (
                json!([set("ResponseHeaderModifier", "responseHeaderModifier", "x-marked", "1")]),
                "200 a /f marked 1",
            ),
            (
                json!([set("ResponseHeaderModifier", "responseHeaderModifier", "x-marked", "2")]),
                "200 a /f marked 2",
            ),
            (
                json!([set("RequestHeaderModifier", "requestHeaderModifier", "x-asked", "3")]),
                "200 a /f asked 3",
            ),
            (json!([rewrite]), "200 a /r"),
            (json!([unknown]), "500"),
        ];
        let rules = |filters: &Value| {
            let redirects = filters[0]["type"] == "RequestRedirect";
            let backends = if redirects { json!([]) } else { json!([backend_ref("a")]) };
            json!([{"matches": [prefix("/")], "filters": filters, "backendRefs": backends}])
        };
        let variants = all.iter().map(|(filters, valid)| {
            let rules = json!({"spec": {"rules": rules(filters)}});
            (Write::Merge(Kind::HttpRoute, name.clone(), rules), vec![only(*valid)])
        });
        let variants = variants.collect();
        self.objects.push((Kind::HttpRoute, route(&name, &host, &rules(&all[0].0))));
        self.push(Sort::Filter, index, vec![Probe::new(&host, "/f")], variants);
    }

    /// From one live backend to another, and none at all.
    fn move_endpoints(&mut self, index: usize, backends: &Backends) {
        let (name, host) = (format!("endpoints-{index}"), format!("endpoints-{index}.example"));
        let mut variants: Vec<(Write, State)> = NAMES
            .into_iter()
            .map(|to| {
                let slice = slice("default", &name, backends, &[("web", to)]);
                let change = json!({"endpoints": slice["endpoints"], "ports": slice["ports"]});
                (Write::Merge(Kind::EndpointSlice, name.clone(), change), vec![only(format!("200 {to} /e"))])
            })
            .collect();
        let none = Write::Merge(Kind::EndpointSlice, name.clone(), json!({"endpoints": []}));
        variants.push((none, vec![only("503")]));
        self.objects.push((Kind::Service, service("default", &name, "web")));
        self.objects.push((Kind::EndpointSlice, slice("default", &name, backends, &[("web", "a")])));
        let rules = json!([{"backendRefs": [backend_ref(&name)]}]);
        self.objects.push((Kind::HttpRoute, route(&name, &host, &rules)));
        self.push(Sort::Endpoints, index, vec![Probe::new(&host, "/e")], variants);
    }

    /// A Service whose port leads to one of several ports of its endpoints, and one that has no such port.
    fn switch_ports(&mut self, index: usize, backends: &Backends) {
        let (name, host) = (format!("port-{index}"), format!("port-{index}.example"));
        let port = |number: u16, to: &str| json!({"spec": {"ports": [{"name": to, "port": number}]}});
        let mut variants: Vec<(Write, State)> = NAMES
            .into_iter()
            .map(|to| {
                let state = vec![only(format!("200 {to} /p"))];
                (Write::Merge(Kind::Service, name.clone(), port(80, to)), state)
            })
            .collect();
        variants.push((Write::Merge(Kind::Service, name.clone(), port(81, "a")), vec![only("500")]));
        self.objects.push((Kind::Service, service("default", &name, "a")));
        let ports = NAMES.map(|name| (name, name));
        self.objects.push((Kind::EndpointSlice, slice("default", &name, backends, &ports)));
        let rules = json!([{"backendRefs": [backend_ref(&name)]}]);
        self.objects.push((Kind::HttpRoute, route(&name, &host, &rules)));
        self.push(Sort::Port, index, vec![Probe::new(&host, "/p")], variants);
    }

    fn give_grants(&mut self, index: usize, backends: &Backends) {
        let (name, host) = (format!("grant-{index}"), format!("grant-{index}.example"));
        self.objects.push((Kind::Service, service(ABSENT, &name, "web")));
        self.objects.push((Kind::EndpointSlice, slice(ABSENT, &name, backends, &[("web", "b")])));
        let mut backend = backend_ref(&name);
        backend["namespace"] = ABSENT.into();
        self.objects.push((Kind::HttpRoute, route(&name, &host, &json!([{"backendRefs": [backend]}]))));
        let grant = grant(&name);
        let variants = vec![
            (Write::Delete(Kind::ReferenceGrant, ABSENT, name), vec![only("500")]),
            (Write::Create(Kind::ReferenceGrant, grant), vec![only("200 b /g")]),
        ];
        self.push(Sort::Grant, index, vec![Probe::new(&host, "/g")], variants);
    }

    fn rotate_certificate(&mut self, index: usize) {
        let (name, host) = (format!("certificate-{index}"), format!("certificate-{index}.example"));
        let pairs: [_; CERTIFICATES_PER_LISTENER] = std::array::from_fn(|_| shop::pair(&host));
        let variants = pairs.iter().enumerate().map(|(number, (certificate, key))| {
            let change = json!({"data": certificate_data(certificate, key)});
            (Write::Merge(Kind::Secret, name.clone(), change), vec![only(format!("200 c /c shown {number}"))])
        });
        let variants = variants.collect();
        self.objects.push((Kind::Secret, secret(&name, &pairs[0].0, &pairs[0].1)));
        let rules = json!([{"backendRefs": [backend_ref("c")]}]);
        self.objects.push((Kind::HttpRoute, route(&name, &host, &rules)));
        self.push(Sort::Certificate, index, vec![Probe::new(&host, "/c")], variants);
        self.behind_tls().certificates = pairs.iter().map(|(certificate, _)| der(certificate)).collect();
    }

    /// Each is present with its route's hostname, with another, or absent.
    fn switch_listeners(&mut self) {
        let variants = (0..27).map(|number| {
            let digits: [usize; LISTENERS] = [number % 3, number / 3 % 3, number / 9];
            let listeners = json!({"spec": {"listeners": listeners(&digits)}});
            let state = digits.iter().map(|digit| only(if *digit == 1 { "200 a /l" } else { "404" }));
            (Write::Merge(Kind::Gateway, "web".to_owned(), listeners), state.collect())
        });
        let variants = variants.collect();
        self.objects.push((Kind::Gateway, gateway(&[0; LISTENERS])));
        let mut probes = Vec::new();
        for index in 0..LISTENERS {
            let (name, host) = (format!("listener-{index}"), format!("listener-{index}.example"));
            let mut route = route(&name, &host, &json!([{"backendRefs": [backend_ref("a")]}]));
            route["spec"]["parentRefs"][0]["sectionName"] = name.into();
            self.objects.push((Kind::HttpRoute, route));
            probes.push(Probe::new(&host, "/l"));
        }
        self.push(Sort::Listeners, 0, probes, variants);
    }
}
