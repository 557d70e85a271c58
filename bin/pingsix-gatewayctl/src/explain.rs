//! `explain`: what PingSIX does with a request.

use std::path::{Path, PathBuf};

use anyhow::bail;
use pingsix_gateway_api::Explanation;
use pingsix_gateway_api::explain::{Inquiry, InquiryError, RequestOptions, in_words};
use pingsix_translate::{Kind, ObjectKey};

use crate::arguments::{DefaultInput, ExplainArguments, Input, ReportOutput};
use crate::finding::{Level, print_grouped};
use crate::missing_class::print_classes;
use crate::plane::Translated;
use crate::{Exit, Streams, input};

pub(crate) fn run(
    arguments: &ExplainArguments,
    default: DefaultInput,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let (paths, method, url) = match arguments.arguments.as_slice() {
        [.., url] if is_url(url) && before_url(&arguments.arguments).is_none_or(is_no_method) => {
            bail!("explain needs a METHOD before the URL, for example GET {url}")
        }
        [paths @ .., method, url] if !is_common_method(url) => (paths, method, url),
        // The URL was forgotten: a method is no host.
        _ => bail!(
            "explain needs METHOD and URL after the manifests or --cluster: GET http://shop.example.com/"
        ),
    };
    let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
    let input = Input::choose(&paths, &arguments.cluster, default)?;
    let inquiry = inquiry(method, url, arguments)?;
    let mut manifests = input::load(&input, &arguments.translation.endpoints, streams.err)?;
    let options = arguments.translation.options();
    if arguments.assumptions.managed {
        manifests.assume_parameters(&input, &options, true);
    }
    let translated = Translated::new(&manifests, &options);
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
                print_classes(&translated.output, &manifests.objects, &options, streams.out)?;
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

/// Whether a text can only be a URL.
fn is_url(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

/// The argument before the last one.
fn before_url(arguments: &[String]) -> Option<&str> {
    let [.., before, _] = arguments else { return None };
    Some(before)
}

/// Whether a text is a path, or is not in capitals as methods are.
fn is_no_method(text: &str) -> bool {
    text == "-" || text.bytes().any(|byte| byte.is_ascii_lowercase()) || Path::new(text).exists()
}

/// Whether a text is the name of a method of HTTP. Any word may be a method, so it takes a list.
fn is_common_method(text: &str) -> bool {
    matches!(text, "CONNECT" | "DELETE" | "GET" | "HEAD" | "OPTIONS" | "PATCH" | "POST" | "PUT" | "TRACE")
}

fn inquiry(method: &str, url: &str, arguments: &ExplainArguments) -> Result<Inquiry, InquiryError> {
    let options = RequestOptions {
        headers: arguments.headers.clone(),
        port: arguments.port,
        http2: arguments.http2,
        server_name: arguments.server_name.clone(),
    };
    let gateway = arguments.gateway.clone().map(|name| ObjectKey { kind: Kind::Gateway, name });
    let class = arguments.ingress_class.as_ref().map(|name| ObjectKey::new(Kind::IngressClass, "", &**name));
    Inquiry::new(method, url, options, gateway.or(class))
}
