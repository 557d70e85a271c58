//! The originals: models of the documented behaviour of ingress-nginx, and of APISIX with its ingress controller.
//!
//! A model reads the objects of the input and answers requests. It shares no code with the conversion and the translation, so
//! each can find the problems of the other. An answer that is not modelled is unknown: a model does not guess.

mod apisix;
mod network;
mod nginx;
mod objects;
#[cfg(test)]
mod tests;
mod uri;

use serde_json::Value;

use self::apisix::Apisix;
use self::nginx::Nginx;
use super::answer::{Answer, Request};

/// The controllers of the input.
pub(super) struct Original {
    nginx: Option<Nginx>,
    apisix: Option<Apisix>,
}

/// An answer with the object behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) answer: Answer,
    /// The object and the field, if one decides.
    pub(super) by: Option<String>,
    /// Whether no path of an object takes the request, so that the annotations of the oldest Ingress of the host hold.
    pub(super) is_fallback: bool,
}

impl Told {
    fn unknown(why: &str) -> Self {
        Self { answer: Answer::Unknown(why.to_owned()), by: None, is_fallback: false }
    }
}

impl Original {
    /// The models of the controllers that serve objects of the input. `are_ready` takes every Service for one with endpoints.
    pub(super) fn read(objects: &[Value], are_ready: bool) -> Self {
        Self { nginx: Nginx::read(objects, are_ready), apisix: Apisix::read(objects, are_ready) }
    }

    /// The answer to a request. Two controllers have different addresses, and a request arrives at one of them.
    pub(super) fn answer(&self, request: &Request) -> Told {
        match (&self.nginx, &self.apisix) {
            (Some(nginx), None) => nginx.answer(request),
            (None, Some(apisix)) => apisix.answer(request),
            (None, None) => Told::unknown("the input has no object of ingress-nginx or APISIX"),
            (Some(nginx), Some(apisix)) => {
                let answers = [nginx.answer(request), apisix.answer(request)];
                let serve = |told: &Told| !matches!(told.answer, Answer::Status(404) | Answer::Closed);
                match answers.each_ref().map(serve) {
                    [true, true] => Told::unknown("both ingress-nginx and APISIX serve the request"),
                    [false, true] => {
                        let [_, of_apisix] = answers;
                        of_apisix
                    }
                    [_, false] => {
                        let [of_nginx, _] = answers;
                        of_nginx
                    }
                }
            }
        }
    }
}

/// The host of a request, without port and a dot at its end.
fn host_name(host: &str) -> String {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}
