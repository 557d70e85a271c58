//! Routes of APISIX: those of ApisixRoutes, and those of Ingresses with annotations.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::conditions::Condition;
use super::plugins::Plugins;
use crate::answer::Request;
use crate::original::network::Network;
use crate::original::objects::{ClassSpec, IngressPath, IngressSpec, Object, of_kind};

/// The controller of the classes of APISIX.
const CONTROLLER: &str = "apisix.apache.org/apisix-ingress-controller";

/// The name of the class if the input does not have it.
const CLASS: &str = "apisix";

/// The domain of the annotations.
const DOMAIN: &str = "k8s.apisix.apache.org/";

/// The weight of a backend without one.
const DEFAULT_WEIGHT: u32 = 100;

/// Annotations that change neither the Service of a request nor its path, host and status.
const WITHOUT_EFFECT: &[&str] = &[
    "cors-allow-headers",
    "cors-allow-methods",
    "cors-allow-origin",
    "csrf-key",
    "enable-websocket",
    "upstream-connect-timeout",
    "upstream-read-timeout",
    "upstream-retries",
    "upstream-scheme",
    "upstream-send-timeout",
];

/// Annotations that are modelled.
const READ: &[&str] = &[
    "allowlist-source-range",
    "auth-type",
    "blocklist-source-range",
    "enable-cors",
    "enable-csrf",
    "http-allow-methods",
    "http-block-methods",
    "http-redirect",
    "http-redirect-code",
    "http-to-https",
    "plugin-config-name",
    "rewrite-target",
    "rewrite-target-regex",
    "rewrite-target-regex-template",
    "svc-namespace",
    "use-regex",
];

/// A route.
#[derive(Clone, Debug, Default)]
pub(super) struct Route {
    pub(super) hosts: Vec<String>,
    pub(super) uris: Vec<String>,
    methods: Vec<String>,
    conditions: Vec<Condition>,
    /// The networks of clients.
    clients: Vec<Network>,
    pub(super) priority: i64,
    pub(super) plugins: Plugins,
    pub(super) backends: Vec<Target>,
    /// The object and the field.
    pub(super) origin: String,
    /// The reason for which its answers are unknown.
    pub(super) unknown: Option<String>,
    /// The reason for which the requests that it takes are unknown.
    is_unknown: Option<String>,
}

/// A port of a Service, with its share.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) namespace: String,
    pub(super) service: String,
    pub(super) port: String,
    pub(super) weight: u32,
}

impl Route {
    /// Whether the conditions hold beside host and path.
    pub(super) fn takes(&self, request: &Request, uri: &str) -> Result<bool, String> {
        if !self.methods.is_empty() && !self.methods.contains(&request.method) {
            return Ok(false);
        }
        for condition in &self.conditions {
            if !condition.holds(request, uri)? {
                return Ok(false);
            }
        }
        if let Some(why) = &self.is_unknown {
            return Err(why.clone());
        }
        match request.client {
            _ if self.clients.is_empty() => Ok(true),
            Some(client) => Ok(self.clients.iter().any(|network| network.has(client))),
            None => Err("the route is for some clients, and the request has no address".to_owned()),
        }
    }
}

/// The plugins of ApisixPluginConfigs.
pub(super) type Configs = BTreeMap<(String, String), Result<Plugins, String>>;

pub(super) fn plugin_configs(objects: &[Value]) -> Configs {
    let own = objects.iter().filter(|object| object["kind"] == "ApisixPluginConfig");
    own.map(|object| (name(object), plugins(&object["spec"]["plugins"]))).collect()
}

