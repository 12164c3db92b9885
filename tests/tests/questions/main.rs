//! Questions that engineers ask about training jobs, and the answers of the API. The name of a test is the question.
//!
//! Each test asserts the substance of the answer: figures within published facts, the order of alternatives, the cause.
//! Questions about pages are in tests/e2e/questions.test.mjs.

mod budget;
mod files;
mod layout;
mod lengths;
mod memory;
mod models;
mod modules;
mod runs;
mod schedules;
mod speed;

use api::check::{Check, CheckChanges, CheckRequest};
use api::path::{CHECK_CHANGES, CHECKS};
use harness::TestServer;
use serde::Serialize;
use serde_json::{Value, json};

/// `config.json` of Llama-3 70B.
const LLAMA_3_70B: &str = r#"{"model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80,
    "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192}"#;

/// Arguments of Megatron-LM for Llama-3 8B with 8,192 tokens, without degrees.
const LLAMA_3_8B: &str = "pretrain_gpt.py --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 \
    --group-query-attention --num-query-groups 8 --seq-length 8192 --max-position-embeddings 8192 --swiglu --bf16 \
    --vocab-size 128256 --untie-embeddings-and-output-weights --use-distributed-optimizer --normalization RMSNorm \
    --disable-bias-linear --attention-backend flash";

/// Arguments of Megatron-LM for Llama-3 70B with 8,192 tokens, without degrees.
const LLAMA_3_70B_ARGUMENTS: &str = "pretrain_gpt.py --num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 \
    --num-attention-heads 64 --group-query-attention --num-query-groups 8 --seq-length 8192 --max-position-embeddings 8192 \
    --swiglu --bf16 --vocab-size 128256 --untie-embeddings-and-output-weights --use-distributed-optimizer --sequence-parallel \
    --normalization RMSNorm --disable-bias-linear --attention-backend flash --micro-batch-size 1 --global-batch-size 128";

/// A job on a number of H100.
fn job(text: &str, devices: u32) -> CheckRequest {
    CheckRequest {
        text: text.to_owned(),
        devices: Some(devices),
        device: Some("h100".to_owned()),
        ..CheckRequest::default()
    }
}

/// Sends a document and reads the response.
async fn ask<T: serde::de::DeserializeOwned>(server: &TestServer, path: &str, body: &impl Serialize) -> T {
    let reply = server.post(path, serde_json::to_string(body).unwrap()).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()
}

async fn check(request: &CheckRequest) -> Check {
    ask(&TestServer::open().await, CHECKS, request).await
}

async fn changes(request: &CheckRequest) -> CheckChanges {
    ask(&TestServer::open().await, CHECK_CHANGES, request).await
}

/// Seconds per step of a job that fits.
async fn step_s(request: &CheckRequest) -> f64 {
    let check = check(request).await;
    check.plan.unwrap_or_else(|| panic!("{:?}", check.fit.base.binding)).metrics.iteration_s
}

/// A scenario of one model on H100 with samples of `tokens`.
fn scenario(model: &str, nodes: u32, tokens: u32) -> Value {
    json!({
        "schema": "scenario/1",
        "model": {"preset": model},
        "cluster": {"preset": "h100", "nodes": nodes},
        "workload": {
            "samples": {
                "kind": "drawn",
                "text_tokens": {"kind": "constant", "value": tokens},
                "images": {"kind": "constant", "value": 0}
            },
            "global_batch": 64,
            "context_length": tokens,
            "packing": "single"
        },
        "planners": ["1f1b"],
        "iterations": 1
    })
}

/// Sets fields of a scenario by pointer.
fn with(mut scenario: Value, fields: &[(&str, Value)]) -> Value {
    for (pointer, value) in fields {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let mut place = &mut scenario;
        for part in parent.split('/').skip(1) {
            place = &mut place[part];
        }
        place[name] = value.clone();
    }
    scenario
}

/// Plans a scenario. Results by planner; `Err` with the reason if there is no plan.
struct Plans(Vec<(String, Value)>);

impl Plans {
    async fn of(scenario: &Value) -> Self {
        let server = TestServer::open().await;
        let id = server.store(scenario).await;
        let job = server.plan(&id).await;
        assert_eq!(job["state"]["state"], "done", "{job}");
        let outcome: Value = server.get(&api::path::outcome(&id)).await.json();
        let results = outcome["outcome"]["results"].as_array().unwrap().iter();
        let result = |result: &Value| (result["planner"].as_str().unwrap().to_owned(), result["answer"].clone());
        Self(results.map(result).collect())
    }

    fn answer(&self, planner: &str) -> &Value {
        &self.0.iter().find(|(name, _)| name == planner).unwrap_or_else(|| panic!("{planner}")).1
    }

    fn metric(&self, planner: &str, name: &str) -> f64 {
        let answer = self.answer(planner);
        answer["metrics"][name].as_f64().unwrap_or_else(|| panic!("{planner}: {answer}"))
    }

    fn step_s(&self, planner: &str) -> f64 {
        self.metric(planner, "iteration_s")
    }

    /// Layers of each stage.
    fn layers(&self, planner: &str) -> Vec<u32> {
        let stages = self.answer(planner)["stages"].as_array().unwrap().iter();
        let count = |stage: &Value| {
            let text = stage["layers"].as_str().unwrap();
            let (first, last) = text.rsplit(' ').next().unwrap().split_once('-').unwrap();
            last.parse::<u32>().unwrap() - first.parse::<u32>().unwrap() + 1
        };
        stages.map(count).collect()
    }
}
