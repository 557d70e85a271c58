//! Settings of a Service that ApisixUpstream and BackendTrafficPolicy have in common.

use pingsix_translate::{Kind, ObjectKey, ObjectName, is_dns_subdomain};
use serde_json::{Map, Value, json};

use super::Draft;
use super::output::Output;
use crate::objects::Objects;
use crate::plugin::variable;
use crate::report::{Reason, Report};
use crate::source::Fields;

/// Settings of a Service, as fields of a BackendTrafficPolicy.
#[derive(Default)]
pub(super) struct Settings {
    spec: Map<String, Value>,
    /// The name that PingSIX verifies over TLS.
    tls: Option<String>,
    pub(super) host: Option<String>,
}

impl Settings {
    /// Reads the fields that ApisixUpstream and BackendTrafficPolicy have in common.
    pub(super) fn read(
        fields: &mut Fields,
        target: &ObjectName,
        section: Option<&str>,
        draft: &mut Draft<'_>,
    ) -> Self {
        let mut settings = Self::default();
        if let Some(field) = fields.object("loadbalancer", draft.report) {
            settings.load_balancer(field, draft.report);
        }
        if let Some((place, retries)) = fields.number("retries", draft.report) {
            let message = "The field becomes retry.numRetries, at most 16, for connections that fail.";
            draft.report.limited(&place, Reason::DifferentScope, message);
            settings.spec.insert("retry".to_owned(), json!({ "numRetries": retries.min(16) }));
        }
        if let Some(field) = fields.object("timeout", draft.report) {
            settings.timeout(field, draft.report);
        }
        if let Some(mut field) = fields.object("healthCheck", draft.report) {
            if let Some(active) = field.object("active", draft.report) {
                settings.health_check(active, draft.report);
            }
            if let Some(passive) = field.take("passive") {
                let message =
                    "PingSIX does not judge endpoints by their answers to clients. Use an active check.";
                draft.report.impossible(&passive.place, Reason::UnsupportedField, message);
            }
            field.finish(draft.report);
        }
        if let Some(mut field) = fields.object("tlsSecret", draft.report) {
            settings.client_certificate(&mut field, target, draft);
            field.finish(draft.report);
        }
        for (name, why) in [
            ("subsets", "A backend has all endpoints of a Service. Make a Service for each subset."),
            ("discovery", "Endpoints come from Kubernetes alone."),
        ] {
            if let Some(field) = fields.take(name) {
                if name == "discovery" {
                    draft.report.blocking(&field.place, Reason::UnsupportedField, why);
                } else {
                    draft.report.impossible(&field.place, Reason::UnsupportedField, why);
                }
            }
        }
        settings.pass_host(fields, draft.report);
        settings.scheme(fields, target, section, draft);
        settings
    }

    fn load_balancer(&mut self, mut fields: Fields, report: &mut Report) {
        let place = fields.place.clone();
        let kind = fields.text("type", report);
        let hash_on = fields.text("hashOn", report).map_or_else(|| "vars".to_owned(), |(_, text)| text);
        let key = fields.text_or_empty("key", report);
        fields.finish(report);
        let Some((kind_place, kind)) = kind else { return };
        let hash = match (kind.as_str(), hash_on.as_str(), key.as_str()) {
            ("roundrobin", ..) => {
                return report.exact(&kind_place, "This is the default.");
            }
            ("chash", "vars", "remote_addr") => Some(json!({ "type": "SourceIP" })),
            ("chash", "vars", "uri") => Some(json!({ "type": "URI" })),
            ("chash", "vars", name) => {
                variable(name).map(|(kind, name)| json!({ "type": kind, "name": name }))
            }
            ("chash", "header" | "cookie", name) if !name.is_empty() => {
                let kind = if hash_on == "header" { "Header" } else { "Cookie" };
                Some(json!({ "type": kind, "name": name.strip_prefix("http_").unwrap_or(name) }))
            }
            _ => None,
        };
        if let Some(hash) = hash {
            let message = "The field becomes ConsistentHash. Requests go to other endpoints than before, as long as it is new.";
            report.limited(&place, Reason::DifferentConnection, message);
            let value = json!({ "type": "ConsistentHash", "consistentHash": hash });
            self.spec.insert("loadBalancer".to_owned(), value);
        } else {
            let message = "PingSIX does not choose endpoints in this way. It takes them in turn.";
            report.impossible(&place, Reason::DifferentConnection, message);
        }
    }

    fn timeout(&mut self, mut fields: Fields, report: &mut Report) {
        let mut value = Map::new();
        for name in ["connect", "send", "read"] {
            // The original has 60 seconds for an absent value.
            let mut seconds = 60;
            if let Some((place, given)) = fields.take(name).and_then(|field| field.seconds(report)) {
                if given.is_exact && (1..=86_400).contains(&given.value) {
                    report.exact(&place, format!("The field becomes timeout.{name}."));
                } else {
                    let message = "Timeouts are in whole seconds, from one to 86400.";
                    report.limited(&place, Reason::DifferentConnection, message);
                }
                seconds = given.value.clamp(1, 86_400);
            }
            value.insert(name.to_owned(), json!(format!("{seconds}s")));
        }
        fields.finish(report);
        self.spec.insert("timeout".to_owned(), Value::Object(value));
    }

