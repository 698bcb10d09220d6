//! A headless Chromium, driven through its DevTools protocol.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Message, WebSocket};

/// No answer takes longer, however busy the machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with one page.
pub(crate) struct Browser {
    process: Child,
    socket: WebSocket<TcpStream>,
    session: String,
    /// Where expressions are evaluated, if not in the page itself.
    context: Option<i64>,
    calls: u64,
    /// What the page complained of.
    complaints: Vec<String>,
    /// Addresses asked for.
    requests: Vec<String>,
    _profile: tempfile::TempDir,
}

/// The program, or `None` where tests of the browser are switched off, which is said.
fn program() -> Option<PathBuf> {
    if std::env::var_os("CROSSLENS_NO_BROWSER").is_some() {
        std::io::stderr().write_all(b"SKIPPED: CROSSLENS_NO_BROWSER is set, so nothing is tested in a browser\n").ok();
        return None;
    }
    let named = std::env::var_os("CROSSLENS_CHROMIUM").map(PathBuf::from);
    let on_path = || {
        let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
        let names = ["chromium", "chromium-browser", "google-chrome"];
        names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name))).find(|path| path.is_file())
    };
    let found = named.or_else(on_path);
    assert!(
        found.is_some(),
        "no Chromium found: `apt-get install chromium`, or name one in CROSSLENS_CHROMIUM; CROSSLENS_NO_BROWSER=1 skips the tests that need it"
    );
    found
}

