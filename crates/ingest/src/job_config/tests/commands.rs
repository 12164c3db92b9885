//! Tests of torchtitan's command lines, and of devices in file names.

use planner::scenario::PlannerKind;

use super::*;

const COMMAND: &str = "NGPU=8 torchrun --nnodes 4 --nproc_per_node=${NGPU} --rdzv_backend c10d -m torchtitan.train \\\n  \
                       --training.steps 10 --training.local-batch-size=2 --parallelism.tensor_parallel_degree 8 \\\n  \
                       --model.name llama3 --model.flavor '70B' --activation_checkpoint.mode full \\\n  \
                       --compile.enable --profiling.enable_profiling --training.made_up hunter2 \"$@\" 2>&1 | tee log\n";

fn files(files: &[(&str, &str)]) -> Result<JobConfig, JobConfigError> {
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
    read_files(&files, Hardware::default())
}

#[test]
fn a_torchtitan_command_line_is_read() {
    let job = config(COMMAND);
    assert_eq!(job.format, ConfigFormat::Torchtitan);
    let Scenario { model, layout, cluster, training, workload, .. } = &job.scenario;
    assert_eq!(model.name, "llama3 70B");
    assert_eq!((layout.tensor, layout.pipeline, layout.microbatch), (Some(8), Some(1), Some(2)));
    assert_eq!((cluster.nodes, cluster.devices_per_node, workload.global_batch), (4, 8, 8));
    assert_eq!(training.recompute, Recompute::Full);
    assert!(training.execution.is_some());
    let read = job.read.iter().find(|setting| setting.setting == "tensor parallelism").unwrap();
    assert_eq!((read.key.as_str(), read.value.as_str()), ("--parallelism.tensor_parallel_degree", "8"));
    assert_eq!(job.unknown, ["--training.made_up"]);
    assert!(!format!("{job:?}").contains("hunter2"));
}

#[test]
fn flags_are_those_of_torchtitan() {
    let training = |flag: &str| {
        config(&format!("--training.steps 1 --model.name llama3 --model.flavor 8B {flag}\n")).scenario.training
    };
    for (flag, is_compiled) in [
        ("--compile.enable", true),
        ("--compile.no-enable", false),
        ("--compile.no_enable", false),
        ("--compile.enable True", true),
        ("--compile.enable=False", false),
        ("--compile.enable > log", true),
    ] {
        assert_eq!(training(flag).execution.is_some(), is_compiled, "{flag}");
    }
    assert_eq!(training("--float8.enable_float8_linear").precision, Precision::Fp8);
    assert_eq!(training("--model.converters float8").precision, Precision::Fp8);
}

#[test]
fn arguments_replace_the_job_file() {
    let command = "torchrun -m torchtitan.train --job.config_file ./train_configs/llama3_70b.toml \
                   --training.local_batch_size 16 --activation_checkpoint.mode none --parallelism.pipeline_parallel_schedule gpipe\n";
    let here = format!("cat > llama3_70b.toml <<EOF{TITAN}EOF\n{command}");
    let several = files(&[("llama3_70b.toml", TITAN), ("run.sh", command)]).unwrap();
    let reversed = files(&[("run.sh", command), ("a/llama3_70b.toml", TITAN)]).unwrap();
    let pasted = config(&format!("{TITAN}\n{command}"));
    let before = config(&format!("#!/bin/bash\nexport NCCL_DEBUG=INFO\n{command}\n{TITAN}"));
    for job in [&several, &reversed, &pasted, &before, &config(&here)] {
        let scenario = &job.scenario;
        assert_eq!(scenario.workload.global_batch, 128, "16 sequences on each of 8 replicas");
        assert_eq!((scenario.layout.tensor, scenario.layout.pipeline), (Some(4), Some(2)));
        assert_eq!((scenario.training.recompute, scenario.planners[0]), (Recompute::None, PlannerKind::Gpipe));
        let replaced = "--training.local_batch_size replaces training.local_batch_size of the file: 16 instead of 4.";
        assert!(job.assumed.iter().any(|sentence| sentence == replaced), "{:?}", job.assumed);
        assert_eq!(job.unknown, ["made_up.password"]);
    }
    let names = |job: &JobConfig| job.assumed.iter().any(|sentence| sentence.contains("llama3_70b.toml"));
    assert!(!names(&several) && !names(&reversed));
    assert!(names(&pasted), "{:?}", pasted.assumed);
}

