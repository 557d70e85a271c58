//! An adversary for requests: random sites with protected parts, translated and served by the real PingSIX, and clients
//! that spell requests for these parts in every way, without what the parts demand.
//!
//! A judge that shares no code with translation says which requests a backend may get (`site.rs`, `reading.rs`,
//! `judge.rs`). A request that got further fails the test, unless `limits.yaml` lists its spelling.
//!
//! `HOSTILE_REQUESTS` is the number of requests, and `CONTRACT_SEED` decides about all of them. `HOSTILE_SITE` is the
//! first site, so that a violation is seen again at once.

mod attack;
mod backend;
mod bench;
mod judge;
mod limits;
mod manifests;
mod reading;
mod reported;
mod site;
mod spellings;
mod wire;
mod world;

use std::collections::BTreeMap;
use std::env;

use attack::Attack;
use bench::Bench;
use limits::{known, limits};
use reported::ReportedViolation;
use site::{PathMatch, Site};

use crate::client::Protocol;
use crate::rng::SeededRng;
use crate::run::{binary, print_message, seed};

/// The requests for one site.
const REQUESTS_PER_SITE: usize = 150;

/// From so many requests on, each limit of the list has to be seen.
const LONG_RUN_REQUESTS: usize = 50_000;

/// The number of requests for which it is enough that each violation is reported; the smallest form of more is not
/// sought.
const MAX_MINIMIZED_VIOLATIONS: usize = 12;

#[derive(Debug, Default)]
struct Tally {
    requests: usize,
    sites: usize,
    /// Drafts that their protocol cannot carry.
    unsendable: usize,
    unanswered: usize,
    statuses: BTreeMap<u16, usize>,
    reached: usize,
    controls: usize,
    limits: BTreeMap<String, usize>,
}

