use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderValue, LOCATION};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{Method, Response, StatusCode, Version};
use http_body_util::Full;
use pingsix_translate::responder::{RedirectInstruction, host_without_port, parse_status_host};

/// The answer of the responder to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The status whose name was asked for.
    Status(StatusCode),
    /// The redirect that the route instructed.
    Redirect {
        /// One of 301, 302, 303, 307 and 308.
        status: StatusCode,
        /// An absolute URL.
        location: HeaderValue,
    },
    /// 400: the request has no usable Host, or several.
    Host,
    /// 500: there is an instruction, but it cannot be read or does not fit the request.
    ///
    /// Not a 4xx, because a route's header replaces those of the client: the error is on the side of the gateway,
    /// most likely a translator of another version.
    Instruction,
    /// 421: the request has neither a name of the responder nor an instruction.
    Misdirected,
}

/// The answer to a request, from its head alone.
///
/// gRPC requests get plain HTTP statuses too: a gRPC client reads 503 as `UNAVAILABLE` and 404 as `UNIMPLEMENTED`,
/// which is what Gateway API asks for.
pub(super) fn answer(head: &Parts) -> Answer {
    let Some(host) = host(head) else { return Answer::Host };
    // The Host first: on a status upstream it is PingSIX's, and the instruction header would be the client's.
    if let Some(status) = parse_status_host(host) {
        return Answer::Status(status);
    }
    match RedirectInstruction::from_headers(&head.headers) {
        Ok(Some(instruction)) => redirect(&instruction, host, head),
        Ok(None) => Answer::Misdirected,
        Err(_) => Answer::Instruction,
    }
}

fn redirect(instruction: &RedirectInstruction, host: &str, head: &Parts) -> Answer {
    let root = PathAndQuery::from_static("/");
    let target = head.uri.path_and_query().unwrap_or(&root);
    instruction.location(host, target).ok().and_then(|location| HeaderValue::try_from(location).ok()).map_or(
        Answer::Instruction,
        |location| Answer::Redirect { status: instruction.status.code(), location },
    )
}

/// The one host a request is for, as it was sent.
fn host(head: &Parts) -> Option<&str> {
    let mut values = head.headers.get_all(HOST).iter();
    let header = match values.next() {
        Some(value) => Some(value.to_str().ok()?),
        None => None,
    };
    if values.next().is_some() {
        return None;
    }
    // In HTTP/2 the authority is the host. In HTTP/1 a target in absolute form would have one too and, by the letter,
    // precedence; but PingSIX rewrites the Host and not the target, so only the Host is its word.
    let authority = match head.version {
        Version::HTTP_2 => head.uri.authority().map(http::uri::Authority::as_str),
        _ => None,
    };
    let host = match (authority, header) {
        (Some(authority), Some(header)) => authority.eq_ignore_ascii_case(header).then_some(authority),
        (Some(host), None) | (None, Some(host)) => Some(host),
        (None, None) => None,
    }?;
    host_without_port(host).map(|_| host)
}

impl Answer {
    /// The status that is sent.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Status(status) | Self::Redirect { status, .. } => *status,
            Self::Host => StatusCode::BAD_REQUEST,
            Self::Instruction => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Misdirected => StatusCode::MISDIRECTED_REQUEST,
        }
    }

    /// The response to a request with this method: one line of text, where a body is allowed.
    pub(super) fn to_response(&self, method: &Method) -> Response<Full<Bytes>> {
        let status = self.status();
        let mut response = Response::new(Full::default());
        *response.status_mut() = status;
        if let Self::Redirect { location, .. } = self {
            response.headers_mut().insert(LOCATION, location.clone());
        }
        match status {
            // No content, and not even a length.
            StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED => return response,
            StatusCode::RESET_CONTENT => {
                response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
                return response;
            }
            _ => {}
        }
        let line = self.line();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        // Stated here because the length of the body of a HEAD response would be 0.
        headers.insert(CONTENT_LENGTH, HeaderValue::from(line.len()));
        if method != Method::HEAD {
            *response.body_mut() = Full::new(Bytes::from(line));
        }
        response
    }

    fn line(&self) -> String {
        let status = self.status();
        match self {
            Self::Host => "400 Bad Request: the request has no usable Host\n".to_owned(),
            Self::Instruction => {
                "500 Internal Server Error: the redirect of this route cannot be understood\n".to_owned()
            }
            Self::Misdirected => {
                "421 Misdirected Request: the Host is not a name of this server\n".to_owned()
            }
            Self::Status(_) | Self::Redirect { .. } => match status.canonical_reason() {
                Some(reason) => format!("{} {reason}\n", status.as_u16()),
                None => format!("{}\n", status.as_u16()),
            },
        }
    }
}

#[cfg(test)]
mod tests;
