//! Adaptive correction of DFLOP in a run with slow shapes (DFLOP Sec. 5.3.7), and shape penalties
//! from a training log.

pub use planscope_analysis::analysis::correction::*;

use std::collections::BTreeMap;

use super::AnalysisError;
use crate::run_comparison::{StepRatio, penalties};
use planscope_core::host::Cancellation;
use planscope_core::workload::{SampleShape, packing};
use planscope_plan::outcome::{Outcome, PlanOutcome};
use planscope_plan::scenario::Sampler;
use planscope_plan::scenario::{PlannerKind, ValidScenario};
use planscope_planners::planners::dflop::{
    Anomalies, Configuration, CorrectionSettings, Degrees, PartitionSettings, Pipelines, ShapedItem, simulate,
};
use planscope_planners::planners::shaped_items;

/// Token range per shape.
const SHAPE_TOKENS: u32 = 256;
/// Step limit and target gap per batch for the scheduler.
const SCHEDULER: PartitionSettings = PartitionSettings { steps: 200_000, gap: 1e-3 };
/// Limit on reported shapes.
const MAX_SHAPES: usize = 40;

/// Slow shapes and correction settings for a simulation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowShapes {
    /// Batches in the run.
    pub iterations: u32,
    /// Slow shapes divided by all shapes.
    pub rate: f64,
    /// Extra time per slow item, relative to the longest stage in batch 0.
    pub magnitude: f64,
    /// Iterations in the mean benefit, and monitoring cost relative to throughput.
    pub settings: CorrectionSettings,
}

/// Simulates correction on the scenario's batches with its DFLOP plan. `run` contains measured
/// steps with known batches.
///
/// # Errors
/// DFLOP has no plan, or its layout is not valid for the scenario.
pub fn correction(
    valid: &ValidScenario,
    outcome: &Outcome,
    slow: SlowShapes,
    run: &[StepRatio],
    cancellation: &dyn Cancellation,
) -> Result<CorrectionAnalysis, AnalysisError> {
    let configuration = configuration(outcome).ok_or(AnalysisError::NoDataAwarePlan)?;
    let scenario = valid.scenario();
    let (sampler, rule) = (Sampler::new(valid), scenario.workload.packing_rule());
    let pack = |samples: &[SampleShape]| packing::pack(samples, &scenario.model, &rule);
    let sizing = pack(&sampler.sizing().samples);
    let mut numbers: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    let mut batches: Vec<Vec<ShapedItem>> = Vec::new();
    for iteration in 0..slow.iterations {
        if cancellation.is_over() {
            break;
        }
        let batch = pack(&sampler.evaluation(iteration).samples);
        let items = shaped_items(scenario, &sizing, &configuration, &batch, SHAPE_TOKENS)
            .map_err(|error| AnalysisError::Layout(error.to_string()))?;
        let numbered = items.into_iter().map(|(item, shape)| {
            let next = numbers.len() as u32;
            ShapedItem { item, shape: *numbers.entry(shape).or_insert(next) }
        });
        batches.push(numbered.collect());
    }
    let mut notes = Vec::new();
    if batches.len() < slow.iterations as usize {
        notes.push(format!("The time was up after {} batches.", batches.len()));
    }
    let pipelines = Pipelines {
        copies: configuration.backbone.data as usize,
        microbatches: configuration.microbatches as usize,
        depth: configuration.encoder.pipeline + configuration.backbone.pipeline,
    };
    let anomalies = Anomalies { rate: slow.rate, magnitude: slow.magnitude, seed: scenario.seed };
    let simulated = simulate(&batches, pipelines, anomalies, slow.settings, SCHEDULER)
        .map_err(|error| AnalysisError::Layout(error.to_string()))?;
    let names: BTreeMap<u32, (u32, u32)> = numbers.iter().map(|(&shape, &number)| (number, shape)).collect();
    let shapes: Vec<Vec<u32>> = batches.iter().map(|batch| batch.iter().map(|item| item.shape).collect()).collect();
    let penalty_rows = penalties(run, &shapes, slow.settings).into_iter().take(MAX_SHAPES).map(|shape_penalty| {
        let (items, steps) = names.get(&shape_penalty.shape).copied().unwrap_or_default();
        let (from, to) = (steps.saturating_sub(1) * SHAPE_TOKENS + 1, steps * SHAPE_TOKENS);
        Penalty {
            shape: format!("{items} items, {from} to {to} tokens"),
            items: shape_penalty.items,
            penalty: shape_penalty.penalty,
        }
    });
    let reported_penalties: Vec<Penalty> = penalty_rows.collect();
    if !reported_penalties.is_empty() {
        notes.push(
            "A step is the work of many items: a slow shape shows by its share of the steps it is in, so penalties from a log are at \
             least so large in truth. Step k of the log is held to be batch k of the scenario."
                .to_owned(),
        );
    }
    let decision =
        |&(iteration, benefit): &(u32, f64)| Decision { iteration, benefit, stays_on: benefit > slow.settings.cost };
    Ok(CorrectionAnalysis {
        shapes: numbers.len() as u32,
        slow_shapes: simulated.slow,
        delay_s: simulated.delay,
        settled: simulated.settled(),
        decisions: simulated.decisions.iter().map(decision).collect(),
        without_s: simulated.without,
        with_s: simulated.with,
        net: simulated.net,
        benefits: simulated.benefits,
        cost: slow.settings.cost,
        switched_off: simulated.switched_off,
        penalties: reported_penalties,
        notes,
    })
}

/// Returns the strategy in the outcome's DFLOP plan.
fn configuration(outcome: &Outcome) -> Option<Configuration> {
    let result = outcome.results.iter().find(|result| result.planner == PlannerKind::Dflop)?;
    let PlanOutcome::Planned(planned) = &result.answer else { return None };
    let placement = planned.placement.as_ref()?;
    let [encoder, backbone] = &placement.layouts[..] else { return None };
    let degrees = |placed: &planscope_plan::outcome::PlacedModules| Degrees {
        tensor: placed.tensor,
        pipeline: placed.pipeline,
        data: placed.data,
    };
    let all = planned.iterations.first()?.microbatches;
    let microbatches = (all / backbone.data.max(1)).max(1);
    Some(Configuration { encoder: degrees(encoder), backbone: degrees(backbone), microbatches })
}