fn name(object: &Value) -> (String, String) {
    let text = |field: &str| object["metadata"][field].as_str();
    (text("namespace").unwrap_or("default").to_owned(), text("name").unwrap_or_default().to_owned())
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A list of plugins.
fn plugins(list: &Value) -> Result<Plugins, String> {
    let mut plugins = Plugins::new();
    for item in list.as_array().into_iter().flatten() {
        if item["enable"] == false {
            continue;
        }
        let name = item["name"].as_str().unwrap_or_default();
        if item.get("secretRef").is_some() {
            return Err(format!("the Secret of plugin {name} is not modelled"));
        }
        plugins.insert(name.to_owned(), item.get("config").cloned().unwrap_or_else(|| json!({})));
    }
    Ok(plugins)
}

/// The routes of ApisixRoutes.
pub(super) fn of_apisix_routes(objects: &[Value], configs: &Configs) -> Vec<Route> {
    let mut routes = Vec::new();
    for object in objects.iter().filter(|object| object["kind"] == "ApisixRoute") {
        let (namespace, object_name) = name(object);
        let rules = object["spec"]["http"].as_array().into_iter().flatten().enumerate();
        for (index, rule) in rules {
            let origin = format!("ApisixRoute {namespace}/{object_name} spec.http[{index}]");
            routes.push(of_rule(rule, &namespace, origin, configs));
        }
    }
    routes
}

fn of_rule(rule: &Value, namespace: &str, origin: String, configs: &Configs) -> Route {
    let matched = &rule["match"];
    let mut route = Route {
        hosts: texts(&matched["hosts"]).iter().map(|host| host.to_ascii_lowercase()).collect(),
        uris: texts(&matched["paths"]),
        methods: texts(&matched["methods"]),
        priority: rule["priority"].as_i64().unwrap_or(0),
        origin,
        ..Route::default()
    };
    for item in matched["exprs"].as_array().into_iter().flatten() {
        match Condition::read(item) {
            Ok(condition) => route.conditions.push(condition),
            Err(why) => route.is_unknown = Some(why),
        }
    }
    for client in texts(&matched["remoteAddrs"]) {
        match client.parse() {
            Ok(network) => route.clients.push(network),
            Err(()) => route.is_unknown = Some("a network of remoteAddrs is none".to_owned()),
        }
    }
    if matched.get("filter_func").is_some() {
        route.is_unknown = Some("filter_func is not modelled".to_owned());
    }
    if rule.get("upstreams").is_some() {
        route.unknown = Some("upstreams of ApisixRoutes are not modelled".to_owned());
    }
    if let Some(config) = rule["plugin_config_name"].as_str() {
        let of = rule["plugin_config_namespace"].as_str().unwrap_or(namespace);
        add(configs.get(&(of.to_owned(), config.to_owned())).cloned(), &mut route);
    }
    add(Some(plugins(&rule["plugins"])), &mut route);
    let authentication = &rule["authentication"];
    if authentication["enable"] == true {
        let (plugin, config) = match authentication["type"].as_str() {
            Some("keyAuth") => ("key-auth", &authentication["keyAuth"]),
            Some("jwtAuth") => ("jwt-auth", &authentication["jwtAuth"]),
            Some("wolfRBAC") => ("wolf-rbac", &Value::Null),
            Some("hmacAuth") => ("hmac-auth", &Value::Null),
            Some("ldapAuth") => ("ldap-auth", &Value::Null),
            _ => ("basic-auth", &Value::Null),
        };
        route.plugins.insert(plugin.to_owned(), config.clone());
    }
    let backends = rule["backends"].as_array().into_iter().flatten();
    for backend in backends {
        let port = &backend["servicePort"];
        if backend.get("subset").is_some() {
            route.unknown = Some("subsets are not modelled".to_owned());
        }
        route.backends.push(Target {
            namespace: namespace.to_owned(),
            service: backend["serviceName"].as_str().unwrap_or_default().to_owned(),
            port: port.as_str().map_or_else(|| port.to_string(), str::to_owned),
            weight: backend["weight"]
                .as_u64()
                .and_then(|weight| u32::try_from(weight).ok())
                .unwrap_or(DEFAULT_WEIGHT),
        });
    }
    route
}

fn add(plugins: Option<Result<Plugins, String>>, route: &mut Route) {
    match plugins {
        Some(Ok(plugins)) => route.plugins.extend(plugins),
        Some(Err(why)) => route.unknown = Some(why),
        None => {}
    }
}

/// The routes of Ingresses, and the hosts with certificates.
pub(super) fn of_ingresses(objects: &[Value], configs: &Configs) -> (Vec<Route>, BTreeSet<String>) {
    let classes: Vec<Object<ClassSpec>> = of_kind(objects, "networking.k8s.io", "IngressClass");
    let (mut routes, mut certificates) = (Vec::new(), BTreeSet::new());
    for ingress in of_kind::<Object<IngressSpec>>(objects, "networking.k8s.io", "Ingress") {
        if !is_served(&ingress, &classes) {
            continue;
        }
        for tls in ingress.spec.tls.iter().flatten().filter(|tls| tls.secret_name.is_some()) {
            certificates.extend(tls.hosts.iter().flatten().map(|host| host.to_ascii_lowercase()));
        }
        for (rule, entry) in ingress.spec.rules.iter().flatten().enumerate() {
            let host = entry.host.clone().filter(|host| !host.is_empty());
            for (index, path) in entry.http.iter().flat_map(|http| &http.paths).enumerate() {
                let Some(service) = &path.backend.service else { continue };
                let metadata = &ingress.metadata;
                let (namespace, name) = (metadata.namespace(), &metadata.name);
                let mut route = Route {
                    hosts: host.iter().map(|host| host.to_ascii_lowercase()).collect(),
                    origin: format!("Ingress {namespace}/{name} spec.rules[{rule}].http.paths[{index}]"),
                    ..Route::default()
                };
                let own = |name: &str| {
                    metadata.annotation(&format!("{DOMAIN}{name}")).filter(|value| !value.is_empty())
                };
                set_path(path, own("use-regex") == Some("true"), &mut route);
                if let Some(config) = own("plugin-config-name") {
                    add(configs.get(&(namespace.to_owned(), config.to_owned())).cloned(), &mut route);
                }
                route.plugins.extend(of_annotations(own));
                for name in
                    metadata.annotations.iter().flatten().filter_map(|(name, _)| name.strip_prefix(DOMAIN))
                {
                    if !READ.contains(&name) && !WITHOUT_EFFECT.contains(&name) {
                        route.unknown = Some(format!("{DOMAIN}{name} is not modelled"));
                    }
                }
                route.backends.push(Target {
                    namespace: own("svc-namespace").unwrap_or(namespace).to_owned(),
                    service: service.name.clone(),
                    port: service.port.text(),
                    weight: 1,
                });
                routes.push(route);
            }
        }
    }
    (routes, certificates)
}

fn set_path(path: &IngressPath, uses_regex: bool, route: &mut Route) {
    let written = path.path.clone().unwrap_or_default();
    match path.path_type.as_deref() {
        Some("Prefix") => {
            let below = format!("{}/*", written.strip_suffix('/').unwrap_or(&written));
            route.uris = vec![written, below];
        }
        Some("ImplementationSpecific") if uses_regex => {
            route.conditions.push(Condition::path(&written));
            route.uris = vec!["/*".to_owned()];
        }
        _ => route.uris = vec![written],
    }
}

/// The plugins of annotations.
fn of_annotations<'a>(own: impl Fn(&str) -> Option<&'a str>) -> Plugins {
    let list = |name: &str| -> Option<Vec<&str>> {
        Some(own(name)?.split(',').map(str::trim).filter(|item| !item.is_empty()).collect())
    };
    let is_set = |name: &str| own(name) == Some("true");
    let mut plugins = Plugins::new();
    let (allowed, denied) = (list("allowlist-source-range"), list("blocklist-source-range"));
    if allowed.is_some() || denied.is_some() {
        plugins.insert("ip-restriction".to_owned(), json!({ "whitelist": allowed, "blacklist": denied }));
    }
    let methods = match (list("http-allow-methods"), list("http-block-methods")) {
        (Some(names), _) => Some(json!([[["request_method", "!", "in", names]]])),
        (None, Some(names)) => Some(json!([[["request_method", "in", names]]])),
        (None, None) => None,
    };
    if let Some(vars) = methods {
        plugins
            .insert("fault-injection".to_owned(), json!({ "abort": { "http_status": 405, "vars": vars } }));
    }
    if is_set("http-to-https") {
        plugins.insert("redirect".to_owned(), json!({ "http_to_https": true }));
    } else if let Some(target) = own("http-redirect") {
        let code = own("http-redirect-code").and_then(|code| code.parse::<u16>().ok());
        let code = code.filter(|code| (301..=308).contains(code)).unwrap_or(301);
        plugins.insert("redirect".to_owned(), json!({ "uri": target, "ret_code": code }));
    }
    let mut rewrite = json!({});
    if let Some(target) = own("rewrite-target") {
        rewrite["uri"] = json!(target);
    }
    if let (Some(pattern), Some(template)) =
        (own("rewrite-target-regex"), own("rewrite-target-regex-template"))
    {
        rewrite["regex_uri"] = json!([pattern, template]);
    }
    if rewrite.as_object().is_some_and(|fields| !fields.is_empty()) {
        plugins.insert("proxy-rewrite".to_owned(), rewrite);
    }
    for (annotation, plugin) in [("enable-cors", "cors"), ("enable-csrf", "csrf")] {
        if is_set(annotation) {
            plugins.insert(plugin.to_owned(), json!({}));
        }
    }
    match own("auth-type") {
        Some("keyAuth") => plugins.insert("key-auth".to_owned(), json!({})),
        Some("basicAuth") => plugins.insert("basic-auth".to_owned(), json!({})),
        _ => None,
    };
    plugins
}

fn is_served(ingress: &Object<IngressSpec>, classes: &[Object<ClassSpec>]) -> bool {
    let class = ingress.spec.ingress_class_name.as_deref();
    let class = class.or_else(|| ingress.metadata.annotation("kubernetes.io/ingress.class"));
    if let Some(name) = class {
        let known = classes.iter().find(|class| class.metadata.name == name);
        known.map_or(name == CLASS, |class| class.spec.controller == CONTROLLER)
    } else {
        let mut names = ingress.metadata.annotations.iter().flatten();
        names.any(|(name, _)| name.starts_with(DOMAIN))
    }
}
