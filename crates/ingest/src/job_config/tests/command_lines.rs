//! Tests of command lines of the trainer of transformers and of the programs around it.

use planner::training::{ContextExchange, GradientFormat, MasterWeights, MomentFormat};

use super::*;

fn files(files: &[(&str, &str)]) -> Result<JobConfig, JobConfigError> {
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
    read_files(&files, Hardware::default())
}

/// Tensor and context parallelism, microbatch, global batch, tokens, devices and ZeRO stage.
fn numbers(job: &JobConfig) -> (u32, u32, u32, u32, u32, u32, u32) {
    let Scenario { layout, training, workload, cluster, .. } = &job.scenario;
    (
        layout.tensor.unwrap(),
        training.context_parallel,
        layout.microbatch.unwrap(),
        workload.global_batch,
        workload.context_length,
        cluster.devices(),
        training.zero_stage(),
    )
}

fn says(sentences: &[String], text: &str) -> bool {
    sentences.iter().any(|sentence| sentence.contains(text))
}

#[test]
fn a_script_of_the_trainer_is_read() {
    let job = config(
        "#!/bin/bash\nexport HF_TOKEN=hf_abcdefgh12345678\nMODEL=meta-llama/Llama-3.1-8B\n\
         torchrun --nnodes=2 --nproc_per_node 8 --rdzv_backend c10d run_clm.py \\\n  --model_name_or_path $MODEL \\\n  \
         --per_device_train_batch_size 4 --gradient_accumulation_steps=8 --block_size 2048 --bf16 \\\n  \
         --gradient_checkpointing True --fsdp \"full_shard auto_wrap\" --made_up secret --output_dir out 2>&1 | tee log\n",
    );
    assert_eq!(job.format, ConfigFormat::TrainingArguments);
    assert_eq!(job.scenario.model.name, "llama3.1-8b");
    assert_eq!(numbers(&job), (1, 1, 4, 512, 2048, 16, 3));
    assert_eq!(job.scenario.training.precision, Precision::Bf16);
    assert_eq!(job.scenario.training.recompute, Recompute::Full);
    assert_eq!(job.scenario.training.framework, Framework::HuggingFace);
    assert_eq!(job.unknown, ["--made_up"]);
    let batch = job.read.iter().find(|setting| setting.setting == "sequences of a microbatch").unwrap();
    assert_eq!((batch.key.as_str(), batch.value.as_str()), ("--per_device_train_batch_size", "4"));
    let text = format!("{job:?}");
    assert!(!text.contains("secret") && !text.contains("hf_abc"), "{text}");
}

#[test]
fn accelerate_launch_states_devices_and_sharding() {
    let job = config(
        "accelerate launch --num_processes 16 --num_machines 2 --mixed_precision bf16 --use_fsdp \
         --fsdp_sharding_strategy SHARD_GRAD_OP --main_process_port 29500 sft.py --model_name_or_path Qwen/Qwen2.5-7B \
         --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --max_seq_length 4096 --output_dir x\n",
    );
    assert_eq!(numbers(&job), (1, 1, 2, 128, 4096, 16, 2));
    assert_eq!(job.scenario.cluster.devices_per_node, 8);
    assert_eq!(job.unknown, Vec::<String>::new());
    let deepspeed = config(
        "accelerate launch --use_deepspeed --zero_stage 2 --num_processes 8 train.py --model_name_or_path \
         Qwen/Qwen2.5-7B --per_device_train_batch_size 2 --bf16 --max_length 1024\n",
    );
    assert_eq!(numbers(&deepspeed).6, 2);
}

#[test]
fn trl_has_its_own_defaults() {
    let job = config(
        "NPROC_PER_NODE=4 trl sft --model_name_or_path Qwen/Qwen2.5-0.5B --dataset_name trl-lib/Capybara \\\n --use_peft --lora_r 32\n",
    );
    assert_eq!(job.format, ConfigFormat::Trl);
    assert_eq!(numbers(&job), (1, 1, 8, 32, 1024, 4, 0));
    assert_eq!(job.scenario.training.recompute, Recompute::Full);
    assert_eq!(job.scenario.training.precision, Precision::Bf16);
    assert_eq!(job.scenario.model.modules[0].adapters.unwrap().rank, 32);
    assert!(says(&job.assumed, "as usual with TRL"), "{:?}", job.assumed);
    let off =
        "trl sft --model_name_or_path Qwen/Qwen2.5-0.5B --bf16 False --no_gradient_checkpointing --max_length 512\n";
    let off = config(off);
    assert_eq!((off.scenario.training.precision, off.scenario.training.recompute), (Precision::Fp32, Recompute::None));
    let grpo = config(
        "accelerate launch --num_processes 8 -m trl.scripts.grpo --model_name_or_path Qwen/Qwen2.5-0.5B --max_prompt_length 1024 \
         --max_completion_length 3072 --per_device_train_batch_size 8 --num_generations 8\n",
    );
    assert_eq!(grpo.scenario.workload.context_length, 4096);
    assert!(says(&grpo.not_modelled, "reference") && says(&grpo.not_modelled, "generation of answers"));
    let dpo = config("trl dpo --model_name_or_path Qwen/Qwen2.5-0.5B --per_device_train_batch_size 2\n");
    assert!(says(&dpo.not_modelled, "A pair of answers"), "{:?}", dpo.not_modelled);
}

