//! Flags and environment: the only place that reads them.

mod lengths;
mod schedules;

pub use lengths::LengthsArguments;
pub use schedules::{ScheduleArguments, ScheduleCommand, ScheduleOutput};

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use planner::data_aware::Preprocessing;
use planner::scenario::PlannerKind;
use planner::sweep::Shard;

use crate::live::LiveLimits;
use crate::traces::TraceLimits;
use crate::workers::Threads;

/// Plans the training of large multimodal models.
#[derive(Debug, Parser)]
#[command(name = "planscope", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the dashboard and its API.
    Serve(ServeArguments),
    /// Plan a scenario and write the outcome to standard output, as JSON.
    Plan(PlanArguments),
    /// Estimate time, memory and utilisation of every configuration of a table.
    Estimate(EstimateArguments),
    /// Fit a device's curves to measured operators and collectives and write the cluster, as JSON.
    Calibrate(CalibrateArguments),
    /// Make pipeline schedules by themselves, with no model, and compare them; or check a table of one.
    Schedule(ScheduleArguments),
    /// Answer a raw problem of one of the inner solvers, JSON in and out.
    Solve(SolveArguments),
    /// Plan every point of a sweep, or one share of them, and write a line for each.
    Sweep(SweepArguments),
    /// Read the lengths of the samples of a dataset of any size, and write or upload their histogram.
    Lengths(LengthsArguments),
    /// Gather the lines that shares of sweeps have written, and say which are missing.
    Import(ImportArguments),
    /// Rehearse a plan for real: a process for every rank, a message for every transfer; its log and its trace as a training
    /// job would write them.
    Rehearse(RehearseArguments),
    /// Be one rank of a rehearsal.
    #[command(hide = true)]
    RehearseRank,
    /// Copy the database of a server, running or not, into a new file.
    Backup(BackupArguments),
    /// Put a backup in the place of a database that no server uses.
    Restore(RestoreArguments),
    /// Look through a database, which a server may be using; exits with 1 where anything is wrong.
    Verify(VerifyArguments),
    /// Ask the server on this machine whether it is well.
    Health(HealthArguments),
    /// Write the OpenAPI document to standard output.
    Openapi,
}

/// How to serve.
#[derive(Debug, Clone, Args)]
pub struct ServeArguments {
    /// Address to listen at.
    #[arg(long, env = "PLANSCOPE_ADDRESS", default_value = "127.0.0.1:8080")]
    pub address: SocketAddr,
    /// Database file; made where there is none.
    #[arg(long, env = "PLANSCOPE_DATABASE", default_value = "planscope.db")]
    pub database: PathBuf,
    /// Folder of the built pages; default: those inside the program, or target/web where it has none.
    #[arg(long, env = "PLANSCOPE_WEB")]
    pub web: Option<PathBuf>,
    /// Token that every request must carry.
    #[arg(long, env = "PLANSCOPE_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// Listen at an address that others reach, although no token is set.
    #[arg(long, env = "PLANSCOPE_ALLOW_PUBLIC_WITHOUT_TOKEN")]
    pub allow_public_without_token: bool,
    /// Name under which browsers reach this server, beside localhost; may be given several times.
    #[arg(long = "host", env = "PLANSCOPE_HOSTS", value_delimiter = ',')]
    pub hosts: Vec<String>,
    /// Scenarios planned at once; default: one per core.
    #[arg(long, env = "PLANSCOPE_WORKERS")]
    pub workers: Option<usize>,
    /// Threads of one search within a plan or a study; default: one per core. Plans are the same on any number.
    #[arg(long, env = "PLANSCOPE_SEARCH_THREADS")]
    pub search_threads: Option<usize>,
    /// Longest time that a study may compute, in seconds; what it has by then is answered.
    #[arg(long, env = "PLANSCOPE_STUDY_SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub study_seconds: u64,
    /// Planning jobs that may wait.
    #[arg(long, env = "PLANSCOPE_QUEUE", default_value_t = 64)]
    pub queue: usize,
    /// Days that a deleted run, trace, profile, scenario, dataset or sweep can be brought back; then it is gone for good, with all that it holds.
    #[arg(long, env = "PLANSCOPE_RETENTION_DAYS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(0..=3650))]
    pub retention_days: u32,
    /// The same for traces, which are large; default: as for all the rest.
    #[arg(long, env = "PLANSCOPE_TRACE_RETENTION_DAYS", value_parser = clap::value_parser!(u32).range(0..=3650))]
    pub trace_retention_days: Option<u32>,
    /// Most that the database may hold, for example 20GiB; new content beyond it is refused. Default: what the disk has.
    #[arg(long, env = "PLANSCOPE_QUOTA", value_parser = bytes)]
    pub quota: Option<u64>,
    /// Time after which the upload of a log that sends nothing is ended, in seconds; what came is kept.
    #[arg(long, env = "PLANSCOPE_LOG_IDLE_SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub log_idle_seconds: u64,
    /// Largest trace that is taken, in MiB, packed or not; unpacked it may have four times as much, and 4 GiB at least.
    #[arg(long, env = "PLANSCOPE_TRACE_MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub trace_mib: u64,
}

