//! The rules of values, beyond their types. Messages continue a line that begins with the key.

#![expect(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "garde hands over references to fields and to a context, of which there is none"
)]

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use garde::Error;
use ipnet::IpNet;
use pingsix_gateway_api::pki::{Lifetimes, LifetimesError};
use pingsix_sink::Scope;
use pingsix_translate::is_dns_label;
use tracing_subscriber::EnvFilter;

use crate::values::{CollectorUrl, Endpoint, FeedClient, ServiceName, Span};

type Rule = garde::Result;

fn check(holds: bool, message: &str) -> Rule {
    if holds { Ok(()) } else { Err(Error::new(message)) }
}

fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_dns_label(text)
}

fn is_host_name(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label)
}

/// As `spec.controllerName` of a GatewayClass has to be.
pub(crate) fn controller_name(name: &str, (): &()) -> Rule {
    let valid = name.split_once('/').is_some_and(|(domain, path)| {
        let allowed = |letter: u8| letter.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&letter);
        is_host_name(domain) && !path.is_empty() && path.bytes().all(allowed) && name.len() <= 253
    });
    check(valid, "is not a domain, a slash and a path, such as example.com/gateway-controller")
}

pub(crate) fn root(root: &str, (): &()) -> Rule {
    Scope::new(root).map(|_| ()).map_err(Error::new)
}

pub(crate) fn can_be_connected_to(endpoint: &Endpoint, (): &()) -> Rule {
    let usable =
        endpoint.address().is_none_or(|address| !address.ip().is_unspecified() && address.port() != 0);
    check(usable, "is no address that PingSIX can connect to")
}

pub(crate) fn label(name: &str, (): &()) -> Rule {
    check(is_label(name), "is not a name as Kubernetes has them: lower case letters, digits and dashes")
}

pub(crate) fn network(network: &str, (): &()) -> Rule {
    check(network.parse::<IpNet>().is_ok(), "is no network, such as 192.0.2.0/24")
}

pub(crate) fn some_text(text: &str, (): &()) -> Rule {
    check(!text.is_empty(), "is empty")
}

pub(crate) fn image(image: &str, (): &()) -> Rule {
    let is_plain =
        !image.is_empty() && image.len() <= 1024 && image.bytes().all(|byte| byte.is_ascii_graphic());
    check(is_plain, "is not the name of an image, such as pingsix:0.1.0")
}

pub(crate) fn selector(selector: &Option<String>, (): &()) -> Rule {
    let Some(selector) = selector else { return Ok(()) };
    let printable = !selector.trim().is_empty() && !selector.chars().any(char::is_control);
    check(printable, "is not a label selector, such as team=shop or team in (shop,web)")
}

pub(crate) fn reachable_name(address: &str, (): &()) -> Rule {
    match address.parse::<IpAddr>() {
        Ok(address) => check(!address.is_unspecified(), "is no address that clients can connect to"),
        Err(_) => check(is_host_name(address), "is neither an IP address nor a host name"),
    }
}

pub(crate) fn instead_of(
    other: &'static str,
    is_given: bool,
) -> impl FnOnce(&Option<ServiceName>, &()) -> Rule {
    move |service, ()| {
        check(service.is_none() || !is_given, &format!("excludes {other}, which is given as well"))
    }
}

pub(crate) fn needs(other: &'static str, is_given: bool) -> impl FnOnce(&Option<PathBuf>, &()) -> Rule {
    move |file, ()| check(file.is_none() || is_given, &format!("needs {other} as well"))
}

pub(crate) fn needs_authority<T>(is_given: bool) -> impl FnOnce(&Vec<T>, &()) -> Rule {
    move |list, ()| check(list.is_empty() || is_given, "needs feed.authority.secret as well")
}

pub(crate) fn secret_of_client(authority: &Option<String>) -> impl Fn(&FeedClient, &()) -> Rule {
    move |client, ()| {
        label(&client.secret, &())?;
        client.namespace.iter().try_for_each(|namespace| label(namespace, &()))?;
        let is_other = client.namespace.is_some() || authority.as_ref() != Some(&client.secret);
        check(is_other, "names the Secret of the authority, which is feed.authority.secret")
    }
}

pub(crate) fn secured(has_tls: bool, allow_plaintext: bool) -> impl FnOnce(&SocketAddr, &()) -> Rule {
    move |address, ()| {
        check(
            has_tls || allow_plaintext || address.ip().to_canonical().is_loopback(),
            "can be reached from other machines, and private keys would pass in plaintext: use a loopback address, \
             feed.authority.secret, feed.tls.cert and feed.tls.key, or feed.allow-plaintext",
        )
    }
}

pub(crate) fn between(least: u64, most: u64) -> impl FnOnce(&Span, &()) -> Rule {
    move |span, ()| {
        let range = Duration::from_secs(least)..=Duration::from_secs(most);
        check(range.contains(&span.duration()), &format!("is not between {least} s and {most} s"))
    }
}

/// Certificates of an authority are replaced before the authority, and the authority before its expiry.
pub(crate) fn outlives(certificate: Span, overlap: Span) -> impl FnOnce(&Span, &()) -> Rule {
    move |authority, ()| {
        let times = Lifetimes::new(authority.duration(), certificate.duration(), overlap.duration());
        match times {
            // The rule of the certificate's lifetime reports this error.
            Ok(_) | Err(LifetimesError::Certificate) => Ok(()),
            Err(LifetimesError::Authority) => Err(Error::new("is longer than 100 years")),
            Err(_) => Err(Error::new(format!(
                "is shorter than six times feed.authority.certificate-lifetime and feed.authority.overlap together, which \
                 are {certificate} and {overlap}"
            ))),
        }
    }
}

pub(crate) fn some_time(span: &Span, (): &()) -> Rule {
    check(!span.duration().is_zero(), "is no time at all")
}

pub(crate) fn whole_seconds(span: &Span, (): &()) -> Rule {
    check(span.duration().subsec_nanos() == 0, "is not a number of whole seconds")
}

pub(crate) fn shorter_than(other: &'static str, than: Span) -> impl FnOnce(&Span, &()) -> Rule {
    move |span, ()| {
        let holds = !span.duration().is_zero() && *span < than;
        check(holds, &format!("is not shorter than {other}, which is {than}"))
    }
}

pub(crate) fn at_least(other: &'static str, than: Span) -> impl FnOnce(&Span, &()) -> Rule {
    move |span, ()| check(*span >= than, &format!("is shorter than {other}, which is {than}"))
}

/// Timers are late by up to a fifth, and a renewal must still succeed before the deadline.
pub(crate) fn several_within(other: &'static str, deadline: Span) -> impl FnOnce(&Span, &()) -> Rule {
    move |span, ()| {
        let holds = !span.duration().is_zero() && span.duration().mul_f64(1.2) < deadline.duration();
        check(holds, &format!("is not, with a fifth for timers, shorter than {other}, which is {deadline}"))
    }
}

pub(crate) fn built_with(
    feature: &'static str,
    is_built: bool,
) -> impl FnOnce(&Option<CollectorUrl>, &()) -> Rule {
    move |url, ()| {
        check(
            url.is_none() || is_built,
            &format!("needs a program that was built with the cargo feature {feature}"),
        )
    }
}

pub(crate) fn filter(filter: &str, (): &()) -> Rule {
    EnvFilter::try_new(filter).map(|_| ()).map_err(|_| {
        Error::new(
            "is not a level (error, warn, info, debug, trace) or a list such as info,pingsix_sink=debug",
        )
    })
}
