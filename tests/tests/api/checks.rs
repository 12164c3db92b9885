//! Checks of training configurations.

use api::check::{
    Check, CheckChanges, CheckRequest, EditAction, LogCheck, LogCheckRequest, MAX_LOG_BYTES, NamedText,
    SlownessRequest, Verdict, apply, apply_to_files,
};
use api::job_config::ConfigFormat;
use api::path::{CHECK_CHANGES, CHECK_LOG, CHECK_SLOWNESS, CHECKS};
use api::problem::Problem;
use api::run::JobQuantity;
use api::scenario::ScenarioList;
use harness::TestServer;
use planner::slowness::{Measured, Relation, Slowness};

fn job(recompute: &str) -> String {
    format!(
        "[model]\nname = \"llama3\"\nflavor = \"8B\"\n\n[training]\nlocal_batch_size = 2\nseq_len = 8192\n\
         secret_key = \"hunter2\"\n\n[parallelism]\ntensor_parallel_degree = 1\n\n\
         [activation_checkpoint]\nmode = \"{recompute}\"\n"
    )
}

fn body(text: &str, devices: Option<u32>, device: Option<&str>) -> String {
    let request = CheckRequest {
        text: text.to_owned(),
        name: "job.toml".to_owned(),
        further: Vec::new(),
        devices,
        device: device.map(str::to_owned),
        budget: None,
    };
    serde_json::to_string(&request).unwrap()
}

/// The job does not fit without recomputation. A change of the list makes it fit with the promised time.
#[tokio::test]
async fn an_applied_change_keeps_its_promise() {
    let server = TestServer::open().await;
    let text = job("none");
    let checked: Check = server.request("POST", CHECKS, body(&text, Some(8), Some("h100"))).await.json();
    assert_eq!((checked.verdict, checked.format), (Verdict::DoesNotFit, Some(ConfigFormat::Torchtitan)));
    assert!(checked.plan.is_none() && checked.fit.changes.is_empty());
    assert!(checked.fit.ranks[0].memory.activations_gib > 10.0);
    assert_eq!(checked.unknown, ["training.secret_key"]);

    let reply = server.request("POST", CHECK_CHANGES, body(&text, Some(8), Some("h100"))).await;
    assert_eq!(reply.status, 200);
    let CheckChanges { fit, edits, .. } = reply.json();
    let found = fit.changes.iter().zip(&edits).find(|(_, edits)| !edits.is_empty());
    let (change, edits) = found.expect("torchtitan has a setting for one of the changes");
    let edited = apply(&text, edits).unwrap();
    let again: Check = server.request("POST", CHECKS, body(&edited, Some(8), Some("h100"))).await.json();
    assert_ne!(again.verdict, Verdict::DoesNotFit);
    assert_eq!(again.plan.unwrap().metrics.iteration_s.to_bits(), change.result.iteration_s.unwrap().to_bits());

    let list: ScenarioList = server.get(api::path::SCENARIOS).await.json();
    assert!(list.scenarios.is_empty(), "nothing is stored");
}

#[tokio::test]
async fn the_best_combination_keeps_its_promise() {
    let server = TestServer::open().await;
    // Tensor parallelism and recomputation are not needed.
    let text = job("full").replace("tensor_parallel_degree = 1", "tensor_parallel_degree = 8");
    let reply = server.request("POST", CHECK_CHANGES, body(&text, Some(8), None)).await;
    let CheckChanges { fit, edits, combination_edits } = reply.json();
    assert!(edits.iter().flatten().any(|edit| edit.action == EditAction::Replace), "{edits:?}");
    let combination = fit.combination.expect("two changes help together");
    let single = fit.changes[combination.changes[0] as usize].result.iteration_s.unwrap();
    assert!(combination.result.iteration_s.unwrap() < single);
    assert!(combination.changes.len() > 1);
    let edited = apply(&text, &combination_edits).unwrap();
    let again: Check = server.request("POST", CHECKS, body(&edited, Some(8), None)).await.json();
    let expected = combination.result.iteration_s.unwrap();
    assert_eq!(again.plan.unwrap().metrics.iteration_s.to_bits(), expected.to_bits(), "{edited}");
}

