//! The program as a child process, and a client for it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use ureq::Agent;
use ureq::http::Request;

/// Timeout for operations of one or two seconds.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// Runs a command of the program.
pub(crate) fn planscope(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_planscope")).args(arguments).current_dir(folder).env_clear().output().unwrap()
}

/// Returns the output of a command on both streams.
pub(crate) fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// True if a program is installed. Otherwise prints that the test is skipped.
pub(crate) fn is_at_hand(program: &str) -> bool {
    let at_hand = Command::new(program).arg("--version").stdin(Stdio::null()).output().is_ok();
    if !at_hand {
        eprintln!("skipped: there is no {program} on this machine");
    }
    at_hand
}

/// A server with the database planscope.db in a folder. It is killed at the end of the test.
pub(crate) struct Server {
    child: Child,
    pub(crate) origin: String,
    agent: Agent,
}

impl Server {
    /// Starts a server on a free port and waits for a response.
    pub(crate) fn start(folder: &Path, more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_planscope"));
        command.args(["serve", "--address", "127.0.0.1:0"]).args(more);
        Self::run(command, folder)
    }

    /// Runs a command that starts a server.
    pub(crate) fn run(mut command: Command, folder: &Path) -> Self {
        let mut child = command
            .current_dir(folder)
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut before = String::new();
        let line = loop {
            match lines.next() {
                Some(line) if line.contains("http://") => break line,
                Some(line) => before.push_str(&line),
                None => panic!("the server did not start: {before}"),
            }
        };
        // Drain the pipe, because a full pipe blocks the server.
        std::thread::spawn(move || lines.for_each(drop));
        let address = line.rsplit("http://").next().unwrap();
        let address: String = address.chars().take_while(|c| c.is_ascii_digit() || [':', '.'].contains(c)).collect();
        let agent = Agent::config_builder().timeout_global(Some(PATIENCE)).http_status_as_error(false).build().into();
        Self { child, origin: format!("http://{address}"), agent }
    }

    pub(crate) fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Kills the process, like a machine crash.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGTERM, like a service manager. Returns the exit status and the shutdown time.
    pub(crate) fn stop(mut self) -> (ExitStatus, Duration) {
        let began = Instant::now();
        assert!(Command::new("kill").args(["-TERM", &self.pid()]).status().unwrap().success());
        (self.child.wait().unwrap(), began.elapsed())
    }

    pub(crate) fn client(&self) -> Client {
        Client { origin: self.origin.clone(), agent: self.agent.clone() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A client for the server, usable from any thread.
#[derive(Clone)]
pub(crate) struct Client {
    origin: String,
    agent: Agent,
}

/// A response from the server.
#[derive(Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: u16,
    /// End of the log, in responses about logs.
    pub(crate) offset: Option<u64>,
    pub(crate) text: String,
}

impl TestResponse {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns a string field of the document.
    pub(crate) fn field(&self, pointer: &str) -> String {
        self.json().pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("{pointer}: {self:?}")).to_owned()
    }
}

impl Client {
    /// Sends a request. Returns `None` if the connection breaks, for example because the server is
    /// killed.
    pub(crate) fn asks(&self, method: &str, path: &str, token: Option<&str>, body: &str) -> Option<TestResponse> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.origin));
        if let Some(token) = token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let mut response = self.agent.run(request.body(body.to_owned()).unwrap()).ok()?;
        let offset =
            response.headers().get(api::run::UPLOAD_OFFSET).and_then(|value| value.to_str().ok()?.parse().ok());
        let text = response.body_mut().with_config().limit(256 << 20).read_to_string().ok()?;
        Some(TestResponse { status: response.status().as_u16(), offset, text })
    }

    /// Sends a GET request and requires a response.
    pub(crate) fn get(&self, path: &str) -> TestResponse {
        self.asks("GET", path, None, "").expect("an answer")
    }

    /// Sends a request with a body and requires a response.
    pub(crate) fn send(&self, method: &str, path: &str, body: &str) -> TestResponse {
        self.asks(method, path, None, body).expect("an answer")
    }

    /// Stores a small scenario and returns the identifier.
    pub(crate) fn stores(&self, seed: u32, iterations: u32) -> String {
        let response = self.send("PUT", api::path::SCENARIOS, &scenario(seed, iterations));
        assert!([200, 201].contains(&response.status), "{response:?}");
        response.field("/id")
    }
}

/// Creates a small scenario, different per seed.
pub(crate) fn scenario(seed: u32, iterations: u32) -> String {
    serde_json::json!({
        "schema": "scenario/1",
        "model": {"preset": "llama-2-7b"},
        "cluster": {"preset": "a100-80gb", "nodes": 1},
        "workload": {
            "samples": {
                "kind": "drawn",
                "text_tokens": {"kind": "values", "values": [512, 1024, 2048, 4096]},
                "images": {"kind": "constant", "value": 0}
            },
            "global_batch": 16, "context_length": 4096, "packing": "single"
        },
        "layout": {"tensor": 2, "pipeline": 4},
        "planners": ["1f1b"], "seed": seed, "iterations": iterations
    })
    .to_string()
}

/// Creates sample lengths, different per number.
pub(crate) fn lengths(number: u32, samples: u32) -> String {
    let length = |sample: u32| (1 + (number * 7919 + sample * 31) % 1_000_000).to_string();
    (0..samples).map(length).collect::<Vec<_>>().join("\n")
}

/// Formats a step of a training log.
pub(crate) fn step(step: u32) -> String {
    format!(
        " iteration {step:8}/     900 | elapsed time per iteration (ms): {}.5 | lm loss: 1.5E+00 |\n\
         time (ms) | forward-compute: {step}.25\n",
        2000 + step
    )
}

/// Waits for a condition.
pub(crate) fn until(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "it did not come to be");
        std::thread::sleep(Duration::from_millis(20));
    }
}
