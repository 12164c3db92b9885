//! Command-line flags and environment variables. No other module reads them.

mod check;
mod fit;
pub(crate) mod help;
mod lengths;
mod mcp;
mod measure;
mod plan;
mod schedules;
mod simulate;
mod token;
mod trace;

pub use check::CheckArguments;
pub use fit::FitArguments;
pub use lengths::LengthsArguments;
pub use mcp::McpArguments;
pub use measure::MeasureArguments;
pub use plan::PlanArguments;
pub use schedules::{ScheduleArguments, ScheduleCommand, ScheduleOutput};
pub use simulate::SimulateArguments;
pub use token::{TokenArguments, TokenCommand, TokenFile, TokenFileError};
pub use trace::{TraceArguments, Unit};

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
    /// Command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// Commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the dashboard and its API.
    Serve(ServeArguments),
    /// Plan a scenario and write the outcome to standard output, as JSON.
    #[command(
        after_help = plan::EXIT_CODES
    )]
    Plan(PlanArguments),
    /// Simulate an execution plan file again and check it; exits with 1 at the first violation.
    Simulate(SimulateArguments),
    /// Check the configuration of a training job: memory, time, utilisation, and what to change.
    #[command(
        after_help = check::EXIT_CODES
    )]
    Check(CheckArguments),
    /// Serve the tools check, fit, plan, compare, why_slow and explain over the Model Context Protocol, on standard
    /// input and output.
    Mcp(McpArguments),
    /// Show the memory need of a scenario, and the single changes that make it fit or make it faster.
    #[command(
        after_help = fit::EXIT_CODES
    )]
    Fit(FitArguments),
    /// Estimate time, memory and utilisation for all configurations in a table.
    Estimate(EstimateArguments),
    /// Fit the curves of a device to measured operators and collectives and write the cluster, as
    /// JSON.
    Calibrate(CalibrateArguments),
    /// Measure the operators of this machine's device with PyTorch, and write or upload the profile.
    Measure(MeasureArguments),
    /// Generate and compare pipeline schedules without a model, or check a schedule table.
    Schedule(ScheduleArguments),
    /// Solve a raw problem with an inner solver, JSON in and out.
    Solve(SolveArguments),
    /// Plan all points or one shard of a sweep, and write a line per point.
    Sweep(SweepArguments),
    /// Sum up a profiler trace, compare two traces, or find the straggler among the ranks of a run.
    Trace(TraceArguments),
    /// Read the sample lengths of a dataset of any size, and write or upload the histogram.
    Lengths(LengthsArguments),
    /// Merge the output lines of sweep shards, and list missing points.
    Import(ImportArguments),
    /// Copy the database of a server, running or not, into a new file.
    Backup(BackupArguments),
    /// Restore a backup to a database path that no server uses.
    Restore(RestoreArguments),
    /// Cancel all waiting planning jobs and sweeps in a database that no server uses.
    CancelWork(CancelWorkArguments),
    /// Check a database, which a server may be using; exits with 1 on any defect.
    Verify(VerifyArguments),
    /// Create, list and revoke tokens with a name and a role.
    Token(TokenArguments),
    /// Check the health of the server on this machine.
    Health(HealthArguments),
    /// Write the OpenAPI document to standard output.
    Openapi,
}

