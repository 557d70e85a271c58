//! One supervised process: see `testdata/cluster/cmd/supervise`.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::error::Error;

/// A supervisor answers at once; this is for a machine that is very busy.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// The requests to a supervisor.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Signal {
    Stop,
    Kill,
    Pause,
    Resume,
}

impl Signal {
    fn line(self) -> &'static [u8] {
        match self {
            Self::Stop => b"stop\n",
            Self::Kill => b"kill\n",
            Self::Pause => b"pause\n",
            Self::Resume => b"resume\n",
        }
    }
}

/// A process and its supervisor. Both are gone when this is dropped.
#[derive(Debug)]
pub(crate) struct Supervisor {
    process: &'static str,
    child: Child,
    /// The supervisor kills the process when this is closed.
    asks: Option<ChildStdin>,
    answers: Lines<BufReader<ChildStdout>>,
    pid: u32,
}

impl Supervisor {
    pub(crate) async fn spawn(
        process: &'static str,
        supervisor: &Path,
        command: &[OsString],
        folder: &Path,
        log: &Path,
    ) -> Result<Self, Error> {
        let errors = File::options()
            .create(true)
            .append(true)
            .open(log)
            .map_err(Error::io(format!("could not open the log of {process}")))?;
        let mut child = Command::new(supervisor)
            .arg(log)
            .args(command)
            .current_dir(folder)
            // Settings for other programs of this kind, or a proxy, are not meant for these.
            .env_clear()
            .env("HOME", folder)
            .env("TMPDIR", folder)
            // An interrupt at a terminal is for the tests.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .map_err(Error::io(format!("could not start the supervisor of {process}")))?;
        let (Some(asks), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::Supervisor { process, answer: String::new() });
        };
        let mut supervisor =
            Self { process, child, asks: Some(asks), answers: BufReader::new(answers).lines(), pid: 0 };
        let answer = supervisor.answer().await?;
        supervisor.pid = answer.parse().map_err(|_| Error::Supervisor { process, answer })?;
        Ok(supervisor)
    }

    /// The id of the process, not of its supervisor.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    pub(crate) fn has_ended(&mut self) -> Result<bool, Error> {
        let status = self.child.try_wait();
        Ok(status.map_err(Error::io(format!("could not ask after {}", self.process)))?.is_some())
    }

    /// Sends a signal, and returns when it is sent.
    pub(crate) async fn send(&mut self, signal: Signal) -> Result<(), Error> {
        let process = self.process;
        let Some(asks) = &mut self.asks else { return Err(Error::NotRunning { process }) };
        asks.write_all(signal.line()).await.map_err(Error::io(format!("could not reach {process}")))?;
        let answer = self.answer().await?;
        if answer == "sent" { Ok(()) } else { Err(Error::Supervisor { process, answer }) }
    }

    /// Whether the process ends within this time.
    pub(crate) async fn ends_within(&mut self, limit: Duration) -> Result<bool, Error> {
        match timeout(limit, self.child.wait()).await {
            Ok(status) => {
                status.map_err(Error::io(format!("could not wait for {}", self.process)))?;
                Ok(true)
            }
            Err(_) => Ok(false),
        }
    }

    async fn answer(&mut self) -> Result<String, Error> {
        let process = self.process;
        match timeout(ANSWER_TIMEOUT, self.answers.next_line()).await {
            Ok(Ok(Some(line))) => Ok(line),
            Ok(Ok(None)) => Err(Error::NotRunning { process }),
            Ok(Err(error)) => Err(Error::io(format!("could not hear the supervisor of {process}"))(error)),
            Err(_) => Err(Error::Supervisor { process, answer: String::new() }),
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.asks = None;
        // A killed process is gone within milliseconds; a test that looks for it shall not find it.
        let started = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if started.elapsed() > ANSWER_TIMEOUT {
                // Takes the process along, where the system can tell it of its parent's death.
                let _ = self.child.start_kill();
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
