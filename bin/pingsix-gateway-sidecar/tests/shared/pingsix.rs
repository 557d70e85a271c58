//! A PingSIX with a static configuration.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio::net::TcpStream;

/// Longer than any start takes.
const WAIT_TIMEOUT: Duration = Duration::from_secs(10);

/// PingSIX, killed when dropped.
pub(crate) struct PingSix {
    child: Child,
    directory: tempfile::TempDir,
}

impl Drop for PingSix {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl PingSix {
    /// Starts the program with plaintext listeners and with upstreams and routes in YAML, and waits until it accepts
    /// connections.
    pub(crate) async fn start(binary: &Path, listeners: &[SocketAddr], documents: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path();
        let written: Vec<String> = listeners
            .iter()
            .map(|address| format!("{{ address: \"{address}\", offer_h2c: true }}"))
            .collect();
        let yaml = format!(
            "pingora: {{ threads: 1, pid_file: \"{0}/pid\", upgrade_sock: \"{0}/sock\" }}\n\
             pingsix:\n  listeners: [ {1} ]\n  defaults: {{ dns_refresh_interval: 3600 }}\n\
             {documents}",
            folder.display(),
            written.join(", "),
        );
        let file = folder.join("config.yaml");
        fs::write(&file, yaml).unwrap();
        let log = fs::File::create(folder.join("log")).unwrap();
        let child = Command::new(binary)
            .arg("-c")
            .arg(&file)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut pingsix = Self { child, directory };
        let started = Instant::now();
        for listener in listeners {
            while TcpStream::connect(listener).await.is_err() {
                let ended = pingsix.child.try_wait().unwrap();
                assert!(ended.is_none() && started.elapsed() < WAIT_TIMEOUT, "{ended:?}: {}", pingsix.log());
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        pingsix
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }
}