/// Shortest token that is taken: what is shorter can be guessed.
const SHORTEST_TOKEN: usize = 16;

/// Why the server does not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Anyone could reach it.
    #[error(
        "{0} can be reached from other machines: set PLANSCOPE_TOKEN, or pass --allow-public-without-token if \
         everyone who reaches it may read and change everything"
    )]
    Public(SocketAddr),
    /// The token can be guessed.
    #[error("the token is shorter than {SHORTEST_TOKEN} characters; take one from `openssl rand -hex 16`")]
    ShortToken,
    /// The token cannot stand in a cookie.
    #[error("the token holds characters other than letters, digits, - and _")]
    OddToken,
}

impl ServeArguments {
    /// Refuses to open a server to everyone by accident.
    pub fn check(&self) -> Result<(), ConfigError> {
        match self.token() {
            Some(token) if token.len() < SHORTEST_TOKEN => Err(ConfigError::ShortToken),
            Some(token) if !token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) => {
                Err(ConfigError::OddToken)
            }
            None if !self.address.ip().is_loopback() && !self.allow_public_without_token => {
                Err(ConfigError::Public(self.address))
            }
            _ => Ok(()),
        }
    }

    /// The token; an empty one is none, as container files leave variables empty.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref().filter(|token| !token.is_empty())
    }

    /// Limits of traces. Files on their way wait beside the database, where there is room for large things.
    pub fn traces(&self) -> TraceLimits {
        let folder = self.database.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut limits = TraceLimits::in_folder(folder.map_or_else(|| PathBuf::from("."), PathBuf::from));
        limits.upload_mib = self.trace_mib;
        limits.reading.bytes = (self.trace_mib << 22).max(4 << 30);
        limits.retention =
            Duration::from_hours(24 * u64::from(self.trace_retention_days.unwrap_or(self.retention_days)));
        limits
    }

    /// Scenarios planned at once.
    pub fn workers(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.workers.unwrap_or_else(cores).max(1)
    }

    /// Threads of one search.
    pub fn search_threads(&self) -> Threads {
        self.search_threads.map_or_else(Threads::of_all_cores, Threads::new)
    }

    /// How much is taken of logs.
    pub fn live_limits(&self) -> LiveLimits {
        LiveLimits {
            idle: Duration::from_secs(self.log_idle_seconds),
            retention_days: self.retention_days,
            ..LiveLimits::default()
        }
    }
}

/// Whom to ask.
#[derive(Debug, Clone, Args)]
pub struct HealthArguments {
    /// Address that the server listens at.
    #[arg(long, env = "PLANSCOPE_ADDRESS", default_value = "127.0.0.1:8080")]
    pub address: SocketAddr,
    /// Token of the server.
    #[arg(long, env = "PLANSCOPE_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
}

/// What to copy, and where to.
#[derive(Debug, Clone, Args)]
pub struct BackupArguments {
    /// File to make; one that is there is not overwritten.
    pub file: PathBuf,
    /// Database file.
    #[arg(long, env = "PLANSCOPE_DATABASE", default_value = "planscope.db")]
    pub database: PathBuf,
}

