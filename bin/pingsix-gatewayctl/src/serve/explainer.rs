//! Answers any HTTP request with what PingSIX would do with that very request.
//!
//! The `Host` of a request names the explainer itself, and hosts that a web page could use for DNS rebinding get no answer
//! ([`pingsix_sink::hosts`]). So the host that is explained has a header of its own.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{HeaderValue, Response, StatusCode, Version};
use http_body_util::Full;
use pingsix_gateway_api::Explanation;
use pingsix_gateway_api::explain::{
    Answer, ArrivalPort, Inquiry, InquiryAnswerError, NotFoundCause, in_words,
};
use pingsix_sink::hosts::{ASK_LOCALLY, is_local};
use pingsix_translate::pingsix::Request;

use crate::plane::Translated;

/// Chooses the port a request is taken to arrive at.
const PORT_HEADER: &str = "x-explain-port";

/// The host that a request is taken to have, in the place of its own.
const HOST_HEADER: &str = "x-explain-host";

/// The answer to a request.
pub(super) fn respond<B>(translated: &Translated, request: &http::Request<B>) -> Response<Full<Bytes>> {
    if !is_local(request) {
        let message = format!("{}; name the host to explain in {HOST_HEADER}\n", ASK_LOCALLY.trim_end());
        return response(StatusCode::MISDIRECTED_REQUEST, "text/plain; charset=utf-8", message);
    }
    let json = request
        .headers()
        .get(ACCEPT)
        .is_some_and(|accept| accept.to_str().is_ok_and(|accept| accept.contains("application/json")));
    let explanations = match inquiry(request).and_then(|inquiry| answer(&inquiry, translated)) {
        Ok(explanations) => explanations,
        Err(message) => {
            return response(StatusCode::BAD_REQUEST, "text/plain; charset=utf-8", format!("{message}\n"));
        }
    };
    if json {
        match serde_json::to_string_pretty(&explanations) {
            Ok(text) => response(StatusCode::OK, "application/json", text),
            Err(error) => response(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", error.to_string()),
        }
    } else {
        response(StatusCode::OK, "text/plain; charset=utf-8", in_words(&explanations))
    }
}

fn response(status: StatusCode, content_type: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn inquiry<B>(request: &http::Request<B>) -> Result<Inquiry, String> {
    let http2 = request.version() == Version::HTTP_2;
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let authority = request.uri().authority().map(ToString::to_string);
    let host = request.headers().get(HOST).map(text);
    let own = if http2 { authority.or(host) } else { host.or(authority) };
    let host = request.headers().get(HOST_HEADER).map(text).or(own);
    let port = if let Some(port) = request.headers().get(PORT_HEADER) {
        let port = text(port);
        ArrivalPort::Known(
            port.trim().parse().map_err(|_| format!("{PORT_HEADER}: \"{port}\" is not a port"))?,
        )
    } else {
        let authority = host.as_deref().and_then(|host| host.parse::<http::uri::Authority>().ok());
        authority.and_then(|authority| authority.port_u16()).map_or(ArrivalPort::Unknown, ArrivalPort::Likely)
    };
    let headers = request
        .headers()
        .iter()
        .filter(|(name, _)| *name != HOST && *name != PORT_HEADER && *name != HOST_HEADER)
        .map(|(name, value)| (name.to_string(), text(value)))
        .collect();
    let request = Request {
        method: request.method().to_string(),
        host,
        path: request.uri().path().to_owned(),
        query: request.uri().query().map(str::to_owned),
        headers,
        http2,
        ..Request::default()
    };
    Ok(Inquiry { request, port, owner: None })
}

/// An error with its causes.
fn in_full(error: InquiryAnswerError) -> String {
    format!("{:#}", anyhow::Error::from(error))
}

/// The explanation over plaintext, or over TLS where only that is served.
fn answer(inquiry: &Inquiry, translated: &Translated) -> Result<Vec<Explanation>, String> {
    let unserved = |explanations: &[Explanation]| {
        explanations.iter().all(|explanation| {
            matches!(
                explanation.answer,
                Answer::NotFound { cause: NotFoundCause::Listener, .. } | Answer::Closed { .. }
            )
        })
    };
    let plaintext = translated.output.explain(inquiry).map_err(in_full)?;
    if unserved(&plaintext) {
        let mut over_tls = inquiry.clone();
        over_tls.request.tls = true;
        let encrypted = translated.output.explain(&over_tls).map_err(in_full)?;
        if !unserved(&encrypted) {
            return Ok(encrypted);
        }
    }
    Ok(plaintext)
}
