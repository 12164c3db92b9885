//! Tests for job sizes in trainer output.

use planner::run_comparison::BaseFormat;
use planner::training::Recompute;

use super::*;

fn read(text: &str) -> (Option<u32>, Option<u32>) {
    let JobSetup { devices, sequence_length, .. } = job_setup(text.as_bytes());
    (devices, sequence_length)
}

#[test]
fn trainers_print_their_size_before_the_first_step() {
    let megatron = "using world size: 64, data-parallel-size: 4, tensor-model-parallel size: 4\n\
                    ------------------------ arguments ------------------------\n  \
                    decoder_seq_length .............................. None\n  \
                    seq_length ...................................... 2048\n  \
                    world_size ...................................... 64\n";
    assert_eq!(read(megatron), (Some(64), Some(2048)));
    let torchtitan = "[rank0]:[titan] 2025-01-01 - root - INFO - Building 2-D device mesh with ['dp_shard', 'tp'], [4, 2]\n\
                      [rank0]:[titan] Training starts at step 1, with local batch size 1, sequence length 8192, total steps 1000\n";
    assert_eq!(read(torchtitan), (Some(8), Some(8192)));
    assert_eq!(read("All distributed processes registered. Starting with 16 processes\n"), (Some(16), None));
    assert_eq!(read("{\"world_size\": 32, \"seq_len\": 4096}"), (Some(32), Some(4096)));
    assert_eq!(read("python pretrain.py --seq-length 1024 --world-size=4\n"), (None, Some(1024)));
}

#[test]
fn model_size_is_among_the_arguments() {
    let text = "  encoder_num_layers .............. 3\n  num_layers ...................... 64\n  \
                ffn_hidden_size ................. 46400\n  hidden_size ..................... 11600\n";
    let setup = job_setup(text.as_bytes());
    assert_eq!((setup.layers, setup.hidden_size), (Some(64), Some(11_600)));
    assert_eq!(job_setup(b"--num-layers 24 --hidden-size 1024").layers, Some(24));
}

#[test]
fn settings_are_among_the_arguments() {
    let text = "  sequence_parallel ............... True\n  use_distributed_optimizer ....... False\n  \
                overlap_grad_reduce ............. True\n  overlap_param_gather ............ False\n  \
                overlap_param_gather_with_optimizer_step ... True\n  attention_backend ............... AttnBackend.unfused\n";
    let layout = job_setup(text.as_bytes()).layout;
    assert_eq!((layout.sequence_parallel, layout.sharded_optimizer), (Some(true), Some(false)));
    assert_eq!((layout.overlapped_gradients, layout.overlapped_weights), (Some(true), Some(false)));
    assert_eq!(layout.separate_attention, Some(true));
    let backend = |name: &str| job_setup(format!("attention_backend ... {name}").as_bytes()).layout.separate_attention;
    assert_eq!((backend("AttnBackend.flash"), backend("AttnBackend.auto")), (Some(false), None));
}

#[test]
fn other_quantities_and_broken_values_state_nothing() {
    for line in [
        "data_parallel_world_size ... 4",
        "world size unknown, 8 nodes",
        "world_size=0",
        "seq_length=4k",
        "seq_length=8.5",
        "world_size=99999999999999999999",
        "device mesh with ['dp'], []",
        "device mesh with ['dp'], [0]",
        "device mesh with ['dp', 'tp'], [65536, 65536]",
        "starting with many processes",
        "world_size",
        "",
    ] {
        assert_eq!(read(line), (None, None), "{line}");
    }
    // Arbitrary bytes are accepted.
    assert_eq!(job_setup(&[0xff, 0xfe, b'\n', 0, 1, 2]), JobSetup::default());
}

