//! TCP, UDP and TLS by the sidecars of managed data planes.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use kube::Api;
use pingsix_translate::Kind;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use super::env::{ManagedEnv, gateway, plain};
use super::traffic::{EXPECTED_RESPONSE, Target};
use super::{CHANGING, PINGSIX_ARGUMENT, processes};

/// Longer than any answer takes.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

fn listener(protocol: &str, port: u16) -> String {
    let tls = if protocol == "TLS" { ", hostname: db.example.com, tls: {mode: Passthrough}" } else { "" };
    format!("{{name: {}-{port}, port: {port}, protocol: {protocol}{tls}}}", protocol.to_lowercase())
}

/// A route for all listeners of its protocol to a port of the backend.
fn stream_route(kind: &str, backend_port: u16) -> String {
    let hostnames = if kind == "TLSRoute" { "hostnames: [db.example.com], " } else { "" };
    format!(
        "
apiVersion: gateway.networking.k8s.io/v1
kind: {kind}
metadata: {{name: restless, namespace: default}}
spec: {{{hostnames}parentRefs: [{{name: {CHANGING}}}], rules: [{{backendRefs: [{{name: streams, port: {backend_port}}}]}}]}}
"
    )
}

/// The backend by the protocols of its Pod: HTTP on TCP, and an echo on UDP.
const SERVICE: &str = "
apiVersion: v1
kind: Service
metadata: {name: streams, namespace: default}
spec:
  selector: {app: backend}
  ports:
  - {name: tcp, port: 80, targetPort: 8080, protocol: TCP}
  - {name: udp, port: 53, targetPort: 8080, protocol: UDP}
";

/// Sends a request on a connection that stays open.
async fn ask_again(connection: &mut BufReader<TcpStream>) -> String {
    connection.write_all(b"GET / HTTP/1.1\r\nhost: db.example.com\r\n\r\n").await.unwrap();
    let mut length = 0;
    loop {
        let mut line = String::new();
        connection.read_line(&mut line).await.unwrap();
        if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body).await.unwrap();
    String::from_utf8(body).unwrap()
}

/// Whether the echo of the backend answers a new client.
async fn echoes(address: SocketAddr) -> bool {
    let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
    socket.connect(address).await.unwrap();
    let sent = [7; 1_400];
    socket.send(&sent).await.unwrap();
    let mut buffer = [0; 2_000];
    match timeout(ANSWER_TIMEOUT, socket.recv(&mut buffer)).await {
        Ok(Ok(size)) => buffer[..size] == sent,
        Ok(Err(_)) | Err(_) => false,
    }
}

async fn is_reset(address: SocketAddr) -> bool {
    let Ok(mut connection) = TcpStream::connect(address).await else { return true };
    // No ClientHello: a listener for TLS closes the connection.
    let _ = connection.write_all(b"GET / HTTP/1.1\r\n\r\n").await;
    let mut answer = Vec::new();
    matches!(timeout(ANSWER_TIMEOUT, connection.read_to_end(&mut answer)).await, Ok(Err(_) | Ok(0)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_listeners_come_and_go_without_another_pod() {
    let test = "streams::stream_listeners_come_and_go_without_another_pod";
    let Some(env) = ManagedEnv::start(test, &[]).await else { return };
    let watch = env.watch_undisturbed().await;
    env.apply(SERVICE).await;
    let of = |listeners: &[String]| gateway(CHANGING, &format!("[{}]", listeners.join(", ")));
    env.apply(&of(&[plain(80)])).await;
    let address: IpAddr = env.address(CHANGING).await;
    let containers = env.containers(CHANGING).await;

    // TCP and UDP of one number, one that is privileged, and one whose port in the Pod PingSIX has.
    env.apply(&stream_route("TCPRoute", 80)).await;
    let tcp = [plain(80), listener("TCP", 53), listener("TCP", 10_080), listener("UDP", 53)];
    env.apply(&of(&tcp)).await;
    let target = |port: u16| Target::new(address, port, "db.example.com");
    for port in [53, 10_080] {
        env.is_served(&target(port)).await;
    }
    env.apply(&stream_route("UDPRoute", 53)).await;
    env.until("an echo", async || echoes((address, 53).into()).await).await;
    assert_eq!(env.address(CHANGING).await, address, "programmed");

    // A connection outlives changes of the other listeners.
    let mut open = BufReader::new(TcpStream::connect((address, 53)).await.unwrap());
    let body = EXPECTED_RESPONSE.trim_start_matches("200 ");
    assert_eq!(ask_again(&mut open).await, body);
    env.apply(&stream_route("TLSRoute", 80)).await;
    env.apply(&of(&[plain(80), listener("TCP", 53), listener("TLS", 5432)])).await;
    env.is_closed(&target(10_080)).await;
    env.address(CHANGING).await;
    assert!(is_reset((address, 5432).into()).await);
    assert_eq!(ask_again(&mut open).await, body);
    env.until("that nobody echoes", async || !echoes((address, 53).into()).await).await;
    assert_eq!(env.containers(CHANGING).await, containers, "no Pod was replaced");

    // The port of a Service is a number, so that Pods need not name it.
    let services = Api::<Service>::namespaced(env.cluster.admin(), "default");
    let service = services.get("restless-pingsix").await.unwrap();
    let ports: Vec<String> =
        service.spec.unwrap().ports.unwrap().into_iter().filter_map(|port| port.name).collect();
    assert_eq!(ports, ["port-80", "tcp-53", "tcp-5432"]);
    watch.assert_undisturbed(&env).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_without_http_runs_the_sidecar_alone() {
    let test = "streams::a_gateway_without_http_runs_the_sidecar_alone";
    let Some(env) = ManagedEnv::start(test, &[]).await else { return };
    let before = processes(PINGSIX_ARGUMENT);
    env.apply(SERVICE).await;
    env.apply(&stream_route("TCPRoute", 80)).await;
    env.apply(&gateway(CHANGING, &format!("[{}]", listener("TCP", 5432)))).await;
    let address = env.address(CHANGING).await;
    env.is_served(&Target::new(address, 5432, "db.example.com")).await;
    let containers = env.containers(CHANGING).await;
    let names: Vec<&str> =
        containers.iter().flat_map(|(_, all)| all.iter().map(|one| one.0.as_str())).collect();
    assert_eq!((names, processes(PINGSIX_ARGUMENT)), (vec!["sidecar"], before));
    // A route that goes leaves a listener that rejects, and the Gateway programmed.
    env.delete(Kind::TcpRoute, CHANGING).await;
    env.until("that connections are reset", async || is_reset((address, 5432).into()).await).await;
    env.address(CHANGING).await;
}
