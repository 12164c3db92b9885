//! Replica run validation: completeness, precedence, exclusivity and memory.

use super::Violation;
use planscope_core::action::{Action, ActionKind, Schedule};
use planscope_core::units::Bytes;
use planscope_cost::cost::PipelineCosts;
use planscope_pipeline::simulate::Execution;

/// Marks an action that did not run.
const NEVER: u64 = u64::MAX;

/// Validates an executed schedule. Each microbatch passes all stages on its path forward and
/// backward exactly once, on the rank that owns the stage. Actions start after input arrival, run
/// one at a time and respect the `limit` in bytes.
pub fn check_run(
    schedule: &Schedule,
    execution: &Execution,
    costs: &PipelineCosts,
    limit: Bytes,
) -> Result<(), Violation> {
    let ends = ends(schedule, execution, costs)?;
    for microbatch in 0..costs.flows.microbatches() {
        for stage in costs.flows.microbatch_stages(microbatch) {
            let cell = costs.flows.cell(stage, microbatch);
            if [ends.forward[cell], ends.input[cell], ends.weight[cell]].contains(&NEVER) {
                return Err(Violation::Incomplete { stage, microbatch });
            }
        }
    }
    gangs(schedule, execution, costs)?;
    for (rank, order) in schedule.orders.iter().enumerate() {
        precedence(rank, order, execution, costs, &ends)?;
        memory(rank, order, execution, costs, limit)?;
    }
    Ok(())
}

/// End times of forward, input gradient and weight gradient per cell, and arrival times of the
/// results.
struct Ends {
    forward: Vec<u64>,
    input: Vec<u64>,
    weight: Vec<u64>,
    forward_arrival: Vec<u64>,
    gradient_arrival: Vec<u64>,
}

/// Duration of an action without overlap.
fn lasts(action: &Action, cell: usize, costs: &PipelineCosts) -> u64 {
    let (input, weight) = (costs.input_grad[cell].get(), costs.weight_grad[cell].get());
    match action.kind {
        ActionKind::Forward => costs.forward[cell].get(),
        ActionKind::Backward => input.saturating_add(weight),
        ActionKind::InputGrad => input,
        ActionKind::WeightGrad => weight,
    }
}

/// Returns start and end of the overlapped pair that contains the action at `place`, and true for
/// the later action.
fn pair(order: &[Action], index: usize, rank: usize, execution: &Execution) -> Option<(u64, u64, bool)> {
    let (start, end) = (&execution.start[rank], &execution.end[rank]);
    if order[index].with_next && index + 1 < order.len() {
        Some((start[index].get(), end[index + 1].get(), false))
    } else if index > 0 && order[index - 1].with_next {
        Some((start[index - 1].get(), end[index].get(), true))
    } else {
        None
    }
}

/// Collects end times. Also checks that the rank owns all actions in its order and runs them once,
/// sequentially or as overlapped pairs, with a duration equal to the cost.
fn ends(schedule: &Schedule, execution: &Execution, costs: &PipelineCosts) -> Result<Ends, Violation> {
    let never = || vec![NEVER; costs.flows.cells()];
    let mut ends =
        Ends { forward: never(), input: never(), weight: never(), forward_arrival: never(), gradient_arrival: never() };
    for (rank, order) in schedule.orders.iter().enumerate() {
        let (mut free, mut stream_free) = (0, 0);
        for (index, action) in order.iter().enumerate() {
            let (stage, microbatch) = (action.stage as usize, action.microbatch as usize);
            let is_local = costs.flows.visits(stage, microbatch) && costs.flows.rank_for_stage(stage) == rank;
            if !is_local {
                return Err(Violation::Foreign { rank, action: action.to_string() });
            }
            let cell = costs.flows.cell(stage, microbatch);
            let (start, end) = (execution.start[rank][index].get(), execution.end[rank][index].get());
            let pair = pair(order, index, rank, execution);
            let right = match pair {
                None => end == start.saturating_add(lasts(action, cell, costs)),
                Some((_, _, true)) => end >= start,
                Some((first, last, false)) => {
                    let with = &order[index + 1];
                    let other = costs.flows.visits(with.stage as usize, with.microbatch as usize);
                    other && overlaps(action, with) && {
                        let second = costs.flows.cell(with.stage as usize, with.microbatch as usize);
                        let (a, b) = (lasts(action, cell, costs), lasts(with, second, costs));
                        let both = u128::from(a.saturating_add(b)) * u128::from(costs.overlapped_ppm) / 1_000_000;
                        last == first.saturating_add((both as u64).max(a).max(b)) && end >= start
                    }
                }
            };
            if start < free || !right {
                return Err(Violation::Exclusivity { rank, action: action.to_string(), start, end });
            }
            // The results of a pair are available when the pair is done.
            let ready = pair.map_or(end, |(_, last, _)| last);
            let sets: &mut [&mut u64] = match action.kind {
                ActionKind::Forward => &mut [&mut ends.forward[cell]],
                ActionKind::Backward => &mut [&mut ends.input[cell], &mut ends.weight[cell]],
                ActionKind::InputGrad => &mut [&mut ends.input[cell]],
                ActionKind::WeightGrad => &mut [&mut ends.weight[cell]],
            };
            for set in sets {
                if **set != NEVER {
                    return Err(Violation::Repeated { rank, action: action.to_string() });
                }
                **set = ready;
            }
            free = end;
            let (send, arrives) = match action.kind {
                ActionKind::Forward => (costs.send_forward[cell].get(), &mut ends.forward_arrival[cell]),
                ActionKind::Backward | ActionKind::InputGrad => {
                    (costs.send_backward[cell].get(), &mut ends.gradient_arrival[cell])
                }
                ActionKind::WeightGrad => continue,
            };
            let sent = execution.send_start[rank][index].get();
            if sent < ready || (send > 0 && sent < stream_free) {
                return Err(Violation::Send { rank, action: action.to_string(), start: sent });
            }
            *arrives = sent.saturating_add(send);
            if send > 0 {
                stream_free = *arrives;
            }
        }
    }
    Ok(ends)
}

