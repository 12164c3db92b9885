//! Planners that cut long sequences over groups of model replicas: DHP and what it is compared with.
//!
//! A rank is a whole replica of the model, of TP devices. Every global batch becomes microbatches, and every microbatch
//! groups of ranks that share sequences (see [`crate::planners::dhp`]). What the planners minimise is the cost that
//! DHP fits to a profile; the profile here is the operator graph of one rank, and the simulator judges by the graph itself.

mod profile;
mod report;

use crate::planners::batches::EachBatch;
use crate::planners::dhp::group_costs;
use crate::planners::dhp::{
    AllowedDegrees, BatchPlan, DegreeRule, Effort, GroupError, GroupPool, GroupProblem, Grouping, Load, Sequence,
    assign_ranks, megatron_balanced, plan as plan_groups, static_degrees, static_plan,
};
use crate::planners::executed::{TestedPlan, fits};
use crate::planners::{Batches, NoPlan, PlanningContext, SearchError, failed, measured_layers};
use planscope_core::training::ContextExchange;
use planscope_core::units::{Bytes, Seconds};
use planscope_core::workload::PackedBatch;
use planscope_cost::cost::Pricing;
use planscope_cost::cost::overrides::AtDegrees;
use planscope_pipeline::simulate::{StepEnd, execute, peak_memory_over};
use planscope_plan::observer::{Observer, go_on};
use planscope_plan::outcome::{Layout, Loser, Search, SolverStatus};
use planscope_plan::plan::SequenceGroup;
use planscope_plan::plan::{IterationPlan, Plan, ReplicaKind, ReplicaPlan};
use planscope_plan::scenario::budget::Spans;
use planscope_plan::scenario::{PlannerKind, Scenario};

use profile::Profile;

/// Limit on reductions of the token limit, used when simulated memory exceeds the profile's
/// estimate.
const MAX_TIGHTENINGS: u32 = 6;
/// Factor per token limit reduction.
const TIGHTENED: f64 = 0.96;

/// Planner state for a tensor-parallel degree.
struct Setting<'a> {
    context: PlanningContext<'a>,
    layout: Layout,
    profile: Profile,
    degrees: AllowedDegrees,
    /// Context-parallel degree of a static planner.
    fixed: Option<u32>,
    /// Degree that was fastest on the sizing batch but cannot fit the run's longest sequence.
    outgrown: Option<u32>,
    tokens_per_rank: u64,
}

