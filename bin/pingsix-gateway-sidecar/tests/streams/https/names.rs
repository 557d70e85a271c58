//! Routes for any server name, and for none.

use super::*;

#[test]
fn a_route_for_any_name_takes_connections_that_no_other_route_has() {
    run(async {
        let backends = [Backend::start(b'a').await, Backend::start(b'b').await, Backend::start(b'p').await];
        let (authority, port) = (Authority::new(), free_port());
        let mut world = vec![
            local("any", &[backends[0].address]),
            local("b", &[backends[1].address]),
            local("p", &[backends[2].address]),
            authority.certificate(&["a.test", "x.b.test", "c.test", "127.0.0.1"]).document("s"),
            https(port, &["*"], "any"),
            https(port, &["*.b.test"], "b"),
            tls(port, &["passed.test"], "p"),
        ];
        let proxy = serving(&world).await;
        for version in VERSIONS {
            let client = authority.client(version);
            // A client of an IP address sends no server name.
            for (name, expected) in
                [("a.test", b'a'), ("c.test", b'a'), ("127.0.0.1", b'a'), ("x.b.test", b'b')]
            {
                assert_eq!(greeted(&client, port, name).await.unwrap(), expected, "{name}");
            }
        }
        assert_eq!(ask_tls(port, Some("passed.test")).await, Some(b'p'));
        let client = authority.client(&TLS13);
        let error = greeted(&client, port, "y.passed.test").await.unwrap_err();
        assert!(error.to_string().contains("not valid for name"), "{error}");

        // Connections without a server name resume their session.
        let handshake = async || {
            let (_, stream) = ask(&client, port, "127.0.0.1").await.unwrap();
            stream.get_ref().1.handshake_kind().unwrap()
        };
        handshake().await;
        assert_eq!(handshake().await, rustls::HandshakeKind::Resumed);

        // Without the route, both are rejected as before.
        world.remove(4);
        proxy.apply(&world).await;
        assert!(greeted(&client, port, "a.test").await.is_err());
        proxy.rejects(port, "no_match").await;
        assert!(greeted(&client, port, "127.0.0.1").await.is_err());
        proxy.rejects(port, "no_server_name").await;
        assert_eq!(greeted(&client, port, "x.b.test").await.unwrap(), b'b');
    });
}

#[test]
fn an_unusable_route_for_any_name_rejects_its_connections_alone() {
    run(async {
        let (_backend, authority, port, mut world) = one_route().await;
        let mut any = https(port, &["*"], "a");
        any.1["alpn"] = json!(["gopher"]);
        world.push(any);
        let proxy = Proxy::start(options());
        let applied = proxy.streams.apply(&documents(&world)).await;
        assert!(
            applied.errors[0].to_string().contains("\"gopher\" is neither h2 nor http/1.1."),
            "{applied:?}"
        );
        let client = authority.client(&TLS13);
        assert_eq!(greeted(&client, port, "a.test").await.unwrap(), b'a');
        for name in ["b.test", "127.0.0.1"] {
            assert!(greeted(&client, port, name).await.is_err());
        }
        proxy.rejects(port, "invalid").await;
    });
}
