//! The protocol of backends.

use super::values::is_object_name;
use super::{
    BLANK, BackendProtocol, Concern, IngressAnnotations, Support, Unless, Values, closing, lacking,
    no_effect, tunes,
};
use crate::snapshot::DEFAULT_BACKEND;

/// ingress-nginx accepts every certificate of a backend, unless proxy-ssl-verify is on.
const VERIFIED: &str =
    "PingSIX verifies the certificate of the backend for the Host of the request, so self-signed ones fail.";

const NO_OWN_AUTHORITY: &str = "PingSIX trusts the authorities of its system.";

/// The protocols of ingress-nginx that PingSIX does not speak. ingress-nginx speaks HTTP for any other value
/// (`annotations/backendprotocol/main.go`).
const OTHERS: [&str; 3] = ["AJP", "AUTO_HTTP", "FCGI"];

pub(super) const NGINX: Concern = Concern {
    annotations: &[
        tunes("backend-protocol", Support::Limited(VERIFIED)),
        lacking("proxy-http-version", Unless::Values(&["", "1.1"]), "PingSIX speaks HTTP/1.1 or HTTP/2."),
        lacking("proxy-ssl-secret", BLANK, NO_OWN_AUTHORITY),
        no_effect("proxy-ssl-ciphers"),
        lacking("proxy-ssl-name", BLANK, "PingSIX sends the Host of the request as the server name."),
        no_effect("proxy-ssl-protocols"),
        no_effect("proxy-ssl-server-name"),
        // PingSIX always verifies.
        no_effect("proxy-ssl-verify"),
        no_effect("proxy-ssl-verify-depth"),
        // These have no meaning without the protocol FCGI.
        no_effect("fastcgi-index"),
        no_effect("fastcgi-params-configmap"),
        tunes(DEFAULT_BACKEND, Support::Exact),
        tunes("service-upstream", Support::Exact),
        lacking("ssl-passthrough", Unless::Is(false), "An Ingress ends TLS; a TLSRoute passes it through."),
    ],
    read,
};

pub(super) const APISIX: Concern = Concern {
    annotations: &[
        no_effect("enable-websocket"),
        tunes("upstream-scheme", Support::Limited(VERIFIED)),
        // A Service of the same name in the namespace of the Ingress must not answer instead.
        closing(
            "svc-namespace",
            BLANK,
            "An Ingress has Services of its own namespace; an HTTPRoute with a ReferenceGrant has others, too.",
        ),
    ],
    read: |values, read| read_protocol("upstream-scheme", values, read),
};

fn read(values: &mut Values<'_>, read: &mut IngressAnnotations) {
    read.by_cluster_ip = values.flag("service-upstream");
    if let Some(name) = values.text(DEFAULT_BACKEND) {
        // The name of a Service is a single label.
        if is_object_name(name) && !name.contains('.') {
            read.default_backend = Some(name.to_owned());
        } else {
            let message = format!("\"{name}\" is no name of a Service in the namespace of the Ingress.");
            values.refuse(DEFAULT_BACKEND, message);
        }
    }
    read_protocol("backend-protocol", values, read);
}

fn read_protocol(name: &str, values: &mut Values<'_>, read: &mut IngressAnnotations) {
    let Some(text) = values.text(name) else { return };
    let protocol = match text.to_ascii_uppercase().as_str() {
        "HTTP" => BackendProtocol::OfService,
        "GRPC" => BackendProtocol::Grpc,
        "HTTPS" => BackendProtocol::Https,
        "GRPCS" => BackendProtocol::Grpcs,
        other => {
            let message =
                format!("PingSIX speaks HTTP, HTTPS, GRPC and GRPCS, and \"{text}\" is none of these.");
            if name == "upstream-scheme" || OTHERS.contains(&other) {
                values.refuse(name, message);
            } else {
                values.ignore(name, message);
            }
            return;
        }
    };
    if matches!(protocol, BackendProtocol::Https | BackendProtocol::Grpcs) {
        values.limit(name);
    }
    read.backend_protocol = protocol;
}
