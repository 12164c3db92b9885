//! DFLOP: layouts of encoder and backbone chosen from the data, microbatches balanced for every batch anew.
//!
//! The model profiler prices both modules under every tensor-parallel degree, the data profiler the sequences of the representative
//! batch; the optimizer ([`crate::planners::dflop::optimize`]) proposes strategies by its two objectives, which are simulated on that
//! batch. Of every batch the online scheduler ([`crate::planners::dflop::partition`]) makes N_mb x L_dp buckets; bucket i goes to copy
//! i mod L_dp of the backbone. What the encoder's copies make of a round of buckets crosses to the backbone's copies over the
//! boundary, and all ranks run 1F1B.

mod order;
mod profile;
mod round;
#[cfg(test)]
mod tests;

use crate::planners::batches::{EachBatch, SpanCount};
use crate::planners::dflop::partition::fill_empty;
use crate::planners::dflop::{
    Configuration, ConfigurationEstimate, Degrees, Fixed, Item, ItemWork, Optimized, OptimizerError, OptimizerInput,
    PartitionSettings, Round, item_seconds, optimize, partition_until, shortlist,
};
use crate::planners::executed::{TestedPlan, fits};
use crate::planners::infeasible::Infeasibility;
use crate::planners::module_layouts::module_costs;
use crate::planners::{Batches, NoPlan, PlanningContext, SearchError};
use planscope_cost::cost::partition::ModuleWeight;
use planscope_cost::cost::{MicrobatchLoad, Partition};
use planscope_plan::observer::{Cancelled, Observer, go_on};
use planscope_plan::outcome::{Layout, Loser, Search, SolverStatus};
use planscope_plan::plan::Arrangement;
use planscope_plan::plan::{IterationPlan, ModuleLayout, Plan, ReplicaKind, ReplicaPlan};
use planscope_plan::scenario::{PlannerKind, Scenario};

use planscope_pipeline::simulate::{StepEnd, execute, peak_memory_over};

use planscope_core::model::Model;
use planscope_core::workload::PackedBatch;

/// Simulated strategies for balanced microbatches, in addition to the choices of the published
/// objectives.
const SHORTLIST: usize = 16;
/// Limit on items from the representative batch in the optimizer input. The means stay accurate,
/// and the optimizer runs in milliseconds.
const SAMPLED: usize = 64;
/// Step limit of the online scheduler per batch (about 50 ms), and its target gap.
const SCHEDULER: PartitionSettings = PartitionSettings { steps: 5_000_000, gap: 1e-4 };
/// Limit on optimizer runs. The memory limit decreases per run if simulated memory exceeds the
/// tables.
const MAX_TIGHTENINGS: u32 = 12;
/// Internal reason of a cancelled batch. Users never see it.
const CANCELLED: &str = "planning was cancelled";
/// Factor per memory limit reduction.
const TIGHTENED: f64 = 0.94;

struct Planner<'a> {
    context: PlanningContext<'a>,
    input: OptimizerInput,
    /// Tokens sent from encoder to backbone in the representative batch.
    handed_on: f64,
}

/// A strategy, including layouts, stages and ranks.
struct Sized {
    estimate: ConfigurationEstimate,
    layouts: [ModuleLayout; 2],
    partition: Partition,
    arrangement: Arrangement,
}

/// Plan for a batch.
struct Filled {
    replica: ReplicaPlan,
    decision: String,
}

impl SpanCount for Filled {
    fn spans(&self) -> u64 {
        self.replica.spans()
    }
}

