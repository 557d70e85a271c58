//! Telemetry of a data plane, as the global rule that PingSIX runs on the requests of every route.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};

use super::ProxyLayers;
use super::layers::Layers;
use crate::crd::{AccessLog, PingsixProxy, RequestIdHeader, RequestMetrics, ResponseHeader, Telemetry};
use crate::model::{FieldPath, Kind, ObjectKey, ObjectName, Reason, Refusal};
use crate::pingsix::plugin::{
    EXPANDED_IN_HEADERS, FileLogger, Prometheus, RequestId, ResponseHeaders, ResponseRewrite,
};
use crate::pingsix::{GlobalRule, Plugins};

/// The global rule of a data plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TelemetryRule {
    pub(crate) rule: GlobalRule,
    /// The effective PingsixProxies: one, or those of a Gateway and its class.
    pub(crate) proxies: Box<[Arc<ObjectKey>]>,
}

/// The number of hosts with a label of their own, unless the parameters have a number.
const DEFAULT_MAX_HOSTS: usize = 100;

/// Headers that frame a response. PingSIX would write them as they are.
const RESERVED: [&str; 5] = ["content-length", "transfer-encoding", "connection", "upgrade", "trailer"];

/// The global rule of valid parameters; `None` when they have no telemetry.
pub(super) fn rule(proxies: ProxyLayers<'_>) -> Option<TelemetryRule> {
    let telemetry = layers(proxies);
    let mut rule = Builder { plugins: Plugins::new(), proxies: Vec::new() };
    rule.add(telemetry.first_with_name(|telemetry| telemetry.metrics.as_ref()), |plugins, metrics| {
        plugins.insert(&prometheus(metrics));
    });
    rule.add(telemetry.first_with_name(|telemetry| telemetry.access_log.as_ref()), |plugins, log| {
        plugins.insert(&file_logger(log));
    });
    rule.add(telemetry.first_with_name(|telemetry| telemetry.request_id.as_ref()), |plugins, header| {
        plugins.insert(&request_id(header));
    });
    let headers = telemetry
        .first_with_name(|telemetry| Some(&telemetry.response_headers).filter(|headers| !headers.is_empty()));
    rule.add(headers, |plugins, headers| plugins.insert(&response_rewrite(headers)));
    let Builder { plugins, proxies } = rule;
    (!plugins.is_empty()).then(|| TelemetryRule {
        rule: GlobalRule { plugins, ..GlobalRule::default() },
        proxies: proxies.into(),
    })
}

/// Whether valid parameters have metrics.
pub(super) fn has_metrics(proxies: ProxyLayers<'_>) -> bool {
    layers(proxies).first_with_name(|telemetry| telemetry.metrics.as_ref()).is_some()
}

fn layers(proxies: ProxyLayers<'_>) -> Layers<'_, Telemetry> {
    Layers::of(proxies, |named| named.proxy.spec.telemetry.as_ref())
}

/// A rule under construction.
struct Builder {
    plugins: Plugins,
    proxies: Vec<Arc<ObjectKey>>,
}

impl Builder {
    /// Adds the plugin of a field that is set.
    fn add<T>(&mut self, field: Option<(&ObjectName, &T)>, add: impl FnOnce(&mut Plugins, &T)) {
        let Some((name, value)) = field else { return };
        add(&mut self.plugins, value);
        if self.proxies.iter().all(|proxy| proxy.name != *name) {
            self.proxies.push(Arc::new(ObjectKey { kind: Kind::PingsixProxy, name: name.clone() }));
        }
    }
}

fn prometheus(metrics: &RequestMetrics) -> Prometheus {
    Prometheus {
        // The plugin forgets the paths that it has counted whenever the data plane changes, its registry keeps their
        // series: any other number bounds nothing.
        max_unique_paths: 0,
        max_unique_hosts: metrics.max_hosts.map_or(DEFAULT_MAX_HOSTS, usize::from),
        // PingSIX uses the id of a Route without a name.
        prefer_name: true,
        ..Prometheus::default()
    }
}

fn file_logger(log: &AccessLog) -> FileLogger {
    let default = FileLogger::default();
    FileLogger {
        log_format: log.format.clone().unwrap_or(default.log_format),
        redact_query_params: log.redact_query_params.clone(),
    }
}

fn request_id(header: &RequestIdHeader) -> RequestId {
    let default = RequestId::default();
    RequestId {
        header_name: header.header.clone().unwrap_or(default.header_name),
        include_in_response: header.in_response.unwrap_or(default.include_in_response),
        ..RequestId::default()
    }
}

fn response_rewrite(headers: &[ResponseHeader]) -> ResponseRewrite {
    let set = headers.iter().map(|header| (header.name.clone(), header.value.clone())).collect();
    let headers = ResponseHeaders::Structured { add: Vec::new(), set, remove: Vec::new() };
    ResponseRewrite { headers: Some(headers), ..ResponseRewrite::default() }
}

/// Refusals of the telemetry of a PingsixProxy, beyond those of the schema.
pub(super) fn refusals(proxy: &PingsixProxy) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let Some(telemetry) = &proxy.spec.telemetry else { return refusals };
    let at = FieldPath::new("spec").child("telemetry");
    let mut add =
        |at: FieldPath, message: String| refusals.push(Refusal::new(at, Reason::InvalidParameters, message));
    if let Some(format) = telemetry.access_log.as_ref().and_then(|log| log.format.as_deref()) {
        let at = at.child("accessLog").child("format");
        if format.contains(char::is_control) {
            add(at.clone(), "The value has a control character, such as the end of a line.".to_owned());
        }
        for name in FileLogger::variables(format).filter(|name| !FileLogger::VARIABLES.contains(name)) {
            add(at.clone(), format!("PingSIX has no variable ${name}."));
        }
    }
    if let Some(name) = telemetry.request_id.as_ref().and_then(|header| header.header.as_deref()) {
        let at = at.child("requestId").child("header");
        match HeaderName::from_bytes(name.as_bytes()) {
            Ok(header) if !RESERVED.contains(&header.as_str()) && header != "host" => {}
            Ok(_) => add(at, format!("Header {name} belongs to the gateway.")),
            Err(_) => add(at, format!("\"{name}\" is not a header name.")),
        }
    }
    let mut names: Vec<HeaderName> = Vec::new();
    for (index, header) in telemetry.response_headers.iter().enumerate() {
        let at = at.child("responseHeaders").index(index);
        match HeaderName::from_bytes(header.name.as_bytes()) {
            Ok(name) if RESERVED.contains(&name.as_str()) => {
                add(at.child("name"), format!("Header {} belongs to the gateway.", header.name));
            }
            Ok(name) if names.contains(&name) => {
                add(at.child("name"), format!("Header {} is there twice.", header.name));
            }
            Ok(name) => names.push(name),
            Err(_) => add(at.child("name"), format!("\"{}\" is not a header name.", header.name)),
        }
        let value = &header.value;
        if HeaderValue::from_str(value).is_err() {
            add(at.child("value"), format!("The value of header {} is not visible ASCII.", header.name));
        } else if let Some(variable) =
            EXPANDED_IN_HEADERS.into_iter().find(|variable| value.contains(variable))
        {
            let message = format!("PingSIX would replace {variable} in the value of header {}.", header.name);
            add(at.child("value"), message);
        }
    }
    refusals
}

#[cfg(test)]
mod tests;
