//! Trained parts of vision-language models, and encoders by name.

use planner::model::{Gradients, Module, ModuleRole};

use super::*;

const TRAINER: &str = "--bf16 True --per_device_train_batch_size 16 --model_max_length 2048 --output_dir out";
const LLAVA: &str =
    "deepspeed llava/train/train.py --deepspeed zero2.json --vision_tower openai/clip-vit-large-patch14-336";
const VICUNA: &str = "--model_name_or_path lmsys/vicuna-13b-v1.5";
const QWEN_VL: &str = "torchrun qwenvl/train/train_qwen.py --model_name_or_path Qwen/Qwen2.5-VL-7B-Instruct";

fn says(job: &JobConfig, text: &str) -> bool {
    job.not_modelled.iter().any(|sentence| sentence.contains(text))
}

#[test]
fn single_weights_that_are_trained_or_frozen_are_reported() {
    let job =
        |options: &str| config(&format!("swift sft --model Qwen/Qwen2.5-VL-7B-Instruct --train_type full {options}\n"));
    assert!(says(&job("--freeze_parameters_ratio 0.5"), "--freeze_parameters_ratio freezes some weights."));
    assert!(says(&job("--trainable_parameters visual.merger"), "--trainable_parameters trains more weights"));
    let none = job("--freeze_parameters_ratio 0.");
    assert!(!says(&none, "freezes some weights") && none.unknown.is_empty(), "{:?}", none.unknown);
}

/// Returns whether the encoder and the language model are frozen.
fn frozen(job: &JobConfig) -> [bool; 2] {
    let modules = &job.scenario.model.modules;
    [ModuleRole::VisionEncoder, ModuleRole::Backbone]
        .map(|role| modules.iter().any(|module| module.role == role && module.frozen))
}

#[test]
fn llava_trains_the_projector_alone_in_its_first_stage() {
    for switch in ["--mm_projector_type mlp2x_gelu --tune_mm_mlp_adapter True", "--mm_tunable_parts=\"mm_mlp_adapter\""]
    {
        let job = config(&format!("{LLAVA} {VICUNA} {TRAINER} {switch}\n"));
        assert_eq!(frozen(&job), [true, true], "{switch}");
        let model = &job.scenario.model;
        let patch = model.modules[0].patch.unwrap();
        assert_eq!((patch.tokens_per_image, patch.projected_width), (576, Some(5120)));
        // The projector is trained, so the language model computes the gradients of its inputs.
        assert!(model.modules[0].has_projection());
        assert_eq!(model.module_gradients(1), Gradients::Inputs);
        assert!(job.unknown.is_empty(), "{:?}", job.unknown);
    }
}

#[test]
fn a_list_of_parts_names_the_trained_ones() {
    for (parts, expected) in [
        ("mm_mlp_adapter,mm_language_model", [true, false]),
        ("mm_vision_tower,mm_mlp_adapter,mm_language_model", [false, false]),
        ("mm_vision_tower", [false, true]),
    ] {
        let job = config(&format!("{LLAVA} {VICUNA} {TRAINER} --mm_tunable_parts=\"{parts}\"\n"));
        assert_eq!(frozen(&job), expected, "{parts}");
        assert_eq!(says(&job, "The frozen projector is read as trained"), parts == "mm_vision_tower", "{parts}");
    }
}

