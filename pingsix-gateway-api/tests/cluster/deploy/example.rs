//! The example, end to end: its Gateway goes through a controller with the rights of the manifests, whose feed is served
//! with the certificates that `feed-certificates` makes; a PingSIX with the example's configuration reads it and answers.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};

use pingsix_sink::EmbeddedEtcd;
use pingsix_sink::embedded::ServerTls;
use pingsix_test_programs::free_port;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::installation::Installation;
use super::manifests::{Manifests, folder};
use crate::test_env::pingsix;

/// Certificates in a folder; `None`, with a message, if the test cannot run.
fn certificates(test: &str) -> Option<tempfile::TempDir> {
    if Command::new("openssl").arg("version").stdout(Stdio::null()).status().is_err() {
        pingsix::print_message(&format!("{test}: NOT RUN: there is no openssl"));
        return None;
    }
    let made = tempfile::tempdir().unwrap();
    let output = Command::new(folder().join("feed-certificates")).arg(made.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(made)
}

/// The feed with those certificates, and its address.
async fn feed(certificates: &Path) -> (EmbeddedEtcd, SocketAddr, DropGuard) {
    let file = |name: &str| certificates.join(name);
    let tls = ServerTls::from_files(file("server.crt"), file("server.key")).client_ca_file(file("ca.crt"));
    let etcd = EmbeddedEtcd::builder().tls(tls).start().await.unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let (served, stopped) = (etcd.clone(), stop.clone());
    tokio::spawn(async move { served.serve(listener, stopped).await });
    (etcd, address, stop.drop_guard())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_answers() {
    const TEST: &str = "the_example_answers";
    const HOST: &str = "moved.example";
    let Some(binary) = pingsix::binary(TEST) else { return };
    let Some(made) = certificates(TEST) else { return };
    let Some(mut installation) = Installation::of(&Manifests::cluster_wide()).await else { return };
    let example = Manifests::example();
    installation.test_env.apply(&example.text()).await;

    let (responder, _responds) = pingsix::responder().await;
    installation.options.translation.responder = Some(responder);
    // As the README has it for certificates of one's own.
    installation.options.feed_authority = None;
    let (etcd, address, _stop) = feed(made.path()).await;
    let running = installation.run_with(&etcd).await;

    let text = example.get("ConfigMap", "pingsix")["data"]["config.yaml"].as_str().unwrap();
    let cluster = &installation.test_env.cluster;
    let (http, status) = (free_port(), free_port());
    let service = "https://pingsix-gateway-feed.pingsix-system.svc:2379";
    let in_folder = |name: &str| made.path().join(name).display().to_string();
    let mut config = text.to_owned();
    for (given, here) in [
        (service, format!("https://{address}")),
        ("/etc/pingsix/feed-tls/ca.crt", in_folder("ca.crt")),
        ("/etc/pingsix/feed-tls/tls.crt", in_folder("client.crt")),
        ("/etc/pingsix/feed-tls/tls.key", in_folder("client.key")),
        // The name that the Service has is the one to verify.
        ("    tls:\n", "    tls:\n      domain: pingsix-gateway-feed.pingsix-system.svc\n".to_owned()),
        ("0.0.0.0:8080", format!("127.0.0.1:{http}")),
        ("0.0.0.0:7085", format!("127.0.0.1:{status}")),
    ] {
        assert_eq!(config.matches(given).count(), 1, "{given}");
        config = config.replace(given, &here);
    }
    fs::write(in_folder("config.yaml"), config).unwrap();
    let deployment = example.get("Deployment", "pingsix");
    let command = deployment.pointer("/spec/template/spec/containers/0/command").unwrap().as_array().unwrap();
    assert_eq!(command[0], "pingsix");
    let arguments = command[1..].iter().map(|argument| {
        argument
            .as_str()
            .unwrap()
            .replace("/etc/pingsix/config/config.yaml", &in_folder("config.yaml"))
            .into()
    });
    let command = [binary].into_iter().chain(arguments).collect();
    let process = cluster.run("pingsix", command).await.unwrap();
    let log = process.log();

    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        let container = deployment.pointer("/spec/template/spec/containers/0").unwrap();
        let path = container[probe].pointer("/httpGet/path").unwrap().as_str().unwrap();
        pingsix::until(status, HOST, path, &log, |head| head.starts_with("http/1.1 200")).await;
    }
    pingsix::until(http, HOST, "/some/path", &log, |head| {
        head.starts_with("http/1.1 301") && head.contains("location: https://www.example/some/path")
    })
    .await;
    running.stop().await;
    process.kill().await.unwrap();
}
