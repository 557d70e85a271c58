//! The certificates of the feed: agreement on a CA, its rotation, and their use by a real PingSIX.

mod attached;
mod pingsix;
mod secret;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use jiff::Timestamp;
use pingsix_gateway_api::pki::{Authorities, ClientIdentity, FeedIdentity, Lifetimes};
use pingsix_sink::Scope;
use pingsix_sink::embedded::feed_uri;
use pingsix_test_programs::proto::etcdserverpb::RangeRequest;
use pingsix_test_programs::proto::etcdserverpb::kv_client::KvClient;
use pingsix_test_programs::proto::mvccpb::KeyValue;
use tonic::Status;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

/// The name that servers prove.
const NAME: &str = "feed.test";

/// The shortest remaining lifetime of a valid certificate.
fn hours(certificate: u64) -> Lifetimes {
    let hour = Duration::from_hours(1);
    Lifetimes::new(20_000 * hour, u32::try_from(certificate).unwrap() * hour, hour).unwrap()
}

/// The identity to write for a data plane with this one; `None` if the identity stays.
fn issued(
    authorities: &Authorities,
    prefix: &str,
    held: Option<&FeedIdentity>,
    lifetimes: &Lifetimes,
) -> Option<FeedIdentity> {
    let uris: BTreeSet<String> = [feed_uri(&Scope::new(prefix).unwrap())].into();
    let now = Timestamp::now();
    match authorities.client_identity("Gateway default/web", &uris, held, now, lifetimes).unwrap() {
        ClientIdentity::Keep => None,
        ClientIdentity::Write { identity, .. } => Some(identity),
    }
}

/// Lists a prefix with an identity.
async fn list(feed: SocketAddr, identity: &FeedIdentity, prefix: &str) -> Result<usize, Status> {
    Ok(read((feed, NAME), identity, prefix).await?.len())
}

/// The documents below a prefix that the server of this name has.
pub(crate) async fn read(
    (feed, name): (SocketAddr, &str),
    identity: &FeedIdentity,
    prefix: &str,
) -> Result<Vec<KeyValue>, Status> {
    let tls = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(identity.ca_bundle()))
        .identity(Identity::from_pem(identity.certificate(), identity.key()))
        .domain_name(name);
    let endpoint = Endpoint::from_shared(format!("https://{feed}")).unwrap().tls_config(tls).unwrap();
    let channel = endpoint.connect().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let request = RangeRequest {
        key: format!("{prefix}/").into(),
        range_end: format!("{prefix}0").into(),
        ..RangeRequest::default()
    };
    let answer = KvClient::new(channel).range(request).await?;
    Ok(answer.into_inner().kvs)
}
