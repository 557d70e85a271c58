//! `serve` over loopback: what it prints, what etcd clients read, and what the explainer answers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use pingsix_test_programs::proto::etcdserverpb::RangeRequest;
use pingsix_test_programs::proto::etcdserverpb::kv_client::KvClient;
use tonic::transport::{Channel, Endpoint};

use crate::support::{CART, GATEWAY, Manifests, route};

/// The time limit of an effect, also on a busy machine.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// A running `serve`; dropping it ends it.
pub(crate) struct Served {
    child: Child,
    lines: Receiver<String>,
    pub(crate) etcd: SocketAddr,
    pub(crate) explain: SocketAddr,
    pub(crate) responder: SocketAddr,
}

impl Served {
    pub(crate) fn start(manifests: &Manifests, arguments: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", manifests, arguments)
    }

    /// As [`Self::start`], with the manifests of a path.
    pub(crate) fn start_on(path: &Path, arguments: &[&str]) -> Self {
        Self::spawn("127.0.0.1:0", path, arguments)
    }

    /// As [`Self::start`], on this address.
    pub(crate) fn start_at(listen: &str, manifests: &Manifests, arguments: &[&str]) -> Self {
        Self::spawn(listen, manifests.path(), arguments)
    }

    fn spawn(listen: &str, path: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_pingsix-gatewayctl"))
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
            .arg("serve")
            .arg(path)
            .args(["--listen", listen, "--explain", "127.0.0.1:0", "--responder", "127.0.0.1:0"])
            .args(["--debounce", "50"])
            .args(if arguments.contains(&"--poll") { &[][..] } else { &["--poll", "100"] })
            .args(arguments)
            .env("RUST_LOG", "error")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut served = Self { child, lines, etcd: nowhere, explain: nowhere, responder: nowhere };
        let address = |line: String| line.rsplit([' ', '/']).next().unwrap().parse().unwrap();
        served.responder = address(served.wait_for("responder on "));
        served.etcd = address(served.wait_for("etcd on "));
        served.explain = address(served.wait_for("explaining on "));
        served
    }

