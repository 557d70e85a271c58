//! The pure part: issued certificates, their renewal, and the rotation of authorities.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use pingsix_sink::Scope;
use pingsix_sink::embedded::{feed_uri, feed_uri_of_owner};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

use super::rotation::Phase;
use super::*;

const SERVICE: &str = "feed.infra.svc";

fn start() -> Timestamp {
    "2026-11-22T10:00:00Z".parse().unwrap()
}

fn lifetimes() -> Lifetimes {
    let hour = Duration::from_hours(1);
    Lifetimes::new(2_000 * hour, 240 * hour, hour).unwrap()
}

fn prefixes(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| feed_uri(&Scope::new(*name).unwrap())).collect()
}

fn plus(time: Timestamp, by: Duration) -> Timestamp {
    time + SignedDuration::try_from(by).unwrap()
}

/// The identity to write for a data plane with this one.
fn written(authorities: &Authorities, held: Option<&FeedIdentity>, now: Timestamp) -> FeedIdentity {
    decide(authorities, held, now).unwrap().0
}

fn decide(
    authorities: &Authorities,
    held: Option<&FeedIdentity>,
    now: Timestamp,
) -> Option<(FeedIdentity, ReissueReason)> {
    let prefixes = prefixes(&["/pingsix/shop/web:80", "/pingsix/shop/web:443"]);
    let decided = authorities.client_identity("Gateway shop/web", &prefixes, held, now, &lifetimes());
    match decided.unwrap() {
        ClientIdentity::Keep => None,
        ClientIdentity::Write { identity, because } => Some((identity, because)),
    }
}

/// Whether a client that trusts this bundle takes the server for the one it means.
fn accepts_server(bundle: &str, certificate: &Certificate, now: Timestamp) -> bool {
    accepts_server_by(SERVICE, bundle, certificate, now)
}

fn accepts_server_by(name: &str, bundle: &str, certificate: &Certificate, now: Timestamp) -> bool {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(authority.unwrap()).unwrap();
    }
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
    let name = ServerName::try_from(name).unwrap();
    let now = UnixTime::since_unix_epoch(Duration::from_secs(now.as_second().try_into().unwrap()));
    verifier.verify_server_cert(certificate.der(), &[], &name, &[], now).is_ok()
}

fn server(authorities: &Authorities, now: Timestamp) -> ServerIdentity {
    authorities.server_identity(&[SERVICE.to_owned()], now, &lifetimes()).unwrap()
}

#[test]
fn a_server_has_names_and_addresses() {
    let authorities = Authorities::new(start(), None, &lifetimes()).unwrap();
    let names = [SERVICE, "feed.example.com", "192.0.2.1", "2001:db8::1"];
    let server = authorities.server_identity(&names.map(str::to_owned), start(), &lifetimes()).unwrap();
    let accepts = |name| accepts_server_by(name, &authorities.bundle(), &server.certificate, start());
    assert!(names.iter().all(|name| accepts(name)));
    assert!(!accepts("192.0.2.2") && !accepts("other.example.com"));
}

#[test]
fn a_certificate_names_its_prefixes_and_is_valid_for_its_lifetime() {
    let authorities = Authorities::new(start(), None, &lifetimes()).unwrap();
    let (identity, because) = decide(&authorities, None, start()).unwrap();
    assert_eq!(because, ReissueReason::Missing);
    let certificate = Certificate::read(identity.certificate()).unwrap();
    let uris = ["pingsix-feed:///pingsix/shop/web:443", "pingsix-feed:///pingsix/shop/web:80"];
    assert_eq!(certificate.uris(), uris);
    let end = plus(start(), lifetimes().certificate());
    assert!(authorities.accept_client(&certificate, start()) && authorities.accept_client(&certificate, end));
    assert!(!authorities.accept_client(&certificate, plus(end, Duration::from_mins(1))));
    assert!(!authorities.accept_client(&certificate, plus(start(), Duration::from_hours(240 * 2))));
    // Neither is good in the place of the other.
    let server = server(&authorities, start());
    assert!(accepts_server(identity.ca_bundle(), &server.certificate, start()));
    assert!(!accepts_server(identity.ca_bundle(), &certificate, start()));
    assert!(!authorities.accept_client(&server.certificate, start()));
    let other = Authorities::new(start(), None, &lifetimes()).unwrap();
    assert!(!other.accept_client(&certificate, start()));
}

