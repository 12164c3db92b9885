//! People who plan and people who look, and how long they wait.

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

/// What is changed: a language model on long documents, and a model that sees.
const QUESTIONS: [&str; 2] = [
    include_str!("../../examples/llama-2-7b-long-documents.json"),
    include_str!("../../examples/vlm-s-image-heavy.json"),
];
/// Planners of both, as people ask for them while they change things: fractions of a second each.
const PLANNERS: [&str; 3] = ["1f1b", "interleaved", "wait_free_cyclic"];
/// Of so many scenarios one is stored and planned by a job.
const KEPT: u64 = 5;
/// Shortest and longest thought between two changes.
const THOUGHT_S: (f64, f64) = (2.0, 8.0);
/// Between two looks at a job.
const POLL: Duration = Duration::from_millis(200);
/// Between two pages of a reader.
const GLANCE: Duration = Duration::from_millis(250);

/// How long answers took, by what was asked.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    ms: BTreeMap<&'static str, Vec<f64>>,
    failed: u64,
}

impl Answers {
    /// An answer came.
    pub(crate) fn took(&mut self, kind: &'static str, time: Duration) {
        self.ms.entry(kind).or_default().push(time.as_secs_f64() * 1e3);
    }

    /// Those of another client too.
    pub(crate) fn add(&mut self, other: Self) {
        self.failed += other.failed;
        for (kind, ms) in other.ms {
            self.ms.entry(kind).or_default().extend(ms);
        }
    }

    /// How many were answered by an error, or not at all.
    pub(crate) const fn failed(&self) -> u64 {
        self.failed
    }

    /// The time within which a share of all answers came, in ms.
    pub(crate) fn ms(&self, share: f64) -> f64 {
        within(self.ms.values().flatten().copied().collect(), share)
    }

    /// Their number, and how they are spread.
    pub(crate) fn spread(&self) -> String {
        let count: usize = self.ms.values().map(Vec::len).sum();
        let [half, most, all] = [0.5, 0.99, 1.0].map(|share| self.ms(share));
        format!("{count}, median {half:.1} ms, 99 % {most:.1} ms, most {all:.1} ms")
    }

    /// A line for every kind.
    pub(crate) fn by_kind(&self) -> String {
        self.ms.iter().fold(String::new(), |mut text, (kind, ms)| {
            let [half, most] = [0.5, 0.99].map(|share| within(ms.clone(), share));
            // Writing to a string cannot fail.
            let _ = writeln!(text, "    {kind}: {}, median {half:.1} ms, 99 % {most:.1} ms", ms.len());
            text
        })
    }

    /// Asks and notes how long it takes until the last byte; an error is counted.
    fn ask(&mut self, kind: &'static str, asked: impl FnOnce() -> Reply) -> Option<Vec<u8>> {
        let began = Instant::now();
        let body = answered(asked());
        match &body {
            Some(_) => self.took(kind, began.elapsed()),
            None => self.failed += 1,
        }
        body
    }
}

fn within(mut ms: Vec<f64>, share: f64) -> f64 {
    ms.sort_unstable_by(f64::total_cmp);
    let place = ((ms.len() as f64 * share) as usize).min(ms.len().saturating_sub(1));
    ms.get(place).copied().unwrap_or(f64::NAN)
}

type Reply = Result<Response<ureq::Body>, ureq::Error>;

/// The bytes of an answer that is none of an error.
fn answered(reply: Reply) -> Option<Vec<u8>> {
    reply.ok()?.body_mut().with_config().limit(64 << 20).read_to_vec().ok()
}

/// Someone who changes a scenario and waits for the answer.
#[derive(Debug)]
pub(crate) struct Planner {
    agent: Agent,
    origin: String,
    number: u64,
}

impl Planner {
    /// One of many; no two ask the same.
    pub(crate) fn new(origin: &str, number: u64) -> Self {
        Self { agent: Agent::new_with_defaults(), origin: origin.to_owned(), number }
    }

    /// Works until it is over: how long what-ifs took, and jobs.
    pub(crate) fn work(&self, over: &AtomicBool) -> (Answers, Answers) {
        let (mut what_ifs, mut plans) = (Answers::default(), Answers::default());
        for round in 0.. {
            // Steps of the golden ratio: no two people think alike, and every run of this is the same.
            let share = ((self.number * 100 + round) as f64 * 0.618_034).fract();
            let thought = THOUGHT_S.0 + (THOUGHT_S.1 - THOUGHT_S.0) * share;
            let until = Instant::now() + Duration::from_secs_f64(thought);
            while Instant::now() < until && !over.load(Ordering::Relaxed) {
                thread::sleep(GLANCE);
            }
            if over.load(Ordering::Relaxed) {
                break;
            }
            let question = self.question(round);
            if round % KEPT == KEPT - 1 {
                let began = Instant::now();
                match plan(&self.agent, &self.origin, &question) {
                    Some(_) => plans.took("job", began.elapsed()),
                    None => plans.failed += 1,
                }
            } else {
                let url = format!("{}{}", self.origin, path::what_if(0));
                let asked = || self.agent.post(url).header("Content-Type", "application/json").send(&question);
                what_ifs.ask("what-if", asked);
            }
        }
        (what_ifs, plans)
    }

    /// A scenario that nobody has asked for.
    fn question(&self, round: u64) -> String {
        let mut scenario: Value = serde_json::from_str(QUESTIONS[(self.number % 2) as usize]).expect("an example");
        scenario["planners"] = json!(PLANNERS);
        scenario["seed"] = json!(1000 + self.number * 10_000 + round);
        scenario["workload"]["global_batch"] = json!([64, 96, 128][(round % 3) as usize]);
        scenario.to_string()
    }
}

/// Stores a scenario, plans it and fetches outcome and first timeline; its identifier.
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

/// The identifier of a scenario that is stored and planned.
pub(crate) fn stored_example(origin: &str) -> String {
    plan(&Agent::new_with_defaults(), origin, QUESTIONS[1]).expect("an example that can be planned")
}

/// Someone who opens one page after the other.
#[derive(Debug)]
pub(crate) struct Reader {
    agent: Agent,
    origin: String,
    pages: Vec<(&'static str, String)>,
    start: usize,
}

impl Reader {
    /// Reads the pages that were built, all lists, a stored answer and a run, beginning with another page than others.
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
                // What the page names between quotes.
                let assets = page.split('"').filter(|text| text.starts_with("/assets/"));
                pages.extend(assets.map(|path| ("asset", path.to_owned())));
            }
            Err(_) => println!("no pages in {}: only the interface is asked", web.display()),
        }
        let start = number * pages.len() / 4;
        Self { agent: Agent::new_with_defaults(), origin: origin.to_owned(), pages, start }
    }

    /// Reads until it is over.
    pub(crate) fn read(&self, over: &AtomicBool) -> Answers {
        let mut answers = Answers::default();
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