/// Chooses TP on the sizing batch, and for static planners also the context-parallel degree. Then
/// plans every batch. If a TP degree fails on a batch, the next candidate is tried.
pub(crate) fn plan(
    context: PlanningContext<'_>,
    observer: &mut dyn Observer,
) -> Result<TestedPlan, SearchError<NoPlan>> {
    let PlanningContext { scenario, batches: Batches { sizing, evaluated: batches, .. }, .. } = context;
    if let Some(binding) = does_not_apply(scenario) {
        return Err(NoPlan::inapplicable(binding).into());
    }
    let mut search = Search::default();
    let max_length = max_sequence_length(batches);
    let mut sized: Vec<(f64, Setting<'_>)> = Vec::new();
    let mut binding = None;
    for tensor in tensor_degrees(scenario) {
        go_on(observer)?;
        search.candidates += 1;
        let result = broken_rule(scenario, tensor).map_or_else(|| size(context, tensor, max_length), Err);
        match result {
            Ok(found) => sized.push(found),
            Err(reason) => {
                binding = Some(format!("{reason}, at TP {tensor}"));
                search.reject(reason);
            }
        }
    }
    // The sort is stable: the smaller degree wins ties.
    sized.sort_by(|a, b| a.0.total_cmp(&b.0));
    search.simulated = sized.len() as u32;
    search.losers = sized.iter().map(|(seconds, setting)| slower(*seconds, setting.layout)).collect();
    let mut first = None;
    for (failed_later, (_, mut setting)) in (0..).zip(sized) {
        search.losers.remove(0);
        match setting.run(observer) {
            Ok((tested, groups_made)) => {
                let decisions = setting.decisions(sizing.sequences.len(), failed_later, groups_made);
                return Ok(tested.with_report(search, decisions));
            }
            Err(error) => {
                let reason = error.reason()?;
                search.simulated -= 1;
                first.get_or_insert_with(|| reason.clone());
                search.reject(reason);
            }
        }
    }
    let binding = first.or(binding);
    let binding = binding.unwrap_or_else(|| "no tensor-parallel degree divides the devices".to_owned());
    Err(NoPlan { binding, search }.into())
}

fn slower(seconds: f64, layout: Layout) -> Loser {
    let reason = "slower on the representative batch".to_owned();
    Loser { layout, reason, iteration_s: Some(seconds), peak_memory_gib: None }
}

const fn algorithm(kind: PlannerKind) -> &'static str {
    match kind {
        PlannerKind::StaticContext => {
            "one ring degree for all groups, the fastest on a representative batch; sequences packed by memory"
        }
        PlannerKind::Ulysses | PlannerKind::DeepSpeed => {
            "one all-to-all degree that divides the heads, the fastest on a representative batch"
        }
        PlannerKind::BalancedContext => {
            "degree of a sequence from its length, rounded up to a power of two; greedy assignment to ranks within 5 % of the mean"
        }
        PlannerKind::PowerOfTwoContext => "atomic groups by memory or time; degrees, powers of two, by exact search",
        _ => {
            "microbatches that fit; atomic groups by memory or time; degrees of any size by exact search of the makespan"
        }
    }
}

/// Returns the requested TP degree, or all divisors of a node's size.
fn tensor_degrees(scenario: &Scenario) -> Vec<u32> {
    let devices = scenario.cluster.devices();
    let node = scenario.cluster.devices_per_node;
    match scenario.layout.tensor {
        Some(tensor) => vec![tensor],
        None => (1..=node).filter(|tensor| node.is_multiple_of(*tensor) && devices.is_multiple_of(*tensor)).collect(),
    }
}

/// Returns an explanation if grouping by length does not apply to the scenario.
fn does_not_apply(scenario: &Scenario) -> Option<&'static str> {
    scenario.model.video().is_some().then_some(
        "does not apply: a sequence contains the caption of a video and not the video, so its length does not determine its cost",
    )
}

/// Returns the rule that the scenario or this TP degree violates.
fn broken_rule(scenario: &Scenario, tensor: u32) -> Option<String> {
    if scenario.layout.pipeline.is_some_and(|pipeline| pipeline > 1) {
        return Some("a rank is a whole replica of the model, so PP must be 1".to_owned());
    }
    if scenario.training.context_parallel > 1 {
        return Some(
            "the planner chooses the context-parallel degree of every group, so the setting must be 1".to_owned(),
        );
    }
    if scenario.training.expert_parallel > 1 {
        return Some("groups of variable degree do not allow fixed expert-parallel groups".to_owned());
    }
    if !scenario.cluster.devices().is_multiple_of(tensor) {
        return Some("TP does not divide the devices".to_owned());
    }
    scenario.model.modules.iter().find_map(|module| {
        let count = [module.heads, module.kv_heads].into_iter().find(|count| count % tensor != 0)?;
        Some(format!("TP does not divide the {count} heads of {}", module.name))
    })
}

const fn context_exchange(kind: PlannerKind) -> ContextExchange {
    if matches!(kind, PlannerKind::Ulysses | PlannerKind::DeepSpeed) {
        ContextExchange::AllToAll
    } else {
        ContextExchange::Ring
    }
}

/// Maximum sequence length in tokens.
fn max_sequence_length(batches: &[PackedBatch]) -> u64 {
    batches
        .iter()
        .flat_map(|batch| &batch.sequences)
        .map(|sequence| u64::from(sequence.computed_tokens))
        .max()
        .unwrap_or(0)
}

