//! Simulated planners and readers, with their latencies.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use api::job::{Job, JobState};
use api::path;
use serde_json::{Value, json};
use ureq::Agent;
use ureq::http::Response;

/// Base scenarios: a language model with long documents, and a vision-language model.
const QUESTIONS: [&str; 2] = [
    include_str!("../../examples/llama-2-7b-long-documents.json"),
    include_str!("../../examples/vlm-s-image-heavy.json"),
];
/// Planners for both scenarios. Each finishes within a fraction of a second, as in interactive use.
const PLANNERS: [&str; 3] = ["1f1b", "interleaved", "wait_free_cyclic"];
/// Every fifth scenario is stored and planned in a job.
const JOB_INTERVAL: u64 = 5;
/// Minimum and maximum pause between two changes, in seconds.
const THOUGHT_S: (f64, f64) = (2.0, 8.0);
/// Interval for polling a job.
const POLL: Duration = Duration::from_millis(200);
/// Interval between two pages of a reader.
const GLANCE: Duration = Duration::from_millis(250);

/// Latencies by request kind.
#[derive(Debug, Default)]
pub(crate) struct Latencies {
    ms: BTreeMap<&'static str, Vec<f64>>,
    failed: u64,
}

impl Latencies {
    /// Records a response.
    pub(crate) fn took(&mut self, kind: &'static str, time: Duration) {
        self.ms.entry(kind).or_default().push(time.as_secs_f64() * 1e3);
    }

    /// Merges the latencies from another client.
    pub(crate) fn add(&mut self, other: Self) {
        self.failed += other.failed;
        for (kind, ms) in other.ms {
            self.ms.entry(kind).or_default().extend(ms);
        }
    }

    /// Number of requests with an error response or no response.
    pub(crate) const fn failed(&self) -> u64 {
        self.failed
    }

    /// Quantile over all latencies, in ms.
    pub(crate) fn ms(&self, share: f64) -> f64 {
        within(self.ms.values().flatten().copied().collect(), share)
    }

    /// Formats the response count and the latency percentiles.
    pub(crate) fn spread(&self) -> String {
        let count: usize = self.ms.values().map(Vec::len).sum();
        let [half, p99, all] = [0.5, 0.99, 1.0].map(|share| self.ms(share));
        format!("{count}, median {half:.1} ms, 99 % {p99:.1} ms, most {all:.1} ms")
    }

    /// Formats a line per request kind.
    pub(crate) fn by_kind(&self) -> String {
        self.ms.iter().fold(String::new(), |mut text, (kind, ms)| {
            let [half, p99] = [0.5, 0.99].map(|share| within(ms.clone(), share));
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "    {kind}: {}, median {half:.1} ms, 99 % {p99:.1} ms", ms.len());
            text
        })
    }

    /// Sends a request and records the latency of the complete response. Also records errors.
    fn ask(&mut self, kind: &'static str, send: impl FnOnce() -> Reply) -> Option<Vec<u8>> {
        let began = Instant::now();
        let body = answered(send());
        match &body {
            Some(_) => self.took(kind, began.elapsed()),
            None => self.failed += 1,
        }
        body
    }
}

fn within(mut ms: Vec<f64>, share: f64) -> f64 {
    ms.sort_unstable_by(f64::total_cmp);
    let index = ((ms.len() as f64 * share) as usize).min(ms.len().saturating_sub(1));
    ms.get(index).copied().unwrap_or(f64::NAN)
}

type Reply = Result<Response<ureq::Body>, ureq::Error>;

/// Returns the body unless the response is an error.
fn answered(reply: Reply) -> Option<Vec<u8>> {
    reply.ok()?.body_mut().with_config().limit(64 << 20).read_to_vec().ok()
}

/// A simulated user who changes a scenario and reads the result.
#[derive(Debug)]
pub(crate) struct Planner {
    agent: Agent,
    origin: String,
    number: u64,
}

impl Planner {
    /// Planners with different numbers send different scenarios.
    pub(crate) fn new(origin: &str, number: u64) -> Self {
        Self { agent: Agent::new_with_defaults(), origin: origin.to_owned(), number }
    }

    /// Returns the what-if and job latencies when the flag is set.
    pub(crate) fn work(&self, over: &AtomicBool) -> (Latencies, Latencies) {
        let (mut previews, mut plans) = (Latencies::default(), Latencies::default());
        for round in 0.. {
            // Golden ratio steps spread the pauses evenly and make all runs of the benchmark
            // identical.
            let share = ((self.number * 100 + round) as f64 * 0.618_034).fract();
            let thought = THOUGHT_S.0 + (THOUGHT_S.1 - THOUGHT_S.0) * share;
            let until = Instant::now() + Duration::from_secs_f64(thought);
            while Instant::now() < until && !over.load(Ordering::Relaxed) {
                thread::sleep(GLANCE);
            }
            if over.load(Ordering::Relaxed) {
                break;
            }
            let scenario = self.unique_scenario(round);
            if round % JOB_INTERVAL == JOB_INTERVAL - 1 {
                let began = Instant::now();
                match plan(&self.agent, &self.origin, &scenario) {
                    Some(_) => plans.took("job", began.elapsed()),
                    None => plans.failed += 1,
                }
            } else {
                let url = format!("{}{}", self.origin, path::plan_preview(0));
                let send = || self.agent.post(url).header("Content-Type", "application/json").send(&scenario);
                previews.ask("what-if", send);
            }
        }
        (previews, plans)
    }

