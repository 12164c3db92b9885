//! A server for tests.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, header::HOST};
use jiff::Timestamp;
use serde_json::Value;
use server::access::Access;
use server::app::App;
use server::arrival::{Bodies, BodyLimits};
use server::clock::Clock;
use server::imports::{ImportLimits, Imports};
use server::jobs::{Engine, Jobs, Limits};
use server::live::{Live, LiveLimits};
use server::store::Store;
use server::studies::{AnalysisLimits, Studies};
use server::traces::{TraceLimits, Traces};
use server::web::Web;
use server::workers::Threads;
use tempfile::TempDir;
use tower::ServiceExt;

use crate::listener::Listener;
use crate::reply::Reply;

/// A clock that tests set. It starts at 2026-01-01.
#[derive(Debug)]
pub struct TestClock(AtomicI64);

impl Default for TestClock {
    fn default() -> Self {
        Self(AtomicI64::new(1_767_225_600_000))
    }
}

impl TestClock {
    /// Advances the clock.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(i64::try_from(by.as_millis()).expect("a short time"), Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(self.0.load(Ordering::Relaxed)).expect("a time of this century")
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed).unsigned_abs())
    }
}

/// Settings of a test server.
pub struct Settings {
    /// Engine.
    pub engine: Engine,
    /// Limits of planning.
    pub limits: Limits,
    /// Limits of studies.
    pub analysis_limits: AnalysisLimits,
    /// Limits of logs.
    pub live_limits: LiveLimits,
    /// Timeouts and memory limits for bodies.
    pub body_limits: BodyLimits,
    /// Limits for simultaneous imports.
    pub import_limits: ImportLimits,
    /// Time between two steps of a replayed log.
    pub replay_interval: Duration,
    /// Changes to the limits of traces.
    pub trace_limits: fn(&mut TraceLimits),
    /// Required token.
    pub token: Option<&'static str>,
    /// Database quota, in bytes.
    pub quota: Option<u64>,
    /// Host names besides localhost.
    pub hosts: Vec<String>,
    /// Folder with the built pages, relative to the server's folder.
    pub web: &'static str,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            engine: Arc::new(planner::engine::plan),
            limits: Limits { workers: 2, queue: 4, search_threads: Threads::new(2), ..Limits::default() },
            analysis_limits: AnalysisLimits { queue: 4, time: Duration::from_secs(20), threads: Threads::new(2) },
            live_limits: LiveLimits::default(),
            body_limits: BodyLimits::default(),
            import_limits: ImportLimits::default(),
            replay_interval: Duration::ZERO,
            trace_limits: |_| {},
            token: None,
            quota: None,
            hosts: Vec::new(),
            web: "web",
        }
    }
}

/// A test server.
pub struct TestServer {
    /// Router.
    pub router: Router,
    /// Database.
    pub store: Store,
    /// Clock.
    pub clock: Arc<TestClock>,
    /// Application state.
    pub app: Arc<App>,
    folder: TempDir,
}

impl TestServer {
    /// Opens a server with default settings.
    pub async fn open() -> Self {
        Self::with(Settings::default()).await
    }

    /// Opens a server with another engine.
    pub async fn planning_with(engine: Engine) -> Self {
        Self::with(Settings { engine, ..Settings::default() }).await
    }

    /// Opens a server with settings.
    pub async fn with(settings: Settings) -> Self {
        Self::in_folder(settings, TempDir::new().expect("a folder for the test"), Arc::default()).await
    }

    /// Opens a server for the database planscope.db in a folder.
    pub async fn upon(folder: TempDir, settings: Settings) -> Self {
        Self::in_folder(settings, folder, Arc::default()).await
    }

    /// Restarts the server with the same database.
    pub async fn restarted(self, settings: Settings) -> Self {
        let Self { router, store, clock, folder, .. } = self;
        drop(router);
        store.close().await;
        Self::in_folder(settings, folder, clock).await
    }

