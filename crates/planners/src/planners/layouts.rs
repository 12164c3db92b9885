//! Candidate layouts of a search, and the rules that exclude invalid candidates before any cost
//! computation.

use planscope_core::training::ContextExchange;
use planscope_cost::cost::Partition;
use planscope_pipeline::schedule::ScheduleKind;
use planscope_plan::outcome::Layout;
use planscope_plan::scenario::budget::{self, MAX_MICROBATCH};
use planscope_plan::scenario::{FreeSetting, PlannerKind, Scenario};

/// Limit on model chunks if the scenario leaves it open. More chunks add more communication than
/// they save in bubbles.
const MAX_CHUNKS: u32 = 8;
/// Model chunks above [`MAX_CHUNKS`] that are tried with uneven stages.
const MANY_CHUNKS: [u32; 11] = [10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96];
/// Limit on model chunks for dynamic schedules. These fill bubbles by reordering, and more chunks
/// multiply the search space.
const MAX_DYNAMIC_CHUNKS: u32 = 4;

/// Maximum simulated pipeline size in microbatches x stages. The costs need a quarter of a
/// gigabyte.
pub(crate) const MAX_CELLS: u64 = 4_000_000;

/// A layout, and the violated rule if it is invalid.
pub(crate) struct Candidate {
    pub layout: Layout,
    pub rule: Option<String>,
}

/// Enumerates all combinations of TP, PP, VPP and microbatch size that the scenario leaves open. DP
/// follows from the number of devices.
pub(crate) fn candidates(scenario: &Scenario, kind: PlannerKind, sequences: u32) -> Vec<Candidate> {
    let request = scenario.layout;
    // CP is a setting and not searched. It reduces the devices for the other dimensions.
    let devices = scenario.cluster.devices() / scenario.training.context_parallel;
    let mut candidates = Vec::new();
    let tensors = options(request.tensor, || {
        // TP across nodes is never faster, so it is tried only on request.
        divisors(scenario.cluster.devices_per_node).filter(|degree| devices.is_multiple_of(*degree)).collect()
    });
    for tensor in tensors {
        let pipelines = options(request.pipeline, || divisors(devices / tensor).collect());
        for pipeline in pipelines {
            if !u64::from(devices).is_multiple_of(u64::from(tensor) * u64::from(pipeline)) {
                continue;
            }
            let data = devices / (tensor * pipeline);
            for chunks in chunk_options(scenario, kind, pipeline) {
                for microbatch in microbatch_options(request.microbatch, sequences, data) {
                    let layout = Layout { tensor, pipeline, data, chunks, microbatch, group: request.group };
                    candidates.push(Candidate { layout, rule: broken_rule(scenario, kind, layout, sequences) });
                }
            }
        }
    }
    candidates
}

fn options(fixed: Option<u32>, open: impl FnOnce() -> Vec<u32>) -> Vec<u32> {
    fixed.map_or_else(open, |value| vec![value])
}

