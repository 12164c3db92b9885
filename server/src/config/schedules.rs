//! Flags of `planscope schedule`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use planner::schedule::ScheduleKind;

/// Which schedules to make, and the times of their actions in any one unit.
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_long_help = super::help::schedule_kinds())]
pub struct ScheduleArguments {
    /// Something else than making schedules.
    #[command(subcommand)]
    pub other: Option<ScheduleCommand>,
    /// Kinds of schedule: gpipe, looped_bfs, 1f1b, interleaved (vpp), interleaved_zero_bubble (zb1p), zb_h1, zb_h2, zbv,
    /// v_half, v_min, dual_pipe, dual_pipe_v, wait_free_cyclic.
    #[arg(value_name = "KIND", required_unless_present = "import", value_parser = schedule_kind)]
    pub kinds: Vec<ScheduleKind>,
    /// Pipeline ranks, p; with tables only: those of the first.
    #[arg(long, required_unless_present = "import")]
    pub ranks: Option<u32>,
    /// Microbatches, m; with tables only: those of the first.
    #[arg(long, required_unless_present = "import")]
    pub microbatches: Option<u32>,
    /// Model chunks of each rank, v, in the schedules that leave it open; each has its own default.
    #[arg(long)]
    pub chunks: Option<u32>,
    /// Microbatches per group of the interleaved schedules; default: the ranks.
    #[arg(long)]
    pub group: Option<u32>,
    /// Time of a forward of one microbatch on one stage.
    #[arg(long, required_unless_present = "times", allow_negative_numbers = true)]
    pub forward: Option<f64>,
    /// Time of a full backward; half of it is the input gradient's where nothing else is said.
    #[arg(long, allow_negative_numbers = true)]
    pub backward: Option<f64>,
    /// Time of the input gradient; with --weight-grad in place of --backward.
    #[arg(long, allow_negative_numbers = true)]
    pub input_grad: Option<f64>,
    /// Time of the weight gradient; with --input-grad in place of --backward.
    #[arg(long, allow_negative_numbers = true)]
    pub weight_grad: Option<f64>,
    /// Time of a send between ranks.
    #[arg(long, allow_negative_numbers = true)]
    pub communication: Option<f64>,
    /// Time of a forward and a full backward that run overlapped (DualPipe); default: the sum of both.
    #[arg(long, allow_negative_numbers = true)]
    pub overlapped: Option<f64>,
    /// Times are those of a rank, shared by its chunks, so that every schedule has the same work.
    #[arg(long)]
    pub per_rank: bool,
    /// File with the times, JSON as in the API: {"forward": 1, "input_grad": [..], "weight_grad": [[..], ..]}.
    #[arg(long, value_name = "FILE.json", conflicts_with_all = ["forward", "backward", "input_grad", "weight_grad"])]
    pub times: Option<PathBuf>,
    /// Activations that a rank may hold at once; ZB-H1, ZB-H2 and the dynamic schedule are made to stay within it.
    #[arg(long, alias = "memory", allow_negative_numbers = true)]
    pub memory_cap: Option<f64>,
    /// Table in the torch action grammar to run beside the schedules; may be given several times.
    #[arg(long, value_name = "FILE.csv", num_args = 1..)]
    pub import: Vec<PathBuf>,
    /// How to print them.
    #[command(flatten)]
    pub output: ScheduleOutput,
}

/// How to print schedules; an aligned table where nothing is said.
#[derive(Debug, Clone, Copy, Args)]
#[group(multiple = false)]
pub struct ScheduleOutput {
    /// Print the one schedule as CSV in the torch action grammar.
    #[arg(long)]
    pub csv: bool,
    /// Print everything as JSON, as the API answers it.
    #[arg(long)]
    pub json: bool,
    /// Draw below the table what each rank runs.
    #[arg(long)]
    pub draw: bool,
}

/// What else to do with schedules.
#[derive(Debug, Clone, Subcommand)]
pub enum ScheduleCommand {
    /// Check tables in the torch action grammar; exits with 1 where one is wrong.
    Check {
        /// Tables, or - for standard input.
        #[arg(required = true, value_name = "FILE.csv")]
        tables: Vec<PathBuf>,
    },
}

/// Reads a kind of schedule by its identifier, in any case and with hyphens too, or by its usual short name.
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
