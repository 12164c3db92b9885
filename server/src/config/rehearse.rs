//! Arguments of `planscope rehearse`.

use std::path::PathBuf;

use clap::Args;
use planner::data_aware::Preprocessing;
use planner::scenario::PlannerKind;

use super::{TokenFile, preprocessing};
use crate::workers::Threads;

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
    /// File of the token.
    #[command(flatten)]
    pub token_file: TokenFile,
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

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if (0.01..=86_400.0).contains(&seconds) { Ok(seconds) } else { Err("between 0.01 and 86400".to_owned()) }
}