/// Checks that the ranks of a gang start forwards at the same time, and likewise backwards.
fn gangs(schedule: &Schedule, execution: &Execution, costs: &PipelineCosts) -> Result<(), Violation> {
    let mut begun = vec![None; 2 * costs.flows.gangs()];
    for (rank, order) in schedule.orders.iter().enumerate() {
        for (action, start) in order.iter().zip(&execution.start[rank]) {
            let Some(gang) = costs.flows.microbatch_gang(action.microbatch as usize) else { continue };
            let start = start.get();
            let first = begun[2 * gang + usize::from(action.kind != ActionKind::Forward)].get_or_insert(start);
            if *first != start {
                let (action, first) = (action.to_string(), *first);
                return Err(Violation::GroupStart { rank, action, start, first });
            }
        }
    }
    Ok(())
}

/// Returns true if the actions may overlap: a forward and a backward of different microbatches.
fn overlaps(first: &Action, second: &Action) -> bool {
    let forward = |action: &Action| action.kind == ActionKind::Forward;
    forward(first) != forward(second) && first.microbatch != second.microbatch && !second.with_next
}

fn precedence(
    rank: usize,
    order: &[Action],
    execution: &Execution,
    costs: &PipelineCosts,
    ends: &Ends,
) -> Result<(), Violation> {
    let flows = &costs.flows;
    for (index, action) in order.iter().enumerate() {
        let (stage, microbatch) = (action.stage as usize, action.microbatch as usize);
        let (stages, cell) = (flows.microbatch_stages(microbatch), flows.cell(stage, microbatch));
        let input = match action.kind {
            // A gang sends nothing between stages; a backward depends only on the forward of the
            // same cell.
            ActionKind::Forward if flows.microbatch_gang(microbatch).is_some() => 0,
            ActionKind::Backward | ActionKind::InputGrad if flows.microbatch_gang(microbatch).is_some() => {
                ends.forward[cell]
            }
            ActionKind::Forward if stage > stages.start => ends.forward_arrival[flows.cell(stage - 1, microbatch)],
            ActionKind::Forward => {
                let feeding = flows.inputs(microbatch).iter().map(|&input| input as usize);
                let arrivals = feeding.map(|input| {
                    let last = flows.microbatch_stages(input).end - 1;
                    ends.forward_arrival[flows.cell(last, input)]
                });
                arrivals.max().unwrap_or(0)
            }
            ActionKind::Backward | ActionKind::InputGrad => {
                let gradient = if stage + 1 < stages.end {
                    ends.gradient_arrival[flows.cell(stage + 1, microbatch)]
                } else {
                    let fed = flows.outputs(microbatch).iter().map(|&output| output as usize);
                    let arrivals = fed.map(|output| {
                        let first = flows.microbatch_stages(output).start;
                        ends.gradient_arrival[flows.cell(first, output)]
                    });
                    arrivals.max().unwrap_or(0)
                };
                ends.forward[cell].max(gradient)
            }
            ActionKind::WeightGrad => ends.input[cell],
        };
        // The later action in a pair needs its input when the pair starts.
        let start = match pair(order, index, rank, execution) {
            Some((first, _, true)) => first,
            _ => execution.start[rank][index].get(),
        };
        if start < input {
            return Err(Violation::Precedence { rank, action: action.to_string(), start, input });
        }
    }
    Ok(())
}

