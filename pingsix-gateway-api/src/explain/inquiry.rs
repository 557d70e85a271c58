//! A request to explain, and the data planes that may get the request.

use http::uri::{InvalidUri, Uri};
use http::{HeaderName, Method};
use pingsix_translate::ObjectKey;
use pingsix_translate::pingsix::Request;

use super::{
    ExplainError, Explanation, Plane, RelatedObjects, StreamPorts, explain, explain_connection, has_port,
    serving_listeners,
};

/// A request to explain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inquiry {
    /// The request.
    pub request: Request,
    /// The port of its arrival.
    pub port: ArrivalPort,
    /// The Gateway or IngressClass, if it is known.
    pub owner: Option<ObjectKey>,
}

/// A request that arrives at any port of any Gateway or IngressClass.
impl From<Request> for Inquiry {
    fn from(request: Request) -> Self {
        Self { request, port: ArrivalPort::Unknown, owner: None }
    }
}

/// The port at which a request arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalPort {
    /// The port is this one.
    Known(u16),
    /// The port is this one if any listener has it: the URL names it, but a port may be mapped.
    Likely(u16),
    /// The port is unknown.
    Unknown,
}

/// The parts of a request beside its method and its URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestOptions {
    /// The headers in order. `Host` replaces the host of the URL.
    pub headers: Vec<(String, String)>,
    /// The port of the listener. The default is the port of the URL, if a listener has that port.
    pub port: Option<u16>,
    /// Whether the request uses HTTP/2.
    pub http2: bool,
    /// The server name of the TLS handshake. The default is the host.
    pub server_name: Option<String>,
}

/// The reason for which a text is no request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InquiryError {
    /// The method is not one of HTTP.
    #[error("\"{0}\" is not a method")]
    Method(String),
    /// The URL cannot be parsed.
    #[error("\"{url}\" is not a URL")]
    Url {
        /// The URL.
        url: String,
        /// The fault.
        #[source]
        source: InvalidUri,
    },
    /// The scheme of the URL is another one.
    #[error("\"{0}\" is neither an http nor an https URL")]
    Scheme(String),
    /// The URL has no host.
    #[error("\"{0}\" has no host")]
    Host(String),
    /// The port of the URL is no number of a port.
    #[error("the port of \"{0}\" is not between 0 and 65535")]
    Port(String),
}

/// The reason for which a request has no explanation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InquiryAnswerError {
    /// The Gateway or IngressClass of the inquiry has no data plane.
    #[error("{0} is not served")]
    NotServed(ObjectKey),
    /// The documents of a data plane cannot be put into a router.
    #[error(transparent)]
    Explain(#[from] ExplainError),
}

/// A header from a text of the form `NAME: VALUE`.
///
/// # Errors
///
/// The reason, for a text without a colon or without a name of a header.
pub fn parse_header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("expected NAME: VALUE")?;
    let name = name.trim();
    name.parse::<HeaderName>().map_err(|_| format!("\"{name}\" is not the name of a header"))?;
    Ok((name.to_owned(), value.trim().to_owned()))
}

/// Whether a URL has a scheme. Its path or query may hold another URL.
pub(crate) fn has_scheme(url: &str) -> bool {
    url.split_once("://").is_some_and(|(scheme, _)| !scheme.contains(['/', '?', '#']))
}

