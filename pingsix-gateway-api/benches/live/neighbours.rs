//! The mutual cost of Gateways: an endpoint of a Service that many of them share, and the changes of one beside others
//! at full load.

use std::sync::Arc;
use std::time::Duration;

use pingsix_test_cluster::TestCluster;
use tokio::task::JoinSet;

use super::controller::Controlled;
use super::reader::Reader;
use super::samples::Samples;
use super::subject::{self, Subject};

/// The argument that asks for this.
pub(crate) const MODE: &str = "neighbours";

/// The number of Gateways that share a Service.
const GATEWAYS: usize = 300;

/// The number of routes of the measured Gateway, and of each Gateway at full load.
const QUIET_ROUTES: usize = 100;
const FULL_LOAD_ROUTES: usize = 3_000;

/// The number of changes in a row, and of rows.
const CHANGES: usize = 60;
const ROUNDS: usize = 3;

/// A class of another controller: its Gateways cost the API server as much, and cost this controller nothing.
const FOREIGN: &str = "foreign";

pub(crate) async fn measure() {
    let Some(cluster) = TestCluster::builder().start_or_skip().await else { return };
    println!("| what | p50 | p95 | max | CPU per change |");
    println!("|---|---|---|---|---|");
    let subject = Arc::new(Subject::new(cluster.admin()));
    subject.create(QUIET_ROUTES).await;
    for index in 0..GATEWAYS {
        subject.add_gateway(&format!("g{index}"), "pingsix", 1).await;
    }
    let kubeconfig = cluster.kubeconfig(cluster.administrator()).unwrap();
    {
        let controlled = Controlled::start(&kubeconfig).await;
        shared(&controlled, &subject).await;
    }
    for name in ["burning-0", "burning-1", "burning-2"] {
        subject.add_gateway(name, "pingsix", FULL_LOAD_ROUTES).await;
    }
    subject.add_gateway("foreign-0", FOREIGN, 0).await;
    subject.add_gateway("foreign-1", FOREIGN, 0).await;
    subject.add_gateway("foreign-2", FOREIGN, 0).await;
    let controlled = Controlled::start(&kubeconfig).await;
    burning(&controlled, &subject).await;
}

/// Until the last of the Gateways has an endpoint.
async fn shared(controlled: &Controlled, subject: &Subject) {
    let mut readers = Vec::new();
    for index in 0..GATEWAYS {
        readers.push(Reader::open(&controlled.address, &format!("/pingsix/default/g{index}"), 1).await);
    }
    controlled.settle().await;
    let (mut first, mut last, before) = (Samples::default(), Samples::default(), controlled.cpu());
    for change in 0..CHANGES {
        let address = format!("10.7.{}.{}", change / 200, 1 + change % 200);
        let answered = subject.change_endpoint(0, &address).await;
        let mut arrivals = Vec::new();
        for reader in &mut readers {
            arrivals.push(reader.arrival(&address).await.0 - answered);
        }
        first.push(*arrivals.iter().min().unwrap());
        last.push(*arrivals.iter().max().unwrap());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let cpu = controlled.cpu().saturating_sub(before) / u32::try_from(CHANGES).unwrap();
    row(&format!("an endpoint of {GATEWAYS} Gateways, at the first"), &first, "");
    row(&format!("an endpoint of {GATEWAYS} Gateways, at the last"), &last, &format!("{cpu:.1?}"));
}

/// Changes of a route beside Gateways at full load, and beside as many Gateways of the foreign class.
async fn burning(controlled: &Controlled, subject: &Arc<Subject>) {
    let mut reader = Reader::open(&controlled.address, subject::PREFIX, QUIET_ROUTES).await;
    controlled.settle().await;
    for count in [1, 3] {
        let [mut alone, mut beside] = [Samples::default(), Samples::default()];
        let mut cpu = [Duration::ZERO; 2];
        for round in 0..ROUNDS {
            let arms = [("foreign", &mut alone), ("burning", &mut beside)];
            for ((arm, samples), cpu) in arms.into_iter().zip(&mut cpu) {
                let mut others = JoinSet::new();
                for index in 0..count {
                    let subject = Arc::clone(subject);
                    others.spawn(async move {
                        for port in 0.. {
                            subject.change_gateway(&format!("{arm}-{index}"), 1000 + port % 10_000).await;
                        }
                    });
                }
                tokio::time::sleep(Duration::from_secs(2)).await;
                let before = controlled.cpu();
                for change in 0..CHANGES {
                    let path = format!("/{arm}-{count}-{round}-{change}");
                    let answered = subject.change_route(change * 7 % QUIET_ROUTES, &path).await;
                    samples.push(reader.arrival(&path).await.0 - answered);
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                *cpu += controlled.cpu().saturating_sub(before);
                others.shutdown().await;
                controlled.settle().await;
            }
        }
        let per_change = |cpu: Duration| format!("{:.1?}", cpu / u32::try_from(CHANGES * ROUNDS).unwrap());
        row(&format!("one route changed beside {count} Gateways of nobody"), &alone, &per_change(cpu[0]));
        row(&format!("one route changed beside {count} burning Gateways"), &beside, &per_change(cpu[1]));
        let ratio = beside.percentile(95).as_secs_f64() / alone.percentile(95).as_secs_f64();
        println!("| ratio of p95, {count} burning | | {ratio:.2} | | |");
    }
}

fn row(what: &str, samples: &Samples, cpu: &str) {
    let [p50, p95, max] = [50, 95, 100].map(|percent| samples.percentile(percent));
    println!("| {what} | {p50:.1?} | {p95:.1?} | {max:.1?} | {cpu} |");
}