#[test]
fn a_command_replaces_the_job_file_that_it_names() {
    let yaml = "model_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: 2\nmax_length: 2048\nbf16: true\noutput_dir: x\n";
    let command = "trl sft --config run/sft.yaml --per_device_train_batch_size 4\n";
    let job = files(&[("sft.yaml", yaml), ("run.sh", command)]).unwrap();
    assert_eq!((job.format, job.scenario.layout.microbatch), (ConfigFormat::Trl, Some(4)));
    assert!(says(
        &job.assumed,
        "--per_device_train_batch_size replaces per_device_train_batch_size of the file: 4 instead of 2."
    ));
    assert!(!says(&job.assumed, "not given"), "{:?}", job.assumed);
    assert_eq!(error(command), "command: the command names the job file sft.yaml, which is not given; add the file");
    let launched = "accelerate launch --config_file fsdp.yaml sft.py --model_name_or_path Qwen/Qwen2.5-7B \
                    --per_device_train_batch_size 4 --max_length 2048\n";
    assert!(says(&config(launched).assumed, "file of accelerate fsdp.yaml, which is not given"));
    let accelerate = "distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\nnum_machines: 1\nnum_processes: 8\n";
    let job = files(&[("run.sh", launched), ("fsdp.yaml", accelerate)]).unwrap();
    assert_eq!(numbers(&job), (1, 1, 4, 32, 2048, 8, 3));
    assert!(!says(&job.assumed, "fsdp.yaml"), "{:?}", job.assumed);
}

#[test]
fn llama_factory_commands_have_arguments_or_overrides() {
    let job = config(
        "FORCE_TORCHRUN=1 NNODES=2 NPROC_PER_NODE=8 llamafactory-cli train --stage sft --do_train True --model_name_or_path \
         meta-llama/Llama-3.1-8B-Instruct --finetuning_type lora --lora_rank 16 --template llama3 --cutoff_len 4096 \
         --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --bf16 True --deepspeed ds_z2.json\n",
    );
    assert_eq!(job.format, ConfigFormat::LlamaFactory);
    assert_eq!(numbers(&job), (1, 1, 2, 128, 4096, 16, 2));
    assert_eq!(job.scenario.model.modules[0].adapters.unwrap().rank, 16);
    assert_eq!(job.unknown, Vec::<String>::new());
    let yaml = "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: full\ncutoff_len: 2048\n\
                per_device_train_batch_size: 1\ngradient_accumulation_steps: 8\nbf16: true\n";
    let command = "BS=4\nCUDA_VISIBLE_DEVICES=0,1,2,3 llamafactory-cli train examples/full.yaml \\\n  \
                   per_device_train_batch_size=$BS cutoff_len=8192\n";
    let job = files(&[("full.yaml", yaml), ("run.sh", command)]).unwrap();
    assert_eq!(numbers(&job), (1, 1, 4, 128, 8192, 4, 0));
    assert!(error(command).contains("full.yaml, which is not given"), "{}", error(command));
}

