//! The pages of `serve --view` in Chromium, over its `DevTools` protocol: both colour schemes and two widths, with and without
//! scripts, by keyboard, and as a screen reader gets them. Screenshots are written to `target/view`.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pingsix_test_programs::find;
use serde_json::{Value, json};

use crate::view::Viewed;

/// The time limit of each step, also on a busy machine.
const WAIT_TIMEOUT: Duration = Duration::from_mins(1);

/// Chromium with one page.
struct Browser {
    child: Child,
    commands: File,
    messages: Receiver<Value>,
    /// Messages that no one has waited for.
    early: VecDeque<Value>,
    session: Option<String>,
    next: u64,
    /// Faults in the console.
    problems: Vec<String>,
    _folder: tempfile::TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Browser {
    /// `None` without Chromium.
    fn start() -> Option<Self> {
        let program = find("chromium")?;
        let folder = tempfile::tempdir().unwrap();
        let [commands, messages] = ["commands", "messages"].map(|name| folder.path().join(name));
        for pipe in [&commands, &messages] {
            assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
        }
        // Chromium reads commands from descriptor 3 and writes messages to descriptor 4. A program without `unsafe` hands
        // over no descriptors, but a shell does. Without privileges of its own, the sandbox may be unavailable; the only
        // pages are those of this project.
        let child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<\"$COMMANDS\" 4>\"$MESSAGES\""])
            .arg(program)
            .args([
                "--headless=new",
                "--remote-debugging-pipe",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
            ])
            .args(["--disable-dev-shm-usage", "--hide-scrollbars", "--disable-background-networking"])
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
            .arg("about:blank")
            .envs([("COMMANDS", &commands), ("MESSAGES", &messages)])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let writer = fs::OpenOptions::new().write(true).open(&commands).unwrap();
        let reader = BufReader::new(File::open(&messages).unwrap());
        let (sender, received) = channel();
        std::thread::spawn(move || {
            for message in reader.split(0).map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else { break };
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let mut browser = Self {
            child,
            commands: writer,
            messages: received,
            early: VecDeque::new(),
            session: None,
            next: 0,
            problems: Vec::new(),
            _folder: folder,
        };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", &attach);
        browser.session = Some(session["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log", "Accessibility"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        Some(browser)
    }

    /// The next message; problems of the console are kept.
    fn message(&mut self, end: Instant) -> Value {
        let wait = end.saturating_duration_since(Instant::now());
        let message = self.messages.recv_timeout(wait).expect("Chromium answers in time");
        let parameters = &message["params"];
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.problems.push(parameters.to_string()),
            Some("Runtime.consoleAPICalled") if parameters["type"] == "error" => {
                self.problems.push(parameters.to_string());
            }
            Some("Log.entryAdded") if parameters["entry"]["level"] == "error" => {
                self.problems.push(parameters.to_string());
            }
            Some(_) | None => {}
        }
        message
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.next += 1;
        let mut command = json!({ "id": self.next, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            command["sessionId"] = session.as_str().into();
        }
        let mut bytes = command.to_string().into_bytes();
        bytes.push(0);
        self.commands.write_all(&bytes).unwrap();
        let end = Instant::now() + WAIT_TIMEOUT;
        loop {
            let message = self.message(end);
            if message["id"] == self.next {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            self.early.push_back(message);
        }
    }

    fn open(&mut self, url: &str) {
        self.early.clear();
        self.call("Page.navigate", &json!({ "url": url }));
        let end = Instant::now() + WAIT_TIMEOUT;
        let is_loaded = |message: &Value| message["method"] == "Page.loadEventFired";
        while !self.early.iter().any(is_loaded) {
            let message = self.message(end);
            self.early.push_back(message);
        }
    }

    fn evaluate(&mut self, script: &str) -> Value {
        let parameters = json!({ "expression": script, "returnByValue": true, "awaitPromise": true });
        let result = self.call("Runtime.evaluate", &parameters);
        assert!(result["exceptionDetails"].is_null(), "{script}: {result}");
        result["result"]["value"].clone()
    }

    fn look(&mut self, scheme: &str, width: u32) {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", &features);
        let size = json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &size);
    }

    fn screenshot(&mut self, path: &Path) {
        let height = self.evaluate("Math.min(document.documentElement.scrollHeight, 1400)");
        let width = self.evaluate("innerWidth");
        let clip = json!({ "x": 0, "y": 0, "width": width, "height": height, "scale": 1 });
        let parameters = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        let shot = self.call("Page.captureScreenshot", &parameters);
        fs::write(path, STANDARD.decode(shot["data"].as_str().unwrap()).unwrap()).unwrap();
    }

    fn press(&mut self, key: &str, code: u32) {
        for kind in ["rawKeyDown", "keyUp"] {
            let event = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
            self.call("Input.dispatchKeyEvent", &event);
        }
    }
}

/// The texts whose contrast is below 4.5, the bound of WCAG 2.1 for normal text.
const FAINT_TEXTS: &str = r"
(() => {
  const parse = (colour) => {
    const parts = colour.match(/[\d.]+/g).map(Number);
    return { rgb: parts.slice(0, 3), alpha: parts.length > 3 ? parts[3] : 1 };
  };
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((part) => part / 255).map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const { rgb, alpha } = parse(getComputedStyle(at).backgroundColor);
      if (alpha === 1) return rgb;
    }
    return [255, 255, 255];
  };
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || !element.checkVisibility() || element.closest('.hidden, script')) continue;
    const [one, other] = [luminance(parse(getComputedStyle(element).color).rgb), luminance(background(element))];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (contrast < 4.5) faint.push(`${contrast.toFixed(2)} ${node.textContent.trim().slice(0, 40)}`);
  }
  return faint;
})()
";

fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/view");
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn pages_work_in_a_browser_in_both_schemes_and_two_widths() {
    let Some(mut browser) = Browser::start() else { return };
    let viewed = Viewed::start(Path::new("testdata/quickstart"), &[]);
    let root = format!("http://{}", viewed.address);
    let explained =
        "/view/explain?method=GET&url=http%3A%2F%2Fshop.example.com%2Fcart%2F7&headers=X-Env%3A+canary";
    let pages = [
        ("overview", "/view"),
        ("gateway", "/view/object?about=Gateway/quickstart/web"),
        ("route", "/view/object?about=HTTPRoute/quickstart/shop"),
        ("routes", "/view/routes?search=example.com"),
        ("data-planes", "/view/data-planes"),
        ("findings", "/view/findings"),
        ("explain", explained),
    ];
    for (scheme, width) in [("light", 1200), ("dark", 1200), ("light", 390), ("dark", 390)] {
        browser.look(scheme, width);
        for (name, path) in pages {
            browser.open(&format!("{root}{path}"));
            let place = format!("{name}, {scheme}, {width}");
            let overflow = browser.evaluate("document.documentElement.scrollWidth - innerWidth");
            assert!(overflow.as_i64().unwrap() <= 0, "{place} is {overflow} pixels too wide");
            let faint = browser.evaluate(FAINT_TEXTS);
            assert_eq!(faint, json!([]), "{place} has texts that are hard to read");
            browser.screenshot(&folder().join(format!("{name}-{scheme}-{width}.png")));
        }
    }
    assert_eq!(browser.problems, Vec::<String>::new());
}

#[test]
fn keyboards_screen_readers_and_browsers_without_scripts_get_everything() {
    let Some(mut browser) = Browser::start() else { return };
    let viewed = Viewed::start(Path::new("testdata/quickstart"), &[]);
    let root = format!("http://{}", viewed.address);
    browser.look("light", 1200);

    // The first stop of the keyboard skips the navigation, with a visible focus.
    browser.open(&format!("{root}/view"));
    browser.press("Tab", 9);
    let focused = "[document.activeElement.className, getComputedStyle(document.activeElement).outlineStyle, \
                   document.activeElement.getBoundingClientRect().top >= 0]";
    assert_eq!(browser.evaluate(focused), json!(["skip", "solid", true]));

    // The accessibility tree has the landmarks, and a name for each control.
    let tree = browser.call("Accessibility.getFullAXTree", &json!({}));
    let nodes: Vec<(&str, &str)> = tree["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|node| node["ignored"] == false)
        .map(|node| {
            let value = |field: &str| node[field]["value"].as_str().unwrap_or_default();
            (value("role"), value("name"))
        })
        .collect();
    for role in [
        "main",
        "banner",
        "navigation",
        "search",
        "contentinfo",
        "heading",
        "table",
        "rowheader",
        "columnheader",
    ] {
        assert!(nodes.iter().any(|(known, _)| *known == role), "{role} is missing: {nodes:?}");
    }
    for (role, name) in &nodes {
        let is_control = ["link", "button", "searchbox", "textbox", "combobox", "checkbox"].contains(role);
        assert!(!is_control || !name.is_empty(), "a {role} has no name");
    }

    // The script adds a button, without which the command is still there.
    let buttons = "document.querySelectorAll('.command button').length";
    assert_eq!(browser.evaluate(buttons), 1);
    browser.call("Emulation.setScriptExecutionDisabled", &json!({ "value": true }));
    browser.open(&format!("{root}/view/explain"));
    let form = "(() => { const field = document.querySelector('#paste'); field.value = \
                'curl -H \"X-Env: canary\" http://shop.example.com/cart'; field.form.requestSubmit(); })()";
    // The address changes before the page is complete.
    let address = "document.readyState === 'complete' ? location.search : ''";
    browser.early.clear();
    browser.evaluate(form);
    let end = Instant::now() + WAIT_TIMEOUT;
    while !browser.evaluate(address).as_str().unwrap().contains("headers=X-Env") {
        assert!(Instant::now() < end, "the form leads to the address of the answer");
        std::thread::sleep(Duration::from_millis(50));
    }
    let text = browser.evaluate("document.querySelector('main').innerText");
    assert!(text.as_str().unwrap().contains("Service quickstart/cart-canary port 80"), "{text}");
    assert_eq!(browser.evaluate(buttons), 0);
    assert_eq!(browser.problems, Vec::<String>::new());
}
