//! Jobs that Megatron-LM refuses.

use super::*;

const PLAIN: &str = "torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py --num-layers 32 --hidden-size 4096 \
                     --num-attention-heads 32 --group-query-attention --num-query-groups 8 --seq-length 4096 \
                     --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 128 --bf16 --swiglu --vocab-size 32000";
const EXPERTS: &str =
    "--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall --expert-model-parallel-size 8";

fn refusals(options: &str) -> Vec<String> {
    config(&format!("{PLAIN} {options}\n")).refusals
}

#[test]
fn arguments_that_exclude_each_other_are_refused() {
    for (options, words) in [
        ("--pipeline-model-parallel-size 2 --cpu-offloading-num-layers 4", "with pipeline parallelism (2 stages)"),
        (
            "--cpu-offloading-num-layers 4 --recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
            "(cpu-offloading-num-layers) with recomputation",
        ),
        ("--cpu-offloading-num-layers 32", "of 32 layers of a model with 32"),
        (
            format!("--tensor-model-parallel-size 2 {EXPERTS}").as_str(),
            "expert parallelism (8) without sequence-parallel",
        ),
        ("--optimizer muon --use-distributed-optimizer", "Muon with use-distributed-optimizer"),
        ("--optimizer muon --overlap-grad-reduce", "Muon with overlap-grad-reduce"),
        ("--use-distributed-optimizer --fp8-param-gather", "fp8-param-gather without fp8-format"),
        ("--recompute-granularity full", "full without recompute-method"),
        ("--recompute-granularity selective --recompute-method uniform", "selective with recompute-method"),
        ("--use-distributed-optimizer --overlap-param-gather", "overlap-param-gather without overlap-grad-reduce"),
        ("--overlap-grad-reduce --overlap-param-gather", "overlap-param-gather without use-distributed-optimizer"),
        ("--tensor-model-parallel-size 2 --tp-comm-overlap", "tp-comm-overlap without sequence-parallel"),
        ("--sequence-parallel --tp-comm-overlap", "tp-comm-overlap without tensor parallelism"),
        (
            "--tensor-model-parallel-size 4 --sequence-parallel --context-parallel-size 4 --cp-comm-type a2a",
            "2 key and value heads of a tensor-parallel rank are no multiple of 4",
        ),
    ] {
        let refusals = refusals(options);
        assert!(refusals.len() == 1 && refusals[0].contains(words), "{options}: {refusals:?}");
    }
}

#[test]
fn arguments_that_go_together_are_not_refused() {
    for options in [
        "--cpu-offloading-num-layers 31",
        format!("--tensor-model-parallel-size 2 --sequence-parallel {EXPERTS}").as_str(),
        EXPERTS,
        "--optimizer muon",
        "--use-distributed-optimizer --fp8-param-gather --fp8-format hybrid",
        "--recompute-granularity full --recompute-method block --recompute-num-layers 2",
        "--recompute-granularity selective",
        "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather",
        "--tensor-model-parallel-size 2 --sequence-parallel --tp-comm-overlap",
        "--tensor-model-parallel-size 2 --sequence-parallel --context-parallel-size 4 --cp-comm-type a2a",
        "--tensor-model-parallel-size 4 --sequence-parallel --context-parallel-size 4 --cp-comm-type p2p",
        "--deepspeed --zero-stage 1 --recompute-granularity full",
    ] {
        assert!(refusals(options).is_empty(), "{options}: {:?}", refusals(options));
    }
}

#[test]
fn degrees_that_no_layout_has_are_refused() {
    for (options, words) in [
        ("--num-layers-per-virtual-pipeline-stage 4", "interleaves only with 2 or more pipeline stages"),
        (
            &format!("--pipeline-model-parallel-size 8 {EXPERTS}"),
            "The 4 devices of a stage are no multiple of expert parallelism (8",
        ),
        ("--tensor-model-parallel-size 32 --num-attention-heads 16", "of 32 does not divide the 16 attention heads"),
    ] {
        let refusals = refusals(options);
        assert!(refusals.iter().any(|refusal| refusal.contains(words)), "{options}: {refusals:?}");
    }
}