/// Returns a setting that fits the sizing batch, and the simulated time in seconds. A static degree
/// must also fit a sequence with `max_sequence_length` tokens.
fn size(context: PlanningContext<'_>, tensor: u32, longest: u64) -> Result<(f64, Setting<'_>), String> {
    let PlanningContext { scenario, pricing, planner: kind, batches: Batches { sizing, .. }, .. } = context;
    let ranks = scenario.cluster.devices() / tensor;
    let layout = Layout { tensor, pipeline: 1, data: ranks, chunks: 1, microbatch: 1, group: None };
    let modules = &scenario.model.modules;
    let degrees = match kind {
        PlannerKind::Ulysses | PlannerKind::DeepSpeed => AllowedDegrees::that(
            |degree| modules.iter().all(|module| module.supports_all_to_all(tensor, degree)),
            ranks,
        ),
        PlannerKind::PowerOfTwoContext | PlannerKind::BalancedContext => {
            AllowedDegrees::new(DegreeRule::PowersOfTwo, None, ranks)
        }
        _ => AllowedDegrees::new(DegreeRule::Any, None, ranks),
    };
    let profile = Profile::new(scenario, pricing, layout, context_exchange(kind), sizing, &degrees)?;
    let tokens_per_rank = profile.memory.tokens();
    let mut setting = Setting { context, layout, profile, degrees, fixed: None, outgrown: None, tokens_per_rank };
    if setting.tokens_per_rank == 0 {
        let (states, budget) = (setting.profile.memory.states.gib(), setting.profile.memory.budget.gib());
        return Err(format!("weights, gradients and optimizer state need {states:.1} GiB; {budget:.1} GiB available"));
    }
    let sequences = sequences(sizing, &setting.profile);
    if matches!(kind, PlannerKind::StaticContext | PlannerKind::Ulysses | PlannerKind::DeepSpeed) {
        let degree = setting.best_static_degree(&sequences, longest);
        let degree = degree.ok_or_else(|| "the longest sequence fits no degree that divides the ranks".to_owned())?;
        setting.fixed = Some(degree);
    }
    for _ in 0..MAX_TIGHTENINGS {
        let iteration = setting.iteration(sizing, &mut GroupPool::default())?;
        let (seconds, peak) = simulate(scenario, pricing, setting.layout, sizing, &iteration.replicas[0])?;
        if peak <= scenario.memory_limit() {
            return Ok((seconds, setting));
        }
        setting.tighten();
    }
    Err("activations exceed the memory".to_owned())
}

/// Returns the iteration end in seconds and the highest peak memory per rank.
fn simulate(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    layout: Layout,
    batch: &PackedBatch,
    replica: &ReplicaPlan,
) -> Result<(f64, Bytes), String> {
    let costs = group_costs::costs(scenario, pricing, layout, batch, replica);
    let execution = execute(&replica.schedule, &costs).map_err(|deadlock| deadlock.to_string())?;
    let end = StepEnd::from_executions(layout.data as usize, std::iter::once(&execution)).iteration_end(&costs);
    Ok((end.secs(), peak_memory_over(&replica.schedule, &execution, &costs).1))
}

/// Converts the sequences of a batch for the group solver.
fn sequences(batch: &PackedBatch, profile: &Profile) -> Vec<Sequence> {
    // An empty sample counts as a single token, so that the solver assigns it like any other.
    let to_sequence = |packed: &planscope_core::workload::Sequence| Sequence {
        tokens: packed.computed_tokens.max(1).into(),
        eta: profile.eta,
    };
    batch.sequences.iter().map(to_sequence).collect()
}

