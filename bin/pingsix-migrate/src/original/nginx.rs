//! ingress-nginx: the servers and locations that its controller writes, and how nginx answers with them.
//!
//! ```text
//! Ingresses ──► settings (annotations) ──► servers (servers, locations, upstreams) ──► answers
//! ```
//!
//! The model follows the controller and its template. The ConfigMap of the controller has its defaults.

mod answers;
mod servers;
mod settings;

use std::collections::BTreeMap;
use std::rc::Rc;

use regex::bytes::{Regex, RegexBuilder};
use serde_json::Value;

use self::servers::{Configuration, Ingress};
use self::settings::Settings;
use super::objects::{ClassSpec, IngressSpec, Object, Services, of_kind};

/// The controller of the classes of ingress-nginx.
const CONTROLLER: &str = "k8s.io/ingress-nginx";

/// The name of the class if the input does not have it.
const CLASS: &str = "nginx";

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

const DEFAULT_CLASS_ANNOTATION: &str = "ingressclass.kubernetes.io/is-default-class";

/// The most bytes of a compiled regular expression.
const MAX_REGEX_BYTES: usize = 1 << 20;

/// ingress-nginx with its configuration.
pub(super) struct Nginx {
    configuration: Configuration,
    /// The regular expressions of the locations of servers that have them, in order.
    expressions: BTreeMap<String, Vec<Option<Regex>>>,
    /// The servers of aliases.
    aliases: BTreeMap<String, String>,
    /// The reason for which nginx refuses the configuration.
    conflict: Option<String>,
    /// Hosts that are redirected, with their targets.
    redirects: BTreeMap<String, String>,
}

impl Nginx {
    /// `None` without an Ingress of the controller.
    pub(super) fn read(objects: &[Value], are_ready: bool) -> Option<Self> {
        let services = Services::read(objects, are_ready);
        let classes: Vec<Object<ClassSpec>> = of_kind(objects, "networking.k8s.io", "IngressClass");
        let mut ingresses: Vec<Ingress> = of_kind(objects, "networking.k8s.io", "Ingress")
            .into_iter()
            .filter(|ingress| is_served(ingress, &classes))
            .map(|object| with_settings(object, &services))
            .collect();
        if ingresses.is_empty() {
            return None;
        }
        // Of equally old Ingresses, the last by name comes first.
        ingresses.sort_by_cached_key(|ingress| {
            let age = ingress.object.metadata.creation_timestamp.clone();
            (age, std::cmp::Reverse(ingress.name()))
        });
        let mut model = Self {
            configuration: Configuration::new(&ingresses, &services),
            expressions: BTreeMap::new(),
            aliases: BTreeMap::new(),
            conflict: None,
            redirects: BTreeMap::new(),
        };
        model.compile();
        model.add_names();
        Some(model)
    }

    /// Compiles the regular expressions, and finds locations that nginx refuses.
    fn compile(&mut self) {
        for (host, server) in &self.configuration.servers {
            if server.locations.iter().any(servers::Location::needs_regex) {
                let compiled =
                    server.locations.iter().map(|location| compiled(&format!("^{}", location.path)));
                self.expressions.insert(host.clone(), compiled.collect());
                continue;
            }
            let mut names: Vec<(&str, bool)> =
                server.locations.iter().map(|one| (one.path.as_str(), one.is_exact)).collect();
            names.sort_unstable();
            if let Some([(path, _), ..]) = names.windows(2).find(|pair| pair[0] == pair[1]) {
                self.conflict = Some(format!("nginx refuses two locations {path} of host {host}"));
            }
        }
    }

    /// Collects the names of servers beside their hosts.
    fn add_names(&mut self) {
        for (to, server) in &self.configuration.servers {
            for alias in &server.aliases {
                self.aliases.entry(alias.clone()).or_insert_with(|| to.clone());
            }
            let from = to.strip_prefix("www.").map_or_else(|| format!("www.{to}"), str::to_owned);
            if server.from_to_www && !self.configuration.servers.contains_key(&from) {
                self.redirects.insert(from, to.clone());
            }
        }
    }
}

/// A regular expression of nginx; `None` for a syntax that `regex` does not have.
fn compiled(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern).case_insensitive(true).unicode(false).size_limit(MAX_REGEX_BYTES).build().ok()
}

/// Whether ingress-nginx serves an Ingress. The API server writes the default class into Ingresses without one, and the
/// others count if they have annotations of ingress-nginx.
fn is_served(ingress: &Object<IngressSpec>, classes: &[Object<ClassSpec>]) -> bool {
    let is_own = |name: &str| {
        let class = classes.iter().find(|class| class.metadata.name == name);
        class.map_or(name == CLASS, |class| class.spec.controller == CONTROLLER)
    };
    if let Some(class) = &ingress.spec.ingress_class_name {
        return is_own(class);
    }
    if let Some(class) = ingress.metadata.annotation(CLASS_ANNOTATION) {
        return is_own(class);
    }
    let default = classes.iter().find(|class| {
        class.metadata.annotation(DEFAULT_CLASS_ANNOTATION).is_some_and(|value| value == "true")
    });
    if let Some(class) = default {
        class.spec.controller == CONTROLLER
    } else {
        let mut names = ingress.metadata.annotations.iter().flatten();
        names.any(|(name, _)| name.starts_with("nginx.ingress.kubernetes.io/"))
    }
}

fn with_settings(object: Object<IngressSpec>, services: &Services) -> Ingress {
    let namespace = object.metadata.namespace();
    let secret = |name: &str| {
        let (of, name) = name.split_once('/').unwrap_or((namespace, name));
        services.secret(of, name).map(<[String]>::to_vec)
    };
    let annotations = object.metadata.annotations.iter().flatten();
    let settings = Rc::new(Settings::read(annotations, secret));
    Ingress { object, settings }
}

/// The wildcard that covers a host: with one label in the place of the first one.
fn wildcard(host: &str) -> Option<String> {
    let (label, domain) = host.split_once('.')?;
    let is_label = !label.is_empty()
        && label.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'));
    is_label.then(|| format!("*.{domain}"))
}