impl Browser {
    /// Starts a browser that has never been used; `None` where that is switched off.
    pub(crate) fn start() -> Option<Self> {
        let program = program()?;
        let profile = tempfile::tempdir().expect("a folder");
        let mut process = Command::new(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"])
            .args(["--disable-component-update", "--disable-sync", "--remote-debugging-port=0", "--hide-scrollbars"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("Chromium starts");
        let mut lines = BufReader::new(process.stderr.take().expect("its standard error is ours")).lines();
        let address = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("DevTools listening on ").map(str::to_owned))
            .expect("Chromium says where it listens");
        // It goes on talking; nobody need listen, but the pipe must not fill up.
        std::thread::spawn(move || lines.for_each(drop));
        let place = address.strip_prefix("ws://").and_then(|rest| rest.split('/').next()).expect("an address");
        let stream = TcpStream::connect(place).expect("Chromium listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        // What a page sends is told whole, twice over, and may be a file.
        let unlimited = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        let (socket, _) = tungstenite::client::client_with_config(address.as_str(), stream, Some(unlimited)).expect("a socket");
        let (complaints, requests) = Default::default();
        let mut browser =
            Self { process, socket, session: String::new(), context: None, calls: 0, complaints, requests, _profile: profile };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let session = browser.call("Target.attachToTarget", json!({ "targetId": target["targetId"], "flatten": true }));
        session["sessionId"].as_str().expect("a session").clone_into(&mut browser.session);
        for domain in ["Page", "Runtime", "Log", "Network", "Performance"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Calls a method and waits for its answer; what happens meanwhile is noted.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let number = self.calls;
        let mut message = json!({ "id": number, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.clone().into();
        }
        self.socket.send(Message::text(message.to_string())).expect("Chromium listens");
        loop {
            let Message::Text(text) = self.socket.read().expect("Chromium answers") else { continue };
            let mut answer: Value = serde_json::from_str(&text).expect("JSON");
            if answer["id"] == number {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].take();
            }
            self.note(&answer);
        }
    }

    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.complaints.push(params["exceptionDetails"].to_string()),
            Some("Runtime.consoleAPICalled") => self.complaints.push(params["args"].to_string()),
            Some("Log.entryAdded") => self.complaints.push(params["entry"].to_string()),
            Some("Page.javascriptDialogOpening") => self.complaints.push(format!("a dialog: {params}")),
            Some("Network.requestWillBeSent") => self.requests.push(params["request"]["url"].as_str().unwrap_or_default().to_owned()),
            _ => {}
        }
    }

    /// Opens a file at a place of its own, such as `#view=head`, and waits until it is shown.
    pub(crate) fn open(&mut self, page: &Path, place: &str) {
        self.call("Page.navigate", json!({ "url": "about:blank" }));
        self.call("Page.navigate", json!({ "url": format!("file://{}{place}", page.display()) }));
        self.wait("document.documentElement?.dataset.ready !== undefined");
    }

    /// Opens an address and waits until it is shown.
    pub(crate) fn visit(&mut self, url: &str) {
        self.call("Page.navigate", json!({ "url": "about:blank" }));
        self.call("Page.navigate", json!({ "url": url }));
        self.wait("document.documentElement?.dataset.ready !== undefined");
    }

    /// What an expression gives.
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let mut params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        if let Some(context) = self.context {
            params["contextId"] = context.into();
        }
        let result = self.call("Runtime.evaluate", params);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {}", result["exceptionDetails"]);
        result["result"]["value"].clone()
    }

    /// The number an expression gives, written as one or as text.
    pub(crate) fn number(&mut self, expression: &str) -> f64 {
        let value = self.eval(expression);
        value.as_f64().or_else(|| value.as_str()?.parse().ok()).unwrap_or_else(|| panic!("{expression} gives {value}, which is no number"))
    }

    pub(crate) fn text(&mut self, expression: &str) -> String {
        let value = self.eval(expression);
        value.as_str().unwrap_or_else(|| panic!("{expression} gives {value}, which is no text")).to_owned()
    }

    /// Waits until an expression is true.
    pub(crate) fn wait(&mut self, expression: &str) {
        self.wait_long(expression, PATIENCE);
    }

    /// The same, for longer work.
    pub(crate) fn wait_long(&mut self, expression: &str, patience: Duration) {
        let start = Instant::now();
        while self.eval(expression) != true {
            assert!(start.elapsed() < patience, "never became true: {expression}; complaints: {:?}", self.complaints);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for everything that is to be drawn.
    pub(crate) fn settle(&mut self) {
        self.eval("new Promise((done) => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(() => done(true))), 200))");
    }

    /// Presses and lets go of a key, such as `Tab`, `Enter`, `ArrowRight` or `a`.
    pub(crate) fn press(&mut self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            " " => 32,
            "End" => 35,
            "Home" => 36,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            _ => 0,
        };
        let text = match key {
            "Enter" => "\r",
            _ if key.chars().count() == 1 => key,
            _ => "",
        };
        let down = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
        self.call("Input.dispatchKeyEvent", json!({ "type": down, "key": key, "windowsVirtualKeyCode": code, "text": text }));
        self.call("Input.dispatchKeyEvent", json!({ "type": "keyUp", "key": key, "windowsVirtualKeyCode": code }));
    }

    /// Presses Tab until the element that has the focus is the one meant.
    pub(crate) fn tab_to(&mut self, is_it: &str) {
        for _ in 0..200 {
            if self.eval(&format!("((it) => Boolean({is_it}))(document.activeElement)")) == true {
                return;
            }
            self.press("Tab");
        }
        panic!("Tab never reaches {is_it}");
    }

    /// Moves the pointer, and clicks if asked to.
    pub(crate) fn pointer(&mut self, x: f64, y: f64, is_click: bool) {
        let mut event = |kind: &str, n: u8| {
            self.call(
                "Input.dispatchMouseEvent",
                json!({ "type": kind, "x": x, "y": y, "button": if n > 0 { "left" } else { "none" }, "clickCount": n }),
            );
        };
        event("mouseMoved", 0);
        if is_click {
            event("mousePressed", 1);
            event("mouseReleased", 1);
        }
    }

    /// Chooses a file, as its user would in the window that a field for files opens.
    pub(crate) fn choose_file(&mut self, selector: &str, file: &Path) {
        let root = self.call("DOM.getDocument", json!({}))["root"]["nodeId"].clone();
        let field = self.call("DOM.querySelector", json!({ "nodeId": root, "selector": selector }))["nodeId"].clone();
        self.call("DOM.setFileInputFiles", json!({ "nodeId": field, "files": [file.to_string_lossy()] }));
    }

    /// Makes the window so large, and its colours light or dark.
    pub(crate) fn window(&mut self, width: u32, height: u32, scheme: &str) {
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false }),
        );
        self.call("Emulation.setEmulatedMedia", json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] }));
        self.settle();
    }

    /// Writes what is seen to a file for people to look at.
    pub(crate) fn picture(&mut self, name: &str) {
        self.settle();
        let shot = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let bytes = base64::engine::general_purpose::STANDARD.decode(shot["data"].as_str().expect("a picture")).expect("base64");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots");
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join(format!("{name}.png")), bytes).expect("writable");
    }

    /// Fails if the page complained of anything or asked for anything but itself.
    pub(crate) fn was_quiet(&mut self) {
        self.settle();
        assert!(self.complaints.is_empty(), "{:#?}", self.complaints);
        let outside = |url: &&String| !["file://", "data:", "blob:", "about:"].iter().any(|own| url.starts_with(own));
        assert_eq!(self.requests.iter().filter(outside).collect::<Vec<_>>(), Vec::<&String>::new());
        let files: Vec<&String> = self.requests.iter().filter(|url| url.starts_with("file://") && !url.contains(".html")).collect();
        assert!(files.is_empty(), "{files:?}");
    }
}

impl Browser {
    /// Fails if the page complained of anything but answers it was prepared for, or asked anybody but this server.
    pub(crate) fn asked_only(&mut self, origin: &str) {
        self.settle();
        let is_prepared = |complaint: &&String| !complaint.contains("the server responded with a status of 422");
        assert_eq!(self.complaints.iter().filter(is_prepared).collect::<Vec<_>>(), Vec::<&String>::new());
        let outside = |url: &&String| ![origin, "data:", "blob:", "about:"].iter().any(|own| url.starts_with(own));
        assert_eq!(self.requests.iter().filter(outside).collect::<Vec<_>>(), Vec::<&String>::new());
    }
}