#[test]
fn a_missing_job_file_is_named() {
    let missing = |text: &str| error(text);
    let of = |argument: &str| format!("torchrun -m torchtitan.train {argument} --training.seq_len 4096\n");
    let expected = "--job.config_file: the command names llama3_70b.toml, which is not given; add the file";
    assert_eq!(missing(&of("--job.config_file ./configs/llama3_70b.toml")), expected);
    assert_eq!(missing(&of("--job.config-file=llama3_70b.toml")), expected);
    assert_eq!(missing(&format!("CONFIG=x/llama3_70b.toml\n{}", of("--job.config_file ${CONFIG}"))), expected);
    assert_eq!(
        missing(&of("--job.config_file ${CONFIG}")),
        "--job.config_file: the command names the job file, which is not given; add the file"
    );
    assert_eq!(
        missing("CONFIG_FILE=\"./llama3_70b.toml\" NGPU=8 ./run_train.sh\n"),
        "$CONFIG_FILE: the command names llama3_70b.toml, which is not given; add the file"
    );
    assert_eq!(
        missing(&of("--module llama3 --config my_model")),
        "--config: the configuration my_model is in torchtitan's code; known are llama3_8b, llama3_70b, llama3_405b, \
         deepseek_v3_16b, deepseek_v3_671b, qwen3_0_6b, qwen3_1_7b, qwen3_14b, qwen3_30b_a3b, qwen3_32b, \
         llama4_17bx16e, llama4_17bx128e, gpt_oss_20b, gpt_oss_120b; for another one, state --model.name and --model.flavor"
    );
    assert!(missing(&of("")).starts_with("the torchtitan job file states no model"));
    let job = config(&of("--job.config_file my.toml --model.name llama3 --model.flavor 8B"));
    let sentence = "--job.config_file names my.toml, which is not given. Settings that the command does not state have \
                    torchtitan's defaults.";
    assert!(job.assumed.iter().any(|assumed| assumed == sentence), "{:?}", job.assumed);
    assert_eq!(job.scenario.workload.context_length, 4096);
    // The variable of the script that starts torchtitan, with the job file.
    let script = "CONFIG_FILE=${CONFIG_FILE:-\"./debug_model.toml\"}\ntorchrun --nproc_per_node=8 -m torchtitan.train \
                  --job.config_file ${CONFIG_FILE} $overrides\n";
    let job = files(&[("run_train.sh", script), ("debug_model.toml", TITAN)]).unwrap();
    assert_eq!(job.scenario.layout.tensor, Some(4));
}

/// Configurations in torchtitan's code have their published settings, which arguments replace.
#[test]
fn configurations_in_code_are_known_by_name() {
    let job = config("MODULE=llama3 CONFIG=llama3_70b NGPU=8 ./run_train.sh --training.local_batch_size 4\n");
    let Scenario { model, layout, workload, training, cluster, .. } = &job.scenario;
    assert_eq!((model.name.as_str(), layout.tensor, layout.microbatch), ("llama3 70B", Some(8), Some(4)));
    assert_eq!((workload.context_length, training.recompute, cluster.devices()), (8192, Recompute::Full, 8));
    let sentence = "The configuration llama3_70b of torchtitan's code has llama3 70B, training.seq_len = 8192, \
                    parallelism.tensor_parallel_degree = 8, activation_checkpoint.mode = full.";
    assert!(job.assumed.iter().any(|assumed| assumed == sentence), "{:?}", job.assumed);
    let read = job.read.iter().find(|setting| setting.setting == "model").unwrap();
    assert_eq!((read.key.as_str(), read.value.as_str()), ("$CONFIG", "llama3_70b"));
    let job = config("torchrun --nproc_per_node=8 -m torchtitan.train --module llama3 --config llama3_405b\n");
    assert_eq!((job.scenario.model.name.as_str(), job.scenario.training.precision), ("llama3 405B", Precision::Fp8));
    assert!(error("CONFIG=llama3_9b ./run_train.sh\n").starts_with("CONFIG: the configuration llama3_9b"));
    // Flavors of 2024.
    let old = TITAN.replace("llama3", "llama2").replace("70B", "13B");
    assert!((config(&old).scenario.model.parameters() as f64 / 13.016e9 - 1.0).abs() < 1e-3);
    let unknown = error(&old.replace("13B", "26B"));
    assert!(
        unknown.contains("the sizes of this flavor are not known; add the config.json of the model. Known flavors: ")
            && unknown.contains("llama2 13B, llama2 70B"),
        "{unknown}"
    );
}

