//! The bytes of a session, and its end.

use super::*;

#[test]
fn random_bytes_in_both_directions_are_unharmed() {
    run(async {
        let (_backend, authority, port, world) = one_route().await;
        let _proxy = Proxy::serving(&world).await;
        for version in VERSIONS {
            let mut stream = authority.client(version).open(port, "a.test").await.unwrap();
            assert_eq!(stream.read_u8().await.unwrap(), b'a');
            let bytes = random_bytes(random_length(), 7);
            echo_in_portions(&mut stream, &bytes, 11).await;
            echo(&mut stream, &bytes).await;
        }
    });
}

#[test]
fn an_end_of_either_side_is_passed_on_and_the_other_direction_goes_on() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (authority, port, world) = route_to(listener.local_addr().unwrap());
        let proxy = Proxy::serving(&world).await;
        for version in VERSIONS {
            let client = authority.client(version);
            for client_first in [true, false] {
                let (client, backend) = tokio::join!(client.open(port, "a.test"), listener.accept());
                let (mut client, mut backend) = (client.unwrap(), backend.unwrap().0);
                let mut received = Vec::new();
                if client_first {
                    client.write_all(b"the end").await.unwrap();
                    client.shutdown().await.unwrap();
                    backend.read_to_end(&mut received).await.unwrap();
                    assert_eq!(received, b"the end");
                    backend.write_all(&vec![7; 100_000]).await.unwrap();
                    drop(backend);
                    received.clear();
                    // An error would be an end without close_notify.
                    client.read_to_end(&mut received).await.unwrap();
                } else {
                    backend.write_all(b"the end").await.unwrap();
                    backend.shutdown().await.unwrap();
                    client.read_to_end(&mut received).await.unwrap();
                    assert_eq!(received, b"the end");
                    client.write_all(&vec![7; 100_000]).await.unwrap();
                    client.shutdown().await.unwrap();
                    received.clear();
                    backend.read_to_end(&mut received).await.unwrap();
                }
                assert!(received == vec![7; 100_000]);
            }
        }
        let closed = format!("stream_connections_total{{port=\"{port}\",outcome=\"closed\",reason=\"\"}}");
        proxy.metric_reaches(&closed, 4).await;
    });
}

#[test]
fn a_connection_that_is_cut_off_has_no_clean_end() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (authority, port, world) = route_to(listener.local_addr().unwrap());
        let proxy = Proxy::serving(&world).await;
        let client = authority.client(&TLS13);
        for client_is_cut in [true, false] {
            let (client, backend) = tokio::join!(client.open(port, "a.test"), listener.accept());
            let (mut client, mut backend) = (client.unwrap(), backend.unwrap().0);
            client.write_all(b"x").await.unwrap();
            client.flush().await.unwrap();
            assert_eq!(backend.read_u8().await.unwrap(), b'x');
            if client_is_cut {
                // The end of TCP without close_notify.
                let (mut stream, _) = client.into_inner();
                stream.shutdown().await.unwrap();
                assert_eq!(backend.read_u8().await.unwrap_err().kind(), ErrorKind::ConnectionReset);
                assert_eq!(
                    stream.read_to_end(&mut Vec::new()).await.unwrap_err().kind(),
                    ErrorKind::ConnectionReset
                );
            } else {
                backend.set_zero_linger().unwrap();
                drop(backend);
                let error = client.read_to_end(&mut Vec::new()).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ConnectionReset);
            }
        }
        let broken = format!("stream_connections_total{{port=\"{port}\",outcome=\"broken\",reason=\"\"}}");
        proxy.metric_reaches(&broken, 2).await;
    });
}

#[test]
fn a_client_that_reads_nothing_can_still_send() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (authority, port, world) = route_to(listener.local_addr().unwrap());
        let _proxy = Proxy::serving(&world).await;
        let client = authority.client(&TLS13);
        let (client, backend) = tokio::join!(client.open(port, "a.test"), listener.accept());
        let (mut client, mut backend) = (client.unwrap(), backend.unwrap().0);
        // More than all buffers on the way hold.
        let mut held = 0_usize;
        let (mut input, mut output) = backend.split();
        while let Ok(written) =
            tokio::time::timeout(Duration::from_millis(300), output.write(&vec![5; 65_536])).await
        {
            held += written.unwrap();
        }
        let bytes = random_bytes(1_000_000, 3);
        let mut received = vec![0; bytes.len()];
        let send = async {
            client.write_all(&bytes).await?;
            client.flush().await
        };
        let (written, read) = tokio::join!(send, input.read_exact(&mut received));
        written.unwrap();
        read.unwrap();
        assert!(received == bytes);
        let mut taken = vec![0; held];
        client.read_exact(&mut taken).await.unwrap();
        assert!(taken.iter().all(|byte| *byte == 5));
    });
}