    fn health_check(&mut self, mut fields: Fields, report: &mut Report) {
        let place = fields.place.clone();
        let kind = fields.text("type", report).map_or_else(|| "http".to_owned(), |(_, kind)| kind);
        let is_http = kind != "tcp";
        fields.drop(["timeout"], report, "A probe has a second.");
        fields.drop(["concurrency"], report, "PingSIX chooses this itself.");
        fields.drop(["strictTLS"], report, "Certificates are verified as for requests.");
        if let Some(headers) = fields.take("requestHeaders") {
            let message = "Probes have no headers of their own.";
            report.impossible(&headers.place, Reason::UnsupportedField, message);
        }
        let host = fields.text("host", report);
        let port = fields.number("port", report);
        let path = fields.text("httpPath", report);
        let mut value = json!({ "type": if is_http { "HTTP" } else { "TCP" } });
        let mut http = Map::new();
        if let Some((place, host)) = host {
            report.exact(&place, "The field becomes http.hostname.");
            http.insert("hostname".to_owned(), json!(host));
        }
        if let Some((place, path)) = path {
            report.exact(&place, "The field becomes http.path.");
            http.insert("path".to_owned(), json!(path));
        }
        match port {
            Some((place, port)) if (1..=65_535).contains(&port) => {
                report.exact(&place, "The port stays.");
                value["port"] = json!(port);
            }
            Some((place, _)) => {
                report.limited(&place, Reason::DifferentConnection, "Probes go to the port of requests.");
            }
            None => {}
        }
        if let Some(mut healthy) = fields.object("healthy", report) {
            if let Some((place, interval)) = healthy.take("interval").and_then(|field| field.seconds(report))
            {
                report.exact(&place, "The field becomes interval.");
                value["interval"] = json!(format!("{}s", interval.value.clamp(1, 86_400)));
            }
            if let Some((place, count)) = healthy.number("successes", report) {
                report.exact(&place, "The field becomes healthyThreshold.");
                value["healthyThreshold"] = json!(count.clamp(1, 100));
            }
            let codes: Vec<u64> = healthy
                .list("httpCodes", report)
                .into_iter()
                .filter_map(|item| item.number(report))
                .map(|(_, code)| code)
                .filter(|code| (100..=599).contains(code))
                .take(64)
                .collect();
            if !codes.is_empty() {
                report.exact(&healthy.place.at("httpCodes"), "The field becomes http.expectedStatuses.");
                http.insert("expectedStatuses".to_owned(), json!(codes));
            }
            healthy.finish(report);
        }
        if let Some(mut unhealthy) = fields.object("unhealthy", report) {
            unhealthy.drop(["interval"], report, "There is one interval, that of healthy endpoints.");
            unhealthy.drop(["httpCodes"], report, "Every status but the expected ones is a failure.");
            let mut counts = Vec::new();
            for name in ["httpFailures", "tcpFailures", "timeouts", "timeout"] {
                if let Some((place, count)) = unhealthy.number(name, report) {
                    let message = "There is one threshold, the least of these.";
                    report.limited(&place, Reason::DifferentConnection, message);
                    counts.push(count);
                }
            }
            if let Some(least) = counts.into_iter().min() {
                value["unhealthyThreshold"] = json!(least.clamp(1, 100));
            }
            unhealthy.finish(report);
        }
        fields.finish(report);
        if is_http && !http.is_empty() {
            value["http"] = Value::Object(http);
        }
        let message = "The field becomes healthCheck.active. While all endpoints fail, requests get 500.";
        report.limited(&place, Reason::DifferentConnection, message);
        self.spec.insert("healthCheck".to_owned(), json!({ "active": value }));
    }

    fn client_certificate(&mut self, fields: &mut Fields, target: &ObjectName, draft: &mut Draft<'_>) {
        let Some((place, name)) = fields.text("name", draft.report) else { return };
        let namespace = fields.text("namespace", draft.report).map(|(_, namespace)| namespace);
        let secret = ObjectName::new(namespace.unwrap_or_else(|| target.namespace.to_string()), name);
        if !is_dns_subdomain(&secret.name) || !is_dns_subdomain(&secret.namespace) {
            draft.report.blocking(&place, Reason::InvalidValue, "The value is not the name of a Secret.");
            return;
        }
        draft.output.objects.grant((Kind::BackendTrafficPolicy, &target.namespace), Kind::Secret, &secret);
        let mut reference = json!({ "name": &*secret.name });
        if secret.namespace != target.namespace {
            reference["namespace"] = json!(&*secret.namespace);
        }
        self.spec.insert("tls".to_owned(), json!({ "clientCertificateRef": reference }));
        draft.report.exact(&fields.place, "The field becomes tls.clientCertificateRef.");
    }