/// Chooses the strategy on the sizing batch, then balances every batch.
pub(crate) fn plan(
    context: PlanningContext<'_>,
    observer: &mut dyn Observer,
) -> Result<TestedPlan, SearchError<NoPlan>> {
    let PlanningContext { scenario, batches: Batches { sizing, .. }, .. } = context;
    if let Some(binding) = does_not_apply(scenario) {
        return Err(NoPlan::inapplicable(binding).into());
    }
    let load = MicrobatchLoad::new(&sizing.sequences, &scenario.model, scenario.workload.packing);
    let handed_on = load.entering(&scenario.model, 1);
    let mut planner = Planner { context, input: input(scenario, sizing), handed_on };
    let mut search = Search::default();
    let mut binding = String::new();
    for _ in 0..MAX_TIGHTENINGS {
        go_on(observer)?;
        let optimized = match optimize(&planner.input) {
            Ok(optimized) => optimized,
            Err(error) => {
                let binding = if binding.is_empty() { error.to_string() } else { binding };
                return Err(NoPlan { binding, search }.into());
            }
        };
        let shortlist = shortlist(&planner.input, SHORTLIST).unwrap_or_default();
        let choices = candidates(&shortlist, &optimized);
        search.candidates = search.candidates.saturating_add(u32::try_from(optimized.pairs).unwrap_or(u32::MAX));
        let mut sized = planner.simulated(&choices, sizing, &mut search, observer)?;
        sized.sort_by(|a, b| a.0.total_cmp(&b.0));
        for index in 0..sized.len() {
            match planner.planned(&sized[index].1, observer) {
                Ok(plan) => {
                    search.losers = sized.iter().enumerate().filter(|(other, _)| *other != index).map(loser).collect();
                    search.pruned = search.candidates.saturating_sub(search.simulated + search.rejected);
                    let decisions = planner.decisions(&sized[index], &optimized, (&shortlist, sizing.sequences.len()));
                    return Ok(plan.with_report(search, decisions));
                }
                Err(error) => {
                    let misfit = error.reason()?;
                    binding.clone_from(&misfit.reason);
                    search.reject(misfit.reason);
                }
            }
        }
        if binding.is_empty() {
            "no strategy of the optimizer fits in memory".clone_into(&mut binding);
        }
        planner.input.memory *= TIGHTENED;
    }
    Err(NoPlan { binding, search }.into())
}

/// Returns the shortlist plus the choices of the other objectives and the published rule. Removes
/// duplicates.
fn candidates(shortlist: &[ConfigurationEstimate], optimized: &Optimized) -> Vec<ConfigurationEstimate> {
    let others = [Some(optimized.by_mean_time), Some(optimized.by_mean_item), optimized.published];
    let mut choices: Vec<ConfigurationEstimate> = Vec::new();
    for estimate in shortlist.iter().copied().chain(others.into_iter().flatten()) {
        if choices.iter().all(|known| known.configuration != estimate.configuration) {
            choices.push(estimate);
        }
    }
    choices
}

fn loser((_, (seconds, sized)): (usize, &(f64, Sized))) -> Loser {
    Loser {
        layout: sized.summary(),
        reason: format!("slower on the representative batch: {}", describe(&sized.estimate.configuration)),
        iteration_s: Some(*seconds),
        peak_memory_gib: None,
    }
}

/// Returns whether the model has the modules that DFLOP plans.
pub(crate) fn has_encoder_and_backbone(model: &Model) -> bool {
    profile::encoder_index(model).is_some()
}

/// Returns an explanation if DFLOP does not apply to the scenario.
fn does_not_apply(scenario: &Scenario) -> Option<String> {
    if profile::encoder_index(&scenario.model).is_none() {
        let names: Vec<&str> = scenario.model.modules.iter().map(|module| module.name.as_str()).collect();
        let has = match names.as_slice() {
            [single] => format!("{single} is the only module of this model"),
            [all @ .., last] => format!("this model has {} and {last}", all.join(", ")),
            [] => "this model has no module".to_owned(),
        };
        return Some(format!("does not apply: it plans one encoder and one backbone, and {has}"));
    }
    let training = &scenario.training;
    (training.context_parallel > 1 || training.expert_parallel > 1)
        .then(|| "does not apply: its layouts have no context or expert parallelism".to_owned())
}

