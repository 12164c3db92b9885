//! Operator metrics in the Prometheus text format.

use std::time::Duration;

use axum::http::Method;
use prometheus::{
    Encoder, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};

use crate::jobs::Census;
use crate::store::Usage;

/// Histogram bucket limits for request times in seconds: from a cached list to an upload of a
/// gigabyte.
const SECONDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// Counters and histograms.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    seconds: HistogramVec,
}

/// Values read when metrics are requested.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MetricsSnapshot {
    pub(crate) jobs: Census,
    /// Open event streams of runs, jobs and sweeps.
    pub(crate) streams: usize,
    /// Log uploads in progress.
    pub(crate) uploads: usize,
    /// Memory for request bodies, in bytes.
    pub(crate) body_bytes: u64,
    /// Number of points read from logs.
    pub(crate) points: u64,
    /// Number of live runs.
    pub(crate) live_runs: u64,
    /// Disk usage of the database.
    pub(crate) usage: Usage,
    /// Maximum database size in bytes.
    pub(crate) quota: Option<u64>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Creates metrics with zero counts.
    pub fn new() -> Self {
        let requests = IntCounterVec::new(
            Opts::new(
                "planscope_http_requests_total",
                "Requests that were answered, by route, method and class of the status.",
            ),
            &["route", "method", "status"],
        )
        .expect("a sound name");
        let seconds = HistogramVec::new(
            HistogramOpts::new("planscope_http_request_seconds", "Time until an answer began, by route and method.")
                .buckets(SECONDS.to_vec()),
            &["route", "method"],
        )
        .expect("a sound name");
        let registry = Registry::new();
        registry.register(Box::new(requests.clone())).expect("a name of its own");
        registry.register(Box::new(seconds.clone())).expect("a name of its own");
        Self { registry, requests, seconds }
    }

    /// Records a request.
    pub(crate) fn request(&self, route: &str, method: &Method, status: &str, took: Duration) {
        let method = known(method);
        self.requests.with_label_values(&[route, method, status]).inc();
        self.seconds.with_label_values(&[route, method]).observe(took.as_secs_f64());
    }

    /// Formats all metrics in the Prometheus text format.
    pub(crate) fn text(&self, snapshot: &MetricsSnapshot) -> Result<String, prometheus::Error> {
        let now = snapshot.registry()?;
        let mut text = Vec::new();
        let encoder = TextEncoder::new();
        encoder.encode(&self.registry.gather(), &mut text)?;
        encoder.encode(&now.gather(), &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

impl MetricsSnapshot {
    fn registry(&self) -> Result<Registry, prometheus::Error> {
        let registry = Registry::new();
        let gauge = |name: &str, help: &str, value: u64| {
            let gauge = IntGauge::new(name, help)?;
            gauge.set(signed(value));
            registry.register(Box::new(gauge))
        };
        let Self { jobs, usage, .. } = self;
        gauge("planscope_jobs_queued", "Planning jobs that wait for a turn.", jobs.queued)?;
        gauge("planscope_jobs_running", "Scenarios that are being planned.", jobs.running)?;
        gauge("planscope_event_streams", "Open streams of the events of runs, jobs and sweeps.", self.streams as u64)?;
        gauge("planscope_log_uploads", "Logs that are being sent.", self.uploads as u64)?;
        gauge("planscope_body_bytes", "Memory that bodies of requests take.", self.body_bytes)?;
        gauge("planscope_live_runs", "Runs whose steps come.", self.live_runs)?;
        gauge("planscope_database_used_bytes", "Bytes of what the database holds.", usage.used)?;
        gauge("planscope_database_file_bytes", "Bytes of its file.", usage.file)?;
        if let Some(quota) = self.quota {
            gauge("planscope_database_quota_bytes", "Bytes that the database may hold.", quota)?;
        }
        if let Some(bytes) = resident_bytes() {
            gauge("process_resident_memory_bytes", "Memory of the server.", bytes)?;
        }
        let counter = |name: &str, help: &str, label: &str, values: &[(&str, u64)]| {
            let counter = IntCounterVec::new(Opts::new(name, help), &[label])?;
            for (value_label, value) in values {
                counter.with_label_values(&[*value_label]).inc_by(*value);
            }
            registry.register(Box::new(counter))
        };
        let ended = [("done", jobs.done), ("failed", jobs.failed), ("cancelled", jobs.cancelled)];
        counter("planscope_jobs_ended_total", "Planning jobs that ended, by how.", "state", &ended)?;
        counter("planscope_points_total", "Points that were read from logs.", "origin", &[("live", self.points)])?;
        let build =
            IntGaugeVec::new(Opts::new("planscope_build_info", "Version of the server."), &["version", "engine"])?;
        build.with_label_values(&[env!("CARGO_PKG_VERSION"), planner::outcome::ENGINE]).set(1);
        registry.register(Box::new(build))?;
        Ok(registry)
    }
}

/// Returns the name of a standard method. Custom methods share a label, so clients cannot increase
/// memory use.
fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Resident memory of this process on Linux, in bytes. Returns `None` on other systems.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}
