//! The endpoints of the feed for data planes, and their requirements.

use std::collections::BTreeMap;

use super::{Given, KeyError, key_error};
use crate::configuration::Configuration;

/// Endpoints at which a managed data plane would find no feed, or none that it could use.
pub(super) fn endpoints_of_no_use(
    configuration: &Configuration,
    given: &BTreeMap<String, Given>,
) -> Vec<KeyError> {
    let feed = &configuration.feed;
    let Some(first) = feed.endpoint.first() else { return Vec::new() };
    let mut errors = Vec::new();
    let mut refuse = |index: usize, message: &str| {
        errors.push(key_error(&format!("feed.endpoint[{index}]"), message, given));
    };
    let responder = configuration.responder.address();
    if !responder.is_some_and(|address| address.ip().to_canonical().is_loopback()) {
        let message = format!(
            "needs a responder in each Pod, so an address of loopback: responder is {}",
            configuration.responder
        );
        refuse(0, &message);
    }
    let sinks = configuration.sinks();
    let mut targets = sinks.chosen.values().flatten().chain(&sinks.others);
    if !targets.any(|target| target.kind() == "embedded") {
        refuse(0, "leads to a feed that nothing is published to: no sink is embedded:");
    }
    for (index, endpoint) in feed.endpoint.iter().enumerate() {
        if endpoint.has_tls() != first.has_tls() {
            refuse(index, "differs in its scheme from the first, and the feed has one");
        } else if endpoint.has_tls() && feed.authority.secret.is_none() {
            refuse(index, "needs feed.authority.secret as well, for the certificates of data planes");
        } else if !endpoint.has_tls() && feed.has_tls() {
            let key = if feed.authority.secret.is_some() { "feed.authority.secret" } else { "feed.tls.cert" };
            refuse(index, &format!("excludes {key}, with which the feed has TLS"));
        }
    }
    errors
}
