//! Flags and environment: the only place that reads them.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

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
    /// Build one pipeline schedule by itself, with no model.
    Schedule(ScheduleArguments),
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
    /// Folder of the built pages.
    #[arg(long, env = "PLANSCOPE_WEB", default_value = "target/web")]
    pub web: PathBuf,
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
    /// Planning jobs that may wait.
    #[arg(long, env = "PLANSCOPE_QUEUE", default_value_t = 64)]
    pub queue: usize,
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

    /// Scenarios planned at once.
    pub fn workers(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.workers.unwrap_or_else(cores).max(1)
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

/// What to plan.
#[derive(Debug, Clone, Args)]
pub struct PlanArguments {
    /// Scenario file, or - for standard input.
    pub scenario: PathBuf,
    /// File of lengths that the scenario names by its content address; may be given several times.
    #[arg(long = "dataset")]
    pub datasets: Vec<PathBuf>,
    /// Folder to write the timelines to, as JSON, one file per planner and iteration.
    #[arg(long)]
    pub timelines: Option<PathBuf>,
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
    /// File to write the cluster to; standard output where absent, or -.
    #[arg(long, value_name = "CLUSTER.json")]
    pub out: Option<PathBuf>,
}

/// Which schedule to build, and the times of its actions in any one unit.
#[derive(Debug, Clone, Args)]
pub struct ScheduleArguments {
    /// Kind of schedule.
    #[arg(ignore_case = true)]
    pub kind: ScheduleKind,
    /// Pipeline ranks, p.
    #[arg(long, value_parser = in_range::<1, 4096>)]
    pub ranks: usize,
    /// Microbatches, m.
    #[arg(long, value_parser = in_range::<1, 1_000_000>)]
    pub microbatches: usize,
    /// Model chunks of each rank, v; default 2 for interleaved, else 1.
    #[arg(long, value_parser = in_range::<1, 64>)]
    pub chunks: Option<usize>,
    /// Microbatches per group of the interleaved schedule; default: the ranks.
    #[arg(long, value_parser = in_range::<1, 1_000_000>)]
    pub group: Option<usize>,
    /// Time of a forward of one microbatch on one stage.
    #[arg(long, allow_negative_numbers = true)]
    pub forward: f64,
    /// Time of a full backward.
    #[arg(long, allow_negative_numbers = true)]
    pub backward: Option<f64>,
    /// Time of the input gradient; with --weight-grad in place of --backward.
    #[arg(long, allow_negative_numbers = true)]
    pub input_grad: Option<f64>,
    /// Time of the weight gradient; with --input-grad in place of --backward.
    #[arg(long, allow_negative_numbers = true)]
    pub weight_grad: Option<f64>,
    /// Time of a send between ranks.
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    pub communication: f64,
    /// Activations that a rank may hold at once, for the dynamic schedule.
    #[arg(long)]
    pub memory: Option<u64>,
    /// Print the orders as CSV in the torch action grammar.
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Print orders, makespan, spans and memory as JSON (the default).
    #[arg(long)]
    pub json: bool,
}

/// A kind of schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ScheduleKind {
    /// All forwards, then all backwards.
    Gpipe,
    /// One forward, one backward.
    #[value(name = "1f1b")]
    OneFOneB,
    /// 1F1B over several model chunks (VPP).
    #[value(alias = "vpp")]
    Interleaved,
    /// Whatever is ready, dynamic.
    #[value(name = "wait_free_cyclic", alias = "wait-free-cyclic")]
    WaitFreeCyclic,
}

impl ScheduleKind {
    /// Stable identifier, as in scenarios.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Gpipe => "gpipe",
            Self::OneFOneB => "1f1b",
            Self::Interleaved => "interleaved",
            Self::WaitFreeCyclic => "wait_free_cyclic",
        }
    }
}

/// Reads a whole number of a range.
fn in_range<const MIN: usize, const MAX: usize>(text: &str) -> Result<usize, String> {
    let value: usize = text.parse().map_err(|error| format!("{error}"))?;
    if (MIN..=MAX).contains(&value) { Ok(value) } else { Err(format!("{value} is not in {MIN}..={MAX}")) }
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
