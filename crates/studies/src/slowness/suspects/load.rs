//! Work that is smaller, uneven or late: batches, stages, lengths, experts and reading of data.

use serde_json::json;

use super::super::{Advice, HOST_MICROBATCH};
use super::{Degree, Suspect, rounded};
use planscope_core::workload::{Distribution, Packing, SampleSource};
use planscope_plan::scenario::Scenario;

/// Tokens of the busiest expert-parallel rank relative to the mean.
const SKEWS: [f64; 5] = [1.25, 1.5, 2.0, 3.0, 4.0];
/// Largest difference of a sample length from the mean, relative to it.
const SPREADS: [f64; 3] = [0.25, 0.5, 0.9];
/// Most layers that the first stage has less than planned, and the last stage more.
const MAX_MOVED: u32 = 4;
/// Limits of the layers that a last stage usually and possibly has more than planned.
const MOVED_LIMITS: (f64, f64) = (0.0, 1.0);
/// Limits of a usual and of a possible imbalance of experts.
const SKEW_LIMITS: (f64, f64) = (1.5, 2.0);
/// Limits of a usual and of a possible time to read the texts of a microbatch in ms. Images take ten times as long.
const READING_LIMITS_MS: (f64, f64) = (20.0, 300.0);
/// Time to read the data of a microbatch in ms.
const READING_MS: [f64; 7] = [5.0, 20.0, 80.0, 320.0, 1300.0, 5000.0, 20_000.0];

pub(super) fn suspects(scenario: &Scenario, is_rate: bool, advice: Advice) -> Vec<Suspect> {
    let global = is_rate.then(|| global_batch(scenario));
    let all = [microbatch(scenario), stages(scenario, advice), lengths(scenario), reading(scenario, advice)];
    let single = all.into_iter().flatten().chain(global).chain(experts(scenario));
    single.filter(|suspect| !suspect.degrees.is_empty()).collect()
}

/// Smaller microbatches, with more of them in a step.
fn microbatch(scenario: &Scenario) -> Option<Suspect> {
    let stated = scenario.layout.microbatch.filter(|&size| size > 1)?;
    let smaller = std::iter::successors(Some(stated / 2), |size| Some(size / 2).filter(|&size| size > 0));
    let degree = |size: u32| {
        Degree::new(format!("microbatch {size} instead of {stated}"), &[("/layout/microbatch", json!(size))])
    };
    Some(Suspect::listed(
        smaller.map(degree).collect(),
        "Read the sequences of a microbatch from the log, or the rows of the products in a profiler trace.",
    ))
}

/// A smaller global batch, for the tokens of a planned one.
fn global_batch(scenario: &Scenario) -> Suspect {
    let batch = scenario.workload.global_batch;
    let parts = (2..=16).filter(|parts| batch.is_multiple_of(*parts));
    let degree = |parts: u32| {
        let size = batch / parts;
        let title = format!("a global batch of {size} sequences instead of {batch}");
        Degree { steps: f64::from(parts), ..Degree::new(title, &[("/workload/global_batch", json!(size))]) }
    };
    Suspect::listed(
        parts.map(degree).collect(),
        "Read the global batch and its ramp from the log: a small batch has few microbatches per pipeline, and as many \
         reductions and optimizer steps as a large one.",
    )
}

/// A last pipeline stage with more layers than planned, and a first one with fewer.
fn stages(scenario: &Scenario, advice: Advice) -> Option<Suspect> {
    let [module] = &scenario.model.modules[..] else { return None };
    let stages = scenario.layout.pipeline.filter(|&ranks| ranks > 1)? * scenario.layout.chunks.unwrap_or(1);
    let stated = &scenario.layers_per_stage;
    let planned = if stated.is_empty() {
        let (each, rest) = (module.layers / stages, module.layers % stages);
        (0..stages).map(|stage| each + u32::from(stage < rest)).collect()
    } else {
        stated.clone()
    };
    let degree = |moved: u32| {
        let mut layers = planned.clone();
        let first = layers.first()?.checked_sub(moved).filter(|&layers| layers > 0)?;
        let last = layers.last()? + moved;
        *layers.first_mut()? = first;
        *layers.last_mut()? = last;
        let title = format!("{last} layers on the last stage instead of {}", last - moved);
        Some(Degree::new(title, &[("/layers_per_stage", json!(layers))]).with_strength(f64::from(moved), MOVED_LIMITS))
    };
    Some(Suspect::listed((1..=MAX_MOVED).filter_map(degree).collect(), advice.stages()))
}