/// Sums static memory, stored activations and temporary memory whenever an action starts.
fn memory(
    rank: usize,
    order: &[Action],
    execution: &Execution,
    costs: &PipelineCosts,
    limit: Bytes,
) -> Result<(), Violation> {
    let fixed = costs.static_memory[rank].get();
    let mut stored = 0_u64;
    let mut split = 0_u64;
    debug_assert_eq!(order.len(), execution.start[rank].len());
    for action in order {
        let cell = costs.flows.cell(action.stage as usize, action.microbatch as usize);
        let (activation, again) = (costs.activation[cell].get(), costs.transient[cell].get());
        let now = match action.kind {
            ActionKind::Forward => {
                stored = stored.saturating_add(activation);
                stored
            }
            ActionKind::Backward => {
                let now = stored.saturating_add(again);
                stored = stored.saturating_sub(activation);
                now
            }
            ActionKind::InputGrad => {
                split = split.saturating_add(again);
                stored
            }
            ActionKind::WeightGrad => {
                let now = stored;
                stored = stored.saturating_sub(activation);
                split = split.saturating_sub(again);
                now
            }
        };
        let needed = fixed.saturating_add(now).saturating_add(split);
        if needed > limit.get() {
            let (needed_mib, limit_mib) = (needed >> 20, limit.get() >> 20);
            return Err(Violation::Memory { rank, needed_mib, limit_mib });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use planscope_core::stage_graph::{Flows, Gathered};
    use planscope_core::units::Nanos;
    use planscope_cost::cost::UniformTimes;
    use planscope_pipeline::schedule::one_f_one_b;
    use planscope_pipeline::simulate::execute;

    fn costs() -> PipelineCosts {
        let times = UniformTimes {
            forward: Nanos::new(10),
            input_grad: Nanos::new(10),
            weight_grad: Nanos::new(10),
            communication: Nanos::new(2),
        };
        PipelineCosts::uniform(3, 1, 5, times)
    }

    fn checked(spoil: impl FnOnce(&mut Schedule, &mut Execution, &mut PipelineCosts)) -> Result<(), Violation> {
        let (mut schedule, mut costs) = (one_f_one_b(3, 5), costs());
        let mut execution = execute(&schedule, &costs).unwrap();
        spoil(&mut schedule, &mut execution, &mut costs);
        check_run(&schedule, &execution, &costs, Bytes::new(3))
    }

    #[test]
    fn a_sound_run_passes() {
        assert_eq!(checked(|_, _, _| {}), Ok(()));
    }

    #[test]
    fn every_fault_kind_is_detected() {
        let early = checked(|_, execution, _| {
            execution.start[1][0] = Nanos::new(9);
            execution.end[1][0] = Nanos::new(19);
        });
        assert!(matches!(early, Err(Violation::Precedence { rank: 1, .. })), "{early:?}");
        let overlap = checked(|_, execution, _| execution.start[0][1] = Nanos::new(5));
        assert!(matches!(overlap, Err(Violation::Exclusivity { rank: 0, .. })), "{overlap:?}");
        let foreign = checked(|schedule, _, _| schedule.orders[2][0].stage = 1);
        assert!(matches!(foreign, Err(Violation::Foreign { rank: 2, .. })), "{foreign:?}");
        let twice = checked(|schedule, _, _| schedule.orders[2][2] = schedule.orders[2][0]);
        assert!(matches!(twice, Err(Violation::Repeated { rank: 2, .. })), "{twice:?}");
        let crowded = checked(|_, execution, _| execution.send_start[0][0] = Nanos::new(9));
        assert!(matches!(crowded, Err(Violation::Send { rank: 0, .. })), "{crowded:?}");
        let missing = checked(|schedule, execution, _| {
            schedule.orders[0].pop();
            execution.start[0].pop();
        });
        let unfed = checked(|schedule, execution, _| {
            schedule.orders[0][9].kind = ActionKind::WeightGrad;
            execution.end[0][9] = execution.start[0][9] + Nanos::new(10);
        });
        assert_eq!(unfed, Err(Violation::Incomplete { stage: 0, microbatch: 4 }));
        assert_eq!(missing, Err(Violation::Incomplete { stage: 0, microbatch: 4 }));
        let heavy = checked(|_, _, costs| costs.static_memory[1] = Bytes::new(2 << 20));
        assert_eq!(heavy, Err(Violation::Memory { rank: 1, needed_mib: 2, limit_mib: 0 }));
    }

    /// Two sequential items on two ranks each. Rank 1 starts item 0 one nanosecond late.
    #[test]
    fn unsynchronized_gang_ranks_are_detected() {
        let items: Vec<Gathered> = (0..2).map(|gang| Gathered { ranks: vec![0, 1], gang }).collect();
        let ten = Nanos::new(10);
        let times = UniformTimes { forward: ten, input_grad: ten, weight_grad: ten, communication: Nanos::ZERO };
        let costs = PipelineCosts::uniform_over(Flows::together(2, &items).unwrap(), times);
        let order = |rank: usize| {
            (0..2)
                .flat_map(move |item| [Action::forward(2 * item + rank, item), Action::backward(2 * item + rank, item)])
        };
        let orders = vec![order(0).collect(), order(1).collect()];
        let schedule = Schedule { stages: 4, microbatches: 2, orders };
        let mut execution = execute(&schedule, &costs).unwrap();
        assert_eq!(check_run(&schedule, &execution, &costs, Bytes::new(9)), Ok(()));
        // Forward 0 to 10, backward to 30, then item 1. The backward of item 1, from 40 to 60, can
        // be late and cause no further violation.
        for times in [&mut execution.start, &mut execution.end, &mut execution.send_start] {
            times[1][3] += Nanos::new(1);
        }
        let result = check_run(&schedule, &execution, &costs, Bytes::new(9));
        assert!(matches!(result, Err(Violation::GroupStart { rank: 1, start: 41, first: 40, .. })), "{result:?}");
    }
}
