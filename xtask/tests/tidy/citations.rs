//! Equations, algorithms and mechanisms of the papers, and the files that implement them.
//!
//! docs/papers-index.md has the same rows, with the items in the files.

use crate::none;
use crate::source::sources;

/// Citation, name and file.
const ROWS: [(&str, &str, &str); 96] = [
    ("DFLOP Eq. 1", "expected makespan over the data", "crates/planners/src/planners/dflop/optimizer/durations.rs"),
    ("DFLOP Eq. 2", "tensor-parallel degrees within a node", "crates/planners/src/planners/dflop/optimizer/degrees.rs"),
    ("DFLOP Eq. 3", "device count of both modules", "crates/planners/src/planners/dflop/optimizer/degrees.rs"),
    ("DFLOP Eq. 4", "encoder memory per device", "crates/planners/src/planners/dflop/optimizer/durations.rs"),
    ("DFLOP Eq. 5", "backbone memory per device", "crates/planners/src/planners/dflop/optimizer/durations.rs"),
    ("DFLOP Eq. 4", "stored encoder microbatches in 1F1B", "crates/planners/src/planners/dflop/planner/order.rs"),
    ("DFLOP Eq. 6", "bottleneck of the buckets, C_max", "crates/planners/src/planners/dflop/partition.rs"),
    (
        "DFLOP Eq. 7",
        "measured against predicted throughput, as a ratio",
        "crates/planners/src/planners/dflop/correction.rs",
    ),
    ("DFLOP Alg. 1", "data-aware 3D parallelism optimizer", "crates/planners/src/planners/dflop/optimizer.rs"),
    ("DFLOP Alg. 1", "configurations, phase 1", "crates/planners/src/planners/dflop/optimizer/degrees.rs"),
    (
        "DFLOP Alg. 1",
        "evaluation, phase 2, by branch and bound",
        "crates/planners/src/planners/dflop/optimizer/search.rs",
    ),
    ("DFLOP Alg. 1", "durations of the mean item", "crates/planners/src/planners/dflop/optimizer/durations.rs"),
    (
        "DFLOP Alg. 1",
        "selection rule of the published program",
        "crates/planners/src/planners/dflop/optimizer/published.rs",
    ),
    ("DFLOP Sec. 3.2.1", "model profiler, tables", "crates/planners/src/planners/dflop/profile.rs"),
    ("DFLOP Sec. 3.2.1", "model profiler, measurement", "crates/planners/src/planners/dflop/planner/profile.rs"),
    ("DFLOP Sec. 3.2.2", "data profiler", "crates/core/src/workload/preprocessing.rs"),
    ("DFLOP Sec. 3.3.1", "makespan and stage durations", "crates/planners/src/planners/dflop/optimizer/durations.rs"),
    ("DFLOP Sec. 3.4.2", "online microbatch scheduler", "crates/planners/src/planners/dflop/partition.rs"),
    (
        "DFLOP Sec. 3.4.2",
        "longest processing time first (LPT)",
        "crates/planners/src/planners/dflop/partition/start.rs",
    ),
    ("DFLOP Sec. 3.4.2", "durations per item", "crates/planners/src/planners/dflop/optimizer.rs"),
    ("DFLOP Sec. 3.4.3", "adaptive correction", "crates/planners/src/planners/dflop/correction.rs"),
    ("DFLOP Sec. 3.4.3", "adaptive correction on a run log", "crates/studies/src/run_comparison/shapes.rs"),
    ("DFLOP Sec. 4", "inter-model communicator", "crates/planners/src/planners/dflop/communicator.rs"),
    (
        "DFLOP Sec. 5.3.7",
        "cost and benefit of adaptive correction",
        "crates/planners/src/planners/dflop/correction/simulation.rs",
    ),
    ("DHP Eq. 2", "makespan of the groups", "crates/planners/src/planners/dhp/allocation.rs"),
    ("DHP Eq. 3", "memory limit of a group", "crates/planners/src/planners/dhp/cost.rs"),
    ("DHP Eq. 5", "each sequence in one group", "crates/planners/src/planners/dhp/atomic.rs"),
    ("DHP Eq. 6", "rank budget", "crates/planners/src/planners/dhp/allocation.rs"),
    ("DHP Eq. 7", "memory of a group", "crates/planners/src/planners/dhp/cost.rs"),
    ("DHP Eq. 8", "computation time and mask factor", "crates/planners/src/planners/dhp/cost.rs"),
    ("DHP Eq. 9", "communication time", "crates/planners/src/planners/dhp/cost.rs"),
    ("DHP Eq. 10", "total time with overlap", "crates/planners/src/planners/dhp/cost.rs"),
    ("DHP Eq. 11", "recurrence over groups and ranks", "crates/planners/src/planners/dhp/allocation.rs"),
    ("DHP Alg. 1", "2D dynamic programming, solved greedily", "crates/planners/src/planners/dhp/allocation.rs"),
    ("DHP Sec. 4.2", "cost estimation", "crates/planners/src/planners/dhp/cost.rs"),
    ("DHP Sec. 4.3", "best-fit decreasing (BFD) into atomic groups", "crates/planners/src/planners/dhp/atomic.rs"),
    ("DHP Sec. 4.3", "minimum degree, d_min", "crates/planners/src/planners/dhp/degrees.rs"),
    ("DHP Sec. 4.3", "two-stage algorithm", "crates/planners/src/planners/dhp/batch.rs"),
    ("DHP Sec. 5", "microbatch planner and workflow", "crates/planners/src/planners/dhp/batch.rs"),
    ("DHP Sec. 5", "pool of communication groups", "crates/planners/src/planners/dhp/pool.rs"),
    ("DHP Sec. 5", "profiler, fit of the coefficients", "crates/planners/src/planners/dhp/fit.rs"),
    ("DHP Sec. 5", "profiler, timings of a rank", "crates/planners/src/planners/dhp/planner/profile.rs"),
    ("Hydraulis Eq. 1", "packing within a pipeline", "crates/planners/src/planners/hydraulis/packing.rs"),
    ("Hydraulis Eq. 2", "lower bound of a pipeline", "crates/planners/src/planners/hydraulis/dispatch.rs"),
    ("Hydraulis Eq. 3", "dispatching across pipelines", "crates/planners/src/planners/hydraulis/dispatch.rs"),
    (
        "Hydraulis Eq. 3",
        "dispatching in ablation step (a)",
        "crates/planners/src/planners/hydraulis/planner/dealing.rs",
    ),
    (
        "Hydraulis Eq. 4",
        "dynamic program of the strategy proposal",
        "crates/planners/src/planners/hydraulis/proposal.rs",
    ),
    ("Hydraulis Alg. 1", "greedy dispatching", "crates/planners/src/planners/hydraulis/dispatch.rs"),
    ("Hydraulis Sec. 4", "strategy selection per batch", "crates/planners/src/planners/hydraulis/assignment.rs"),
    ("Hydraulis Sec. 5.1", "heterogeneous strategies of parallel schemes", "crates/planners/src/planners/hydraulis.rs"),
    (
        "Hydraulis Sec. 5.2",
        "optimization-propagation disaggregation, pull and push",
        "crates/planners/src/planners/hydraulis/disaggregation.rs",
    ),
    ("Hydraulis Sec. 5.2", "disaggregated optimizer states", "crates/cost/src/cost/table/disaggregated.rs"),
    (
        "Hydraulis Sec. 5.2",
        "exchange of an iteration",
        "crates/planners/src/planners/hydraulis/pipeline_costs/exchange.rs",
    ),
    ("Hydraulis Sec. 6", "two-stage sequence assignment", "crates/planners/src/planners/hydraulis/assignment.rs"),
    ("Hydraulis Sec. 6.1", "cost model of a scheme", "crates/planners/src/planners/hydraulis/scheme.rs"),
    ("Hydraulis Sec. 7", "strategy proposal", "crates/planners/src/planners/hydraulis/proposal.rs"),
    ("Hydraulis Sec. 7", "rounding after continuous relaxation", "crates/planners/src/planners/hydraulis/rounding.rs"),
    ("Hydraulis App. B.1", "communication bound", "crates/planners/src/planners/hydraulis/disaggregation.rs"),
    (
        "Hydraulis App. B.2",
        "overlap of communication and computation",
        "crates/planners/src/planners/hydraulis/disaggregation.rs",
    ),
    ("Hydraulis App. C.1", "memory model, MaxLen", "crates/planners/src/planners/hydraulis/scheme.rs"),
    ("Hydraulis App. C.2", "latency model, T(l, P)", "crates/core/src/length_fit.rs"),
    ("Hydraulis App. D", "pruned number of microbatches", "crates/planners/src/planners/hydraulis/packing.rs"),
    ("Hydraulis App. D", "UtilLen", "crates/planners/src/planners/hydraulis/scheme.rs"),
    ("Hydraulis App. G", "HotSPa intervals", "crates/planners/src/planners/hydraulis/planner/baselines.rs"),
    (
        "PipeWeaver Alg. 1",
        "Monte-Carlo tree search (MCTS) ranking",
        "crates/planners/src/planners/pipeweaver/ranking/monte_carlo.rs",
    ),
    (
        "PipeWeaver Alg. 1",
        "node selection by upper confidence bound (UCB)",
        "crates/planners/src/planners/pipeweaver/ranking/tree.rs",
    ),
    ("PipeWeaver Alg. 1", "random rollouts", "crates/planners/src/planners/pipeweaver/ranking/trial.rs"),
    ("PipeWeaver Sec. 3.1", "scheduling problem (ILP), exact by branch and bound", "crates/solve/src/exact.rs"),
    ("PipeWeaver Sec. 3.3", "dynamic interleaved pipeline", "crates/planners/src/planners/pipeweaver.rs"),
    ("PipeWeaver Sec. 4.1", "SEMU, graphs of operators and tensors", "crates/cost/src/cost/graph.rs"),
    ("PipeWeaver Sec. 4.2", "SEMU, checkpoint and restore", "crates/pipeline/src/simulate/resume.rs"),
    ("PipeWeaver Sec. 5", "modality-aware partitioner", "crates/planners/src/planners/pipeweaver/partitioner.rs"),
    ("PipeWeaver Sec. 5", "sub-microbatch size, B_i", "crates/planners/src/planners/pipeweaver/partitioner.rs"),
    ("PipeWeaver Sec. 5", "segments per module, K_i", "crates/planners/src/planners/pipeweaver/partitioner.rs"),
    ("PipeWeaver Sec. 5", "sub-microbatches, M_i", "crates/cost/src/cost/load/instances.rs"),
    ("PipeWeaver Sec. 5", "split of microbatches by module", "crates/planners/src/planners/replica.rs"),
    ("PipeWeaver Sec. 5", "layers of a module across ranks", "crates/cost/src/cost/partition.rs"),
    ("PipeWeaver Sec. 5", "stage flows", "crates/core/src/stage_graph.rs"),
    ("PipeWeaver Sec. 6.1", "modality-module-level ranking", "crates/planners/src/planners/pipeweaver/ranking.rs"),
    ("PipeWeaver Sec. 6.1", "search space of the ranking", "crates/planners/src/planners/pipeweaver/ranking/space.rs"),
    ("PipeWeaver Sec. 6.2", "dual-queue interleaving", "crates/pipeline/src/schedule/dual_queue.rs"),
    ("PipeWeaver Sec. 6.2", "iterative scheduling", "crates/pipeline/src/schedule/dual_queue/walk.rs"),
    ("PipeWeaver Sec. 6.2", "forward and backward queues", "crates/pipeline/src/schedule/dual_queue/queue.rs"),
    (
        "PipeWeaver Sec. 6.3",
        "model layer tuning, ILP",
        "crates/planners/src/planners/pipeweaver/layer_tuning/problem.rs",
    ),
    (
        "PipeWeaver Sec. 6.3",
        "model layer tuning, solver and 5 % gap",
        "crates/planners/src/planners/pipeweaver/layer_tuning/solve.rs",
    ),
    (
        "PipeWeaver Sec. 6.3",
        "candidate generation (multiple-choice knapsack)",
        "crates/planners/src/planners/pipeweaver/layer_tuning/candidates.rs",
    ),
    ("PipeWeaver Sec. 6.3", "greedy start", "crates/planners/src/planners/pipeweaver/layer_tuning/greedy.rs"),
    (
        "PipeWeaver Sec. 6.3",
        "per-layer memory tuning of a replica",
        "crates/planners/src/planners/pipeweaver/tuning.rs",
    ),
    ("PipeWeaver Sec. 6.3", "memory strategies per layer", "crates/cost/src/cost/strategy.rs"),
    ("PipeWeaver Sec. 7.3", "execution plan", "crates/pipeline/src/execution_plan.rs"),
    ("arXiv 2605.27678", "separate layouts per module", "crates/planners/src/planners/module_layouts.rs"),
    ("arXiv 2605.27678", "colocated and non-colocated modes", "crates/planners/src/planners/module_layouts/space.rs"),
    ("arXiv 2605.27678", "schedules of both placement modes", "crates/planners/src/planners/module_layouts/fill.rs"),
    ("arXiv 2605.27678", "costs of separate layouts", "crates/planners/src/planners/module_layouts/module_costs.rs"),
    ("arXiv 2605.27678", "boundary communicators", "crates/cost/src/cost/boundary.rs"),
    ("arXiv 2605.27678", "sweep of layouts", "crates/studies/src/analysis/layouts.rs"),
];

