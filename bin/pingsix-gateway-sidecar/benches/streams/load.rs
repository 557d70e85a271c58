//! Loads and backends: this program again, with one thread.
//!
//! A load gives one line of numbers, or answers commands. It ends with its input, and therefore with its parent.

mod backends;
mod changes;
mod connections;
mod datagrams;
mod exchanges;
mod idle;
mod tls;

pub(crate) use changes::{PREFIX, ROUTES, name};
pub(crate) use idle::{PLAIN, TLS};

use std::future::Future;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

/// The bytes of one message.
pub(crate) const MESSAGE_BYTES: usize = 64;
/// The time that a load may take besides its measurement.
const MAX_OVERHEAD: Duration = Duration::from_secs(20);

pub(crate) fn run(name: &str, arguments: &[String]) {
    let commands = commands();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let address = || arguments[0].parse::<SocketAddr>().unwrap();
    let tasks = tokio::task::LocalSet::new();
    runtime.block_on(tasks.run_until(async {
        match name {
            "echo" => backends::echo().await,
            "datagrams-echo" => backends::datagrams(|_| {}),
            "dns" => backends::datagrams(backends::answer_query),
            "http" => backends::http().await,
            "exchanges" => measure(exchanges::run(address())).await,
            "connections" => measure(connections::plain(address())).await,
            "hellos" => measure(connections::hellos(address())).await,
            "handshakes" => measure(connections::handshakes(address())).await,
            "https" => measure(connections::https(address())).await,
            "datagrams" => measure(datagrams::run(address())).await,
            "idle" => idle::run(address(), arguments[1].parse().unwrap(), commands).await,
            "changes" => {
                let certificates = arguments[1].parse().unwrap();
                changes::run(arguments[0].parse().unwrap(), certificates, commands).await;
            }
            _ => panic!("there is no load {name}"),
        }
    }));
}

/// Prints the numbers of a load.
async fn measure(load: impl Future<Output = Vec<f64>>) {
    let numbers =
        tokio::time::timeout(crate::duration() + MAX_OVERHEAD, load).await.expect("the load has an end");
    let numbers: Vec<String> = numbers.iter().map(f64::to_string).collect();
    println!("{}", numbers.join(" "));
}

/// The end of a measurement that begins now.
fn end() -> Instant {
    Instant::now() + crate::duration()
}

/// The lines of the input, at whose end this process ends.
fn commands() -> mpsc::UnboundedReceiver<String> {
    let (sender, commands) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
        std::process::exit(0);
    });
    commands
}
