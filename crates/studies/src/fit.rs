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
mod evaluation;
mod risk;
mod selection;
mod settings;
#[cfg(test)]
mod tests;

pub use completion::{Completed, complete};
pub use devices::fewest_devices;
pub use planscope_analysis::fit::*;

use serde_json::{Value, json};

use changes::{LAYERS_PER_STAGE, PLANNERS, Proposal, pairs, proposals};
use combination::Combining;
use evaluation::Evaluated;
pub(crate) use evaluation::{Watch, base, document, evaluate};
use planscope_analysis::analysis::AnalysisError;
use planscope_core::host::{Cancellation, SequentialWorkers, Workers, side_by_side};
use planscope_plan::certainty;
use planscope_plan::outcome::{Layout, Planned};
use planscope_plan::scenario::{FreeSetting, PlannerKind, ValidScenario};
use risk::Risk;
use selection::{drop_redundant_search, drop_uneven_batches, keep_one_of_a_kind, sort};

/// Maximum number of reported changes.
pub const MAX_CHANGES: usize = 10;
/// Changes of a feasible plan that save a smaller share of its time are not reported.
const MIN_SHARE: f64 = 0.002;

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
    if !is_partial && trials.has_only_devices() {
        is_partial = trials.run(doubled)?;
    }
    if base_s.is_none() && !is_partial && trials.has_only_devices() {
        is_partial = trials.search_settings()?;
    }
    let risk = Risk::new(valid.scenario(), &trials.base.result);
    let mut changes = std::mem::take(&mut trials.changes);
    sort(&mut changes, risk);
    is_partial = is_partial || trials.replan(&mut changes)?;
    sort(&mut changes, risk);
    let Trials { simulated, rejected, .. } = trials;
    drop_uneven_batches(&mut changes, valid.scenario(), &base.result);
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

    /// True if only other devices help.
    fn has_only_devices(&self) -> bool {
        self.changes.iter().all(|change| change.kind == ChangeKind::Cluster)
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
    if let Some(layout) = layout {
        let found = stated_layout(layout);
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

/// Returns the layout of a plan as in a scenario.
fn stated_layout(Layout { tensor, pipeline, chunks, microbatch, .. }: &Layout) -> Value {
    json!({ "tensor": tensor, "pipeline": pipeline, "chunks": chunks, "microbatch": microbatch })
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
