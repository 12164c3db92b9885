//! Requirements from the costs of a run.

use std::collections::{BTreeMap, BTreeSet};

use super::super::execution_plan::demand::{Computation, Demand, MicrobatchPaths, Product, ProductKind, Sending};
use super::super::execution_plan::{At, ExecutionViolation};
use super::{FileViolation, TableProblem};
use planscope_pipeline::execution_plan::{PlanAction, PlanActionKind};
use planscope_plan::execution_file::{MicrobatchCosts, RankRun, Run};

/// Overlap factor for pairs that gain nothing, in ppm.
const NO_GAIN_PPM: u64 = 1_000_000;
/// Limit of the sum of all times in ns, and of all memory in bytes. Simulated values are smaller
/// than the sum, so they do not overflow.
const MAX_SUM: u128 = 1 << 62;

/// Validates the table and reads the computations from the action lists.
pub(super) fn read(run: &Run, number: usize) -> Result<Demand, FileViolation> {
    check_table(run).map_err(|problem| FileViolation::Table { run: number, problem })?;
    let fail = |violation| FileViolation::Actions { run: number, violation };
    let mut lanes = Vec::with_capacity(run.ranks.len());
    let mut done: BTreeSet<Product> = BTreeSet::new();
    for (rank, costs) in run.ranks.iter().enumerate() {
        lanes.push(lane(run, number, rank, costs, &mut done)?);
    }
    let mut paths = MicrobatchPaths { stage_ranks: BTreeMap::new(), into: BTreeMap::new(), from: BTreeMap::new() };
    for (index, costs) in run.microbatches.iter().enumerate() {
        let microbatch = index as u32;
        for stage in stages(costs) {
            let rank = run.stages[stage as usize].rank as usize;
            let kinds = [ProductKind::Activation, ProductKind::InputGradient, ProductKind::WeightGradient];
            if kinds.into_iter().any(|kind| !done.contains(&Product { kind, stage, microbatch })) {
                return Err(fail(ExecutionViolation::Missing { rank, stage, microbatch }));
            }
            paths.stage_ranks.insert((microbatch, stage), rank);
        }
        for &input in &costs.inputs {
            paths.into.entry(microbatch).or_default().push(input);
            paths.from.entry(input).or_default().push(microbatch);
        }
    }
    let mut sends = paths.add_needs(&mut lanes).map_err(fail)?;
    for (product, sending) in &mut sends {
        let costs = &run.microbatches[product.microbatch as usize];
        let column =
            if product.kind == ProductKind::Activation { &costs.send_forward_ns } else { &costs.send_backward_ns };
        sending.duration_ns = column[(product.stage - costs.first_stage) as usize];
    }
    let local_sends = local_sends(run, &sends);
    let mut meetings = Vec::new();
    for costs in &run.microbatches {
        if let Some(gang) = costs.gang {
            let number = 2 * gang as usize;
            meetings.resize(meetings.len().max(number + 2), 0);
            meetings[number] += costs.forward_ns.len();
            meetings[number + 1] += costs.forward_ns.len();
        }
    }
    Ok(Demand::new(lanes, (sends, local_sends), meetings))
}

/// Returns the times of sends whose result no other rank receives.
fn local_sends(run: &Run, sends: &BTreeMap<Product, Sending>) -> BTreeMap<Product, u64> {
    let mut local = BTreeMap::new();
    for (microbatch, costs) in (0..).zip(&run.microbatches) {
        let columns =
            [(ProductKind::Activation, &costs.send_forward_ns), (ProductKind::InputGradient, &costs.send_backward_ns)];
        for (kind, column) in columns {
            for (stage, &duration_ns) in (costs.first_stage..).zip(column) {
                let product = Product { kind, stage, microbatch };
                if duration_ns > 0 && !sends.contains_key(&product) {
                    local.insert(product, duration_ns);
                }
            }
        }
    }
    local
}

