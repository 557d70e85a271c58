//! A controller inside of another program, which uses the documents without serving them to PingSIX.
//!
//! ```sh
//! kubectl create namespace shop
//! kubectl apply -f pingsix-gateway-api/examples/shop.yaml
//! cargo run -p pingsix-gateway-api --features controller --example embedded_controller
//! ```
//!
//! The program uses the cluster of the current kubeconfig, which needs the CRDs of Gateway API. The program serves the
//! classes of the controller name `example.com/embedded`, apart from other controllers. The program prints every change
//! of the shop's objects as changes of documents, until Ctrl-C, and writes statuses as usual.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use kube::Client;
use pingsix_gateway_api::controller::{Controller, ControllerError, ControllerOptions, Feed};
use pingsix_sink::{Desired, DocumentSet, Published, Revision, Scope, Sink, SinkError, Step, plan};
use pingsix_translate::Options;
use tokio_util::sync::CancellationToken;

/// The `spec.controllerName` of GatewayClasses for this program.
const CONTROLLER_NAME: &str = "example.com/embedded";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::try_default().await?;
    let stop = CancellationToken::new();
    let stop_with_the_terminal = stop.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop_with_the_terminal.cancel();
        }
    });
    run(client, io::stdout(), stop).await?;
    Ok(())
}

pub(crate) async fn run(
    client: Client,
    out: impl Write + Send + 'static,
    stop: CancellationToken,
) -> Result<(), ControllerError> {
    let translation = Options { controller_name: CONTROLLER_NAME.to_owned(), ..Options::default() };
    // All other options have defaults. Several replicas would take turns with `options.lease`.
    let options = ControllerOptions::new(translation, "embedded-example");
    let controller = Controller::new(client, Arc::new(Diary::new(out)), options);
    // A readiness probe would ask `controller.progress()`, which also says what is being waited for, and why.
    controller.run(stop).await
}

/// A sink that keeps a diary of what changes.
#[derive(Debug)]
struct Diary<W> {
    pages: Mutex<Pages<W>>,
}

#[derive(Debug)]
struct Pages<W> {
    held: BTreeMap<Scope, (DocumentSet, Revision)>,
    last: Revision,
    out: W,
}

impl<W> Diary<W> {
    fn new(out: W) -> Self {
        Self { pages: Mutex::new(Pages { held: BTreeMap::new(), last: Revision::MIN, out }) }
    }
}

impl<W: Write + Send> Sink for Diary<W> {
    /// Called for a scope (the prefix of one data plane) with everything it shall hold, whether that changed or not.
    async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let Pages { held, last, out } = &mut *pages;
        let scope = desired.scope();
        let (before, revision) = held.get(scope).cloned().unwrap_or((DocumentSet::default(), *last));
        // The steps are in an order in which a document never refers to one that is not there.
        let steps = plan(&before, desired.documents());
        let changed = steps.changed();
        if steps.is_empty() {
            return Ok(Published { revision, changed });
        }
        let revision = last.checked_add(1).unwrap_or(*last);
        for step in &steps {
            let sign = match step {
                Step::Create(_) => '+',
                Step::Update(_) => '~',
                Step::Delete { .. } => '-',
            };
            // The key alone: the value of a document may be a private key. That nobody reads along is not a fault.
            let _ = writeln!(out, "{sign} {}", scope.full_key(step.key()));
        }
        *last = revision;
        held.insert(scope.clone(), (desired.documents().clone(), revision));
        Ok(Published { revision, changed })
    }
}

impl<W: Write + Send> Feed for Diary<W> {
    /// A feed that is read by others would start to answer them here, and not before; and of what it has not been given yet it
    /// would tell nobody that there is nothing.
    fn open(&self) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writeln!(pages.out, "everything is known");
    }
}
