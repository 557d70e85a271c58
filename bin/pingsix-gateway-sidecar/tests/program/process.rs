//! A running sidecar.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Timeout of all waits, longer than any of them takes.
const WAIT_TIMEOUT: Duration = Duration::from_mins(1);

/// The program without variables of this machine.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pingsix-gateway-sidecar"));
    command.env_clear().args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A process with its status pages; dropping it kills it.
pub(crate) struct Sidecar {
    child: Child,
    log: Receiver<String>,
    /// The lines of the log so far.
    pub(crate) logged: String,
    pub(crate) pages: SocketAddr,
}

impl Sidecar {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let fixed = ["--status-listen=127.0.0.1:0", "--log-format=json"];
        let mut child = command(&[&fixed, arguments].concat()).env("RUST_LOG", "trace").spawn().unwrap();
        // The log is read to its end, because a program with an unread log blocks.
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, log) = channel();
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let pages = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut sidecar = Self { child, log, logged: String::new(), pages };
        let line = sidecar.line("serving status pages");
        sidecar.pages = line["address"].as_str().unwrap().parse().unwrap();
        sidecar
    }

    /// The first line of the log with this message, from the log so far or still to come, because threads log in any order.
    pub(crate) fn line(&mut self, message: &str) -> Value {
        let with_message = |line: &str| {
            let value: Value = serde_json::from_str(line).unwrap();
            (value["message"] == message).then_some(value)
        };
        if let Some(value) = self.logged.lines().find_map(with_message) {
            return value;
        }
        loop {
            let Ok(line) = self.log.recv_timeout(WAIT_TIMEOUT) else { panic!("{}", self.logged) };
            self.logged.extend([&line, "\n"]);
            if let Some(value) = with_message(&line) {
                return value;
            }
        }
    }

    /// Status and body of a page.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        self.get_with("accept: */*", path)
    }

    /// The same, with this header.
    pub(crate) fn get_with(&self, header: &str, path: &str) -> (u16, String) {
        self.request(&format!("host: localhost\r\n{header}"), path)
    }

    /// The same, under this name.
    pub(crate) fn get_as(&self, host: &str, path: &str) -> (u16, String) {
        self.request(&format!("host: {host}"), path)
    }

    fn request(&self, headers: &str, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.pages).unwrap();
        stream.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\n{headers}\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    pub(crate) fn config(&self) -> Value {
        let (status, body) = self.get("/status/config");
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Asks until the page is as expected.
    pub(crate) async fn until(&self, what: &str, reached: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let page = self.config();
            if reached(&page) {
                return page;
            }
            assert!(begun.elapsed() < WAIT_TIMEOUT, "{what}: {page}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) fn signal(&self, signal: &str) {
        let own = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &own]).status().unwrap().success());
    }

    /// Waits for the end, and returns the rest of the log, too.
    pub(crate) fn ended(mut self) -> (ExitStatus, String) {
        while let Ok(line) = self.log.recv_timeout(WAIT_TIMEOUT) {
            self.logged.extend([&line, "\n"]);
        }
        let status = self.child.wait().unwrap();
        (status, std::mem::take(&mut self.logged))
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