/// What to put in place, and whether something may have to go.
#[derive(Debug, Clone, Args)]
pub struct RestoreArguments {
    /// File that `planscope backup` made.
    pub file: PathBuf,
    /// Database file to make of it.
    #[arg(long, env = "PLANSCOPE_DATABASE", default_value = "planscope.db")]
    pub database: PathBuf,
    /// Restore although there is a database, which is kept beside the restored one.
    #[arg(long)]
    pub replace: bool,
}

/// What to look through.
#[derive(Debug, Clone, Args)]
pub struct VerifyArguments {
    /// Database file, or a backup.
    #[arg(long, env = "PLANSCOPE_DATABASE", default_value = "planscope.db")]
    pub database: PathBuf,
}

/// What to solve.
#[derive(Debug, Clone, Args)]
pub struct SolveArguments {
    /// Problem file, or - for standard input; docs/api.md describes the kinds.
    pub problem: PathBuf,
    /// Threads of one search; default: one per core. Answers are the same on any number unless time ends the search.
    #[arg(long, env = "PLANSCOPE_SEARCH_THREADS")]
    pub search_threads: Option<usize>,
}

impl SolveArguments {
    /// Threads of one search.
    pub fn search_threads(&self) -> Threads {
        self.search_threads.map_or_else(Threads::of_all_cores, Threads::new)
    }
}

/// What to plan.
#[derive(Debug, Clone, Args)]
pub struct PlanArguments {
    /// Scenario file, or - for standard input.
    pub scenario: PathBuf,
    /// File of lengths that the scenario names by its content address; may be given several times.
    #[arg(long = "dataset")]
    pub datasets: Vec<PathBuf>,
    /// Rule by which media of these files become items of the encoder: llava-onevision, internvl, qwen-vl or qwen2-audio.
    #[arg(long, value_parser = preprocessing)]
    pub preprocessing: Option<Preprocessing>,
    /// Folder to write the timelines to, as JSON, one file per planner and iteration.
    #[arg(long)]
    pub timelines: Option<PathBuf>,
    /// Threads of one search; default: one per core. The outcome is the same on any number.
    #[arg(long, env = "PLANSCOPE_SEARCH_THREADS")]
    pub search_threads: Option<usize>,
}

impl PlanArguments {
    /// Threads of one search.
    pub fn search_threads(&self) -> Threads {
        self.search_threads.map_or_else(Threads::of_all_cores, Threads::new)
    }
}

/// Which points of which sweep to plan, and where to write them.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = crate::sweep_command::HELP)]
pub struct SweepArguments {
    /// Sweep file, or - for standard input.
    #[arg(value_name = "SWEEP.json")]
    pub sweep: PathBuf,
    /// Share I of N of the points, I from 1: the points I-1, I-1+N, I-1+2N, ...
    #[arg(long, value_name = "I/N", default_value_t = Shard::WHOLE)]
    pub shard: Shard,
    /// File to write to; standard output where absent.
    #[arg(long, value_name = "FILE.jsonl")]
    pub out: Option<PathBuf>,
    /// Go on behind what the file has already; a last line that was cut is written again.
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// File of lengths that the scenario names by its content address; may be given several times.
    #[arg(long = "dataset")]
    pub datasets: Vec<PathBuf>,
    /// Rule by which media of these files become items of the encoder: llava-onevision, internvl, qwen-vl or qwen2-audio.
    #[arg(long, value_parser = preprocessing)]
    pub preprocessing: Option<Preprocessing>,
    /// Points planned at once; default: one per core. The lines are the same on any number.
    #[arg(long)]
    pub threads: Option<usize>,
}

impl SweepArguments {
    /// Points planned at once.
    pub fn threads(&self) -> Threads {
        self.threads.map_or_else(Threads::of_all_cores, Threads::new)
    }
}

/// Files of a sweep to gather, and the place of the result.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = crate::import_command::HELP)]
pub struct ImportArguments {
    /// Files that `planscope sweep` wrote.
    #[arg(required = true, value_name = "FILE.jsonl")]
    pub files: Vec<PathBuf>,
    /// Database file to store them in.
    #[arg(long, env = "PLANSCOPE_DATABASE", default_value = "planscope.db")]
    pub database: PathBuf,
    /// Running server to send them to in place of a database file, for example http://127.0.0.1:8080.
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// Token of that server.
    #[arg(long, env = "PLANSCOPE_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
}

