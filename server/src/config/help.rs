//! Long help texts of commands.

use std::fmt::Write as _;

use ingest::configurations::{self, ANSWERS};
use planner::schedule::ScheduleKind;

/// Text after the flags in `planscope lengths --help`.
pub(super) const LENGTHS: &str = "\
Reads Parquet, Arrow, CSV, JSONL (also packed by gzip or zstd), and all other length files that the page reads. Several files are \
shards of one dataset and have the same columns. Files have any size: memory holds one row group or one batch.

  planscope lengths train-*.parquet --column input_ids --out lengths.json
  planscope lengths data.jsonl.zst --tokenizer tokenizer.json --server http://127.0.0.1:8080 --name web

Writes the histogram of the lengths (JSON, \"hist/1\") to --out, to a server, or to standard output, and a report of what was read to \
standard error. A dataset with images is written row by row.

Exits with 1 if a file is refused. Then nothing is written or uploaded.";

/// Text after the flags in `planscope trace --help`.
pub(super) const TRACE: &str = "\
Without --ranks and --compare, every device of every file is summarised by kernel, phase and step.

  planscope trace rank0.json.gz
  planscope trace --compare before.json.gz after.json.gz
  planscope trace --ranks rank*.json.gz
  planscope trace --compare before.sqlite after.sqlite --csv=phases > phases.csv

--ranks takes the rank from the file, otherwise from a file name such as rank-3.json, otherwise the position. A collective ends \
on all its ranks at the same time, so the rank with the shortest kernel arrives last, and the others wait for it. Collectives are \
matched by process group and sequence number, otherwise by order in the step.

Exits with 1 if a file is refused, or if the traces have nothing in common.";

/// Text after the flags in `planscope measure --help`.
pub(super) const MEASURE: &str = "\
Needs Python 3.9 and PyTorch 2.4 or newer on a machine with the device, nothing else. Sections: collectives, products, attention, \
validation, sustained, fp8, experts, optimizer, pointwise, memory, contention, launch, compiled. Each section has a share of the minutes \
and measures its most informative cases first.

  planscope measure --minutes 10 --out profile.json
  planscope measure --devices 8 --sections collectives --upload http://127.0.0.1:8080
  planscope measure --script > measure.py          # for a machine without Planscope
  planscope calibrate profile.json --device h100 --out h100.json

Exits with 1 if Python, PyTorch or the device is missing.";

/// Text after the flags in `planscope sweep --help`.
pub(super) const SWEEP: &str = "\
A sweep is a scenario and the fields that change:

  {\"schema\": \"sweep/1\", \"scenario\": {..}, \"axes\": [
     {\"pointer\": \"/cluster/nodes\", \"values\": [1, 2, 4]},
     {\"pointer\": \"/workload/context_length\", \"from\": 4096, \"to\": 65536, \"steps\": 5, \"scale\": \"log2\"}],
   \"planners\": [\"1f1b\", \"pipeweaver\"], \"seeds\": [1, 2]}

The first line of the output identifies the sweep. Then each point is a line, in the order of the numbers. If no planner has a plan \
for a point, its line contains the reason. The lines do not depend on the number of shards or machines. planscope import merges \
the files.

  planscope sweep sweep.json --shard 3/16 --out points-3.jsonl --resume

Exits with 0 if all lines are written, 1 if they cannot be written, 2 if the sweep is not valid, and 3 if points fail because of an \
error in Planscope.";

/// Text after the flags in `planscope calibrate --help`.
pub(super) const CALIBRATE: &str = "\
A profile is recognised by its content: Vidur compute and network profiles, vTrain all-reduce tables, SimuMax system \
descriptions, Galvatron hardware profiles, output of planscope measure, nccl-tests and all_reduce_bench.py, tables of aiconfigurator (Parquet \
or CSV), and Planscope's own CSV of kernels (kernel, time_us, and the shape: m, k, n; tokens, squared, heads, qk_dim, causal; \
class, bytes; operation, bytes, ranks). Matrix products, attention, elementwise kernels and collectives of one node are fitted \
separately. A coefficient with too few timings does not change, and a fit never increases the mean \
residual.\n\n\
A file of another device than the fitted one is refused, unless --confirm-device is given.\n\n\
To fit a device to several sources, fit in steps: the cluster of one step is --from of the next.\n\n\
The output is a complete cluster, for \"cluster\" in a scenario. If a file cannot be used, or no part can be fitted, nothing \
is written and the exit code is 1.";

/// Text after the flags in `planscope import --help`.
pub(super) const IMPORT: &str = "\
Each file identifies its sweep, so files of one sweep can be given in any order and more than once. Points that exist do not \
change. A line of another sweep or another engine version is refused with its position. The lines before it are stored.

  planscope import points-*.jsonl
  planscope import points-*.jsonl --server http://127.0.0.1:8080

A database that a server uses is refused: send the files to the server.

Exits with 0 if all points exist, 3 if some are missing (they are listed), and 1 if a file is refused.";

/// Describes the kinds of schedules for the long help.
pub(crate) fn schedule_kinds() -> String {
    let mut text =
        String::from("Kinds of schedule, with bubble and memory (in activations of a stage) for equal times:\n");
    for kind in ScheduleKind::ALL {
        let form = kind.closed_form();
        let (bubble, memory) = form.map_or(("depends on the times", ""), |form| (form.bubble, form.memory));
        let _ = writeln!(text, "  {:<24} {:<34} {memory}", kind.id(), bubble);
    }
    text.push_str(
        "\nF, I, W: times of forward, input and weight gradient of one stage, B = I + W, F&B an overlapped pair.",
    );
    text
}

/// Describes the columns for the long help.
pub(super) fn estimate_columns() -> String {
    format!(
        "Columns of the table, in any order; an empty cell or a missing column means the default:\n{}\n\
         Other columns are copied to the output. The output adds these columns:\n  {}\n\n\
         A contradictory row has feasible = false and the reason. A row that exceeds the memory of the devices also has its \
         numbers.",
        configurations::describe_columns(),
        ANSWERS.join(", "),
    )
}