/// Builds the optimizer input from the model profiler (DFLOP Sec. 3.2.1) and the data profiler
/// (DFLOP Sec. 3.2.2).
fn input(scenario: &Scenario, sizing: &PackedBatch) -> OptimizerInput {
    let items: Vec<ItemWork> =
        sizing.sequences.iter().map(|sequence| profile::work(&scenario.model, sequence)).collect();
    OptimizerInput {
        devices: scenario.cluster.devices(),
        devices_per_node: scenario.cluster.devices_per_node,
        memory: scenario.memory_limit().get() as f64,
        global_batch: sizing.sequences.len() as u32,
        encoder: profile::encoder(scenario),
        backbone: profile::backbone(scenario),
        items: sampled(items),
        fixed: Fixed {
            tensor: scenario.layout.tensor,
            pipeline: scenario.layout.pipeline,
            items: scenario.layout.microbatch,
        },
    }
}

/// Images or clips per item, and tokens in units of a step.
pub(crate) type ItemShape = (u32, u32);

/// Returns items for the online scheduler, including their shapes: images or clips, and tokens in
/// units of `step`.
pub fn shaped_items(
    scenario: &Scenario,
    sizing: &PackedBatch,
    configuration: &Configuration,
    batch: &PackedBatch,
    step: u32,
) -> Result<Vec<(Item, ItemShape)>, OptimizerError> {
    let works: Vec<ItemWork> =
        batch.sequences.iter().map(|sequence| profile::work(&scenario.model, sequence)).collect();
    let items = item_seconds(&input(scenario, sizing), configuration, &works)?;
    let shape = |work: &ItemWork| (work.batch as u32, (work.length as u32).div_ceil(step.max(1)));
    Ok(items.into_iter().zip(works.iter().map(shape)).collect())
}

/// Reduces the items to at most [`SAMPLED`] bins, sorted by work. A bin stores mean values, and the
/// number of items as weight.
fn sampled(mut items: Vec<ItemWork>) -> Vec<ItemWork> {
    let count = items.len();
    if count <= SAMPLED {
        return items;
    }
    let key = |item: &ItemWork| item.linear_flops + item.encoder_flops;
    items.sort_by(|a, b| key(a).total_cmp(&key(b)));
    let mean = |items: &[ItemWork]| {
        let weight = items.len() as f64;
        let average = |part: fn(&ItemWork) -> f64| items.iter().map(part).sum::<f64>() / weight;
        ItemWork {
            batch: average(|item| item.batch),
            length: average(|item| item.length),
            encoder_flops: average(|item| item.encoder_flops),
            linear_flops: average(|item| item.linear_flops),
            attention_flops: average(|item| item.attention_flops),
            weight,
        }
    };
    (0..SAMPLED).map(|bin| mean(&items[bin * count / SAMPLED..(bin + 1) * count / SAMPLED])).collect()
}

impl Sized {
    /// Returns the backbone's degrees, for outputs that show a single layout.
    fn summary(&self) -> Layout {
        let Degrees { tensor, pipeline, data } = self.estimate.configuration.backbone;
        Layout { tensor, pipeline, data, chunks: 1, microbatch: 1, group: None }
    }
}

