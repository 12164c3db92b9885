//! The server as a child process. Measures memory and CPU time.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use api::path;
use api::run::{CreatedRun, RunDetail};

/// A server process on a free local port. Dropping it kills the process.
pub(crate) struct Server {
    /// Address and port.
    pub(crate) address: String,
    running: Child,
}

impl Server {
    /// Starts the server with an empty database in `folder` and the pages from `web`.
    pub(crate) fn start(folder: &Path, web: Option<&Path>) -> Self {
        let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        let address = address.to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_planscope"));
        command.args(["serve", "--address", &address]).current_dir(folder).env_clear().env("RUST_LOG", "warn");
        if let Some(web) = web {
            command.env("PLANSCOPE_WEB", web);
        }
        let running = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("the program");
        let server = Self { address, running };
        let health = format!("{}{}", server.origin(), path::HEALTH);
        while ureq::get(&health).call().is_err() {
            thread::sleep(Duration::from_millis(20));
        }
        server
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Creates a run.
    #[allow(dead_code, reason = "not every benchmark counts runs and processor time")]
    pub(crate) fn opens_run(&self) -> CreatedRun {
        let request = ureq::post(format!("{}{}", self.origin(), path::RUNS)).header("Content-Type", "application/json");
        let text = request.send("{}").and_then(|mut response| response.body_mut().read_to_string()).expect("a run");
        serde_json::from_str(&text).expect("a run")
    }

    /// Number of points in a run.
    #[allow(dead_code, reason = "not every benchmark counts runs and processor time")]
    pub(crate) fn points(&self, run: &str) -> u64 {
        let reply = ureq::get(format!("{}{}", self.origin(), path::run(run))).call();
        let text = reply.and_then(|mut response| response.body_mut().read_to_string()).expect("a run");
        serde_json::from_str::<RunDetail>(&text).expect("a run").summary.points
    }

    /// Current resident memory in MB.
    pub(crate) fn memory_mb(&self) -> f64 {
        self.status_mb("VmRSS:")
    }

    /// Peak resident memory in MB.
    pub(crate) fn peak_mb(&self) -> f64 {
        self.status_mb("VmHWM:")
    }

    /// Value from the process status in MB. NaN if the system does not report it.
    fn status_mb(&self, name: &str) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.running.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        let kib: Option<f64> = line.trim().trim_end_matches("kB").trim().parse().ok();
        kib.map_or(f64::NAN, |kib| kib * 1024.0 / 1e6)
    }

    /// CPU time in seconds: fields 14 and 15 in the process statistics, in units of 10 ms.
    #[allow(dead_code, reason = "not every benchmark counts runs and processor time")]
    pub(crate) fn processor_s(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.running.id())).unwrap_or_default();
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may already have exited.
        drop(self.running.kill());
        drop(self.running.wait());
    }
}
