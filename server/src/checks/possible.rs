//! Changes that a framework has no setting for, or that it runs in another way than the simulated one.

use api::job_config::ConfigFormat;
use planner::fit::{Change, Fit};
use planner::scenario::{PlannerKind, Scenario};
use serde_json::Value;

use super::edits::Job;

/// Schedules that run all forwards before the backwards.
const ALL_FORWARDS_FIRST: [PlannerKind; 2] = [PlannerKind::Gpipe, PlannerKind::LoopedBfs];

/// Removes the changes that the framework of a job cannot make. A person could not make them either.
pub(super) fn keep_possible(fit: &mut Fit, job: &Job<'_>, scenario: &Scenario) {
    let kept: Vec<bool> = fit.changes.iter().map(|change| is_possible(change, job, scenario)).collect();
    let mut is_kept = kept.iter();
    fit.changes.retain(|_| is_kept.next() == Some(&true));
    let Some(combination) = &mut fit.combination else { return };
    let place = |index: u32| {
        let before = kept.get(..index as usize)?.iter().filter(|kept| **kept).count();
        kept.get(index as usize).filter(|kept| **kept).and(u32::try_from(before).ok())
    };
    match combination.changes.iter().map(|&index| place(index)).collect() {
        Some(changes) => combination.changes = changes,
        None => fit.combination = None,
    }
}

fn is_possible(change: &Change, job: &Job<'_>, scenario: &Scenario) -> bool {
    let sets = |pointer: &str, is_such: fn(&Value) -> bool| {
        change.fields.iter().any(|field| field.pointer == pointer && is_such(&field.value))
    };
    match job.format {
        // The trainer recomputes all layers or none.
        ConfigFormat::Deepspeed
        | ConfigFormat::TrainingArguments
        | ConfigFormat::Accelerate
        | ConfigFormat::LlamaFactory
        | ConfigFormat::Axolotl
        | ConfigFormat::Trl
        | ConfigFormat::OpenRlhf
            if scenario.layout.pipeline == Some(1) =>
        {
            !sets("/training/recompute_layers", Value::is_number)
        }
        // A pipeline of MaxText runs all forwards first. Jobs without one are simulated with 1F1B.
        _ if scenario.layout.pipeline == Some(1) && is_maxtext(job) => {
            change.result.layout.is_none_or(|layout| layout.pipeline == 1)
        }
        _ => true,
    }
}

fn is_maxtext(job: &Job<'_>) -> bool {
    job.format == ConfigFormat::Maxtext || job.value("modules.pre_trainer.framework") == Some("maxtext")
}

/// True if an edited job runs all forwards before the backwards, and the simulated one does not: its time and memory would
/// not be those of the change.
pub(super) fn runs_all_forwards_first(edited: &Scenario, simulated: &Scenario) -> bool {
    let schedule = |scenario: &Scenario| scenario.planners.first().copied();
    let is_such = |kind: Option<PlannerKind>| kind.is_some_and(|kind| ALL_FORWARDS_FIRST.contains(&kind));
    edited.layout.pipeline > Some(1) && is_such(schedule(edited)) && schedule(edited) != schedule(simulated)
}