    /// The next line that contains a text; lines before it are dropped.
    pub(crate) fn wait_for(&self, text: &str) -> String {
        let mut seen = Vec::new();
        let end = Instant::now() + WAIT_TIMEOUT;
        loop {
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => seen.push(line),
                Err(error) => panic!("no {text:?}: {error}; seen: {seen:#?}"),
            }
        }
    }

    /// Asks the explainer for a path, and returns status line, headers and body.
    fn ask(&self, head: &str) -> String {
        let mut stream = TcpStream::connect(self.explain).unwrap();
        stream.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
        stream.write_all(format!("{head}\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The keys below a prefix, as an etcd client reads them.
    pub(crate) fn keys(&self, prefix: &str) -> Result<Vec<String>, tonic::Status> {
        let endpoint = Channel::from_shared(format!("http://{}", self.etcd)).unwrap();
        keys(&endpoint, prefix).unwrap()
    }

    /// Sends SIGTERM and waits for the end.
    fn terminate(mut self) -> i32 {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let end = Instant::now() + WAIT_TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap();
            }
            assert!(Instant::now() < end, "still running");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The keys below a prefix, as an etcd client of an endpoint reads them; the outer error is that of the connection.
pub(crate) fn keys(
    endpoint: &Endpoint,
    prefix: &str,
) -> Result<Result<Vec<String>, tonic::Status>, tonic::transport::Error> {
    let mut end = prefix.as_bytes().to_vec();
    *end.last_mut().unwrap() += 1;
    let request =
        RangeRequest { key: prefix.to_owned().into(), range_end: end.into(), ..RangeRequest::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let channel = endpoint.connect().await?;
        let response = KvClient::new(channel).range(request).await;
        let name = |key: &[u8]| String::from_utf8(key.to_vec()).unwrap();
        Ok(response.map(|response| response.get_ref().kvs.iter().map(|kv| name(&kv.key)).collect()))
    })
}

#[test]
fn changes_are_published_and_etcd_clients_read_them() {
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    let served = Served::start(&manifests, &[]);
    let first = served.wait_for("published shop/web ");
    assert!(first.contains("0 updated, 0 deleted"), "{first}");
    served.wait_for("ready");
    let before = served.keys("/pingsix/shop/web/").unwrap();
    assert!(before.iter().any(|key| key.starts_with("/pingsix/shop/web/routes/")), "{before:?}");
    assert!(served.keys("/pingsix/no/such/").is_err());

    manifests.write("more.yaml", &route("more", "/more", "cart"));
    let second = served.wait_for("published shop/web ");
    let revision = |line: &str| {
        line.split_once("revision ").unwrap().1.split(':').next().unwrap().parse::<i64>().unwrap()
    };
    assert!(revision(&second) > revision(&first), "{first} {second}");
    assert_eq!(served.keys("/pingsix/shop/web/").unwrap().len(), before.len() + 1);

    manifests.remove("more.yaml");
    served.wait_for("1 deleted");
    assert_eq!(served.keys("/pingsix/shop/web/").unwrap(), before);

    manifests.remove("gateway.yaml");
    served.wait_for("published shop/web (withdrawn) ");
    assert!(served.keys("/pingsix/shop/web/").unwrap().is_empty());
    assert_eq!(served.terminate(), 0);
}

#[test]
fn parameters_that_cannot_be_used_withdraw_nothing() {
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    let served = Served::start(&manifests, &[]);
    served.wait_for("ready");
    let before = served.keys("/pingsix/shop/web/").unwrap();
    assert!(!before.is_empty());

    let reference = "parametersRef: {group: pingsix.io, kind: PingsixProxy, name: gone, namespace: infra}";
    let class = "spec: { controllerName: pingsix.io/gateway-controller";
    assert!(GATEWAY.contains(class));
    manifests.write("gateway.yaml", &GATEWAY.replace(class, &format!("{class}, {reference}")));
    served.wait_for("gateway.yaml: Gateway shop/web: spec.gatewayClassName: The parameters of the class");
    // Problems are told after everything was published.
    assert_eq!(served.keys("/pingsix/shop/web/").unwrap(), before);

    manifests.write("gateway.yaml", GATEWAY);
    served.wait_for("resolved: error: ");
    assert_eq!(served.keys("/pingsix/shop/web/").unwrap(), before);
}

#[test]
fn a_file_that_stops_being_valid_keeps_its_last_good_objects() {
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    let served = Served::start(&manifests, &[]);
    served.wait_for("ready");
    let before = served.keys("/pingsix/shop/web/").unwrap();

    manifests.write("routes.yaml", "kind: [\n");
    served.wait_for("The previous manifests stay in force. [NotYaml]");
    assert_eq!(served.keys("/pingsix/shop/web/").unwrap(), before);

    manifests.write("routes.yaml", &route("cart", "/cart", "cart").replace("port: 80", "port: x"));
    served.wait_for("The previous manifests stay in force. [DoesNotDecode]");
    assert_eq!(served.keys("/pingsix/shop/web/").unwrap(), before);

    manifests.write("routes.yaml", &route("cart", "/cart", "cart").replace("k8s.io/v1", "k8s.io/v9"));
    served.wait_for("The previous manifests stay in force. [UnsupportedVersion]");
    assert_eq!(served.keys("/pingsix/shop/web/").unwrap(), before);

    manifests.write("routes.yaml", &route("cart", "/basket", "cart"));
    served.wait_for("published shop/web ");
    served.wait_for("resolved: error");
}

#[test]
fn findings_are_printed_when_they_appear_and_disappear() {
    let manifests = Manifests::shop(&route("cart", "/cart", "missing"));
    let served = Served::start(&manifests, &[]);
    let finding = served.wait_for("HTTPRoute shop/cart");
    assert!(finding.starts_with("error: ") && finding.ends_with("[BackendNotFound]"), "{finding}");
    manifests.write("more.yaml", &route("more", "/more", "cart"));
    served.wait_for("published ");
    manifests.write("routes.yaml", &format!("# moved\n\n{}", route("cart", "/cart", "missing")));
    manifests.write("routes.yaml", &route("cart", "/cart", "cart"));
    let resolved = served.wait_for("HTTPRoute shop/cart");
    assert_eq!(resolved, format!("resolved: {finding}"));
}

/// A directory of files that change in the ways of editors, deployments and Kubernetes. Polls are too rare to help.
struct Changing {
    manifests: Manifests,
    served: Served,
}

impl Changing {
    fn start(manifests: Manifests) -> Self {
        let served = Served::start(&manifests, &["--poll", "3600000"]);
        served.wait_for("ready");
        Self { manifests, served }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.manifests.path().join(name)
    }

    /// Waits until, of the paths `/a` to `/d`, these are served.
    fn serves(&self, paths: &[&str]) {
        let end = Instant::now() + WAIT_TIMEOUT;
        loop {
            let served: Vec<&str> =
                ["a", "b", "c", "d"].into_iter().filter(|name| self.answers(name)).collect();
            if served == paths {
                return;
            }
            assert!(Instant::now() < end, "{served:?} instead of {paths:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn answers(&self, name: &str) -> bool {
        let answer =
            self.served.ask(&format!("GET /{name} HTTP/1.1\r\nHost: localhost\r\nX-Explain-Host: a.test"));
        answer.contains("Service shop/cart port 80")
    }
}

#[test]
fn renamed_replaced_removed_and_nested_files_are_noticed_by_their_events() {
    let changing = Changing::start(Manifests::shop(&route("a", "/a", "cart")));
    changing.serves(&["a"]);
    // A rename, which changes no document, and a replacement by a file that an editor has written beside.
    std::fs::rename(changing.path("routes.yaml"), changing.path("renamed.yaml")).unwrap();
    changing.manifests.write(".renamed.yaml.tmp", &route("a", "/b", "cart"));
    std::fs::rename(changing.path(".renamed.yaml.tmp"), changing.path("renamed.yaml")).unwrap();
    changing.serves(&["b"]);
    // A directory that arrives with its files, and one that is filled.
    std::fs::create_dir_all(changing.path(".new/deep")).unwrap();
    std::fs::write(changing.path(".new/deep/c.yaml"), route("c", "/c", "cart")).unwrap();
    std::fs::rename(changing.path(".new"), changing.path("new")).unwrap();
    changing.serves(&["b", "c"]);
    std::fs::create_dir(changing.path("empty")).unwrap();
    std::fs::write(changing.path("empty/d.yaml"), route("d", "/d", "cart")).unwrap();
    changing.serves(&["b", "c", "d"]);
    std::fs::write(changing.path("new/deep/c.yaml"), route("c", "/a", "cart")).unwrap();
    changing.serves(&["a", "b", "d"]);
    std::fs::remove_dir_all(changing.path("new")).unwrap();
    changing.serves(&["b", "d"]);
    std::fs::rename(changing.path("empty"), changing.path(".hidden")).unwrap();
    changing.serves(&["b"]);
    changing.manifests.remove("renamed.yaml");
    changing.serves(&[]);
}

#[test]
fn the_links_of_a_config_map_are_followed_when_they_turn() {
    let manifests = Manifests::new(&[("gateway.yaml", GATEWAY), ("cart.yaml", CART)]);
    let path = manifests.path().to_owned();
    let version = |name: &str, path_of_route: &str| {
        std::fs::create_dir(path.join(name)).unwrap();
        std::fs::write(path.join(name).join("routes.yaml"), route("a", path_of_route, "cart")).unwrap();
        std::os::unix::fs::symlink(name, path.join("..data_tmp")).unwrap();
        std::fs::rename(path.join("..data_tmp"), path.join("..data")).unwrap();
    };
    version("..1", "/a");
    std::os::unix::fs::symlink("..data/routes.yaml", path.join("routes.yaml")).unwrap();
    let changing = Changing::start(manifests);
    changing.serves(&["a"]);
    version("..2", "/b");
    std::fs::remove_dir_all(path.join("..1")).unwrap();
    changing.serves(&["b"]);
}

#[test]
fn the_second_file_of_an_object_counts_once_the_first_is_gone() {
    let changing = Changing::start(Manifests::shop(&route("a", "/b", "cart")));
    changing.serves(&["b"]);
    changing.manifests.write("more.yaml", &route("a", "/a", "cart"));
    changing.served.wait_for("The object is already defined at ");
    changing.serves(&["a"]);
    changing.manifests.remove("more.yaml");
    changing.serves(&["b"]);
    changing.served.wait_for("resolved: error: ");
}

#[test]
fn a_thousand_changed_files_give_one_publication_and_its_findings() {
    let changing = Changing::start(Manifests::shop(&route("a", "/a", "cart")));
    let write = |service: &str| {
        for number in 0..1000 {
            let name = format!("r{number}");
            std::fs::write(
                changing.path(&format!("{name}.yaml")),
                route(&name, &format!("/{name}"), service),
            )
            .unwrap();
        }
    };
    write("cart");
    changing.served.wait_for("documents, ");
    let end = Instant::now() + WAIT_TIMEOUT;
    while changing.served.keys("/pingsix/shop/web/routes/").unwrap().len() < 1001 {
        assert!(Instant::now() < end, "routes are missing");
        std::thread::sleep(Duration::from_millis(50));
    }
    changing.manifests.write("routes.yaml", &route("a", "/a", "missing"));
    changing.served.wait_for("HTTPRoute shop/a");
    for number in 0..1000 {
        std::fs::remove_file(changing.path(&format!("r{number}.yaml"))).unwrap();
    }
    let end = Instant::now() + WAIT_TIMEOUT;
    while changing.served.keys("/pingsix/shop/web/routes/").unwrap().len() > 10 {
        assert!(Instant::now() < end, "routes are left");
        std::thread::sleep(Duration::from_millis(50));
    }
    changing.manifests.write("routes.yaml", &route("a", "/a", "cart"));
    changing.served.wait_for("resolved: error: ");
}

#[test]
fn an_empty_directory_is_waited_for() {
    let manifests = Manifests::new(&[]);
    let served = Served::start(&manifests, &[]);
    served.wait_for("There are no manifests");
    served.wait_for("ready");
    manifests.write("gateway.yaml", GATEWAY);
    served.wait_for("published shop/web ");
}

#[test]
fn any_http_request_is_explained() {
    let (manifests, key) = crate::translate::https();
    let served = Served::start(&manifests, &[]);
    served.wait_for("ready");
    let text = served.ask("PATCH /cart/x?y=z HTTP/1.1\r\nHost: a.test\r\nX-Any: thing");
    assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
    assert!(text.contains("PATCH http://a.test/cart/x?y=z (HTTP/1.1)"), "{text}");
    assert!(text.contains("Service shop/cart port 80"), "{text}");
    let json = served.ask("GET /nowhere HTTP/1.1\r\nHost: a.test\r\nAccept: application/json");
    assert!(json.contains("\"cause\": \"path\""), "{json}");
    let port = served.ask("GET /cart HTTP/1.1\r\nHost: a.test\r\nX-Explain-Port: 81");
    assert!(port.contains("No listener serves HTTP on port 81"), "{port}");
    let tls = served
        .ask("GET /cart HTTP/1.1\r\nHost: a.test\r\nX-Explain-Host: shop.example.com\r\nX-Explain-Port: 443");
    assert!(tls.contains("https://shop.example.com/cart"), "{tls}");
    let wrong = served.ask("GET /cart HTTP/1.1\r\nHost: a.test\r\nX-Explain-Port: many");
    assert!(wrong.starts_with("HTTP/1.1 400"), "{wrong}");
    // A web page of another origin whose name resolves here gets no explanation.
    let page = served.ask("GET /cart HTTP/1.1\r\nHost: evil.example.com\r\nX-Explain-Host: a.test");
    assert!(page.starts_with("HTTP/1.1 421") && !page.contains("Service"), "{page}");
    for answer in [text, json, port, tls, wrong] {
        assert!(!answer.contains(&key), "{answer}");
    }
}

#[test]
fn the_responder_answers_in_process_and_documents_name_it() {
    let conditional = route("cart", "/cart", "cart")
        .replace("value: \"/cart\" } }", "value: /cart }, headers: [{ name: a, value: b }] }");
    let manifests = Manifests::shop(&conditional);
    let served = Served::start(&manifests, &[]);
    served.wait_for("ready");
    assert!(served.keys("/pingsix/shop/web/upstreams/status-404").unwrap().len() == 1);
    let mut stream = TcpStream::connect(served.responder).unwrap();
    stream.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
    let request =
        "GET / HTTP/1.1\r\nHost: status-404.responder.pingsix.internal\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
}

#[test]
fn revisions_survive_a_restart() {
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    let state = tempfile::tempdir().unwrap();
    let state = state.path().join("revisions");
    let start = || Served::start(&manifests, &["--state", state.to_str().unwrap()]);
    let revision = |served: &Served| {
        let line = served.wait_for("published shop/web ");
        line.split_once("revision ").unwrap().1.split(':').next().unwrap().parse::<i64>().unwrap()
    };
    let served = start();
    let first = revision(&served);
    assert_eq!(served.terminate(), 0);
    assert!(revision(&start()) > first);
}

#[test]
fn addresses_beyond_loopback_need_to_be_asked_for() {
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    let path = manifests.path().to_str().unwrap();
    let explain = ["serve", path, "--listen", "127.0.0.1:0", "--responder", "off", "--explain", "0.0.0.0:0"];
    crate::support::run(explain).exits(2).prints_error("--allow-non-loopback");
    let listen = ["serve", path, "--listen", "0.0.0.0:0", "--responder", "off"];
    crate::support::run(listen).exits(2).prints_error("private keys pass in plaintext");
    let responder = ["serve", path, "--listen", "127.0.0.1:0", "--responder", "0.0.0.0:0"];
    crate::support::run(responder).exits(2).prints_error("--allow-non-loopback");
    crate::support::run(["serve", "-"]).exits(2).prints_error("standard input cannot be watched");
    crate::support::run(["serve", "/no/such/directory"]).exits(2).prints_error("cannot read");
}
