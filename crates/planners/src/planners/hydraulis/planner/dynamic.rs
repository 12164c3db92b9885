//! Strategies proposed by Hydraulis: selected per batch, or once for all batches.

use super::baselines::Steps;
use super::dealing::{assigned, dealt_pipelines, pipelines, replica, seconds};
use super::profile::{Profiled, undominated};
use super::rebalance::rebalance;
use super::{Draft, Setting, lengths, words};
use crate::planners::batches::EachBatch;
use crate::planners::hydraulis::pipeline_costs::Interaction;
use crate::planners::hydraulis::{
    Assignment, CandidateResult, DispatchSettings, PackingSettings, ProposalSettings, SchemeCost, StrategySelection,
    assign, choose_with_extra_time, propose,
};
use crate::planners::{NoPlan, SearchError};
use planscope_core::workload::PackedBatch;
use planscope_plan::observer::{Cancelled, Observer, go_on};
use planscope_plan::outcome::Search;
use planscope_plan::plan::Scheme;
use planscope_plan::plan::{IterationPlan, ReplicaPlan};
use planscope_plan::scenario::PlannerKind;

/// Proposed strategies, given as pipelines per entry in `schemes`.
struct Proposed {
    schemes: Vec<Profiled>,
    strategies: Vec<Vec<u32>>,
    /// Parameter and gradient exchange per strategy.
    interactions: Vec<Interaction>,
}

/// Branch-and-bound steps per pipeline for comparisons across several batches.
const QUICK: u64 = 500;
/// Limit on simulated strategies per batch, sorted by estimate.
const SIMULATED: usize = 6;
/// Maximum ratio of a simulated strategy's estimate to the lowest estimate.
const CLOSE: f64 = 1.04;