impl Browser {
    /// Fails if something that can be used has no name, the view has no heading of its own, or two elements have one id.
    pub(crate) fn names_everything(&mut self, view: &str) {
        let nameless = self.eval(
            "[...document.querySelectorAll('button, select, input, a, [tabindex=\"0\"], [role=img], [role=application]')].filter((it) => !(it.getAttribute('aria-label') || it.textContent.trim() || it.closest('label')?.textContent.trim())).map((it) => it.outerHTML)",
        );
        assert_eq!(nameless, json!([]), "{view}");
        assert_eq!(self.number("document.querySelectorAll('h1').length"), 1.0, "{view}");
        assert_eq!(self.number("document.querySelectorAll('[aria-current=page]').length"), 1.0, "{view}");
        let repeated = self.eval("(() => { const ids = [...document.querySelectorAll('[id]')].map((it) => it.id); return ids.filter((id, place) => ids.indexOf(id) !== place); })()");
        assert_eq!(repeated, json!([]), "{view}: ids");
    }

    /// Fails if the page is wider than its window.
    pub(crate) fn fits(&mut self, view: &str) {
        let (used, room) = (self.number("document.documentElement.scrollWidth"), self.number("innerWidth"));
        assert!(used <= room, "{view} is {used} wide in a window of {room}");
    }

    /// Presses a button of the downloads within `place`, such as `.matrix`, and gives the file that comes.
    pub(crate) fn download(&mut self, place: &str, kind: &str) -> Vec<u8> {
        let button = format!(
            "[...document.querySelectorAll('{place} .downloads button')].find((button) => button.textContent === '{kind}').click()"
        );
        self.downloaded(kind, |browser| drop(browser.eval(&button)))
    }

    /// The file of a kind, such as `SVG`, that comes after something is done.
    pub(crate) fn downloaded(&mut self, kind: &str, act: impl FnOnce(&mut Self)) -> Vec<u8> {
        let folder = tempfile::tempdir().expect("a folder");
        self.call("Page.setDownloadBehavior", json!({ "behavior": "allow", "downloadPath": folder.path() }));
        act(self);
        let extension = kind.to_lowercase();
        let start = Instant::now();
        loop {
            let files = std::fs::read_dir(folder.path()).expect("a folder").flatten().map(|entry| entry.path());
            let mut whole = files.filter(|path| path.extension().is_some_and(|found| *found == *extension));
            if let Some(bytes) = whole.next().and_then(|path| std::fs::read(path).ok()).filter(|bytes| !bytes.is_empty()) {
                return bytes;
            }
            assert!(start.elapsed() < PATIENCE, "no {kind} came");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Presses the pointer at one place and lets it go at another.
    pub(crate) fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        for (kind, (x, y), button) in
            [("mouseMoved", from, "none"), ("mousePressed", from, "left"), ("mouseMoved", to, "left"), ("mouseReleased", to, "left")]
        {
            let held = u8::from(button == "left" && kind != "mouseReleased");
            let params =
                json!({ "type": kind, "x": x, "y": y, "button": button, "buttons": held, "clickCount": u8::from(button == "left") });
            self.call("Input.dispatchMouseEvent", params);
        }
    }

    /// Turns the wheel at a place.
    pub(crate) fn wheel(&mut self, x: f64, y: f64, delta: f64) {
        self.call("Input.dispatchMouseEvent", json!({ "type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": delta }));
    }

    /// Goes on in the one frame within the page: what is evaluated from now on is evaluated there, beside the frame's own scripts.
    ///
    /// A frame in a sandbox may have a process of its own, and then is a target of its own; otherwise it is in the page's tree.
    pub(crate) fn enter_frame(&mut self) {
        let start = Instant::now();
        loop {
            let tree = self.call("Page.getFrameTree", json!({}));
            if let Some(frame) = tree["frameTree"]["childFrames"][0]["frame"]["id"].as_str() {
                let world = self.call("Page.createIsolatedWorld", json!({ "frameId": frame }));
                self.context = world["executionContextId"].as_i64();
                return;
            }
            let page = std::mem::take(&mut self.session);
            let targets = self.call("Target.getTargets", json!({}));
            let frame = targets["targetInfos"].as_array().into_iter().flatten().find(|target| target["type"] == "iframe");
            if let Some(frame) = frame {
                let session = self.call("Target.attachToTarget", json!({ "targetId": frame["targetId"], "flatten": true }));
                session["sessionId"].as_str().expect("a session").clone_into(&mut self.session);
                for domain in ["Runtime", "Log"] {
                    self.call(&format!("{domain}.enable"), json!({}));
                }
                return;
            }
            self.session = page;
            assert!(start.elapsed() < PATIENCE, "the page has no frame");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