const MEGATRON: &str = "------------------------ arguments ------------------------\n  \
     ffn_hidden_size ................................. 11008\n  \
     fp8 ............................................. hybrid\n  \
     fp8_margin ...................................... 0\n  \
     global_batch_size ............................... 64\n  \
     moe_ffn_hidden_size ............................. None\n  \
     num_attention_heads ............................. 32\n  \
     num_experts ..................................... None\n  \
     padded_vocab_size ............................... 32768\n  \
     seq_length ...................................... 4096\n  \
     world_size ...................................... 8\n";

#[test]
fn megatron_arguments_state_the_model() {
    let setup = job_setup(MEGATRON.as_bytes());
    assert_eq!((setup.feed_forward_size, setup.expert_feed_forward_size), (Some(11_008), None));
    assert_eq!((setup.attention_heads, setup.experts, setup.padded_vocabulary), (Some(32), Some(0), Some(32_768)));
    assert_eq!((setup.global_batch, setup.precision.is_fp8), (Some(64), Some(true)));
    let sparse = MEGATRON
        .replace("num_experts ..................................... None", "num_experts ... 8")
        .replace("moe_ffn_hidden_size ............................. None", "moe_ffn_hidden_size ... 1408")
        .replace("hybrid", "None");
    let setup = job_setup(sparse.as_bytes());
    assert_eq!(
        (setup.experts, setup.expert_feed_forward_size, setup.precision.is_fp8),
        (Some(8), Some(1408), Some(false))
    );
    // Without the dots, the key belongs to another program.
    assert_eq!(job_setup(b"num_experts: None, fp8_recipe: hybrid").experts, None);
}

#[test]
fn batches_devices_and_trained_parameters_are_stated() {
    let titan = "[titan] root - INFO - CUDA capacity: NVIDIA H100 with 94.99GiB memory\n\
                 [titan] root - INFO - Trainer is initialized with local batch size 8, global batch size 64, gradient \
                 accumulation steps 1, sequence length 2048, total steps 1000 (warmup 200).\n";
    let setup = job_setup(titan.as_bytes());
    assert_eq!((setup.global_batch, setup.sequence_length), (Some(64), Some(2048)));
    assert_eq!(setup.device, DeviceName::find("H100"));
    let trainer = "***** Running training *****\n  Instantaneous batch size per device = 2\n  \
                   Total train batch size (w. parallel, distributed & accumulation) = 64\n  \
                   Number of trainable parameters = 20,277,248\n";
    let setup = job_setup(trainer.as_bytes());
    assert_eq!((setup.global_batch, setup.trained_parameters), (Some(64), Some(20_277_248)));
    let factory = job_setup(b"trainable params: 20,971,520 || all params: 8,051,232,768 || trainable%: 0.2605\n");
    assert_eq!(factory.trained_parameters, Some(20_971_520));
    assert_eq!(job_setup(b"GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\n").device, DeviceName::find("A100"));
    assert_eq!(job_setup(b"  train_batch_size ............. 256\n").global_batch, Some(256));
    assert_eq!(job_setup(b"per_device_train_batch_size=8, train_batch_size: 8\n").global_batch, None);
}

fn parts(log: &str) -> Vec<JobSetup> {
    let mut setups = JobSetups::new(None);
    for piece in log.as_bytes().chunks(7) {
        setups.push(piece);
    }
    setups.finish()
}

/// The second start has 16 devices and sequence length 8,192. The third prints nothing.
#[test]
fn every_start_states_its_job() {
    let step = |step: u32| format!(" iteration {step}/ 99 | elapsed time per iteration (ms): 1.5 | lm loss: 2.0 |\n");
    let again = MEGATRON
        .replace("4096", "8192")
        .replace("world_size ...................................... 8", "world_size ... 16");
    let log = [MEGATRON.to_owned(), step(10), step(20), again, step(15), step(25), step(5)].concat();
    let stated: Vec<_> = parts(&log).iter().map(|setup| (setup.devices, setup.sequence_length)).collect();
    assert_eq!(stated, [(Some(8), Some(4096)), (Some(16), Some(8192)), (Some(16), Some(8192))]);
    // A start that fails before its first step does not affect the next start.
    let failed = MEGATRON.replace("4096", "1024");
    let log = [failed, MEGATRON.to_owned(), step(10)].concat();
    assert_eq!(parts(&log).iter().map(|setup| setup.sequence_length).collect::<Vec<_>>(), [Some(4096)]);
    assert_eq!(parts("hello\n"), [JobSetup::default()]);
    assert_eq!(parts("seq_length=512")[0].sequence_length, Some(512));
}

