//! Warnings about differences between the plan and Megatron-LM.

use super::super::full_batch::FullBatch;
use planner::model::{Bias, Mask, Module};
use planner::outcome::{BatchSummary, Planned};
use planner::scenario::{PlannerKind, Scenario};
use planner::training::{Execution, Framework, MasterWeights, Optimizer, Precision, Recompute, Training};
use planner::workload::Packing;

/// Default of `--make-vocab-size-divisible-by`.
const VOCABULARY_UNIT: u32 = 128;

/// Returns the largest value of `--make-vocab-size-divisible-by`, up to the default, that avoids
/// vocabulary padding: its product with the tensor-parallel size divides the vocabulary. Returns
/// `None` if no value avoids padding.
pub(super) fn vocabulary_unit(vocabulary: u32, tensor: u32) -> Option<u32> {
    (vocabulary > 0 && vocabulary.is_multiple_of(tensor)).then(|| greatest_common(vocabulary / tensor, VOCABULARY_UNIT))
}

const fn greatest_common(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Formats the warnings, one or two sentences each.
pub(super) fn warnings(
    scenario: &Scenario,
    planner: PlannerKind,
    planned: &Planned,
    module: &Module,
    batches: &[BatchSummary],
) -> Vec<String> {
    let mut warnings = Vec::new();
    warnings.extend(vocabulary(module, planned.layout.tensor));
    sequences(scenario, planned, batches, &mut warnings);
    architecture(module, &mut warnings);
    settings(scenario, planner, planned.layout.pipeline, &mut warnings);
    warnings
}

fn vocabulary(module: &Module, tensor: u32) -> Option<String> {
    let vocabulary = module.vocab;
    if vocabulary == 0 {
        return None;
    }
    let padded = vocabulary.next_multiple_of(VOCABULARY_UNIT * tensor);
    let Some(unit) = vocabulary_unit(vocabulary, tensor) else {
        let min_vocabulary = vocabulary.next_multiple_of(tensor);
        return Some(format!(
            "Padding: the vocabulary of {vocabulary} does not divide by TP {tensor}. With --make-vocab-size-divisible-by 1 \
             Megatron-LM pads it to {min_vocabulary}, without it to {padded}; the plan has {vocabulary}."
        ));
    };
    let default = if padded == vocabulary {
        String::new()
    } else {
        format!(
            " Without --make-vocab-size-divisible-by {unit} Megatron-LM pads it to {padded}, {} more rows of embedding and output \
             head.",
            padded - vocabulary
        )
    };
    Some(format!(
        "Padding: the vocabulary of the plan is {vocabulary}; Megatron-LM takes that of your tokenizer instead of --vocab-size, \
         unless it is the NullTokenizer.{default}"
    ))
}

fn sequences(scenario: &Scenario, planned: &Planned, batches: &[BatchSummary], warnings: &mut Vec<String>) {
    let workload = &scenario.workload;
    let batch = FullBatch::new(scenario, planned, batches);
    warnings.extend(batch.note(scenario));
    let tokens: u64 = batches.iter().map(|summary| summary.tokens).sum();
    let sequences: u64 = batches.iter().map(|summary| u64::from(summary.sequences)).sum();
    let context = workload.context_length;
    if workload.packing == Packing::Padded && tokens < sequences * u64::from(context) {
        let filled = 100.0 * tokens as f64 / (sequences as f64 * f64::from(context));
        warnings.push(format!(
            "Padding: a sample fills {filled:.0} % of its sequence on average; pretrain_gpt.py fills every sequence of {context} \
             tokens with further documents, so a step trains on more tokens than the plan counts."
        ));
    }
    if workload.packing == Packing::Packed {
        warnings.push(
            "Packing: the plan joins whole samples, and attention stays inside a sample. pretrain_gpt.py cuts documents at the \
             end of a sequence, and attends across them unless you set --reset-attention-mask and --reset-position-ids."
                .to_owned(),
        );
    }
    if workload.max_samples.is_some() || workload.max_video_s.is_some() {
        warnings.push("The limits of samples or seconds a sequence have no argument.".to_owned());
    }
    let at_once = u64::from(batch.microbatch) * u64::from(planned.layout.data);
    if !u64::from(batch.global_batch).is_multiple_of(at_once) {
        warnings.push(format!(
            "Megatron-LM wants the global batch to be a multiple of {at_once} (microbatch x DP); {} is none.",
            batch.global_batch
        ));
    }
}

fn architecture(module: &Module, warnings: &mut Vec<String>) {
    if module.mask == Mask::Full {
        warnings.push("The plan attends to every position; pretrain_gpt.py has a causal mask.".to_owned());
    }
    if module.headless {
        warnings.push("The plan has no output head; pretrain_gpt.py has one.".to_owned());
    }
    if module.frozen {
        warnings.push("The plan freezes the layers; no argument of pretrain_gpt.py does.".to_owned());
    }
    if module.moe.is_some() {
        warnings.push(
            "The plan deals tokens evenly over the experts; Megatron-LM's router does not, and --moe-router-load-balancing-type is \
             your own."
                .to_owned(),
        );
    }
    super::layers::warn(module, warnings);
    if module.bias == Bias::All && module.gated {
        warnings
            .push("Check the biases of the gated MLP: the plan counts one for each of its three products.".to_owned());
    }
}

fn settings(scenario: &Scenario, planner: PlannerKind, pipeline: u32, warnings: &mut Vec<String>) {
    let training = &scenario.training;
    if training.zero_stage() >= 2 {
        warnings.push(format!(
            "The plan shards {} over DP (ZeRO-{}); --use-distributed-optimizer shards the optimizer alone, so more memory is needed.",
            if training.zero_stage() == 2 { "gradients too" } else { "gradients and weights too" },
            training.zero_stage()
        ));
    }
    if training.offloads_parameters() {
        warnings.push(
            "The plan has weights and gradients in host memory; Megatron-LM offloads the optimizer alone, so more memory is needed."
                .to_owned(),
        );
    }
    if training.activation_offload > 0.0 {
        warnings.push(format!(
            "The plan moves {:.0} % of the activations to the host; no argument here does, so more memory is needed.",
            100.0 * training.activation_offload
        ));
    }
    if training.master_weights == MasterWeights::None {
        warnings.push(
            "The plan has no master weights; Megatron-LM stores them in fp32, so more memory is needed.".to_owned(),
        );
    }
    if training.zero_stage() != 1 && (training.moments, training.master_weights) != Default::default() {
        warnings.push(
            "--use-precision-aware-optimizer needs the distributed optimizer (ZeRO-1), which the plan does not have."
                .to_owned(),
        );
    }
    if training.zero_stage() == 0 && training.offloaded_optimizer() > 0.0 {
        warnings.push(
            "Megatron-LM offloads the optimizer only with --use-distributed-optimizer (ZeRO-1), which the plan does not have."
                .to_owned(),
        );
    }
    if matches!(training.optimizer, Optimizer::Adam8Bit | Optimizer::Adafactor) {
        warnings.push(format!(
            "The plan has {}; Megatron-LM's Adam keeps two moments in fp32, so more memory is needed.",
            training.optimizer.title()
        ));
    }
    if training.tensor_overlap > 0.0 && training.tensor_overlap < 1.0 {
        warnings.push(format!(
            "The plan overlaps {:.0} % of the tensor-parallel communication; --tp-comm-overlap (Transformer Engine) overlaps all of it.",
            100.0 * training.tensor_overlap
        ));
    }
    if training.data_overlap > 0.0 {
        warnings.push(format!(
            "The plan hides {:.0} % of the data-parallel communication; the overlap arguments decide how much it really is.",
            100.0 * training.data_overlap
        ));
    }
    if planner == PlannerKind::OneFOneB && training.overlapped_sends && pipeline > 1 {
        warnings.push(
            "The plan overlaps sends between stages with computation; Megatron-LM overlaps them only in interleaved schedules."
                .to_owned(),
        );
    }
    if training.precision == Precision::Fp32 {
        warnings.push("The plan computes fp32 products in TF32: set torch.backends.cuda.matmul.allow_tf32.".to_owned());
    }
    if training.recompute == Recompute::Operators {
        warnings.push(
            "Megatron-LM has no recomputation of every second matrix product: --recompute-activations recomputes attention."
                .to_owned(),
        );
    }
    kernels(training, warnings);
    if !training.overrides.is_empty() || !scenario.profiles.is_empty() {
        warnings.push("The plan uses measured times; they change no argument.".to_owned());
    }
}

/// Appends the differences of the kernels, of the loss and of the execution.
fn kernels(training: &Training, warnings: &mut Vec<String>) {
    if training.chunked_loss || training.in_place_loss {
        let how = if training.chunked_loss { "in chunks" } else { "in the memory of the logits" };
        warnings.push(format!(
            "The plan computes the loss {how}; no argument here does, so the logits need more memory than planned."
        ));
    }
    if training.framework != Framework::Megatron {
        warnings.push(format!(
            "The plan has the kernels and the host time of {}; those of Megatron-LM differ.",
            training.framework.title()
        ));
    }
    match training.execution {
        None => {}
        Some(Execution::CudaGraph) => warnings.push(
            "The plan replays CUDA graphs, without time of the host; add the arguments of CUDA graphs of your version of \
             Megatron-LM (--cuda-graph-impl)."
                .to_owned(),
        ),
        Some(Execution::Compiled) => warnings.push(
            "The plan has operators that torch.compile fuses; no argument here compiles the layers, whose kernels are those of \
             Megatron-LM."
                .to_owned(),
        ),
        Some(Execution::Eager) => warnings.push(
            "The plan runs each operator as a kernel of its own; Megatron-LM has fused kernels, so a step is faster than planned."
                .to_owned(),
        ),
    }
    if training.expert_overlap > 0.0 {
        warnings.push(format!(
            "The plan overlaps {:.0} % of the exchange between experts; --overlap-moe-expert-parallel-comm decides how much it \
             really is.",
            100.0 * training.expert_overlap
        ));
    }
}

#[cfg(test)]
mod tests {
    use planner::model::presets::model;

    use super::*;

    /// 32,000 / 8 = 4,000 = 2^5 x 125, so 32 divides it. 128 x 8 does not divide 32,000, and the
    /// next multiple is 32,768.
    #[test]
    fn a_vocabulary_is_padded_to_the_unit_times_tp() {
        assert_eq!(vocabulary_unit(32_000, 8), Some(32));
        assert_eq!(vocabulary_unit(128_256, 1), Some(128));
        assert_eq!(vocabulary_unit(50_257, 2), None);
        let llama = model("llama-2-7b").unwrap().modules.remove(0);
        let text = vocabulary(&llama, 8).unwrap();
        assert!(text.contains("--make-vocab-size-divisible-by 32 ") && text.contains("32768, 768 more rows"), "{text}");
        let even = vocabulary(&llama, 1).unwrap();
        assert!(!even.contains("pads it"), "32,000 is 250 x 128: {even}");
        let odd = Module { vocab: 50_257, ..llama };
        let text = vocabulary(&odd, 2).unwrap();
        assert!(text.contains("pads it to 50258, without it to 50432"), "{text}");
    }

    #[test]
    fn settings_without_an_argument_are_named() {
        let scenario = |training: &str| {
            let text = include_str!("../../../../examples/llama-2-7b-long-documents.json");
            let mut value: serde_json::Value = serde_json::from_str(text).unwrap();
            value["training"] = serde_json::from_str(training).unwrap();
            planner::scenario::parse(&value.to_string()).unwrap()
        };
        let warnings = |training: &str| {
            let mut found = Vec::new();
            settings(&scenario(training), PlannerKind::Interleaved, 4, &mut found);
            found
        };
        assert_eq!(warnings("{}"), Vec::<String>::new());
        let found = warnings(r#"{"zero": 3, "activation_offload": 0.5, "tensor_overlap": 0.8, "precision": "fp32"}"#);
        let offloading = warnings(r#"{"zero": 3, "parameter_offload": true}"#);
        assert!(offloading.len() == 2 && offloading[1].contains("in host memory"), "{offloading:?}");
        assert_eq!(found.len(), 4, "{found:?}");
        let others = warnings(r#"{"chunked_loss": true, "execution": "cuda_graph", "framework": "torchtitan"}"#);
        for (warning, text) in others.iter().zip(["the loss in chunks", "host time of torchtitan", "--cuda-graph-impl"])
        {
            assert!(warning.contains(text), "{text}: {others:?}");
        }
        assert_eq!(others.len(), 3, "{others:?}");
        // Both count the layers of a virtual stage.
        assert_eq!(warnings(r#"{"recompute": "full", "recompute_layers": 2}"#), Vec::<String>::new());
        assert!(found[0].contains("ZeRO-3") && found[1].contains("50 %") && found[2].contains("--tp-comm-overlap"));
    }
}