impl Planner<'_> {
    /// Returns the feasible strategies on the sizing batch, including simulated times in seconds.
    fn simulated(
        &self,
        choices: &[ConfigurationEstimate],
        sizing: &PackedBatch,
        search: &mut Search,
        observer: &dyn Observer,
    ) -> Result<Vec<(f64, Sized)>, Cancelled> {
        let mut sized = Vec::new();
        for &estimate in choices {
            go_on(observer)?;
            let found = self.size(estimate).and_then(|candidate| {
                let filled = self.fill(&candidate, sizing, observer)?;
                let seconds = self.simulate(&candidate, &filled.replica, sizing)?;
                Ok((seconds, candidate))
            });
            match found {
                Ok(found) => {
                    search.simulated += 1;
                    sized.push(found);
                }
                Err(misfit) => search.reject(misfit.reason),
            }
        }
        Ok(sized)
    }

    /// Places the modules of a strategy and assigns layers to stages.
    fn size(&self, estimate: ConfigurationEstimate) -> Result<Sized, Infeasibility> {
        let Configuration { encoder, backbone, .. } = estimate.configuration;
        // Place larger tensor-parallel groups at the start, so that smaller groups are aligned and
        // stay inside a node.
        let (encoder_device, backbone_device) =
            if encoder.tensor > backbone.tensor { (0, encoder.devices()) } else { (backbone.devices(), 0) };
        let layout = |first: u32, degrees: Degrees, first_device: u32| ModuleLayout {
            first,
            end: first + 1,
            tensor: degrees.tensor,
            context: 1,
            pipeline: degrees.pipeline,
            data: degrees.data,
            expert: 1,
            first_device,
            copies_per_rank: 1,
        };
        let layouts = [layout(0, encoder, encoder_device), layout(1, backbone, backbone_device)];
        let stages = [encoder.pipeline, backbone.pipeline];
        let partition = Partition::by_module(&self.context.scenario.model, &self.weights(&estimate), 1, &stages)
            .ok_or_else(|| Infeasibility::rule("a module has fewer layers than stages"))?;
        let arrangement = Arrangement::new(&layouts, &partition, 2).map_err(|reason| Infeasibility::rule(&reason))?;
        Ok(Sized { estimate, layouts, partition, arrangement })
    }

    /// Computes layer weights of both modules for a mean microbatch.
    fn weights(&self, estimate: &ConfigurationEstimate) -> Vec<ModuleWeight> {
        let Configuration { encoder, backbone, microbatches } = estimate.configuration;
        let model = &self.context.scenario.model;
        let total: f64 = self.input.items.iter().map(|item| item.weight).sum();
        let mean = |part: fn(&ItemWork) -> f64| {
            self.input.items.iter().map(|item| part(item) * item.weight).sum::<f64>() / total
        };
        let share = |degrees: Degrees| share(self.input.global_batch, microbatches, degrees.data);
        let items = mean(|item| item.batch) * share(encoder);
        let length = f64::from(model.modules[0].tokens_per_item());
        let tokens = mean(|item| item.length) * share(backbone);
        let squared = mean(|item| item.length * item.length) * share(backbone);
        let loads = [
            planscope_cost::cost::ModuleLoad {
                items,
                ..planscope_cost::cost::ModuleLoad::unpadded(items * length, items * length * length)
            },
            planscope_cost::cost::ModuleLoad::unpadded(tokens, squared),
        ];
        let load =
            [MicrobatchLoad { modules: loads.to_vec(), shape: planscope_core::timeline::MicrobatchShape::default() }];
        let module_weight = |module: usize, degrees: Degrees| {
            self.context.pricing.table(degrees.tensor, &load).mean_weight(module, &[0], degrees.pipeline)
        };
        vec![module_weight(0, encoder), module_weight(1, backbone)]
    }

    /// Builds the replica plan for a batch: buckets, parts and order of actions.
    fn fill(&self, sized: &Sized, batch: &PackedBatch, observer: &dyn Observer) -> Result<Filled, Infeasibility> {
        let (microbatches, decision) = self.buckets(&sized.estimate.configuration, batch, observer)?;
        if observer.cancelled() {
            return Err(Infeasibility::rule(CANCELLED));
        }
        let [encoder, backbone] = &sized.layouts;
        let parts = round::parts(self.context.scenario, batch, &microbatches, (encoder.data, backbone.data));
        let rounds = microbatches.len() / backbone.data as usize;
        let schedule = order::schedule(&sized.layouts, &sized.arrangement, &parts, rounds);
        let replica = ReplicaPlan::new(microbatches, ReplicaKind::Parts(parts), schedule);
        Ok(Filled { replica, decision })
    }

    /// Returns the sequences per bucket, and a text about the balance.
    fn buckets(
        &self,
        configuration: &Configuration,
        batch: &PackedBatch,
        observer: &dyn Observer,
    ) -> Result<(Vec<Vec<u32>>, String), Infeasibility> {
        let copies = configuration.backbone.data;
        let count = batch.sequences.len() as u32;
        if count < copies {
            return Err(Infeasibility::rule("a batch has fewer sequences than the backbone has copies"));
        }
        let rounds = configuration.microbatches.min(count / copies);
        let buckets = (rounds * copies) as usize;
        let works: Vec<ItemWork> =
            batch.sequences.iter().map(|sequence| profile::work(&self.context.scenario.model, sequence)).collect();
        let items = item_seconds(&self.input, configuration, &works)
            .map_err(|error| Infeasibility::rule(&error.to_string()))?;
        let as_it_comes = in_order(items.len(), buckets);
        let before = partition_makespan(&items, &as_it_comes);
        if self.context.planner == PlannerKind::DflopLayout {
            return Ok((as_it_comes, format!("{rounds} microbatches per copy, the longest {:.1} ms", before * 1e3)));
        }
        let dealt = partition_until(&items, buckets, SCHEDULER, &|| observer.cancelled())
            .map_err(|error| Infeasibility::rule(&error.to_string()))?;
        let mut filled = dealt.buckets;
        fill_empty(&mut filled);
        let decision = format!(
            "{rounds} microbatches per copy, the longest {:.1} ms, at most {:.3} % above the lower bound; {:.1} ms in data-loader order",
            dealt.makespan * 1e3,
            dealt.gap * 100.0,
            before * 1e3
        );
        Ok((filled, decision))
    }

    /// Returns the batch end in seconds, or an error if memory is exceeded.
    fn simulate(&self, sized: &Sized, replica: &ReplicaPlan, batch: &PackedBatch) -> Result<f64, Infeasibility> {
        let placed = (&sized.layouts[..], &sized.partition);
        let costs = module_costs::costs(self.context.scenario, self.context.pricing, placed, batch, replica)
            .map_err(|reason| Infeasibility::rule(&reason))?;
        let execution = execute(&replica.schedule, &costs).map_err(|_| Infeasibility::deadlock())?;
        let (rank, peak) = peak_memory_over(&replica.schedule, &execution, &costs);
        if peak > self.context.scenario.memory_limit() {
            return Err(Infeasibility::activations(rank, peak));
        }
        let mut end = StepEnd::from_executions(sized.arrangement.ranks.len(), std::iter::once(&execution));
        end.join(&sized.arrangement.synchronised(&sized.layouts));
        Ok(end.iteration_end(&costs).secs())
    }

    /// Plans all batches, or returns an error if memory is exceeded.
    fn planned(&self, sized: &Sized, observer: &mut dyn Observer) -> Result<TestedPlan, SearchError<Infeasibility>> {
        let PlanningContext { planner: kind, batches: Batches { evaluated: batches, .. }, .. } = self.context;
        let each = EachBatch { kind, phase: "balancing batches", batches };
        let filled = each.side_by_side(observer, |_, batch, observer| self.fill(sized, batch, observer))?;
        fits(self.context, self.build_plan(sized, filled), observer)
    }

    fn build_plan(&self, sized: &Sized, filled: Vec<Filled>) -> Plan {
        let iteration =
            |Filled { replica, decision }| IterationPlan { replicas: vec![replica], decision: Some(decision) };
        Plan {
            layout: sized.summary(),
            partition: sized.partition.clone(),
            modules: sized.layouts.to_vec(),
            iterations: filled.into_iter().map(iteration).collect(),
            algorithm: match self.context.planner {
                PlannerKind::DflopLayout => "data-aware optimizer; microbatches in data-loader order, 1F1B",
                _ => "data-aware optimizer; online microbatch scheduler (LPT and local search against a bound), 1F1B",
            }
            .to_owned(),
            status: SolverStatus::Heuristic,
            search: Search::default(),
            decisions: Vec::new(),
        }
    }

    fn decisions(
        &self,
        (seconds, sized): &(f64, Sized),
        optimized: &Optimized,
        (shortlist, sequences): (&[ConfigurationEstimate], usize),
    ) -> Vec<String> {
        let estimate = &sized.estimate;
        let by = |objective: &str, selected: &ConfigurationEstimate, time: f64| {
            format!("Selected by {objective}: {}, {time:.2} s.", describe(&selected.configuration))
        };
        let mut decisions = vec![
            format!(
                "{}: {seconds:.2} s on a representative batch of {sequences} sequences. It is the fastest of the strategies that the \
                 objectives below select from {} strategies ({} pairs of degrees).",
                describe(&estimate.configuration),
                optimized.strategies,
                optimized.pairs,
            ),
            format!(
                "A microbatch of mean items takes {:.1} ms on an encoder stage and {:.1} ms on a backbone stage. Estimated step time: {:.2} s for \
                 the mean item, {:.2} s as the mean over items, {:.2} s with the longest item in one microbatch.",
                estimate.encoder_seconds * 1e3,
                estimate.backbone_seconds * 1e3,
                estimate.mean_item_time,
                estimate.mean_time,
                estimate.balanced
            ),
            by(
                "the time of the mean item (Algorithm 1)",
                &optimized.by_mean_item,
                optimized.by_mean_item.mean_item_time,
            ),
            by("the mean of times (Eq. 1)", &optimized.by_mean_time, optimized.by_mean_time.mean_time),
        ];
        decisions.extend(shortlist.first().map(|best| by("the longest item in one microbatch", best, best.balanced)));
        if let Some(published) = &optimized.published {
            decisions.push(by("the rule of the published program", published, published.mean_item_time));
        }
        decisions.push(self.handed_on(&estimate.configuration));
        let full = self.context.scenario.memory_limit().get() as f64;
        if self.input.memory < full {
            decisions.push(format!(
                "The search uses {:.0} % of the memory limit, because activations are larger than the profile states.",
                100.0 * self.input.memory / full
            ));
        }
        decisions
    }
}

