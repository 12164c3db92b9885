//! What trainers state of their jobs.

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
fn the_size_of_the_model_is_among_the_arguments() {
    let text = "  encoder_num_layers .............. 3\n  num_layers ...................... 64\n  \
                ffn_hidden_size ................. 46400\n  hidden_size ..................... 11600\n";
    let setup = job_setup(text.as_bytes());
    assert_eq!((setup.layers, setup.hidden_size), (Some(64), Some(11_600)));
    assert_eq!(job_setup(b"--num-layers 24 --hidden-size 1024").layers, Some(24));
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
    // Any bytes are read.
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
fn arguments_of_megatron_state_the_model() {
    let setup = job_setup(MEGATRON.as_bytes());
    assert_eq!((setup.feed_forward_size, setup.expert_feed_forward_size), (Some(11_008), None));
    assert_eq!((setup.attention_heads, setup.experts, setup.padded_vocabulary), (Some(32), Some(0), Some(32_768)));
    assert_eq!((setup.global_batch, setup.is_fp8), (Some(64), Some(true)));
    let sparse = MEGATRON
        .replace("num_experts ..................................... None", "num_experts ... 8")
        .replace("moe_ffn_hidden_size ............................. None", "moe_ffn_hidden_size ... 1408")
        .replace("hybrid", "None");
    let setup = job_setup(sparse.as_bytes());
    assert_eq!((setup.experts, setup.expert_feed_forward_size, setup.is_fp8), (Some(8), Some(1408), Some(false)));
    // Without the points, the word is of another program.
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

/// The second start has 16 devices and sequences of 8,192; the third states nothing.
#[test]
fn every_start_states_its_own_job() {
    let step = |step: u32| format!(" iteration {step}/ 99 | elapsed time per iteration (ms): 1.5 | lm loss: 2.0 |\n");
    let again = MEGATRON
        .replace("4096", "8192")
        .replace("world_size ...................................... 8", "world_size ... 16");
    let log = [MEGATRON.to_owned(), step(10), step(20), again, step(15), step(25), step(5)].concat();
    let told: Vec<_> = parts(&log).iter().map(|setup| (setup.devices, setup.sequence_length)).collect();
    assert_eq!(told, [(Some(8), Some(4096)), (Some(16), Some(8192)), (Some(16), Some(8192))]);
    // A start that failed before its first step states nothing of the next one.
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
