//! Layout: degrees, and layers of the stages.

use api::check::{Check, apply};
use harness::TestServer;
use serde_json::json;

use crate::{LLAMA_3_8B, LLAMA_3_70B_ARGUMENTS, Plans, changes, check, job, scenario, step_s, with};

/// Question 5. The searched plan is faster than the stated one, and says its degrees.
#[tokio::test(flavor = "multi_thread")]
async fn which_tp_pp_and_microbatch_are_fastest_for_llama_3_70b_on_64_h100() {
    let degrees = "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 8";
    let checked: Check = check(&job(&format!("{LLAMA_3_70B_ARGUMENTS} {degrees}"), 64)).await;
    let stated = checked.plan.expect("it fits").metrics.iteration_s;
    let mut free = serde_json::to_value(&checked.best_scenario).unwrap();
    assert_eq!(free["planners"], json!(["best"]));
    // The search of all planners takes longer; 1F1B with a free layout and recomputation shows the order.
    (free["planners"], free["free"]) = (json!(["1f1b"]), json!(["recompute", "zero"]));
    let plans = Plans::of(&free).await;
    let found = plans.answer("1f1b");
    assert!(plans.step_s("1f1b") < 0.95 * stated, "{} against {stated}", plans.step_s("1f1b"));
    let degree = |name: &str| found["layout"][name].as_u64().unwrap();
    assert_eq!(degree("tensor") * degree("pipeline") * degree("data"), 64);
    assert!(degree("pipeline") < 8, "fewer stages have a shorter bubble: {}", found["layout"]);
}

/// Question 8. The output head of 128,256 words takes as long as 2.5 layers, so the last of eight stages has two layers.
#[tokio::test(flavor = "multi_thread")]
async fn how_do_i_split_32_layers_with_embedding_and_head() {
    let even =
        with(scenario("llama-3-8b", 2, 8192), &[("/layout", json!({"tensor": 1, "pipeline": 8, "microbatch": 1}))]);
    let uneven =
        with(even.clone(), &[("/free", json!(["layers_per_stage"])), ("/planners", json!(["1f1b", "nnscaler"]))]);
    let plans = Plans::of(&uneven).await;
    let layers = plans.layers("1f1b");
    assert_eq!((layers.iter().sum::<u32>(), layers[7]), (32, 2), "{layers:?}");
    assert_eq!(layers, plans.layers("nnscaler"));
    assert!(plans.step_s("1f1b") < 0.9 * Plans::of(&even).await.step_s("1f1b"));
}

/// Question 8, second part. Sixteen stages do not divide 40 layers. The change is written as a layout of Megatron-LM, and the
/// changed script is read again.
#[tokio::test(flavor = "multi_thread")]
async fn how_do_i_split_40_layers_over_16_stages() {
    let text = "pretrain_gpt.py --tensor-model-parallel-size 1 --pipeline-model-parallel-size 16 --num-layers 40 --hidden-size 5120 \
        --ffn-hidden-size 13824 --num-attention-heads 40 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 \
        --global-batch-size 128 --swiglu --bf16 --vocab-size 32000 --untie-embeddings-and-output-weights \
        --use-distributed-optimizer --normalization RMSNorm --disable-bias-linear";
    let request = job(text, 16);
    let binding = check(&request).await.fit.base.binding.unwrap();
    assert!(binding.contains("does not divide the 40 layers"), "{binding}");
    let found = changes(&request).await;
    let index = found.fit.changes.iter().position(|change| change.title.contains("uneven layers")).unwrap();
    let change = &found.fit.changes[index];
    let layers = &change.result.stage_layers;
    assert_eq!((layers.len(), layers.iter().sum::<u32>()), (16, 40), "{layers:?}");
    assert!(layers.iter().all(|layers| (2..=3).contains(layers)), "{layers:?}");
    let [edit] = found.edits[index].as_slice() else { panic!("{:?}", found.edits[index]) };
    assert!(edit.setting.starts_with("--pipeline-model-parallel-layout Et*"), "{edit:?}");
    let edited = apply(text, [edit]).unwrap();
    assert!(edited.contains("--pipeline-model-parallel-layout 'Et*"), "{edited}");
    let again = step_s(&job(&edited, 16)).await;
    assert_eq!(again.to_bits(), change.result.iteration_s.unwrap().to_bits());
}

/// A script that states layers of the ends has these stages.
#[tokio::test(flavor = "multi_thread")]
async fn are_my_numbers_of_layers_at_the_ends_read() {
    let text = format!(
        "{LLAMA_3_8B} --tensor-model-parallel-size 1 --pipeline-model-parallel-size 8 --micro-batch-size 1 --global-batch-size 64 \
         --decoder-first-pipeline-num-layers 2 --decoder-last-pipeline-num-layers 6"
    );
    let server = TestServer::open().await;
    let checked: Check = crate::ask(&server, api::path::CHECKS, &job(&text, 8)).await;
    let stages = [2, 4, 4, 4, 4, 4, 4, 6];
    assert_eq!(
        (checked.scenario.layers_per_stage.as_slice(), checked.fit.base.stage_layers.as_slice()),
        (&stages[..], &stages[..])
    );
    assert!(checked.unknown.is_empty(), "{:?}", checked.unknown);
}
