//! Memory: whether a job fits, which rank is the fullest, and what makes it fit.

use api::check::Verdict;
use harness::TestServer;
use planner::fit::ChangeKind;
use serde_json::Value;

use crate::{LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_70B_ARGUMENTS, changes, check, job, scenario, step_s, with};

/// Question 1. 70.55 billion parameters with 18 bytes (weights and gradients, fp32 optimizer state) over 16 devices are 73.9 GiB.
/// Activations come on top.
#[tokio::test(flavor = "multi_thread")]
async fn does_llama_3_70b_fit_on_16_h100() {
    let request = job(LLAMA_3_70B, 16);
    let checked = check(&request).await;
    assert_eq!(checked.verdict, Verdict::DoesNotFit);
    assert!(checked.fit.ranks.len() >= 2);
    for need in &checked.fit.ranks {
        let memory = &need.memory;
        let states = memory.weights_gib + memory.gradients_gib + memory.optimizer_gib;
        assert!((states / 73.9 - 1.0).abs() < 0.03, "{states}");
        assert!(memory.activations_gib > 3.0 && memory.resident_gib() > checked.fit.limit_gib, "{memory:?}");
    }
    let found = changes(&request).await.fit;
    let titles: Vec<&str> = found.changes.iter().map(|change| change.title.as_str()).collect();
    assert!(titles.contains(&"full recomputation") && titles.contains(&"4 nodes"), "{titles:?}");
    assert!(found.changes.iter().all(|change| change.result.peak_gib.unwrap() <= found.limit_gib));
    // More devices cost money and come last.
    assert_eq!(found.changes.last().unwrap().kind, ChangeKind::Cluster);
}

/// Question 2. With 1F1B, stage s of p holds the activations of p - s microbatches, so the first rank is the fullest.
#[tokio::test(flavor = "multi_thread")]
async fn why_does_rank_0_need_more_memory_than_the_last_stage() {
    let text = format!("{LLAMA_3_70B_ARGUMENTS} --tensor-model-parallel-size 4 --pipeline-model-parallel-size 4");
    let checked = check(&job(&text, 64)).await;
    let [first, second, _, last] = checked.fit.ranks.as_slice() else { panic!("{:?}", checked.fit.ranks) };
    let ratio = first.memory.activations_gib / last.memory.activations_gib;
    assert!((3.4..4.1).contains(&ratio), "four microbatches against one: {ratio}");
    assert!(first.memory.activations_gib > second.memory.activations_gib);
    assert!(first.layers.contains("with the embedding") && last.layers.contains("with the output head"));
    // Embedding and head have equal weights: activations are the difference.
    assert!((first.memory.weights_gib - last.memory.weights_gib).abs() < 0.1);
}

/// Question 3. States of 18 bytes per parameter need 16 devices of 80 GB, and eight of 192 GB. With optimizer and activations
/// in host memory, eight devices of 80 GB are enough, and half a node of larger devices.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_the_fewest_number_of_gpus_for_llama_3_70b() {
    let server = TestServer::open().await;
    let id = server.store(&scenario("llama-3-70b", 2, 8192)).await;
    let table: Value = server.get(&api::path::fewest_devices(&id)).await.json();
    let devices = |name: &str| {
        let row = table["rows"].as_array().unwrap().iter().find(|row| row["name"] == name);
        row.unwrap_or_else(|| panic!("{name}: {table}"))["devices"].as_u64().unwrap()
    };
    assert_eq!((devices("H100"), devices("H200"), devices("MI300X")), (8, 4, 4));
    // 24 devices are possible: 80 layers need no divisor of the stages.
    let uneven =
        with(scenario("llama-3-70b", 3, 8192), &[("/free", serde_json::json!(["layers_per_stage", "recompute"]))]);
    let plans = crate::Plans::of(&uneven).await;
    assert!(plans.metric("1f1b", "peak_memory_gib") < 76.0);
}

/// Question 3, second part. No equal stages exist for 24 devices. The check of a `config.json` proposes uneven ones, with the same
/// time in its list of changes.
#[tokio::test(flavor = "multi_thread")]
async fn does_llama_3_70b_fit_on_24_h100() {
    let request = job(LLAMA_3_70B, 24);
    let checked = check(&request).await;
    let plan = checked.plan.unwrap_or_else(|| panic!("{:?}", checked.fit.base.binding));
    let layers = &checked.fit.base.stage_layers;
    assert!(24 % layers.len() == 0 && layers.iter().sum::<u32>() == 80, "{layers:?}");
    let sentence = checked.assumed.iter().find(|sentence| sentence.starts_with("No layout with equal stages fits."));
    let listed = layers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    assert!(sentence.is_some_and(|sentence| sentence.contains(&listed)), "{:?}", checked.assumed);
    let base = changes(&request).await.fit.base;
    assert_eq!(base.iteration_s, Some(plan.metrics.iteration_s));
}

/// Question 6. Flash attention stores no scores, so selective recomputation saves nothing. Whole layers of a stage fit but
/// are slow; the change recomputes as few layers as fit.
#[tokio::test(flavor = "multi_thread")]
async fn which_recomputation_do_i_need() {
    let degrees =
        "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 1 --micro-batch-size 4 --global-batch-size 64";
    let text = format!("{LLAMA_3_8B} {degrees}");
    let found = changes(&job(&text, 8)).await;
    assert_eq!(found.fit.base.iteration_s, None, "without recomputation it does not fit");
    let is_recomputation = |title: &str| title.contains("recomputation");
    let index = found.fit.changes.iter().position(|change| is_recomputation(&change.title)).unwrap();
    let change = &found.fit.changes[index];
    assert!(change.title.ends_with("layers per stage"), "{}", change.title);
    let selective = format!("{text} --recompute-granularity selective");
    assert_eq!(check(&job(&selective, 8)).await.verdict, Verdict::DoesNotFit);
    let all = format!("{text} --recompute-granularity full --recompute-method uniform --recompute-num-layers 1");
    assert!(change.result.iteration_s.unwrap() < step_s(&job(&all, 8)).await);
    // The change is a line of the script.
    let settings: Vec<&str> = found.edits[index].iter().map(|edit| edit.setting.as_str()).collect();
    assert!(settings.contains(&"--recompute-granularity full"), "{settings:?}");
}
