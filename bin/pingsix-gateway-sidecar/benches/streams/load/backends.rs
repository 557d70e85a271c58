//! Backends, which print their addresses first.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Returns what it receives.
pub(super) async fn echo() {
    serve(async |mut stream| {
        let mut buffer = [0; 4_096];
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            if stream.write_all(&buffer[..read]).await.is_err() {
                break;
            }
        }
    })
    .await;
}

/// An HTTP server that answers requests without a body.
pub(super) async fn http() {
    serve(async |mut stream| {
        let (mut buffer, mut filled) = ([0; 4_096], 0);
        while let Ok(read @ 1..) = stream.read(&mut buffer[filled..]).await {
            filled += read;
            if buffer[..filled].ends_with(b"\r\n\r\n") {
                filled = 0;
                if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n").await.is_err() {
                    break;
                }
            }
        }
    })
    .await;
}

async fn serve(connection: impl AsyncFn(TcpStream) + Copy + 'static) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        tokio::task::spawn_local(async move { connection(stream).await });
    }
}

/// Returns datagrams, after a change.
pub(super) fn datagrams(change: impl Fn(&mut [u8])) {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    println!("{}", socket.local_addr().unwrap());
    let mut buffer = [0; 2_048];
    loop {
        // A client that has gone can make either of them fail.
        let Ok((read, from)) = socket.recv_from(&mut buffer) else { continue };
        change(&mut buffer[..read]);
        let _ = socket.send_to(&buffer[..read], from);
    }
}

/// Makes a DNS query an answer without records.
pub(super) fn answer_query(query: &mut [u8]) {
    if let Some(flags) = query.get_mut(2) {
        *flags |= 0x80;
    }
}
