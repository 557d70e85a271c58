//! Logs, traces, buffers and errors: annotations that change nothing a client is refused or routed by.

use super::{BLANK, Concern, Unless, lacking, no_effect};

const NO_MIRRORS: &str = "PingSIX does not copy requests.";

const NO_TRACES: &str = "PingSIX sends no traces; telemetry of a PingsixProxy has request ids.";

const ONE_LOG: &str = "The telemetry of a PingsixProxy decides about access logs.";

pub(super) const NGINX: Concern = Concern {
    annotations: &[
        lacking("custom-http-errors", BLANK, "PingSIX passes the errors of backends on."),
        no_effect("disable-proxy-intercept-errors"),
        lacking("enable-access-log", Unless::Is(true), ONE_LOG),
        no_effect("enable-rewrite-log"),
        lacking("enable-opentelemetry", Unless::Is(false), NO_TRACES),
        lacking("enable-opentracing", Unless::Is(false), NO_TRACES),
        no_effect("opentelemetry-operation-name"),
        no_effect("opentelemetry-trust-incoming-span"),
        no_effect("opentracing-trust-incoming-span"),
        no_effect("http2-push-preload"),
        lacking("mirror-target", BLANK, NO_MIRRORS),
        no_effect("mirror-host"),
        no_effect("mirror-request-body"),
        no_effect("proxy-buffer-size"),
        no_effect("proxy-buffering"),
        no_effect("proxy-buffers-number"),
        no_effect("proxy-busy-buffers-size"),
        no_effect("proxy-max-temp-file-size"),
        no_effect("proxy-request-buffering"),
        lacking("ssl-ciphers", BLANK, "PingSIX chooses the ciphers of its TLS library."),
        no_effect("ssl-prefer-server-ciphers"),
    ],
    read: |_, _| {},
};