#[test]
fn a_certificate_is_kept_for_two_thirds_of_its_time() {
    let authorities = Authorities::new(start(), None, &lifetimes()).unwrap();
    let identity = written(&authorities, None, start());
    let renewal = identity.renewal().unwrap();
    let share = renewal.duration_since(start()).as_secs_f64() / lifetimes().certificate().as_secs_f64();
    assert!((0.6..=0.67).contains(&share), "{share}");
    for hours in [0, 1, 100, 159] {
        assert_eq!(decide(&authorities, Some(&identity), plus(start(), Duration::from_hours(hours))), None);
    }
    let (renewed, because) = decide(&authorities, Some(&identity), renewal).unwrap();
    assert_eq!(because, ReissueReason::Renewal);
    assert_ne!(renewed.key(), identity.key(), "a key is never used again");
    assert_eq!(decide(&authorities, Some(&renewed), renewal), None);
    let expired = plus(start(), Duration::from_hours(241));
    assert_eq!(decide(&authorities, Some(&identity), expired).unwrap().1, ReissueReason::OtherAuthority);
    // A clock that was set back far.
    let before = plus(start(), Duration::from_secs(0)) - SignedDuration::from_hours(24);
    assert_eq!(decide(&authorities, Some(&identity), before).unwrap().1, ReissueReason::Renewal);
}

#[test]
fn lifetimes_of_seconds_work_as_those_of_months_do() {
    let second = Duration::from_secs(1);
    let lifetimes = Lifetimes::new(60 * second, 3 * second, second).unwrap();
    let authorities = Authorities::new(start(), None, &lifetimes).unwrap();
    let decided = |held: Option<&FeedIdentity>, now| {
        authorities.client_identity("web", &prefixes(&["/p/web"]), held, now, &lifetimes).unwrap()
    };
    let ClientIdentity::Write { identity, .. } = decided(None, start()) else { panic!("there is none") };
    assert_eq!(decided(Some(&identity), plus(start(), second)), ClientIdentity::Keep);
    assert_ne!(decided(Some(&identity), plus(start(), 3 * second)), ClientIdentity::Keep);
    for (authority, certificate, overlap) in [(60, 0, 1), (23, 3, 1), (u64::MAX, 3, 1), (24, 3, u64::MAX)] {
        let times = [authority, certificate, overlap].map(Duration::from_secs);
        assert!(Lifetimes::new(times[0], times[1], times[2]).is_err(), "{times:?}");
    }
    let Lifetimes { .. } = Lifetimes::default();
    let default = Lifetimes::default();
    let again = Lifetimes::new(default.authority(), default.certificate(), default.overlap());
    assert_eq!(again, Ok(default));
}

#[test]
fn a_faulty_identity_is_replaced() {
    let authorities = Authorities::new(start(), None, &lifetimes()).unwrap();
    let good = written(&authorities, None, start());
    let another = written(&authorities, None, start());
    let of_others = written(&Authorities::new(start(), None, &lifetimes()).unwrap(), None, start());
    let with = |name: &str, of: &FeedIdentity| {
        let mut data = good.to_data();
        data.insert(name.to_owned(), of.to_data()[name].clone());
        FeedIdentity::from_data(&data).unwrap()
    };
    let text = |name: &str, text: &str| {
        let mut data = good.to_data();
        data.insert(name.to_owned(), ByteString(text.as_bytes().to_vec()));
        FeedIdentity::from_data(&data).unwrap()
    };
    for (held, because) in [
        (with("tls.key", &another), ReissueReason::Unusable),
        (with("tls.crt", &another), ReissueReason::Unusable),
        (text("tls.crt", "nonsense"), ReissueReason::Unusable),
        (text("tls.key", ""), ReissueReason::Unusable),
        (of_others.clone(), ReissueReason::OtherAuthority),
        (with("ca.crt", &of_others), ReissueReason::OtherBundle),
    ] {
        let (identity, why) = decide(&authorities, Some(&held), start()).unwrap();
        assert_eq!(why, because);
        assert_eq!(identity.certificate() == held.certificate(), because == ReissueReason::OtherBundle);
        assert_eq!(decide(&authorities, Some(&identity), start()), None, "{because:?}");
    }
    for (owner, names) in [
        ("Gateway shop/web", &["/pingsix/shop/web:80"][..]),
        ("Gateway shop/web", &["/pingsix/shop/web:80", "/pingsix/shop/web:443", "/pingsix/shop/web:8080"]),
        ("Gateway shop/web", &["/pingsix/shop", "/pingsix/shop/web:443"]),
        ("Gateway shop/other", &["/pingsix/shop/web:80", "/pingsix/shop/web:443"]),
    ] {
        let decided =
            authorities.client_identity(owner, &prefixes(names), Some(&good), start(), &lifetimes());
        let ClientIdentity::Write { identity, because } = decided.unwrap() else {
            panic!("{owner} {names:?}")
        };
        assert_eq!(because, ReissueReason::OtherPrefixes);
        assert_ne!(identity.certificate(), good.certificate());
    }
    // The same prefixes of an owner with another UID are others.
    let of_owner = |uid: &str| -> BTreeSet<String> {
        let scope = |name: &str| Scope::new(name).unwrap();
        ["/pingsix/shop/web:80", "/pingsix/shop/web:443"]
            .map(|name| feed_uri_of_owner(&scope(name), uid))
            .into()
    };
    let mut held = good.clone();
    for uid in ["1", "2"] {
        let decided = || {
            authorities.client_identity(
                "Gateway shop/web",
                &of_owner(uid),
                Some(&held),
                start(),
                &lifetimes(),
            )
        };
        let ClientIdentity::Write { identity, because } = decided().unwrap() else { panic!("{uid}") };
        assert_eq!(because, ReissueReason::OtherPrefixes);
        held = identity;
        let decided = authorities.client_identity(
            "Gateway shop/web",
            &of_owner(uid),
            Some(&held),
            start(),
            &lifetimes(),
        );
        assert_eq!(decided.unwrap(), ClientIdentity::Keep);
    }
    let mut data = good.to_data();
    data.remove("tls.key");
    assert_eq!(FeedIdentity::from_data(&data), None);
}

