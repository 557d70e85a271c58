//! A PingSIX of one's own beside managed ones: its certificate is signed with the authority's key, by `feed-certificates`.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use jiff::Timestamp;
use k8s_openapi::ByteString;
use pingsix_gateway_api::pki::{Authorities, FeedIdentity};
use pingsix_sink::embedded::{Access, Clients};
use pingsix_sink::{Desired, Document, DocumentSet, EmbeddedEtcd, Key, OrderHint, Owner, Scope, Sink};
use tonic::Code;

use super::{NAME, hours, issued, list};
use crate::deploy::manifests::folder;
use crate::test_env::pingsix::print_message;
use crate::test_env::readers::Served;

/// The prefix that the certificate names by a URI, the prefix of its common name in the server's list, and a prefix of
/// neither.
const PREFIXES: [&str; 3] = ["/pingsix/default/web:80", "/pingsix/default/named", "/pingsix/default/other"];

fn scope(prefix: &str) -> Scope {
    Scope::new(prefix).unwrap()
}

/// The certificate that `feed-certificates` makes with the key from the Secret.
fn signed(authorities: &Authorities, prefix: &str) -> FeedIdentity {
    let made = tempfile::tempdir().unwrap();
    let secret = authorities.to_data();
    for (key, file) in [("tls.crt", "ca.crt"), ("tls.key", "ca.key")] {
        fs::write(made.path().join(file), &secret[key].0).unwrap();
    }
    let mut script = Command::new(folder().join("feed-certificates"));
    let output = script.arg(made.path()).env("FEED_PREFIXES", prefix).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!made.path().join("server.crt").exists(), "nobody else is to prove to be the feed");
    let files = [("ca.crt", "ca.crt"), ("tls.crt", "client.crt"), ("tls.key", "client.key")];
    let read =
        |(key, file): (&str, &str)| (key.to_owned(), ByteString(fs::read(made.path().join(file)).unwrap()));
    FeedIdentity::from_data(&files.into_iter().map(read).collect::<BTreeMap<_, _>>()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_signed_by_hand_opens_prefixes_by_uri_and_common_name() {
    const TEST: &str = "a_certificate_signed_by_hand_opens_prefixes_by_uri_and_common_name";
    if Command::new("openssl").arg("version").stdout(Stdio::null()).status().is_err() {
        return print_message(&format!("{TEST}: NOT RUN: there is no openssl"));
    }
    let [by_uri, by_name, by_nothing] = PREFIXES;
    let lifetimes = hours(240);
    let authorities = Authorities::new(Timestamp::now(), None, &lifetimes).unwrap();
    let own = signed(&authorities, by_uri);

    let named = Clients::new().certificate("pingsix", [scope(by_name)]);
    let tls = authorities.server_identity(&[NAME.to_owned()], Timestamp::now(), &lifetimes).unwrap().tls();
    let builder = EmbeddedEtcd::builder().access(Access::of(named).certificate_uris()).tls(tls);
    let etcd = builder.start().await.unwrap();
    for prefix in PREFIXES {
        let document = Document {
            key: Key::new("routes/a").unwrap(),
            value: "{}".into(),
            order: OrderHint(2),
            owner: Owner::new("test"),
        };
        etcd.publish(&Desired::new(scope(prefix), DocumentSet::new([document]).unwrap())).await.unwrap();
    }
    etcd.open();
    let served = Served::start(&etcd, None).await;

    assert_eq!(list(served.address, &own, by_uri).await.unwrap(), 1);
    assert_eq!(list(served.address, &own, by_name).await.unwrap(), 1);
    assert_eq!(list(served.address, &own, by_nothing).await.unwrap_err().code(), Code::PermissionDenied);
    // The Secret of a managed data plane has another name.
    let managed = issued(&authorities, by_nothing, None, &lifetimes).unwrap();
    assert_eq!(list(served.address, &managed, by_nothing).await.unwrap(), 1);
    assert_eq!(list(served.address, &managed, by_name).await.unwrap_err().code(), Code::PermissionDenied);
    served.stop().await;
}
