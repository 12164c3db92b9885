//! Conducts a rehearsal: starts the ranks, gives each its list, lets all begin at once, and sees why they stop.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use planner::execution_plan::ExecutionPlan;

use super::agreement::Iteration;
use super::control::{Content, FromRank, Part, ToRank};
use super::crew::{Crew, Event};
use super::report::Report;
use super::score::Score;
use super::standstill::explain;
use super::tempo::{Tempo, TempoError};
use super::trace::TraceWriter;
use super::{clock, log, postage};

/// Shortest time without anything happening that is taken for a standstill.
const STANDSTILL: Duration = Duration::from_secs(2);
/// So many times the longest time in which nothing happens by the plan are taken for a standstill.
const PATIENCE: f64 = 4.0;
/// How long ranks may take to read their lists and to connect.
const PREPARE: Duration = Duration::from_mins(1);
/// How long ranks may take to say where they are.
const ANSWER: Duration = Duration::from_secs(2);
/// From the word to begin until the beginning, so that all have heard it, and for every rank.
const NOTICE_NS: u64 = 20_000_000;
const NOTICE_RANK_NS: u64 = 500_000;

/// How to rehearse.
#[derive(Debug, Clone)]
pub struct Settings {
    /// This program, to be started once for every rank.
    pub program: PathBuf,
    /// How many times faster than planned; absent: such that sleeping is precise enough.
    pub speed: Option<f64>,
    /// Time without anything happening that is taken for a standstill; absent: a few times the longest by the plan.
    pub patience: Option<Duration>,
    /// Most bytes of a message.
    pub message_bytes: u32,
}

/// A rehearsal that is about to begin.
#[derive(Debug)]
pub struct Rehearsal<'a> {
    score: &'a Score,
    settings: Settings,
    tempo: Tempo,
    interrupts: (Sender<Event>, Receiver<Event>),
}

/// How a rehearsal ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Finale {
    /// All iterations to their ends.
    Done(Report),
    /// The plan cannot be followed, or a rank was lost; in words.
    Failed(String),
    /// Somebody wanted it to end; so many iterations were done by then.
    Interrupted(usize),
}

impl Finale {
    /// Why it ended before its end, in words.
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Done(_) => None,
            Self::Failed(why) => Some(format!("failed in {why}")),
            Self::Interrupted(0) => Some("was ended by somebody in its first iteration".to_owned()),
            Self::Interrupted(done) => Some(format!("was ended by somebody after {done} iterations")),
        }
    }
}

/// Ends a rehearsal from elsewhere.
#[derive(Debug, Clone)]
pub struct Interrupt(Sender<Event>);

impl Interrupt {
    /// Ends it; where it has ended already, nothing happens.
    pub fn send(&self) {
        drop(self.0.send(Event::Interrupted));
    }
}

/// Why ranks stopped before the end of an iteration.
enum Stop {
    Failed(String),
    Interrupted,
    Fault(anyhow::Error),
}

impl From<anyhow::Error> for Stop {
    fn from(error: anyhow::Error) -> Self {
        Self::Fault(error)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Fault(error.into())
    }
}

/// Where a rehearsal is written to while it goes on.
pub struct Outlets<'a> {
    /// Its trace, where one is wanted.
    pub trace: Option<&'a mut TraceWriter>,
    /// Takes lines of its log.
    pub log: &'a mut dyn FnMut(&str) -> io::Result<()>,
}

impl<'a> Rehearsal<'a> {
    /// Measures how precisely this machine sleeps and what its messages cost, and settles the speed.
    pub fn prepare(score: &'a Score, settings: Settings) -> Result<Self, TempoError> {
        clock::sharpen();
        let content = content(&settings);
        let tempo = Tempo::of(score, settings.speed, content, clock::measure(), postage::measure(content.most))?;
        Ok(Self { score, settings, tempo, interrupts: channel() })
    }

