//! A real etcd.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use std::{env, io};

use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::time::{interval, timeout};

use crate::{Output, find, free_address, run};

/// Longer than any start takes.
const WAIT_TIMEOUT: Duration = Duration::from_mins(1);

/// The time limit of one request, before its repetition.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(1);

/// The sockets of etcd in its folder. Version 3.4 wants every URL to end with a port, which then belongs to the name.
const CLIENT: &str = "client:0";
const PEER: &str = "peer:0";

/// A running etcd with a store of its own; dropping it ends it.
#[derive(Debug)]
pub struct Etcd {
    setting: Setting,
    process: Child,
}

/// The effect of a signal on a process.
#[derive(Clone, Copy, Debug)]
pub enum Signal {
    /// The process stops.
    Pause,
    /// The process continues.
    Continue,
}

impl Etcd {
    /// Starts etcd and waits until it answers, or prints that the test did not run.
    ///
    /// # Panics
    ///
    /// Here and in everything else that starts one: if it does not come to answer, with what it wrote.
    pub async fn start() -> Option<Self> {
        Self::start_with(&[]).await
    }

    /// As [`Self::start`], with more options.
    pub async fn start_with(options: &[&str]) -> Option<Self> {
        Self::start_in(tempfile::tempdir().unwrap(), "http", options).await
    }

    /// As [`Self::start`], over TLS, with options that name files for it in this folder.
    pub async fn start_encrypted(folder: TempDir, options: &[&str]) -> Option<Self> {
        Self::start_in(folder, "https", options).await
    }

    async fn start_in(folder: TempDir, scheme: &'static str, options: &[&str]) -> Option<Self> {
        let program = find("etcd")?;
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let setting = Setting { program, folder, scheme, address: free_address(), options };
        let process = setting.launch(WAIT_TIMEOUT).await.unwrap_or_else(|why| panic!("{why}"));
        Some(Self { setting, process })
    }

    /// Where it takes clients.
    pub const fn address(&self) -> SocketAddr {
        self.setting.address
    }

    /// The URL of the only member.
    pub fn url(&self) -> String {
        self.setting.url()
    }

    /// Ends the process and keeps the store.
    pub async fn kill(&mut self) {
        self.process.kill().await.unwrap();
    }

    /// Starts it again, on the same address with the same store.
    pub async fn start_again(&mut self) {
        self.process = self.setting.launch(WAIT_TIMEOUT).await.unwrap_or_else(|why| panic!("{why}"));
    }

    /// Starts it again with nothing in its store, as if it had been lost.
    pub async fn start_empty(&mut self) {
        fs::remove_dir_all(self.setting.folder.path().join("data")).unwrap();
        self.start_again().await;
    }

    /// Pauses the process, or lets it go on.
    pub fn signal(&self, signal: Signal) {
        let name = match signal {
            Signal::Pause => "-STOP",
            Signal::Continue => "-CONT",
        };
        let process = self.process.id().expect("it runs").to_string();
        assert!(std::process::Command::new("kill").args([name, &process]).status().unwrap().success());
    }

    /// Runs `etcdctl` on it, which must succeed, and says what that wrote.
    pub async fn control(&self, arguments: &[&str]) -> String {
        let output = self.try_control(arguments).await;
        assert!(output.ok, "{arguments:?}: {output:?}");
        output.out
    }

    /// Runs `etcdctl` on it.
    pub async fn try_control(&self, arguments: &[&str]) -> Output {
        let program = find("etcdctl").expect("etcdctl comes with etcd");
        let endpoints = format!("--endpoints={}", self.address());
        run(&program, [&[endpoints.as_str()], arguments].concat()).await
    }
}

/// The command of an etcd, for its start and its restarts.
#[derive(Debug)]
struct Setting {
    program: PathBuf,
    folder: TempDir,
    scheme: &'static str,
    address: SocketAddr,
    options: Vec<String>,
}