#[test]
fn ms_swift_has_its_own_names_and_defaults() {
    let job = config(
        "NPROC_PER_NODE=8 CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 \\\nswift sft \\\n  --model Qwen/Qwen2.5-7B-Instruct \\\n  \
         --train_type full --torch_dtype bfloat16 --per_device_train_batch_size 1 --gradient_accumulation_steps 4 \\\n  \
         --max_length 8192 --packing true --attn_impl flash_attn --sequence_parallel_size 2 --deepspeed zero3\n",
    );
    assert_eq!(job.format, ConfigFormat::Swift);
    assert_eq!(numbers(&job), (1, 2, 1, 16, 8192, 8, 3));
    assert_eq!(job.scenario.training.context_exchange, ContextExchange::AllToAll);
    assert_eq!(job.scenario.training.recompute, Recompute::Full);
    assert!(job.scenario.model.modules[0].adapters.is_none());
    assert_eq!(job.unknown, Vec::<String>::new());
    // LoRA with rank 8, and accumulation to 16 sequences.
    let job = config(
        "NPROC_PER_NODE=4 swift sft --model Qwen/Qwen2.5-7B-Instruct --max_length 2048 --per_device_train_batch_size 2\n",
    );
    assert_eq!(numbers(&job), (1, 1, 2, 16, 2048, 4, 0));
    assert_eq!(job.scenario.model.modules[0].adapters.unwrap().rank, 8);
    let plain = "swift sft --model Qwen/Qwen2.5-7B --train_type full --torch_dtype bfloat16 --max_length 2048\n";
    let offloaded = config(&plain.replace("--max", "--deepspeed zero2_offload --max"));
    assert_eq!((numbers(&offloaded).6, offloaded.scenario.training.optimizer_offload), (2, 1.0));
}

#[test]
fn megatron_of_ms_swift_is_read() {
    let job = config(
        "NPROC_PER_NODE=8 \\\nmegatron sft \\\n  --load Qwen3-30B-A3B-Base-mcore \\\n  --expert_model_parallel_size 8 \
         --moe_grouped_gemm true --micro_batch_size 1 --global_batch_size 16 --packing true --recompute_granularity full \
         --recompute_method uniform --recompute_num_layers 1 --max_length 8192 --tensor_model_parallel_size 2 \
         --sequence_parallel true --optimizer_cpu_offload true\n",
    );
    assert_eq!(job.format, ConfigFormat::Swift);
    assert_eq!(numbers(&job), (2, 1, 1, 16, 8192, 8, 1));
    let training = &job.scenario.training;
    assert_eq!((training.expert_parallel, training.expert_tensor_parallel), (8, Some(1)));
    assert_eq!((training.framework, training.precision), (Framework::Megatron, Precision::Bf16));
    assert_eq!((training.recompute, training.optimizer_offload), (Recompute::Full, 1.0));
    assert_eq!(job.unknown, Vec::<String>::new());
}

#[test]
fn openrlhf_is_read_with_deepspeed() {
    let job = config(
        "read -r -d '' training_commands <<EOF\nopenrlhf.cli.train_sft \\\n   --max_len 4096 --dataset Open-Orca/OpenOrca \
         --pretrain meta-llama/Meta-Llama-3-8B --train_batch_size 256 --micro_train_batch_size 2 --zero_stage 3 \\\n   \
         --bf16 --learning_rate 5e-6 --gradient_checkpointing --packing_samples --ring_attn_size 2 --adam_offload\nEOF\n\
         deepspeed --num_gpus 8 --module $training_commands\n",
    );
    assert_eq!(job.format, ConfigFormat::OpenRlhf);
    assert_eq!(numbers(&job), (1, 2, 2, 256, 4096, 8, 3));
    let training = &job.scenario.training;
    assert_eq!((training.recompute, training.optimizer_offload), (Recompute::Full, 1.0));
    assert_eq!((training.context_exchange, training.attention), (ContextExchange::Ring, AttentionKernel::Flash2));
    assert!(says(&job.assumed, "(--pretrain)"), "{:?}", job.assumed);
    let ppo = config(
        "ray job submit -- python3 -m openrlhf.cli.train_ppo_ray --actor_num_nodes 2 --actor_num_gpus_per_node 4 \
         --pretrain Qwen/Qwen2.5-7B --micro_train_batch_size 4 --train_batch_size 128 --prompt_max_len 1024 \
         --generate_max_len 3072 --zero_stage 3 --bf16 --vllm_num_engines 2 --rollout_batch_size 1024\n",
    );
    assert_eq!(numbers(&ppo), (1, 1, 4, 128, 4096, 8, 3));
    assert!(says(&ppo.not_modelled, "reference"));
    assert_eq!(ppo.unknown, Vec::<String>::new());
}

