//! Requests, and the answers of the original and of the output in the same words.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use pingsix_gateway_api::explain::{self, BriefAnswer, PreparedPlane, StreamPorts, Target};
use pingsix_gateway_api::pipeline::Output;
use pingsix_translate::pingsix::plugin::IpRestriction;
use pingsix_translate::{ObjectName, pingsix};

/// A request of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Whether the connection uses TLS.
    pub(crate) https: bool,
    /// The header `Host`, perhaps with a port.
    pub(crate) host: String,
    pub(crate) path: String,
    /// The text behind the question mark.
    pub(crate) query: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) http2: bool,
    /// The address of the client, if it is known.
    pub(crate) client: Option<IpAddr>,
    /// The bytes of the body.
    pub(crate) body: u64,
}

impl Request {
    /// A GET in plaintext.
    pub(crate) fn get(host: &str, path: &str) -> Self {
        Self { method: "GET".to_owned(), host: host.to_owned(), path: path.to_owned(), ..Self::default() }
    }

    /// The first header of a name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// A path with the query of the request.
    pub(crate) fn with_query(&self, path: &str) -> String {
        match &self.query {
            Some(query) => format!("{path}?{query}"),
            None => path.to_owned(),
        }
    }

    fn to_pingsix(&self) -> pingsix::Request {
        pingsix::Request {
            method: self.method.clone(),
            host: Some(self.host.clone()),
            path: self.path.clone(),
            query: self.query.clone(),
            headers: self.headers.clone(),
            http2: self.http2,
            tls: self.https,
            ..pingsix::Request::default()
        }
    }
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// One of the backends gets the request, with these weights.
    Backends {
        backends: BTreeMap<Backend, u64>,
        /// The plugins of PingSIX that may refuse the request before.
        checks: BTreeSet<String>,
    },
    Redirect {
        status: u16,
        location: String,
    },
    Status(u16),
    /// No listener takes the connection.
    Closed,
    /// The answer is unknown, for this reason.
    Unknown(String),
}

/// A backend, and the request that it gets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Backend {
    pub(crate) service: ObjectName,
    pub(crate) port: i32,
    /// Path and query.
    pub(crate) target: String,
    /// `None` for the name of an endpoint.
    pub(crate) host: Option<String>,
}

/// Plugins that refuse requests without credentials, of other addresses, or above a limit.
const CHECKS: [&str; 6] = ["basic-auth", "csrf", "ip-restriction", "jwt-auth", "key-auth", "limit-count"];

/// The data planes of a translation, ready to answer requests.
pub(crate) struct Answers<'o> {
    planes: Vec<PreparedPlane<'o>>,
    /// Whether a data plane has the port 80, and the port 443.
    has_usual: [bool; 2],
    stream_ports: Vec<StreamPorts<'o>>,
}

impl<'o> Answers<'o> {
    /// A data plane that PingSIX would refuse has a finding, and answers nothing.
    pub(crate) fn of(output: &'o Output) -> Self {
        let planes = output.planes.iter();
        let planes = planes.filter_map(|(key, plane)| PreparedPlane::new(plane.to_explain(key)).ok());
        let has =
            |port| output.planes.iter().any(|(key, plane)| explain::has_port(&plane.to_explain(key), port));
        Self {
            planes: planes.collect(),
            has_usual: [has(80), has(443)],
            stream_ports: output.stream_ports().collect(),
        }
    }

    /// The answer to a request at the usual port of its scheme, or at any other port if no Gateway has that one.
    pub(crate) fn answer(&self, request: &Request) -> Answer {
        let sent = request.to_pingsix();
        let mut answers: Vec<Answer> = Vec::new();
        for (plane, brief) in self.find(&sent) {
            let answer = told(plane, request.client, &brief);
            if !answers.contains(&answer) {
                answers.push(answer);
            }
        }
        // Of several Gateways with a listener for the host, those without a rule do not count.
        if answers.len() > 1 {
            answers.retain(|answer| *answer != Answer::Status(404));
        }
        match answers.as_slice() {
            [] => Answer::Closed,
            [one] => one.clone(),
            [..] => Answer::Unknown("Several Gateways have listeners for the request.".to_owned()),
        }
    }

    /// Whether TLS for the host of a request passes through to a backend.
    pub(super) fn pass_through(&self, request: &Request) -> bool {
        let request = Request { https: true, ..request.clone() }.to_pingsix();
        let connections = self.stream_ports.iter();
        let mut connections =
            connections.filter_map(|ports| explain::explain_connection(ports, &request, 443));
        connections.any(|explanation| matches!(explanation.answer, explain::Answer::Connection { .. }))
    }

    /// The first answer of a data plane with a rule for the request, or else of any; `None` if no listener takes the
    /// connection.
    pub(super) fn brief(&self, request: &Request) -> Option<BriefAnswer<'o>> {
        let request = request.to_pingsix();
        let mut first = None;
        for (_, brief) in self.find(&request) {
            if brief.source.is_some() {
                return Some(brief);
            }
            first.get_or_insert(brief);
        }
        first
    }

    /// The answers of the data planes that the request may reach. Each one is found when it is asked for.
    fn find<'a>(
        &'a self,
        request: &'a pingsix::Request,
    ) -> impl Iterator<Item = (&'a PreparedPlane<'o>, BriefAnswer<'o>)> {
        let [has_80, has_443] = self.has_usual;
        let (usual, is_there) = if request.tls { (443, has_443) } else { (80, has_80) };
        let port = is_there.then_some(usual);
        let serving = self.planes.iter().filter(move |plane| plane.serves(request, port));
        serving.filter_map(move |plane| Some((plane, plane.answer(request, port)?)))
    }
}

