//! Flags and environment: the only place that reads them.

pub(crate) mod help;
mod lengths;
mod schedules;
mod token;

pub use lengths::LengthsArguments;
pub use schedules::{ScheduleArguments, ScheduleCommand, ScheduleOutput};
pub use token::{TokenArguments, TokenCommand, TokenFile, TokenFileError};

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use planner::sweep::Shard;
use planner::workload::preprocessing::Preprocessing;

use crate::arrival::BodyLimits;
use crate::client::{Networks, NotANetwork};
use crate::jobs::Limits;
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
    /// Copy the database of a server, running or not, into a new file.
    Backup(BackupArguments),
    /// Put a backup in the place of a database that no server uses.
    Restore(RestoreArguments),
    /// Cancel all planning jobs and sweeps that wait in a database that no server uses.
    CancelWork(CancelWorkArguments),
    /// Look through a database, which a server may be using; exits with 1 where anything is wrong.
    Verify(VerifyArguments),
    /// Make, list and revoke tokens with a name and a role.
    Token(TokenArguments),
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
    /// File of the token.
    #[command(flatten)]
    pub token_file: TokenFile,
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
    /// Longest time that one planning may take, in seconds: a job or a point of a sweep.
    #[arg(long, env = "PLANSCOPE_PLAN_SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=604_800))]
    pub plan_seconds: u64,
    /// Longest time that an answer may take that a page waits for (what-if), in seconds.
    #[arg(long, env = "PLANSCOPE_WHAT_IF_SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=604_800))]
    pub what_if_seconds: u64,
    /// Memory of all plans and studies that are computed at the same time, by estimate. What alone takes more is refused.
    #[arg(long, env = "PLANSCOPE_PLAN_MEMORY", default_value = "1GiB", value_parser = plan_memory)]
    pub plan_memory: u64,
    /// Take up no jobs and no sweeps and plan nothing; what is stored is answered, and work that waits can be cancelled.
    #[arg(long, env = "PLANSCOPE_WITHOUT_WORK")]
    pub without_work: bool,
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
    /// Connections that one address may have open at once, or requests under way behind a trusted proxy. Loopback addresses have no
    /// such limit, nor have connections of the proxies themselves.
    #[arg(long, env = "PLANSCOPE_CONNECTIONS_PER_ADDRESS", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub connections_per_address: u32,
    /// Address or network of a proxy whose X-Forwarded headers are believed, for example 172.16.0.0/12; may be given several times.
    #[arg(long = "trusted-proxy", env = "PLANSCOPE_TRUSTED_PROXIES", value_delimiter = ',')]
    pub trusted_proxies: Vec<String>,
    /// Most memory that bodies of requests may take together, for example 1GiB; further ones are answered 503.
    #[arg(long, env = "PLANSCOPE_BODIES", default_value = "512MiB", value_parser = bytes)]
    pub bodies: u64,
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
    /// The token cannot stand in an address.
    #[error("the token holds characters other than letters, digits, - and _")]
    OddToken,
    /// A trusted proxy is not named by its address.
    #[error("--trusted-proxy: {0}")]
    Proxy(#[from] NotANetwork),
}

impl ServeArguments {
    /// Refuses to open a server to everyone by accident.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.trusted_proxies()?;
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

    /// Proxies whose X-Forwarded headers are believed.
    pub fn trusted_proxies(&self) -> Result<Networks, NotANetwork> {
        Networks::parse(&self.trusted_proxies)
    }

    /// How much is held of bodies, and how slowly they may come.
    pub fn body_limits(&self) -> BodyLimits {
        BodyLimits { held_bytes: self.bodies, ..BodyLimits::default() }
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

    /// Limits of planning.
    pub fn plan_limits(&self) -> Limits {
        Limits {
            workers: self.workers(),
            queue: self.queue,
            search_threads: self.search_threads(),
            plan_time: Duration::from_secs(self.plan_seconds),
            what_if_time: Duration::from_secs(self.what_if_seconds),
            plan_memory: self.plan_memory,
            takes_work: !self.without_work,
        }
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
    /// File of the token.
    #[command(flatten)]
    pub token_file: TokenFile,
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

/// Whose work to cancel.
#[derive(Debug, Clone, Args)]
pub struct CancelWorkArguments {
    /// Database file.
    #[arg(long, env = "PLANSCOPE_DATABASE", default_value = "planscope.db")]
    pub database: PathBuf,
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
#[command(after_long_help = help::SWEEP)]
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
#[command(after_long_help = help::IMPORT)]
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
    /// File of the token.
    #[command(flatten)]
    pub token_file: TokenFile,
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

/// Memory for planning: bytes with a unit, as much at least as most plans take.
fn plan_memory(text: &str) -> Result<u64, String> {
    bytes(text).and_then(|bytes| if bytes >= 64 << 20 { Ok(bytes) } else { Err("at least 64MiB is needed".to_owned()) })
}

/// What to estimate.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = help::estimate_columns())]
pub struct EstimateArguments {
    /// Table of configurations, CSV with a header, or - for standard input.
    pub configurations: PathBuf,
    /// File to write the answer to; standard output where absent, or -.
    #[arg(long)]
    pub out: Option<PathBuf>,
}

/// What to fit to what.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = help::CALIBRATE)]
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
    fn proxies_are_named_by_address() {
        let error = arguments(&["--trusted-proxy", "proxy"]).check().unwrap_err().to_string();
        assert!(error.contains("--trusted-proxy") && error.contains("172.16.0.0/12"), "{error}");
        let listed = arguments(&["--trusted-proxy", "10.0.0.7,10.1.0.0/16"]).trusted_proxies().unwrap();
        for (address, trusted) in [("10.0.0.7", true), ("10.1.2.3", true), ("10.0.0.8", false)] {
            assert_eq!(listed.contains(address.parse().unwrap()), trusted, "{address}");
        }
    }

    #[test]
    fn bodies_have_512_mib_by_default() {
        for (line, bytes) in [(&[][..], 512 << 20), (&["--bodies", "2GiB"], 2 << 30)] {
            assert_eq!(arguments(line).body_limits().held_bytes, bytes);
        }
        assert_eq!(arguments(&[]).connections_per_address, 64);
    }

    #[test]
    fn planning_has_ten_minutes_and_can_be_left_out() {
        for (line, seconds, takes_work) in
            [(&[][..], 600, true), (&["--plan-seconds", "30"], 30, true), (&["--without-work"], 600, false)]
        {
            let limits = arguments(line).plan_limits();
            assert_eq!((limits.plan_time.as_secs(), limits.takes_work), (seconds, takes_work), "{line:?}");
        }
    }

    #[test]
    fn planning_has_one_gibibyte_and_what_ifs_a_minute() {
        for (line, bytes, seconds) in
            [(&[][..], 1 << 30, 60), (&["--plan-memory", "3GiB", "--what-if-seconds", "5"], 3 << 30, 5)]
        {
            let limits = arguments(line).plan_limits();
            assert_eq!((limits.plan_memory, limits.what_if_time.as_secs()), (bytes, seconds), "{line:?}");
        }
        assert_eq!(plan_memory("63MiB"), Err("at least 64MiB is needed".to_owned()));
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
            (&["--trusted-proxy", "172.16.0.0/12", "--trusted-proxy", "::1"], Ok(())),
            (&["--trusted-proxy", ""], Ok(())),
        ] {
            assert_eq!(arguments(line).check(), expected, "{line:?}");
        }
    }
}
