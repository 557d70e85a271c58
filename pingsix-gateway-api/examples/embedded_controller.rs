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

use std::error::Error;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use kube::Client;
use pingsix_gateway_api::controller::{Controller, ControllerError, ControllerOptions, Feed};
use pingsix_gateway_api::{Desired, Options, Published, Sink, SinkError};
use pingsix_sink::{PlannedSink, Scope, Step, StepWriter};
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
    let controller =
        Controller::new(client, Arc::new(Diary(PlannedSink::new(Pages(Mutex::new(out))))), options);
    // A readiness probe would use `controller.progress()`, which also has the awaited objects and the reasons.
    controller.run(stop).await
}

/// A sink that writes a diary of changes. [`PlannedSink`] keeps the published documents.
struct Diary<W>(PlannedSink<Pages<W>>);

struct Pages<W>(Mutex<W>);

impl<W: Write> Pages<W> {
    fn write_line(&self, line: &str) {
        // A reader that has gone is no error.
        let _ = writeln!(self.0.lock().unwrap_or_else(PoisonError::into_inner), "{line}");
    }
}

impl<W: Write + Send> StepWriter for Pages<W> {
    /// Called for each document, in an order in which a document never refers to one that is not there.
    async fn write(&self, scope: &Scope, step: &Step) -> Result<(), SinkError> {
        let sign = match step {
            Step::Create(_) => '+',
            Step::Update(_) => '~',
            Step::Delete { .. } => '-',
        };
        // The key alone: the value of a document may be a private key.
        self.write_line(&format!("{sign} {}", scope.full_key(step.key())));
        Ok(())
    }
}

impl<W: Write + Send> Sink for Diary<W> {
    /// Called for a scope (the prefix of one data plane) with all of its documents.
    async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        self.0.publish(desired).await
    }
}

impl<W: Write + Send> Feed for Diary<W> {
    /// Called when the controller has read all objects. A feed with readers answers them from now on.
    fn open(&self) {
        self.0.writer().write_line("everything is known");
    }
}
