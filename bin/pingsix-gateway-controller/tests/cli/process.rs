//! The controller as a process, and its pages.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::program;

/// The time limit of an effect.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct Controller {
    process: Child,
    log: mpsc::Receiver<String>,
    /// The log so far.
    pub(crate) logged: Vec<Value>,
    _directory: TempDir,
}

impl Drop for Controller {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Controller {
    /// Starts the controller on free ports, with its state in the directory.
    pub(crate) fn start(
        directory: TempDir,
        kubeconfig: &Path,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let mut process = program()
            .args(["--health-address=127.0.0.1:0", "--feed-address=127.0.0.1:0"])
            .args(["--log-format=json", "--log-filter=debug", "--shutdown-grace=5s"])
            .arg(format!("--kube-config={}", kubeconfig.display()))
            .arg(format!("--feed-state-file={}", directory.path().join("revisions").display()))
            .args(arguments)
            .envs(variables.iter().copied())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A reader from the start, because a program with an unread log blocks.
        let (lines, log) = mpsc::channel();
        let stderr = BufReader::new(process.stderr.take().unwrap());
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).try_for_each(|line| lines.send(line))
        });
        Self { process, log, logged: Vec::new(), _directory: directory }
    }

    /// The next matching log line.
    pub(crate) fn line(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        loop {
            let line = self.log.recv_timeout(deadline.saturating_duration_since(Instant::now()));
            let line = line.unwrap_or_else(|error| panic!("{error}: {:?}", self.logged));
            let line: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
            self.logged.push(line.clone());
            if wanted(&line) {
                return line;
            }
        }
    }

    /// A matching log line, from the log so far or still to come, because tasks log in any order.
    pub(crate) fn line_of(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        match self.logged.iter().find(|line| wanted(line)) {
            Some(line) => line.clone(),
            None => self.line(wanted),
        }
    }

    pub(crate) fn address_of(&mut self, server: &str) -> SocketAddr {
        let line = self.line_of(|line| line["server"] == server && line["message"] == "serving HTTP");
        line["address"].as_str().unwrap().parse().unwrap()
    }

    pub(crate) fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.process.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Waits for the exit code.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "it does not end: {:?}", self.logged);
            sleep(Duration::from_millis(20));
        }
    }

    /// The whole log, after the end of the process.
    pub(crate) fn rest_of_log(&mut self) -> &[Value] {
        self.logged.extend(self.log.iter().map(|line| serde_json::from_str::<Value>(&line).unwrap()));
        &self.logged
    }
}

/// The status and the text of a page.
pub(crate) fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer)
}