/// Returns whether a text has a citation. `Eq. 1` is not in `Eq. 11`, `Sec. 6` is not in `Sec. 6.3`.
fn cites(text: &str, citation: &str) -> bool {
    text.match_indices(citation).any(|(at, _)| {
        let behind = &text[at + citation.len()..];
        !behind.strip_prefix('.').unwrap_or(behind).starts_with(|sign: char| sign.is_ascii_digit())
    })
}

#[test]
fn every_equation_is_cited_where_it_is_implemented() {
    let sources = sources(".rs");
    let mut offences = Vec::new();
    for (citation, name, file) in ROWS {
        let Some(source) = sources.iter().find(|source| source.path == file) else {
            offences.push(format!("{file} does not exist: {citation}, {name}"));
            continue;
        };
        let mut comments = source.text.lines().map(str::trim_start).filter(|line| line.starts_with("//"));
        if !comments.any(|line| cites(line, citation)) {
            offences.push(format!("{file}: {citation}, {name}"));
        }
    }
    none(&offences, "citations that no comment of their file has on one line");
}

#[test]
fn a_citation_ends_with_its_number() {
    assert!(cites("as in DHP Eq. 1.", "DHP Eq. 1"));
    assert!(cites("(DHP Eq. 11, DHP Eq. 1)", "DHP Eq. 1"));
    assert!(!cites("DHP Eq. 11", "DHP Eq. 1"));
    assert!(!cites("PipeWeaver Sec. 6.3", "PipeWeaver Sec. 6"));
}