#[test]
fn owners_with_long_and_odd_names_get_certificates_that_differ() {
    let authorities = Authorities::new(start(), None, &lifetimes()).unwrap();
    let long = format!("Gateway shop/{}", "w".repeat(253));
    for (one, other) in [
        (long.clone(), format!("{long}x")),
        ("ä".to_owned(), String::new()),
        ("a,CN=b".to_owned(), "c".to_owned()),
    ] {
        let prefixes = prefixes(&["/p/web"]);
        let decided = |owner: &str, held: Option<&FeedIdentity>| {
            authorities.client_identity(owner, &prefixes, held, start(), &lifetimes()).unwrap()
        };
        let ClientIdentity::Write { identity, .. } = decided(&one, None) else { panic!("there is none") };
        assert_eq!(decided(&one, Some(&identity)), ClientIdentity::Keep);
        assert_ne!(decided(&other, Some(&identity)), ClientIdentity::Keep);
    }
}

#[test]
fn a_rotation_waits_for_everybody_or_for_certificates_to_expire() {
    let (lifetimes, now) = (lifetimes(), start());
    let settled = Authorities::new(now, Some("before"), &lifetimes).unwrap();
    let step = |authorities: &Authorities, now, request| authorities.step(now, request, &lifetimes).unwrap();
    for request in [None, Some("before")] {
        assert_eq!(step(&settled, now, request), None);
    }
    let introducing = step(&settled, now, Some("after")).unwrap();
    assert_eq!(introducing.signing(), settled.signing());
    assert_eq!(introducing.trusted().count(), 2);
    assert_eq!(step(&introducing, plus(now, lifetimes.overlap()), Some("after")), None, "nobody was told");

    // A report about a former edition does not count.
    assert_eq!(introducing.confirm_edition(&settled.edition(), now), None);
    let later = plus(now, Duration::from_hours(5));
    let confirmed = introducing.confirm_edition(&introducing.edition(), later).unwrap();
    assert_eq!(confirmed.confirm_edition(&confirmed.edition(), later), None, "the first time counts");
    assert_eq!(step(&confirmed, plus(later, lifetimes.overlap() / 2), Some("after")), None);
    let now = plus(later, lifetimes.overlap());
    let retiring = step(&confirmed, now, Some("after")).unwrap();
    assert_ne!(retiring.signing(), settled.signing());
    assert_eq!(retiring.trusted().last(), Some(settled.signing().certificate()));
    assert_ne!(retiring.edition(), introducing.edition());

    // Or no report comes for the lifetime of a certificate.
    let waited = plus(now, lifetimes.certificate() + lifetimes.overlap());
    assert_eq!(step(&retiring, waited - SignedDuration::from_secs(1), Some("after")), None);
    let last = step(&retiring, waited, Some("after")).unwrap();
    assert_eq!(last.trusted().collect::<Vec<_>>(), [retiring.signing().certificate()]);
    assert_eq!(step(&last, waited, Some("after")), None, "it was heard");
    assert_eq!(step(&last, waited, None), None);

    // By itself, when its time comes; and one that has expired is not waited for.
    let renewal = settled.signing().certificate().renewal();
    assert!(matches!(step(&settled, renewal, None).unwrap().phase(), Phase::Introducing { .. }));
    let expired = plus(start(), lifetimes.authority() + Duration::from_mins(1));
    let fresh = step(&introducing, expired, None).unwrap();
    assert_eq!(fresh.trusted().count(), 1);
    assert!(!fresh.signing().certificate().has_expired(expired));
}

