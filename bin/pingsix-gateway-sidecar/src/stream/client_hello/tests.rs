use std::sync::Arc;

use proptest::prelude::*;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::Acceptor;
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme};

use super::*;

/// The answer for bytes that arrive in portions with these ends.
fn read(bytes: &[u8], ends: &[usize]) -> Result<Option<Hello>, ClientHelloError> {
    let mut reader = Reader::default();
    let mut begin = 0;
    for end in ends.iter().copied().chain([bytes.len()]) {
        let end = end.clamp(begin, bytes.len());
        if let Some(hello) = reader.push(&bytes[begin..end])? {
            assert_eq!(reader.into_bytes(), bytes[..end]);
            return Ok(Some(hello));
        }
        begin = end;
    }
    Ok(None)
}

fn read_at_once(bytes: &[u8]) -> Result<Option<Hello>, ClientHelloError> {
    read(bytes, &[])
}

/// A complete `ClientHello` with this server name.
fn named_hello(name: &str) -> Hello {
    Hello { name: Some(name.to_owned()) }
}

const UNNAMED: Result<Option<Hello>, ClientHelloError> = Ok(Some(Hello { name: None }));

/// The server name that rustls finds: an error if it refuses the bytes, `None` if there is none.
fn rustls_name(bytes: &[u8]) -> Result<Option<String>, ()> {
    let mut acceptor = Acceptor::default();
    let mut rest = bytes;
    loop {
        if acceptor.read_tls(&mut rest).map_err(|_| ())? == 0 {
            return Err(());
        }
        match acceptor.accept() {
            Ok(Some(accepted)) => return Ok(accepted.client_hello().server_name().map(str::to_owned)),
            Ok(None) => {}
            Err(_) => return Err(()),
        }
    }
}

/// A client that is made for its first flight only.
#[derive(Debug)]
struct Unchecked;

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Err(rustls::Error::DecryptError)
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::DecryptError)
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::DecryptError)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}

/// The first flight of a rustls client.
fn hello(name: &str, protocols: &[&str]) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Unchecked))
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut bytes).unwrap();
    }
    bytes
}

/// The message of a flight of one record.
fn message(flight: &[u8]) -> &[u8] {
    &flight[RECORD_HEADER_BYTES..]
}

/// A message in records whose contents end here.
fn records(message: &[u8], ends: &[usize]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut begin = 0;
    for end in ends.iter().copied().chain([message.len()]) {
        let end = end.clamp(begin, message.len());
        for content in message[begin..end].chunks(1 << 14) {
            bytes.extend([HANDSHAKE, 3, 1]);
            bytes.extend(u16::try_from(content.len()).unwrap().to_be_bytes());
            bytes.extend(content);
        }
        begin = end;
    }
    bytes
}

/// A minimal message with these extensions.
fn crafted(extensions: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut list = Vec::new();
    for (kind, content) in extensions {
        list.extend(kind.to_be_bytes());
        list.extend(u16::try_from(content.len()).unwrap().to_be_bytes());
        list.extend(content);
    }
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0x13, 0x01, 1, 0]);
    body.extend(u16::try_from(list.len()).unwrap().to_be_bytes());
    body.extend(list);
    let mut message = vec![CLIENT_HELLO];
    message.extend(&u32::try_from(body.len()).unwrap().to_be_bytes()[1..]);
    message.extend(body);
    message
}

fn named(name: &str) -> Vec<u8> {
    let length = u16::try_from(name.len()).unwrap();
    let mut content = (length + 3).to_be_bytes().to_vec();
    content.push(HOST_NAME);
    content.extend(length.to_be_bytes());
    content.extend(name.as_bytes());
    content
}

/// Ends of portions, in order.
fn ends(most: usize) -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..most, 0..40).prop_map(|mut ends| {
        ends.sort_unstable();
        ends
    })
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn any_segmentation_gives_one_answer_and_that_of_rustls(
        name in "([a-zA-Z0-9]{1,20}\\.){0,5}[a-z]{2,20}",
        protocols in prop::collection::vec("[a-z]{1,9}", 0..4),
        record_ends in ends(600),
        segment_ends in ends(900),
    ) {
        let protocols: Vec<&str> = protocols.iter().map(String::as_str).collect();
        let flight = hello(&name, &protocols);
        let bytes = records(message(&flight), &record_ends);
        let expected = name.to_ascii_lowercase();
        prop_assert_eq!(read(&bytes, &segment_ends), Ok(Some(named_hello(&expected))));
        let theirs = rustls_name(&flight).unwrap().unwrap();
        prop_assert_eq!(theirs.to_ascii_lowercase(), expected);
    }

    #[test]
    fn mutated_messages_give_the_answer_of_rustls_or_none(
        mutations in prop::collection::vec((0..400_usize, any::<u8>()), 1..4),
        segment_ends in ends(400),
    ) {
        let mut bytes = hello("some.name.test", &["h2"]);
        for (place, byte) in mutations {
            let place = place % bytes.len();
            bytes[place] = byte;
        }
        let ours = read_at_once(&bytes);
        prop_assert_eq!(read(&bytes, &segment_ends), ours.clone());
        if let (Ok(Some(ours)), Ok(theirs)) = (ours, rustls_name(&bytes)) {
            prop_assert_eq!(theirs.map(|theirs| theirs.to_ascii_lowercase()), ours.name);
        }
    }

    #[test]
    fn any_bytes_give_one_answer(
        bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            prop::collection::vec(prop_oneof![Just(0), Just(1), Just(3), Just(22), any::<u8>()], 0..200)
                .prop_map(|content| records(&content, &[])),
        ],
        segment_ends in ends(200),
    ) {
        prop_assert_eq!(read(&bytes, &segment_ends), read_at_once(&bytes));
    }
}