/// Arguments of `planscope serve`.
#[derive(Debug, Clone, Args)]
pub struct ServeArguments {
    /// Address and port to listen on.
    #[arg(long, env = "PLANSCOPE_ADDRESS", default_value = "127.0.0.1:8080")]
    pub address: SocketAddr,
    /// Database file; created if missing.
    #[arg(long, env = "PLANSCOPE_DATABASE", default_value = "planscope.db")]
    pub database: PathBuf,
    /// Folder with the built pages. Default: the pages embedded in the program, or target/web if
    /// none are embedded.
    #[arg(long, env = "PLANSCOPE_WEB")]
    pub web: Option<PathBuf>,
    /// Token required in every request.
    #[arg(long, env = "PLANSCOPE_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// File that contains the token.
    #[command(flatten)]
    pub token_file: TokenFile,
    /// Allow a public listen address without a token.
    #[arg(long, env = "PLANSCOPE_ALLOW_PUBLIC_WITHOUT_TOKEN")]
    pub allow_public_without_token: bool,
    /// Host name under which browsers reach this server, in addition to localhost; repeatable.
    #[arg(long = "host", env = "PLANSCOPE_HOSTS", value_delimiter = ',')]
    pub hosts: Vec<String>,
    /// Number of scenarios planned in parallel. Default: number of cores.
    #[arg(long, env = "PLANSCOPE_WORKERS")]
    pub workers: Option<usize>,
    /// Worker threads per search within a plan or a study. Default: number of cores. Plans do not
    /// depend on the thread count.
    #[arg(long, env = "PLANSCOPE_SEARCH_THREADS")]
    pub search_threads: Option<usize>,
    /// Time limit for a study, in seconds. The result then covers the work completed so far.
    #[arg(long, env = "PLANSCOPE_STUDY_SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub study_seconds: u64,
    /// Time limit for planning a job or a sweep point, in seconds.
    #[arg(long, env = "PLANSCOPE_PLAN_SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=604_800))]
    pub plan_seconds: u64,
    /// Time limit for what-if requests from a page, in seconds.
    #[arg(long, env = "PLANSCOPE_WHAT_IF_SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=604_800))]
    pub what_if_seconds: u64,
    /// Memory limit for all concurrent plans and studies, by estimate. A plan or study with a
    /// higher estimate is refused.
    #[arg(long, env = "PLANSCOPE_PLAN_MEMORY", default_value = "1GiB", value_parser = plan_memory)]
    pub plan_memory: u64,
    /// Do not resume jobs or sweeps and do not plan. Stored results remain available, and waiting
    /// work can be cancelled.
    #[arg(long, env = "PLANSCOPE_WITHOUT_WORK")]
    pub without_work: bool,
    /// Maximum number of waiting planning jobs.
    #[arg(long, env = "PLANSCOPE_QUEUE", default_value_t = 64)]
    pub queue: usize,
    /// Days during which a deleted run, trace, profile, scenario, dataset or sweep can be restored;
    /// then it is removed permanently with all content.
    #[arg(long, env = "PLANSCOPE_RETENTION_DAYS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(0..=3650))]
    pub retention_days: u32,
    /// The same for traces, because they are large. Default: the value of --retention-days.
    #[arg(long, env = "PLANSCOPE_TRACE_RETENTION_DAYS", value_parser = clap::value_parser!(u32).range(0..=3650))]
    pub trace_retention_days: Option<u32>,
    /// Maximum database size, for example 20GiB; new content beyond it is refused. Default: the
    /// free disk space.
    #[arg(long, env = "PLANSCOPE_QUOTA", value_parser = bytes)]
    pub quota: Option<u64>,
    /// Timeout for a log upload without data, in seconds; received data is stored.
    #[arg(long, env = "PLANSCOPE_LOG_IDLE_SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub log_idle_seconds: u64,
    /// Maximum trace size in MiB, compressed or not. The decompressed size may be four times as
    /// large, and at least 4 GiB.
    #[arg(long, env = "PLANSCOPE_TRACE_MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub trace_mib: u64,
    /// Maximum open connections per address, or concurrent requests per address behind a trusted
    /// proxy. Loopback addresses and direct connections from proxies are not limited.
    #[arg(long, env = "PLANSCOPE_CONNECTIONS_PER_ADDRESS", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub connections_per_address: u32,
    /// Address or network of a proxy with trusted X-Forwarded headers, for example 172.16.0.0/12;
    /// repeatable.
    #[arg(long = "trusted-proxy", env = "PLANSCOPE_TRUSTED_PROXIES", value_delimiter = ',')]
    pub trusted_proxies: Vec<String>,
    /// Memory limit for all request bodies in total, for example 1GiB; beyond it, requests fail
    /// with 503.
    #[arg(long, env = "PLANSCOPE_BODIES", default_value = "512MiB", value_parser = bytes)]
    pub bodies: u64,
}

