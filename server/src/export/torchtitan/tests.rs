//! Job files of plans, read back by the reader of job files.

use super::*;
use crate::export::testing;

#[test]
fn stages_name_every_module_once() {
    assert_eq!(
        format_parts(&[1, 2, 0]),
        "module_fqns_per_model_part = [\n  [\"tok_embeddings\", \"layers.0\"],\n  [\"layers.1\", \"layers.2\"],\n  \
         [\"norm\", \"output\"],\n]\n"
    );
}

/// A complete job file has a model section in addition.
fn read_back(text: &str) -> ingest::job_config::JobConfig {
    let text = format!("[model]\nname = \"llama3\"\nflavor = \"8B\"\n{text}");
    ingest::job_config::read("job.toml", text.as_bytes()).unwrap()
}

#[test]
fn an_uneven_plan_is_read_back_with_its_degrees() {
    let (scenario, planned, batches) = testing::planned("1f1b", &["layers_per_stage"]);
    let text = job_file(&scenario, PlannerKind::OneFOneB, &planned, &batches).unwrap();
    let read = read_back(&text);
    let (layout, training) = (&read.scenario.layout, &read.scenario.training);
    assert_eq!((layout.tensor, layout.pipeline, layout.microbatch), (Some(1), Some(4), Some(1)), "{text}");
    assert_eq!((training.recompute, training.recompute_layers), (Recompute::Full, None));
    assert_eq!((read.scenario.workload.global_batch, read.scenario.workload.context_length), (16, 4096));
    assert!(text.contains("pipeline_parallel_schedule = \"1F1B\"\n"), "{text}");
    assert!(text.contains("local_batch_size = 8\n"), "16 sequences on DP 2: {text}");
    assert!(text.contains("# Cannot express: ZeRO-1."), "{text}");
    let counts = layer_counts(&planned, 32).unwrap();
    assert!(text.contains(&format_parts(&counts)), "{text}");
    assert_eq!(text.matches("\"layers.").count(), 32);
}

#[test]
fn virtual_stages_are_format_parts() {
    let (scenario, planned, batches) = testing::planned("interleaved", &[]);
    let text = job_file(&scenario, PlannerKind::Interleaved, &planned, &batches).unwrap();
    let parts = planned.layout.pipeline * planned.layout.chunks;
    assert!(planned.layout.chunks > 1);
    assert_eq!(text.lines().filter(|line| line.starts_with("  [")).count() as u32, parts, "{text}");
    assert!(text.contains("\"Interleaved1F1B\""), "{text}");
}

#[test]
fn settings_without_a_key_are_comments() {
    let (mut scenario, planned, batches) = testing::planned("1f1b", &[]);
    scenario.training.activation_offload = 0.5;
    scenario.training.recompute_layers = Some(3);
    scenario.training.context_parallel = 2;
    scenario.training.context_exchange = planner::training::ContextExchange::AllToAll;
    let text = job_file(&scenario, PlannerKind::OneFOneB, &planned, &batches).unwrap();
    for note in ["50 % of the activations", "recomputation of 3 layers per stage", "all-to-all context parallelism"] {
        assert!(text.contains(&format!("# Cannot express: {note}")), "{note}: {text}");
    }
    scenario.training.recompute_layers = Some(4);
    let text = job_file(&scenario, PlannerKind::OneFOneB, &planned, &batches).unwrap();
    assert!(text.contains("mode = \"selective\"\nselective_ac_option = \"2\"\n"), "{text}");
}

/// What the file states is read back; what it cannot state is a comment.
#[test]
fn kernels_are_stated_or_comments() {
    let (mut scenario, planned, batches) = testing::planned("1f1b", &[]);
    let file = |scenario: &Scenario| job_file(scenario, PlannerKind::OneFOneB, &planned, &batches).unwrap();
    let text = file(&scenario);
    for note in ["communication without overlap", "that the matrix products accumulate", "that of torchtitan is"] {
        assert!(text.contains(note), "{note}: {text}");
    }
    assert!(!text.contains("[compile]"), "{text}");
    scenario.training.execution = Some(Execution::Compiled);
    scenario.training.data_overlap = 1.0;
    scenario.training.fused_weight_gradients = false;
    scenario.training.framework = planner::training::Framework::Torchtitan;
    scenario.training.attention = planner::training::AttentionKernel::Flash2;
    let text = file(&scenario);
    for note in ["communication without overlap", "matrix products accumulate", "that of torchtitan", "the kernels and"]
    {
        assert!(!text.contains(note), "{note}: {text}");
    }
    let training = read_back(&text).scenario.training;
    assert_eq!((training.execution, training.attention), (scenario.training.execution, scenario.training.attention));
    scenario.training.execution = Some(Execution::CudaGraph);
    let text = file(&scenario);
    assert!(text.contains("Cannot express: CUDA graphs.") && text.contains("[compile]\nenable = true\n"), "{text}");
}

#[test]
fn plans_without_a_torch_schedule_are_refused() {
    let (scenario, planned, batches) = testing::planned("wait_free_cyclic", &[]);
    let refusal = job_file(&scenario, PlannerKind::WaitFreeCyclic, &planned, &batches).unwrap_err();
    assert!(refusal.contains("no such schedule"), "{refusal}");
}