#[test]
fn the_first_value_counts() {
    assert_eq!(read("world size: 8\nworld size: 16\n"), (Some(8), None));
}

/// Megatron-LM arguments contain degrees, microbatch, recomputation and number format.
#[test]
fn megatron_arguments_state_the_layout() {
    let text = "using world size: 64, data-parallel size: 4, context-parallel size: 2, tensor-model-parallel size: 4, \
                pipeline-model-parallel size: 2\n  \
                bf16 ............................................ False\n  \
                context_parallel_size ........................... 2\n  \
                expert_model_parallel_size ...................... 1\n  \
                expert_tensor_parallel_size ..................... 8\n  \
                fp16 ............................................ False\n  \
                fp8 ............................................. None\n  \
                group_query_attention ........................... True\n  \
                micro_batch_size ................................ 2\n  \
                num_query_groups ................................ 8\n  \
                params_dtype .................................... torch.float32\n  \
                recompute_granularity ........................... full\n  \
                virtual_pipeline_model_parallel_size ............ None\n";
    let setup = job_setup(text.as_bytes());
    assert_eq!(
        setup.layout,
        StatedLayout {
            tensor: Some(4),
            pipeline: Some(2),
            context: Some(2),
            expert: Some(1),
            data: Some(4),
            chunks: Some(1),
            microbatch: Some(2),
            recompute: Some(Recompute::Full),
            ..StatedLayout::default()
        }
    );
    assert_eq!(setup.precision, StatedPrecision { is_fp8: Some(false), base: Some(BaseFormat::Fp32) });
    assert_eq!((setup.devices, setup.kv_heads()), (Some(64), Some(8)));
    // Without grouped attention the group count, 1, is ignored.
    let ungrouped = "  group_query_attention ... False\n  num_attention_heads ... 32\n  num_query_groups ... 1\n";
    assert_eq!(job_setup(ungrouped.as_bytes()).kv_heads(), Some(32));
}

/// Both torchtitan mesh formats. Experts add no devices to a mesh.
#[test]
fn torchtitan_meshes_state_the_layout() {
    let old = job_setup(b"Building 4-D device mesh with ['pp', 'dp_shard', 'cp', 'tp'], [2, 4, 2, 2]\n");
    let degrees =
        |setup: JobSetup| (setup.layout.tensor, setup.layout.pipeline, setup.layout.context, setup.layout.data);
    assert_eq!((old.devices, degrees(old)), (Some(32), (Some(2), Some(2), Some(2), Some(4))));
    let new = "Building device mesh with parallelism: pp=4, dp_replicate=2, dp_shard=8, cp=1, tp=2, ep=8, etp=1\n\
               Applied full activation checkpointing to the model\n\
               Trainer is initialized with local batch size 8, global batch size 128, sequence length 8192\n";
    let new = job_setup(new.as_bytes());
    assert_eq!((new.devices, degrees(new)), (Some(128), (Some(2), Some(4), Some(1), Some(16))));
    assert_eq!((new.layout.expert, new.layout.recompute), (Some(8), Some(Recompute::Full)));
    // The local batch is divided into microbatches, and the line does not contain their size.
    assert_eq!(new.layout.microbatch, None);
    let plain = "Building 1-D device mesh with ['dp_shard'], [8]\nlocal batch size 8, sequence length 2048\n";
    assert_eq!(job_setup(plain.as_bytes()).layout.microbatch, Some(8));
    for line in ["device mesh with ['dp', 'tp'], [65536, 65536]", "device mesh with ['dp'], [0]"] {
        assert_eq!(job_setup(line.as_bytes()).layout, StatedLayout::default(), "{line}");
    }
}