/// What to rehearse, how fast, and where to write.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = crate::rehearse_command::HELP)]
pub struct RehearseArguments {
    /// Execution plan, list of such, or scenario, as JSON; - for standard input.
    #[arg(required_unless_present = "server", conflicts_with = "server")]
    pub plan: Option<PathBuf>,
    /// Running server to take the plan from, for example http://127.0.0.1:8080, and to stream log and trace back to.
    #[arg(long, value_name = "URL", requires = "scenario")]
    pub server: Option<String>,
    /// Scenario of that server, by identifier or unique prefix; it must be planned there already.
    #[arg(long, value_name = "ID", requires = "server")]
    pub scenario: Option<String>,
    /// Iteration of its plan, from 0; default: all of them, one after another.
    #[arg(long, value_name = "N", requires = "server")]
    pub iteration: Option<u32>,
    /// Planner of the scenario whose plan is rehearsed; default: the fastest.
    #[arg(long, value_parser = planner_kind)]
    pub planner: Option<PlannerKind>,
    /// File of lengths that the scenario names by its content address; may be given several times.
    #[arg(long = "dataset")]
    pub datasets: Vec<PathBuf>,
    /// Rule by which media of these files become items of the encoder: llava-onevision, internvl, qwen-vl or qwen2-audio.
    #[arg(long, value_parser = preprocessing)]
    pub preprocessing: Option<Preprocessing>,
    /// Iterations, beginning anew behind the last one; default: those of the file or of the scenario.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub iterations: Option<u32>,
    /// How many times faster than planned, 1 for real time; default: such that sleeping is precise enough.
    #[arg(long)]
    pub speed: Option<f64>,
    /// File to write a Chrome trace to while it goes on; packed where its name ends in .gz.
    #[arg(long, value_name = "FILE.json[.gz]")]
    pub trace: Option<PathBuf>,
    /// File to write Megatron-style lines to while it goes on; default: standard output.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Print the comparison with the simulation as JSON; the log then goes to standard error.
    #[arg(long)]
    pub json: bool,
    /// Server to stream log and trace to, for example http://127.0.0.1:8080; a run is opened there. Default: that of --server.
    #[arg(long, value_name = "URL")]
    pub to: Option<String>,
    /// Token of that server.
    #[arg(long, env = "PLANSCOPE_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// Seconds without anything happening that are taken for a deadlock; default: 2, or a few times the longest by the plan.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub patience: Option<f64>,
    /// Most bytes of a message: a tensor travels as a thousandth of its size, up to this.
    #[arg(long, value_name = "BYTES", default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(0..=1_048_576))]
    pub message_bytes: u32,
    /// Threads of one search where a scenario is planned; default: one per core.
    #[arg(long, env = "PLANSCOPE_SEARCH_THREADS")]
    pub search_threads: Option<usize>,
    /// Run of that server that is open already, its token in the environment.
    #[arg(long, hide = true, requires = "to")]
    pub run: Option<String>,
    /// Token of that run.
    #[arg(long, hide = true, env = "PLANSCOPE_RUN_TOKEN", hide_env_values = true)]
    pub run_token: Option<String>,
    /// The plan is the first line of standard input, whose end ends the rehearsal.
    #[arg(long, hide = true)]
    pub until_input_ends: bool,
}

impl RehearseArguments {
    /// The server that log and trace are streamed to, where there is one.
    pub fn destination(&self) -> Option<&str> {
        self.to.as_deref().or(self.server.as_deref())
    }

    /// The token of the server; an empty one is none.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref().filter(|token| !token.is_empty())
    }

    /// Threads of one search.
    pub fn search_threads(&self) -> Threads {
        self.search_threads.map_or_else(Threads::of_all_cores, Threads::new)
    }
}

fn planner_kind(text: &str) -> Result<PlannerKind, String> {
    PlannerKind::from_id(text).ok_or_else(|| {
        let known: Vec<&str> = PlannerKind::ALL.iter().map(|kind| kind.id()).collect();
        format!("there are {}", known.join(", "))
    })
}

fn preprocessing(text: &str) -> Result<Preprocessing, String> {
    Preprocessing::of_id(text)
        .ok_or_else(|| format!("there are {}", Preprocessing::ALL.map(Preprocessing::id).join(", ")))
}