    fn pass_host(&mut self, fields: &mut Fields, report: &mut Report) {
        let pass = fields.text("passHost", report);
        let host = fields.filled("upstreamHost", report);
        match (pass, host) {
            (Some((place, pass)), host) if pass == "rewrite" => match host {
                Some((host_place, host)) if is_dns_subdomain(&host) => {
                    report.exact(&place, "Rules with the upstream have urlRewrite.hostname.");
                    report.exact(&host_place, "The host becomes urlRewrite.hostname.");
                    self.host = Some(host);
                }
                _ => {
                    let message = "The upstream has no host that an HTTPRoute could set.";
                    report.blocking(&place, Reason::UnsupportedBackend, message);
                }
            },
            (Some((place, pass)), host) if pass == "node" => {
                let message = "Requests keep the host of the client. For another one, set passHost: rewrite and upstreamHost.";
                report.impossible(&place, Reason::UnsupportedBackend, message);
                if let Some((place, _)) = host {
                    report.exact(&place, "The original does not use the host either.");
                }
            }
            (pass, host) => {
                if let Some((place, _)) = pass {
                    report.exact(&place, "Requests keep the host of the client.");
                }
                if let Some((place, _)) = host {
                    report.exact(&place, "The original does not use the host without passHost: rewrite.");
                }
            }
        }
    }

    fn scheme(
        &mut self,
        fields: &mut Fields,
        target: &ObjectName,
        section: Option<&str>,
        draft: &mut Draft<'_>,
    ) {
        let Some((place, scheme)) = fields.text("scheme", draft.report) else { return };
        match scheme.as_str() {
            "" | "http" => draft.report.exact(&place, "This is the default."),
            "https" => {
                let name =
                    self.host.clone().unwrap_or_else(|| format!("{}.{}.svc", target.name, target.namespace));
                let message = format!(
                    "A BackendTLSPolicy verifies the certificate for {name}. The original verifies none."
                );
                draft.report.limited(&place, Reason::VerifiedCertificate, message);
                self.tls = Some(name);
            }
            "grpc" => {
                let is_meant = |port: &Map<String, Value>| {
                    section.is_none_or(|section| port.get("name").is_some_and(|name| name == section))
                };
                if speak_h2c(target, is_meant, &mut draft.output.objects) {
                    let message =
                        "The Service gets appProtocol kubernetes.io/h2c, which other programs may read.";
                    draft.report.limited(&place, Reason::DifferentConnection, message);
                } else {
                    let message = "The protocol is appProtocol of the Service, which is not among the input.";
                    draft.report.blocking(&place, Reason::MissingReferent, message);
                }
            }
            _ => {
                let message = "PingSIX does not speak this protocol to backends of HTTPRoutes.";
                draft.report.blocking(&place, Reason::UnsupportedProtocol, message);
            }
        }
    }

    /// Writes the policies for a Service, or a port of it.
    pub(super) fn write(&self, target: &ObjectName, section: Option<&str>, output: &mut Output) {
        let suffix = section.map(|section| format!("-{section}")).unwrap_or_default();
        let wanted = format!("{}{suffix}", target.name);
        let targets = targets(target, section);
        let objects = &mut output.objects;
        if !self.spec.is_empty() {
            let mut spec = self.spec.clone();
            spec.insert("targetRefs".to_owned(), targets.clone());
            objects.add(Kind::BackendTrafficPolicy, &target.namespace, &wanted, Value::Object(spec));
        }
        if let Some(hostname) = &self.tls {
            verify(hostname, &targets, (&target.namespace, &wanted), objects);
        }
    }
}

/// `targetRefs` of a policy for a Service, or for a port of it.
pub(super) fn targets(service: &ObjectName, section: Option<&str>) -> Value {
    let mut target = json!({ "group": "", "kind": Kind::Service.as_str(), "name": &*service.name });
    if let Some(section) = section {
        target["sectionName"] = json!(section);
    }
    json!([target])
}

/// Writes a policy that verifies the certificates of backends for a name.
pub(super) fn verify(
    hostname: &str,
    targets: &Value,
    (namespace, wanted): (&str, &str),
    objects: &mut Objects,
) {
    let validation = json!({ "hostname": hostname, "wellKnownCACertificates": "System" });
    let spec = json!({ "targetRefs": targets, "validation": validation });
    objects.add(Kind::BackendTlsPolicy, namespace, wanted, spec);
}

/// Gives ports of a Service the protocol HTTP/2 without TLS. Returns whether the output has the Service.
pub(super) fn speak_h2c(
    service: &ObjectName,
    is_meant: impl Fn(&Map<String, Value>) -> bool,
    objects: &mut Objects,
) -> bool {
    let key = ObjectKey { kind: Kind::Service, name: service.clone() };
    let ports = objects.get_mut(&key).and_then(|service| service.pointer_mut("/spec/ports")?.as_array_mut());
    let is_there = ports.is_some();
    let ports = ports.into_iter().flatten().filter_map(Value::as_object_mut);
    for port in ports.filter(|port| is_meant(port)) {
        port.insert("appProtocol".to_owned(), json!("kubernetes.io/h2c"));
    }
    is_there
}