/// Minimum token length in characters. Shorter tokens can be guessed.
const MIN_TOKEN: usize = 16;

/// Configuration errors that prevent startup.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The listen address is public and no token is set.
    #[error(
        "{0} can be reached from other machines: set PLANSCOPE_TOKEN, or pass --allow-public-without-token if \
         everyone who reaches it may read and change everything"
    )]
    Public(SocketAddr),
    /// The token is too short.
    #[error("the token is shorter than {MIN_TOKEN} characters; take one from `openssl rand -hex 16`")]
    ShortToken,
    /// The token contains characters that are not valid in a URL.
    #[error("the token holds characters other than letters, digits, - and _")]
    OddToken,
    /// A trusted proxy is not an address or network.
    #[error("--trusted-proxy: {0}")]
    Proxy(#[from] NotANetwork),
}

impl ServeArguments {
    /// Returns an error if the configuration exposes the server publicly by accident.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.trusted_proxies()?;
        match self.token() {
            Some(token) if token.len() < MIN_TOKEN => Err(ConfigError::ShortToken),
            Some(token) if !token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) => {
                Err(ConfigError::OddToken)
            }
            None if !self.address.ip().is_loopback() && !self.allow_public_without_token => {
                Err(ConfigError::Public(self.address))
            }
            _ => Ok(()),
        }
    }

    /// Returns the token. An empty string is treated as unset, because container files set unused
    /// variables to an empty value.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref().filter(|token| !token.is_empty())
    }

    /// Limits for traces. Uploads are buffered next to the database file, because that disk has
    /// space for large files.
    pub fn traces(&self) -> TraceLimits {
        let folder = self.database.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut limits = TraceLimits::in_folder(folder.map_or_else(|| PathBuf::from("."), PathBuf::from));
        limits.upload_mib = self.trace_mib;
        limits.reading.bytes = (self.trace_mib << 22).max(4 << 30);
        limits.retention =
            Duration::from_hours(24 * u64::from(self.trace_retention_days.unwrap_or(self.retention_days)));
        limits
    }

    /// Proxies with trusted X-Forwarded headers.
    pub fn trusted_proxies(&self) -> Result<Networks, NotANetwork> {
        Networks::parse(&self.trusted_proxies)
    }

    /// Memory and rate limits for request bodies.
    pub fn body_limits(&self) -> BodyLimits {
        BodyLimits { max_bytes: self.bodies, ..BodyLimits::default() }
    }

    /// Number of scenarios planned in parallel.
    pub fn workers(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.workers.unwrap_or_else(cores).max(1)
    }

    /// Worker threads per search.
    pub fn search_threads(&self) -> Threads {
        self.search_threads.map_or_else(Threads::all_cores, Threads::new)
    }

    /// Limits for planning.
    pub fn plan_limits(&self) -> Limits {
        Limits {
            workers: self.workers(),
            queue: self.queue,
            search_threads: self.search_threads(),
            plan_time: Duration::from_secs(self.plan_seconds),
            preview_time: Duration::from_secs(self.what_if_seconds),
            plan_memory: self.plan_memory,
            takes_work: !self.without_work,
        }
    }

    /// Limits for logs.
    pub fn live_limits(&self) -> LiveLimits {
        LiveLimits {
            idle: Duration::from_secs(self.log_idle_seconds),
            retention_days: self.retention_days,
            ..LiveLimits::default()
        }
    }
}

/// Arguments of `planscope health`.
#[derive(Debug, Clone, Args)]
pub struct HealthArguments {
    /// Listen address of the server.
    #[arg(long, env = "PLANSCOPE_ADDRESS", default_value = "127.0.0.1:8080")]
    pub address: SocketAddr,
    /// Token of the server.
    #[arg(long, env = "PLANSCOPE_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// File that contains the token.
    #[command(flatten)]
    pub token_file: TokenFile,
}

