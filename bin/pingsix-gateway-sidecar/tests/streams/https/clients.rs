//! Client certificates.

use rustls::HandshakeKind;

use super::*;

/// A route for `a.test` that asks for client certificates, with the authority `clients`, whose document is the last.
async fn with_client_auth(mode: &str) -> (Backend, Authority, Authority, u16, Vec<(String, Value)>) {
    let (backend, authority, port, mut world) = one_route().await;
    let clients = Authority::new();
    world[2].1["client_auth"] = json!({"mode": mode, "ca_ids": ["clients"]});
    world.push(clients.document("clients"));
    (backend, authority, clients, port, world)
}

#[test]
fn a_valid_certificate_is_required() {
    run(async {
        let (backend, authority, clients, port, world) = with_client_auth("require_and_verify").await;
        let proxy = serving(&world).await;
        let valid = clients.certificate(&["client"]);
        let foreign = Authority::new().certificate(&["client"]);
        for version in VERSIONS {
            let client = || authority.client(version);
            assert_eq!(greeted(&client().showing(&valid), port, "a.test").await.unwrap(), b'a');
            let before = backend.accepted();
            for (client, why) in [
                (client(), "no certificate"),
                (client().showing(&foreign), "a foreign certificate"),
                (client().showing(&authority.certificate(&["client"])), "one of the server's authority"),
                (client().showing(&valid.with_key_of(&foreign)), "a key of another certificate"),
                (client().showing(&valid.lengthened(17_000)), "too long a chain"),
            ] {
                assert!(greeted(&client, port, "a.test").await.is_err(), "{why}");
            }
            assert_eq!(backend.accepted(), before);
        }
        let refused = format!(
            "stream_connections_total{{port=\"{port}\",outcome=\"rejected\",reason=\"client_certificate\"}}"
        );
        proxy.metric_reaches(&refused, 10).await;
        assert_eq!(handshakes(&proxy, port, "full"), 2);
    });
}

#[test]
fn any_certificate_or_none_is_taken_where_one_is_only_asked_for() {
    run(async {
        let (backend, authority, clients, port, mut world) = with_client_auth("request").await;
        let proxy = serving(&world).await;
        let valid = clients.certificate(&["client"]);
        let foreign = Authority::new().certificate(&["client"]);
        for has_authorities in [true, false] {
            if !has_authorities {
                world[2].1["client_auth"] = json!({"mode": "request"});
                proxy.apply(&world).await;
            }
            for version in VERSIONS {
                let client = || authority.client(version);
                for client in [client(), client().showing(&valid), client().showing(&foreign)] {
                    assert_eq!(greeted(&client, port, "a.test").await.unwrap(), b'a');
                }
                // The client must have the key.
                let before = backend.accepted();
                let client = client().showing(&valid.with_key_of(&foreign));
                assert!(greeted(&client, port, "a.test").await.is_err());
                assert_eq!(backend.accepted(), before);
            }
        }
        proxy.rejects(port, "client_certificate").await;
    });
}

#[test]
fn no_session_is_resumed_where_client_certificates_are_asked_for() {
    run(async {
        let (_backend, authority, clients, port, mut world) = with_client_auth("request").await;
        let proxy = serving(&world).await;
        let handshake = async |client: &Client| {
            let (_, stream) = ask(client, port, "a.test").await?;
            io::Result::Ok(stream.get_ref().1.handshake_kind().unwrap())
        };
        for version in VERSIONS {
            let anonymous = authority.client(version);
            let valid = authority.client(version).showing(&clients.certificate(&["client"]));
            world[2].1["client_auth"].take();
            world[3] = clients.document("clients");
            proxy.apply(&world).await;
            for client in [&valid, &anonymous] {
                assert_eq!(handshake(client).await.unwrap(), HandshakeKind::Full);
                assert_eq!(handshake(client).await.unwrap(), HandshakeKind::Resumed);
            }

            for _ in 0..2 {
                world[2].1["client_auth"] = json!({"mode": "request", "ca_ids": ["clients"]});
                proxy.apply(&world).await;
                for client in [&valid, &anonymous, &valid, &anonymous] {
                    assert_eq!(handshake(client).await.unwrap(), HandshakeKind::Full);
                }
                world[2].1["client_auth"]["mode"] = json!("require_and_verify");
                proxy.apply(&world).await;
                assert!(handshake(&anonymous).await.is_err());
                assert_eq!(handshake(&valid).await.unwrap(), HandshakeKind::Full);
                assert_eq!(handshake(&valid).await.unwrap(), HandshakeKind::Full);
            }

            // The authority goes, and open connections go on.
            let (_, mut open) = ask(&valid, port, "a.test").await.unwrap();
            world[3] = Authority::new().document("clients");
            proxy.apply(&world).await;
            assert!(handshake(&valid).await.is_err());
            echo(&mut open, b"still open").await;
        }
    });
}

#[test]
fn an_authority_that_cannot_be_used_rejects_its_routes_alone() {
    run(async {
        for mode in ["require_and_verify", "request"] {
            let (backend, authority, clients, port, mut world) = with_client_auth(mode).await;
            world[1] = authority.certificate(&["a.test", "b.test"]).document("s");
            world.push(https(port, &["b.test"], "a"));
            world[3].1 = json!({"certs": "-----BEGIN CERTIFICATE-----\nhush"});
            let proxy = Proxy::start(options());
            let applied = proxy.streams.apply(&documents(&world)).await;
            let errors: Vec<String> = applied.errors.iter().map(ToString::to_string).collect();
            assert_eq!(errors.len(), 2, "{errors:?}");
            assert!(
                errors[0].starts_with("cas/clients: certs: ") && !errors[0].contains("hush"),
                "{errors:?}"
            );
            let route = "client_auth.ca_ids: There is no usable document cas/clients.";
            assert_eq!(errors[1], format!("stream_routes/tls-{port}-a.test: {route}"));
            let valid = authority.client(&TLS13).showing(&clients.certificate(&["client"]));
            assert!(greeted(&valid, port, "a.test").await.is_err());
            proxy.rejects(port, "invalid").await;
            assert_eq!(backend.accepted(), 0);
            assert_eq!(greeted(&valid, port, "b.test").await.unwrap(), b'a');
            world[3] = clients.document("clients");
            proxy.apply(&world).await;
            assert_eq!(greeted(&valid, port, "a.test").await.unwrap(), b'a');
        }
    });
}

#[test]
fn connections_of_one_port_are_asked_for_certificates_by_their_route() {
    run(async {
        let (_backend, authority, clients, port, mut world) = with_client_auth("require_and_verify").await;
        world[1] = authority.certificate(&["a.test", "b.test", "127.0.0.1"]).document("s");
        world.push(https(port, &["b.test", "*"], "a"));
        let _proxy = serving(&world).await;
        for version in VERSIONS {
            let (client, valid) =
                (authority.client(version), authority.client(version).showing(&clients.certificate(&["c"])));
            assert!(greeted(&client, port, "a.test").await.is_err());
            for name in ["b.test", "127.0.0.1"] {
                assert_eq!(greeted(&client, port, name).await.unwrap(), b'a', "{name}");
            }
            for name in ["a.test", "b.test"] {
                assert_eq!(greeted(&valid, port, name).await.unwrap(), b'a', "{name}");
            }
        }
    });
}