fn chunk_options(scenario: &Scenario, kind: PlannerKind, pipeline: u32) -> Vec<u32> {
    let layers = scenario.model.layers();
    let stated = scenario.layers_per_stage.len() as u32;
    let stated_chunks = (stated > 0).then(|| (stated / pipeline).max(1));
    let requested = scenario.layout.chunks.or(stated_chunks);
    let is_free = scenario.is_free(FreeSetting::LayersPerStage);
    let uniform = scenario.model.modules.len() == 1 && !is_free;
    let max_chunks = if is_free { layers } else { MAX_CHUNKS };
    let is_even = |chunks: u32| layers.is_multiple_of(pipeline * chunks);
    let is_tried = |chunks: u32| chunks <= MAX_CHUNKS || is_even(chunks) || MANY_CHUNKS.contains(&chunks);
    let divides = |&chunks: &u32| pipeline * chunks <= layers && is_tried(chunks) && (!uniform || is_even(chunks));
    match kind {
        // Without a pipeline, chunks change nothing.
        PlannerKind::Interleaved
        | PlannerKind::InterleavedParameters
        | PlannerKind::LoopedBfs
        | PlannerKind::InterleavedZeroBubble
            if pipeline == 1 && requested.is_none() =>
        {
            vec![1]
        }
        // Keep an invalid number of chunks, so that the response contains the explanation.
        PlannerKind::Interleaved
        | PlannerKind::InterleavedParameters
        | PlannerKind::LoopedBfs
        | PlannerKind::InterleavedZeroBubble => options(requested, || {
            let chunks: Vec<u32> = (2..=max_chunks).filter(divides).collect();
            if chunks.is_empty() { vec![2] } else { chunks }
        }),
        PlannerKind::WaitFreeCyclic => options(requested, || {
            (1..=MAX_DYNAMIC_CHUNKS).filter(|chunks| *chunks == 1 || (pipeline > 1 && divides(chunks))).collect()
        }),
        // Chunks of the backbone, in addition to the encoder chunks.
        PlannerKind::Optimus => options(requested, || {
            let backbone = scenario.model.backbone().map_or(0, |backbone| backbone.layers);
            (1..=MAX_DYNAMIC_CHUNKS).filter(|chunks| *chunks == 1 || pipeline * chunks <= backbone).collect()
        }),
        _ => vec![kind.schedule().map_or(1, |kind| kind.chunks(None)) as u32],
    }
}

/// Powers of two, up to the size at which all replicas still have a microbatch.
fn microbatch_options(fixed: Option<u32>, sequences: u32, data: u32) -> Vec<u32> {
    options(fixed, || {
        let max_size = (sequences / data).clamp(1, MAX_MICROBATCH);
        (0..=max_size.ilog2()).map(|power| 1 << power).collect()
    })
}

/// Returns the violated rule. The text contains no degrees, so that equal rejections can be
/// counted.
fn broken_rule(scenario: &Scenario, kind: PlannerKind, layout: Layout, sequences: u32) -> Option<String> {
    let (context, expert) = (scenario.training.context_parallel, scenario.training.expert_parallel);
    let expert_tensor = scenario.training.expert_tensor(layout.tensor);
    if !(layout.data * context * layout.tensor).is_multiple_of(expert * expert_tensor) {
        let devices = if expert_tensor == 1 { "devices of a stage" } else { "replicas" };
        return Some(format!("EP {expert} does not divide the {devices}"));
    }
    for module in &scenario.model.modules {
        for (head_kind, count) in module.sharded_heads() {
            if count % layout.tensor != 0 {
                return Some(format!("TP does not divide the {count} {head_kind} of {}", module.name));
            }
        }
        let trades = scenario.training.context_exchange == ContextExchange::AllToAll;
        if trades && !module.supports_all_to_all(layout.tensor, context) {
            return Some(format!("CP {context} all-to-all cannot distribute the heads of {} over TP", module.name));
        }
    }
    let layers = scenario.model.layers();
    let stages = layout.pipeline * layout.chunks;
    // Stages that the scenario fixes can be without layers.
    if stages > layers && scenario.layers_per_stage.is_empty() {
        return Some(format!("PP x VPP exceeds the {layers} layers"));
    }
    let stated = scenario.layers_per_stage.len();
    if stated > 0 && stated != stages as usize {
        return Some(format!("the scenario fixes the layers of {stated} stages"));
    }
    let is_usual = scenario.model.modules.len() == 1
        && stated == 0
        && !kind.cuts_by_module()
        && kind != PlannerKind::NnScaler
        && !scenario.is_free(FreeSetting::LayersPerStage);
    if is_usual && Partition::usual(&scenario.model, stages, scenario.training.framework).is_none() {
        return Some(format!("PP x VPP does not divide the {layers} layers; set the layers per stage to free"));
    }
    let interleaved = matches!(kind.schedule(), Some(ScheduleKind::Interleaved | ScheduleKind::InterleavedZeroBubble));
    if interleaved && stated > 0 && layout.pipeline >= 2 && layout.chunks < 2 {
        return Some(format!(
            "the scenario fixes the layers of {stated} stages, so VPP is 1; interleaving needs VPP 2"
        ));
    }
    if interleaved && (layout.pipeline < 2 || layout.chunks < 2) {
        return Some("interleaving needs PP and VPP of 2 or more".to_owned());
    }
    if kind == PlannerKind::LoopedBfs && layout.pipeline < 2 && layout.chunks > 1 && stated == 0 {
        return Some("a pipeline of one rank has no chunks, so VPP must be 1".to_owned());
    }
    let microbatches = sequences.div_ceil(layout.microbatch);
    if microbatches < layout.data {
        return Some(format!("{sequences} sequences give fewer microbatches than replicas"));
    }
    let each = microbatches / layout.data;
    let group_size = layout.group.unwrap_or(layout.pipeline);
    if interleaved && group_size < layout.pipeline && group_size < each {
        return Some("groups shorter than PP deadlock".to_owned());
    }
    if u64::from(stages) * u64::from(each) > MAX_CELLS {
        return Some(format!("more than {MAX_CELLS} microbatches x stages"));
    }
    let iteration = budget::layout_spans(kind, stages, microbatches, layout.data);
    if iteration.times(u64::from(scenario.iterations)).excess().is_some() {
        return Some("its spans over all iterations exceed the limit of an answer".to_owned());
    }
    None
}