#[test]
fn switches_of_programs_freeze_parts() {
    for (command, expected) in [
        // Qwen-VL: a switch that is not stated is off.
        (format!("{QWEN_VL} {TRAINER} --tune_mm_mlp True --tune_mm_llm True"), [true, false]),
        (format!("{QWEN_VL} {TRAINER} --tune_mm_vision True --tune_mm_mlp True --tune_mm_llm False"), [false, true]),
        (
            format!("{QWEN_VL} {TRAINER} --freeze_vision_tower True --freeze_llm False --freeze_merger False"),
            [true, false],
        ),
        (format!("{QWEN_VL} {TRAINER}"), [false, false]),
        // InternVL calls the encoder its backbone.
        (
            format!(
                "torchrun internvl_chat_finetune.py --model_name_or_path OpenGVLab/InternVL2-8B {TRAINER} --freeze_llm False \
                 --freeze_mlp False --freeze_backbone True"
            ),
            [true, false],
        ),
        // LLaVA calls the language model so, and never trains the encoder.
        (format!("{LLAVA} {VICUNA} {TRAINER} --freeze_backbone True"), [true, true]),
        (format!("{LLAVA} {VICUNA} {TRAINER}"), [true, false]),
        (
            "swift sft --model Qwen/Qwen2.5-VL-7B-Instruct --train_type full --freeze_vit false --freeze_llm true"
                .to_owned(),
            [false, true],
        ),
        (
            "megatron sft --load Qwen2.5-VL-7B-Instruct-mcore --train_type full --freeze_vit false --freeze_llm true"
                .to_owned(),
            [false, true],
        ),
        ("megatron sft --load Qwen2.5-VL-7B-Instruct-mcore --train_type full".to_owned(), [true, false]),
    ] {
        let job = config(&format!("{command}\n"));
        assert_eq!(frozen(&job), expected, "{command}");
        assert!(!says(&job, "vision encoder is left out"), "{:?}", job.not_modelled);
    }
}

#[test]
fn adapters_freeze_the_encoder_of_a_script() {
    let job = config(&format!("{LLAVA} {VICUNA} {TRAINER} --lora_enable True --lora_r 128\n"));
    assert_eq!(frozen(&job), [true, false]);
    // LLaVA adapts all linear layers of the language model.
    let adapters = job.scenario.model.modules[1].adapters.unwrap();
    assert_eq!((adapters.rank, adapters.mlp), (128, true));
    let sentence = "The adapted layers are not stated. They are read as all linear layers.";
    assert!(job.assumed.iter().any(|assumed| assumed == sentence), "{:?}", job.assumed);
    let job = config(&format!("{LLAVA} {VICUNA} {TRAINER} --lora_enable True --lora_r 128 --bits 4\n"));
    assert_eq!(job.scenario.model.modules[1].adapters.unwrap().base_bits, Some(4));
    // InternVL states the rank as the switch, next to a frozen language model.
    let job = config(&format!(
        "torchrun x.py --model_name_or_path OpenGVLab/InternVL2-8B {TRAINER} --freeze_llm True --freeze_mlp True \
         --freeze_backbone True --use_llm_lora 16 --grad_checkpoint True --force_image_size 224 --dynamic_image_size True\n"
    ));
    let [encoder, language] = job.scenario.model.modules.as_slice() else { panic!("two modules") };
    assert_eq!((language.adapters.map(|adapters| adapters.rank), language.frozen), (Some(16), false));
    assert_eq!(encoder.patch.unwrap().tokens_per_image, 64);
    assert_eq!(job.scenario.training.recompute, Recompute::Full);
    assert!(says(&job, "An image is read as one tile.") && says(&job, "The frozen projector is read as trained"));
}

#[test]
fn a_frozen_language_model_without_a_known_encoder_is_reported() {
    let tower = "deepspeed llava/train/train.py --vision_tower me/my-encoder";
    let job = config(&format!("{tower} {VICUNA} {TRAINER} --tune_mm_mlp_adapter True\n"));
    assert_eq!(job.scenario.model.modules.first().map(|module| module.layers), Some(24));
    assert!(says(&job, "is read as CLIP ViT-L/14"), "{:?}", job.not_modelled);
    let job = config(&format!("{tower} {VICUNA} {TRAINER} --frames_upbound 32\n"));
    assert_eq!((job.scenario.model.modules.len(), job.unknown.len()), (1, 0), "{:?}", job.unknown);
    assert!(says(&job, "The vision encoder is left out"), "{:?}", job.not_modelled);
    let job = config(&format!("torchrun x.py {VICUNA} {TRAINER} --freeze_llm True\n"));
    assert!(says(&job, "the part that is trained is left out"), "{:?}", job.not_modelled);
}

