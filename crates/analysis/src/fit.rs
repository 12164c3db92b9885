//! Fit of a scenario: the memory need by rank and term, and the single changes that help most.
//!
//! Every change is planned and simulated on one global batch, with the planner of the scenario. The planner keeps
//! all other settings of the scenario. Free degrees are those of the scenario's plan; the fastest changes are planned again
//! with all free settings.

mod changes;
mod combination;
mod completion;
mod degrees;
mod devices;
mod risk;
mod selection;
#[cfg(test)]
mod tests;

pub use completion::{Completed, complete};
pub use devices::{DeviceTable, FewestDevices, fewest_devices};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::analysis::AnalysisError;
use changes::{LAYERS_PER_STAGE, PLANNERS, Proposal, pairs, proposals};
use combination::Combining;
use planscope_core::host::{Cancellation, SequentialWorkers, Workers, side_by_side};
use planscope_plan::certainty;
use planscope_plan::observer::Observer;
use planscope_plan::outcome::{Layout, PlanOutcome, Planned, RankMemory, RankNeed, is_even, layer_counts, range_name};
use planscope_plan::scenario::{FreeSetting, PlannerKind, Scenario, ValidScenario};
use planscope_planners::engine::{self, PlanError};
use risk::Risk;
use selection::{drop_redundant_search, keep_one_of_a_kind, sort};

/// Maximum number of reported changes.
pub const MAX_CHANGES: usize = 10;
/// Changes of a feasible plan that save a smaller share of its time are not reported.
const MIN_SHARE: f64 = 0.002;

/// Memory need of a scenario and its most useful single changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Fit {
    /// Planner of all figures.
    pub planner: PlannerKind,
    /// Result for the scenario itself.
    pub base: FitResult,
    /// Memory by rank and term, of the plan or of the layout with the smallest need.
    pub ranks: Vec<RankNeed>,
    /// Memory limit per device in GiB: device memory without the reserve.
    pub limit_gib: f64,
    /// Single changes that fit, in ascending iteration time, at most 10. If the scenario fits, only changes that
    /// save time. If it fits with a risk of running out of memory, changes that remove the risk come first.
    pub changes: Vec<Change>,
    /// Number of simulated changes.
    pub simulated: u32,
    /// Number of changes that do not fit.
    pub rejected: u32,
    /// Changes of `changes` that save most time together; omitted if no two of them do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub combination: Option<Combination>,
    /// True if the time limit was reached before all changes were simulated.
    pub is_partial: bool,
}

/// Result of one scenario on one global batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FitResult {
    /// Layout of the plan, or the layout with the smallest memory need.
    pub layout: Option<Layout>,
    /// Iteration time in s; omitted if nothing fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration_s: Option<f64>,
    /// Tokens per second and device; omitted if nothing fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_s_per_device: Option<f64>,
    /// Highest peak memory of a rank in GiB, without the reserve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_gib: Option<f64>,
    /// Layers of each stage, if they differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stage_layers: Vec<u32>,
    /// Binding constraint if nothing fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<String>,
}

/// Part of the scenario that a change modifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// Degrees, microbatch, layers per stage.
    Layout,
    /// Recomputation, offload, ZeRO stage, formats, kernels.
    Training,
    /// Nodes and links.
    Cluster,
    /// Packing.
    Workload,
}

/// New value of a field of the scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FieldChange {
    /// JSON pointer into the scenario.
    pub pointer: String,
    /// New value. `null` removes the field.
    pub value: Value,
}

/// A single change of the scenario that fits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Change {
    /// Description, for example "recompute 4 layers per stage".
    pub title: String,
    /// Part of the scenario.
    pub kind: ChangeKind,
    /// Fields to change.
    pub fields: Vec<FieldChange>,
    /// Result with the change.
    pub result: FitResult,
    /// Change of the iteration time in s; omitted if the scenario itself does not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference_s: Option<f64>,
    /// Probability that a run with the change is faster (docs/models.md, section 18); omitted if the scenario itself
    /// does not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability_faster: Option<f64>,
}

/// Several changes applied together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Combination {
    /// Indices into the list of changes.
    pub changes: Vec<u32>,
    /// Result with these changes.
    pub result: FitResult,
    /// Change of the iteration time in s; omitted if the scenario itself does not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference_s: Option<f64>,
}

