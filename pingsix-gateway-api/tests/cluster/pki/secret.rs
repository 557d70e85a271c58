//! The Secret with the authority, on a real API server.

use std::time::{Duration, Instant};

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use pingsix_gateway_api::controller::ControllerOptions;
use pingsix_gateway_api::pki::{Authorities, AuthorityOptions, FeedIdentity, Lifetimes, ROTATE};
use pingsix_gateway_api::replicas::Replicas;
use pingsix_sink::embedded::{Access, Clients, ServerTls};
use pingsix_sink::{EmbeddedEtcd, Scope};
use pingsix_translate::ObjectName;
use serde_json::json;

use super::{NAME, hours, issued, list};
use crate::leaders::options as replica_options;
use crate::test_env::readers::Served;
use crate::test_env::shop::{GATEWAY, PLANE, ROUTE, SERVICE};
use crate::test_env::{Running, TestEnv, eventually, eventually_async};

const SECRET: &str = "feed-authority";

/// A replica with a feed that proves itself with certificates of the authority.
struct Replica {
    etcd: EmbeddedEtcd,
    served: Served,
    running: Running,
}

impl Replica {
    async fn start(test_env: &TestEnv, name: &str, lifetimes: Lifetimes) -> Self {
        Self::start_with(test_env, name, lifetimes, |_| {}).await
    }

    async fn start_with(
        test_env: &TestEnv,
        name: &str,
        lifetimes: Lifetimes,
        change: impl FnOnce(&mut AuthorityOptions),
    ) -> Self {
        let client = test_env.cluster.admin();
        let mut options: ControllerOptions = replica_options(name);
        let mut authority = AuthorityOptions::new(ObjectName::new("default", SECRET), "feed");
        authority.server_names.push(NAME.to_owned());
        authority.lifetimes = lifetimes;
        change(&mut authority);
        options.feed_authority = Some(authority);
        let replicas = Replicas::new(client.clone(), options.lease.as_ref().unwrap());
        let tls = ServerTls::deferred().reread_interval(Duration::from_millis(50));
        let access = Access::of(Clients::new()).certificate_uris();
        let builder = EmbeddedEtcd::builder().reservations(replicas.reservations()).tls(tls).access(access);
        let etcd = builder.start().await.unwrap();
        let served = Served::start(&etcd, None).await;
        let mut running = Running::replica(client, &etcd, replicas, options);
        running.wait_until_ready().await;
        Self { etcd, served, running }
    }

    async fn has_a_certificate(&self) {
        eventually("a certificate", || self.etcd.stats().tls_rotations > 0).await;
    }
}

fn secrets(test_env: &TestEnv) -> Api<Secret> {
    Api::namespaced(test_env.cluster.admin(), "default")
}

/// The authorities as they are at the API server, if they are there and can be used.
async fn authorities(test_env: &TestEnv) -> Option<Authorities> {
    let secret = secrets(test_env).get_opt(SECRET).await.unwrap()?;
    Authorities::from_data(&secret.data.unwrap_or_default()).ok()
}

async fn test_env() -> Option<TestEnv> {
    let test_env = TestEnv::start().await?;
    for manifests in [GATEWAY, SERVICE, ROUTE] {
        test_env.apply(manifests).await;
    }
    Some(test_env)
}