/// A number of the environment.
fn number(name: &str, otherwise: usize) -> usize {
    env::var(name).map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_without_the_demanded_credentials_reaches_a_protected_part() {
    const TEST: &str = "hostile";
    let Some(binary) = binary(TEST) else { return };
    let (wanted, limits) = (number("HOSTILE_REQUESTS", 3_000), limits());
    let first_site = number("HOSTILE_SITE", 0);
    let mut bench = Bench::start(&binary).await;
    let mut tally = Tally::default();
    let mut reported: BTreeMap<String, ReportedViolation> = BTreeMap::new();
    while tally.requests < wanted {
        let at = first_site + tally.sites;
        let mut rng = SeededRng::new(seed(), at);
        let site = Site::draw(&mut rng);
        bench.publish(&site).await;
        tally.sites += 1;
        for _ in 0..REQUESTS_PER_SITE {
            let attack = Attack::draw(&mut rng, &site);
            tally.requests += 1;
            let Some((exchange, violation, is_mixed_up)) = bench.attack(&site, &attack).await else {
                tally.unsendable += 1;
                continue;
            };
            match &exchange.reply {
                Ok(reply) => *tally.statuses.entry(reply.status).or_default() += 1,
                Err(_) => tally.unanswered += 1,
            }
            tally.reached += usize::from(exchange.received.is_some());
            if is_mixed_up {
                let violation_report =
                    ReportedViolation::new("the backend answers another request", &site, &attack, &exchange);
                reported.entry(format!("mixed up: {:?}", attack.names())).or_insert(violation_report);
            }
            let visitor = attack.draft(&site).visitor;
            let Some(violation) = violation.filter(|_| !exchange.is_violation_of_earlier(&site, &visitor))
            else {
                continue;
            };
            let service = exchange.received.unwrap().service;
            let (attack, violation, service) = reduce(&mut bench, &site, attack, (violation, service)).await;
            if let Some(limit) = known(&limits, &site, &attack, &violation, &service) {
                *tally.limits.entry(limit.name.clone()).or_default() += 1;
                continue;
            }
            let key = ReportedViolation::key(&site, &attack, &violation);
            if let Some(violation_report) = reported.get_mut(&key) {
                violation_report.seen += 1;
                continue;
            }
            let violation_report = if reported.len() < MAX_MINIMIZED_VIOLATIONS {
                let violation_report = smallest(&mut bench, &site, &attack).await;
                bench.publish(&site).await;
                violation_report
            } else {
                bench
                    .attack(&site, &attack)
                    .await
                    .map(|(exchange, ..)| ReportedViolation::new(&key, &site, &attack, &exchange))
            };
            if let Some(mut violation_report) = violation_report {
                violation_report.place = format!("seed {}, site {at}, request {}", seed(), tally.requests);
                reported.insert(key, violation_report);
            }
        }
        check_controls(&mut bench, &mut rng, &site, &mut tally, &mut reported).await;
    }
    let unseen: Vec<&str> = limits
        .iter()
        .map(|limit| limit.name.as_str())
        .filter(|name| !tally.limits.contains_key(*name))
        .collect();
    print_message(&format!("{TEST}: {tally:?}, limits not seen: {unseen:?}, seed {}", seed()));
    let report: Vec<String> =
        reported.iter().map(|(key, violation_report)| format!("## {key}\n{violation_report}")).collect();
    assert!(reported.is_empty(), "{} findings:\n{}", reported.len(), report.join("\n"));
    assert!(
        wanted < LONG_RUN_REQUESTS || unseen.is_empty(),
        "limits that nothing shows any more: {unseen:?}"
    );
    assert!(tally.controls > 0 && tally.reached > 0, "{tally:?}");
}

/// The attack with those spellings alone that it needs, and its violation.
async fn reduce(
    bench: &mut Bench,
    site: &Site,
    mut attack: Attack,
    (mut violation, mut service): (judge::Violation, String),
) -> (Attack, judge::Violation, String) {
    // A cache would answer shorter requests with the response to a longer one.
    if site.cached
        && let Some((exchange, Some(still), _)) = bench.attack(site, &attack.fresh()).await
    {
        (attack, violation, service) = (attack.fresh(), still, exchange.received.unwrap().service);
    }
    let mut spelling = 0;
    while spelling < attack.spellings.len() {
        let mut fewer = None;
        // A second host may stand for another one of the part.
        for shorter in [attack.without(spelling), attack.without(spelling).for_next_host()] {
            let mut answer = bench.attack(site, &shorter).await;
            // The request before may have closed the connection.
            if answer.as_ref().is_some_and(|(exchange, ..)| exchange.reply.is_err()) {
                answer = bench.attack(site, &shorter).await;
            }
            if let Some((exchange, Some(still), _)) = answer {
                fewer = Some((shorter, still, exchange.received.unwrap().service));
                break;
            }
        }
        match fewer {
            // Without this one, an earlier one may be needless too.
            Some(fewer) => ((attack, violation, service), spelling) = (fewer, 0),
            None => spelling += 1,
        }
    }
    (attack, violation, service)
}

/// The attack on the smallest site that shows a violation of it.
async fn smallest(bench: &mut Bench, site: &Site, attack: &Attack) -> Option<ReportedViolation> {
    let (mut site, mut attack) = (site.clone(), attack.clone());
    let mut part = 0;
    while part < site.parts.len() {
        let mut fewer = site.clone();
        fewer.parts.remove(part);
        let moved = attack.after_removal(part);
        if part != attack.part {
            bench.publish(&fewer).await;
            if let Some((_, Some(_), _)) = bench.attack(&fewer, &moved).await {
                (site, attack) = (fewer, moved);
                continue;
            }
        }
        part += 1;
    }
    bench.publish(&site).await;
    let (exchange, violation, _) = bench.attack(&site, &attack).await?;
    Some(ReportedViolation::new(&format!("{violation:?}"), &site, &attack, &exchange))
}

/// Clients that meet the demands are served as they ask, also after all attacks: by the Service, the host and the path of
/// their request.
async fn check_controls(
    bench: &mut Bench,
    rng: &mut SeededRng,
    site: &Site,
    tally: &mut Tally,
    reported: &mut BTreeMap<String, ReportedViolation>,
) {
    for (index, part) in site.parts.iter().enumerate() {
        // PingSIX serves no expressions, and nothing under a demand that it cannot check.
        let is_served = !matches!(part.path, PathMatch::Regex { .. }) && part.path.is_written_as_sent();
        if !is_served || part.demands.contains(&site::Demand::Impossible) {
            continue;
        }
        for protocol in [Protocol::Http1, Protocol::HttpsHttp2] {
            let draft = Attack::control(rng, site, index, protocol);
            let holder = site.part_of(&draft.hosts[0], &reading::normal_path(&draft.path), &draft.method);
            if holder != Some(index) || site.is_closed(index, &draft.hosts[0]) {
                continue;
            }
            let (_, exchange) = bench.send(&draft).await.unwrap();
            tally.controls += 1;
            let is_right = exchange.received.as_ref().is_some_and(|received| {
                let path =
                    matches!(part.path, PathMatch::Stripped { .. }) || received.target == draft.target();
                let host = received.header("host") == Some(draft.hosts[0].as_str());
                received.service == part.service && path && host
            });
            if !is_right {
                let key = format!("an ordinary client is not served: {:?} {:?}", site.dialect, part.path);
                let violation_report = ReportedViolation::of_control(site, &draft, &exchange, index);
                reported.entry(key).or_insert(violation_report);
            }
        }
    }
}