fn stages(costs: &MicrobatchCosts) -> std::ops::Range<u32> {
    costs.first_stage..costs.first_stage + costs.forward_ns.len() as u32
}

fn check_table(run: &Run) -> Result<(), TableProblem> {
    if run.ranks.is_empty() {
        return Err(TableProblem::NoRanks);
    }
    if run.overlapped_ppm > NO_GAIN_PPM {
        return Err(TableProblem::Overlap);
    }
    for (index, stage) in run.stages.iter().enumerate() {
        if stage.rank as usize >= run.ranks.len() {
            return Err(TableProblem::StageRank(index));
        }
        if stage.layers.iter().any(|layers| layers.first >= layers.end) {
            return Err(TableProblem::Layers(index));
        }
    }
    let (mut time, mut memory): (u128, u128) = (0, 0);
    for (index, costs) in run.microbatches.iter().enumerate() {
        check_microbatch(run, index, costs)?;
        let times = [
            &costs.forward_ns,
            &costs.input_grad_ns,
            &costs.weight_grad_ns,
            &costs.send_forward_ns,
            &costs.send_backward_ns,
        ];
        time += times.into_iter().flatten().copied().map(u128::from).sum::<u128>();
        memory += [&costs.activation_bytes, &costs.transient_bytes]
            .into_iter()
            .flatten()
            .copied()
            .map(u128::from)
            .sum::<u128>();
    }
    for rank in &run.ranks {
        time += u128::from(rank.sync_ns) + u128::from(rank.optimizer_ns);
        memory += u128::from(rank.static_bytes);
    }
    match (time > MAX_SUM, memory > MAX_SUM) {
        (true, _) => Err(TableProblem::Overflow("times in ns")),
        (_, true) => Err(TableProblem::Overflow("memory in bytes")),
        _ => Ok(()),
    }
}

fn check_microbatch(run: &Run, index: usize, costs: &MicrobatchCosts) -> Result<(), TableProblem> {
    let visited = costs.forward_ns.len();
    let lengths = [
        costs.input_grad_ns.len(),
        costs.weight_grad_ns.len(),
        costs.send_forward_ns.len(),
        costs.send_backward_ns.len(),
        costs.activation_bytes.len(),
        costs.transient_bytes.len(),
    ];
    let end = (costs.first_stage as usize).saturating_add(visited);
    if visited == 0 || lengths.iter().any(|&length| length != visited) || end > run.stages.len() {
        return Err(TableProblem::Columns(index));
    }
    let ascending = costs.inputs.windows(2).all(|pair| pair[0] < pair[1]);
    if !ascending || costs.inputs.last().is_some_and(|&last| last as usize >= index) {
        return Err(TableProblem::Inputs(index));
    }
    let is_mixed = costs.gang.is_some() != run.microbatches[0].gang.is_some();
    let is_high = costs.gang.is_some_and(|gang| gang as usize >= run.microbatches.len());
    if is_mixed || is_high || (costs.gang.is_some() && !costs.inputs.is_empty()) {
        return Err(TableProblem::Gang(index));
    }
    if costs.layer_strategies.is_empty() {
        return Ok(());
    }
    if costs.layer_strategies.len() != visited {
        return Err(TableProblem::Columns(index));
    }
    for (strategies, stage) in costs.layer_strategies.iter().zip(costs.first_stage as usize..end) {
        let layers: u64 = run.stages[stage].layers.iter().map(|layers| u64::from(layers.end - layers.first)).sum();
        if strategies.iter().copied().map(u64::from).sum::<u64>() != layers {
            return Err(TableProblem::Strategies { microbatch: index, stage });
        }
    }
    Ok(())
}