/// Follows a rotation to its end: three steps, in all of which a client with the identity of the moment is served.
async fn follow_rotation(
    test_env: &TestEnv,
    replica: &Replica,
    before: &Authorities,
    mut identity: impl AsyncFnMut(&Authorities) -> FeedIdentity,
) {
    let (mut editions, mut lists) = (vec![before.edition()], 0);
    eventually_async("the end of the rotation", async || {
        let known = authorities(test_env).await.unwrap();
        if editions.last() != Some(&known.edition()) {
            editions.push(known.edition());
        }
        let held = identity(&known).await;
        let listed = list(replica.served.address, &held, PLANE).await;
        assert!(listed.is_ok(), "{editions:?}: {listed:?}");
        lists += 1;
        known.signing() != before.signing() && known.trusted().count() == 1
    })
    .await;
    assert!(editions.len() == 4 && lists > 10, "{editions:?}, {lists} lists");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_agree_on_one_authority_and_each_proves_itself_with_it() {
    let Some(test_env) = test_env().await else { return };
    let lifetimes = hours(240);
    let (one, other) = tokio::join!(
        Replica::start(&test_env, "one", lifetimes),
        Replica::start(&test_env, "other", lifetimes)
    );
    for replica in [&one, &other] {
        replica.has_a_certificate().await;
    }
    let known = authorities(&test_env).await.unwrap();
    let own = issued(&known, PLANE, None, &lifetimes).unwrap();
    let foreign = issued(&known, "/pingsix/default/another", None, &lifetimes).unwrap();
    for replica in [&one, &other] {
        assert!(list(replica.served.address, &own, PLANE).await.unwrap() > 0);
        let refused = list(replica.served.address, &foreign, PLANE).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::PermissionDenied);
    }
    // One that comes later, or leads later, makes no other.
    one.running.kill().await;
    let third = Replica::start(&test_env, "third", lifetimes).await;
    third.has_a_certificate().await;
    assert!(list(third.served.address, &own, PLANE).await.unwrap() > 0);
    assert_eq!(authorities(&test_env).await.unwrap(), known);
    other.running.stop().await;
    third.running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotation_request_and_a_deleted_secret_lead_to_another_authority() {
    let Some(test_env) = test_env().await else { return };
    // A step without a confirmation waits until certificates have expired.
    let second = Duration::from_secs(1);
    let lifetimes = Lifetimes::new(3_600 * second, 6 * second, 2 * second).unwrap();
    let replica = Replica::start(&test_env, "one", lifetimes).await;
    replica.has_a_certificate().await;
    let first = authorities(&test_env).await.unwrap();
    let rotate = |value: &str| Patch::Merge(json!({"metadata": {"annotations": {ROTATE: value}}}));
    secrets(&test_env).patch(SECRET, &PatchParams::default(), &rotate("one")).await.unwrap();
    // A client that keeps to the rules is served throughout.
    let mut held = issued(&first, PLANE, None, &lifetimes).unwrap();
    follow_rotation(&test_env, &replica, &first, async |known| {
        if let Some(identity) = issued(known, PLANE, Some(&held), &lifetimes) {
            held = identity;
        }
        held.clone()
    })
    .await;

    // After the deletion, old certificates are no longer trusted, and there is a new CA at once.
    let known = authorities(&test_env).await.unwrap();
    secrets(&test_env).delete(SECRET, &DeleteParams::default()).await.unwrap();
    eventually_async("another authority", async || {
        authorities(&test_env).await.is_some_and(|authorities| authorities.signing() != known.signing())
    })
    .await;
    let fresh = authorities(&test_env).await.unwrap();
    let identity = issued(&fresh, PLANE, Some(&held), &lifetimes).unwrap();
    eventually_async("the server has it", async || {
        list(replica.served.address, &identity, PLANE).await.is_ok()
    })
    .await;
    assert!(list(replica.served.address, &held, PLANE).await.is_err());
    replica.running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unusable_secret_leaves_the_feed_as_it_is_and_is_not_overwritten() {
    let Some(test_env) = test_env().await else { return };
    let lifetimes = hours(240);
    let replica = Replica::start(&test_env, "one", lifetimes).await;
    replica.has_a_certificate().await;
    let good = secrets(&test_env).get(SECRET).await.unwrap().data.unwrap();
    let identity = issued(&Authorities::from_data(&good).unwrap(), PLANE, None, &lifetimes).unwrap();
    let write = async |name: &str, content: &ByteString| {
        let patch = Patch::Merge(json!({"data": {name: content}}));
        secrets(&test_env).patch(SECRET, &PatchParams::default(), &patch).await.unwrap()
    };
    for name in ["tls.key", "rotation.json"] {
        let wrong = write(name, &ByteString(b"nonsense".to_vec())).await;
        // Time to notice the change and to act on it.
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(list(replica.served.address, &identity, PLANE).await.unwrap() > 0);
        let still = secrets(&test_env).get(SECRET).await.unwrap();
        assert_eq!(still.metadata.resource_version, wrong.metadata.resource_version, "{name}");
        write(name, &good[name]).await;
    }
    // The repaired Secret is in use again.
    let rotate = Patch::Merge(json!({"metadata": {"annotations": {ROTATE: "now"}}}));
    secrets(&test_env).patch(SECRET, &PatchParams::default(), &rotate).await.unwrap();
    eventually_async("the next authority", async || {
        authorities(&test_env).await.is_some_and(|authorities| authorities.trusted().count() == 2)
    })
    .await;
    assert!(list(replica.served.address, &identity, PLANE).await.unwrap() > 0);
    replica.running.stop().await;
}

/// The identity in a Secret, if it has one.
async fn identity(test_env: &TestEnv, secret: &str) -> Option<FeedIdentity> {
    FeedIdentity::from_data(&secrets(test_env).get_opt(secret).await.unwrap()?.data?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_renews_client_certificates_and_leaves_foreign_secrets_alone() {
    let Some(test_env) = test_env().await else { return };
    let of_others = json!({"metadata": {"name": "taken"}, "data": {"tls.crt": ByteString(b"kept".to_vec())}});
    let of_others: Secret = serde_json::from_value(of_others).unwrap();
    let of_others = secrets(&test_env).create(&PostParams::default(), &of_others).await.unwrap();
    let second = Duration::from_secs(1);
    let lifetimes = Lifetimes::new(3_600 * second, 12 * second, 2 * second).unwrap();
    let replica = Replica::start_with(&test_env, "one", lifetimes, |authority| {
        authority.has_reports = false;
        for name in ["edge", "taken"] {
            let scope = Scope::new(PLANE).unwrap();
            authority.clients.insert(ObjectName::new("default", name), [scope].into());
        }
    })
    .await;
    eventually_async("a certificate", async || identity(&test_env, "edge").await.is_some()).await;
    let first = identity(&test_env, "edge").await.unwrap();
    assert!(list(replica.served.address, &first, PLANE).await.unwrap() > 0);
    eventually_async("a renewal", async || identity(&test_env, "edge").await.unwrap() != first).await;

    // A client with the identity in the Secret is served throughout a rotation. The rotation waits for the Secrets, and
    // not until certificates expire.
    let before = authorities(&test_env).await.unwrap();
    let rotate = Patch::Merge(json!({"metadata": {"annotations": {ROTATE: "one"}}}));
    secrets(&test_env).patch(SECRET, &PatchParams::default(), &rotate).await.unwrap();
    let begin = Instant::now();
    follow_rotation(&test_env, &replica, &before, async |_| identity(&test_env, "edge").await.unwrap()).await;
    let expired = lifetimes.certificate() + lifetimes.overlap();
    assert!(begin.elapsed() < expired, "each step waited for certificates to expire: {:?}", begin.elapsed());

    secrets(&test_env).delete("edge", &DeleteParams::default()).await.unwrap();
    eventually_async("another Secret", async || identity(&test_env, "edge").await.is_some()).await;
    let still = secrets(&test_env).get("taken").await.unwrap();
    assert_eq!(still.metadata.resource_version, of_others.metadata.resource_version);
    replica.running.stop().await;
}