    async fn in_folder(settings: Settings, folder: TempDir, clock: Arc<TestClock>) -> Self {
        let database = folder.path().join("planscope.db");
        let store = Store::open_within(&database, settings.quota).await.expect("a database");
        let shared: Arc<dyn Clock> = Arc::clone(&clock) as Arc<dyn Clock>;
        let jobs = Jobs::with_engine(store.clone(), Arc::clone(&shared), settings.limits, settings.engine);
        let mut traces = TraceLimits::in_folder(folder.path().to_owned());
        (settings.trace_limits)(&mut traces);
        let app = Arc::new(App {
            studies: Studies::new(Arc::clone(&shared), jobs.turns(), settings.analysis_limits),
            live: Live::new(store.clone(), Arc::clone(&shared), settings.live_limits),
            bodies: Arc::new(Bodies::new(settings.body_limits)),
            imports: Imports::new(settings.import_limits),
            replays: server::replay::Replays::new(settings.replay_interval),
            sweeps: server::sweeps::Sweeps::new(store.clone(), Arc::clone(&shared), jobs.turns(), settings.limits),
            jobs,
            store: store.clone(),
            traces: Traces::new(traces),
            access: Arc::new(Access::new(&settings.hosts, settings.token, store.clone(), Arc::clone(&shared))),
            clock: shared,
            web: Web::new(&folder.path().join(settings.web)),
            metrics: server::metrics::Metrics::new(),
            overviews: server::overviews::Overviews::default(),
        });
        Self { router: server::router::router(Arc::clone(&app)), store, clock, app, folder }
    }

    /// Returns a path in the server's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Sends a request. Adds a host header if it has none.
    pub async fn send(&self, mut request: Request<Body>) -> Reply {
        request.headers_mut().entry(HOST).or_insert(axum::http::HeaderValue::from_static("localhost:8080"));
        let response = match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        Reply::read(response).await
    }

    /// Sends a request and returns its server-sent events, after an event id if given.
    pub async fn listen(&self, path: &str, last_event_id: Option<&str>) -> Listener {
        let mut request = Request::get(path).header(HOST, "localhost:8080");
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        let request = request.body(Body::empty()).expect("a request");
        match self.router.clone().oneshot(request).await {
            Ok(response) => Listener::new(response),
            Err(never) => match never {},
        }
    }

    /// Sends a request with a body.
    pub async fn request(&self, method: &str, path: &str, body: impl Into<Body>) -> Reply {
        let request = Request::builder().method(method).uri(path).body(body.into()).expect("a request");
        self.send(request).await
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Reply {
        self.request("GET", path, Body::empty()).await
    }

    /// Sends GET with an Accept header.
    pub async fn get_as(&self, path: &str, accept: &str) -> Reply {
        let request = Request::get(path).header("accept", accept).body(Body::empty()).expect("a request");
        self.send(request).await
    }

    /// DELETE.
    pub async fn delete(&self, path: &str) -> Reply {
        self.request("DELETE", path, Body::empty()).await
    }

    /// POST.
    pub async fn post(&self, path: &str, body: impl Into<Body>) -> Reply {
        self.request("POST", path, body).await
    }

    /// Stores a scenario and returns its identifier.
    pub async fn store(&self, scenario: &Value) -> String {
        let reply = self.request("PUT", api::path::SCENARIOS, scenario.to_string()).await;
        assert!(matches!(reply.status, 200 | 201), "{reply:?}");
        reply.json::<Value>()["id"].as_str().expect("an identifier").to_owned()
    }

    /// Plans a scenario and returns the final job state.
    pub async fn plan(&self, scenario: &str) -> Value {
        let reply = self.post(&api::path::plan(scenario), "").await;
        assert!(matches!(reply.status, 200 | 202), "{reply:?}");
        let job = reply.json::<Value>();
        let id = job["id"].as_str().expect("an identifier");
        self.get(&api::path::job_events(id)).await.events().pop().expect("a last event")
    }
}

/// Returns a small scenario for all planners: Llama-2 7B on one node, with listed samples.
pub fn scenario() -> Value {
    serde_json::json!({
        "schema": "scenario/1",
        "title": "A small question",
        "model": {"preset": "llama-2-7b"},
        "cluster": {"preset": "a100-80gb", "nodes": 1},
        "workload": {
            "samples": {
                "kind": "drawn",
                "text_tokens": {"kind": "values", "values": [512, 1024, 2048, 4096]},
                "images": {"kind": "constant", "value": 0}
            },
            "global_batch": 16,
            "context_length": 4096,
            "packing": "single"
        },
        "layout": {"tensor": 2, "pipeline": 4},
        "planners": ["1f1b", "interleaved", "wait_free_cyclic"],
        "seed": 3,
        "iterations": 2
    })
}
