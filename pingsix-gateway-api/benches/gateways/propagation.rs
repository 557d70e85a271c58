//! Propagation: routes are created one after the other, and each is polled until the data plane answers 200.

use std::time::Duration;

use crate::client::{Client, wait_for_publication};
use crate::contender::Contender;
use crate::description::PREFIX;
use crate::figures::Figures;
use crate::floor;
use crate::lab::Lab;
use crate::objects::{self, Shape};
use crate::reader::Reader;
use crate::samples::Samples;

/// The numbers of routes beside the measured ones.
const POINTS: [usize; 4] = [500, 1_000, 2_000, 3_000];

/// The number of measured routes at each point.
const PROBES: usize = 40;

/// Measures both shapes of a route, at each number of routes up to the largest.
pub(crate) async fn measure(lab: &Lab, routes: usize) -> Figures {
    let mut figures = Figures::default();
    let contender = lab.contender();
    let Some(client) = contender.client() else { return figures };
    let mut next = 0;
    for shape in [Shape::Simple, Shape::Benchmark] {
        let of_shape = |index| objects::route(&lab.gateways(), "default", index, shape);
        let first = next;
        for point in POINTS.into_iter().filter(|point| *point <= routes) {
            // The measured routes count, too.
            let fill = first + point - PROBES;
            objects::create_all(&lab.client(), (next..fill).map(of_shape)).await;
            if fill > next {
                client.wait_for_ok(&objects::host(fill - 1), &format!("/{}", fill - 1)).await;
            }
            contender.settle().await;
            next = fill + PROBES;
            probe(&mut figures, lab, &client, shape, point, fill..next).await;
        }
        let name = name(shape);
        if let Some(ours) = contender.ours() {
            let samples = floor::apply_from_etcd(ours, &lab.cluster).await;
            figures
                .time(format!("{name}: floor, PingSIX from an etcd, p50 at the end"), samples.percentile(50));
        }
        objects::delete_all(&lab.client(), (first..next).map(of_shape)).await;
        contender.settle().await;
    }
    let samples = floor::watch_of_the_api_server(&lab.client(), &lab.gateways()).await;
    figures.time("floor: a bare watch of the API server, p50", samples.percentile(50));
    let (controller, data_plane) = contender.peaks().await;
    figures.bytes("peak RSS of the controller", controller);
    figures.bytes("peak RSS of the data plane", data_plane);
    figures
}

fn name(shape: Shape) -> &'static str {
    match shape {
        Shape::Simple => "simple",
        Shape::Benchmark => "benchmark's route",
    }
}

/// Creates routes one after the other.
async fn probe(
    figures: &mut Figures,
    lab: &Lab,
    client: &Client,
    shape: Shape,
    point: usize,
    indices: std::ops::Range<usize>,
) {
    let contender = lab.contender();
    let (mut total, mut errors, mut split) = (Samples::default(), 0, Split::default());
    let mut reader = open_reader(contender).await;
    let before = contender.usage().await;
    // Only half of the routes are split, because a status page that is polled costs PingSIX something.
    let middle = indices.start + indices.len() / 2;
    for index in indices.clone() {
        let (host, path) = (objects::host(index), format!("/{index}"));
        if let Some(reader) = &mut reader {
            reader.drain();
        }
        let created =
            objects::create(&lab.client(), objects::route(&lab.gateways(), "default", index, shape)).await;
        if index >= middle
            && let (Some(reader), Some(ours)) = (&mut reader, contender.ours())
        {
            let (arrived, revision) = reader.arrival(&host).await;
            let published = wait_for_publication(ours.status, revision).await;
            let awaited = client.wait_for_ok(&host, &path).await;
            split.add([
                arrived - created,
                published.saturating_duration_since(arrived),
                awaited.at - published,
            ]);
            errors += awaited.errors;
        } else {
            let awaited = client.wait_for_ok(&host, &path).await;
            total.push(awaited.at.saturating_duration_since(created));
            errors += awaited.errors;
        }
    }
    let used = contender.usage().await.since(&before);
    let changes = u32::try_from(indices.len()).unwrap();
    let label = format!("{}, {point} routes", name(shape));
    figures.time(format!("{label}: create to 200, p50"), total.percentile(50));
    figures.time(format!("{label}: create to 200, p95"), total.percentile(95));
    if let [Some(feed), Some(published), Some(answer)] = split.medians() {
        figures.time(format!("{label}: API server to feed, p50"), feed);
        figures.time(format!("{label}: feed to published, p50"), published);
        figures.time(format!("{label}: published to 200, p50"), answer);
    }
    figures.count(format!("{label}: errors"), errors);
    figures.time(format!("{label}: processor time of the controller for each"), used.controller / changes);
    figures.time(format!("{label}: processor time of the data plane for each"), used.data_plane / changes);
}

async fn open_reader(contender: &Contender) -> Option<Reader> {
    let ours = contender.ours()?;
    Some(Reader::open(&ours.feed.to_string(), PREFIX, 0).await)
}

/// The three parts of the way of a change.
#[derive(Default)]
struct Split([Samples; 3]);

impl Split {
    fn add(&mut self, parts: [Duration; 3]) {
        for (samples, part) in self.0.iter_mut().zip(parts) {
            samples.push(part);
        }
    }

    fn medians(&self) -> [Option<Duration>; 3] {
        self.0.each_ref().map(|samples| (samples.len() > 0).then(|| samples.percentile(50)))
    }
}