/// Memory need of a scenario and its plan on one global batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Need {
    /// Need and limit, without changes.
    pub fit: Fit,
    /// The plan, if one fits.
    pub plan: Option<Box<Planned>>,
}

/// Returns the memory need and the plan, without changes.
///
/// # Errors
/// The scenario cannot be planned within the limits, or the time is up.
pub fn need(
    valid: &ValidScenario,
    planner: Option<PlannerKind>,
    workers: &dyn Workers,
    cancellation: &dyn Cancellation,
) -> Result<Need, AnalysisError> {
    let planner = planner.unwrap_or_else(|| reference_planner(valid));
    let document = document(valid);
    let watch = Watch { draws_timelines: true, ..Watch::new(workers, cancellation) };
    let Evaluated { result, ranks, plan } = base(&document, valid, planner, &watch)?;
    let limit_gib = valid.scenario().memory_limit().gib();
    let (changes, simulated, rejected, combination, is_partial) = (Vec::new(), 0, 0, None, false);
    let fit = Fit { planner, base: result, ranks, limit_gib, changes, simulated, rejected, combination, is_partial };
    Ok(Need { fit, plan })
}

pub(crate) fn document(valid: &ValidScenario) -> Value {
    serde_json::to_value(valid.scenario()).expect("a scenario has only text keys")
}

/// Plans the scenario itself.
pub(crate) fn base(
    document: &Value,
    valid: &ValidScenario,
    planner: PlannerKind,
    watch: &Watch<'_>,
) -> Result<Evaluated, AnalysisError> {
    let too_large = || AnalysisError::Unplanned("its plans exceed the limits of an answer".to_owned());
    evaluate(document, valid, planner, watch)?.ok_or_else(too_large)
}

/// Returns the memory need and the changes that help most.
///
/// # Errors
/// The scenario itself cannot be planned within the limits or the time.
pub fn fit(
    valid: &ValidScenario,
    planner: Option<PlannerKind>,
    workers: &dyn Workers,
    cancellation: &dyn Cancellation,
) -> Result<Fit, AnalysisError> {
    fit_reported(valid, planner, (workers, cancellation), &|_, _, _| {})
}