    /// The speed and what it does.
    pub const fn tempo(&self) -> &Tempo {
        &self.tempo
    }

    /// What ends it from elsewhere.
    pub fn interrupt(&self) -> Interrupt {
        Interrupt(self.interrupts.0.clone())
    }

    /// Rehearses.
    ///
    /// # Errors
    /// What stands in the way of starting processes and of writing; a plan that is wrong is no error.
    pub fn run(self, mut outlets: Outlets<'_>) -> anyhow::Result<Finale> {
        let (sender, events) = self.interrupts;
        let (score, tempo) = (self.score, self.tempo);
        let crew = Crew::start(&self.settings.program, score.ranks(), &sender)?;
        crew.tell_all(&ToRank::Peers { ports: crew.ports.clone(), content: content(&self.settings) })?;
        let mut stage =
            Stage { crew, events, patience: self.settings.patience, speed: tempo.speed, processor_ns: Vec::new() };
        stage.processor_ns = vec![0; score.ranks()];
        let total = score.movements().len();
        (outlets.log)(&log::head(score.ranks(), total, tempo.speed))?;
        if let Some(warning) = tempo.warning() {
            (outlets.log)(&log::remark(&format!("warning: {warning}")))?;
        }
        let (mut done, mut real_ns, mut consumed) = (Vec::with_capacity(total), 0, Some(0_u64));
        for (number, movement) in score.movements().iter().enumerate() {
            match stage.iteration(number, &movement.plan, &mut outlets) {
                Ok((iteration, lasted_ns)) => {
                    real_ns += lasted_ns;
                    let batch = movement.samples.map(u64::from);
                    consumed = consumed.zip(batch).map(|(consumed, batch)| consumed + batch);
                    let samples = consumed.zip(batch);
                    let lines = log::step(number + 1, total, samples, &iteration, Timestamp::now());
                    (outlets.log)(&lines)?;
                    done.push(iteration);
                }
                Err(Stop::Failed(why)) => return Ok(Finale::Failed(format!("iteration {}: {why}", number + 1))),
                Err(Stop::Interrupted) => return Ok(Finale::Interrupted(done.len())),
                Err(Stop::Fault(error)) => return Err(error),
            }
        }
        // Ranks that are gone already need no telling.
        drop(stage.crew.tell_all(&ToRank::End));
        Ok(Finale::Done(Report::new(&tempo, &done, real_ns, &stage.processor_ns)))
    }
}

/// The ranks at work.
struct Stage {
    crew: Crew,
    events: Receiver<Event>,
    patience: Option<Duration>,
    speed: f64,
    processor_ns: Vec<u64>,
}

