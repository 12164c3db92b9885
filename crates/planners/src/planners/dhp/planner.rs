//! Planners that cut long sequences over groups of model replicas: DHP and what it is compared with.
//!
//! A rank is a whole replica of the model, of TP devices. Every global batch becomes microbatches, and every microbatch
//! groups of ranks that share sequences (see [`crate::planners::dhp`]). The solvers minimise the cost that DHP fits to a
//! profile; the profile here is the operator graph of one rank. Plans that are close under this cost are compared by the
//! graph itself, which also judges them.

mod arrangement;
mod choice;
mod local_search;
mod prices;
mod profile;
mod report;
mod rules;

use crate::planners::batches::EachBatch;
use crate::planners::dhp::batch::unpacked_bound;
use crate::planners::dhp::group_costs;
use crate::planners::dhp::{
    AllowedDegrees, BatchPlan, GroupError, GroupPool, GroupProblem, Load, Measured, Sequence, static_plan,
    variable_length_plan,
};
use crate::planners::executed::{TestedPlan, fits};
use crate::planners::{Batches, NoPlan, PlanningContext, SearchError};
use planscope_core::training::ContextExchange;
use planscope_core::units::{Bytes, Seconds};
use planscope_core::workload::PackedBatch;
use planscope_cost::cost::Pricing;
use planscope_pipeline::simulate::{StepEnd, execute, peak_memory_over};
use planscope_plan::observer::{Observer, go_on};
use planscope_plan::outcome::{Layout, Loser, Search, SolverStatus};
use planscope_plan::plan::SequenceGroup;
use planscope_plan::plan::{IterationPlan, Plan, ReplicaKind, ReplicaPlan};
use planscope_plan::scenario::budget::Spans;
use planscope_plan::scenario::{PlannerKind, Scenario};

use arrangement::{Arrangement, Ranks};
use choice::CLOSE_STATIC;
use prices::Way;
use profile::{Profile, packed_sequence};
use rules::{broken_rule, does_not_apply, is_static, tensor_degrees};

/// Limit on reductions of the token limit, used when simulated memory exceeds the profile's
/// estimate.
const MAX_TIGHTENINGS: u32 = 6;
/// Factor per token limit reduction.
const TIGHTENED: f64 = 0.96;
/// Rounds in which the groups of a plan are added to the profile.
const REFINEMENTS: usize = 2;
/// Maximum ratio of the time of a TP degree on the sizing batch to the fastest, for degrees that are compared on
/// the batches of the run.
const CLOSE_LAYOUTS: f64 = 1.05;
/// Maximum number of TP degrees that are compared on the batches of the run.
const COMPARED: u32 = 3;

/// An exchange, the degrees that support it, and its fitted cost.
struct Side {
    exchange: ContextExchange,
    degrees: AllowedDegrees,
    profile: Profile,
}

/// Planner state for a tensor-parallel degree.
struct Setting<'a> {
    context: PlanningContext<'a>,
    layout: Layout,
    /// At least one.
    sides: Vec<Side>,
    /// Context-parallel degree of a static planner.
    fixed: Option<u32>,
    /// Degree that was fastest on the sizing batch but cannot fit the run's longest sequence.
    outgrown: Option<u32>,
    tokens_per_rank: u64,
}

/// A plan for the batches of the run.
struct Run {
    tested: TestedPlan,
    layout: Layout,
    decisions: Vec<String>,
    /// Seconds of all batches.
    seconds: f64,
    /// Seconds of the sizing batch.
    sized: f64,
}

/// Chooses TP on the sizing batch, and for static planners also the context-parallel degree. Then
/// plans every batch. If a TP degree fails on a batch, the next candidate is tried. TP degrees that are close on the
/// sizing batch are compared on the batches of the run.
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
    let (mut first, mut best, mut fastest) = (None, None::<Run>, f64::INFINITY);
    let (mut failed_later, mut compared) = (0, 0);
    for (seconds, mut setting) in sized {
        if best.is_some() && (seconds > fastest * CLOSE_LAYOUTS || compared == COMPARED) {
            search.losers.push(slower(seconds, setting.layout, "slower on the representative batch"));
            continue;
        }
        match setting.run(observer) {
            Ok((tested, groups_made)) => {
                fastest = fastest.min(seconds);
                compared += 1;
                let decisions = report::decisions(&setting, sizing.sequences.len(), failed_later, groups_made);
                let total = setting.run_seconds(&tested)?;
                let run = Run { tested, layout: setting.layout, decisions, seconds: total, sized: seconds };
                let loser = match &mut best {
                    Some(best) if best.seconds <= total => Some(run),
                    best => best.replace(run),
                };
                let reason = "slower on the batches of the run";
                search.losers.extend(loser.map(|loser| slower(loser.sized, loser.layout, reason)));
            }
            Err(error) => {
                let reason = error.reason()?;
                search.simulated -= 1;
                failed_later += u32::from(best.is_none());
                first.get_or_insert_with(|| reason.clone());
                search.reject(reason);
            }
        }
    }
    let Some(mut best) = best else {
        let binding = first.or(binding);
        let binding = binding.unwrap_or_else(|| "no tensor-parallel degree divides the devices".to_owned());
        return Err(NoPlan { binding, search }.into());
    };
    if compared > 1 {
        best.decisions.push(format!("{compared} TP degrees are close on the representative batch; this one is the fastest on the batches of the run."));
    }
    Ok(best.tested.with_report(search, best.decisions))
}