/// The answer of a data plane.
fn told<'o>(plane: &PreparedPlane<'o>, client: Option<IpAddr>, brief: &BriefAnswer<'o>) -> Answer {
    let backends = match &brief.answer {
        explain::Answer::Forward { backends } => backends,
        explain::Answer::Status { status, .. } => return Answer::Status(*status),
        explain::Answer::Redirect { status, location } => {
            return Answer::Redirect { status: *status, location: location.clone() };
        }
        explain::Answer::Preflight { allowed } => return Answer::Status(if *allowed { 204 } else { 403 }),
        explain::Answer::NotFound { .. } => return Answer::Status(404),
        explain::Answer::Closed { .. } => return Answer::Closed,
        explain::Answer::Connection { .. } => {
            return Answer::Unknown("The connection goes on, whatever is asked over it.".to_owned());
        }
    };
    let mut shares: BTreeMap<Backend, u64> = BTreeMap::new();
    for backend in backends {
        let (service, port) = match &backend.target {
            Target::Service { service, port } => (service, *port),
            Target::Status { status } if backends.len() == 1 => return Answer::Status(*status),
            Target::Status { status } => {
                return Answer::Unknown(format!("A share of the requests gets {status}."));
            }
            Target::Redirect {} | Target::Rejected { .. } | Target::Unknown {} => {
                return Answer::Unknown("The upstream is no Service.".to_owned());
            }
        };
        let Some(sent) = &backend.sends else { continue };
        let (namespace, name) = service.split_once('/').unwrap_or(("", service));
        let service = ObjectName::new(namespace, name);
        let gets = Backend { service, port, target: sent.target.clone(), host: sent.host.clone() };
        *shares.entry(gets).or_default() += u64::from(backend.weight);
    }
    let checks: BTreeSet<String> =
        plane.plugins(brief).filter(|name| CHECKS.contains(name)).map(str::to_owned).collect();
    let lists = plane.plugin::<IpRestriction>(brief);
    if let (Some(lists), Some(client)) = (lists, client)
        && !lists.admits(client)
    {
        return Answer::Status(403);
    }
    Answer::Backends { backends: shares, checks }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pingsix_translate::{Kind, ObjectKey, Options};
    use serde_json::{Value, json};

    use super::*;
    use crate::translated::Translated;

    fn route(namespace: &str, spec: &Value) -> (ObjectKey, Arc<Value>) {
        let value = json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
            "metadata": { "namespace": namespace, "name": "cart" }, "spec": spec,
        });
        (ObjectKey::new(Kind::HttpRoute, namespace, "cart"), Arc::new(value))
    }

    /// The answer to a request, for an HTTPRoute without anything to which it refers.
    fn asked(rule: &Value, request: &Request) -> Answer {
        let spec = json!({
            "parentRefs": [{ "name": "web" }], "hostnames": ["shop.example.com"], "rules": [rule],
        });
        let responder = Some("127.0.0.1:8089".parse().unwrap());
        let translated =
            Translated::new(&[route("shop", &spec)], true, Options { responder, ..Options::default() });
        translated.answers().answer(request)
    }

    #[test]
    fn a_route_alone_is_answered_as_if_everything_else_were_there() {
        let rule = json!({
            "matches": [{ "path": { "type": "PathPrefix", "value": "/old" } }],
            "filters": [{ "type": "URLRewrite", "urlRewrite": {
                "hostname": "cart.internal", "path": { "type": "ReplacePrefixMatch", "replacePrefixMatch": "/new" },
            } }],
            "backendRefs": [{ "name": "cart", "port": 80 }],
        });
        let request = Request { query: Some("a=1".to_owned()), ..Request::get("shop.example.com", "/old/1") };
        let backend = Backend {
            service: ObjectName::new("shop", "cart"),
            port: 80,
            target: "/new/1?a=1".to_owned(),
            host: Some("cart.internal".to_owned()),
        };
        let expected = Answer::Backends { backends: [(backend, 1)].into(), checks: BTreeSet::new() };
        assert_eq!(asked(&rule, &request), expected);
        let https = Request { https: true, ..request.clone() };
        assert_eq!(asked(&rule, &https), expected);
        assert_eq!(asked(&rule, &Request::get("shop.example.com", "/")), Answer::Status(404));
        let refused = json!({ "backendRefs": [{ "name": "cart", "kind": "Bucket", "port": 80 }] });
        assert_eq!(asked(&refused, &request), Answer::Status(500));
        let redirect = json!({ "filters": [{ "type": "RequestRedirect", "requestRedirect": {
            "hostname": "new.example.com", "statusCode": 301,
        } }] });
        let location = "http://new.example.com/old/1?a=1".to_owned();
        assert_eq!(asked(&redirect, &request), Answer::Redirect { status: 301, location });
    }
}
