//! Delivery by ratios: the embedded server beside Debian's etcd with the same keys in the same run.
//!
//! `PINGSIX_BIN=/path/to/pingsix cargo bench -p pingsix-sink --bench delivery [-- ROUTES ...]`, with
//! `DELIVERY_ROUNDS` (5). Without PingSIX or etcd, the measurements that need them are left out with a message. The
//! output is a table in Markdown. Absolute times are context: arms take turns, and the result is the ratio of each
//! round, as the median with its extremes.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a measurement that cannot go on fails"
)]

#[path = "../../tests/support/child_process.rs"]
mod child_process;
#[path = "../../tests/support/gateway.rs"]
mod gateway;
#[path = "../../tests/support/wire.rs"]
mod wire;

mod churn;
mod pingsix;
mod process;
mod published;
mod ratio;
mod relist;
mod routes;
mod server;
mod servers;
mod size;
mod watchers;

use std::time::Instant;

/// Number of rounds for each arm.
fn rounds() -> usize {
    std::env::var("DELIVERY_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [mode, count, pacing] = &arguments[..]
        && mode == server::SERVER_ARGUMENT
    {
        // One thread, so that the time of the process is that of the server.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(server::run(count.parse().unwrap(), pacing));
        return;
    }
    let sizes: Vec<usize> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![1_000, 5_000, 10_000] } else { sizes };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(measure(&sizes));
}

async fn measure(sizes: &[usize]) {
    let started = Instant::now();
    println!("| bar | routes | what | measured | ratio: median (extremes) | to be |");
    println!("|---|---|---|---|---|---|");
    for size in sizes {
        if let Some(mut servers) = servers::Servers::start(*size).await {
            let one = published::one_change(&mut servers).await;
            published::burst(&mut servers).await;
            churn::churn(&mut servers, one).await;
        }
    }
    let largest = *sizes.iter().max().unwrap();
    size::bytes_and_events(largest).await;
    relist::relist(largest).await;
    watchers::cost(largest).await;
    println!("\n{} rounds, {:.0?} in all.", rounds(), started.elapsed());
}
