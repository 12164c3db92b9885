//! Names of the framework of a job and of its schedule.

use api::job_config::ConfigFormat;
use planner::outcome::Layout;
use planner::scenario::{PlannerKind, Scenario};
use planner::training::Framework;

use crate::export::torchtitan;

/// Names the framework and the simulated schedule. `layout` is that of the plan, or of the layout with the smallest
/// memory need. Without a pipeline, no schedule is named. A planner without a fixed schedule has its own name.
pub(super) fn label(
    format: Option<ConfigFormat>,
    scenario: &Scenario,
    planner: PlannerKind,
    layout: Option<Layout>,
) -> String {
    if planner.schedule().is_none() {
        return planner.title().to_owned();
    }
    let framework = match format {
        None | Some(ConfigFormat::Megatron) => Some(scenario.training.framework.title()),
        Some(format) => format.framework(),
    };
    let pipeline = layout.map(|layout| layout.pipeline).or(scenario.layout.pipeline);
    let schedule = if pipeline == Some(1) { "no pipeline" } else { name(scenario.training.framework, planner) };
    framework.map_or_else(|| schedule.to_owned(), |framework| format!("{framework}, {schedule}"))
}

/// Returns the name of the schedule of a planner in a framework.
fn name(framework: Framework, planner: PlannerKind) -> &'static str {
    let own = match (framework, planner) {
        (Framework::Torchtitan, _) => torchtitan::schedule_name(planner),
        (Framework::Nanotron, PlannerKind::Gpipe) => Some("AFAB"),
        _ => None,
    };
    own.unwrap_or(match planner {
        PlannerKind::Interleaved => "interleaved 1F1B",
        PlannerKind::InterleavedParameters => "interleaved 1F1B, equal parameters",
        other => other.short_title(),
    })
}

#[cfg(test)]
mod tests {
    use ingest::job_config::Hardware;

    use super::*;
    use crate::checks;

    /// Reads a file and returns the label of its job, whose layout the file states.
    fn of_file(text: &str) -> String {
        let model = ("config.json", include_str!("tests/model.json"));
        let alone = checks::read(&[("job", text)], Hardware::default());
        let read = alone.or_else(|_| checks::read(&[("job", text), model], Hardware::default())).unwrap();
        label(read.format, &read.scenario, read.scenario.planners[0], None)
    }

    const TITAN: &str = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 8192\n[parallelism]\n";
    const MEGATRON: &str = "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 \
                            --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 64";

    #[test]
    fn schedules_have_the_names_of_their_framework() {
        let titan = |schedule: &str| {
            of_file(&format!("{TITAN}pipeline_parallel_degree = 4\npipeline_parallel_schedule = \"{schedule}\"\n"))
        };
        for schedule in ["1F1B", "Interleaved1F1B", "GPipe", "LoopedBFS", "InterleavedZeroBubble", "ZBVZeroBubble"] {
            assert_eq!(titan(schedule), format!("torchtitan, {schedule}"));
        }
        assert_eq!(titan("interleaved1f1b"), "torchtitan, Interleaved1F1B");
        assert_eq!(titan("DualPipeV"), "torchtitan, ZBVZeroBubble", "the simulated schedule");
        assert_eq!(of_file(&format!("{TITAN}pipeline_parallel_degree = 4\n")), "torchtitan, 1F1B");
        let megatron = |arguments: &str| of_file(&format!("{MEGATRON} {arguments}"));
        assert_eq!(megatron("--pipeline-model-parallel-size 4"), "Megatron-LM, 1F1B");
        let interleaved = "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 2";
        assert_eq!(megatron(interleaved), "Megatron-LM, interleaved 1F1B");
        let nanotron = include_str!("tests/nanotron.yaml");
        let with = |engine: &str| of_file(&nanotron.replace("  pp: 1", &format!("  pp_engine: {engine}\n  pp: 2")));
        assert_eq!((with("afab"), with("1f1b")), ("nanotron, AFAB".to_owned(), "nanotron, 1F1B".to_owned()));
    }

    #[test]
    fn jobs_without_a_pipeline_name_no_schedule() {
        for (text, label) in [
            (TITAN, "torchtitan, no pipeline"),
            (MEGATRON, "Megatron-LM, no pipeline"),
            (include_str!("tests/axolotl.yaml"), "axolotl, no pipeline"),
            (include_str!("tests/arguments.json"), "Hugging Face Trainer, no pipeline"),
            (include_str!("tests/llm_foundry.yaml"), "llm-foundry, no pipeline"),
            (include_str!("tests/olmo.yaml"), "OLMo, no pipeline"),
            (include_str!("tests/maxtext.yaml"), "MaxText, no pipeline"),
            (include_str!("tests/primus_maxtext.yaml"), "Primus, no pipeline"),
        ] {
            assert_eq!(of_file(text), label);
        }
    }

    #[test]
    fn scenarios_and_models_name_what_they_state() {
        let read = checks::read(&[("config.json", include_str!("tests/model.json"))], Hardware::default()).unwrap();
        let layout = |pipeline| Layout { tensor: 1, pipeline, data: 8, chunks: 1, microbatch: 1, group: None };
        let of = |format, planner, pipeline| label(format, &read.scenario, planner, Some(layout(pipeline)));
        let model = Some(ConfigFormat::HuggingFaceModel);
        assert_eq!(of(model, PlannerKind::OneFOneB, 1), "no pipeline");
        assert_eq!(of(model, PlannerKind::OneFOneB, 4), "1F1B");
        assert_eq!(of(None, PlannerKind::ZbH1, 4), "Megatron-LM, ZB-H1");
        assert_eq!(of(None, PlannerKind::Dhp, 1), PlannerKind::Dhp.title());
        let mut scenario = read.scenario.clone();
        scenario.training.framework = Framework::Fsdp;
        assert_eq!(label(None, &scenario, PlannerKind::OneFOneB, Some(layout(1))), "PyTorch FSDP, no pipeline");
    }
}