#[test]
fn one_byte_at_a_time_in_records_of_one_byte_is_read() {
    let flight = hello("a.test", &[]);
    let message = message(&flight);
    let bytes = records(message, &(0..message.len()).collect::<Vec<_>>());
    assert_eq!(read(&bytes, &(0..bytes.len()).collect::<Vec<_>>()), Ok(Some(named_hello("a.test"))));
    assert_eq!(read_at_once(&bytes[..bytes.len() - 1]), Ok(None));
}

#[test]
fn a_stream_without_a_client_hello_is_refused_at_its_first_bytes() {
    for bytes in [
        b"GET / HTTP/1.1\r\n".as_slice(),
        b"\x16\x02",
        b"\x15",
        b"\x16\x03\x01\x00\x00",
        b"\x16\x03\x01\x40\x01",
        b"\x16\x03\x01\x00\x04\x02",
        b"SSH-2.0-",
        b"\x80\x2e\x01",
    ] {
        assert_eq!(read_at_once(bytes), Err(ClientHelloError::NotClientHello), "{bytes:x?}");
    }
    for bytes in [b"".as_slice(), b"\x16", b"\x16\x03\x01\x00"] {
        assert_eq!(read_at_once(bytes), Ok(None), "{bytes:x?}");
    }
}

#[test]
fn a_client_hello_has_16_kib_with_its_record_headers() {
    let with_padding = |length: usize| crafted(&[(SERVER_NAME, named("a.test")), (21, vec![0; length])]);
    // Another length, so that the last byte is within the limit or one behind it.
    let bare = records(&with_padding(0), &[]).len();
    let fits = records(&with_padding(MAX_HELLO_BYTES - bare), &[]);
    assert_eq!((fits.len(), read_at_once(&fits)), (MAX_HELLO_BYTES, Ok(Some(named_hello("a.test")))));
    let larger = records(&with_padding(MAX_HELLO_BYTES - bare + 1), &[]);
    assert_eq!(read_at_once(&larger), Err(ClientHelloError::TooLarge));
    assert_eq!(read(&larger, &(0..larger.len()).collect::<Vec<_>>()), Err(ClientHelloError::TooLarge));
    assert_eq!(read_at_once(b"\x16\x03\x01\x00\x04\x01\x00\x40\x01"), Err(ClientHelloError::TooLarge));
    // Bytes after a complete message are ignored.
    let mut followed = records(&with_padding(0), &[]);
    followed.extend(vec![0; 2 * MAX_HELLO_BYTES]);
    assert_eq!(read_at_once(&followed), Ok(Some(named_hello("a.test"))));
}

#[test]
fn a_server_name_is_one_name_in_ascii() {
    let read = |extensions: &[(u16, Vec<u8>)]| read_at_once(&records(&crafted(extensions), &[]));
    assert_eq!(read(&[(43, vec![2, 3, 4]), (0, named("A.Test"))]), Ok(Some(named_hello("a.test"))));
    for unnamed in [vec![(43, vec![2, 3, 4])], vec![], vec![(0, named("10.0.0.1"))], vec![(0, named("::1"))]]
    {
        assert_eq!(read(&unnamed), UNNAMED, "{unnamed:x?}");
    }
    for extensions in [
        vec![(0, named("a.test")), (0, named("b.test"))],
        vec![(0, named(""))],
        vec![(0, named("ä.test"))],
        vec![(0, vec![])],
        vec![(0, [named("a.test"), vec![0]].concat())],
        vec![(0, vec![0, 4, 1, 0, 1, b'a'])],
        vec![(0, vec![0, 8, 0, 0, 1, b'a', 0, 0, 1, b'b'])],
    ] {
        assert_eq!(read(&extensions), Err(ClientHelloError::NotClientHello), "{extensions:x?}");
    }
}