#[test]
fn a_command_with_arguments_of_two_frameworks_is_refused() {
    let megatron = "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 \
                    --micro-batch-size 1 --global-batch-size 64 --tensor-model-parallel-size 2";
    for (other, message) in [
        ("--training.seq_len 8192", "of torchtitan (--training.seq_len)"),
        ("--config x.toml", "of torchtitan (--config)"),
        ("--per_device_train_batch_size 2", "of Hugging Face (--per_device_train_batch_size)"),
    ] {
        let error = error(&format!("torchrun pretrain_gpt.py {megatron} {other}\n"));
        assert!(error.contains("of Megatron-LM (--num-layers)") && error.contains(message), "{error}");
    }
    let error =
        error("torchrun train.py --training.seq_len 8192 --per_device_train_batch_size 2 --model.name llama3\n");
    assert!(error.contains("of torchtitan (--training.seq_len) and of Hugging Face"), "{error}");
    // Two commands of one script.
    let job = config(&format!("python convert.py --model_name_or_path x\ntorchrun pretrain_gpt.py {megatron}\n"));
    assert_eq!(job.format, ConfigFormat::Megatron);
    assert!(says(&job.assumed, "of Megatron-LM (--num-layers) and of Hugging Face (--model_name_or_path)"));
}

/// The YAML of a scheduler contains a command.
#[test]
fn commands_in_the_yaml_of_a_scheduler_are_read() {
    let job = config(
        "resources:\n  accelerators: H100:8\nrun: |\n  torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen2.5-7B \\\n    \
         --per_device_train_batch_size 2 --bf16 --max_length 2048\n",
    );
    assert_eq!(numbers(&job), (1, 1, 2, 16, 2048, 8, 0));
}

/// A limit of pixels determines the size of images, unless the encoder has a fixed size.
#[test]
fn limits_of_pixels_determine_the_size_of_images() {
    let tokens = |text: &str| {
        let job = config(text);
        (job.scenario.model.tokens_per_image(), job.assumed.join(" "))
    };
    let yaml = "model_name_or_path: Qwen/Qwen2.5-VL-7B-Instruct\nstage: sft\nfinetuning_type: full\ncutoff_len: 4096\nbf16: true\n";
    // 18 x 18 tokens of 28 x 28 pixels.
    let (count, said) = tokens(&format!("{yaml}image_max_pixels: 262144\n"));
    assert_eq!(count, 324);
    assert!(
        said.contains("Images are read as 504 x 504 pixels, the largest square of image_max_pixels = 262144."),
        "{said}"
    );
    assert!(!said.contains("448 x 448"), "{said}");
    assert_eq!(tokens(yaml).0, 729, "the default of LLaMA-Factory");
    let swift = "MAX_PIXELS=1003520 NPROC_PER_NODE=4 swift sft --model Qwen/Qwen2.5-VL-7B-Instruct --max_length 4096\n";
    assert_eq!(tokens(swift).0, 35 * 35);
    let (other, said) = tokens(&swift.replace("MAX_PIXELS=1003520 ", ""));
    assert_eq!(other, 256);
    assert!(said.contains("448 x 448"), "{said}");
}

#[test]
fn short_optimizer_states_of_deepspeed_are_read() {
    let sizes = "{\"train_micro_batch_size_per_gpu\": 1, \"zero_optimization\": {\"stage\": 2}, \"bf16\": {\"enabled\": true, \
                 \"bf16_master_weights_and_grads\": true, \"bf16_optimizer_states\": true}}";
    let arguments =
        "model_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: 1\noutput_dir: x\nmax_length: 2048\n";
    let job = files(&[("ds.json", sizes), ("args.yaml", arguments)]).unwrap();
    let training = &job.scenario.training;
    assert_eq!((training.master_weights, training.moments), (MasterWeights::Half, MomentFormat::Bf16));
    assert_eq!(training.gradients, GradientFormat::Bf16);
}

/// Names of files and configurations that are not given state the sharding.
#[test]
fn names_of_configurations_state_the_sharding() {
    let stage = |text: &str| config(text).scenario.training.zero_stage();
    let trl = "trl sft --model_name_or_path Qwen/Qwen2.5-7B --max_length 2048 --accelerate_config";
    assert_eq!((stage(&format!("{trl} zero2\n")), stage(&format!("{trl} fsdp2\n"))), (2, 3));
    let launched = |file: &str| {
        format!(
            "accelerate launch --config_file recipes/{file} sft.py --model_name_or_path Qwen/Qwen2.5-7B \
                 --per_device_train_batch_size 1 --max_length 2048\n"
        )
    };
    assert_eq!(
        (stage(&launched("zero3.yaml")), stage(&launched("fsdp.yaml")), stage(&launched("ddp.yaml"))),
        (3, 3, 0)
    );
    let job = config(&launched("zero3.yaml"));
    assert!(says(&job.assumed, "zero3.yaml, which is not given. Its name states the sharding. Add the file."));
    let chat = "deepspeed main.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 8 --max_seq_len 512 \
                --zero_stage 2 --deepspeed --output_dir out &> out/training.log\n";
    let job = config(chat);
    assert_eq!((numbers(&job).4, numbers(&job).6), (512, 2));
    assert_eq!(job.unknown, Vec::<String>::new());
    // The job file of a recipe.
    let recipe = "accelerate launch --config_file zero3.yaml src/open_r1/sft.py --config recipes/x/demo.yaml\n";
    assert_eq!(error(recipe), "command: the command names the job file demo.yaml, which is not given; add the file");
    let yaml = "model_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: 4\nmax_length: 4096\nbf16: true\noutput_dir: x\n";
    let job = files(&[("demo.yaml", yaml), ("run.sh", recipe)]).unwrap();
    assert_eq!((numbers(&job).2, numbers(&job).6), (4, 3));
}