fn slower(seconds: f64, layout: Layout, reason: &str) -> Loser {
    Loser { layout, reason: reason.to_owned(), iteration_s: Some(seconds), peak_memory_gib: None }
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
    let mut sides: Vec<Side> = Vec::new();
    for &exchange in rules::exchanges(kind) {
        let degrees = rules::degrees(kind, exchange, &scenario.model, layout);
        // Degree 1 exchanges nothing, so another exchange without further degrees adds nothing.
        if sides.is_empty() || degrees.max_degree() > 1 {
            let profile = Profile::new(scenario, pricing, layout, exchange, sizing, &degrees)?;
            sides.push(Side { exchange, degrees, profile });
        }
    }
    let memory = &sides[0].profile.memory;
    let tokens_per_rank = memory.tokens();
    if tokens_per_rank == 0 {
        let (states, budget) = (memory.states.gib(), memory.budget.gib());
        return Err(format!("weights, gradients and optimizer state need {states:.1} GiB; {budget:.1} GiB available"));
    }
    let mut setting = Setting { context, layout, sides, fixed: None, outgrown: None, tokens_per_rank };
    if is_static(kind) {
        let degree = setting.best_static_degree(sizing, longest);
        let degree = degree.ok_or_else(|| "the longest sequence fits no degree that divides the ranks".to_owned())?;
        setting.fixed = Some(degree);
    }
    for _ in 0..REFINEMENTS {
        let sequences = sequences(scenario, sizing);
        let plans = setting.candidates(&sequences).map_err(|error| error.to_string())?;
        let arranged = setting.fastest(&plans, sizing, &sequences)?;
        setting.refine(&arranged);
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
fn sequences(scenario: &Scenario, batch: &PackedBatch) -> Vec<Sequence> {
    batch.sequences.iter().map(|packed| packed_sequence(scenario, packed)).collect()
}

impl Setting<'_> {
    fn problem<'b>(&'b self, side: &'b Side, sequences: &'b [Sequence]) -> GroupProblem<'b> {
        GroupProblem {
            sequences,
            ranks: self.layout.data,
            tokens_per_rank: self.tokens_per_rank,
            degrees: &side.degrees,
            cost: &side.profile.fit.cost,
        }
    }

    fn ranks(&self) -> Ranks {
        // ZeRO-3 gathers weights and reduces gradients on all ranks at the same time.
        let lockstep = self.context.scenario.training.zero_stage() >= 3;
        Ranks { count: self.layout.data, node: self.sides[0].profile.fit.cost.ranks_per_node.max(1), lockstep }
    }

    /// Exchanges of a group of this degree.
    fn ways(&self, degree: u32) -> Vec<Way> {
        let allowed = |side: &&Side| side.degrees.list().binary_search(&degree).is_ok();
        let ways = self.sides.iter().filter(allowed).map(|side| (side.exchange, degree));
        ways.take(if degree > 1 { usize::MAX } else { 1 }).collect()
    }

    /// Fitted time of a load in a group, in seconds.
    fn fitted(&self, load: Load, (exchange, degree): Way) -> f64 {
        let side = self.sides.iter().find(|side| side.exchange == exchange).unwrap_or(&self.sides[0]);
        side.profile.fit.cost.seconds(load, degree)
    }

    /// Adds the groups of a plan to the profile of their exchange.
    fn refine(&mut self, arranged: &Arrangement) {
        for side in &mut self.sides {
            let own = arranged.items.iter().filter(|item| item.degree == 1 || item.exchange == side.exchange);
            side.profile.refine(own.map(|item| Measured {
                load: item.load,
                degree: item.degree,
                seconds: item.time.total(),
            }));
        }
    }

    /// Reduces the token limit per rank by one step.
    fn tighten(&mut self) {
        self.tokens_per_rank = (self.tokens_per_rank as f64 * TIGHTENED) as u64;
    }

    /// Plans one degree for all groups by the rule of the planner.
    fn fixed_plan(&self, problem: GroupProblem<'_>, degree: u32) -> Result<BatchPlan, GroupError> {
        match self.context.planner {
            PlannerKind::WlbLlm => variable_length_plan(problem, degree),
            _ => static_plan(problem, degree),
        }
    }

    /// Static degrees that fit a sequence with `max_length` tokens, with their estimated seconds.
    fn static_candidates(&self, sequences: &[Sequence], max_length: u64) -> Vec<(f64, u32)> {
        let holds = |degree: &u32| {
            self.layout.data.is_multiple_of(*degree) && max_length <= u64::from(*degree) * self.tokens_per_rank
        };
        let holding = self.sides[0].degrees.list().iter().copied().filter(holds);
        let problem = self.problem(&self.sides[0], sequences);
        holding.filter_map(|degree| Some((self.fixed_plan(problem, degree).ok()?.seconds, degree))).collect()
    }

    /// Returns the static degree that is fastest on a batch by the operator graph, and fits a sequence with `max_length`
    /// tokens.
    fn best_static_degree(&self, batch: &PackedBatch, max_length: u64) -> Option<u32> {
        let sequences = sequences(self.context.scenario, batch);
        let candidates = self.static_candidates(&sequences, max_length);
        let fastest = candidates.iter().map(|(seconds, _)| *seconds).fold(f64::INFINITY, f64::min);
        let close = candidates.into_iter().filter(|(seconds, _)| *seconds <= fastest * CLOSE_STATIC);
        let timed = close.filter_map(|(_, degree)| {
            let plan = self.fixed_plan(self.problem(&self.sides[0], &sequences), degree).ok()?;
            Some((self.fastest(&[plan], batch, &sequences).ok()?.seconds, degree))
        });
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
        let next = self.sides[0].degrees.list().iter().copied().find(|&other| other >= degree && holds(other));
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
                algorithm: rules::algorithm(self.context.planner).to_owned(),
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

    /// Seconds of all batches of the run.
    fn run_seconds(&self, tested: &TestedPlan) -> Result<f64, NoPlan> {
        let PlanningContext { scenario, pricing, batches, .. } = self.context;
        let mut total = 0.0;
        for (iteration, batch) in tested.plan().iterations.iter().zip(batches.evaluated) {
            let simulated = simulate(scenario, pricing, self.layout, batch, &iteration.replicas[0]);
            total += simulated.map_err(NoPlan::inapplicable)?.0;
        }
        Ok(total)
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
        let sequences = sequences(self.context.scenario, batch);
        let plans = self.candidates(&sequences).map_err(|error| error.to_string())?;
        let arranged = self.fastest(&plans, batch, &sequences)?;
        let on = self.ranks();
        let report = report::Report::new(&arranged, pool, (self.estimated(&arranged), self.bound(&sequences)));
        let (mut microbatches, mut groups) = (Vec::new(), Vec::new());
        for (index, (item, ranks)) in arranged.items.into_iter().zip(arranged.ranks).enumerate() {
            let estimate = self.fitted(item.load, (item.exchange, item.degree));
            groups.push(SequenceGroup {
                ranks,
                microbatch: item.microbatch,
                gang: if on.lockstep { item.microbatch } else { index as u32 },
                exchange: item.exchange,
                estimate: Seconds::from_secs(estimate).to_nanos(),
            });
            microbatches.push(item.sequences);
        }
        // A forward and a backward span per group and rank.
        let spans = 2 * groups.iter().map(|group| group.ranks.len() as u64).sum::<u64>();
        if (Spans { stored: spans, simulated: spans }).excess().is_some() {
            return Err("the spans of its groups exceed the limit of an answer".to_owned());
        }
        let schedule = group_costs::schedule(&groups, self.layout.data as usize);
        let replica = ReplicaPlan::new(microbatches, ReplicaKind::Groups(groups), schedule);
        Ok(IterationPlan { replicas: vec![replica], decision: Some(report.decision()) })
    }

    /// Lower bound of all plans under the fitted cost, in seconds, packed or not: the smaller one of both exchanges.
    fn bound(&self, sequences: &[Sequence]) -> f64 {
        let bounds = self.sides.iter().map(|side| unpacked_bound(self.problem(side, sequences)));
        bounds.fold(f64::INFINITY, f64::min)
    }

    /// Seconds of an arrangement under the fitted cost.
    fn estimated(&self, arranged: &Arrangement) -> f64 {
        arranged.seconds_with(self.ranks(), |item| self.fitted(item.load, (item.exchange, item.degree)))
    }
}

#[cfg(test)]
mod tests;
