//! A controller with everything set that can be, and its parts, each by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use pingsix_gateway_api::controller::{
    Controller, ControllerError, ControllerOptions, Feed, Observers, Progress, PublishedAddresses,
};
use pingsix_gateway_api::delivery::status_page::{StatusClient, StatusUrl};
use pingsix_gateway_api::delivery::{Deliveries, Instances};
use pingsix_gateway_api::operations::debug::{self, Dump};
use pingsix_gateway_api::reconcile::{Pace, Queue, ReconcileOutcome, Reconciler};
use pingsix_gateway_api::watch::{Input, WatchOptions, Watches};
use pingsix_gateway_api::world::World;
use pingsix_sink::{Desired, EmbeddedEtcd, MemorySink, Published, Sink, SinkError};
use pingsix_translate::selection::{Extract, ObjectSource as _};
use pingsix_translate::snapshot::Gateway;
use pingsix_translate::status::{Address, Delivery};
use pingsix_translate::{DataPlaneKey, Kind, ObjectKey, ObjectName, Options};
use tokio_util::sync::CancellationToken;

/// A sink of one's own becomes a feed by saying what it means to open it.
struct Own(MemorySink);

impl Sink for Own {
    async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        self.0.publish(desired).await
    }
}

impl Feed for Own {
    fn open(&self) {}
}

pub async fn serve() -> Result<(), Box<dyn Error>> {
    let client = Client::try_default().await?;
    let mut options = ControllerOptions::new(Options::default(), "outside-0");
    options.watch = WatchOptions { labels: Some("team=shop".to_owned()), ..WatchOptions::default() };
    options.pace = Pace { longest_rest: Duration::from_secs(5), ..Pace::default() };
    options.addresses = PublishedAddresses::Fixed(vec![Address::Hostname("lb.example".to_owned())]);
    let page: StatusUrl = "http://127.0.0.1:7085".parse()?;
    options.status_pages = BTreeMap::from([(
        DataPlaneKey::Gateway { gateway: ObjectName::new("shop", "web"), port: None },
        BTreeSet::from([page]),
    )]);
    options.status_client = StatusClient::new(None);
    let etcd = EmbeddedEtcd::builder().start().await?;
    tokio::try_join!(
        run(Controller::new(client.clone(), Arc::new(etcd), options.clone())),
        run(Controller::new(client.clone(), Arc::new(Own(MemorySink::new())), options)),
        follow(client),
    )?;
    Ok(())
}

/// Runs until everything is published once, and says how many objects there are.
async fn run(controller: Controller) -> Result<(), Box<dyn Error>> {
    let (client, requests) = debug::channel();
    let controller = controller.observed_by(Observers { debug: Some(requests), ..Observers::default() });
    let mut progress = controller.progress();
    let stop = CancellationToken::new();
    let watch = async {
        progress.wait_for(Progress::is_ready).await?;
        for unknown in progress.borrow().unknown.values() {
            println!("{unknown}");
        }
        println!("{}", client.ask(Dump::World, None).await?);
        stop.cancel();
        Ok::<(), Box<dyn Error>>(())
    };
    let (ran, watched) = tokio::join!(controller.run(stop.clone()), watch);
    match ran {
        Err(ControllerError::Watches) => println!("the watches have ended"),
        ran => ran?,
    }
    watched
}

/// A controller by hand, of the same parts.
async fn follow(client: Client) -> Result<(), Box<dyn Error>> {
    let stop = CancellationToken::new();
    let (watches, mut inputs) = Watches::start(client, WatchOptions::default(), &stop);
    let mut reconciler = Reconciler::new(Options::default());
    let mut queue = Queue::new(Pace::default());
    let (mut deliveries, feed) = (Deliveries::default(), MemorySink::new());
    while let Some(input) = inputs.recv().await {
        let now = tokio::time::Instant::now();
        let owners = match input {
            Input::Event(event) => reconciler.apply(event).owners,
            Input::Gone(key) => reconciler.remove(&key).owners,
            Input::Released(key) => reconciler.unwatched(&key).owners,
            Input::Answered { key, .. } => reconciler.answered(key),
            Input::Availability { .. } => continue,
        };
        owners.into_iter().for_each(|owner| queue.push(owner, now));
        while let Some(owner) = queue.pop(now) {
            let ReconcileOutcome::Current(done) = reconciler.reconcile(&owner, jiff_now()) else { continue };
            for publication in done.publications {
                let published = feed.publish(&publication.desired).await?;
                deliveries.published(&publication.data_plane, published.revision);
                deliveries.observe(&publication.data_plane, Instances::Connected(1));
            }
            queue.rest(&owner, now, now.elapsed());
            queue.succeeded(&owner);
        }
        if let Some(references) = reconciler.take_references() {
            watches.set_references(references);
        }
        println!("{} {}", count(reconciler.world()), is_delivered(&deliveries));
    }
    Ok(())
}

/// Reconciling needs the time, and has no clock.
fn jiff_now() -> k8s_openapi::jiff::Timestamp {
    k8s_openapi::jiff::Timestamp::now()
}

fn count(world: &World) -> usize {
    let gateway = ObjectKey::new(Kind::Gateway, "shop", "web");
    let is_there = world.get::<Gateway>(&gateway.name).is_some() && Extract::new(world, &gateway).is_some();
    world.keys::<Gateway>().len() + usize::from(is_there) + world.owners_of(&gateway).len()
}

fn is_delivered(deliveries: &Deliveries) -> bool {
    let key = DataPlaneKey::Gateway { gateway: ObjectName::new("shop", "web"), port: None };
    matches!(deliveries.delivery(&key), Delivery::Delivered | Delivery::Confirmed)
}