#[test]
fn scripts_with_a_rank_adapt() {
    let of = |arguments: &str| {
        config(&format!(
            "torchrun --nproc_per_node 4 train_lora.py --model_name_or_path Qwen/Qwen2.5-7B --bf16 --max_length 2048 \
             --per_device_train_batch_size $(expr 8 / 4) --output_dir x {arguments}\n"
        ))
    };
    let adapters = |job: &JobConfig| job.scenario.model.modules[0].adapters.map(|it| (it.rank, it.base_bits));
    let job = of("--lora_r 16 --q_lora False --flash_attn False");
    assert_eq!((adapters(&job), job.scenario.layout.microbatch), (Some((16, None)), Some(2)));
    assert!(says(&job.assumed, "--lora_r is stated"), "{:?}", job.assumed);
    assert!(says(&job.assumed, "flash_attn is off"), "{:?}", job.assumed);
    assert_eq!(adapters(&of("--lora_r 16 --q_lora True")), Some((16, Some(4))));
    assert_eq!(adapters(&of("--lora_enable False --lora_r 16")), None);
    assert_eq!(adapters(&of("")), None);
    assert_eq!(
        of("").read.iter().find(|read| read.key == "--nproc_per_node").map(|read| read.value.as_str()),
        Some("4")
    );
}

#[test]
fn reports_have_the_names_of_the_command() {
    let batch = "deepspeed --module openrlhf.cli.train_sft --pretrain Qwen/Qwen2.5-7B --train_batch_size 100 --micro_train_batch_size 8 --bf16\n";
    assert!(error(batch).starts_with("--train_batch_size: 100 is no multiple of 8"), "{}", error(batch));
    let job = config("swift sft --model Qwen/Qwen3-8B --max_length 4096 --gradient_accumulation_stpes 8\n");
    assert_eq!(job.unknown, ["--gradient_accumulation_stpes (did you mean gradient_accumulation_steps?)"]);
    let secrets = "export WANDB_API_KEY=abcdef0123456789\ntrl sft --model_name_or_path Qwen/Qwen3-8B --hub_token hf_aaaaaaaaaaaaaaaa \
                   --per_device_train_batch_size 1 --other_key ghp_bbbbbbbbbbbb\n";
    let text = format!("{:?}", config(secrets));
    assert!(!text.contains("abcdef01") && !text.contains("hf_aaaa") && !text.contains("ghp_"), "{text}");
}

/// The overlap of tensor-parallel communication splits the collectives of sequence parallelism.
#[test]
fn overlap_of_tensor_parallel_communication_needs_sequence_parallelism() {
    let job = |flags: &str| {
        config(&format!(
            "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 \
             --seq-length 4096 --micro-batch-size 1 --global-batch-size 128 --bf16 --tensor-model-parallel-size 8 {flags}\n"
        ))
    };
    let both = job("--sequence-parallel --tp-comm-overlap");
    assert!(both.unknown.is_empty() && !both.not_modelled.iter().any(|note| note.contains("verlap")), "{both:?}");
    let percent = |job: &JobConfig| (100.0 * job.scenario.training.tensor_overlap) as u32;
    assert_eq!(percent(&both), 100);
    let alone = job("--tp-comm-overlap");
    assert!(
        alone.not_modelled.iter().any(|note| note.contains("needs sequence parallelism")),
        "{:?}",
        alone.not_modelled
    );
    assert_eq!((percent(&alone), percent(&job("--sequence-parallel"))), (0, 0));
    let titan = "[model]\nname = \"llama3\"\nflavor = \"70B\"\n[training]\nlocal_batch_size = 1\nseq_len = 8192\nsteps = 10\n\
                 [parallelism]\ntensor_parallel_degree = 8\nenable_async_tensor_parallel = true\n[compile]\nenable = true\n";
    assert_eq!(percent(&config(titan)), 50);
}
