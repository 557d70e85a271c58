//! The program: arguments, signals, log.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use http::Method;
use pingsix_translate::responder::{REDIRECT_HEADER, status_host};

use crate::client::{Client, RequestSpec, WAIT_TIMEOUT};

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pingsix-gateway-sidecar"));
    command.env_remove("RUST_LOG").arg("--responder").stderr(Stdio::piped());
    command
}

fn wait(child: &mut Child) -> std::process::ExitStatus {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if started.elapsed() > WAIT_TIMEOUT {
            let _ = child.kill();
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_address_beyond_loopback_needs_the_flag() {
    let output = program().args(["--responder-listen", "0.0.0.0:0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("error: --responder-listen: 0.0.0.0:0 "), "{message}");
    assert!(message.contains("--responder-allow-non-loopback"), "{message}");
}

#[tokio::test]
async fn the_program_serves_until_a_signal_and_logs_no_header_values() {
    for signal in ["TERM", "INT"] {
        let mut child = program()
            .args(["--responder-listen", "127.0.0.1:0", "--log-format", "json"])
            .env("RUST_LOG", "trace")
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut text = String::new();
        let address: SocketAddr = loop {
            let mut line = String::new();
            assert_ne!(log.read_line(&mut line).unwrap(), 0, "{text}");
            text += &line;
            if let Some((_, rest)) = line.split_once("\"address\":\"") {
                break rest.split('"').next().unwrap().parse().unwrap();
            }
        };
        // The log is read to its end, because a program with an unread log blocks.
        let reader = std::thread::spawn(move || {
            let mut rest = String::new();
            log.read_to_string(&mut rest).unwrap();
            rest
        });
        for mut client in Client::both(address).await {
            let secret =
                vec![("cookie", "hunter2"), ("authorization", "hunter2"), (REDIRECT_HEADER, "hunter2")];
            let ask = RequestSpec {
                method: Method::POST,
                headers: secret,
                body: "hunter2".into(),
                ..RequestSpec::get("hunter2.example")
            };
            assert_eq!(client.send(ask).await.unwrap().status, 500);
            assert_eq!(client.get(&status_host(404)).await.status, 404);
        }
        let sent =
            Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        assert!(wait(&mut child).success());
        let rest = reader.join().unwrap();
        assert!(rest.contains("responder stopped"), "{rest}");
        assert!(!rest.contains("hunter2"), "{rest}");
    }
}
