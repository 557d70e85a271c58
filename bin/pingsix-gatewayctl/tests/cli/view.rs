//! `serve --view`: the pages of a running program beside the commands that they name.

use std::collections::{BTreeSet, VecDeque};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::serve::Served;
use crate::support::{Manifests, command, route, run};

/// The time limit of an answer, also on a busy machine.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// The most pages of a walk.
const MAX_PAGES: usize = 150;

/// A running `serve` with its pages.
pub(crate) struct Viewed {
    /// Ends with this value.
    served: Served,
    pub(crate) address: SocketAddr,
}

impl Viewed {
    pub(crate) fn start(path: &Path, arguments: &[&str]) -> Self {
        let served = Served::start_on(path, &[&["--view=127.0.0.1:0"], arguments].concat());
        let line = served.wait_for("view on ");
        let address = line.strip_prefix("view on http://").unwrap().strip_suffix("/view").unwrap();
        let address = address.parse().unwrap();
        served.wait_for("ready");
        Self { served, address }
    }

    /// The answer to a request: head and body.
    fn ask(&self, method: &str, path: &str, host: &str) -> (String, String) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
        let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    /// The page at a path, after redirects.
    fn page(&self, path: &str) -> String {
        let (head, body) = self.ask("GET", path, &self.address.to_string());
        if head.starts_with("HTTP/1.1 303") {
            let location = head.lines().find_map(|line| line.strip_prefix("location: ")).unwrap();
            return self.page(location);
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}\n{body}");
        body
    }

    /// The pages to which links lead, beginning with the overview.
    fn walk(&self) -> Vec<(String, String)> {
        let mut known = BTreeSet::from(["/view".to_owned()]);
        let mut next = VecDeque::from(["/view".to_owned()]);
        let mut pages = Vec::new();
        while let Some(path) = next.pop_front() {
            let body = self.page(&path);
            for link in body.split("href=\"").skip(1) {
                let link = unescaped(link.split(['"', '#']).next().unwrap());
                if !link.is_empty() && known.len() < MAX_PAGES && known.insert(link.clone()) {
                    next.push_back(link);
                }
            }
            pages.push((path, body));
        }
        pages
    }
}

fn unescaped(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    text.replace("&amp;", "&")
}

fn between<'t>(text: &'t str, start: &str, end: &str) -> &'t str {
    text.split_once(start).unwrap_or_else(|| panic!("no {start} in {text}")).1.split_once(end).unwrap().0
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/examples")
}

fn encoded(text: &str) -> String {
    text.bytes()
        .map(
            |byte| {
                if byte.is_ascii_alphanumeric() {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            },
        )
        .collect()
}

/// Asserts that a page has the answer of the command beside it.
fn assert_same(viewed: &Viewed, curl: &str) -> String {
    let page = viewed.page(&format!("/view/explain?paste={}", encoded(curl)));
    let line = unescaped(between(&page, "<code>pingsix-gatewayctl ", "</code>"));
    let text = unescaped(between(&page, "id=\"answer-text\" tabindex=\"0\">", "</pre>"));
    // The command runs in a shell, as a reader would run it.
    let mut shell = assert_cmd::Command::new("sh");
    let program = command().get_program().to_owned();
    let output =
        shell.arg("-c").arg(format!("\"$0\" {line}")).arg(program).timeout(WAIT_TIMEOUT).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), text, "{curl}: {line}");
    text
}

