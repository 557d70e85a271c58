use pingsix_test_programs::free_port;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::*;

#[test]
fn weights_are_kept_and_a_rejected_share_goes_to_no_node() {
    run(async {
        let (a, b) = (Backend::start(b'a').await, Backend::start(b'b').await);
        let port = free_port();
        let proxy = Proxy::serving(&[
            upstream("a", &[a.address]),
            upstream("b", &[b.address]),
            tcp(port, &[("a", 70), ("b", 20), ("!no_endpoints", 10)]),
        ])
        .await;
        let mut answers = Vec::new();
        for _ in 0..50 {
            let ten = std::array::from_fn::<_, 10, _>(|_| tokio::spawn(ask(port)));
            for answer in ten {
                answers.push(answer.await.unwrap());
            }
        }
        let count = |wanted: Option<u8>| answers.iter().filter(|answer| **answer == wanted).count();
        assert!((345..=355).contains(&count(Some(b'a'))), "{}", count(Some(b'a')));
        assert!((95..=105).contains(&count(Some(b'b'))), "{}", count(Some(b'b')));
        assert!((45..=55).contains(&count(None)), "{}", count(None));
        proxy.rejects(port, "no_endpoints").await;
    });
}

#[test]
fn the_server_name_decides() {
    run(async {
        let backends = [Backend::start(b'a').await, Backend::start(b'b').await, Backend::start(b'c').await];
        let port = free_port();
        let proxy = Proxy::serving(&[
            upstream("a", &[backends[0].address]),
            upstream("b", &[backends[1].address]),
            upstream("c", &[backends[2].address]),
            tls(port, &["a.test", "x.other.test"], "a"),
            tls(port, &["*.test"], "b"),
            tls(port, &["*.other.test"], "c"),
            tls(port, &["closed.test"], "!no_route"),
        ])
        .await;
        for (name, expected) in [
            ("a.test", Some(b'a')),
            ("A.TEST", Some(b'a')),
            ("b.test", Some(b'b')),
            ("y.other.test", Some(b'c')),
            ("x.other.test", Some(b'a')),
            ("closed.test", None),
            ("test", None),
            ("a.example", None),
        ] {
            assert_eq!(ask_tls(port, Some(name)).await, expected, "{name}");
        }
        assert_eq!(ask_tls(port, None).await, None);
        for word in ["no_route", "no_match", "no_server_name"] {
            proxy.rejects(port, word).await;
        }
    });
}

#[test]
fn a_client_hello_in_one_byte_records_reaches_the_backend_unchanged() {
    run(async {
        let backend = Backend::start(b'a').await;
        let port = free_port();
        let _proxy = Proxy::serving(&[upstream("a", &[backend.address]), tls(port, &["a.test"], "a")]).await;
        let whole = client_hello(Some("a.test"));
        let mut records = Vec::new();
        for byte in &whole[5..] {
            records.extend([22, 3, 3, 0, 1, *byte]);
        }
        let mut stream = connect(port).await;
        stream.set_nodelay(true).unwrap();
        for byte in &records {
            stream.write_all(&[*byte]).await.unwrap();
        }
        stream.write_all(b"and more").await.unwrap();
        assert_eq!(greeting(&mut stream).await, Some(b'a'));
        let mut returned = vec![0; records.len() + 8];
        stream.read_exact(&mut returned).await.unwrap();
        assert_eq!(returned, [records, b"and more".to_vec()].concat());
    });
}

#[test]
fn a_half_close_is_passed_on_and_the_answer_comes_back() {
    run(async {
        let backend = Backend::start(b'a').await;
        let port = free_port();
        let proxy = Proxy::serving(&[upstream("a", &[backend.address]), tcp(port, &[("a", 1)])]).await;
        let mut stream = connect(port).await;
        stream.write_all(b"a question").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, b"aa question");
        let closed = format!("stream_connections_total{{port=\"{port}\",outcome=\"closed\",reason=\"\"}}");
        proxy.metric_reaches(&closed, 1).await;
        assert_eq!(
            proxy.metric(&format!("stream_transferred_bytes_total{{port=\"{port}\",direction=\"in\"}}")),
            10
        );
        assert_eq!(proxy.streams.connections(), 0);
    });
}

#[test]
fn a_document_that_cannot_be_served_rejects_and_is_named() {
    run(async {
        let backend = Backend::start(b'a').await;
        let port = free_port();
        let mut route = tls(port, &["a.test"], "a");
        route.1["more"] = serde_json::json!({});
        let proxy = Proxy::start(options());
        let world = [upstream("a", &[backend.address]), tls(port, &["*.test"], "a"), route];
        let applied = proxy.streams.apply(&documents(&world)).await;
        let errors: Vec<String> = applied.errors.iter().map(ToString::to_string).collect();
        let unknown = format!("stream_routes/tls-{port}-a.test: unknown field `more`");
        assert!(errors.len() == 1 && errors[0].starts_with(&unknown), "{errors:?}");
        assert_eq!((applied.bound, applied.revision), (vec![port], 1));
        assert_eq!(ask_tls(port, Some("a.test")).await, None);
        assert_eq!(ask_tls(port, Some("b.test")).await, Some(b'a'));
    });
}

#[test]
fn nodes_on_loopback_are_refused_unless_allowed() {
    run(async {
        let backend = Backend::start(b'a').await;
        let port = free_port();
        let proxy =
            Proxy::start(pingsix_gateway_sidecar::stream::StreamOptions { local_nodes: false, ..options() });
        let mut world = [upstream("a", &[backend.address]), tcp(port, &[("a", 1)])];
        let applied = proxy.streams.apply(&documents(&world)).await;
        assert!(applied.errors[0].to_string().starts_with("upstreams/a: nodes: "));
        assert_eq!(ask(port).await, None);
        assert_eq!(backend.accepted(), 0);
        world[0].1["local"] = serde_json::json!(true);
        proxy.apply(&world).await;
        assert_eq!(ask(port).await, Some(b'a'));
    });
}