    /// Creates a scenario that no other planner or round has sent.
    fn unique_scenario(&self, round: u64) -> String {
        let mut scenario: Value = serde_json::from_str(QUESTIONS[(self.number % 2) as usize]).expect("an example");
        scenario["planners"] = json!(PLANNERS);
        scenario["seed"] = json!(1000 + self.number * 10_000 + round);
        scenario["workload"]["global_batch"] = json!([64, 96, 128][(round % 3) as usize]);
        scenario.to_string()
    }
}

/// Stores and plans a scenario, then fetches its outcome and first timeline. Returns the scenario
/// identifier.
fn plan(agent: &Agent, origin: &str, scenario: &str) -> Option<String> {
    let url = |path: &str| format!("{origin}{path}");
    let json = |body: Vec<u8>| serde_json::from_slice::<Value>(&body).ok();
    let stored = agent.put(url(path::SCENARIOS)).header("Content-Type", "application/json").send(scenario);
    let id = json(answered(stored)?)?["id"].as_str()?.to_owned();
    let mut job: Job = serde_json::from_slice(&answered(agent.post(url(&path::plan(&id))).send_empty())?).ok()?;
    while !job.state.is_final() {
        thread::sleep(POLL);
        job = serde_json::from_slice(&answered(agent.get(url(&path::job(&job.id))).call())?).ok()?;
    }
    if job.state != JobState::Done {
        return None;
    }
    answered(agent.get(url(&path::outcome(&id))).call())?;
    answered(agent.get(url(&path::timeline(&id, PLANNERS[0], 0))).call())?;
    Some(id)
}

/// Stores and plans an example scenario. Returns the identifier.
pub(crate) fn stored_example(origin: &str) -> String {
    plan(&Agent::new_with_defaults(), origin, QUESTIONS[1]).expect("an example that can be planned")
}

/// A simulated user who opens pages in sequence.
#[derive(Debug)]
pub(crate) struct Reader {
    agent: Agent,
    origin: String,
    pages: Vec<(&'static str, String)>,
    start: usize,
}

impl Reader {
    /// Reads all built pages, all lists, a stored outcome and a run. `number` selects the start
    /// page.
    pub(crate) fn new(origin: &str, web: &Path, scenario: &str, run: &str, number: usize) -> Self {
        let mut pages: Vec<(&'static str, String)> = [
            ("gallery", path::GALLERY.to_owned()),
            ("presets", path::PRESETS.to_owned()),
            ("list of scenarios", path::SCENARIOS.to_owned()),
            ("list of plans", path::PLANS.to_owned()),
            ("list of runs", path::RUNS.to_owned()),
            ("list of datasets", path::DATASETS.to_owned()),
            ("list of traces", path::TRACES.to_owned()),
            ("scenario", path::scenario(scenario)),
            ("outcome", path::outcome(scenario)),
            ("timeline", path::timeline(scenario, PLANNERS[0], 0)),
            ("run", path::run(run)),
            ("points of a run", path::run_points(run, 0, 1000)),
            ("health", path::HEALTH.to_owned()),
        ]
        .into();
        match std::fs::read_to_string(web.join("index.html")) {
            Ok(page) => {
                pages.push(("page", "/".to_owned()));
                // Asset paths are quoted in the page source.
                let assets = page.split('"').filter(|text| text.starts_with("/assets/"));
                pages.extend(assets.map(|path| ("asset", path.to_owned())));
            }
            Err(_) => println!("no pages in {}: only the interface is asked", web.display()),
        }
        let start = number * pages.len() / 4;
        Self { agent: Agent::new_with_defaults(), origin: origin.to_owned(), pages, start }
    }

    /// Reads pages in a loop. Returns when the flag is set.
    pub(crate) fn read(&self, over: &AtomicBool) -> Latencies {
        let mut answers = Latencies::default();
        for (kind, page) in self.pages.iter().cycle().skip(self.start) {
            if over.load(Ordering::Relaxed) {
                break;
            }
            let url = format!("{}{page}", self.origin);
            answers.ask(kind, || self.agent.get(url).header("Accept-Encoding", "br, gzip").call());
            thread::sleep(GLANCE);
        }
        answers
    }
}