#[test]
fn the_answer_of_a_page_is_that_of_the_command_beside_it() {
    let mut answers = Vec::new();
    for (example, arguments, requests) in [
        (
            "http-routing",
            &[][..],
            &[
                "curl http://orders.bakery.example/cakes",
                "curl -d order http://orders.bakery.example/api/cakes",
                "curl -H 'X-Preview: it'\\''s \"quoted\"' 'http://menu.bakery.example/x?y=$z&w=1'",
            ][..],
        ),
        (
            "mistakes",
            &["--layout=per-port"],
            &["curl http://backends.garden.example/no-service", "curl http://beds.garden.example:8080/"],
        ),
        ("ingress", &[], &["curl -k https://vet.example/", "curl -I http://somewhere.example/"]),
        (
            "grpc",
            &[],
            &[
                "curl --http2 -d x -H 'trial: 2' http://grpc.logistics.example:50051/logistics.v1.Routing/Plan",
            ],
        ),
        ("streams", &["--stream"], &["curl http://berths.example/7", "curl http://berths.example:5432/"]),
        ("tls-certificates", &[], &["curl https://www.museum.example/"]),
    ] {
        let viewed = Viewed::start(&examples().join(example), arguments);
        answers.extend(requests.iter().map(|request| assert_same(&viewed, request)));
    }
    let distinct: BTreeSet<&String> = answers.iter().collect();
    assert_eq!(distinct.len(), answers.len(), "{answers:#?}");
}

#[test]
fn a_change_of_a_file_is_on_the_next_page() {
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    let viewed = Viewed::start(manifests.path(), &[]);
    let overview = viewed.page("/");
    assert!(
        overview.contains("Gateway shop/web") && overview.contains("pingsix-gatewayctl check"),
        "{overview}"
    );
    let planes = viewed.page("/view/data-planes");
    assert!(
        planes.contains("/pingsix/shop/web") && planes.contains("No PingSIX instance is connected."),
        "{planes}"
    );
    viewed.served.keys("/pingsix/shop/web").unwrap();
    manifests.write("routes.yaml", &route("basket", "/basket", "nowhere"));
    viewed.served.wait_for("published shop/web ");
    // Pages follow once all objects are judged.
    viewed.served.wait_for("[BackendNotFound]");
    let routes = viewed.page("/view/routes");
    assert!(routes.contains("HTTPRoute shop/basket") && !routes.contains("shop/cart"), "{routes}");
    let basket = viewed.page("/view/object?about=HTTPRoute/shop/basket");
    assert!(basket.contains("Service shop/nowhere") && basket.contains("routes.yaml:"), "{basket}");
}

#[test]
fn no_page_shows_a_secret() {
    for example in ["tls-certificates", "mistakes", "security", "redirects"] {
        let folder = examples().join(example);
        let mut secrets = BTreeSet::new();
        for entry in std::fs::read_dir(&folder).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            for document in text.split("\n---").filter(|document| document.contains("kind: Secret")) {
                let at = document.find("\ndata:").or_else(|| document.find("\nstringData:"));
                let data = at.map(|at| &document[at..]).unwrap_or_default();
                secrets.extend(
                    data.split_whitespace()
                        .filter(|word| word.len() > 12 && !word.contains("---"))
                        .map(str::to_owned),
                );
            }
        }
        let viewed = Viewed::start(&folder, &[]);
        let pages = viewed.walk();
        assert!(pages.len() > 8, "{example}: {} pages", pages.len());
        for (path, body) in &pages {
            for secret in &secrets {
                assert!(!body.contains(&**secret), "{path} of {example} shows {secret}");
            }
        }
        assert!(!secrets.is_empty(), "{example} has Secrets");
    }
}

#[test]
fn the_pages_stay_on_this_machine_and_change_nothing() {
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    let path = manifests.path().to_str().unwrap();
    let serve = ["serve", path, "--listen", "127.0.0.1:0", "--responder", "off", "--allow-non-loopback"];
    run(serve.iter().chain(&["--view=0.0.0.0:0"])).exits(2).prints_error("--view needs a loopback address");
    let viewed = Viewed::start(manifests.path(), &[]);
    let own = viewed.address.to_string();
    let status = |method: &str, path: &str, host: &str| {
        viewed.ask(method, path, host).0.lines().next().unwrap().to_owned()
    };
    assert!(status("POST", "/view", &own).contains(" 405 "));
    assert!(status("GET", "/view", "evil.example.com").contains(" 421 "));
    assert!(status("GET", "/view", "localhost:1").contains(" 200 "));
    assert!(status("HEAD", "/view", &own).contains(" 200 "));
    assert!(status("GET", "/view/none", &own).contains(" 404 "));
}
