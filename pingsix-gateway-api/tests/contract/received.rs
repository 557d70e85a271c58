//! The requests that backends received and the answers that clients got, in the words of the oracle.

use std::collections::BTreeMap;

use pingsix_translate::pingsix::Request;
use serde::Deserialize;

use crate::client::Reply;
use crate::effect::{Effect, Headers, collect, permission, resolve, take_script};
use crate::oracle::Target;

/// The head of a request as an echo writes it into its answer.
#[derive(Debug, Deserialize)]
struct ReceivedRequest {
    target: String,
    host: Option<String>,
    headers: Headers,
}

/// The error of a request that reached a backend; `None` without one.
pub(crate) fn difference(expected: &Effect, request: &Request, reply: &Reply) -> Option<String> {
    let seen: ReceivedRequest = serde_json::from_slice(&reply.body).unwrap();
    let mut received = collect(&reply.headers);
    let script = take_script(&mut received, request.first_header("origin"));
    // Headers without a role here vary: of connections, of dates, and of the backend's report.
    let known = |headers: &Headers, others: &Headers| -> Headers {
        let is_known = |name: &str| others.contains_key(name) || is_of_tables(name);
        headers.iter().filter(|(name, _)| is_known(name)).map(|(n, v)| (n.clone(), v.clone())).collect()
    };
    let mut differences = BTreeMap::new();
    let mut compare = |what: &'static str, got: String, wanted: String| {
        if got != wanted {
            differences.insert(what, format!("{got}, not {wanted}"));
        }
    };
    compare("target", seen.target, expected.target.clone());
    if request.host.is_some() {
        compare("host", format!("{:?}", seen.host), format!("{:?}", expected.host));
    }
    let sent = known(&seen.headers, &expected.request);
    compare("request headers", format!("{sent:?}"), format!("{:?}", expected.request));
    let got = known(&received, &expected.response);
    compare("response headers", format!("{got:?}"), format!("{:?}", expected.response));
    compare("for scripts", format!("{script:?}"), format!("{:?}", expected.script));
    (!differences.is_empty()).then(|| format!("{differences:#?}"))
}

/// Headers that the tables are about.
fn is_of_tables(name: &str) -> bool {
    ["x-env", "x-new", "x-drop", "x-keep", "version", "origin"].contains(&name)
}

/// Whether a response is the oracle's, without a backend.
pub(crate) fn is_answer(expected: &Target, request: &Request, reply: &Reply) -> bool {
    match expected {
        Target::Service { .. } => false,
        Target::Status(status) => reply.status == *status,
        // The client did not say which host it came to.
        Target::Redirect { location: None, .. } => true,
        Target::Redirect { status, location: Some(wanted) } => {
            let host = request.host.as_deref().unwrap_or_default();
            let location = reply.header("location").map(|location| resolve(location, request.tls, host));
            reply.status == *status && location.as_ref() == Some(wanted)
        }
        Target::Preflight(expected) => {
            let header = |name| request.first_header(name).unwrap_or_default();
            let asked = request.first_header("access-control-request-headers");
            let method = header("access-control-request-method");
            let got = permission(&collect(&reply.headers), header("origin"), method, asked);
            got == *expected && reply.status == if expected.is_some() { 204 } else { 403 }
        }
    }
}
