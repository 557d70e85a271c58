//! The `openssl` program, for material that no library here can make.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::run::print_message;

/// The program and its output directory.
pub(super) struct Program {
    directory: tempfile::TempDir,
}

impl Program {
    /// `None`, with a message, without the program.
    pub(super) fn find(test: &str) -> Option<Self> {
        let found =
            Command::new("openssl").arg("version").output().is_ok_and(|output| output.status.success());
        if !found {
            print_message(&format!("{test}: there is no program openssl, so what it makes is NOT TRIED"));
        }
        found.then(|| Self { directory: tempfile::tempdir().unwrap() })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn run(&self, arguments: &[&str], input: &[u8]) -> Output {
        let mut child = Command::new("openssl")
            .args(arguments)
            .current_dir(self.directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The program may end before the end of its input.
        let _ = child.stdin.take().unwrap().write_all(input);
        child.wait_with_output().unwrap()
    }

    /// The output of the program for an input; `None` after a refusal.
    pub(super) fn convert(&self, arguments: &[&str], input: &str) -> Option<String> {
        let output = self.run(arguments, input.as_bytes());
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }

    /// A new key; `None` when this version cannot make it.
    pub(super) fn key(&self, options: &[&str]) -> Option<String> {
        self.convert(&[&["genpkey", "-quiet"], options].concat(), "")
            .or_else(|| self.convert(&[&["genpkey"], options].concat(), ""))
    }

    /// A certificate for a key, signed by itself.
    pub(super) fn certificate(&self, key: &str, options: &[&str]) -> Option<String> {
        fs::write(self.path("key.pem"), key).unwrap();
        let fixed = ["req", "-x509", "-new", "-key", "key.pem", "-subj", "/CN=a.test", "-days", "3650"];
        self.convert(&[&fixed[..], options].concat(), "")
    }

    /// Whether a server completes a handshake with a certificate, over TLS 1.2 or 1.3.
    pub(super) fn shakes_hands(&self, server: SocketAddr, name: &str, certificate: &str) -> bool {
        let server = server.to_string();
        let expected = self.convert(&["x509", "-noout", "-fingerprint"], certificate).unwrap();
        ["-tls1_2", "-tls1_3"].iter().any(|version| {
            let arguments = ["s_client", "-connect", &server, "-servername", name, version];
            let output = self.run(&[&arguments[..], &["-cipher", "ALL:@SECLEVEL=0"]].concat(), b"");
            let output = String::from_utf8_lossy(&output.stdout).into_owned();
            let Some(shown) = self.convert(&["x509", "-noout", "-fingerprint"], &output) else {
                return false;
            };
            shown == expected
        })
    }
}
