//! Configuration files of training jobs.

use api::job_config::{ConfigFormat, JobConfig};
use api::problem::Problem;
use harness::TestServer;

const TORCHTITAN: &str = "
[model]
name = \"llama3\"
flavor = \"8B\"
[training]
local_batch_size = 1
seq_len = 8192
secret_key = \"hunter2\"
[parallelism]
data_parallel_shard_degree = 8
";

#[tokio::test]
async fn a_configuration_becomes_a_scenario_that_can_be_stored() {
    let server = TestServer::open().await;
    let path = format!("{}?name=llama3_8b.toml", api::path::JOB_CONFIGS);
    let reply = server.request("POST", &path, TORCHTITAN.to_owned()).await;
    assert_eq!(reply.status, 200);
    let config: JobConfig = reply.json();
    assert_eq!((config.format, config.read.len()), (ConfigFormat::Torchtitan, 5));
    assert_eq!(config.scenario.title.as_deref(), Some("llama3_8b.toml"));
    assert_eq!(config.scenario.workload.global_batch, 8);
    assert_eq!(config.unknown, ["training.secret_key"]);
    let stored = serde_json::to_string(&config.scenario).unwrap();
    let reply = server.request("PUT", api::path::SCENARIOS, stored).await;
    assert_eq!(reply.status, 201, "the scenario is valid");
}

#[tokio::test]
async fn unknown_config_formats_report_the_supported_formats() {
    let server = TestServer::open().await;
    let reply = server.request("POST", api::path::JOB_CONFIGS, "hello".to_owned()).await;
    let problem: Problem = reply.json();
    assert_eq!((problem.status, problem.title.as_str()), (422, "The configuration file cannot be read"));
    assert!(problem.detail.contains("torchtitan job files (TOML)"), "{}", problem.detail);
    let large = server.request("POST", api::path::JOB_CONFIGS, " ".repeat((1 << 20) + 1)).await;
    assert_eq!(large.status, 413);
}