/// A job of LLaMA-Factory with the JSON of DeepSpeed. Each file has its own edits.
#[tokio::test]
async fn every_file_of_a_job_has_edits() {
    let server = TestServer::open().await;
    let text = "model_name_or_path: meta-llama/Llama-3.1-8B # base\nstage: sft\nfinetuning_type: full\n\
                deepspeed: ds.json\ncutoff_len: 2048\nper_device_train_batch_size: 4\n\
                gradient_accumulation_steps: 2\nbf16: true\ntorch_compile: true\nflash_attn: fa3\n";
    let deepspeed = "{\n\t\"bf16\": {\"enabled\": true},\n\t\"zero_optimization\": {\n\t\t\"stage\": 3,\n\t\t\"overlap_comm\": false\n\t}\n}\n";
    let body = |texts: &[String]| {
        let request = CheckRequest {
            text: texts[0].clone(),
            name: "job.yaml".to_owned(),
            further: vec![NamedText { name: "ds.json".to_owned(), text: texts[1].clone() }],
            devices: Some(16),
            ..CheckRequest::default()
        };
        serde_json::to_string(&request).unwrap()
    };
    let texts = [text.to_owned(), deepspeed.to_owned()];
    let CheckChanges { fit, edits, .. } = server.request("POST", CHECK_CHANGES, body(&texts)).await.json();
    let mut files: Vec<u32> = edits.iter().flatten().map(|edit| edit.file).collect();
    files.sort_unstable();
    files.dedup();
    assert_eq!(files, [0, 1], "{edits:?}");
    for (change, edits) in fit.changes.iter().zip(&edits).filter(|(_, edits)| !edits.is_empty()) {
        let edited = apply_to_files(&[text, deepspeed], edits).unwrap();
        let again: Check = server.request("POST", CHECKS, body(&edited)).await.json();
        let expected = change.result.iteration_s.unwrap();
        assert_eq!(again.plan.unwrap().metrics.iteration_s.to_bits(), expected.to_bits(), "{}", change.title);
    }
}

#[tokio::test]
async fn bad_requests_name_the_field_and_echo_no_values() {
    let server = TestServer::open().await;
    for (devices, device, pointer) in [(Some(0), None, "/devices"), (Some(8), Some("h1000"), "/device")] {
        let problem: Problem = server.request("POST", CHECKS, body(&job("full"), devices, device)).await.json();
        assert_eq!((problem.status, problem.errors[0].pointer.as_str()), (422, pointer));
    }
    let problem: Problem = server.request("POST", CHECKS, body("hello hunter2", None, None)).await.json();
    assert_eq!(problem.status, 422);
    assert!(!problem.detail.contains("hunter2"));
    let reply = server.request("POST", CHECKS, "{\"text\": 3}".to_owned()).await;
    assert_eq!(reply.status, 400);
    // 3 devices do not hold a tensor-parallel group of 2.
    let text = job("full").replace("tensor_parallel_degree = 1", "tensor_parallel_degree = 2");
    let problem: Problem = server.request("POST", CHECK_CHANGES, body(&text, Some(3), None)).await.json();
    assert_eq!(problem.status, 422, "{problem:?}");
}

#[tokio::test]
async fn a_slow_run_has_causes() {
    let server = TestServer::open().await;
    let text = job("full");
    let configuration: CheckRequest = serde_json::from_str(&body(&text, Some(16), None)).unwrap();
    let request = |measured| {
        let configuration = configuration.clone();
        serde_json::to_string(&SlownessRequest { configuration, measured }).unwrap()
    };
    let checked: Check = server.request("POST", CHECKS, body(&text, Some(16), None)).await.json();
    let predicted = checked.plan.unwrap().metrics.iteration_s;
    let reply = server.request("POST", CHECK_SLOWNESS, request(Measured::StepS(1.4 * predicted))).await;
    assert_eq!(reply.status, 200);
    let slowness: Slowness = reply.json();
    assert_eq!(slowness.relation, Relation::Slower);
    assert!(slowness.causes.iter().all(|cause| cause.explains_s > 0.0 && !cause.confirm.is_empty()));
    assert!(slowness.causes.len() > 1, "{slowness:?}");
    let problem: Problem = server.request("POST", CHECK_SLOWNESS, request(Measured::StepS(0.0))).await.json();
    assert_eq!((problem.status, problem.errors[0].pointer.as_str()), (422, "/measured"));
}

