//! A headless chromium that is spoken to over pipes (the DevTools protocol).

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tempfile::TempDir;

pub(super) struct Browser {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    calls: u64,
    /// Of the one tab.
    session: Value,
    /// What it said since a page was opened.
    events: Vec<Value>,
    _profile: TempDir,
}

/// What a page did while it was opened.
pub(super) struct Opened {
    /// Errors and all else on its console.
    pub(super) complaints: Vec<Value>,
    /// What was asked for, from wherever.
    pub(super) requests: Vec<String>,
}

impl Browser {
    /// None where there is no chromium.
    pub(super) fn start() -> Option<Self> {
        Command::new("chromium").arg("--version").output().ok()?;
        let profile = tempfile::tempdir().unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$@\" 3<&0 4>&1 < /dev/null 1>&2", "sh"]);
        shell.args(["chromium", "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu"]);
        shell.arg(format!("--user-data-dir={}", profile.path().display()));
        let mut process = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (to, from) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        let (session, events) = (Value::Null, Vec::new());
        let mut browser = Self { process, to, from, calls: 0, session, events, _profile: profile };
        let tab = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let tab = json!({"targetId": tab["targetId"], "flatten": true});
        browser.session = browser.call("Target.attachToTarget", tab)["sessionId"].clone();
        for domain in ["Page", "Network", "Log", "Runtime"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Opens a file in a window of this width, by day or by night, and waits until it is laid out.
    pub(super) fn open(&mut self, file: &Path, width: u32, dark: bool) -> Opened {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let colours = json!({"name": "prefers-color-scheme", "value": if dark { "dark" } else { "light" }});
        self.call("Emulation.setEmulatedMedia", json!({"features": [colours]}));
        self.events.clear();
        self.call("Page.navigate", json!({"url": format!("file://{}", file.display())}));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.read();
            self.events.push(event);
        }
        let said = |method: &'static str| self.events.iter().filter(move |event| event["method"] == method);
        let complaints = ["Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"];
        Opened {
            complaints: complaints.into_iter().flat_map(said).cloned().collect(),
            requests: said("Network.requestWillBeSent")
                .map(|event| event["params"]["request"]["url"].as_str().unwrap_or_default().to_owned())
                .collect(),
        }
    }

    /// The value of a JavaScript expression on the page.
    pub(super) fn evaluate(&mut self, expression: &str) -> Value {
        let found = self.call("Runtime.evaluate", json!({"expression": expression, "returnByValue": true}));
        assert_eq!(found.get("exceptionDetails"), None, "{found}");
        found["result"]["value"].clone()
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let mut call = json!({"id": self.calls, "method": method, "params": params});
        if !self.session.is_null() {
            call["sessionId"] = self.session.clone();
        }
        self.to.write_all(format!("{call}\0").as_bytes()).unwrap();
        loop {
            let heard = self.read();
            if heard["id"] == self.calls {
                assert_eq!(heard.get("error"), None, "{call}");
                return heard["result"].clone();
            }
            self.events.push(heard);
        }
    }

    fn read(&mut self) -> Value {
        let mut text = Vec::new();
        self.from.read_until(0, &mut text).unwrap();
        assert_eq!(text.pop(), Some(0), "chromium has ended");
        serde_json::from_slice(&text).unwrap()
    }
}

impl Drop for Browser {
    /// It ends itself, and its helpers with it.
    fn drop(&mut self) {
        let close = format!("{}\0", json!({"id": self.calls + 1, "method": "Browser.close"}));
        if self.to.write_all(close.as_bytes()).is_err() {
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
    }
}