/// Arguments of `planscope backup`.
#[derive(Debug, Clone, Args)]
pub struct BackupArguments {
    /// File to create; an existing file is not overwritten.
    pub file: PathBuf,
    /// Database file.
    #[arg(long, env = "PLANSCOPE_DATABASE", default_value = "planscope.db")]
    pub database: PathBuf,
}

/// Arguments of `planscope restore`.
#[derive(Debug, Clone, Args)]
pub struct RestoreArguments {
    /// File created by `planscope backup`.
    pub file: PathBuf,
    /// Database file to create from the backup.
    #[arg(long, env = "PLANSCOPE_DATABASE", default_value = "planscope.db")]
    pub database: PathBuf,
    /// Replace an existing database. The old file is preserved next to the restored file.
    #[arg(long)]
    pub replace: bool,
}

/// Arguments of `planscope cancel-work`.
#[derive(Debug, Clone, Args)]
pub struct CancelWorkArguments {
    /// Database file.
    #[arg(long, env = "PLANSCOPE_DATABASE", default_value = "planscope.db")]
    pub database: PathBuf,
}

/// Arguments of `planscope verify`.
#[derive(Debug, Clone, Args)]
pub struct VerifyArguments {
    /// Database file, or a backup.
    #[arg(long, env = "PLANSCOPE_DATABASE", default_value = "planscope.db")]
    pub database: PathBuf,
}

/// Arguments of `planscope solve`.
#[derive(Debug, Clone, Args)]
pub struct SolveArguments {
    /// Problem file, or - for standard input; docs/api.md describes the problem kinds.
    pub problem: PathBuf,
    /// Worker threads per search. Default: number of cores. Results do not depend on the thread
    /// count unless the time limit ends the search.
    #[arg(long, env = "PLANSCOPE_SEARCH_THREADS")]
    pub search_threads: Option<usize>,
}

impl SolveArguments {
    /// Worker threads per search.
    pub fn search_threads(&self) -> Threads {
        self.search_threads.map_or_else(Threads::all_cores, Threads::new)
    }
}

/// Arguments of `planscope sweep`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = help::SWEEP)]
pub struct SweepArguments {
    /// Sweep file, or - for standard input.
    #[arg(value_name = "SWEEP.json")]
    pub sweep: PathBuf,
    /// Shard I of N of the points, I from 1: the points I-1, I-1+N, I-1+2N, ...
    #[arg(long, value_name = "I/N", default_value_t = Shard::FULL)]
    pub shard: Shard,
    /// Output file. Default: standard output.
    #[arg(long, value_name = "FILE.jsonl")]
    pub out: Option<PathBuf>,
    /// Continue after the lines already in the file; an incomplete last line is written again.
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Length file that the scenario references by content address; repeatable.
    #[arg(long = "dataset")]
    pub datasets: Vec<PathBuf>,
    /// Rule that maps media in these files to encoder items: llava-onevision, internvl, qwen-vl or
    /// qwen2-audio.
    #[arg(long, value_parser = preprocessing)]
    pub preprocessing: Option<Preprocessing>,
    /// Number of points planned in parallel. Default: number of cores. The lines do not depend on
    /// the thread count.
    #[arg(long)]
    pub threads: Option<usize>,
}

impl SweepArguments {
    /// Number of points planned in parallel.
    pub fn threads(&self) -> Threads {
        self.threads.map_or_else(Threads::all_cores, Threads::new)
    }
}