impl Stage {
    /// One iteration, and how long it took in real time, in ns.
    fn iteration<'p>(
        &mut self,
        number: usize,
        plan: &'p ExecutionPlan,
        outlets: &mut Outlets<'_>,
    ) -> Result<(Iteration<'p>, u64), Stop> {
        let ranks = plan.ranks.len();
        for (rank, actions) in plan.ranks.iter().enumerate() {
            let endings = plan.endings.iter().filter(|ending| ending.rank as usize == rank).copied().collect();
            let part = Part { iteration: number as u32, speed: self.speed, actions: actions.clone(), endings };
            self.crew.tell(rank, &ToRank::Part(part))?;
        }
        let until = Instant::now() + PREPARE;
        let mut ready = 0;
        while ready < ranks {
            match self.next(until)? {
                Some((_, FromRank::Ready)) => ready += 1,
                Some(_) => {}
                None => return Err(Stop::Failed(format!("ranks were not ready within {} s", PREPARE.as_secs()))),
            }
        }
        let at_ns = clock::now() + NOTICE_NS + NOTICE_RANK_NS * ranks as u64;
        self.crew.tell_all(&ToRank::Begin { at_ns })?;
        if let Some(trace) = &mut outlets.trace {
            trace.begin(at_ns);
        }
        let mut iteration = Iteration::new(plan, at_ns, self.speed);
        let patience = self.patience.unwrap_or_else(|| patience(plan, self.speed));
        let (mut done, mut last_ns, mut ends_ns) = (0, at_ns, vec![at_ns; ranks]);
        while done < ranks {
            let Some((rank, word)) = self.next(Instant::now() + patience)? else {
                return Err(Stop::Failed(self.standstill(plan, patience)?));
            };
            match word {
                FromRank::Happened(records) => {
                    for record in &records {
                        iteration.take(rank, record);
                        if let Some(trace) = &mut outlets.trace {
                            trace.record(rank, plan, record)?;
                        }
                        ends_ns[rank] = ends_ns[rank].max(record.end_ns);
                    }
                    last_ns = last_ns.max(ends_ns[rank]);
                }
                FromRank::Done { processor_ns } => {
                    self.processor_ns[rank] = processor_ns;
                    done += 1;
                }
                FromRank::Fault(why) => return Err(Stop::Failed(format!("rank {rank}, {why}"))),
                FromRank::Hello { .. } | FromRank::Ready | FromRank::At { .. } => {}
            }
        }
        if let Some(trace) = &mut outlets.trace {
            for (rank, &end_ns) in ends_ns.iter().enumerate() {
                trace.step(rank, number + 1, at_ns, end_ns)?;
            }
            trace.flush()?;
        }
        Ok((iteration, last_ns - at_ns))
    }

    /// What a rank says next; `None` where nobody says anything in time.
    fn next(&mut self, until: Instant) -> Result<Option<(usize, FromRank)>, Stop> {
        match self.events.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Event::Said(rank, word)) => Ok(Some((rank, word))),
            Ok(Event::Interrupted) | Err(RecvTimeoutError::Disconnected) => Err(Stop::Interrupted),
            Ok(Event::Gone(rank)) => {
                let how = self.crew.ending(rank);
                Err(Stop::Failed(format!("rank {rank} ended unexpectedly: {how}")))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
        }
    }

    /// Asks everybody where they are and says why nobody goes on.
    fn standstill(&mut self, plan: &ExecutionPlan, patience: Duration) -> Result<String, Stop> {
        self.crew.tell_all(&ToRank::Where)?;
        let mut at: Vec<Option<usize>> = vec![None; plan.ranks.len()];
        let until = Instant::now() + ANSWER;
        while at.iter().any(Option::is_none) {
            match self.next(until)? {
                Some((rank, FromRank::At { index })) => at[rank] = Some(index as usize),
                Some((rank, FromRank::Fault(why))) => return Ok(format!("rank {rank}, {why}")),
                Some(_) => {}
                None => break,
            }
        }
        let seconds = patience.as_secs_f64();
        if let Some(rank) = at.iter().position(Option::is_none) {
            return Ok(format!("nothing has happened for {seconds:.1} s, and rank {rank} does not answer"));
        }
        let at: Vec<usize> = at.into_iter().flatten().collect();
        let why = explain(&plan.ranks, &at).describe(&plan.ranks);
        Ok(format!("nothing has happened for {seconds:.1} s: {why}"))
    }
}

/// How large messages are.
const fn content(settings: &Settings) -> Content {
    Content { divisor: 1024, unknown: 4096, most: settings.message_bytes }
}

/// How long nothing may happen: a few times the longest time between two ends by the plan.
fn patience(plan: &ExecutionPlan, speed: f64) -> Duration {
    let stages = plan.ranks.iter().flatten().map(|action| action.start_ns + action.duration_ns.unwrap_or(0));
    let endings = plan.endings.iter().map(|ending| ending.start_ns + ending.duration_ns);
    let mut ends: Vec<u64> = stages.chain(endings).chain([0]).collect();
    ends.sort_unstable();
    let quiet = ends.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
    STANDSTILL.max(Duration::from_secs_f64((quiet as f64 / 1e9 / speed * PATIENCE).min(1e9)))
}
