//! The controller in a cluster: `pingsix-gateway-api` as a program.
//!
//! ```text
//! flags, environment, file ──► settings ──► Configuration (checked) ──► run: watch, translate, publish, report
//! ```
//!
//! - `settings` merges the three sources, and reports each error under the name of its source;
//! - `configuration` is the result: each key once, with its help, its default and its rules;
//! - `run` is the controller, and `telemetry` its traces and metrics.

mod configuration;
mod log;
mod rules;
mod run;
mod settings;
mod sinks;
mod telemetry;
mod values;
mod wiring;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use configuration::Configuration;
use settings::{Settings, SettingsError, Task};
use telemetry::Telemetry;

/// For arguments and a configuration that cannot be used.
const USAGE_EXIT_CODE: u8 = 2;

/// Runs the program with the arguments and the environment of the process.
///
/// Exit codes: 0 after a signal, 1 after a failure, 2 for a configuration that cannot be used.
pub fn main() -> ExitCode {
    start(std::env::args_os())
}

fn start(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let Settings { task, configuration } = match Settings::read(arguments) {
        Ok(settings) => settings,
        Err(SettingsError::Usage(error)) => {
            // Standard error is closed, so a failure cannot be reported.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(USAGE_EXIT_CODE) } else { ExitCode::SUCCESS };
        }
        Err(SettingsError::Keys(errors)) => {
            let mut err = io::stderr().lock();
            for error in &errors {
                let _ = writeln!(err, "error: {error}");
            }
            return ExitCode::from(USAGE_EXIT_CODE);
        }
    };
    let done = match task {
        Task::Check => Ok(()),
        Task::Print => print(&configuration),
        Task::Run => serve(&configuration),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn print(configuration: &Configuration) -> anyhow::Result<()> {
    let text = serde_saphyr::to_string(configuration)?;
    io::stdout().write_all(text.as_bytes()).context("cannot print the configuration")
}

fn serve(configuration: &Configuration) -> anyhow::Result<()> {
    // Clients of the API server need a provider; with a second one compiled in, rustls would not choose by itself.
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        anyhow::bail!("another provider of cryptography is installed already");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let telemetry = {
        let _entered = runtime.enter();
        Telemetry::start(configuration)?
    };
    let served = runtime.block_on(until_stopped(configuration));
    telemetry.end();
    // Blocking threads, such as the lookup of a name, do not delay the exit.
    runtime.shutdown_background();
    served
}

/// Runs until a signal comes or something fails; after the signal, for as long as the shutdown may take.
async fn until_stopped(configuration: &Configuration) -> anyhow::Result<()> {
    // First of all, so that no signal finds the default action in place.
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
    let mut stopped = async move || {
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        }
    };
    let stop = CancellationToken::new();
    let running = run::run(configuration, stop.clone());
    tokio::pin!(running);
    tokio::select! {
        ended = running.as_mut() => return ended,
        signal = stopped() => tracing::info!(signal, "stopping"),
    }
    stop.cancel();
    let grace = configuration.shutdown_grace.duration();
    tokio::select! {
        ended = running => ended,
        () = tokio::time::sleep(grace) => {
            anyhow::bail!("it was not done after {} (--shutdown-grace)", configuration.shutdown_grace)
        }
        signal = stopped() => anyhow::bail!("a second signal came: {signal}"),
    }
}