/// Stages count the embedding and the output head as layers.
#[test]
fn stages_of_torchtitan_count_both_ends() {
    let of = |options: &str| {
        let text = "--model.name llama3 --model.flavor 8B --training.steps 1 --parallelism.pipeline_parallel_degree 4 \
                    --parallelism.pipeline_parallel_schedule";
        read("x", format!("{text} {options}\n").as_bytes())
    };
    let chunks = |options: &str| {
        of(options).map(|job| {
            assert_eq!(job.scenario.free, []);
            (job.scenario.layout.chunks, job.scenario.layers_per_stage)
        })
    };
    let per_stage = "--parallelism.pipeline_parallel_layers_per_stage";
    let equal = "--parallelism.pipeline_parallel_first_stage_less_layers 0 \
                 --parallelism.pipeline_parallel_last_stage_less_layers 0";
    assert_eq!(chunks("Interleaved1F1B"), Ok((Some(2), vec![])));
    assert_eq!(chunks(&format!("Interleaved1F1B {per_stage} 2 {equal}")), Ok((Some(4), vec![2; 16])));
    assert_eq!(chunks(&format!("Interleaved1F1B {per_stage} 3")), Ok((Some(3), vec![])), "34 layers in 12 stages");
    let last = "--parallelism.pipeline_parallel_last_stage_less_layers";
    assert_eq!(chunks(&format!("1F1B {last} 3")), Ok((None, vec![8, 9, 9, 6])));
    let points = "--parallelism.pipeline_parallel_split_points layers.6,layers.14,layers.23";
    assert_eq!(chunks(&format!("1F1B {points}")), Ok((None, vec![6, 8, 9, 9])));
    let refused = chunks(&format!("Interleaved1F1B {per_stage} 4")).unwrap_err().to_string();
    assert!(refused.ends_with("9 stages are no multiple of 4 pipeline ranks"), "{refused}");
    let parts = |parts: &str| {
        let text = TITAN.replace("[parallelism]", &format!("[parallelism]\nmodule_fqns_per_model_part = {parts}"));
        read("x", text.as_bytes()).map(|job| (job.scenario.layers_per_stage, job.scenario.free.len()))
    };
    let names =
        |layers: std::ops::Range<u32>| layers.map(|layer| format!("\"layers.{layer}\"")).collect::<Vec<_>>().join(", ");
    let stated = format!("[[\"tok_embeddings\", {}], [{}, \"norm\", \"output\"]]", names(0..42), names(42..80));
    assert_eq!(parts(&stated), Ok((vec![42, 38], 0)));
    let empty = format!("[[\"tok_embeddings\"], [{}, \"norm\", \"output\"]]", names(0..80));
    assert_eq!(parts(&empty), Ok((vec![0, 80], 0)), "the first stage has the embedding alone");
    assert!(parts("\"layers.0\"").unwrap_err().to_string().ends_with("the value is not a list of names"));
    assert!(of("backwards").unwrap_err().to_string().contains("torch's schedules are 1F1B"));
    let job = of("DualPipeV").unwrap();
    assert_eq!(job.scenario.planners[0], PlannerKind::Zbv);
    assert!(job.not_modelled.iter().any(|sentence| sentence.starts_with("DualPipeV is not simulated")));
}

#[test]
fn other_texts_are_no_torchtitan_commands() {
    assert!(read("x", b"torchrun train.py --lr 1e-4 --batch-size 8\n").is_err());
    assert_eq!(config(TITAN).assumed.iter().filter(|sentence| sentence.contains("replaces")).count(), 0);
}

const SMALL: &str = "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings \
                     4096 --micro-batch-size 1 --global-batch-size 64 --tensor-model-parallel-size 2 \
                     --pipeline-model-parallel-size 2";

#[test]
fn a_device_in_the_file_name_is_an_assumption() {
    let of = |name: &str, text: &str| files(&[(name, text)]).unwrap();
    let devices = |job: &JobConfig| {
        (job.scenario.cluster.name.clone(), job.scenario.cluster.nodes, job.scenario.cluster.devices_per_node)
    };
    let job = of("runs/llama_h200_4node.sh", SMALL);
    assert_eq!(devices(&job), ("H200".to_owned(), 4, 8));
    for sentence in [
        "The device is read as H200, which the file name llama_h200_4node.sh names.",
        "The number of devices is read as 32, from the file name llama_h200_4node.sh.",
    ] {
        assert!(job.assumed.iter().any(|assumed| assumed == sentence), "{:?}", job.assumed);
    }
    assert!(!job.assumed.iter().any(|sentence| sentence.contains("not stated. It is read as H100")));
    assert_eq!(devices(&of("train-8xH200.sh", SMALL)), ("H200".to_owned(), 1, 8));
    assert_eq!(devices(&of("gpt-a100b.sh", SMALL)).0, "H100");
    // Settings of the file count.
    let stated = format!("#SBATCH --gres=gpu:a100:4\n#SBATCH --nodes=2\n{SMALL}");
    assert_eq!(devices(&of("llama_h200_4node.sh", &stated)), ("A100-80GB".to_owned(), 2, 4));
    let hardware = Hardware { preset: Some("b200"), devices: Some(16) };
    let job = read_on("llama_h200_4node.sh", SMALL.as_bytes(), hardware).unwrap();
    assert_eq!(devices(&job), ("B200".to_owned(), 2, 8));
    assert!(!job.assumed.iter().any(|sentence| sentence.contains("file name")));
    // 24 devices are 6 replicas, which do not divide the batch of 64.
    let job = of("h100_24gpus.sh", SMALL);
    assert_eq!(devices(&job), devices(&of("h100.sh", SMALL)));
    let refused = "The file name h100_24gpus.sh names 24 devices, which contradict the settings. They are not used.";
    assert!(job.assumed.iter().any(|sentence| sentence == refused), "{:?}", job.assumed);
    // Files that contradict each other.
    let job =
        files(&[("llama_h200.toml", TITAN), ("run_a100.sh", "torchrun -m torchtitan.train --training.steps 2\n")]);
    assert_eq!(devices(&job.unwrap()).0, "H100");
}
