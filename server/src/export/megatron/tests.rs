//! Arguments for the layers per stage and for recomputed modules.

use planner::training::RecomputedModule;

use super::*;
use crate::export::testing;

#[test]
fn even_stages_need_no_argument() {
    assert_eq!(shell_arguments(&[8, 8, 8, 8], 1), None);
    assert_eq!(shell_arguments(&[32], 1), None);
    assert_eq!(shell_arguments(&[4; 8], 2), None);
}

#[test]
fn uneven_ends_are_numbers() {
    let arguments = |counts: &[u32]| shell_arguments(counts, 1).unwrap();
    assert_eq!(arguments(&[7, 9, 9, 7]), "--decoder-first-pipeline-num-layers 7 --decoder-last-pipeline-num-layers 7");
    assert_eq!(arguments(&[7, 8, 8, 8]), "--decoder-first-pipeline-num-layers 7");
    assert_eq!(arguments(&[8, 8, 8, 7]), "--decoder-last-pipeline-num-layers 7");
    // The rest of the layers is on the last stage.
    assert_eq!(arguments(&[17, 15]), "--decoder-first-pipeline-num-layers 17");
}

#[test]
fn other_stages_are_a_layout_with_embedding_and_head() {
    let layout = |counts: &[u32], chunks| shell_arguments(counts, chunks).unwrap();
    assert_eq!(layout(&[7, 9, 8, 8], 1), "--pipeline-model-parallel-layout 'Et*7|t*9|t*8|t*8L'");
    // Embedding and head alone, and a stage of one layer.
    assert_eq!(layout(&[0, 4, 1, 0], 1), "--pipeline-model-parallel-layout 'E|t*4|t|L'");
    // Two virtual stages on each of two ranks: rank 0 has stages 0 and 2.
    assert_eq!(layout(&[7, 8, 8, 9], 2), "--pipeline-model-parallel-layout 'Et*7|t*8|t*8|t*9L'");
}

#[test]
fn recomputed_modules_are_exported() {
    let (mut scenario, planned, batches) = testing::planned("1f1b", &[]);
    scenario.training.recompute = Recompute::Selective;
    scenario.training.recompute_modules = vec![RecomputedModule::CoreAttn, RecomputedModule::Layernorm];
    let text = arguments(&scenario, PlannerKind::OneFOneB, &planned, &batches).unwrap();
    let modules = "--recompute-granularity selective --recompute-modules core_attn layernorm";
    assert!(text.contains(modules) && !text.contains("--recompute-activations"), "{text}");
    scenario.training.recompute_modules.clear();
    let text = arguments(&scenario, PlannerKind::OneFOneB, &planned, &batches).unwrap();
    assert!(text.contains("--recompute-activations") && !text.contains("--recompute-modules"), "{text}");
}

/// 32 layers on four stages. The head of Llama-3 takes as long as several layers, so free stages are uneven.
#[test]
fn planned_layers_are_exported() {
    let (scenario, planned, batches) = testing::planned("1f1b", &["layers_per_stage"]);
    let counts = layer_counts(&planned, 32).unwrap();
    assert!(counts.iter().sum::<u32>() == 32 && !is_even(&counts), "{counts:?}");
    let text = arguments(&scenario, PlannerKind::OneFOneB, &planned, &batches).unwrap();
    assert!(text.contains(&shell_arguments(&counts, 1).unwrap()), "{text}");
    let (scenario, planned, batches) = testing::planned("interleaved", &["layers_per_stage"]);
    let text = arguments(&scenario, PlannerKind::Interleaved, &planned, &batches).unwrap();
    let counts = layer_counts(&planned, 32).unwrap();
    assert_eq!(counts.len() as u32, planned.layout.pipeline * planned.layout.chunks);
    match shell_arguments(&counts, planned.layout.chunks) {
        Some(uneven) => assert!(text.contains(&uneven) && !text.contains("virtual-pipeline-stage 4"), "{text}"),
        None => assert!(text.contains("--num-layers-per-virtual-pipeline-stage "), "{text}"),
    }
}

/// The arguments of a plan, read again as a script.
fn read_again(text: &str) -> ingest::job_config::JobConfig {
    let script = format!("{text}torchrun --nproc_per_node 8 pretrain_gpt.py \"${{MEGATRON_ARGS[@]}}\"\n");
    ingest::job_config::read("run.sh", script.as_bytes()).unwrap()
}

#[test]
fn vocabulary_and_experts_are_read_again() {
    let (mut scenario, planned, batches) = testing::planned("1f1b", &[]);
    for vocab in [128_256, 50_257, 32_001] {
        scenario.model.modules[0].vocab = vocab;
        let text = arguments(&scenario, PlannerKind::OneFOneB, &planned, &batches).unwrap();
        assert_eq!(read_again(&text).scenario.model.modules[0].vocab, vocab, "{text}");
    }
    scenario.model.modules[0].moe = Some(planner::model::Moe::new(8, 2));
    scenario.training.expert_parallel = 2;
    let text = arguments(&scenario, PlannerKind::OneFOneB, &planned, &batches).unwrap();
    assert!(text.contains("--moe-token-dispatcher-type alltoall\n  --moe-grouped-gemm\n"), "{text}");
    scenario.training.dispatch_by_node = true;
    let text = arguments(&scenario, PlannerKind::OneFOneB, &planned, &batches).unwrap();
    assert!(text.contains("--moe-token-dispatcher-type flex --moe-enable-deepep\n"), "{text}");
    assert!(!text.contains("alltoall") && text.contains("--moe-grouped-gemm"), "{text}");
}

#[test]
fn an_offloaded_optimizer_is_precision_aware() {
    let (mut scenario, planned, batches) = testing::planned("1f1b", &[]);
    scenario.training.optimizer_offload = 0.5;
    scenario.training.attention = AttentionKernel::Cudnn;
    let text = arguments(&scenario, PlannerKind::OneFOneB, &planned, &batches).unwrap();
    assert!(text.contains("--use-precision-aware-optimizer\n  --optimizer-cpu-offload"), "{text}");
    let job = read_again(&text);
    assert_eq!((job.scenario.training.attention, job.refusals), (AttentionKernel::Cudnn, Vec::new()), "{text}");
    let without = text.replace("--use-precision-aware-optimizer", "");
    assert_eq!(read_again(&without).refusals.len(), 1);
}