#[test]
fn authorities_are_the_same_after_they_were_written_and_read() {
    let settled = Authorities::new(start(), None, &lifetimes()).unwrap();
    let introducing = settled.step(start(), Some("now"), &lifetimes()).unwrap().unwrap();
    let confirmed = introducing.confirm_edition(&introducing.edition(), start()).unwrap();
    let retiring = confirmed.step(plus(start(), lifetimes().overlap()), None, &lifetimes()).unwrap().unwrap();
    let held = written(&settled, None, start());
    for authorities in [&settled, &introducing, &confirmed, &retiring] {
        let read = Authorities::from_data(&authorities.to_data()).unwrap();
        assert_eq!(&read, authorities);
        assert_eq!(read.edition(), authorities.edition());
        // The parsed authority equals the written one: one issues, and the other keeps.
        let identity = written(&read, Some(&held).filter(|_| authorities.trusted().count() > 2), start());
        assert_eq!(decide(authorities, Some(&identity), start()), None);
    }
}

#[test]
fn an_error_of_a_secret_is_named_without_its_content() {
    let settled = Authorities::new(start(), None, &lifetimes()).unwrap();
    let introducing = settled.step(start(), Some("now"), &lifetimes()).unwrap().unwrap();
    let other = Authorities::new(start(), None, &lifetimes()).unwrap();
    let leaf = written(&settled, None, start());
    let good = introducing.to_data();
    let of =
        |data: &BTreeMap<String, ByteString>, name: &str| String::from_utf8(data[name].0.clone()).unwrap();
    let canary = of(&good, "tls.key").lines().nth(1).unwrap().to_owned();
    for (key, content, problem) in [
        ("tls.crt", None, "is missing"),
        ("tls.key", None, "is missing"),
        ("next.key", None, "is missing"),
        ("rotation.json", None, "is missing"),
        ("rotation.json", Some(canary.clone()), "does not say"),
        ("tls.crt", Some(canary.clone()), "is not one certificate"),
        ("tls.crt", Some(introducing.bundle()), "is not one certificate"),
        ("tls.crt", Some(leaf.certificate().to_owned()), "is not the certificate of an authority"),
        ("tls.key", Some(canary.clone()), "is not a private key"),
        ("tls.key", Some(of(&other.to_data(), "tls.key")), "is not the key of the certificate"),
        ("next.key", Some(of(&good, "tls.key")), "is not the key of the certificate"),
    ] {
        let mut data = good.clone();
        match content {
            None => data.remove(key),
            Some(content) => data.insert(key.to_owned(), ByteString(content.into_bytes())),
        };
        let error = Authorities::from_data(&data).unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(error.key == key && text.contains(problem), "{key}: {error}");
        assert!(!text.contains(&canary), "{text}");
    }
    assert!(Authorities::from_data(&BTreeMap::new()).is_err());
}

#[test]
fn an_authority_that_somebody_else_made_is_refused() {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let mut data = Authorities::new(start(), None, &lifetimes()).unwrap().to_data();
    data.insert("tls.crt".to_owned(), ByteString(params.self_signed(&key).unwrap().pem().into_bytes()));
    data.insert("tls.key".to_owned(), ByteString(key.serialize_pem().into_bytes()));
    let error = Authorities::from_data(&data).unwrap_err();
    assert_eq!(
        error.to_string(),
        "its key tls.crt is not a certificate that this controller has made for an authority"
    );
}

