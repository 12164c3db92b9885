//! What the adaptive correction of DFLOP does in a run in which some shapes take longer than the tables say (section 5.3.7 of the
//! paper), and what the log of a run says of its shapes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::NoStudy;
use crate::data_aware::{
    Anomalies, Configuration, CorrectionSettings, Degrees, PartitionSettings, Pipelines, ShapedItem, simulate,
};
use crate::host::Watch;
use crate::observed::{StepRatio, penalties};
use crate::outcome::{Answer, Outcome};
use crate::plan::shaped_items;
use crate::scenario::{PlannerKind, ValidScenario};
use crate::workload::{SampleShape, Sampler, packing};

/// Tokens that two items of one shape may differ in.
const SHAPE_TOKENS: u32 = 256;
/// Steps of the scheduler for a batch.
const SCHEDULER: PartitionSettings = PartitionSettings { steps: 200_000, gap: 1e-3 };
/// Shapes that are told of a run.
const MOST_SHAPES: usize = 40;

/// Which shapes are slow, and when correction pays.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowShapes {
    /// Batches of the run.
    pub iterations: u32,
    /// Share of the shapes that are slow.
    pub rate: f64,
    /// What an item of them takes longer, as a share of the longest stage of the first batch.
    pub magnitude: f64,
    /// Iterations over which benefits are averaged, and the cost of watching as a share of throughput.
    pub settings: CorrectionSettings,
}

/// What correction did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CorrectionStudy {
    /// Different shapes in the run: images or clips, and tokens in steps of 256.
    pub shapes: u32,
    /// Of them slow: the share asked for, rounded.
    pub slow_shapes: u32,
    /// What an item of a slow shape takes longer, in s.
    pub delay_s: f64,
    /// Of every iteration, its time without correction, in s: by the tables of the planner, slow shapes as slow as they are.
    pub without_s: Vec<f64>,
    /// Of every iteration, its time with correction and, while it is on, what watching costs, in s.
    pub with_s: Vec<f64>,
    /// Of every iteration, time without correction over time with it and its cost, minus one.
    pub net: Vec<f64>,
    /// Of every iteration while it was on, the benefit that was reckoned, B.
    pub benefits: Vec<f64>,
    /// Share of throughput that watching costs, C.
    pub cost: f64,
    /// Every decision whether to stay on.
    pub decisions: Vec<Decision>,
    /// The iteration at whose end it switched itself off; absent where it stays on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switched_off: Option<u32>,
    /// Mean net speed-up of the last half of the run.
    pub settled: f64,
    /// What it learnt of a run's shapes, largest penalty first; empty without a run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub penalties: Vec<Penalty>,
    /// What a reader should know, in words.
    pub notes: Vec<String>,
}

/// At the end of an iteration: does correction pay?
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Decision {
    /// The iteration.
    pub iteration: u32,
    /// Mean benefit of the iterations since the decision before.
    pub benefit: f64,
    /// Whether that is above the cost.
    pub stays_on: bool,
}

/// A shape that a run says something of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Penalty {
    /// The shape in words, for example "3 items, 1,025 to 1,280 tokens".
    pub shape: String,
    /// Items of it in the steps that were looked at.
    pub items: u32,
    /// How many times longer than planned they seem to take.
    pub penalty: f64,
}

/// Simulates correction on the batches of a scenario under its DFLOP plan; `run` are measured steps whose batches are known.
///
/// # Errors
/// Where DFLOP has no plan, or its layout is none of the scenario's.
pub fn correction(
    valid: &ValidScenario,
    outcome: &Outcome,
    slow: SlowShapes,
    run: &[StepRatio],
    watch: &dyn Watch,
) -> Result<CorrectionStudy, NoStudy> {
    let configuration = configuration(outcome).ok_or(NoStudy::NoDataAwarePlan)?;
    let scenario = valid.scenario();
    let (sampler, rule) = (Sampler::new(valid), scenario.workload.packing_rule());
    let pack = |samples: &[SampleShape]| packing::pack(samples, &scenario.model, &rule);
    let sizing = pack(&sampler.sizing().samples);
    let mut numbers: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    let mut batches: Vec<Vec<ShapedItem>> = Vec::new();
    for iteration in 0..slow.iterations {
        if watch.is_over() {
            break;
        }
        let batch = pack(&sampler.judged(iteration).samples);
        let items = shaped_items(scenario, &sizing, &configuration, &batch, SHAPE_TOKENS)
            .map_err(|error| NoStudy::Layout(error.to_string()))?;
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
        .map_err(|error| NoStudy::Layout(error.to_string()))?;
    let names: BTreeMap<u32, (u32, u32)> = numbers.iter().map(|(&shape, &number)| (number, shape)).collect();
    let shapes: Vec<Vec<u32>> = batches.iter().map(|batch| batch.iter().map(|item| item.shape).collect()).collect();
    let told = penalties(run, &shapes, slow.settings).into_iter().take(MOST_SHAPES).map(|of| {
        let (items, steps) = names.get(&of.shape).copied().unwrap_or_default();
        let (from, to) = (steps.saturating_sub(1) * SHAPE_TOKENS + 1, steps * SHAPE_TOKENS);
        Penalty { shape: format!("{items} items, {from} to {to} tokens"), items: of.items, penalty: of.penalty }
    });
    let told: Vec<Penalty> = told.collect();
    if !told.is_empty() {
        notes.push(
            "A step is the work of many items: a slow shape shows by its share of the steps it is in, so penalties from a log are at \
             least so large in truth. Step k of the log is held to be batch k of the scenario."
                .to_owned(),
        );
    }
    let decision =
        |&(iteration, benefit): &(u32, f64)| Decision { iteration, benefit, stays_on: benefit > slow.settings.cost };
    Ok(CorrectionStudy {
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
        penalties: told,
        notes,
    })
}

/// The strategy of the DFLOP plan in an outcome.
fn configuration(outcome: &Outcome) -> Option<Configuration> {
    let result = outcome.results.iter().find(|result| result.planner == PlannerKind::Dflop)?;
    let Answer::Planned(planned) = &result.answer else { return None };
    let placement = planned.placement.as_ref()?;
    let [encoder, backbone] = &placement.layouts[..] else { return None };
    let of = |placed: &crate::outcome::PlacedModules| Degrees {
        tensor: placed.tensor,
        pipeline: placed.pipeline,
        data: placed.data,
    };
    let all = planned.iterations.first()?.microbatches;
    let microbatches = (all / backbone.data.max(1)).max(1);
    Some(Configuration { encoder: of(encoder), backbone: of(backbone), microbatches })
}
