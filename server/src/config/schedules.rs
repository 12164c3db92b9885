//! Flags of `planscope schedule`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use planner::schedule::ScheduleKind;

/// Arguments of `planscope schedule`: schedule kinds, and the times of actions in any common unit.
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_long_help = super::help::schedule_kinds())]
pub struct ScheduleArguments {
    /// Subcommand.
    #[command(subcommand)]
    pub other: Option<ScheduleCommand>,
    /// Schedule kinds: gpipe, looped_bfs, 1f1b, interleaved (vpp), interleaved_zero_bubble (zb1p),
    /// zb_h1, zb_h2, zbv, v_half, v_min, dual_pipe, dual_pipe_v, wait_free_cyclic.
    #[arg(value_name = "KIND", required_unless_present = "import", value_parser = schedule_kind)]
    pub kinds: Vec<ScheduleKind>,
    /// Pipeline ranks, p. Default with tables only: from the first table.
    #[arg(long, required_unless_present = "import")]
    pub ranks: Option<u32>,
    /// Microbatches, m. Default with tables only: from the first table.
    #[arg(long, required_unless_present = "import")]
    pub microbatches: Option<u32>,
    /// Model chunks per rank, v, for schedules with a variable number; the default depends on the
    /// schedule.
    #[arg(long)]
    pub chunks: Option<u32>,
    /// Microbatches per group in interleaved schedules. Default: number of ranks.
    #[arg(long)]
    pub group: Option<u32>,
    /// Forward time per microbatch and stage.
    #[arg(long, required_unless_present = "times", allow_negative_numbers = true)]
    pub forward: Option<f64>,
    /// Full backward time; half of it is the input gradient unless specified.
    #[arg(long, allow_negative_numbers = true)]
    pub backward: Option<f64>,
    /// Input gradient time; replaces --backward together with --weight-grad.
    #[arg(long, allow_negative_numbers = true)]
    pub input_grad: Option<f64>,
    /// Weight gradient time; replaces --backward together with --input-grad.
    #[arg(long, allow_negative_numbers = true)]
    pub weight_grad: Option<f64>,
    /// Send time between ranks.
    #[arg(long, allow_negative_numbers = true)]
    pub communication: Option<f64>,
    /// Time of an overlapped forward and full backward (DualPipe). Default: the sum of both.
    #[arg(long, allow_negative_numbers = true)]
    pub overlapped: Option<f64>,
    /// Times are per rank and split across its chunks, so all schedules have the same work.
    #[arg(long)]
    pub per_rank: bool,
    /// File with the times, JSON in the API format: {"forward": 1, "input_grad": [..],
    /// "weight_grad": [[..], ..]}.
    #[arg(long, value_name = "FILE.json", conflicts_with_all = ["forward", "backward", "input_grad", "weight_grad"])]
    pub times: Option<PathBuf>,
    /// Limit on stored activations per rank; ZB-H1, ZB-H2 and the dynamic schedule respect it.
    #[arg(long, alias = "memory", allow_negative_numbers = true)]
    pub memory_cap: Option<f64>,
    /// Table in the torch action grammar to run alongside the schedules; repeatable.
    #[arg(long, value_name = "FILE.csv", num_args = 1..)]
    pub import: Vec<PathBuf>,
    /// Output format.
    #[command(flatten)]
    pub output: ScheduleOutput,
}

/// Output format. Default: an aligned table.
#[derive(Debug, Clone, Copy, Args)]
#[group(multiple = false)]
pub struct ScheduleOutput {
    /// Print the single schedule as CSV in the torch action grammar.
    #[arg(long)]
    pub csv: bool,
    /// Print everything as JSON, in the API format.
    #[arg(long)]
    pub json: bool,
    /// Draw the actions per rank below the table.
    #[arg(long)]
    pub draw: bool,
}

/// Subcommands of `planscope schedule`.
#[derive(Debug, Clone, Subcommand)]
pub enum ScheduleCommand {
    /// Check tables in the torch action grammar; exits with 1 on any error.
    Check {
        /// Tables, or - for standard input.
        #[arg(required = true, value_name = "FILE.csv")]
        tables: Vec<PathBuf>,
    },
}

/// Parses a schedule kind by identifier, ignoring case and with hyphens allowed, or by short name.
fn schedule_kind(text: &str) -> Result<ScheduleKind, String> {
    let id = text.to_ascii_lowercase().replace('-', "_");
    let id = match id.as_str() {
        "vpp" => "interleaved",
        "zb1p" => "interleaved_zero_bubble",
        "dualpipe" => "dual_pipe",
        "dualpipev" | "dualpipe_v" => "dual_pipe_v",
        other => other,
    };
    ScheduleKind::from_id(id).ok_or_else(|| {
        let known: Vec<&str> = ScheduleKind::ALL.iter().map(|kind| kind.id()).collect();
        format!("there are {}, and check", known.join(", "))
    })
}