/// Arguments of `planscope import`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = help::IMPORT)]
pub struct ImportArguments {
    /// Files written by `planscope sweep`.
    #[arg(required = true, value_name = "FILE.jsonl")]
    pub files: Vec<PathBuf>,
    /// Database file for the result.
    #[arg(long, env = "PLANSCOPE_DATABASE", default_value = "planscope.db")]
    pub database: PathBuf,
    /// Send the result to a running server instead of a database file, for example
    /// http://127.0.0.1:8080.
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// Token of that server.
    #[arg(long, env = "PLANSCOPE_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// File that contains the token.
    #[command(flatten)]
    pub token_file: TokenFile,
}

fn preprocessing(text: &str) -> Result<Preprocessing, String> {
    Preprocessing::from_id(text)
        .ok_or_else(|| format!("there are {}", Preprocessing::ALL.map(Preprocessing::id).join(", ")))
}

/// Parses a byte count with an optional unit: 500MiB, 20 GB, or plain bytes.
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
    // A smaller quota could not store the tables with a single scenario.
    let bytes = number.checked_mul(factor).ok_or("that is more than any disk has")?;
    if bytes >= 1 << 20 { Ok(bytes) } else { Err("at least 1MiB is needed".to_owned()) }
}

/// Parses the memory limit for planning: a byte count with an optional unit, at least 64 MiB.
fn plan_memory(text: &str) -> Result<u64, String> {
    bytes(text).and_then(|bytes| if bytes >= 64 << 20 { Ok(bytes) } else { Err("at least 64MiB is needed".to_owned()) })
}

/// Arguments of `planscope estimate`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = help::estimate_columns())]
pub struct EstimateArguments {
    /// Configuration table, CSV with a header, or - for standard input.
    pub configurations: PathBuf,
    /// Output file. Default, or if -: standard output.
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Exit with status 1 if a row is rejected or infeasible, if a column is unknown, or if a column that states other values
    /// than its default has an effect in no row.
    #[arg(long)]
    pub strict: bool,
}

/// Arguments of `planscope calibrate`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = help::CALIBRATE)]
pub struct CalibrateArguments {
    /// Files with measured operators and collectives.
    #[arg(required = true, value_name = "PROFILE")]
    pub profiles: Vec<PathBuf>,
    /// Device preset as the initial cluster.
    #[arg(long, value_name = "PRESET", required_unless_present = "from", conflicts_with = "from")]
    pub device: Option<String>,
    /// Initial cluster from a file in the output format of this command, instead of a preset.
    #[arg(long, value_name = "CLUSTER.json")]
    pub from: Option<PathBuf>,
    /// Number of devices in collectives, for tables that do not specify it.
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..=65_536))]
    pub ranks: Option<u32>,
    /// Accept files measured on a device other than the fitted device.
    #[arg(long)]
    pub confirm_device: bool,
    /// Output file for the cluster. Default, or if -: standard output.
    #[arg(long, value_name = "CLUSTER.json")]
    pub out: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &[&str]) -> ServeArguments {
        let command_line = ["planscope", "serve"].into_iter().chain(line.iter().copied());
        match Cli::try_parse_from(command_line).unwrap().command {
            Command::Serve(arguments) => arguments,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn retention_applies_to_traces_unless_overridden() {
        for (line, all, traces) in [
            (&[][..], 30, 30),
            (&["--retention-days", "3"], 3, 3),
            (&["--retention-days", "3", "--trace-retention-days", "0"], 3, 0),
        ] {
            let arguments = arguments(line);
            let retention = (arguments.live_limits().retention_days, arguments.traces().retention.as_secs() / 86_400);
            assert_eq!(retention, (all, traces), "{line:?}");
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
            assert_eq!(arguments(line).body_limits().max_bytes, bytes);
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
    fn default_planning_limits_are_a_gibibyte_and_a_minute() {
        for (line, bytes, seconds) in
            [(&[][..], 1 << 30, 60), (&["--plan-memory", "3GiB", "--what-if-seconds", "5"], 3 << 30, 5)]
        {
            let limits = arguments(line).plan_limits();
            assert_eq!((limits.plan_memory, limits.preview_time.as_secs()), (bytes, seconds), "{line:?}");
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
