//! Rotations of the feed's authority beside owners that cannot be provisioned.

use jiff::SignedDuration;
use pingsix_translate::{Kind, ObjectName};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::clock::{Clock, LeaseClock};
use crate::fixture::api_server::{ApiServer, Fate, RecordedRequest};
use crate::leader::{Elector, LeaseOptions};
use crate::pki::{self, AuthorityOptions, Certificate, FeedIdentity, Lifetimes, ROTATE, WAITS_FOR};
use crate::provision::children::ChildChange;
use crate::provision::tests::{gateway, installation};

const AUTHORITY: &str = "/api/v1/namespaces/home/secrets/feed-authority";

const fn minutes(minutes: u64) -> Duration {
    Duration::from_mins(minutes)
}

/// Certificates are valid for ten hours, and all processes see a change after a minute.
fn lifetimes() -> Lifetimes {
    Lifetimes::new(minutes(6_000), minutes(600), minutes(1)).unwrap()
}

/// Two Gateways, `infra/web` and `other/web`, with a provisioner and the authority of their feed.
struct ProvisionerEnv {
    api: ApiServer,
    events: EventBoard,
    metrics: Arc<Metrics>,
    wanted: watch::Sender<DesiredInfrastructure>,
    _tasks: JoinSet<()>,
}

impl ProvisionerEnv {
    async fn start(fate: impl FnMut(&RecordedRequest) -> Fate + Send + 'static) -> Self {
        let api = ApiServer::default();
        api.script(fate);
        let (began, start) = (Instant::now(), Timestamp::now());
        let clock = Clock::new(move || start + SignedDuration::try_from(began.elapsed()).unwrap());
        let mut options = AuthorityOptions::new(ObjectName::new("home", "feed-authority"), "feed");
        (options.lifetimes, options.clock) = (lifetimes(), clock);
        let (reconciler, authority) = pki::start(api.client(), options);
        let mut wanted = DesiredInfrastructure { is_complete: true, ..DesiredInfrastructure::default() };
        for namespace in ["infra", "other"] {
            let mut infrastructure = gateway(&[80]);
            let owner = owner(namespace);
            infrastructure.namespace = namespace.into();
            infrastructure.uid = Some(format!("of-{namespace}").into());
            infrastructure.owner = Arc::new(owner.clone());
            let need = InfrastructureNeed {
                infrastructure: Arc::new(infrastructure),
                keyring: Ok(Keyring::default()),
            };
            wanted.set(owner, need);
        }
        let wanted = watch::Sender::new(wanted);
        let (events, metrics) = (EventBoard::default(), Arc::new(Metrics::new("test")));
        let provisioner = Provisioner::new(Parts {
            client: api.client(),
            installation: Arc::new(installation()),
            namespaces: Namespaces::All,
            field_manager: "test".to_owned(),
            authority: Some(authority),
            key: watch::channel(InstallationKey::new(&[7; 32])).1,
            wanted: wanted.subscribe(),
            provisioned: watch::Sender::new(ProvisionedOwners::new()),
            events: events.clone(),
            metrics: Some(Arc::clone(&metrics)),
        });
        let leadership = Leadership::always();
        let mut tasks = JoinSet::new();
        tasks.spawn(reconciler.run(leadership.clone()));
        tasks.spawn(provisioner.run(leadership));
        let env = Self { api, events, metrics, wanted, _tasks: tasks };
        env.wait(minutes(10)).await;
        env
    }