impl Inquiry {
    /// An inquiry about a request. A URL without a scheme is an `http` URL.
    ///
    /// # Errors
    ///
    /// [`InquiryError`] for a method or a URL that no client can send.
    pub fn new(
        method: &str,
        url: &str,
        options: RequestOptions,
        owner: Option<ObjectKey>,
    ) -> Result<Self, InquiryError> {
        method.parse::<Method>().map_err(|_| InquiryError::Method(method.to_owned()))?;
        let text = if has_scheme(url) { url.to_owned() } else { format!("http://{url}") };
        let uri: Uri = text.parse().map_err(|source| InquiryError::Url { url: url.to_owned(), source })?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(_) | None => return Err(InquiryError::Scheme(url.to_owned())),
        };
        let authority = uri.authority().ok_or_else(|| InquiryError::Host(url.to_owned()))?;
        // Clients keep the user information before an @ to themselves, and never send it in the host.
        let sent = authority.as_str().rsplit('@').next().unwrap_or_default();
        let written = sent.strip_prefix(authority.host()).and_then(|rest| rest.strip_prefix(':'));
        if written.is_some_and(|port| !port.is_empty() && authority.port_u16().is_none()) {
            return Err(InquiryError::Port(url.to_owned()));
        }
        let port = match (options.port, authority.port_u16()) {
            (Some(port), _) => ArrivalPort::Known(port),
            (None, Some(port)) => ArrivalPort::Likely(port),
            (None, None) => ArrivalPort::Likely(if tls { 443 } else { 80 }),
        };
        // Clients send a header `Host` in the place of the host of the URL.
        let (hosts, headers): (Vec<_>, Vec<_>) =
            options.headers.into_iter().partition(|(name, _)| name.eq_ignore_ascii_case("host"));
        let host = hosts.into_iter().next().map_or_else(|| sent.to_owned(), |(_, host)| host);
        let request = Request {
            method: method.to_owned(),
            host: Some(host),
            path: uri.path().to_owned(),
            query: uri.query().map(str::to_owned),
            headers,
            http2: options.http2,
            tls,
            server_name: options.server_name,
            ..Request::default()
        };
        Ok(Self { request, port, owner })
    }

    /// One explanation per data plane that has the request's port and a listener for its host; if none has a listener,
    /// per data plane that has the port; if none has the port, likewise of all data planes. Gateways whose port is one
    /// for streams explain the connection.
    ///
    /// # Errors
    ///
    /// [`InquiryAnswerError`] if the Gateway or IngressClass of the inquiry is not served, or if documents cannot be put
    /// into a router.
    pub(crate) fn answer(
        &self,
        planes: &[Plane<'_>],
        stream_ports: &[StreamPorts<'_>],
        related: &RelatedObjects,
    ) -> Result<Vec<Explanation>, InquiryAnswerError> {
        Ok(self.answer_at_most(usize::MAX, planes, stream_ports, related)?.0)
    }

    /// As [`answer`](Self::answer), for at most so many data planes. The second value is the number of the others.
    ///
    /// # Errors
    ///
    /// As [`answer`](Self::answer).
    pub(crate) fn answer_at_most(
        &self,
        most: usize,
        planes: &[Plane<'_>],
        stream_ports: &[StreamPorts<'_>],
        related: &RelatedObjects,
    ) -> Result<(Vec<Explanation>, usize), InquiryAnswerError> {
        let is_asked = |owner: &ObjectKey| self.owner.as_ref().is_none_or(|asked| asked == owner);
        let planes: Vec<&Plane<'_>> = planes.iter().filter(|plane| is_asked(&plane.key.owner())).collect();
        let mut connections = self.connections(stream_ports);
        if let (Some(owner), true) = (&self.owner, planes.is_empty() && connections.is_empty()) {
            return Err(InquiryAnswerError::NotServed(owner.clone()));
        }
        let on_port =
            |port: u16| planes.iter().copied().filter(|plane| has_port(plane, port)).collect::<Vec<_>>();
        let (port, with_port) = match self.port {
            ArrivalPort::Known(port) => (Some(port), on_port(port)),
            ArrivalPort::Likely(port) => {
                let with_port = on_port(port);
                ((!with_port.is_empty()).then_some(port), with_port)
            }
            ArrivalPort::Unknown => (None, Vec::new()),
        };
        let near = match (with_port.is_empty(), connections.is_empty()) {
            (true, true) => planes,
            (true, false) => Vec::new(),
            (false, _) => with_port,
        };
        let serves = |plane: &&Plane<'_>| !serving_listeners(plane, &self.request, port).is_empty();
        let mut chosen: Vec<&Plane<'_>> = near.iter().copied().filter(serves).collect();
        if chosen.is_empty() {
            chosen = near;
        }
        let more = (chosen.len() + connections.len()).saturating_sub(most);
        chosen.truncate(most);
        connections.truncate(most - chosen.len());
        let explanations = chosen.into_iter().map(|plane| {
            let mut explanation = explain(plane, &self.request, port)?;
            explanation.name_objects(|document| related.of_document(plane.provenance, document));
            Ok(explanation)
        });
        let mut explanations: Vec<Explanation> = explanations.collect::<Result<_, ExplainError>>()?;
        explanations.extend(connections);
        Ok((explanations, more))
    }

    /// The explanations of Gateways for a connection to a stream port.
    fn connections(&self, stream_ports: &[StreamPorts<'_>]) -> Vec<Explanation> {
        let (ArrivalPort::Known(port) | ArrivalPort::Likely(port)) = self.port else { return Vec::new() };
        let asked = stream_ports
            .iter()
            .filter(|ports| self.owner.as_ref().is_none_or(|asked| asked == ports.gateway));
        asked.filter_map(|ports| explain_connection(ports, &self.request, port)).collect()
    }
}
