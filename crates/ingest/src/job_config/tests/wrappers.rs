//! Tests of files of schedulers that contain a command, and of the devices that launchers state.

use super::*;

fn has(job: &JobConfig, key: &str, value: &str) -> bool {
    job.read.iter().any(|setting| setting.key == key && setting.value == value)
}

const TRAINER: &str = "torchrun --nnodes $SKYPILOT_NUM_NODES --nproc_per_node $SKYPILOT_NUM_GPUS_PER_NODE run.py \
                       --model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size $MBS \
                       --gradient_accumulation_steps 4 --max_length 4096 --bf16 True --deepspeed zero3.json";

#[test]
fn tasks_of_skypilot_state_nodes_and_devices() {
    for (resources, device, devices) in [
        ("accelerators: H100:8", "H100", 16),
        ("accelerators: {H200: 8}", "H200", 16),
        ("accelerators: [A100-80GB:4, H100:4]", "A100-80GB", 8),
        ("accelerators: A100:8", "A100-40GB", 16),
    ] {
        let text = format!(
            "resources:\n  {resources}\n  cloud: aws\nnum_nodes: 2\nenvs:\n  MBS: 2\n  TOKEN: hf_secretsecret\nsetup: |\n  \
             pip install x\nrun: |\n  cd work\n  {TRAINER}\n"
        );
        let job = config(&text);
        assert_eq!(job.format, ConfigFormat::TrainingArguments);
        let Scenario { cluster, layout, workload, .. } = &job.scenario;
        assert_eq!((cluster.name.as_str(), cluster.devices(), layout.microbatch), (device, devices, Some(2)));
        assert_eq!(workload.global_batch, 2 * 4 * devices);
        assert!(job.read.iter().any(|setting| setting.key == "resources.accelerators"), "{:?}", job.read);
        assert!(job.assumed.iter().any(|sentence| sentence.contains("SkyPilot task")));
        assert!(job.unknown.is_empty() && !format!("{job:?}").contains("hf_secret"), "{:?}", job.unknown);
    }
    // Instances of a cloud name the type of the devices.
    let text = format!(
        "resources:\n  instance_type: p5.48xlarge\nnum_nodes: 4\nenvs: {{MBS: 1}}\nrun: |\n  {}\n",
        TRAINER.replace("$SKYPILOT_NUM_GPUS_PER_NODE", "8")
    );
    let job = config(&text);
    assert_eq!((job.scenario.cluster.name.as_str(), job.scenario.cluster.devices()), ("H100", 32));
}

const MEGATRON: &str = "pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 128 \
                        --max-position-embeddings 128 --tensor-model-parallel-size 2 --pipeline-model-parallel-size 1 \
                        --micro-batch-size $MBS --global-batch-size 64 --bf16";

#[test]
fn workloads_of_kubernetes_state_pods_and_devices() {
    let container = |indent: &str| {
        let lines = [
            "nodeSelector:",
            "  cloud.google.com/gke-accelerator: nvidia-h200-141gb",
            "containers:",
            "- name: train",
            "  image: x",
            "  env:",
            "  - {name: MBS, value: '2'}",
            "  command: [bash, -c]",
            "  args:",
            "  - |",
            &format!("    torchrun --nnodes=$NNODES --nproc_per_node=8 {MEGATRON}"),
            "  resources:",
            "    limits:",
            "      nvidia.com/gpu: '8'",
        ]
        .map(|line| format!("{indent}{line}\n"));
        lines.concat()
    };
    let job_set = format!(
        "apiVersion: v1\nkind: ConfigMap\ndata: {{a: b}}\n---\napiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nspec:\n  \
         replicatedJobs:\n  - name: w\n    replicas: 2\n    template:\n      spec:\n        parallelism: 4\n        \
         completions: 4\n        template:\n          spec:\n{}",
        container("            ")
    );
    let plain = format!(
        "apiVersion: batch/v1\nkind: Job\nspec:\n  parallelism: 8\n  template:\n    spec:\n{}",
        container("      ")
    );
    let torch = format!(
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nspec:\n  pytorchReplicaSpecs:\n    Master:\n      replicas: 1\n      \
         template:\n        spec:\n{0}    Worker:\n      replicas: 7\n      template:\n        spec:\n{0}",
        container("          ")
    );
    for text in [job_set, plain, torch] {
        let job = config(&text);
        assert_eq!(job.format, ConfigFormat::Megatron, "{text}");
        let Scenario { cluster, layout, .. } = &job.scenario;
        assert_eq!((cluster.name.as_str(), cluster.nodes, cluster.devices_per_node), ("H200", 8, 8), "{text}");
        assert_eq!((layout.microbatch, layout.tensor), (Some(2), Some(2)));
        assert!(has(&job, "replicas", "8"), "{:?}", job.read);
        assert!(job.unknown.is_empty(), "{:?}", job.unknown);
    }
}

