//! A process of the cluster, with faults that a test may cause.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio::time::sleep;

use crate::error::Error;
use crate::ready::Ready;
use crate::supervisor::{Signal, Supervisor};

/// The time limit for readiness of a process. It takes one to three seconds on an idle machine.
const READY_TIMEOUT: Duration = Duration::from_secs(90);
/// The time limits for the end of a process, after a request and after a kill.
const END_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The number of log lines in an error.
const LOG_LINES: usize = 12;

/// A program, with the check of its readiness.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) supervisor: PathBuf,
    /// The executable and its arguments.
    pub(crate) command: Vec<OsString>,
    pub(crate) folder: PathBuf,
    pub(crate) ready: Ready,
}

/// A process of the cluster: etcd, the API server, the controller manager, or what a test runs beside them.
///
/// A restart uses the same arguments, and so the same port and the same data.
#[derive(Debug)]
pub struct Process {
    program: Program,
    running: Mutex<Option<Supervisor>>,
}

impl Process {
    pub(crate) async fn launch(program: Program) -> Result<Self, Error> {
        let process = Self { program, running: Mutex::new(None) };
        process.start().await?;
        Ok(process)
    }

    /// The id of the process, if it runs.
    pub async fn pid(&self) -> Option<u32> {
        let mut running = self.running.lock().await;
        *running = alive(running.take()).ok()?;
        running.as_ref().map(Supervisor::pid)
    }

    /// The file that the process logs to.
    pub fn log(&self) -> PathBuf {
        self.program.folder.join(format!("{}.log", self.program.name))
    }

    /// Starts the process unless it runs, and waits until it is ready.
    pub async fn start(&self) -> Result<(), Error> {
        let mut running = self.running.lock().await;
        let mut supervisor = if let Some(supervisor) = alive(running.take())? {
            supervisor
        } else {
            let Program { name, supervisor, command, folder, .. } = &self.program;
            let spawned = Supervisor::spawn(name, supervisor, command, folder, &self.log()).await;
            if let Err(Error::NotRunning { process }) = spawned {
                // A program that cannot be run at all: its supervisor has said why.
                return Err(Error::Ended { process, log: self.end_of_log() });
            }
            spawned?
        };
        let ready = self.wait_until_ready(&mut supervisor).await;
        // One that is not ready is kept for another try, as one that is: whoever gives up drops it.
        *running = Some(supervisor);
        ready
    }

    /// Asks the process to end, as its owner would, and waits for that. One that takes longer than ten seconds is
    /// killed.
    pub async fn stop(&self) -> Result<(), Error> {
        // A paused process notices nothing before it goes on.
        self.end(&[Signal::Stop, Signal::Resume]).await
    }

    /// Kills the process, which notices nothing, and waits until it is gone.
    pub async fn kill(&self) -> Result<(), Error> {
        self.end(&[Signal::Kill]).await
    }

    /// Stops the process: connections stay open, and requests get no answer.
    pub async fn pause(&self) -> Result<(), Error> {
        self.signal(Signal::Pause).await
    }

    /// Lets a paused process go on.
    pub async fn resume(&self) -> Result<(), Error> {
        self.signal(Signal::Resume).await
    }

    async fn signal(&self, signal: Signal) -> Result<(), Error> {
        let mut running = self.running.lock().await;
        *running = alive(running.take())?;
        match running.as_mut() {
            Some(supervisor) => supervisor.send(signal).await,
            None => Err(Error::NotRunning { process: self.program.name }),
        }
    }

    async fn end(&self, signals: &[Signal]) -> Result<(), Error> {
        let mut running = self.running.lock().await;
        let Some(mut supervisor) = running.take() else { return Ok(()) };
        for signal in signals {
            // The first signal may have ended it.
            if let Err(error) = supervisor.send(*signal).await
                && !supervisor.ends_within(END_TIMEOUT).await?
            {
                return Err(error);
            }
        }
        // It may end while it is being killed.
        if !supervisor.ends_within(END_TIMEOUT).await?
            && let Err(error) = supervisor.send(Signal::Kill).await
            && !supervisor.ends_within(END_TIMEOUT).await?
        {
            return Err(error);
        }
        // Dropping it waits for the end.
        Ok(())
    }

    async fn wait_until_ready(&self, supervisor: &mut Supervisor) -> Result<(), Error> {
        let process = self.program.name;
        let started = Instant::now();
        loop {
            if supervisor.has_ended()? {
                return Err(Error::Ended { process, log: self.end_of_log() });
            }
            if self.program.ready.holds().await {
                return Ok(());
            }
            if started.elapsed() > READY_TIMEOUT {
                return Err(Error::NotReady { process, after: READY_TIMEOUT, log: self.end_of_log() });
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    fn end_of_log(&self) -> String {
        let bytes = fs::read(self.log()).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        lines.get(lines.len().saturating_sub(LOG_LINES)..).unwrap_or_default().join("\n")
    }
}

/// A process that ended by itself is as good as none.
fn alive(supervisor: Option<Supervisor>) -> Result<Option<Supervisor>, Error> {
    let Some(mut supervisor) = supervisor else { return Ok(None) };
    Ok(if supervisor.has_ended()? { None } else { Some(supervisor) })
}
