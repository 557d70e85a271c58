//! The cost of a change on a real API server: the time from its answer to the bytes at a client that watches the feed,
//! and the processor time and memory of the controller.
//!
//! The controller runs in its own process (this program again), so the figures are its own. Needs the test cluster
//! (`just cluster`); `cargo bench -p pingsix-gateway-api --features controller --bench live [-- ROUTES ...]`.
//!
//! HTTPRoutes have one rule each, on ten Services of one Gateway, as in the figures recorded in `docs/results`.
//! `-- neighbours` measures the mutual cost of many Gateways only (`neighbours.rs`).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a measurement that cannot go on fails"
)]

mod controller;
mod neighbours;
mod process;
mod reader;
mod samples;
mod subject;

use std::path::Path;
use std::time::{Duration, Instant};

use pingsix_test_cluster::TestCluster;

use controller::Controlled;
use reader::Reader;
use samples::Samples;
use subject::Subject;

/// The number of measured changes of each kind.
const CHANGES: usize = 60;

/// The number of watching clients in the rows with many.
const CLIENTS: usize = 100;

/// For how long nothing changes after a change, for each route of the largest number: longer than the feed lets a watch
/// rest, so that each change is one by itself. It is the same for the smaller numbers, for what has to wait finds the
/// caches of the processor filled by others, and that has nothing to do with how many routes there are.
const QUIET_TIME_PER_ROUTE: Duration = Duration::from_micros(40);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    if let [mode, kubeconfig] = &arguments[..]
        && mode == controller::MODE
    {
        runtime.block_on(controller::run(kubeconfig));
        return;
    }
    if arguments.iter().any(|argument| argument == neighbours::MODE) {
        runtime.block_on(neighbours::measure());
        return;
    }
    let counts: Vec<usize> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    let counts = if counts.is_empty() { vec![100, 1000, 3000] } else { counts };
    runtime.block_on(measure(&counts));
}

async fn measure(counts: &[usize]) {
    let rest = Duration::from_millis(10)
        + QUIET_TIME_PER_ROUTE * u32::try_from(counts.iter().copied().max().unwrap_or_default()).unwrap();
    println!("| routes | what | p50 | p95 | max | CPU per change |");
    println!("|---|---|---|---|---|---|");
    for &count in counts {
        let Some(cluster) = TestCluster::builder().start_or_skip().await else { return };
        let subject = Subject::new(cluster.admin());
        subject.create(count).await;
        let kubeconfig = cluster.kubeconfig(cluster.administrator()).unwrap();
        // The first start writes all statuses. The second one finds them, so its lists are as long as usual.
        drop(start(&subject, &kubeconfig, count, "first start").await);
        let (controlled, mut reader) = start(&subject, &kubeconfig, count, "restart").await;
        report(
            count,
            "one route changed",
            &controlled,
            &change_routes(&controlled, &subject, &mut reader, count, "changed", rest).await,
        );
        controlled.settle().await;
        report(
            count,
            "one endpoint changed",
            &controlled,
            &change_endpoints(&controlled, &subject, &mut reader, rest).await,
        );
        let mut others = Vec::new();
        for _ in 1..CLIENTS {
            others.push(Reader::open(&controlled.address, subject::PREFIX, count).await);
        }
        controlled.settle().await;
        report(
            count,
            &format!("one route changed, {CLIENTS} clients"),
            &controlled,
            &change_routes(&controlled, &subject, &mut reader, count, "told", rest).await,
        );
        drop(others);
        controlled.settle().await;
        reader.drain();
        let before = controlled.cpu();
        let noise = subject.annotate(CHANGES, count).await;
        controlled.settle().await;
        let events = reader.drain();
        println!(
            "| {count} | annotation changed ({noise}) | {events} watch responses | | | {:?} |",
            controlled.cpu().saturating_sub(before) / u32::try_from(CHANGES).unwrap()
        );
        println!("| {count} | peak RSS | {} MB | | | |", megabytes(controlled.memory().peak));
    }
}

/// Starts a controller, and reports its time to the first list of the feed beside the API server's own list of routes,
/// and its peak beside its resident memory at rest.
async fn start(subject: &Subject, kubeconfig: &Path, count: usize, what: &str) -> (Controlled, Reader) {
    let (list, bytes) = subject.list_routes().await;
    println!("| {count} | {what}: the API server's own list, {} MB | {list:.0?} | | | |", bytes / 1_000_000);
    let started = Instant::now();
    let controlled = Controlled::start(kubeconfig).await;
    let reader = Reader::open(&controlled.address, subject::PREFIX, count).await;
    let ready = started.elapsed();
    println!(
        "| {count} | {what}: first list of the feed, {:.2} times | {ready:.2?} | | | {:.2?} in all |",
        ready.as_secs_f64() / list.as_secs_f64(),
        controlled.cpu()
    );
    let peak = megabytes(controlled.memory().peak);
    // The work after the start, mainly statuses, is not part of any change.
    controlled.settle().await;
    let resident = megabytes(controlled.memory().resident);
    println!(
        "| {count} | {what}: peak RSS, {:.2} times that of rest | {} MB | | | |",
        f64::from(peak) / f64::from(resident),
        peak / 1_000_000
    );
    (controlled, reader)
}

fn megabytes(bytes: u64) -> u32 {
    u32::try_from(bytes / 1_000_000).unwrap()
}

/// Samples with the processor time that they took.
struct Measured {
    samples: Samples,
    cpu_before: Duration,
}

fn report(count: usize, what: &str, controlled: &Controlled, measured: &Measured) {
    let Measured { samples, cpu_before } = measured;
    let changes = u32::try_from(samples.len()).unwrap();
    let cpu = controlled.cpu().saturating_sub(*cpu_before) / changes;
    println!(
        "| {count} | {what} | {:.1?} | {:.1?} | {:.1?} | {cpu:.2?} |",
        samples.percentile(50),
        samples.percentile(95),
        samples.percentile(100)
    );
}

async fn change_routes(
    controlled: &Controlled,
    subject: &Subject,
    reader: &mut Reader,
    count: usize,
    word: &str,
    rest: Duration,
) -> Measured {
    let cpu_before = controlled.cpu();
    let mut samples = Samples::default();
    for change in 0..CHANGES {
        let path = format!("/{word}-{change}");
        let answered = subject.change_route(change * 7 % count, &path).await;
        samples.push(reader.arrival(&path).await.0 - answered);
        tokio::time::sleep(rest).await;
    }
    Measured { samples, cpu_before }
}

async fn change_endpoints(
    controlled: &Controlled,
    subject: &Subject,
    reader: &mut Reader,
    rest: Duration,
) -> Measured {
    let cpu_before = controlled.cpu();
    let mut samples = Samples::default();
    for change in 0..CHANGES {
        let address = format!("10.9.{}.{}", change / 200, 1 + change % 200);
        let answered = subject.change_endpoint(change % subject::SERVICES, &address).await;
        samples.push(reader.arrival(&address).await.0 - answered);
        tokio::time::sleep(rest).await;
    }
    Measured { samples, cpu_before }
}