/// Samples of different lengths up to the context length, with the planned mean. Programs for pre-training concatenate
/// documents to sequences of equal length, so only trainers with one sample per sequence have this cause. Padded
/// samples have the same work at any length.
fn lengths(scenario: &Scenario) -> Option<Suspect> {
    let workload = &scenario.workload;
    if !scenario.training.framework.is_hugging_face() || workload.packing != Packing::Single {
        return None;
    }
    let SampleSource::Drawn { text_tokens: Distribution::Constant { value: mean }, .. } = workload.samples else {
        return None;
    };
    let longest = workload.context_length.checked_sub(mean).filter(|&longest| longest > 0)?;
    let degree = move |spread: f64| {
        let most = (f64::from(mean) * spread) as u32;
        let (min, max) = (mean.saturating_sub(most), mean.saturating_add(most));
        let changes = [("/workload/samples/text_tokens", json!({ "kind": "uniform", "min": min, "max": max }))];
        let title = format!("samples of {min} to {max} tokens instead of {mean}");
        Degree::new(title, &changes).with_value(f64::from(most) / f64::from(mean))
    };
    let most = f64::from(longest) / f64::from(mean);
    let grid = SPREADS.into_iter().filter(move |&spread| spread <= most && spread * f64::from(mean) >= 1.0);
    Some(Suspect::continuous(
        0.0,
        grid,
        degree,
        "Compare the tokens of the microbatches of different replicas. If they differ, deal the sequences by length, \
         or pack them.",
    ))
}

/// Reading of data that is slower than the computation.
fn reading(scenario: &Scenario, advice: Advice) -> Option<Suspect> {
    let host_ms = scenario.cluster.device.curves.as_ref()?.host_microbatch_us / 1000.0;
    let media = if scenario.model.modules.len() > 1 { 10.0 } else { 1.0 };
    let degree = move |ms: f64| {
        let ms = rounded(ms, if ms < 10.0 { 10.0 } else { 1.0 });
        let duration = if ms < 1000.0 { format!("{ms} ms") } else { format!("{:.2} s", ms / 1000.0) };
        let title = format!("reading of data that takes {duration} per microbatch");
        let changes = [(HOST_MICROBATCH, json!(1000.0 * ms))];
        Degree::new(title, &changes).with_value(ms).with_strength(ms / media, READING_LIMITS_MS)
    };
    let grid = READING_MS.into_iter().filter(move |&ms| ms > host_ms);
    Some(Suspect::continuous(host_ms, grid, degree, advice.reading()))
}

/// Tokens that the router divides unevenly over expert-parallel ranks.
fn experts(scenario: &Scenario) -> Vec<Suspect> {
    if scenario.training.expert_parallel < 2 {
        return Vec::new();
    }
    let modules = scenario.model.modules.iter().enumerate();
    let suspect = |(index, skew): (usize, f64)| {
        let pointer = format!("/model/modules/{index}/moe/skew");
        let degree = move |more: f64| {
            let more = rounded(more, 100.0);
            let title = format!("{more} times the mean tokens on the busiest expert-parallel rank");
            Degree::new(title, &[(&pointer, json!(more))]).with_value(more).with_strength(more, SKEW_LIMITS)
        };
        let grid = SKEWS.into_iter().filter(move |&more| more > skew);
        Suspect::continuous(
            skew.max(1.0),
            grid,
            degree,
            "Log the tokens of each expert, or compare the grouped products of the expert-parallel ranks in their \
             traces.",
        )
    };
    modules.filter_map(|(index, module)| Some((index, module.moe?.skew))).map(suspect).collect()
}
