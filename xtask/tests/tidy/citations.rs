//! Equations, algorithms and mechanisms of the papers, and the files that implement them.
//!
//! docs/papers-index.md has the same rows, with the items in the files.

use crate::none;
use crate::source::sources;

/// Citation, name and file.
const ROWS: [(&str, &str, &str); 96] = [
    ("DFLOP Eq. 1", "expected makespan over the data", "planner/src/planners/dflop/optimizer/durations.rs"),
    ("DFLOP Eq. 2", "tensor-parallel degrees within a node", "planner/src/planners/dflop/optimizer/degrees.rs"),
    ("DFLOP Eq. 3", "device count of both modules", "planner/src/planners/dflop/optimizer/degrees.rs"),
    ("DFLOP Eq. 4", "encoder memory per device", "planner/src/planners/dflop/optimizer/durations.rs"),
    ("DFLOP Eq. 5", "backbone memory per device", "planner/src/planners/dflop/optimizer/durations.rs"),
    ("DFLOP Eq. 4", "stored encoder microbatches in 1F1B", "planner/src/planners/dflop/planner/order.rs"),
    ("DFLOP Eq. 6", "bottleneck of the buckets, C_max", "planner/src/planners/dflop/partition.rs"),
    ("DFLOP Eq. 7", "measured against predicted throughput, as a ratio", "planner/src/planners/dflop/correction.rs"),
    ("DFLOP Alg. 1", "data-aware 3D parallelism optimizer", "planner/src/planners/dflop/optimizer.rs"),
    ("DFLOP Alg. 1", "configurations, phase 1", "planner/src/planners/dflop/optimizer/degrees.rs"),
    ("DFLOP Alg. 1", "evaluation, phase 2, by branch and bound", "planner/src/planners/dflop/optimizer/search.rs"),
    ("DFLOP Alg. 1", "durations of the mean item", "planner/src/planners/dflop/optimizer/durations.rs"),
    ("DFLOP Alg. 1", "selection rule of the published program", "planner/src/planners/dflop/optimizer/published.rs"),
    ("DFLOP Sec. 3.2.1", "model profiler, tables", "planner/src/planners/dflop/profile.rs"),
    ("DFLOP Sec. 3.2.1", "model profiler, measurement", "planner/src/planners/dflop/planner/profile.rs"),
    ("DFLOP Sec. 3.2.2", "data profiler", "planner/src/workload/preprocessing.rs"),
    ("DFLOP Sec. 3.3.1", "makespan and stage durations", "planner/src/planners/dflop/optimizer/durations.rs"),
    ("DFLOP Sec. 3.4.2", "online microbatch scheduler", "planner/src/planners/dflop/partition.rs"),
    ("DFLOP Sec. 3.4.2", "longest processing time first (LPT)", "planner/src/planners/dflop/partition/start.rs"),
    ("DFLOP Sec. 3.4.2", "durations per item", "planner/src/planners/dflop/optimizer.rs"),
    ("DFLOP Sec. 3.4.3", "adaptive correction", "planner/src/planners/dflop/correction.rs"),
    ("DFLOP Sec. 3.4.3", "adaptive correction on a run log", "planner/src/run_comparison/shapes.rs"),
    ("DFLOP Sec. 4", "inter-model communicator", "planner/src/planners/dflop/communicator.rs"),
    (
        "DFLOP Sec. 5.3.7",
        "cost and benefit of adaptive correction",
        "planner/src/planners/dflop/correction/simulation.rs",
    ),
    ("DHP Eq. 2", "makespan of the groups", "planner/src/planners/dhp/allocation.rs"),
    ("DHP Eq. 3", "memory limit of a group", "planner/src/planners/dhp/cost.rs"),
    ("DHP Eq. 5", "each sequence in one group", "planner/src/planners/dhp/atomic.rs"),
    ("DHP Eq. 6", "rank budget", "planner/src/planners/dhp/allocation.rs"),
    ("DHP Eq. 7", "memory of a group", "planner/src/planners/dhp/cost.rs"),
    ("DHP Eq. 8", "computation time and mask factor", "planner/src/planners/dhp/cost.rs"),
    ("DHP Eq. 9", "communication time", "planner/src/planners/dhp/cost.rs"),
    ("DHP Eq. 10", "total time with overlap", "planner/src/planners/dhp/cost.rs"),
    ("DHP Eq. 11", "recurrence over groups and ranks", "planner/src/planners/dhp/allocation.rs"),
    ("DHP Alg. 1", "2D dynamic programming, solved greedily", "planner/src/planners/dhp/allocation.rs"),
    ("DHP Sec. 4.2", "cost estimation", "planner/src/planners/dhp/cost.rs"),
    ("DHP Sec. 4.3", "best-fit decreasing (BFD) into atomic groups", "planner/src/planners/dhp/atomic.rs"),
    ("DHP Sec. 4.3", "minimum degree, d_min", "planner/src/planners/dhp/degrees.rs"),
    ("DHP Sec. 4.3", "two-stage algorithm", "planner/src/planners/dhp/batch.rs"),
    ("DHP Sec. 5", "microbatch planner and workflow", "planner/src/planners/dhp/batch.rs"),
    ("DHP Sec. 5", "pool of communication groups", "planner/src/planners/dhp/pool.rs"),
    ("DHP Sec. 5", "profiler, fit of the coefficients", "planner/src/planners/dhp/fit.rs"),
    ("DHP Sec. 5", "profiler, timings of a rank", "planner/src/planners/dhp/planner/profile.rs"),
    ("Hydraulis Eq. 1", "packing within a pipeline", "planner/src/planners/hydraulis/packing.rs"),
    ("Hydraulis Eq. 2", "lower bound of a pipeline", "planner/src/planners/hydraulis/dispatch.rs"),
    ("Hydraulis Eq. 3", "dispatching across pipelines", "planner/src/planners/hydraulis/dispatch.rs"),
    ("Hydraulis Eq. 3", "dispatching in ablation step (a)", "planner/src/planners/hydraulis/planner/dealing.rs"),
    ("Hydraulis Eq. 4", "dynamic program of the strategy proposal", "planner/src/planners/hydraulis/proposal.rs"),
    ("Hydraulis Alg. 1", "greedy dispatching", "planner/src/planners/hydraulis/dispatch.rs"),
    ("Hydraulis Sec. 4", "strategy selection per batch", "planner/src/planners/hydraulis/assignment.rs"),
    ("Hydraulis Sec. 5.1", "heterogeneous strategies of parallel schemes", "planner/src/planners/hydraulis.rs"),
    (
        "Hydraulis Sec. 5.2",
        "optimization-propagation disaggregation, pull and push",
        "planner/src/planners/hydraulis/disaggregation.rs",
    ),
    ("Hydraulis Sec. 5.2", "disaggregated optimizer states", "planner/src/cost/table/disaggregated.rs"),
    ("Hydraulis Sec. 5.2", "exchange of an iteration", "planner/src/planners/hydraulis/pipeline_costs/exchange.rs"),
    ("Hydraulis Sec. 6", "two-stage sequence assignment", "planner/src/planners/hydraulis/assignment.rs"),
    ("Hydraulis Sec. 6.1", "cost model of a scheme", "planner/src/planners/hydraulis/scheme.rs"),
    ("Hydraulis Sec. 7", "strategy proposal", "planner/src/planners/hydraulis/proposal.rs"),
    ("Hydraulis Sec. 7", "rounding after continuous relaxation", "planner/src/planners/hydraulis/rounding.rs"),
    ("Hydraulis App. B.1", "communication bound", "planner/src/planners/hydraulis/disaggregation.rs"),
    (
        "Hydraulis App. B.2",
        "overlap of communication and computation",
        "planner/src/planners/hydraulis/disaggregation.rs",
    ),
    ("Hydraulis App. C.1", "memory model, MaxLen", "planner/src/planners/hydraulis/scheme.rs"),
    ("Hydraulis App. C.2", "latency model, T(l, P)", "planner/src/length_fit.rs"),
    ("Hydraulis App. D", "pruned number of microbatches", "planner/src/planners/hydraulis/packing.rs"),
    ("Hydraulis App. D", "UtilLen", "planner/src/planners/hydraulis/scheme.rs"),
    ("Hydraulis App. G", "HotSPa intervals", "planner/src/planners/hydraulis/planner/baselines.rs"),
    (
        "PipeWeaver Alg. 1",
        "Monte-Carlo tree search (MCTS) ranking",
        "planner/src/planners/pipeweaver/ranking/monte_carlo.rs",
    ),
    (
        "PipeWeaver Alg. 1",
        "node selection by upper confidence bound (UCB)",
        "planner/src/planners/pipeweaver/ranking/tree.rs",
    ),
    ("PipeWeaver Alg. 1", "random rollouts", "planner/src/planners/pipeweaver/ranking/trial.rs"),
    ("PipeWeaver Sec. 3.1", "scheduling problem (ILP), exact by branch and bound", "planner/src/exact.rs"),
    ("PipeWeaver Sec. 3.3", "dynamic interleaved pipeline", "planner/src/planners/pipeweaver.rs"),
    ("PipeWeaver Sec. 4.1", "SEMU, graphs of operators and tensors", "planner/src/cost/graph.rs"),
    ("PipeWeaver Sec. 4.2", "SEMU, checkpoint and restore", "planner/src/simulate/resume.rs"),
    ("PipeWeaver Sec. 5", "modality-aware partitioner", "planner/src/planners/pipeweaver/partitioner.rs"),
    ("PipeWeaver Sec. 5", "sub-microbatch size, B_i", "planner/src/planners/pipeweaver/partitioner.rs"),
    ("PipeWeaver Sec. 5", "segments per module, K_i", "planner/src/planners/pipeweaver/partitioner.rs"),
    ("PipeWeaver Sec. 5", "sub-microbatches, M_i", "planner/src/cost/load/instances.rs"),
    ("PipeWeaver Sec. 5", "split of microbatches by module", "planner/src/planners/replica.rs"),
    ("PipeWeaver Sec. 5", "layers of a module across ranks", "planner/src/cost/partition.rs"),
    ("PipeWeaver Sec. 5", "stage flows", "planner/src/stage_graph.rs"),
    ("PipeWeaver Sec. 6.1", "modality-module-level ranking", "planner/src/planners/pipeweaver/ranking.rs"),
    ("PipeWeaver Sec. 6.1", "search space of the ranking", "planner/src/planners/pipeweaver/ranking/space.rs"),
    ("PipeWeaver Sec. 6.2", "dual-queue interleaving", "planner/src/schedule/dual_queue.rs"),
    ("PipeWeaver Sec. 6.2", "iterative scheduling", "planner/src/schedule/dual_queue/walk.rs"),
    ("PipeWeaver Sec. 6.2", "forward and backward queues", "planner/src/schedule/dual_queue/queue.rs"),
    ("PipeWeaver Sec. 6.3", "model layer tuning, ILP", "planner/src/planners/pipeweaver/layer_tuning/problem.rs"),
    (
        "PipeWeaver Sec. 6.3",
        "model layer tuning, solver and 5 % gap",
        "planner/src/planners/pipeweaver/layer_tuning/solve.rs",
    ),
    (
        "PipeWeaver Sec. 6.3",
        "candidate generation (multiple-choice knapsack)",
        "planner/src/planners/pipeweaver/layer_tuning/candidates.rs",
    ),
    ("PipeWeaver Sec. 6.3", "greedy start", "planner/src/planners/pipeweaver/layer_tuning/greedy.rs"),
    ("PipeWeaver Sec. 6.3", "per-layer memory tuning of a replica", "planner/src/planners/pipeweaver/tuning.rs"),
    ("PipeWeaver Sec. 6.3", "memory strategies per layer", "planner/src/cost/strategy.rs"),
    ("PipeWeaver Sec. 7.3", "execution plan", "planner/src/execution_plan.rs"),
    ("arXiv 2605.27678", "separate layouts per module", "planner/src/planners/module_layouts.rs"),
    ("arXiv 2605.27678", "colocated and non-colocated modes", "planner/src/planners/module_layouts/space.rs"),
    ("arXiv 2605.27678", "schedules of both placement modes", "planner/src/planners/module_layouts/fill.rs"),
    ("arXiv 2605.27678", "costs of separate layouts", "planner/src/planners/module_layouts/module_costs.rs"),
    ("arXiv 2605.27678", "boundary communicators", "planner/src/cost/boundary.rs"),
    ("arXiv 2605.27678", "sweep of layouts", "planner/src/analysis/layouts.rs"),
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
