//! A checker of the answers to requests without credentials, or with wrong ones.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::super::environment::Environment;
use super::super::subjects::Listener;
use super::client::Client;
use super::fixtures::ORDERS;

/// The answers so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// The number of answers by status.
    pub(super) statuses: BTreeMap<u16, usize>,
    /// Answers that a request without credentials must not get, and requests without an answer.
    pub(super) wrong: Vec<String>,
}

/// Clients that send requests until they are stopped.
pub(super) struct Checker {
    seen: Arc<Mutex<Seen>>,
    clients: JoinSet<()>,
    stop: CancellationToken,
}

/// The pause of each client between two requests, on an idle machine.
const REQUEST_PAUSE: Duration = Duration::from_millis(3);

/// The statuses with which a protected request may be answered.
const RIGHT: [u16; 3] = [401, 403, 500];

impl Checker {
    /// Checks requests for a protected route on both ports.
    pub(super) fn start(environment: &Environment) -> Self {
        let mut checker =
            Self { seen: Arc::default(), clients: JoinSet::new(), stop: CancellationToken::new() };
        for listener in [Listener::Plain, Listener::Secure] {
            for header in [None, Some(("apikey", "wrong")), Some(("authorization", "Basic d3Jvbmc6d3Jvbmc="))]
            {
                checker.ask(environment, listener, ORDERS.to_owned(), (header, &RIGHT));
            }
        }
        checker
    }

    /// Checks requests for a route that comes: before, there is no such route. The result belongs to this checker.
    pub(super) fn watch_new(&self, environment: &Environment, path: &str) -> Self {
        let mut checker =
            Self { seen: self.seen.clone(), clients: JoinSet::new(), stop: CancellationToken::new() };
        for listener in [Listener::Plain, Listener::Secure] {
            checker.ask(environment, listener, path.to_owned(), (None, &[404, 401, 403, 500]));
        }
        checker
    }

    fn ask(
        &mut self,
        environment: &Environment,
        listener: Listener,
        path: String,
        (header, right): (Option<(&'static str, &'static str)>, &'static [u16]),
    ) {
        let (seen, stop, addresses) = (self.seen.clone(), self.stop.clone(), environment.addresses());
        self.clients.spawn(async move {
            let client = Client { listener, path: &path, header };
            while !stop.is_cancelled() {
                sleep(REQUEST_PAUSE).await;
                let answer = client.ask_at(&addresses).await;
                let mut seen = seen.lock();
                match answer {
                    Ok(answer) if right.contains(&answer.status) => {
                        *seen.statuses.entry(answer.status).or_default() += 1;
                    }
                    Ok(answer) => {
                        seen.wrong.push(format!("{client:?}: {} {}", answer.status, answer.body));
                    }
                    Err(error) => seen.wrong.push(format!("{client:?}: {error}")),
                }
            }
        });
    }

    /// Ends the clients.
    pub(super) async fn stop(mut self) -> Seen {
        self.stop.cancel();
        while let Some(ended) = self.clients.join_next().await {
            ended.unwrap();
        }
        self.seen.lock().clone()
    }
}