#[test]
fn keys_are_never_shown() {
    let authorities = Authorities::new(start(), None, &lifetimes()).unwrap();
    let introducing = authorities.step(start(), Some("now"), &lifetimes()).unwrap().unwrap();
    let identity = written(&introducing, None, start());
    let server = server(&introducing, start());
    let decision = ClientIdentity::Write { identity: identity.clone(), because: ReissueReason::Missing };
    let shown = format!("{introducing:?} {identity:?} {server:?} {decision:?} {:?}", server.tls());
    let data = introducing.to_data();
    for key in [identity.key().as_bytes(), &data["tls.key"].0, &data["next.key"].0] {
        let key = std::str::from_utf8(key).unwrap();
        let secrets = key.lines().filter(|line| !line.contains("-----"));
        assert!(secrets.clone().count() > 1);
        for secret in secrets {
            assert!(!shown.contains(secret));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn data_planes_are_told_what_to_hold_and_what_they_hold_is_kept() {
    let server = crate::fixture::api_server::ApiServer::default();
    let name = pingsix_translate::ObjectName::new("home", "feed-authority");
    let (reconciler, authority) = super::start(server.client(), AuthorityOptions::new(name, "feed"));
    let prefixes = prefixes(&["/p/web"]);
    assert!(matches!(authority.issue("web", &prefixes, None), Err(IdentityError::Unknown)));
    let stop = tokio_util::sync::CancellationToken::new();
    let mut changes = authority.changes();
    let running = tokio::spawn(
        stop.clone().run_until_cancelled_owned(reconciler.run(crate::leader::Leadership::always())),
    );
    changes.changed().await.unwrap();
    let held = authority.issue("web", &prefixes, None).unwrap();
    assert!(held.renewal.is_some() && held.edition == authority.authorities().unwrap().edition());
    assert_eq!(authority.issue("web", &prefixes, Some(&held.identity)).unwrap(), held);
    let own = FeedIdentity::new(held.identity.ca_bundle(), "", "");
    assert_ne!(authority.issue("web", &prefixes, Some(&own)).unwrap().identity, own);
    stop.cancel();
    running.await.unwrap();
}

/// A replica of the server: its copy of the authorities, and its certificate.
struct Server {
    known: Authorities,
    identity: ServerIdentity,
    /// Since when there is something that it does not know.
    behind: Option<Timestamp>,
}

/// A data plane: what its Secret holds, and what its files hold.
struct Plane {
    secret: FeedIdentity,
    files: FeedIdentity,
    behind: Option<Timestamp>,
    /// Whether its Secret cannot be written.
    is_blocked: bool,
}

struct Simulation {
    /// The lifetimes by which the leader makes steps.
    rules: Lifetimes,
    now: Timestamp,
    authorities: Authorities,
    request: String,
    servers: Vec<Server>,
    planes: Vec<Plane>,
    /// When the leader last looked.
    looked: Timestamp,
}

impl Simulation {
    fn begin(rules: Lifetimes) -> Self {
        let (now, lifetimes) = (start(), lifetimes());
        let authorities = Authorities::new(now, None, &lifetimes).unwrap();
        let server =
            || Server { known: authorities.clone(), identity: server(&authorities, now), behind: None };
        let servers = vec![server(), server()];
        let mut simulation = Self {
            rules,
            now,
            authorities: authorities.clone(),
            request: String::new(),
            servers,
            planes: vec![],
            looked: now,
        };
        simulation.plane();
        simulation.plane();
        simulation
    }

    fn plane(&mut self) {
        let secret = written(&self.authorities, None, self.now);
        self.planes.push(Plane { files: secret.clone(), secret, behind: None, is_blocked: false });
    }

    fn become_(&mut self, authorities: Authorities) {
        self.authorities = authorities;
        for server in &mut self.servers {
            server.behind.get_or_insert(self.now);
        }
    }

    fn look(&mut self) {
        self.looked = self.now;
        let request = Some(self.request.as_str()).filter(|request| !request.is_empty());
        if let Some(next) = self.authorities.step(self.now, request, &self.rules).unwrap() {
            self.become_(next);
        }
    }

    /// The provisioner goes through some data planes; when there is none left that a rotation waits for, it says so.
    fn provision(&mut self, planes: usize) {
        for (number, plane) in self.planes.iter_mut().enumerate() {
            let Some((identity, _)) = decide(&self.authorities, Some(&plane.secret), self.now) else {
                continue;
            };
            if number < planes && !plane.is_blocked {
                plane.secret = identity;
                plane.behind.get_or_insert(self.now);
            }
        }
        if !self.planes.iter().any(|plane| self.authorities.waits_for(&plane.secret, self.now))
            && let Some(confirmed) = self.authorities.confirm_edition(&self.authorities.edition(), self.now)
        {
            self.become_(confirmed);
        }
    }

    fn wait(&mut self, time: Duration) {
        self.now = plus(self.now, time);
        let limit = SignedDuration::try_from(lifetimes().overlap()).unwrap();
        let is_late = |behind: Option<Timestamp>| behind.is_some_and(|since| self.now >= since + limit);
        for server in &mut self.servers {
            if is_late(server.behind) {
                server.know(&self.authorities);
            }
            server.renew(self.now);
        }
        for plane in &mut self.planes {
            if is_late(plane.behind) {
                plane.sync();
            }
        }
        // There is a leader now and then.
        if self.now >= plus(self.looked, lifetimes().certificate()) {
            self.look();
        }
    }

    /// A refusal between processes that follow the rules.
    fn refusal(&self) -> Option<String> {
        for server in &self.servers {
            for plane in &self.planes {
                let certificate = Certificate::read(plane.files.certificate()).unwrap();
                // A process without a renewal for so long has broken the rules.
                if certificate.has_expired(self.now) {
                    continue;
                }
                let (shown, phase) = (&server.identity.certificate, self.authorities.phase_name());
                if !accepts_server(plane.files.ca_bundle(), shown, self.now) {
                    return Some(format!("{phase}: a client refuses {shown:?}"));
                }
                if !server.known.accept_client(&certificate, self.now) {
                    return Some(format!("{phase}: a server refuses {certificate:?}"));
                }
            }
        }
        None
    }
}

impl Server {
    fn know(&mut self, authorities: &Authorities) {
        self.known = authorities.clone();
        self.behind = None;
    }

    fn renew(&mut self, now: Timestamp) {
        if !self.identity.is_good(&self.known, now) {
            self.identity = server(&self.known, now);
        }
    }
}

impl Plane {
    fn sync(&mut self) {
        self.files = self.secret.clone();
        self.behind = None;
    }
}

/// Lives through any events at any times; how often another authority came to sign, or who refused another.
fn live(seed: u64, rules: Lifetimes) -> Result<usize, String> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut simulation = Simulation::begin(rules);
    let (mut signing, mut rotations) = (simulation.authorities.signing().clone(), 0);
    // Some have a provisioner that is hardly ever there.
    let busy = rng.random_range(1..=8);
    for _ in 0..150 {
        match rng.random_range(0..15) {
            0..=2 => simulation.wait(Duration::from_mins(rng.random_range(0..90))),
            3 => simulation.wait(Duration::from_hours(rng.random_range(0..12))),
            4 => simulation.wait(Duration::from_hours(rng.random_range(0..30))),
            5 | 6 => simulation.look(),
            7 => {
                let server = rng.random_range(0..simulation.servers.len());
                let (authorities, now) = (simulation.authorities.clone(), simulation.now);
                simulation.servers[server].know(&authorities);
                simulation.servers[server].renew(now);
            }
            8 => {
                let plane = rng.random_range(0..simulation.planes.len());
                simulation.planes[plane].sync();
            }
            9 => simulation.request = rng.random_range(0..1_000_000).to_string(),
            10 if simulation.planes.len() < 4 => simulation.plane(),
            11 => {
                let plane = rng.random_range(0..simulation.planes.len());
                simulation.planes[plane].is_blocked = rng.random_range(0..3) == 0;
            }
            _ if rng.random_range(0..8) < busy => {
                let planes = rng.random_range(0..=simulation.planes.len() + 3);
                simulation.provision(planes);
            }
            _ => {}
        }
        if let Some(refusal) = simulation.refusal() {
            return Err(format!("seed {seed}, {refusal}"));
        }
        if *simulation.authorities.signing() != signing {
            signing = simulation.authorities.signing().clone();
            rotations += 1;
        }
    }
    Ok(rotations)
}

#[test]
fn peers_that_keep_to_the_rules_never_refuse_each_other() {
    let rotations: usize = (0..8).map(|seed| live(seed, lifetimes()).unwrap()).sum();
    assert!(rotations > 8, "{rotations} rotations show little");
}

#[test]
fn a_leader_that_does_not_wait_is_found_out() {
    let second = Duration::from_secs(1);
    let hasty = Lifetimes::new(lifetimes().authority(), second, Duration::ZERO).unwrap();
    assert!((0..16).any(|seed| live(seed, hasty).is_err()));
}
