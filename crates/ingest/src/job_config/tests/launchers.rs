//! Tests of launchers whose command a variable holds.

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
