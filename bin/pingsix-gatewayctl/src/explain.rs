//! `explain`: what PingSIX does with a request.

use std::path::PathBuf;

use anyhow::{Context as _, anyhow, bail};
use http::Uri;
use pingsix_gateway_api::explain::{Explanation, explain, listeners, serving_listeners};
use pingsix_translate::pingsix::Request;
use pingsix_translate::verdict::ListenerVerdict;
use pingsix_translate::{DataPlaneKey, Kind, ObjectKey};

use crate::arguments::{ExplainArguments, ReportOutput};
use crate::finding::{Level, print_grouped};
use crate::plane::{ServedPlane, Translated};
use crate::{Exit, Streams, manifest};

pub(crate) fn run(arguments: &ExplainArguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let [paths @ .., method, url] = arguments.arguments.as_slice() else {
        bail!("expected manifests, a method and a URL");
    };
    if paths.is_empty() {
        bail!("expected manifests before the method and the URL");
    }
    let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
    let inquiry = inquiry(method, url, arguments)?;
    let manifests = manifest::load(&paths, &arguments.translation.endpoints)?;
    let translated = Translated::new(&manifests, &arguments.translation.options());
    let explanations = inquiry.answer(&translated)?;
    let notes = inquiry.stream_notes(&translated);
    match arguments.output {
        ReportOutput::Text => {
            if explanations.is_empty() {
                // Whoever asks about a request wants to know why nobody is there to serve it.
                let errors: Vec<_> = translated
                    .findings
                    .into_iter()
                    .filter(|finding| finding.severity == Level::Error)
                    .collect();
                print_grouped(&errors, streams.out)?;
            }
            streams.out.write_all(in_words(&explanations).as_bytes())?;
            streams.out.write_all(notes.as_bytes())?;
        }
        ReportOutput::Json => {
            writeln!(streams.out, "{}", serde_json::to_string_pretty(&explanations)?)?;
            streams.err.write_all(notes.as_bytes())?;
        }
    }
    let answered = explanations.iter().any(Explanation::is_answered);
    Ok(if answered { Exit::Success } else { Exit::Problems })
}

/// Explanations for people.
pub(crate) fn in_words(explanations: &[Explanation]) -> String {
    if explanations.is_empty() {
        return "No Gateway or IngressClass is served.\n".to_owned();
    }
    explanations.iter().map(Explanation::to_string).collect::<Vec<_>>().join("\n")
}

/// A request to explain.
#[derive(Clone, Debug)]
pub(crate) struct Inquiry {
    pub(crate) request: Request,
    /// The port it arrives at.
    pub(crate) port: Port,
    /// The Gateway or IngressClass, when it is known.
    pub(crate) owner: Option<ObjectKey>,
}

/// What is known about the port of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Port {
    /// It is this one.
    Known(u16),
    /// It is this one, if any listener has it: the URL says so, but a port may be mapped.
    Likely(u16),
    Unknown,
}

fn inquiry(method: &str, url: &str, arguments: &ExplainArguments) -> anyhow::Result<Inquiry> {
    method.parse::<http::Method>().map_err(|_| anyhow!("\"{method}\" is not a method"))?;
    let text = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    let uri: Uri = text.parse().with_context(|| format!("\"{url}\" is not a URL"))?;
    let tls = match uri.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        Some(_) | None => bail!("\"{url}\" is neither an http nor an https URL"),
    };
    let authority = uri.authority().ok_or_else(|| anyhow!("\"{url}\" has no host"))?;
    let port = match (arguments.port, authority.port_u16()) {
        (Some(port), _) => Port::Known(port),
        (None, Some(port)) => Port::Likely(port),
        (None, None) => Port::Likely(if tls { 443 } else { 80 }),
    };
    // A header given as such is what the client sends, whatever the URL says.
    let is_host = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("host");
    let host = arguments
        .headers
        .iter()
        .find(is_host)
        .map_or_else(|| authority.to_string(), |(_, host)| host.clone());
    let headers = arguments.headers.iter().filter(|header| !is_host(header)).cloned().collect();
    let request = Request {
        method: method.to_owned(),
        host: Some(host),
        path: uri.path().to_owned(),
        query: uri.query().map(str::to_owned),
        headers,
        http2: arguments.http2,
        tls,
        ..Request::default()
    };
    let gateway = arguments.gateway.clone().map(|name| ObjectKey { kind: Kind::Gateway, name });
    let class = arguments.ingress_class.as_ref().map(|name| ObjectKey::new(Kind::IngressClass, "", &**name));
    Ok(Inquiry { request, port, owner: gateway.or(class) })
}

impl Inquiry {
    /// What to know when the port is one of stream documents: nothing there is a request.
    pub(crate) fn stream_notes(&self, translated: &Translated) -> String {
        let (Port::Known(port) | Port::Likely(port)) = self.port else { return String::new() };
        let mut notes: Vec<String> = Vec::new();
        for verdicts in &translated.gateways {
            let Some(gateway) = &verdicts.gateway else { continue };
            if self.owner.as_ref().is_some_and(|asked| *asked != *gateway.key) {
                continue;
            }
            let on_port = || verdicts.listeners().filter(|listener| listener.port == i32::from(port));
            let of_streams = |listener: &&ListenerVerdict| {
                matches!(listener.data_plane, Some(DataPlaneKey::Stream { .. }))
            };
            // UDP shares the numbers of HTTP.
            if on_port().any(|listener| matches!(listener.data_plane, Some(DataPlaneKey::Gateway { .. }))) {
                continue;
            }
            notes.extend(on_port().filter(of_streams).map(|listener| {
                format!(
                    "note: port {port} of {} is that of listener {} ({}). Stream documents decide there, by port and \
                     server name; they know nothing of requests, so there is nothing to explain. \
                     `translate --stream` prints them.\n",
                    gateway.key, listener.name, listener.protocol
                )
            }));
        }
        notes.concat()
    }

    /// One explanation per data plane with a listener for the request; if none has one, per data plane at all.
    ///
    /// # Errors
    ///
    /// When the Gateway or IngressClass asked for is not served, or documents cannot be put into a router.
    pub(crate) fn answer(&self, translated: &Translated) -> anyhow::Result<Vec<Explanation>> {
        let planes: Vec<(&DataPlaneKey, &ServedPlane)> = translated
            .planes
            .iter()
            .filter(|(key, _)| self.owner.as_ref().is_none_or(|owner| key.owner() == *owner))
            .collect();
        if let (Some(owner), true) = (&self.owner, planes.is_empty()) {
            bail!("{owner} is not served");
        }
        let has = |port: u16| {
            let all = planes.iter().flat_map(|(key, plane)| listeners(&plane.to_explain(key)));
            all.into_iter().any(|listener| listener.port == i32::from(port))
        };
        let port = match self.port {
            Port::Known(port) => Some(port),
            Port::Likely(port) => has(port).then_some(port),
            Port::Unknown => None,
        };
        let serves = |(key, plane): &&(&DataPlaneKey, &ServedPlane)| {
            !serving_listeners(&plane.to_explain(key), &self.request, port).is_empty()
        };
        let mut chosen: Vec<_> = planes.iter().filter(serves).collect();
        if chosen.is_empty() {
            chosen = planes.iter().collect();
        }
        let explanations =
            chosen.into_iter().map(|(key, plane)| explain(&plane.to_explain(key), &self.request, port));
        Ok(explanations.collect::<Result<_, _>>()?)
    }
}
