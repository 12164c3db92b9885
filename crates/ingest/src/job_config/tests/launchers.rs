//! Tests of launchers whose command a variable holds, or a list in another language.

use super::*;

const FSDP: &str = "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n  fsdp_reshard_after_forward: true\n\
                    mixed_precision: bf16\nnum_machines: 1\nnum_processes: 8\n";
const PROGRAM: &str = "train.py --model_name_or_path meta-llama/Llama-3.1-8B --bf16 true --per_device_train_batch_size 2 \
                       --max_seq_length 4096";

fn with_fsdp(script: &str) -> JobConfig {
    let files: [(&str, &[u8]); 2] = [("run.sh", script.as_bytes()), ("fsdp.yaml", FSDP.as_bytes())];
    read_files(&files, Hardware::default()).unwrap_or_else(|error| panic!("{script}: {error}"))
}

#[test]
fn a_variable_holds_the_command_of_accelerate() {
    let launch = "accelerate launch --config_file fsdp.yaml --num_machines 4 --num_processes 32";
    for script in [
        format!("{launch} {PROGRAM}\n"),
        format!("LAUNCHER=\"{launch}\"\n$LAUNCHER {PROGRAM}\n"),
        format!("LAUNCHER=\"{launch} \"\nCMD=\" {PROGRAM}\"\nbash -c \"$LAUNCHER $CMD\"\n"),
        format!("export RUN='{launch} \\\n  '\nsrun bash -c \"$RUN {PROGRAM}\"\n"),
    ] {
        let job = with_fsdp(&script);
        assert_eq!(job.scenario.cluster.devices(), 32, "{script}");
        assert!(!job.unknown.iter().any(|key| key.contains("num_")), "{:?}", job.unknown);
    }
}

#[test]
fn devices_of_the_scheduler_are_compared_with_the_processes() {
    let directives = "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --gres=gpu:8\n";
    let job = with_fsdp(&format!("{directives}accelerate launch --config_file fsdp.yaml {PROGRAM}\n"));
    assert_eq!(job.scenario.cluster.devices(), 8);
    let said = "num_processes states 8 devices, and the script 32 (nodes times devices of a node). The number of processes \
                counts.";
    assert!(job.assumed.iter().any(|sentence| sentence == said), "{:?}", job.assumed);
    let launch =
        "accelerate launch --config_file fsdp.yaml --num_machines $SLURM_NNODES --num_processes $((SLURM_NNODES*8))";
    let job = with_fsdp(&format!("{directives}RUN=\"{launch}\"\nsrun bash -c \"$RUN {PROGRAM}\"\n"));
    assert_eq!(job.scenario.cluster.devices(), 32);
    assert!(!job.assumed.iter().any(|sentence| sentence.contains("processes counts")), "{:?}", job.assumed);
}

/// Lists in Python, JSON and YAML have the same arguments as a command.
#[test]
fn arguments_are_items_of_a_list() {
    let words = "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 8192 --max-position-embeddings 8192 \
                 --micro-batch-size 1 --tensor-model-parallel-size 2 --moe-token-dispatcher-type alltoall --bf16 --global-batch-size 128";
    let expected = config(words);
    let items: Vec<String> = words.split_whitespace().map(|word| format!("\"{word}\"")).collect();
    let list = items.join(", ");
    let lines = items.join(",\n    ");
    let pairs = list.replace(", \"--", ",\n    \"--");
    for text in [
        format!("args = [{list}]\n"),
        format!("[{list}]\n"),
        format!("[\n    {lines}\n]\n"),
        format!("args = [\n    {pairs},\n]\nsubprocess.run(args, check=True)\n"),
        format!("args = [{}]\n", list.replace('"', "'")),
        format!("args:\n  - {}\n", items.join("\n  - ")),
        format!("args:\n- {}\n", words.replace(' ', "\n- ")),
    ] {
        let job = config(&text);
        assert_eq!(
            (&job.scenario.layout, &job.scenario.workload),
            (&expected.scenario.layout, &expected.scenario.workload)
        );
        assert_eq!(job.unknown, [""; 0], "{text}");
        let dispatcher = job.read.iter().find(|setting| setting.key == "moe-token-dispatcher-type").unwrap();
        assert_eq!(dispatcher.value, "alltoall", "{text}");
    }
    let of = |value: &str| error(&format!("args = [{}]\n", list.replace("\"8192\"", value)));
    assert!(of("str(SEQ)").contains("$SEQ is a variable that the file does not set"), "{}", of("str(SEQ)"));
    assert!(of("f\"{SEQ}\"").contains("the value is an expression"), "{}", of("f\"{SEQ}\""));
}

#[test]
fn items_of_arrays_are_named() {
    let text = "declare -A SIZE=( [layers]=80 )\npretrain_gpt.py --num-layers ${SIZE[layers]} --hidden-size 8192 \
                --num-attention-heads 64 --seq-length 4096\n";
    assert_eq!(
        error(text),
        "num-layers: ${SIZE[..]} is an item of an array, which is not read; replace it with a whole number"
    );
}

#[test]
fn degrees_that_do_not_divide_the_devices_are_named() {
    let text = "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 \
                --seq-length 4096 --micro-batch-size 3 --global-batch-size 64 --tensor-model-parallel-size 3\n";
    assert_eq!(error(text), "devices: 16 is no multiple of 3 x 1 x 1 (tensor, pipeline and context parallelism)");
}

#[test]
fn options_of_srun_are_no_settings() {
    let launch = "srun --label --wait=60";
    let megatron = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length 512 \
                    --tokenizer-type Llama2Tokenizer --fp4-format e2m1 --fp4-recipe nvfp4 --delay-wgrad-compute --bf16";
    let job = config(&format!("{launch} {megatron}\n"));
    assert_eq!(job.unknown, [""; 0]);
    assert_eq!(job.scenario.model.modules[0].vocab, 32_000);
    for word in ["fp4", "delay-wgrad-compute"] {
        assert!(job.not_modelled.iter().any(|sentence| sentence.contains(word)), "{:?}", job.not_modelled);
    }
    let job = config(&format!(
        "ARGS=\" --wait=60 --kill-on-bad-exit=1 \"\nsrun $ARGS accelerate launch --num_processes 8 {PROGRAM}\n"
    ));
    assert_eq!(job.unknown, [""; 0]);
}
