//! Endpoint churn: the endpoint of a Service moves from one backend to another, until a client gets an answer of the new
//! backend.

use std::time::Duration;

use crate::backend;
use crate::figures::Figures;
use crate::lab::Lab;
use crate::network::ADDRESSES;
use crate::objects::{self, Shape};
use crate::samples::Samples;

/// The number of changes.
const CHANGES: usize = 100;

/// The time between two changes.
const INTERVAL: Duration = Duration::from_millis(50);

pub(crate) async fn measure(lab: &Lab, routes: usize) -> Figures {
    let (mut figures, contender) = (Figures::default(), lab.contender());
    let Some(client) = contender.client() else { return figures };
    let all = (0..routes).map(|index| objects::route(&lab.gateways(), "default", index, Shape::Simple));
    objects::create_all(&lab.client(), all).await;
    let (host, path, service) = (objects::host(0), "/0", objects::service_name(0));
    client.wait_for_ok(&host, path).await;
    contender.settle().await;
    let (mut samples, mut errors) = (Samples::default(), 0);
    let before = contender.usage().await;
    for change in 1..=CHANGES {
        let backend = change % ADDRESSES.len();
        let slice = objects::slice("default", &service, &backend::endpoints(&[backend]));
        let answered = objects::merge(&lab.client(), &slice).await;
        let address = ADDRESSES[backend].to_string();
        let awaited = client.wait_for(&host, path, |response| response.body() == address.as_bytes()).await;
        samples.push(awaited.at.saturating_duration_since(answered));
        // Answers of the former backend are no errors, but there can be no more of them than requests.
        errors += usize::from(awaited.errors > 100);
        tokio::time::sleep(INTERVAL).await;
    }
    let used = contender.usage().await.since(&before);
    let changes = u32::try_from(CHANGES).unwrap();
    figures.time(format!("{routes} routes: endpoint to the new answer, p50"), samples.percentile(50));
    figures.time(format!("{routes} routes: endpoint to the new answer, p95"), samples.percentile(95));
    figures.time("processor time of the controller for each", used.controller / changes);
    figures.time("processor time of the data plane for each", used.data_plane / changes);
    figures.count("changes that took more than 100 requests", errors);
    figures
}