/// Arguments of Megatron-LM for 8 layers on two stages.
const MEGATRON: &str = "--num-layers 8 --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 --max-position-embeddings 2048 \
    --micro-batch-size 1 --global-batch-size 8 --tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 --bf16 --vocab-size 50257";

/// Log of a step every line, with the timers of the printing rank. The forward timer contains that of the batches.
fn log(batch: u32, step_ms: f64, backward_ms: f64) -> String {
    let line = |step: u32| {
        format!(
            " iteration {step:8}/    1000 | consumed samples: {:12} | elapsed time per iteration (ms): {step_ms:.1} | \
             learning rate: 1.000E-04 | global batch size: {batch:5} | lm loss: 2.0E+00 |\n\
             time (ms) | forward-compute: {:.2} | backward-compute: {backward_ms:.2} | backward-params-all-reduce: \
             2.00 | optimizer: 5.00 | batch-generator: {:.2}\n",
            step * batch,
            0.4 * step_ms,
            0.3 * step_ms
        )
    };
    (1..30).map(line).collect()
}

#[tokio::test]
async fn a_log_is_compared_by_phase_and_its_causes_are_simulated() {
    let server = TestServer::open().await;
    let checked: Check = server.request("POST", CHECKS, body(MEGATRON, Some(8), Some("a100-80gb"))).await.json();
    let predicted = checked.plan.unwrap().metrics.iteration_s;
    let configuration: CheckRequest = serde_json::from_str(&body(MEGATRON, Some(8), Some("a100-80gb"))).unwrap();
    let request = |text: String| {
        let log = NamedText { name: "run.log".to_owned(), text };
        serde_json::to_string(&LogCheckRequest { configuration: configuration.clone(), log }).unwrap()
    };
    let slow = 1500.0 * predicted;
    let reply = server.request("POST", CHECK_LOG, request(log(8, slow, 0.9 * slow))).await;
    assert_eq!(reply.status, 200);
    let LogCheck { comparison, slowness } = reply.json();
    assert!(comparison.job.is_comparable(), "{:?}", comparison.job);
    assert_eq!(comparison.run, "run.log");
    let backward = comparison.phases.iter().find(|phase| phase.phase.starts_with("backward")).unwrap();
    assert!((backward.measured_s - 0.0009 * slow).abs() < 1e-4, "{backward:?}");
    assert!(backward.predicted_s.is_some_and(|predicted| predicted > 0.0 && predicted < backward.measured_s));
    let slowness = slowness.unwrap();
    assert_eq!(slowness.relation, Relation::Slower);
    assert!((slowness.measured_s / predicted - 1.5).abs() < 0.01 && !slowness.causes.is_empty());
    // The timer of the loader explains 0.3 x 1.5 of 0.5 predicted steps.
    let read = slowness.causes.iter().find(|cause| cause.title.starts_with("reading of batches")).unwrap();
    assert!((read.explains_s / predicted - 0.45).abs() < 0.01, "{read:?}");

    // A log of another batch is not compared, and nothing is explained.
    let other: LogCheck = server.request("POST", CHECK_LOG, request(log(16, slow, 0.5 * slow))).await.json();
    assert!(other.slowness.is_none() && !other.comparison.job.is_comparable());
    let differs = other.comparison.job.differences().any(|check| check.quantity == JobQuantity::GlobalBatch);
    assert!(differs, "{:?}", other.comparison.job);

    for text in ["no steps here\n".to_owned(), "x".repeat(MAX_LOG_BYTES + 1)] {
        let problem: Problem = server.request("POST", CHECK_LOG, request(text)).await.json();
        assert_eq!((problem.status, problem.errors[0].pointer.as_str()), (422, "/log/text"));
    }
}
