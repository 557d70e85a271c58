//! `explain`: what PingSIX does with a request.

use std::path::PathBuf;

use anyhow::{Context as _, anyhow, bail};
use http::Uri;
use pingsix_gateway_api::Explanation;
use pingsix_gateway_api::pipeline::{ArrivalPort, Inquiry};
use pingsix_translate::pingsix::Request;
use pingsix_translate::{Kind, ObjectKey};

use crate::arguments::{DefaultInput, ExplainArguments, Input, ReportOutput};
use crate::finding::{Level, print_grouped};
use crate::plane::Translated;
use crate::{Exit, Streams, manifest};

pub(crate) fn run(
    arguments: &ExplainArguments,
    default: DefaultInput,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let [paths @ .., method, url] = arguments.arguments.as_slice() else {
        bail!("expected manifests or --cluster, then a method and a URL");
    };
    let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
    let input = Input::choose(&paths, &arguments.cluster, default)?;
    let inquiry = inquiry(method, url, arguments)?;
    let manifests = manifest::load_input(&input, &arguments.translation.endpoints, streams.err)?;
    let translated = Translated::new(&manifests, &arguments.translation.options());
    let explanations = translated.output.explain(&inquiry)?;
    match arguments.output {
        ReportOutput::Text => {
            if explanations.is_empty() {
                // The reason for a missing listener is relevant to the request.
                let findings: Vec<_> = translated
                    .findings
                    .into_iter()
                    .filter(|finding| matches!(finding.severity, Level::Error | Level::Warning))
                    .collect();
                print_grouped(&findings, streams.out)?;
            }
            streams.out.write_all(in_words(&explanations).as_bytes())?;
        }
        ReportOutput::Json => {
            writeln!(streams.out, "{}", serde_json::to_string_pretty(&explanations)?)?;
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
    // Clients keep the user information before an @ to themselves, and never send it in the host.
    let sent = authority.as_str().rsplit('@').next().unwrap_or_default();
    let written = sent.strip_prefix(authority.host()).and_then(|rest| rest.strip_prefix(':'));
    if written.is_some_and(|port| !port.is_empty() && authority.port_u16().is_none()) {
        bail!("the port of \"{url}\" is not between 0 and 65535");
    }
    let port = match (arguments.port, authority.port_u16()) {
        (Some(port), _) => ArrivalPort::Known(port),
        (None, Some(port)) => ArrivalPort::Likely(port),
        (None, None) => ArrivalPort::Likely(if tls { 443 } else { 80 }),
    };
    // A header given as such is what the client sends, whatever the URL says.
    let is_host = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("host");
    let host =
        arguments.headers.iter().find(is_host).map_or_else(|| sent.to_owned(), |(_, host)| host.clone());
    let headers = arguments.headers.iter().filter(|header| !is_host(header)).cloned().collect();
    let request = Request {
        method: method.to_owned(),
        host: Some(host),
        path: uri.path().to_owned(),
        query: uri.query().map(str::to_owned),
        headers,
        http2: arguments.http2,
        tls,
        server_name: arguments.server_name.clone(),
        ..Request::default()
    };
    let gateway = arguments.gateway.clone().map(|name| ObjectKey { kind: Kind::Gateway, name });
    let class = arguments.ingress_class.as_ref().map(|name| ObjectKey::new(Kind::IngressClass, "", &**name));
    Ok(Inquiry { request, port, owner: gateway.or(class) })
}