/// Arguments of a launcher before the program, and variables after it.
#[test]
fn nodes_before_the_program_are_read() {
    let command = MEGATRON.replace("$MBS", "1");
    let text = format!("ARGS=(--lr 1e-4)\ntorchrun --nproc_per_node 8 --nnodes 4 {command} ${{ARGS[@]}}\n");
    assert_eq!(config(&text).scenario.cluster.devices(), 32);
    let text =
        format!("#SBATCH --partition=hopper-h200\n#SBATCH -N 2\n#SBATCH --ntasks-per-node=8\nsrun python {command}\n");
    let job = config(&text);
    assert_eq!((job.scenario.cluster.name.as_str(), job.scenario.cluster.devices()), ("H200", 16));
    let text = format!("#SBATCH --partition=long\n#SBATCH --gpus=h100:16\nsrun python {command}\n");
    let job = config(&text);
    assert_eq!((job.scenario.cluster.name.as_str(), job.scenario.cluster.devices()), ("H100", 16));
}

#[test]
fn entry_points_of_ray_are_commands() {
    let job = config(
        "apiVersion: ray.io/v1\nkind: RayJob\nspec:\n  entrypoint: python3 -m verl.trainer.main_ppo data.max_prompt_length=512 \
         data.max_response_length=512 data.train_batch_size=256 actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct \
         actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 \
         trainer.nnodes=2 trainer.n_gpus_per_node=8\n  rayClusterSpec:\n    workerGroupSpecs:\n    - replicas: 2\n      \
         template:\n        spec:\n          nodeSelector: {nvidia.com/gpu.product: NVIDIA-H200}\n          containers:\n          \
         - name: w\n            image: x\n            resources: {limits: {nvidia.com/gpu: 8}}\n",
    );
    assert_eq!(job.format, ConfigFormat::Verl);
    assert_eq!((job.scenario.cluster.name.as_str(), job.scenario.cluster.devices()), ("H200", 16));
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
}

/// The degrees of a file and the number of devices contradict each other.
#[test]
fn devices_other_than_the_degrees_are_reported() {
    let job = config(&format!("{TITAN}\n# unused\n"));
    assert!(!job.assumed.iter().any(|sentence| sentence.contains("The degrees state")));
    let hardware = Hardware { preset: None, devices: Some(128) };
    let job = read_on("x.toml", TITAN.as_bytes(), hardware).unwrap();
    let sentence = "The degrees state 8 data-parallel replicas, but 128 devices have 16. The number of devices counts.";
    assert!(job.assumed.iter().any(|assumed| assumed == sentence), "{:?}", job.assumed);
}

#[test]
fn frameworks_that_are_not_read_are_named() {
    for (text, name) in [
        ("NPROC_PER_NODE=8 xtuner train x_qlora_e3 --deepspeed deepspeed_zero2\n", "xtuner"),
        ("colossalai run --nproc_per_node 8 train.py --plugin 3d --tp 2\n", "ColossalAI"),
        ("fairseq-train data-bin --arch transformer_lm --max-tokens 4096\n", "fairseq"),
        ("from nemo.collections import llm\nrecipe = llm.llama3_8b.pretrain_recipe(num_nodes=2)\n", "NeMo 2"),
        ("from transformers import Trainer, TrainingArguments\nargs = TrainingArguments(bf16=True)\n", "Hugging Face"),
        ("from unsloth import FastLanguageModel\n", "unsloth"),
        ("model:\n  _target_: nemo_automodel.Model.from_pretrained\n", "NeMo AutoModel"),
    ] {
        let message = error(text);
        assert!(message.contains(name) && message.contains("does not read; "), "{message}");
    }
    assert!(error("a b c").contains("no configuration that Planscope reads"));
}