impl Setting<'_> {
    fn problem<'b>(&'b self, sequences: &'b [Sequence]) -> GroupProblem<'b> {
        GroupProblem {
            sequences,
            ranks: self.layout.data,
            tokens_per_rank: self.tokens_per_rank,
            degrees: &self.degrees,
            cost: &self.profile.fit.cost,
        }
    }

    fn grouped(&self, sequences: &[Sequence]) -> Result<BatchPlan, GroupError> {
        let problem = self.problem(sequences);
        match (self.context.planner, self.fixed) {
            (_, Some(degree)) => static_plan(problem, degree),
            (PlannerKind::BalancedContext, None) => megatron_balanced(problem),
            _ => plan_groups(problem, Effort::Portfolio),
        }
    }

    /// Reduces the token limit per rank by one step.
    fn tighten(&mut self) {
        self.tokens_per_rank = (self.tokens_per_rank as f64 * TIGHTENED) as u64;
    }

    /// Returns the fastest static degree that fits a sequence with `max_sequence_length` tokens.
    fn best_static_degree(&self, sequences: &[Sequence], max_length: u64) -> Option<u32> {
        let holding = static_degrees(self.problem(sequences))
            .into_iter()
            .filter(|(degree, _)| max_length <= u64::from(*degree) * self.tokens_per_rank);
        let timed = holding.filter_map(|(degree, seconds)| Some((seconds.ok()?, degree)));
        timed.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))).map(|(_, degree)| degree)
    }

    /// Raises a static degree to the next divisor of the rank count if the maximum sequence length
    /// no longer fits after [`Self::tighten`].
    fn fit_max_length(&mut self, batches: &[PackedBatch]) {
        let Some(degree) = self.fixed else { return };
        let max_length = max_sequence_length(batches);
        let holds = |other: u32| {
            self.layout.data.is_multiple_of(other) && max_length <= u64::from(other) * self.tokens_per_rank
        };
        let next = self.degrees.list().iter().copied().find(|&other| other >= degree && holds(other));
        if let Some(next) = next.filter(|&next| next > degree) {
            self.outgrown.get_or_insert(degree);
            self.fixed = Some(next);
        }
    }

    /// Returns a plan that fits on every batch, and the number of created communication groups.
    /// Reduces the token limit while simulated memory exceeds the profile's estimate.
    fn run(&mut self, observer: &mut dyn Observer) -> Result<(TestedPlan, usize), SearchError<String>> {
        let mut tightenings = 0;
        loop {
            self.fit_max_length(self.context.batches.evaluated);
            let (iterations, groups_made) = self.iterations(observer)?;
            let lists = iterations.iter().flat_map(|iteration| &iteration.replicas[0].microbatches);
            let max_sequences = lists.map(Vec::len).max().unwrap_or(1);
            let plan = Plan {
                layout: Layout { microbatch: max_sequences as u32, ..self.layout },
                partition: group_costs::single_stage_partition(&self.context.scenario.model),
                modules: Vec::new(),
                iterations,
                algorithm: algorithm(self.context.planner).to_owned(),
                status: SolverStatus::Heuristic,
                search: Search::default(),
                decisions: Vec::new(),
            };
            let misfit = match fits(self.context, plan, observer) {
                Ok(tested) => return Ok((tested, groups_made)),
                Err(error) => error.reason()?,
            };
            if tightenings == MAX_TIGHTENINGS {
                return Err(SearchError::Infeasible(format!("{} on another batch", misfit.reason)));
            }
            self.tighten();
            tightenings += 1;
        }
    }

    /// Returns the plans for all batches, and the number of created communication groups.
    fn iterations(&self, observer: &mut dyn Observer) -> Result<(Vec<IterationPlan>, usize), SearchError<String>> {
        let mut pool = GroupPool::default();
        let PlanningContext { planner: kind, batches: Batches { evaluated: batches, .. }, .. } = self.context;
        let each = EachBatch { kind, phase: "grouping batches", batches };
        let iterations = each.in_turn(observer, |index, batch, _| {
            self.iteration(batch, &mut pool).map_err(|reason| format!("iteration {index}: {reason}"))
        })?;
        Ok((iterations, pool.len()))
    }

    fn iteration(&self, batch: &PackedBatch, pool: &mut GroupPool) -> Result<IterationPlan, String> {
        let sequences = sequences(batch, &self.profile);
        let planned = self.grouped(&sequences).map_err(|error| error.to_string())?;
        let problem = self.problem(&sequences);
        let lockstep = self.context.scenario.training.zero_stage() >= 3;
        let (mut microbatches, mut groups) = (Vec::new(), Vec::new());
        let mut report = report::Report::new(&planned);
        let mut gang = 0;
        for (number, microbatch) in planned.microbatches.iter().enumerate() {
            let placement = assign_ranks(problem, microbatch);
            report.pool_count += pool.ask(&placement);
            let mut placed: Vec<_> = placement.groups.iter().collect();
            placed.sort_by_key(|placed| placed.group);
            // ZeRO-3 gathers weights and reduces gradients on all ranks at the same time, so all
            // groups run in lockstep.
            let together = lockstep && microbatch.grouping != Grouping::Sequential;
            for placed in placed {
                let group = &microbatch.groups[placed.group as usize];
                let items: Vec<Vec<u32>> = if microbatch.grouping == Grouping::Sequential {
                    group.sequences.iter().map(|&sequence| vec![sequence]).collect()
                } else {
                    vec![group.sequences.clone()]
                };
                for members in items {
                    groups.push(SequenceGroup {
                        ranks: placed.ranks.clone(),
                        microbatch: number as u32,
                        gang,
                        exchange: context_exchange(self.context.planner),
                        estimate: Seconds::from_secs(self.estimate(&sequences, &members, group.degree)).to_nanos(),
                    });
                    microbatches.push(members);
                    gang += u32::from(!together);
                }
            }
            gang += u32::from(together);
        }
        // A forward and a backward span per group and rank.
        let spans = 2 * groups.iter().map(|group| group.ranks.len() as u64).sum::<u64>();
        if (Spans { stored: spans, simulated: spans }).excess().is_some() {
            return Err("the spans of its groups exceed the limit of an answer".to_owned());
        }
        let schedule = group_costs::schedule(&groups, self.layout.data as usize);
        let replica = ReplicaPlan::new(microbatches, ReplicaKind::Groups(groups), schedule);
        Ok(IterationPlan { replicas: vec![replica], decision: Some(report.decision(&planned)) })
    }

    /// Fitted time of the sequences in a group of this degree, in seconds.
    fn estimate(&self, sequences: &[Sequence], members: &[u32], degree: u32) -> f64 {
        let loads = members.iter().map(|&sequence| Load::from_sequence(sequences[sequence as usize]));
        self.profile.fit.cost.seconds(loads.sum(), degree)
    }

    fn decisions(&self, sequences: usize, failed_later: u32, created_groups: usize) -> Vec<String> {
        let Layout { tensor, data: ranks, .. } = self.layout;
        let but = failed(failed_later);
        let mut decisions = vec![format!(
            "{ranks} ranks with TP {tensor}, each a model replica: the fastest layout on a representative batch of {sequences} sequences{but}."
        )];
        decisions.push(match (self.fixed, self.outgrown) {
            (Some(degree), None) => {
                format!("Context-parallel degree {degree} for every group: the fastest that divides the ranks and fits the longest sequence.")
            }
            (Some(degree), Some(smaller)) => format!(
                "Context-parallel degree {degree} for every group: {smaller} is faster, but the longest sequence does not fit."
            ),
            (None, _) => format!("New degrees for every microbatch; the run creates {created_groups} communication groups."),
        });
        decisions.push(format!(
            "A rank has memory for {} tokens in addition to {:.1} GiB of model states.",
            self.tokens_per_rank,
            self.profile.memory.states.gib()
        ));
        decisions.push(self.profile.summary());
        let exchange = Some(context_exchange(self.context.planner));
        let degrees = self.degrees.list().iter().map(|&context| AtDegrees { tensor, context, exchange });
        decisions.extend(measured_layers::summary(self.context.scenario, &degrees.collect::<Vec<_>>()));
        decisions
    }
}

#[cfg(test)]
mod tests;