#[test]
fn adapters_of_verl_freeze_the_encoder() {
    let verl = |options: &str| {
        config(&format!(
            "python3 -m verl.trainer.main_ppo data.max_prompt_length=1024 data.max_response_length=1024 \
             actor_rollout_ref.model.path=Qwen/Qwen2.5-VL-7B-Instruct actor_rollout_ref.actor.ppo_mini_batch_size=64 \
             actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 trainer.nnodes=1 trainer.n_gpus_per_node=8 {options}\n"
        ))
    };
    let lora = "actor_rollout_ref.model.lora_rank=16 actor_rollout_ref.model.target_modules=all-linear";
    let job = verl(&format!("{lora} actor_rollout_ref.model.exclude_modules='.*visual.*'"));
    assert_eq!(frozen(&job), [true, false]);
    assert!(!says(&job, "Adapters of the vision encoder"), "{:?}", job.not_modelled);
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
    assert!(says(&verl(lora), "Adapters of the vision encoder are left out"));
    assert_eq!(frozen(&verl("actor_rollout_ref.actor.freeze_vision_tower=True")), [true, false]);
    assert_eq!(frozen(&verl("")), [false, false]);
    // Adapters of Megatron-LM.
    let job = verl("actor_rollout_ref.actor.strategy=megatron actor_rollout_ref.model.lora.rank=32");
    let adapters = job.scenario.model.modules.iter().find_map(|module| module.adapters);
    assert_eq!(adapters.map(|adapters| (adapters.rank, adapters.mlp)), Some((32, true)));
}

#[test]
fn images_and_videos_of_swift_are_read_or_reported() {
    let job = config(
        "MAX_PIXELS=1003520 megatron sft --load Qwen2.5-VL-7B-Instruct-mcore --train_type full --freeze_vit false \
         --vit_gradient_checkpointing true --padding_free true\n",
    );
    // The largest square of at most 1,003,520 pixels has 35 tokens of 28 x 28 pixels in each direction.
    let tokens = job.scenario.model.modules.iter().find_map(|module: &Module| module.patch).unwrap().tokens_per_image;
    assert_eq!(tokens, 35 * 35);
    assert!(
        says(&job, "vit_gradient_checkpointing") && says(&job, "Batches without padding"),
        "{:?}",
        job.not_modelled
    );
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
    let frozen = config(
        "swift sft --model Qwen/Qwen2.5-VL-7B-Instruct --gradient_checkpointing true --vit_gradient_checkpointing false\n",
    );
    assert!(!says(&frozen, "vit_gradient_checkpointing") && frozen.unknown.is_empty(), "{:?}", frozen.unknown);
    let job = config(
        "VIDEO_MAX_PIXELS=50176 FPS_MAX_FRAMES=12 swift sft --model Qwen/Qwen2.5-VL-7B-Instruct --train_type full \
         --freeze_vit false --gradient_checkpointing false --vit_gradient_checkpointing true --padding_free true\n",
    );
    for part in ["Videos are not read", "Recomputation of the vision encoder alone", "Batches without padding"] {
        assert!(says(&job, part), "{part}: {:?}", job.not_modelled);
    }
}

#[test]
fn nemo_names_the_encoder() {
    let text = "trainer:\n  devices: 8\n  num_nodes: 1\n  precision: bf16\nmodel:\n  micro_batch_size: 1\n  global_batch_size: 8\n  \
                encoder_seq_length: 4096\n  num_layers: 24\n  hidden_size: 2048\n  num_attention_heads: 16\n  mm_cfg:\n    llm:\n      \
                freeze: true\n    vision_encoder:\n      from_pretrained: NAME\n      freeze: true\n    mm_mlp_adapter_type: mlp2x_gelu\n";
    let job = config(&text.replace("NAME", "openai/clip-vit-large-patch14"));
    assert_eq!(frozen(&job), [true, true]);
    assert_eq!(job.scenario.model.modules[0].patch.unwrap().tokens_per_image, 256);
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
    assert!(says(&config(&text.replace("NAME", "x.nemo")), "The vision encoder and the projector are left out"));
}
