//! The commands of `testdata/quickstart-streams`, one after another.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use pingsix_test_programs::{commands, free_port, program};

/// Longer than a program takes to start.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

const FOLDER: &str = "testdata/quickstart-streams";

/// A program in the background, which ends with the test.
struct Background(Child);

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A word of a text in the place of another one.
fn replace_words(text: &str, words: &BTreeMap<&str, String>) -> String {
    let mut replaced = String::new();
    let mut word = String::new();
    for character in text.chars().chain(['\0']) {
        if character.is_ascii_alphanumeric() {
            word.push(character);
            continue;
        }
        replaced += words.get(word.as_str()).unwrap_or(&word);
        word.clear();
        replaced.push(character);
    }
    replaced.pop();
    replaced
}

/// Sends back what comes, for as long as the test runs.
fn echo_connections(port: u16) {
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    std::thread::spawn(move || {
        for mut connection in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(size @ 1..) = connection.read(&mut buffer) {
                    connection.write_all(&buffer[..size]).unwrap();
                }
            });
        }
    });
}

fn echo_datagrams(port: u16) {
    let socket = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok((size, from)) = socket.recv_from(&mut buffer) {
            socket.send_to(&buffer[..size], from).unwrap();
        }
    });
}

/// Whether bytes come back over a new connection.
fn comes_back(port: u16, sent: &[u8]) -> bool {
    let Ok(mut connection) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    connection.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut received = vec![0; sent.len()];
    connection.write_all(sent).is_ok() && connection.read_exact(&mut received).is_ok() && received == sent
}

fn datagram_comes_back(port: u16) -> bool {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut buffer = [0; 16];
    socket.send_to(b"query", ("127.0.0.1", port)).unwrap();
    matches!(socket.recv(&mut buffer), Ok(size) if buffer[..size] == *b"query")
}

/// The first bytes of a client that asks for a name.
fn client_hello(name: &str) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.unwrap().with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
    let name = name.to_owned().try_into().unwrap();
    let mut hello = Vec::new();
    rustls::ClientConnection::new(Arc::new(config), name).unwrap().write_tls(&mut hello).unwrap();
    hello
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < WAIT_TIMEOUT, "{what}");
        sleep(Duration::from_millis(50));
    }
}

/// The words of a command after an option.
fn word_after<'a>(command: &'a str, option: &str) -> &'a str {
    command.split_whitespace().skip_while(|word| *word != option).nth(1).unwrap()
}

#[tokio::test]
async fn every_command_of_the_quickstart_does_what_the_page_says() {
    let programs = program("pingsix-gatewayctl").await.parent().unwrap().to_owned();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let is_free = |port: &u16| {
        TcpListener::bind(("127.0.0.1", *port)).is_ok() && UdpSocket::bind(("127.0.0.1", *port)).is_ok()
    };
    let low = (1..1_000_u16).rev().find(|port| is_free(&(port + 10_000))).unwrap();
    // Others may use the ports of the page.
    let mut ports: BTreeMap<&str, String> = ["5432", "8443", "2379", "7086", "9011", "9012", "9013", "9014"]
        .map(|port| (port, free_port().to_string()))
        .into();
    ports.extend([("53", low.to_string()), ("10053", (low + 10_000).to_string())]);
    let port = |of: &str| ports[of].parse::<u16>().unwrap();

    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join(FOLDER);
    fs::create_dir_all(&folder).unwrap();
    for file in ["gateway.yaml", "routes.yaml", "backends.yaml"] {
        let manifests = fs::read_to_string(root.join(FOLDER).join(file)).unwrap();
        fs::write(folder.join(file), replace_words(&manifests, &ports)).unwrap();
    }
    for backend in ["9011", "9012", "9014"] {
        echo_connections(port(backend));
    }
    echo_datagrams(port("9013"));

    let page = fs::read_to_string(root.join(FOLDER).join("README.md")).unwrap();
    let page = replace_words(&page, &ports);
    let commands = commands(&page);
    assert_eq!(commands.len(), 10, "{commands:#?}");
    let path =
        std::env::join_paths(std::iter::once(programs).chain([PathBuf::from("/usr/bin"), "/bin".into()]));
    let shell = |command: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(&directory).env_clear().env("PATH", path.as_ref().unwrap());
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        shell
    };
    let (mut background, mut asked) = (Vec::new(), 0);
    for command in commands {
        let name = command.split(' ').next().unwrap();
        match (name, command.strip_suffix(" &")) {
            (_, Some(command)) => {
                if command.contains("--streams-file") {
                    background.clear();
                }
                let child =
                    shell(&format!("exec {command}")).stderr(Stdio::null()).stdout(Stdio::null()).spawn();
                background.push(Background(child.unwrap()));
            }
            ("pingsix-gatewayctl", None) => {
                let output = shell(command).output().unwrap();
                assert!(output.status.success(), "{command}: {output:?}");
            }
            ("curl", None) => until(command, || {
                let Ok(mut page) = TcpStream::connect(("127.0.0.1", port("7086"))) else { return false };
                let request = "GET /status/config HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n";
                page.write_all(request.as_bytes()).unwrap();
                let mut answer = String::new();
                page.read_to_string(&mut answer).unwrap();
                answer.contains("\"ready\":true") && answer.contains("\"faults\":[]")
            }),
            ("psql", None) => {
                let port = command.split_whitespace().find_map(|word| word.strip_prefix("port=")).unwrap();
                assert!(comes_back(port.parse().unwrap(), b"select 1"));
                asked += 1;
            }
            ("dig", None) => {
                assert!(datagram_comes_back(word_after(command, "-p").parse().unwrap()));
                asked += 1;
            }
            ("openssl", None) => {
                let port = word_after(command, "-connect").rsplit(':').next().unwrap().parse().unwrap();
                assert!(comes_back(port, &client_hello(word_after(command, "-servername"))));
                assert!(!comes_back(port, &client_hello("elsewhere.example.com")));
                asked += 1;
            }
            _ => panic!("{command}: not known"),
        }
    }
    assert_eq!(asked, 3);
    // The sidecar that reads a file.
    until("the database", || comes_back(port("5432"), b"select 1"));
    assert!(datagram_comes_back(port("10053")));
}