/// Bytes with a unit: 500MiB, 20 GB, or plain bytes.
fn bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len()));
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        other => return Err(format!("{other:?} is none of B, KB, MB, GB, TB, KiB, MiB, GiB and TiB")),
    };
    let number: u64 = number.trim().parse().map_err(|_| "a whole number is needed, for example 20GiB".to_owned())?;
    // Less would not hold the tables themselves with a scenario in them.
    let bytes = number.checked_mul(factor).ok_or("that is more than any disk has")?;
    if bytes >= 1 << 20 { Ok(bytes) } else { Err("at least 1MiB is needed".to_owned()) }
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if (0.01..=86_400.0).contains(&seconds) { Ok(seconds) } else { Err("between 0.01 and 86400".to_owned()) }
}

/// What to estimate.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = crate::estimate_command::columns())]
pub struct EstimateArguments {
    /// Table of configurations, CSV with a header, or - for standard input.
    pub configurations: PathBuf,
    /// File to write the answer to; standard output where absent, or -.
    #[arg(long)]
    pub out: Option<PathBuf>,
}

/// What to fit to what.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = crate::calibrate_command::HELP)]
pub struct CalibrateArguments {
    /// Files of measured operators and collectives.
    #[arg(required = true, value_name = "PROFILE")]
    pub profiles: Vec<PathBuf>,
    /// Device preset to start from.
    #[arg(long, value_name = "PRESET", required_unless_present = "from", conflicts_with = "from")]
    pub device: Option<String>,
    /// Cluster to start from in place of a preset: a file like the one that this command writes.
    #[arg(long, value_name = "CLUSTER.json")]
    pub from: Option<PathBuf>,
    /// Devices that took part in collectives, for tables that do not say it.
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..=65_536))]
    pub ranks: Option<u32>,
    /// Fit files that were measured on another device than the one to be fitted.
    #[arg(long)]
    pub confirm_device: bool,
    /// File to write the cluster to; standard output where absent, or -.
    #[arg(long, value_name = "CLUSTER.json")]
    pub out: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &[&str]) -> ServeArguments {
        let words = ["planscope", "serve"].into_iter().chain(line.iter().copied());
        match Cli::try_parse_from(words).unwrap().command {
            Command::Serve(arguments) => arguments,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_retention_is_for_all_unless_traces_have_their_own() {
        for (line, all, traces) in [
            (&[][..], 30, 30),
            (&["--retention-days", "3"], 3, 3),
            (&["--retention-days", "3", "--trace-retention-days", "0"], 3, 0),
        ] {
            let arguments = arguments(line);
            let kept = (arguments.live_limits().retention_days, arguments.traces().retention.as_secs() / 86_400);
            assert_eq!(kept, (all, traces), "{line:?}");
        }
    }

    #[test]
    fn sizes_have_units() {
        for (text, expected) in [
            ("1048576", Some(1 << 20)),
            ("500MiB", Some(500 << 20)),
            ("20 GB", Some(20_000_000_000)),
            ("3g", Some(3 << 30)),
            ("1023KiB", None),
            ("20 apples", None),
            ("1.5GiB", None),
            ("-1GiB", None),
            ("99999999TiB", None),
            ("", None),
        ] {
            assert_eq!(bytes(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn a_server_is_never_open_by_accident() {
        let public: SocketAddr = "0.0.0.0:80".parse().unwrap();
        for (line, expected) in [
            (&[][..], Ok(())),
            (&["--address", "[::1]:80"], Ok(())),
            (&["--address", "0.0.0.0:80"], Err(ConfigError::Public(public))),
            (&["--address", "0.0.0.0:80", "--token", ""], Err(ConfigError::Public(public))),
            (&["--address", "0.0.0.0:80", "--token", "0123456789abcdef"], Ok(())),
            (&["--address", "0.0.0.0:80", "--allow-public-without-token"], Ok(())),
            (&["--token", "short"], Err(ConfigError::ShortToken)),
            (&["--token", "0123456789abcde; x"], Err(ConfigError::OddToken)),
        ] {
            assert_eq!(arguments(line).check(), expected, "{line:?}");
        }
    }
}