impl Proposed {
    fn new(setting: &Setting<'_>, observer: &mut dyn Observer) -> Result<Self, SearchError<String>> {
        let schemes = undominated(&setting.schemes);
        let survey = setting.context.batches.survey.iter().chain([setting.context.batches.sizing]);
        let mut seen: Vec<u64> = survey.flat_map(lengths).collect();
        seen.sort_unstable();
        let counted: Vec<(u64, f64)> = seen.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as f64)).collect();
        let devices = setting.context.scenario.cluster.devices();
        let settings = ProposalSettings::up_to(seen.last().copied().unwrap_or(0));
        // Hydraulis Eq. 4 models computation only, which favours TP 1. At TP 1, all devices pull
        // the full model. Therefore Hydraulis Eq. 4 is solved once per minimum TP.
        let mut min_tensors: Vec<u32> = schemes.iter().map(|known| known.scheme.tensor).collect();
        min_tensors.sort_unstable();
        min_tensors.dedup();
        let mut strategies: Vec<Vec<u32>> = Vec::new();
        let mut failed = None;
        for &tensor in &min_tensors {
            go_on(observer)?;
            let places: Vec<usize> =
                (0..schemes.len()).filter(|&index| schemes[index].scheme.tensor >= tensor).collect();
            let costs: Vec<SchemeCost> = places.iter().map(|&index| schemes[index].cost).collect();
            match propose(&counted, devices, &costs, settings) {
                Ok(proposal) => {
                    for candidate in proposal.strategies {
                        let mut copies = vec![0; schemes.len()];
                        for (&scheme_index, count) in places.iter().zip(candidate.copies) {
                            copies[scheme_index] = count;
                        }
                        if !strategies.contains(&copies) {
                            strategies.push(copies);
                        }
                    }
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let (true, Some(error)) = (strategies.is_empty(), failed) {
            return Err(SearchError::Infeasible(error.to_string()));
        }
        let interaction = |copies: &Vec<u32>| {
            let strategy_schemes: Vec<Scheme> = schemes
                .iter()
                .zip(copies)
                .flat_map(|(known, &count)| std::iter::repeat_n(known.scheme, count as usize))
                .collect();
            Interaction::new(setting.context.scenario, &strategy_schemes, setting.parameters)
        };
        let interactions = strategies.iter().map(interaction).collect();
        Ok(Self { schemes, strategies, interactions })
    }

    fn label(&self, strategy: usize) -> String {
        words::strategy(&self.schemes, &self.strategies[strategy])
    }

    /// Returns the strategies that support the maximum sequence length.
    fn able(&self, setting: &Setting<'_>) -> Vec<usize> {
        let holds = |copies: &Vec<u32>| {
            let used = copies.iter().zip(&self.schemes).filter(|(count, _)| **count > 0);
            used.map(|(_, scheme)| scheme.cost.max_len).max().unwrap_or(0) >= setting.max_length
        };
        (0..self.strategies.len()).filter(|&strategy_index| holds(&self.strategies[strategy_index])).collect()
    }

    /// Returns the strategy that has the shortest estimated time for the sizing batch and the
    /// survey.
    fn best_for_all(
        &self,
        setting: &Setting<'_>,
        able: &[usize],
        observer: &mut dyn Observer,
    ) -> Result<Option<usize>, Cancelled> {
        let batches: Vec<Vec<u64>> =
            setting.context.batches.survey.iter().chain([setting.context.batches.sizing]).map(lengths).collect();
        let (dispatching, packing) =
            (settings(setting), PackingSettings { nodes: QUICK, ..PackingSettings::default() });
        let total = |strategy_index: usize, observer: &dyn Observer| {
            let costs = pipelines(&self.schemes, &self.strategies[strategy_index]);
            let batch_time = |lengths: &Vec<u64>| {
                if observer.cancelled() {
                    return f64::INFINITY;
                }
                assign(lengths, &costs, dispatching, packing).map_or(f64::INFINITY, |assignment| {
                    assignment.seconds + self.extra_time(strategy_index, Some(&assignment), lengths)
                })
            };
            batches.iter().map(batch_time).sum::<f64>()
        };
        let mut best: Option<(f64, usize)> = None;
        for &strategy_index in able {
            go_on(observer)?;
            let seconds = total(strategy_index, observer);
            go_on(observer)?;
            if seconds.is_finite() && best.is_none_or(|(best_time, _)| seconds < best_time) {
                best = Some((seconds, strategy_index));
            }
        }
        Ok(best.map(|(_, winner)| winner))
    }

    /// Correction to Hydraulis Eq. 1, in seconds: exposed exchange on the slowest pipeline, or a
    /// lower bound if nothing is assigned. For an assignment, also the error of Hydraulis Eq. 1 for
    /// unequal microbatches.
    fn extra_time(&self, strategy: usize, assignment: Option<&Assignment>, lengths: &[u64]) -> f64 {
        let moved = &self.interactions[strategy];
        let count: u32 = self.strategies[strategy].iter().sum();
        let exposed_time = |pipeline: usize| {
            let tokens = |sequences: Option<&Vec<u32>>| {
                sequences.map_or(0.0, |list| list.iter().map(|&index| lengths[index as usize] as f64).sum::<f64>())
            };
            match assignment.map(|assignment| assignment.packings[pipeline].as_ref()) {
                None => moved.pull_exposed(pipeline, f64::INFINITY) + moved.push_exposed(pipeline, f64::INFINITY),
                Some(packing) => {
                    let microbatches = packing.map(|packing| &packing.microbatches);
                    moved.pull_exposed(pipeline, tokens(microbatches.and_then(|lists| lists.first())))
                        + moved.push_exposed(pipeline, tokens(microbatches.and_then(|lists| lists.last())))
                }
            }
        };
        let exposed = (0..count as usize).map(exposed_time).fold(0.0, f64::max);
        let Some(assignment) = assignment else { return exposed };
        let costs = pipelines(&self.schemes, &self.strategies[strategy]);
        let uneven = costs.iter().zip(&assignment.packings).map(|(cost, packing)| {
            packing.as_ref().map_or(0.0, |packing| seconds(cost, &packing.microbatches, lengths))
        });
        exposed + uneven.fold(0.0, f64::max) - assignment.seconds
    }
}

fn settings(setting: &Setting<'_>) -> DispatchSettings {
    DispatchSettings { seed: setting.context.scenario.seed, nodes: QUICK, ..DispatchSettings::default() }
}

pub(crate) fn plan(setting: &Setting<'_>, observer: &mut dyn Observer) -> Result<Draft, SearchError<NoPlan>> {
    let search = Search { candidates: setting.schemes.len() as u32, ..Search::default() };
    let mut proposed = match Proposed::new(setting, observer) {
        Ok(proposed) => proposed,
        Err(error) => return Err(error.map(|binding| NoPlan { binding, search })),
    };
    let count = proposed.strategies.len();
    let able = proposed.able(setting);
    if setting.context.planner == PlannerKind::HydraulisStatic {
        let Some(best) = proposed.best_for_all(setting, &able, observer)? else {
            let binding = format!("none of {count} strategies fits {} tokens", setting.max_length);
            return Err(NoPlan { binding, search }.into());
        };
        proposed.strategies = vec![proposed.strategies[best].clone()];
        proposed.interactions = vec![proposed.interactions[best].clone()];
    }
    let costs: Vec<Vec<_>> = proposed.strategies.iter().map(|copies| pipelines(&proposed.schemes, copies)).collect();
    let steps = match setting.context.planner {
        PlannerKind::Hydraulis => Some(Steps::new(setting, observer)?),
        _ => None,
    };
    let mut used: Vec<(usize, u32)> = Vec::new();
    let mut steps_used = 0;
    let each = EachBatch {
        kind: setting.context.planner,
        phase: "assigning sequences",
        batches: setting.context.batches.evaluated,
    };
    let iterations = each.in_turn(observer, |index, batch, observer| {
        let batch_lengths = lengths(batch);
        // After cancellation all strategies get infinite cost; the caller discards the choice.
        let extra_time = |strategy_index: usize, assignment: Option<&Assignment>| {
            if observer.cancelled() {
                f64::INFINITY
            } else {
                proposed.extra_time(strategy_index, assignment, &batch_lengths)
            }
        };
        let settings = (settings(setting), PackingSettings::default());
        let selected = choose_with_extra_time(&batch_lengths, &costs, settings, &extra_time, CLOSE);
        let selection =
            selected.ok_or_else(|| format!("iteration {index}: its longest sequence fits no proposed strategy"))?;
        let (seconds, strategy_index, plan) = run(setting, &proposed, batch, &batch_lengths, &selection);
        let stepped = steps.iter().flat_map(|steps| steps.plans(&batch_lengths)).filter_map(|(name, plan)| {
            let (step_seconds, peak) = setting.simulate(batch, &plan)?;
            let fits = peak <= setting.context.scenario.memory_limit();
            (fits && step_seconds < seconds).then_some((step_seconds, name, plan))
        });
        if let Some((step_seconds, name, plan)) = stepped.min_by(|a, b| a.0.total_cmp(&b.0)) {
            steps_used += 1;
            let decision = format!(
                "{name}: a homogeneous strategy of the ablation, simulated {step_seconds:.3} s; the fastest proposed strategy takes {seconds:.3} s"
            );
            return Ok(IterationPlan { replicas: vec![plan], decision: Some(decision) });
        }
        match used.iter_mut().find(|(known, _)| *known == strategy_index) {
            Some((_, times)) => *times += 1,
            None => used.push((strategy_index, 1)),
        }
        Ok(IterationPlan { replicas: vec![plan], decision: Some(decision(&proposed, &selection, strategy_index)) })
    });
    let iterations = match iterations {
        Ok(iterations) => iterations,
        Err(error) => return Err(error.map(|binding| NoPlan { binding, search })),
    };
    used.sort_by_key(|&(strategy_index, times)| (std::cmp::Reverse(times), strategy_index));
    let mut decisions = vec![words::profile(setting)];
    decisions.extend(words::measured(setting));
    decisions.push(match setting.context.planner {
        PlannerKind::HydraulisStatic => format!(
            "One strategy for all batches, the fastest of the {} (of {count} proposed) that fit {} tokens: {}.",
            able.len(),
            setting.max_length,
            proposed.label(0)
        ),
        _ => format!(
            "{count} strategies proposed once from {} sample batches.",
            setting.context.batches.survey.len() + 1
        ),
    });
    if setting.context.planner == PlannerKind::Hydraulis {
        let all = iterations.len();
        let named = used
            .iter()
            .take(4)
            .map(|&(strategy_index, times)| format!("{} {times} times", proposed.label(strategy_index)));
        let stepped = format!(", a homogeneous strategy of the ablation {steps_used} times");
        let stepped = if steps_used > 0 { stepped } else { String::new() };
        let more = if used.len() > 4 { format!(", {} others", used.len() - 4) } else { String::new() };
        decisions.push(format!("For {all} batches: {}{more}{stepped}.", named.collect::<Vec<_>>().join(", ")));
    }
    decisions.extend(words::optimizer(setting));
    let search = Search { candidates: count as u32, ..search };
    Ok(Draft { iterations, decisions, search })
}

/// Returns the simulated seconds, the selected strategy and its plan for a batch. The fitted cost has an error of some per
/// cent, so all strategies whose estimate is close to the lowest are simulated. Their assignments
/// use more search effort.
fn run(
    setting: &Setting<'_>,
    proposed: &Proposed,
    batch: &PackedBatch,
    lengths: &[u64],
    selection: &StrategySelection,
) -> (f64, usize, ReplicaPlan) {
    let selected = selection.strategy as usize;
    let build_plan = |dealt| replica(&proposed.schemes, dealt, setting.optimizer);
    let mut close: Vec<(f64, usize)> = selection
        .candidates
        .iter()
        .enumerate()
        .filter_map(|(index, candidate)| match candidate {
            CandidateResult::Seconds(seconds) => Some((*seconds, index)),
            _ => None,
        })
        .collect();
    close.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let best = close.first().map_or(0.0, |(seconds, _)| *seconds);
    let close = close.into_iter().take(SIMULATED).take_while(|(seconds, _)| *seconds <= best * CLOSE);
    let first = dealt_pipelines(&proposed.schemes, &proposed.strategies[selected], lengths, &selection.assignment);
    let others = close.filter_map(|(_, strategy_index)| {
        let dealt =
            assigned(&proposed.schemes, &proposed.strategies[strategy_index], lengths, setting.context.scenario.seed)?;
        Some((strategy_index, dealt))
    });
    // The fitted cost has an error, so the pipelines are simulated before and after the moves.
    let plans = std::iter::once((selected, first)).chain(others).flat_map(|(strategy_index, dealt)| {
        let moved = rebalance(&proposed.schemes, dealt.clone(), lengths);
        let is_new = moved.iter().zip(&dealt).any(|(moved, dealt)| moved.microbatches != dealt.microbatches);
        let both = std::iter::once(dealt).chain(is_new.then_some(moved));
        both.map(move |dealt| (strategy_index, dealt)).collect::<Vec<_>>()
    });
    let simulated = plans.map(|(strategy_index, dealt)| {
        let plan = build_plan(dealt);
        let seconds = setting.simulate(batch, &plan).map_or(f64::INFINITY, |(seconds, _)| seconds);
        (seconds, strategy_index, plan)
    });
    let fastest = simulated.min_by(|a, b| a.0.total_cmp(&b.0));
    fastest.unwrap_or_else(|| (f64::INFINITY, selected, build_plan(Vec::new())))
}

/// Describes the candidates and the runner-up.
fn decision(proposed: &Proposed, selection: &StrategySelection, selected: usize) -> String {
    let (mut assigned, mut spared, mut left, mut impossible) = (0, 0, 0, 0);
    // `enough`: bounds of at least this value exclude a strategy. `left`: unassigned strategies,
    // because the step limit was reached.
    let evaluated_times = selection.candidates.iter().filter_map(|candidate| match candidate {
        CandidateResult::Seconds(seconds) => Some(*seconds),
        _ => None,
    });
    let enough = evaluated_times.fold(f64::INFINITY, f64::min) * CLOSE;
    let mut second: Option<(f64, usize)> = None;
    for (strategy_index, candidate) in selection.candidates.iter().enumerate() {
        match candidate {
            CandidateResult::Seconds(seconds) => {
                assigned += 1;
                if strategy_index != selected && second.is_none_or(|(known, _)| *seconds < known) {
                    second = Some((*seconds, strategy_index));
                }
            }
            CandidateResult::LowerBound(bound) if *bound >= enough => spared += 1,
            CandidateResult::LowerBound(_) => left += 1,
            CandidateResult::Impossible(_) => impossible += 1,
        }
    }
    let estimated = selection.candidates.get(selected).map_or(0.0, |candidate| match candidate {
        CandidateResult::Seconds(seconds) | CandidateResult::LowerBound(seconds) => *seconds,
        CandidateResult::Impossible(_) => 0.0,
    });
    let next = second.map_or_else(String::new, |(seconds, strategy_index)| {
        format!("; next {} with {seconds:.3} s", proposed.label(strategy_index))
    });
    let left = if left > 0 { format!(", {left} not evaluated (search budget used)") } else { String::new() };
    format!(
        "{}: estimated {estimated:.3} s with communication{next}; {assigned} strategies evaluated, {spared} excluded by their \
         bounds{left}, {impossible} too short",
        proposed.label(selected)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planners::hydraulis::dispatch;

    /// The fastest strategy takes 1 s, so bounds of at least 1.04 s are excluded. The fourth has a
    /// smaller bound and is unassigned because the step limit was reached.
    #[test]
    fn a_strategy_that_is_not_evaluated_is_not_called_excluded() {
        let scheme = SchemeCost { tp: 1, pp: 1, cp: 1, a: 2e-10, b: 1e-5, c: 0.01, max_len: 16_384, util_len: 1024 };
        let dispatch = dispatch(&[100], &[scheme], DispatchSettings::default()).unwrap();
        let assignment = Assignment { dispatch, packings: Vec::new(), seconds: 1.0 };
        let lower_bound = CandidateResult::LowerBound;
        let candidates =
            vec![CandidateResult::Seconds(1.0), CandidateResult::Seconds(1.5), lower_bound(1.04), lower_bound(1.03)];
        let proposed = Proposed { schemes: Vec::new(), strategies: vec![Vec::new(); 4], interactions: Vec::new() };
        let mut selection = StrategySelection { strategy: 0, assignment, candidates };
        let text = decision(&proposed, &selection, 0);
        let expected =
            "2 strategies evaluated, 1 excluded by their bounds, 1 not evaluated (search budget used), 0 too short";
        assert!(text.ends_with(expected), "{text}");
        selection.candidates.pop();
        assert!(decision(&proposed, &selection, 0).ends_with("1 excluded by their bounds, 0 too short"));
    }
}