    async fn wait(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    fn authority(&self) -> Value {
        self.api.get(AUTHORITY).unwrap()
    }

    fn ask_for_rotation(&self) {
        self.api.change(AUTHORITY, |secret| secret["metadata"]["annotations"][ROTATE] = "now".into());
    }

    /// The certificate of the authority that signs, and whether a rotation is over.
    fn signing(&self) -> (String, bool) {
        let secret = self.authority();
        let data = &secret["data"];
        (data["tls.crt"].to_string(), data["next.crt"].is_null() && data["previous.crt"].is_null())
    }

    /// Whom the Secret of the authority names, how many problems there are to tell of, and what the metric says.
    fn named(&self) -> (Option<String>, usize, bool) {
        let annotation = self.authority()["metadata"]["annotations"][WAITS_FOR].as_str().map(str::to_owned);
        let one = self.metrics.encode().contains("pingsix_gateway_feed_authority_waits_for 1\n");
        (annotation, self.events.len(), one)
    }

    fn identity(&self, namespace: &str) -> Option<FeedIdentity> {
        let secret = self.api.get(&format!("/api/v1/namespaces/{namespace}/secrets/web-pingsix-feed"))?;
        FeedIdentity::from_data(&serde_json::from_value(secret["data"].clone()).unwrap())
    }
}

fn owner(namespace: &str) -> ObjectKey {
    ObjectKey::new(Kind::Gateway, namespace, "web")
}

fn refuses(seen: &RecordedRequest, resource: &str) -> bool {
    seen.writes() && seen.path.contains(&format!("/namespaces/other/{resource}/"))
}

#[tokio::test(start_paused = true)]
async fn a_rotation_names_and_awaits_an_owner_with_a_feed_to_lose_then_goes_on() {
    let is_closed = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let closed = Arc::clone(&is_closed);
    let env = ProvisionerEnv::start(move |seen| {
        let is_closed = closed.load(std::sync::atomic::Ordering::Relaxed);
        if is_closed && refuses(seen, "secrets") { Fate::Failed(403) } else { Fate::Served }
    })
    .await;
    let (first, is_settled) = env.signing();
    assert!(is_settled);
    let before = env.identity("other").unwrap();
    is_closed.store(true, std::sync::atomic::Ordering::Relaxed);
    env.ask_for_rotation();
    env.wait(minutes(30)).await;
    assert_eq!(env.signing(), (first.clone(), false), "it waits");
    assert_eq!(env.named(), (Some("Gateway other/web".to_owned()), 1, true));
    assert_eq!(env.identity("other").unwrap(), before);
    assert_ne!(env.identity("infra").unwrap().ca_bundle(), before.ca_bundle(), "others are told");

    // As long as its certificate is good, its feed stays as it is.
    env.wait(minutes(500)).await;
    assert_eq!(env.signing(), (first.clone(), false));
    assert!(
        !Certificate::read(before.certificate())
            .unwrap()
            .has_expired(Timestamp::now() + SignedDuration::from_mins(540))
    );
    env.wait(minutes(200)).await;
    let (second, is_settled) = env.signing();
    assert!(second != first && is_settled, "it went on, and both steps were made");
    assert_eq!(env.named(), (None, 0, false));

    // The provisioner recovers when writes succeed again.
    is_closed.store(false, std::sync::atomic::Ordering::Relaxed);
    env.wait(minutes(90)).await;
    assert_eq!(env.identity("other").unwrap().ca_bundle(), env.identity("infra").unwrap().ca_bundle());
}

#[tokio::test(start_paused = true)]
async fn a_rotation_does_not_wait_for_what_has_nothing_to_do_with_certificates() {
    for resource in ["services", "deployments", "poddisruptionbudgets", "serviceaccounts"] {
        let env =
            ProvisionerEnv::start(
                move |seen| if refuses(seen, resource) { Fate::Failed(403) } else { Fate::Served },
            )
            .await;
        let (first, _) = env.signing();
        env.ask_for_rotation();
        env.wait(minutes(10)).await;
        let (second, is_settled) = env.signing();
        assert!(second != first && is_settled, "{resource}");
        assert_eq!(env.named(), (None, 0, false), "{resource}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rotation_does_not_wait_for_an_owner_that_never_had_a_certificate() {
    let env =
        ProvisionerEnv::start(|seen| if refuses(seen, "secrets") { Fate::Failed(403) } else { Fate::Served })
            .await;
    assert_eq!(env.identity("other"), None);
    let (first, _) = env.signing();
    env.ask_for_rotation();
    env.wait(minutes(10)).await;
    assert_ne!(env.signing(), (first, false));
    assert!(env.signing().1);
}

#[tokio::test(start_paused = true)]
async fn a_rotation_waits_for_running_processes_of_an_unknown_owner() {
    let env = ProvisionerEnv::start(|_| Fate::Served).await;
    let (first, _) = env.signing();
    env.wanted.send_modify(|wanted| {
        wanted.leave(owner("other"));
    });
    env.ask_for_rotation();
    env.wait(minutes(30)).await;
    assert_eq!(env.signing(), (first.clone(), false));
    assert_eq!(env.named(), (Some("Gateway other/web".to_owned()), 1, true));
    // The owner is removed: its certificate no longer counts.
    env.wanted.send_modify(|wanted| {
        wanted.remove(&owner("other"));
    });
    env.wait(minutes(10)).await;
    assert!(env.signing().0 != first && env.signing().1);
    assert_eq!(env.named(), (None, 0, false));
}

/// The clock of a leader stood still: it still considers itself the leader, and its objects are old.
#[tokio::test(start_paused = true)]
async fn a_former_leader_cannot_overwrite_its_successor() {
    const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/infra/deployments/web-pingsix";
    const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/home/leases/lease";
    let api = ApiServer::default();
    let began = Instant::now();
    let options = LeaseOptions {
        name: "lease".to_owned(),
        // To it, no time passes once it leads.
        lease_clock: LeaseClock::new(move || began),
        ..LeaseOptions::new("home", "example.com/a", "old")
    };
    let (elector, mut leadership) = Elector::new(api.client(), options).unwrap();
    let elected = tokio::spawn(elector.run(CancellationToken::new()));
    leadership.gained().await;
    elected.abort();
    let hand = || ApiWriter {
        client: api.client(),
        field_manager: "test".to_owned(),
        timeout: REQUEST_TIMEOUT,
        leadership: leadership.clone(),
    };
    let infrastructure = gateway(&[80]);
    let uid = infrastructure.uid.as_deref().map(str::to_owned);
    let objects = |replicas: i32| {
        let mut infrastructure = gateway(&[80]);
        Arc::make_mut(&mut infrastructure.parameters).replicas = Some(replicas);
        let material = crate::provision::tests::material(&infrastructure.owner);
        objects(&infrastructure, &installation(), &material)
    };
    let work = |wanted: Option<crate::provision::Objects>, outcome: Option<&Outcome>| {
        let mut observed = BTreeMap::new();
        for (key, noted) in outcome.iter().flat_map(|outcome| &outcome.seen) {
            if let ChildChange::There(there) = noted {
                observed.insert(key.clone(), (**there).clone());
            }
        }
        PassInput { uid: uid.clone(), objects: wanted, observed, applied: BTreeMap::new() }
    };
    let replicas = || api.get(DEPLOYMENT).map(|deployment| deployment["spec"]["replicas"].clone());
    let first = work(objects(1), None).pass(&hand()).await;
    assert!(first.error.is_none(), "{:?}", first.error);

    // Somebody changes an object while it leads: it looks, asks whether it leads, and applies it anew.
    api.change(DEPLOYMENT, |deployment| deployment["status"]["replicas"] = 1.into());
    let second = work(objects(2), Some(&first)).pass(&hand()).await;
    assert!(second.error.is_none(), "{:?}", second.error);
    assert_eq!(replicas(), Some(2.into()));

    // Another one leads, and has written.
    let own = api.get(LEASE).unwrap()["spec"]["holderIdentity"].clone();
    api.change(LEASE, |lease| lease["spec"]["holderIdentity"] = "new".into());
    api.change(DEPLOYMENT, |deployment| deployment["spec"]["replicas"] = 7.into());
    assert!(leadership.is_held(), "that is what it believes");
    for wanted in [objects(3), None] {
        let late = work(wanted, Some(&second)).pass(&hand()).await;
        assert!(matches!(late.error, Some(PassError::Led)), "{:?}", late.error);
    }
    assert_eq!(replicas(), Some(7.into()));

    // The new term begins with outdated observations, so the provisioner reads before it writes.
    api.change(LEASE, |lease| lease["spec"]["holderIdentity"] = own);
    let late = work(objects(3), Some(&second)).pass(&hand()).await;
    assert!(late.error.is_none(), "{:?}", late.error);
    assert_eq!(replicas(), Some(3.into()));
}

/// Its successor writes between the moment when a leader asked whether it leads and the one when its request arrives.
#[tokio::test(start_paused = true)]
async fn a_request_of_a_leader_that_arrives_after_its_successors_is_refused() {
    const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/infra/deployments/web-pingsix";
    let api = ApiServer::default();
    let hand = ApiWriter {
        client: api.client(),
        field_manager: "test".to_owned(),
        timeout: REQUEST_TIMEOUT,
        leadership: Leadership::always(),
    };
    let infrastructure = gateway(&[80]);
    let material = crate::provision::tests::material(&infrastructure.owner);
    let objects = objects(&infrastructure, &installation(), &material).unwrap();
    let uid = infrastructure.uid.as_deref().map(str::to_owned);
    let work = PassInput { uid, objects: Some(objects), observed: BTreeMap::new(), applied: BTreeMap::new() };
    assert!(work.pass(&hand).await.error.is_none());
    let version = api.get(DEPLOYMENT).unwrap()["metadata"]["resourceVersion"].clone();
    let sent = api.writes(DEPLOYMENT).last().unwrap().body.clone();
    assert!(sent["metadata"]["resourceVersion"].is_null(), "what is not there yet has no version");
    let again = PassInput {
        uid: infrastructure.uid.as_deref().map(str::to_owned),
        objects: objects_of(&infrastructure),
        observed: observed(&api, DEPLOYMENT),
        applied: BTreeMap::new(),
    };
    assert!(again.pass(&hand).await.error.is_none());
    let sent = api.writes(DEPLOYMENT).last().unwrap().body.clone();
    assert_eq!(sent["metadata"]["resourceVersion"], version, "each write names the version that was seen");
}

fn objects_of(infrastructure: &Infrastructure) -> Option<crate::provision::Objects> {
    objects(infrastructure, &installation(), &crate::provision::tests::material(&infrastructure.owner))
}

/// A Deployment as it is now.
fn observed(api: &ApiServer, path: &str) -> BTreeMap<ChildKey, crate::provision::children::Observed> {
    let deployment = serde_json::from_value(api.get(path).unwrap()).unwrap();
    let key = (ChildKind::Deployment, ObjectName::new("infra", "web-pingsix"));
    [(key, crate::provision::children::Observed::of(ChildKind::Deployment, deployment))].into()
}