/// Receives the phase of an analysis, the changes that are simulated, and their number.
pub type Report<'a> = &'a (dyn Fn(&'static str, u32, u32) + Sync);

/// Same as [`fit`]; `report` receives the progress.
///
/// # Errors
/// As for [`fit`].
pub fn fit_reported(
    valid: &ValidScenario,
    planner: Option<PlannerKind>,
    (workers, cancellation): (&dyn Workers, &dyn Cancellation),
    report: Report<'_>,
) -> Result<Fit, AnalysisError> {
    fit_all(valid, planner, &|_| true, &Watch::new(workers, cancellation), report)
}

/// Same as [`fit`], for a job in which a change can be applied if `is_applicable` returns true. The changes of the
/// combination are applicable. If the fastest of several changes of the same fields is not, the fastest applicable one is
/// reported too.
///
/// # Errors
/// As for [`fit`].
pub fn fit_applicable(
    valid: &ValidScenario,
    planner: Option<PlannerKind>,
    is_applicable: &dyn Fn(&Change) -> bool,
    workers: &dyn Workers,
    cancellation: &dyn Cancellation,
) -> Result<Fit, AnalysisError> {
    fit_all(valid, planner, is_applicable, &Watch::new(workers, cancellation), &|_, _, _| {})
}

fn fit_all(
    valid: &ValidScenario,
    planner: Option<PlannerKind>,
    is_applicable: &dyn Fn(&Change) -> bool,
    watch: &Watch<'_>,
    report: Report<'_>,
) -> Result<Fit, AnalysisError> {
    let planner = planner.unwrap_or_else(|| reference_planner(valid));
    let document = document(valid);
    report("planning the scenario", 0, 1);
    let base = base(&document, valid, planner, watch)?;
    let base_s = base.result.iteration_s;
    let proposals = proposals(valid.scenario(), planner, base_s.is_some());
    // If no single change of the job fits, two may.
    let doubled = if base_s.is_none() { pairs(&proposals) } else { Vec::new() };
    let restricted = base.plan.as_deref().and_then(|plan| degrees::at_degrees(valid, plan));
    let (changes, simulated, rejected) = (Vec::new(), 0, 0);
    let mut trials = Trials {
        document: &document,
        restricted: restricted.as_ref(),
        valid,
        planner,
        base: &base,
        watch,
        report,
        changes,
        simulated,
        rejected,
    };
    let mut is_partial = trials.run(proposals)?;
    if !is_partial && trials.changes.iter().all(|change| change.kind == ChangeKind::Cluster) {
        is_partial = trials.run(doubled)?;
    }
    let risk = Risk::new(valid.scenario(), &trials.base.result);
    let mut changes = std::mem::take(&mut trials.changes);
    sort(&mut changes, risk);
    is_partial = is_partial || trials.replan(&mut changes)?;
    sort(&mut changes, risk);
    let Trials { simulated, rejected, .. } = trials;
    drop_redundant_search(&mut changes, is_applicable);
    keep_one_of_a_kind(&mut changes, is_applicable);
    changes.truncate(MAX_CHANGES);
    // Changes of the cluster are not combined, because they cost money.
    let is_combined = |change: &Change| change.kind != ChangeKind::Cluster && is_applicable(change);
    let candidates: Vec<(u32, &Change)> = (0..).zip(&changes).filter(|(_, change)| is_combined(change)).collect();
    report("combining changes", 0, 1);
    let combining =
        Combining { document: restricted.as_ref().unwrap_or(&document), valid, planner, risk, candidates, watch };
    let combination = match combining.best(base_s) {
        Ok(combination) => combination,
        Err(AnalysisError::TimeIsUp) => {
            is_partial = true;
            None
        }
        Err(error) => return Err(error),
    };
    let limit_gib = valid.scenario().memory_limit().gib();
    let (base, ranks) = (base.result, base.ranks);
    Ok(Fit { planner, base, ranks, limit_gib, changes, simulated, rejected, combination, is_partial })
}

/// Simulates changes of a scenario.
struct Trials<'a> {
    document: &'a Value,
    /// Document with the degrees of the plan, if the scenario leaves degrees free.
    restricted: Option<&'a Value>,
    valid: &'a ValidScenario,
    planner: PlannerKind,
    base: &'a Evaluated,
    watch: &'a Watch<'a>,
    report: Report<'a>,
    /// Changes that fit and save time.
    changes: Vec<Change>,
    simulated: u32,
    /// Number of changes that do not fit.
    rejected: u32,
}

impl Trials<'_> {
    /// Simulates the proposals, one per worker at a time. Returns true if the time is up before the last one.
    fn run(&mut self, proposals: Vec<Proposal>) -> Result<bool, AnalysisError> {
        let total = proposals.len() as u32;
        let mut proposals = proposals.into_iter();
        while proposals.len() > 0 {
            (self.report)("simulating changes", total - proposals.len() as u32, total);
            let round: Vec<Proposal> = proposals.by_ref().take(self.watch.workers.count()).collect();
            let results = side_by_side(self.watch.workers, round.len(), |index| self.evaluate(&round[index]));
            for (proposal, result) in round.into_iter().zip(results) {
                match result {
                    Ok(evaluated) => self.add(proposal, evaluated),
                    Err(AnalysisError::TimeIsUp) => return Ok(true),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(false)
    }

    /// More nodes are always faster; the fewest that fit are the smallest change.
    fn is_superseded(&self, kind: ChangeKind) -> bool {
        let is_enlarged = kind == ChangeKind::Cluster && self.base.result.iteration_s.is_none();
        is_enlarged && self.changes.iter().any(|change| change.kind == kind)
    }

    /// Plans a changed scenario. `None` if it is not a valid one.
    fn evaluate(&self, proposal: &Proposal) -> Result<Option<Evaluated>, AnalysisError> {
        if self.is_superseded(proposal.kind) {
            return Ok(None);
        }
        let restricted = self.restricted.filter(|_| degrees::keeps_degrees(proposal));
        self.evaluate_on(restricted.unwrap_or(self.document), proposal)
    }

    fn evaluate_on(&self, document: &Value, proposal: &Proposal) -> Result<Option<Evaluated>, AnalysisError> {
        let Some(changed) = apply(document, &proposal.fields) else { return Ok(None) };
        let planner = planner_after(&changed, self.document, self.planner);
        let watch = Watch { workers: &SequentialWorkers, ..*self.watch };
        evaluate(&changed, self.valid, planner, &watch)
    }

    fn add(&mut self, proposal: Proposal, evaluated: Option<Evaluated>) {
        let Some(evaluated) = evaluated.filter(|_| !self.is_superseded(proposal.kind)) else { return };
        self.simulated += 1;
        if evaluated.result.iteration_s.is_none() {
            self.rejected += 1;
        }
        let change = self.change(proposal, evaluated);
        self.changes.extend(change);
    }

    /// Returns a change that fits. `None` if it does not, or saves no time and removes no risk.
    fn change(&self, Proposal { title, kind, fields }: Proposal, evaluated: Evaluated) -> Option<Change> {
        let Evaluated { result, plan, .. } = evaluated;
        let base_s = self.base.result.iteration_s;
        let removes_risk = Risk::new(self.valid.scenario(), &self.base.result).is_removed_by(&result);
        let is_useful = |s: &f64| removes_risk || base_s.is_none_or(|base| *s < base * (1.0 - MIN_SHARE));
        let seconds = result.iteration_s.filter(is_useful)?;
        let difference_s = base_s.map(|base| seconds - base);
        let plans = plan.as_deref().zip(self.base.plan.as_deref());
        let probability_faster = plans.map(|(changed, base)| certainty::probability_faster(changed, base));
        Some(Change { title, kind, fields, result, difference_s, probability_faster })
    }
}

/// Returns the planner of a changed scenario: `planner`, or the first one if the change replaces the planners.
fn planner_after(changed: &Value, document: &Value, planner: PlannerKind) -> PlannerKind {
    let first = || PlannerKind::from_id(changed.pointer(PLANNERS)?.get(0)?.as_str()?);
    if changed.pointer(PLANNERS) == document.pointer(PLANNERS) { planner } else { first().unwrap_or(planner) }
}

/// Returns the fields of a change, with the layout and the stages that were found in place of free ones. So a combination
/// has the settings that its changes state.
fn found_fields(change: &Change) -> Vec<FieldChange> {
    let FitResult { layout, stage_layers, .. } = &change.result;
    let mut fields = change.fields.clone();
    if let Some(Layout { tensor, pipeline, chunks, microbatch, .. }) = layout {
        let found = json!({"tensor": tensor, "pipeline": pipeline, "chunks": chunks, "microbatch": microbatch});
        for field in fields.iter_mut().filter(|field| field.pointer == "/layout") {
            field.value = found.clone();
        }
    }
    if !stage_layers.is_empty()
        && let Some(stated) = fields.iter().position(|field| field.pointer == LAYERS_PER_STAGE)
    {
        fields[stated].value = json!(stage_layers);
        let is_free = |setting: &Value| *setting == json!(FreeSetting::LayersPerStage);
        for field in fields.iter_mut().filter(|field| field.pointer == "/free") {
            if let Some(settings) = field.value.as_array_mut() {
                settings.retain(|setting| !is_free(setting));
            }
        }
    }
    fields
}

/// Returns the first requested planner with a plan of its own; 1F1B if there is none.
pub fn reference_planner(valid: &ValidScenario) -> PlannerKind {
    let requested = valid.scenario().planners.iter().copied();
    requested.into_iter().find(|&planner| planner != PlannerKind::Best).unwrap_or(PlannerKind::OneFOneB)
}

/// Returns the document of a scenario with the changed fields, or `None` if nothing changes.
pub fn apply(document: &Value, fields: &[FieldChange]) -> Option<Value> {
    let mut changed = document.clone();
    for FieldChange { pointer, value } in fields {
        let (parent, key) = pointer.rsplit_once('/')?;
        let object = changed.pointer_mut(parent)?.as_object_mut()?;
        if value.is_null() {
            object.remove(key);
        } else {
            object.insert(key.to_owned(), value.clone());
        }
    }
    (changed != *document).then_some(changed)
}

pub(crate) struct Evaluated {
    pub(crate) result: FitResult,
    pub(crate) ranks: Vec<RankNeed>,
    pub(crate) plan: Option<Box<Planned>>,
}

/// Plans one global batch. `None` if the document is not a valid scenario.
pub(crate) fn evaluate(
    document: &Value,
    datasets: &ValidScenario,
    planner: PlannerKind,
    watch: &Watch<'_>,
) -> Result<Option<Evaluated>, AnalysisError> {
    let Ok(mut scenario) = serde_json::from_value::<Scenario>(document.clone()) else {
        return Ok(None);
    };
    (scenario.planners, scenario.iterations) = (vec![planner], 1);
    let Ok(valid) = ValidScenario::new(scenario, datasets) else { return Ok(None) };
    let mut observer = Watch { ..*watch };
    let planning = match engine::plan(&valid, &mut observer) {
        Ok(planning) => planning,
        Err(PlanError::Cancelled(_)) => return Err(AnalysisError::TimeIsUp),
        // A change can exceed the limits of an answer.
        Err(PlanError::TooLarge(_) | PlanError::Outgrown { .. }) => return Ok(None),
        Err(error) => return Err(AnalysisError::Unplanned(error.to_string())),
    };
    let Some(result) = planning.outcome.results.into_iter().next() else { return Ok(None) };
    Ok(Some(match result.answer {
        PlanOutcome::Planned(planned) => {
            let model = &valid.scenario().model;
            let rank_layers = |rank: u32| {
                let ranges = planned.stages.iter().filter(|stage| stage.rank == rank).flat_map(|stage| &stage.ranges);
                ranges.map(|range| range_name(model, *range)).collect::<Vec<_>>().join(", ")
            };
            let ranks = planned.ranks.iter();
            Evaluated {
                ranks: ranks
                    .map(|rank| RankNeed {
                        rank: rank.rank,
                        layers: rank_layers(rank.rank),
                        memory: RankMemory { ..rank.memory },
                    })
                    .collect(),
                result: FitResult {
                    layout: Some(planned.layout),
                    iteration_s: Some(planned.metrics.iteration_s),
                    tokens_per_s_per_device: planned.metrics.tokens_per_s_per_device,
                    peak_gib: Some(planned.metrics.peak_memory_gib),
                    stage_layers: uneven_layers(valid.scenario(), &planned),
                    binding: None,
                },
                plan: Some(planned),
            }
        }
        PlanOutcome::Infeasible { binding, search } => {
            let nearest = search.nearest;
            Evaluated {
                result: FitResult {
                    layout: nearest.as_ref().map(|nearest| nearest.layout),
                    iteration_s: None,
                    tokens_per_s_per_device: None,
                    peak_gib: nearest.as_ref().map(|nearest| nearest.needs_gib),
                    stage_layers: Vec::new(),
                    binding: Some(binding),
                },
                ranks: nearest.map(|nearest| nearest.ranks).unwrap_or_default(),
                plan: None,
            }
        }
    }))
}

/// Returns the layers of each stage of a plan with one module; none if they are equal.
fn uneven_layers(scenario: &Scenario, planned: &Planned) -> Vec<u32> {
    let counts = match scenario.model.modules.as_slice() {
        [module] => layer_counts(planned, module.layers),
        _ => None,
    };
    counts.filter(|counts| !is_even(counts)).unwrap_or_default()
}

/// Forwards workers and cancellation of the caller.
#[derive(Clone, Copy)]
pub(crate) struct Watch<'a> {
    pub(crate) workers: &'a dyn Workers,
    pub(crate) cancellation: &'a dyn Cancellation,
    /// True if the caller uses the shares of the critical path.
    pub(crate) draws_timelines: bool,
}

impl<'a> Watch<'a> {
    /// Without timelines.
    pub(crate) const fn new(workers: &'a dyn Workers, cancellation: &'a dyn Cancellation) -> Self {
        Self { workers, cancellation, draws_timelines: false }
    }
}

impl Observer for Watch<'_> {
    fn started(&mut self, _: PlannerKind) {}
    fn progress(&mut self, _: PlannerKind, _: &'static str, _: u32, _: u32) {}
    fn finished(&mut self, _: PlannerKind) {}

    fn cancelled(&self) -> bool {
        self.cancellation.is_over()
    }

    fn workers(&self) -> &dyn Workers {
        self.workers
    }

    fn draws_timelines(&self) -> bool {
        self.draws_timelines
    }
}