/// Reads the computations of a rank.
fn lane(
    run: &Run,
    number: usize,
    rank: usize,
    costs: &RankRun,
    done: &mut BTreeSet<Product>,
) -> Result<Vec<Computation>, FileViolation> {
    let fail = |violation| FileViolation::Actions { run: number, violation };
    let mut lane = Vec::new();
    let mut before: Option<&PlanAction> = None;
    for (index, action) in costs.actions.iter().enumerate() {
        let at = At { rank, index };
        if !action.action.computes() {
            // A launch or wait between overlapped computations is refused with the lists.
            if action.action == PlanActionKind::Isend && action.duration_ns.is_none() {
                return Err(FileViolation::Duration { run: number, at, found: None, expected: 0 });
            }
            continue;
        }
        let Some(lasts) = duration(run, rank, action) else {
            return Err(fail(ExecutionViolation::Foreign(at)));
        };
        let expected = match before.filter(|before| before.with_next) {
            Some(first) => {
                // Only pairs overlap.
                if action.with_next {
                    return Err(fail(ExecutionViolation::Torn(at)));
                }
                let first = duration(run, rank, first).unwrap_or(0);
                let both = overlapped(run, first, lasts);
                both - first_share(both, first, lasts)
            }
            None if action.with_next => {
                let next = costs.actions.get(index + 1).and_then(|next| duration(run, rank, next));
                let Some(next) = next else { return Err(fail(ExecutionViolation::Torn(at))) };
                first_share(overlapped(run, lasts, next), lasts, next)
            }
            None => lasts,
        };
        if action.duration_ns != Some(expected) {
            return Err(FileViolation::Duration { run: number, at, found: action.duration_ns, expected });
        }
        let (kinds, meets): (&[ProductKind], usize) = match action.action {
            PlanActionKind::ForwardStage => (&[ProductKind::Activation], 0),
            PlanActionKind::InputGradStage => (&[ProductKind::InputGradient], 1),
            PlanActionKind::WeightGradStage => (&[ProductKind::WeightGradient], 1),
            _ => (&[ProductKind::InputGradient, ProductKind::WeightGradient], 1),
        };
        let (stage, microbatch) = (action.stage, action.microbatch);
        for &kind in kinds {
            if !done.insert(Product { kind, stage, microbatch }) {
                return Err(fail(ExecutionViolation::Repeated(at)));
            }
        }
        let gang = run.microbatches[microbatch as usize].gang;
        lane.push(Computation {
            kind: action.action,
            product: Product { kind: kinds[0], stage, microbatch },
            with_next: action.with_next,
            start_ns: action.start_ns,
            duration_ns: expected,
            needs: Vec::new(),
            meeting: gang.map(|gang| 2 * gang as usize + meets),
        });
        before = Some(action);
    }
    Ok(lane)
}

/// Returns the duration of a computation by the costs, without overlap. `None` if the rank has no such
/// computation.
fn duration(run: &Run, rank: usize, action: &PlanAction) -> Option<u64> {
    let costs = run.microbatches.get(action.microbatch as usize)?;
    if !stages(costs).contains(&action.stage) || run.stages[action.stage as usize].rank as usize != rank {
        return None;
    }
    let cell = (action.stage - costs.first_stage) as usize;
    match action.action {
        PlanActionKind::ForwardStage => Some(costs.forward_ns[cell]),
        PlanActionKind::InputGradStage => Some(costs.input_grad_ns[cell]),
        PlanActionKind::WeightGradStage => Some(costs.weight_grad_ns[cell]),
        PlanActionKind::BackwardStage => Some(costs.input_grad_ns[cell] + costs.weight_grad_ns[cell]),
        _ => None,
    }
}

/// Returns the time of an overlapped pair: at least the longer of the two.
fn overlapped(run: &Run, first: u64, second: u64) -> u64 {
    let sum = u128::from(first) + u128::from(second);
    let scaled = sum * u128::from(run.overlapped_ppm) / u128::from(NO_GAIN_PPM);
    // At most the sum, which is below 2^62.
    (scaled as u64).max(first).max(second)
}

/// Returns the part of the common time that is drawn for the first of a pair.
fn first_share(both: u64, first: u64, second: u64) -> u64 {
    let sum = u128::from(first) + u128::from(second);
    (u128::from(both) * u128::from(first) / sum.max(1)) as u64
}