#[test]
fn number_formats_are_stated_in_many_forms() {
    let (bf16, fp16, fp32) = (Some(BaseFormat::Bf16), Some(BaseFormat::Fp16), Some(BaseFormat::Fp32));
    for (line, is_fp8, base) in [
        ("Float8 tensorwise scaled training active", Some(true), None),
        ("Float8 training active", Some(true), None),
        ("MXFP8 training active with recipe mxfp8_cublas", Some(true), None),
        ("Swapped to Float8Linear layers with enable_fsdp_float8_all_gather=True", Some(true), None),
        ("Failed to swap to Float8Linear because float8 is only supported on SM89 or later", None, None),
        ("  bf16 ............................ True", None, bf16),
        ("  bf16 ............................ False", None, None),
        ("  fp16 ............................ True", None, fp16),
        ("  params_dtype .................... torch.bfloat16", None, bf16),
        ("  params_dtype .................... torch.float32", None, fp32),
        ("  bfloat16_enabled ................ True", None, bf16),
        ("bf16=True, bf16_full_eval=False, fp16=False,", None, bf16),
        ("Mixed precision type: fp8", Some(true), None),
        ("distributed training: True, compute dtype: torch.bfloat16", None, bf16),
        ("Using bfloat16 Automatic Mixed Precision (AMP)", None, bf16),
        ("Using auto half precision backend", None, Some(BaseFormat::Half)),
        ("precision: bf16-mixed", None, bf16),
        ("precision: 0.95", None, None),
        ("fp8_recipe: delayed", None, None),
    ] {
        assert_eq!(job_setup(line.as_bytes()).precision, StatedPrecision { is_fp8, base }, "{line}");
    }
}

#[test]
fn devices_are_named_in_many_forms() {
    for (line, name) in [
        ("CUDA capacity: NVIDIA A100-SXM4-80GB with 79.15GiB memory", Some("A100")),
        ("| 0  NVIDIA A100-SXM4-80GB          On  | 00000000:07:00.0 Off |", Some("A100")),
        ("You are using a CUDA device ('NVIDIA H100 80GB HBM3') that has Tensor Cores.", Some("H100")),
        ("{\"device_name\": \"NVIDIA H200\", \"world_size\": 8}", Some("H200")),
        ("gpu: AMD Instinct MI300X OAM", Some("MI300X")),
        ("NVIDIA-SMI 535.54  Driver Version: 535.54", None),
        ("lessons sorted in ascending order by A100 price", None),
    ] {
        let device = job_setup(line.as_bytes()).device;
        assert_eq!(device.map(|device| device.to_string()).as_deref(), name, "{line}");
    }
}

#[test]
fn torchtitan_nemo_and_row_sizes_are_stated() {
    let titan = job_setup(b"[titan] Model llama3 13B size: 13,015,864,320 total parameters\n");
    assert_eq!(titan.trained_parameters, Some(13_015_864_320));
    assert_eq!(job_setup(b"Model cache size: 12 GB").trained_parameters, None);
    assert_eq!(job_setup(b"    encoder_seq_length: 4096\n").sequence_length, Some(4096));
    let row = |step: u32| format!("{{\"step\": {step}, \"loss\": 2.5, \"step_time_s\": 1.5, \"num_gpus\": 16}}\n");
    assert_eq!(parts(&[row(1), row(2)].concat())[0].devices, Some(16));
    assert_eq!(job_setup(row(1).as_bytes()).devices, Some(16));
    // On a command line this is the device count per node.
    assert_eq!(job_setup(b"deepspeed --num_gpus 8 --num_nodes 4 train.py\n").devices, None);
}
