//! Explanations of requests.

use pingsix_translate::pingsix::Request;
use pingsix_translate::{DataPlaneKey, ObjectKey};

use super::{Output, ServedPlane};
use crate::explain::{ExplainError, Explanation, explain, explain_connection, has_port, serving_listeners};

/// A request to explain.
#[derive(Clone, Debug)]
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

/// The knowledge of the port at which a request arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalPort {
    /// The port is this one.
    Known(u16),
    /// The port is this one if any listener has it: the URL names it, but a port may be mapped.
    Likely(u16),
    /// Any port.
    Unknown,
}

/// An inquiry without an answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InquiryError {
    /// The Gateway or IngressClass of the inquiry is not served.
    #[error("{0} is not served")]
    NotServed(ObjectKey),
    /// Documents cannot be put into a router.
    #[error(transparent)]
    Explain(#[from] ExplainError),
}

impl Output {
    /// Explains a request: one explanation for each data plane that has the port of the request and a listener for its host.
    /// If no data plane has a listener, all data planes with the port are explained. If none has the port, all data planes
    /// count as having it. Gateways with a stream port of this number explain the connection.
    ///
    /// # Errors
    ///
    /// [`InquiryError`] if the Gateway or IngressClass of the inquiry is not served, or documents cannot be put into a router.
    pub fn explain(&self, inquiry: &Inquiry) -> Result<Vec<Explanation>, InquiryError> {
        let is_asked = |owner: &ObjectKey| inquiry.owner.as_ref().is_none_or(|asked| asked == owner);
        let planes: Vec<(&DataPlaneKey, &ServedPlane)> =
            self.planes.iter().filter(|(key, _)| is_asked(&key.owner())).collect();
        let connections = self.connections(inquiry);
        if let (Some(owner), true) = (&inquiry.owner, planes.is_empty() && connections.is_empty()) {
            return Err(InquiryError::NotServed(owner.clone()));
        }
        let on_port = |port: u16| {
            let has = |(key, plane): &&(&DataPlaneKey, &ServedPlane)| has_port(&plane.to_explain(key), port);
            planes.iter().filter(has).copied().collect::<Vec<_>>()
        };
        let (port, with_port) = match inquiry.port {
            ArrivalPort::Known(port) => (Some(port), on_port(port)),
            ArrivalPort::Likely(port) => {
                let with_port = on_port(port);
                ((!with_port.is_empty()).then_some(port), with_port)
            }
            ArrivalPort::Unknown => (None, Vec::new()),
        };
        let near = match (with_port.is_empty(), connections.is_empty()) {
            (true, true) => planes,
            (true, false) => return Ok(connections),
            (false, _) => with_port,
        };
        let serves = |(key, plane): &&(&DataPlaneKey, &ServedPlane)| {
            !serving_listeners(&plane.to_explain(key), &inquiry.request, port).is_empty()
        };
        let mut chosen: Vec<_> = near.iter().filter(serves).collect();
        if chosen.is_empty() {
            chosen = near.iter().collect();
        }
        let explanations = chosen.into_iter().map(|(key, plane)| {
            let mut explanation = explain(&plane.to_explain(key), &inquiry.request, port)?;
            explanation.name_objects(|document| self.related(key, document));
            Ok::<_, ExplainError>(explanation)
        });
        let mut explanations: Vec<Explanation> = explanations.collect::<Result<_, _>>()?;
        explanations.extend(connections);
        Ok(explanations)
    }

    /// The explanations of Gateways for a connection to a stream port.
    fn connections(&self, inquiry: &Inquiry) -> Vec<Explanation> {
        let (ArrivalPort::Known(port) | ArrivalPort::Likely(port)) = inquiry.port else { return Vec::new() };
        let all = self.stream_ports();
        let asked = all.filter(|ports| inquiry.owner.as_ref().is_none_or(|asked| asked == ports.gateway));
        asked.filter_map(|ports| explain_connection(&ports, &inquiry.request, port)).collect()
    }
}