fn divisors(number: u32) -> impl Iterator<Item = u32> {
    (1..=number).filter(move |degree| number.is_multiple_of(*degree))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Llama-3 8B has 32 heads and 8 key-value heads. All-to-all over CP 8 needs a multiple of
    /// eight query heads per TP rank. TP 1 has 32 for 8 devices, but TP 8 has only 4 for 8 devices.
    /// A ring transfers complete keys and values, so this limit does not apply.
    #[test]
    fn a_context_group_that_trades_heads_has_heads_enough() {
        let rules = |exchange: &str| -> Vec<(u32, bool)> {
            let scenario_json = serde_json::json!({
                "schema": "scenario/1", "model": { "preset": "llama-3-8b" }, "cluster": { "preset": "h800", "nodes": 8 },
                "workload": {
                    "samples": {
                        "kind": "drawn", "text_tokens": { "kind": "constant", "value": 4096 },
                        "images": { "kind": "constant", "value": 0 }
                    },
                    "global_batch": 64, "context_length": 8192, "packing": "single"
                },
                "training": { "context_parallel": 8, "context_exchange": exchange },
                "layout": { "pipeline": 1, "microbatch": 1 }, "planners": ["1f1b"]
            });
            let scenario = planscope_plan::scenario::parse(&scenario_json.to_string()).unwrap();
            let broken =
                |rule: &Option<String>| rule.as_ref().is_some_and(|rule| rule.contains("cannot distribute the heads"));
            let all = candidates(&scenario, PlannerKind::OneFOneB, 64);
            all.iter().map(|candidate| (candidate.layout.tensor, broken(&candidate.rule))).collect()
        };
        assert_eq!(rules("all_to_all"), [(1, false), (2, false), (4, false), (8, true)]);
        assert_eq!(rules("ring"), [(1, false), (2, false), (4, false), (8, false)]);
    }

    /// 1,024 stages produce 536,576 spans per iteration at one sequence per microbatch, and 10,240
    /// spans at 64 sequences. For 1,000 iterations, only the latter is within the limit.
    #[test]
    fn layouts_above_the_span_limit_are_rejected() {
        let scenario_json = serde_json::json!({
            "schema": "scenario/1",
            "model": { "name": "m", "modules": [{
                "name": "b", "role": "backbone", "layers": 1024, "hidden": 1024, "heads": 16, "kv_heads": 16,
                "ffn": 4096, "gated": true, "mask": "causal", "norm": "rms", "bias": "none", "dropout": false,
                "vocab": 32000, "tied_embeddings": false, "learned_positions": 0
            }]},
            "cluster": { "preset": "a100-80gb", "nodes": 128 },
            "workload": {
                "samples": {
                    "kind": "drawn", "text_tokens": { "kind": "uniform", "min": 100, "max": 2048 },
                    "images": { "kind": "constant", "value": 0 }
                },
                "global_batch": 262, "context_length": 2048, "packing": "single"
            },
            "layout": { "tensor": 1, "pipeline": 1024 }, "planners": ["1f1b"], "seed": 1, "iterations": 1000
        });
        let scenario = planscope_plan::scenario::parse(&scenario_json.to_string()).unwrap();
        let all = candidates(&scenario, PlannerKind::OneFOneB, 262);
        let accepted: Vec<(u32, bool)> =
            all.iter().map(|candidate| (candidate.layout.microbatch, candidate.rule.is_none())).collect();
        assert_eq!(accepted, [(1, false), (2, false), (4, false), (8, false), (16, false), (32, true), (64, true)]);
        let rule = all[0].rule.as_deref();
        assert_eq!(rule, Some("its spans over all iterations exceed the limit of an answer"));
    }

    /// With PP 1, looped BFS has VPP 1. A requested VPP above 1 is refused there.
    #[test]
    fn a_pipeline_of_one_rank_has_no_chunks() {
        let found = |layout: serde_json::Value| -> Vec<(u32, bool)> {
            let scenario_json = serde_json::json!({
                "schema": "scenario/1", "model": { "preset": "llama-3-8b" }, "cluster": { "preset": "h800", "nodes": 1 },
                "workload": {
                    "samples": {
                        "kind": "drawn", "text_tokens": { "kind": "constant", "value": 4096 },
                        "images": { "kind": "constant", "value": 0 }
                    },
                    "global_batch": 24, "context_length": 8192, "packing": "single"
                },
                "layout": layout, "free": ["layers_per_stage"], "planners": ["looped_bfs"]
            });
            let scenario = planscope_plan::scenario::parse(&scenario_json.to_string()).unwrap();
            let all = candidates(&scenario, PlannerKind::LoopedBfs, 24).into_iter();
            all.map(|candidate| (candidate.layout.chunks, candidate.rule.is_none())).collect()
        };
        let degrees = |pipeline: u32| serde_json::json!({ "tensor": 4, "pipeline": pipeline, "microbatch": 1 });
        assert_eq!(found(degrees(1)), [(1, true)]);
        assert!(found(degrees(2)).iter().all(|&(chunks, _)| chunks > 1));
        let mut requested = degrees(1);
        requested["chunks"] = serde_json::json!(4);
        assert_eq!(found(requested), [(4, false)]);
    }

    /// 32 layers on PP 3: the message names the remedy.
    #[test]
    fn free_layers_per_stage_are_the_remedy_of_an_uneven_pipeline() {
        let rules = |free: &[&str]| -> Vec<Option<String>> {
            let scenario_json = serde_json::json!({
                "schema": "scenario/1", "model": { "preset": "llama-3-8b" }, "cluster": { "preset": "h800", "nodes": 3 },
                "workload": {
                    "samples": {
                        "kind": "drawn", "text_tokens": { "kind": "constant", "value": 4096 },
                        "images": { "kind": "constant", "value": 0 }
                    },
                    "global_batch": 24, "context_length": 8192, "packing": "single"
                },
                "layout": { "tensor": 8, "pipeline": 3, "microbatch": 1 }, "free": free, "planners": ["1f1b"]
            });
            let scenario = planscope_plan::scenario::parse(&scenario_json.to_string()).unwrap();
            candidates(&scenario, PlannerKind::OneFOneB, 24).into_iter().map(|candidate| candidate.rule).collect()
        };
        let message = "PP x VPP does not divide the 32 layers; set the layers per stage to free";
        assert_eq!(rules(&[]), [Some(message.to_owned())]);
        assert_eq!(rules(&["layers_per_stage"]), [None]);
    }
}
