//! An embedded server in a process of its own (this program again), whose time and memory nobody shares.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use pingsix_sink::embedded::Pace;
use pingsix_sink::{EmbeddedEtcd, Sink as _};
use tokio::sync::mpsc;
use tonic::transport::Channel;

use crate::process;
use crate::routes::Routes;
use crate::wire::Served;

/// The first argument of such a process.
pub(crate) const MODE: &str = "server";

/// How often it tells a watch of changes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pacing {
    Default,
    None,
}

/// How many publications it remembers for watches.
pub(crate) const HISTORY: usize = 256;

/// A server that is measured. Ends with this value.
pub(crate) struct Server {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start(routes: usize, pacing: Pacing) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([MODE, &routes.to_string(), &format!("{pacing:?}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (orders, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut server = Self { child, orders, answers: BufReader::new(answers), address: String::new() };
        server.address = server.read();
        server
    }

    fn read(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// Has it change one route, and says in which revision.
    pub(crate) fn change(&mut self, number: usize) -> i64 {
        writeln!(self.orders, "{number}").unwrap();
        self.read().parse().unwrap()
    }

    pub(crate) async fn channel(&self) -> Channel {
        Channel::from_shared(format!("http://{}", self.address)).unwrap().connect().await.unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn memory(&self) -> u64 {
        process::memory(self.pid())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What such a process does.
pub(crate) async fn run(count: usize, pacing: &str) {
    let pace = if pacing == "None" { Pace::NONE } else { Pace::default() };
    let mut routes = Routes::new(count);
    let served = Served::start(EmbeddedEtcd::builder().pace(pace).history(HISTORY, 64 << 20)).await;
    served.etcd.publish(&routes.desired()).await.unwrap();
    served.etcd.open();
    say(&served.address.to_string());
    let (sender, mut orders) = mpsc::channel(1);
    // A thread that waits for orders and takes no time.
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            let Ok(number) = line.unwrap_or_default().parse::<usize>() else { break };
            if sender.blocking_send(number).is_err() {
                break;
            }
        }
    });
    while let Some(number) = orders.recv().await {
        routes.change(number);
        let revision = served.etcd.publish(&routes.desired()).await.unwrap().revision;
        say(&revision.get().to_string());
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}