impl Setting {
    fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// Starts it and waits until it serves, or says why it does not.
    async fn launch(&self, patience: Duration) -> Result<Child, String> {
        let mut process = self.spawn();
        let serves = async {
            let mut tries = interval(Duration::from_millis(20));
            loop {
                tries.tick().await;
                if let Some(status) = process.try_wait().unwrap() {
                    return Err(format!("has ended ({status})"));
                }
                if matches!(timeout(ATTEMPT_TIMEOUT, self.is_healthy()).await, Ok(Ok(true))) {
                    return Ok(());
                }
            }
        };
        match timeout(patience, serves).await.unwrap_or_else(|_| Err("does not answer".to_owned())) {
            Ok(()) => Ok(process),
            Err(why) => {
                let log = fs::read_to_string(self.log()).unwrap_or_default();
                Err(format!("etcd at {} {why}, having written:\n{log}", self.url()))
            }
        }
    }

    fn spawn(&self) -> Child {
        // The peer address is unused, because there are no other members.
        let nowhere = "http://127.0.0.1:0";
        let log = File::create(self.log()).unwrap();
        for socket in [CLIENT, PEER] {
            // A killed etcd leaves its sockets, which block the next one.
            let _ = fs::remove_file(self.folder.path().join(socket));
        }
        Command::new(&self.program)
            .current_dir(self.folder.path())
            .args(["--data-dir", "data"])
            .args(["--listen-client-urls", &format!("{},unix://{CLIENT}", self.url())])
            .args(["--advertise-client-urls", &self.url()])
            .args(["--listen-peer-urls", &format!("unix://{PEER}")])
            .args(["--initial-advertise-peer-urls", nowhere])
            .args(["--initial-cluster", &format!("default={nowhere}")])
            .args(&self.options)
            .env("ETCD_UNSUPPORTED_ARCH", env::consts::ARCH)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// Asked by its socket, behind which there can be nobody else, and which asks for no certificate. All its listeners are
    /// open before it serves on any.
    async fn is_healthy(&self) -> io::Result<bool> {
        let mut stream = UnixStream::connect(self.folder.path().join(CLIENT)).await?;
        stream.write_all(b"GET /health HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n\r\n").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer.starts_with("HTTP/1.1 200 "))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn setting(program: PathBuf, address: SocketAddr) -> Setting {
        let folder = tempfile::tempdir().unwrap();
        Setting { program, folder, scheme: "http", address, options: Vec::new() }
    }

    #[tokio::test]
    async fn one_whose_port_is_taken_says_so() {
        let Some(program) = find("etcd") else { return };
        let taken = TcpListener::bind(free_address()).unwrap();
        let setting = setting(program, taken.local_addr().unwrap());
        let why = setting.launch(WAIT_TIMEOUT).await.unwrap_err();
        assert!(why.contains("has ended (exit status: 1)"), "{why}");
        assert!(why.contains("address already in use") && why.contains(&setting.url()), "{why}");
    }

    #[tokio::test]
    async fn a_silent_etcd_is_given_up_with_its_output() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("etcd");
        fs::write(&program, "#!/bin/sh\necho it begins\nexec sleep 60\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let setting = setting(program, free_address());
        let why = setting.launch(Duration::from_secs(2)).await.unwrap_err();
        assert!(why.ends_with("does not answer, having written:\nit begins\n"), "{why}");
    }

    #[tokio::test]
    async fn a_restarted_etcd_keeps_its_address_and_its_store_until_that_is_lost() {
        let Some(_) = find("etcdctl") else { return };
        let Some(mut etcd) = Etcd::start().await else { return };
        let address = etcd.address();
        etcd.control(&["put", "key", "value"]).await;
        etcd.kill().await;
        assert!(!etcd.try_control(&["get", "key", "--command-timeout=2s"]).await.ok, "it is gone");
        etcd.start_again().await;
        assert_eq!(etcd.address(), address);
        assert_eq!(etcd.control(&["get", "key"]).await, "key\nvalue\n");
        etcd.kill().await;
        etcd.start_empty().await;
        assert_eq!(etcd.control(&["get", "key"]).await, "");
    }
}
