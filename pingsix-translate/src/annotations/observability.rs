//! Logs, traces, buffers and errors: annotations that change nothing a client is refused or routed by.

use super::{Annotation, Concern, Purpose, Support, Unless, impossible, not_honoured, tunes};

const fn without_effect(name: &'static str) -> Annotation {
    tunes(name, Support::NoEffect)
}

const NO_MIRRORS: &str = "PingSIX does not copy requests.";

const NO_TRACES: &str = "PingSIX sends no traces; telemetry of a PingsixProxy has request ids.";

const ONE_LOG: &str = "The telemetry of a PingsixProxy decides about access logs.";

pub(super) const NGINX: Concern = Concern {
    annotations: &[
        impossible("custom-http-errors", Purpose::Tunes, &[""], "PingSIX passes the errors of backends on."),
        without_effect("disable-proxy-intercept-errors"),
        not_honoured("enable-access-log", Purpose::Tunes, Unless::Is(true), ONE_LOG),
        without_effect("enable-rewrite-log"),
        not_honoured("enable-opentelemetry", Purpose::Tunes, Unless::Is(false), NO_TRACES),
        not_honoured("enable-opentracing", Purpose::Tunes, Unless::Is(false), NO_TRACES),
        without_effect("opentelemetry-operation-name"),
        without_effect("opentelemetry-trust-incoming-span"),
        without_effect("opentracing-trust-incoming-span"),
        without_effect("http2-push-preload"),
        impossible("mirror-target", Purpose::Tunes, &[""], NO_MIRRORS),
        without_effect("mirror-host"),
        without_effect("mirror-request-body"),
        without_effect("proxy-buffer-size"),
        without_effect("proxy-buffering"),
        without_effect("proxy-buffers-number"),
        without_effect("proxy-busy-buffers-size"),
        without_effect("proxy-max-temp-file-size"),
        without_effect("proxy-request-buffering"),
        impossible("ssl-ciphers", Purpose::Tunes, &[""], "PingSIX chooses the ciphers of its TLS library."),
        without_effect("ssl-prefer-server-ciphers"),
    ],
    read: |_, _| {},
};
