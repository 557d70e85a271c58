//! The real PingSIX behind the sidecar, when `PINGSIX_BIN` names it.

use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::{http1, http2};
use hyper::{Request, StatusCode, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use pingsix_translate::responder::status_host;
use tokio::net::TcpListener;

use super::*;
use crate::pingsix::PingSix;

/// An HTTP server that answers each request with its head.
async fn mirror() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await?);
                }
                let length = head.len();
                let answer =
                    format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
                stream.write_all(answer.as_bytes()).await?;
                stream.write_all(&head).await?;
                stream.shutdown().await
            });
        }
    });
    address
}

/// Status, version and body of the answer to a request over a connection.
async fn get(stream: TlsStream<TcpStream>, host: &str, path: &str) -> (StatusCode, Version, String) {
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let request = Request::builder();
    let response = if is_http2 {
        let (mut sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = request.uri(format!("https://{host}{path}")).body(Empty::<&[u8]>::new()).unwrap();
        sender.send_request(request).await.unwrap()
    } else {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = request.uri(path).header("host", host).body(Empty::<&[u8]>::new()).unwrap();
        sender.send_request(request).await.unwrap()
    };
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (head.status, head.version, String::from_utf8_lossy(&body).into_owned())
}

#[test]
fn requests_of_both_versions_arrive_and_a_client_certificate_is_demanded() {
    let Some(binary) = pingsix_test_programs::pingsix() else { return };
    run(async {
        let front = free_port();
        let slots = [7, 8].map(|slot| SocketAddr::from(([127, 1, 187, slot], front)));
        // The address of a listener is in the variables of a route.
        let mirror = mirror().await;
        let nowhere = status_host(421);
        let documents = format!(
            r#"upstreams:
  - {{ id: "web", nodes: {{ "{mirror}": 1 }}, type: roundrobin, pass_host: pass }}
  - {{ id: "421", nodes: {{ "{mirror}": 1 }}, type: roundrobin, pass_host: rewrite, upstream_host: "{nowhere}" }}
routes:
  - id: "web"
    uri: "/{{*p}}"
    host: "a.test"
    upstream_id: "web"
    plugins:
      traffic-split:
        rules:
          - vars: [ [ "server_addr", "!=", "{0}" ] ]
            weighted_upstreams: [ {{ upstream_id: "421", weight: 1 }} ]
"#,
            slots[0],
        );
        let _pingsix = PingSix::start(&binary, &slots, &documents).await;

        let (authority, clients, port) = (Authority::new(), Authority::new(), free_port());
        let mut demanding = https(port, &["a.test"], "one");
        demanding.1["client_auth"] = json!({"mode": "require_and_verify", "ca_ids": ["clients"]});
        let proxy = serving(&[
            local("one", &slots[..1]),
            local("other", &slots[1..]),
            authority.certificate(&["a.test", "*.b.test", "127.0.0.1"]).document("s"),
            clients.document("clients"),
            demanding,
            https(port, &["*.b.test", "*"], "other"),
        ])
        .await;
        let certificate = clients.certificate(&["client"]);
        for version in VERSIONS {
            for (protocols, expected) in [
                (&["h2", "http/1.1"][..], Version::HTTP_2),
                (&["http/1.1"], Version::HTTP_11),
                (&[], Version::HTTP_11),
            ] {
                let client = authority.client(version).offering(protocols);
                let valid = client.clone().showing(&certificate);
                let stream = valid.open(port, "a.test").await.unwrap();
                let (status, version, body) = get(stream, "a.test", "/some/path?and=query").await;
                assert_eq!((status, version), (StatusCode::OK, expected), "{body}");
                assert!(body.starts_with("GET /some/path?and=query HTTP/1.1\r\n"), "{body}");
                assert!(body.to_ascii_lowercase().contains("\r\nhost: a.test\r\n"), "{body}");
                assert!(greeted(&client, port, "a.test").await.is_err(), "no certificate");

                // The same request at another listener is known by its address.
                for name in ["x.b.test", "127.0.0.1"] {
                    let stream = client.open(port, name).await.unwrap();
                    let (status, version, body) = get(stream, "a.test", "/path").await;
                    assert_eq!((status, version), (StatusCode::OK, expected));
                    assert!(
                        body.to_ascii_lowercase().contains(&format!("\r\nhost: {nowhere}\r\n")),
                        "{body}"
                    );
                }
            }
        }
        proxy.rejects(port, "client_certificate").await;
    });
}