impl Planner<'_> {
    /// Describes the transfer from encoder to backbone for a round of mean items (DFLOP Sec. 4).
    fn handed_on(&self, configuration: &Configuration) -> String {
        let modules = &self.context.scenario.model.modules;
        let round = Round {
            encoder_copies: configuration.encoder.data,
            backbone_copies: configuration.backbone.data,
            tokens: self.handed_on / f64::from(configuration.microbatches),
            token_bytes: self.context.scenario.training.width() * f64::from(modules[1].hidden),
            readers: configuration.backbone.tensor,
        };
        let mib = |bytes: f64| bytes / f64::from(1 << 20);
        format!(
            "Each round sends {:.0} MiB point-to-point from {} encoder copies to {} backbone copies, and the same amount back. The single \
             communicator of the published program would transfer {:.0} MiB.",
            mib(round.direct() / 2.0),
            round.encoder_copies,
            round.backbone_copies,
            mib(round.traffic().through_communicator())
        )
    }
}

/// Assigns sequences to buckets in data-loader order. Bucket sizes are equal up to rounding.
fn in_order(count: usize, buckets: usize) -> Vec<Vec<u32>> {
    let cut = |bucket: usize| (count * bucket / buckets) as u32;
    (0..buckets).map(|bucket| (cut(bucket)..cut(bucket + 1)).collect()).collect()
}

/// Mean item count per microbatch and copy.
fn share(batch: u32, microbatches: u32, copies: u32) -> f64 {
    f64::from(batch) / (f64::from(microbatches) * f64::from(copies))
}

/// C_max of the buckets (DFLOP Eq. 6), in seconds.
fn partition_makespan(items: &[Item], buckets: &[Vec<u32>]) -> f64 {
    let sum = |bucket: &Vec<u32>| {
        bucket.iter().fold((0.0, 0.0), |(encoder, backbone), &item| {
            let Item { encoder: e, backbone: l } = items[item as usize];
            (encoder + e, backbone + l)
        })
    };
    buckets.iter().map(sum).fold(0.0, |max, (encoder, backbone)| max.max(encoder).max(backbone))
}

fn describe(configuration: &Configuration) -> String {
    let degrees = |Degrees { tensor, pipeline, data }: Degrees| format!("TP {tensor} · PP {pipeline} · DP {data}");
    format!(
        "encoder {}, backbone {}, {} microbatches",
        degrees(configuration.encoder),
        degrees(configuration.backbone),
        configuration.microbatches
    )
}
