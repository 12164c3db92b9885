//! Trained parts of a vision-language model: the encoder, the projector and the language model.
//!
//! Programs state them with switches that freeze a part or that train it, or with a list of the trained parts.

use planner::model::{Model, ModuleRole};

use crate::job_config::keys::Keys;
use crate::job_config::settings::Settings;
use crate::job_config::{ConfigFormat, vision_names};

/// Part of the model. The value is its index in [`Trained`].
#[derive(Debug, Clone, Copy)]
enum Part {
    Encoder,
    Projector,
    Language,
}

/// Whether each part is trained. `None`: not stated.
type Trained = [Option<bool>; 3];

/// Switches with their part, and whether the switch trains the part. `freeze_backbone` is read by the program.
const SWITCHES: [(&str, Part, bool); 21] = [
    // LLaMA-Factory; ms-swift with its names replaced; scripts for Qwen-VL.
    ("freeze_vision_tower", Part::Encoder, false),
    ("freeze_multi_modal_projector", Part::Projector, false),
    ("freeze_language_model", Part::Language, false),
    ("freeze_aligner", Part::Projector, false),
    ("freeze_llm", Part::Language, false),
    ("freeze_merger", Part::Projector, false),
    ("tune_merger", Part::Projector, true),
    ("fix_vit", Part::Encoder, false),
    ("tune_mm_vision", Part::Encoder, true),
    ("tune_mm_mlp", Part::Projector, true),
    ("tune_mm_llm", Part::Language, true),
    // VILA.
    ("tune_vision_tower", Part::Encoder, true),
    ("tune_mm_projector", Part::Projector, true),
    ("tune_language_model", Part::Language, true),
    // InternVL.
    ("freeze_mlp", Part::Projector, false),
    // LLaVA.
    ("unfreeze_mm_vision_tower", Part::Encoder, true),
    ("freeze_mm_mlp_adapter", Part::Projector, false),
    // MiniCPM-V and Phi-3 Vision.
    ("tune_vision", Part::Encoder, true),
    ("tune_llm", Part::Language, true),
    ("freeze_img_projector", Part::Projector, false),
    ("tune_img_projector", Part::Projector, true),
];

/// Switches of programs that freeze each part unless its switch is on.
const FROZEN_BY_DEFAULT: [[&str; 3]; 2] = [
    ["tune_mm_vision", "tune_mm_mlp", "tune_mm_llm"],
    ["tune_vision_tower", "tune_mm_projector", "tune_language_model"],
];

/// Switches that train the projector alone.
const PROJECTOR_ONLY: [&str; 2] = ["tune_mm_mlp_adapter", "train_mm_proj_only"];

/// Keys of the name of an encoder that is no part of the model.
const ENCODER: [&str; 3] = ["vision_tower", "vision_path", "vision_model_name_or_path"];

/// Starts of keys of LLaVA and InternVL that change neither time nor memory, or only those of an encoder that is read.
const WITHOUT_EFFECT: [&str; 19] = [
    "down_sample_ratio",
    "dynamic_image_size",
    "force_image_size",
    "frames_upbound",
    "min_dynamic_patch",
    "use_thumbnail",
    "conv_style",
    "drop_path_rate",
    "max_dynamic_patch",
    "meta_path",
    "ps_version",
    "mm_projector_lr",
    "mm_vision_select",
    "mm_vision_tower_lr",
    "mm_use_im",
    "mm_patch_merge_type",
    "mm_newline",
    "pretrain_mm_mlp_adapter",
    "vision_select_layer",
];

/// Reads which parts are trained.
pub(super) fn read(format: ConfigFormat, keys: &mut Keys, settings: &mut Settings) {
    let [encoder, projector, language] = trained(keys);
    let has_adapters = settings.adapters.is_some();
    // The default of these programs freezes the encoder. LLaVA does not train an encoder that it loads by name.
    let is_llava = keys.has("vision_tower") && !keys.has("mm_tunable_parts");
    let is_frozen_by_default = matches!(format, ConfigFormat::LlamaFactory | ConfigFormat::Swift) || is_llava;
    if !encoder.unwrap_or(!is_frozen_by_default) || has_adapters {
        settings.frozen.push(ModuleRole::VisionEncoder);
    }
    // PEFT adapts all layers with a name of the targets, also those of the encoder.
    let targets = ["lora_target_modules", "lora_target", "peft_config.target_modules"];
    let is_text_only = targets.iter().any(|name| keys.peek(name).is_some_and(|text| text.contains("language_model")));
    let is_adapted = encoder.unwrap_or(!is_frozen_by_default && !is_text_only);
    settings.vision.has_adapters = has_adapters && is_adapted;
    // Scripts freeze the weights to which they add adapters. Other programs leave a frozen part without adapters.
    if language == Some(false) && !(has_adapters && format == ConfigFormat::TrainingArguments) {
        settings.frozen.push(ModuleRole::Backbone);
    }
    let is_projector_trained = projector.unwrap_or(is_llava || !(is_frozen_by_default || has_adapters));
    settings.vision.has_frozen_projector = !is_projector_trained;
    partial(keys);
    keys.ignore(|key| WITHOUT_EFFECT.iter().any(|start| key.starts_with(start)));
}

fn trained(keys: &mut Keys) -> Trained {
    const SETTING: &str = "trained parts";
    let mut trained: Trained = [None; 3];
    // InternVL calls its encoder the backbone, LLaVA its language model.
    let is_intern =
        ["freeze_mlp", "freeze_llm", "conv_style", "force_image_size", "vision_path"].iter().any(|name| keys.has(name));
    let backbone = if is_intern { Part::Encoder } else { Part::Language };
    for (name, part, trains) in SWITCHES.into_iter().chain([("freeze_backbone", backbone, false)]) {
        if let Some(is_on) = keys.flag(&[name], SETTING) {
            trained[part as usize] = Some(is_on == trains);
        }
    }
    for names in FROZEN_BY_DEFAULT {
        if !names.iter().any(|name| keys.has(name)) {
            continue;
        }
        for (state, name) in trained.iter_mut().zip(names).filter(|(state, _)| state.is_none()) {
            keys.assume(format!("{name} is not stated. It is off, the default: this part of the model is frozen."));
            *state = Some(false);
        }
    }
    for name in PROJECTOR_ONLY {
        if keys.flag(&[name], SETTING) == Some(true) {
            trained = [Some(false), Some(true), Some(false)];
        }
    }
    if let Some(parts) = keys.text(&["mm_tunable_parts"], SETTING).filter(|parts| !matches!(parts.trim(), "" | "None"))
    {
        let has = |names: &[&str]| Some(names.iter().any(|name| parts.contains(name)));
        trained =
            [has(&["mm_vision_tower"]), has(&["mm_mlp_adapter", "mm_vision_resampler"]), has(&["mm_language_model"])];
    }
    trained
}

/// Reports switches that train some layers of a part.
fn partial(keys: &mut Keys) {
    let is_set = |keys: &Keys, name: &str| {
        keys.peek(name).is_some_and(|value| {
            let value = value.trim();
            !value.is_empty() && !value.eq_ignore_ascii_case("false") && value.parse() != Ok(0.0)
        })
    };
    for name in ["unfreeze_vit_layers", "use_backbone_lora", "vision_lora", "trainable_parameters"] {
        if is_set(keys, name) {
            keys.not_modelled(format!(
                "{} trains more weights of frozen parts. They are read as frozen, so memory and time are lower bounds.",
                keys.file_name(name)
            ));
        }
        keys.ignore(|key| key == name);
    }
    for name in ["freeze_parameters", "freeze_parameters_ratio", "freeze_parameters_regex"] {
        if is_set(keys, name) {
            keys.not_modelled(format!(
                "{} freezes some weights. They are read as trained, so memory and time are upper bounds.",
                keys.file_name(name)
            ));
        }
        keys.ignore(|key| key == name);
    }
}

/// Adds the encoder that the job names to a language model, and reports parts whose training a scenario cannot represent.
pub(in crate::job_config) fn complete(model: &mut Model, keys: &mut Keys, settings: &Settings) {
    let name = keys.text(&ENCODER, "vision encoder").filter(|name| !matches!(name.trim(), "" | "None" | "false"));
    let has_encoder = |model: &Model| model.modules.iter().any(|module| module.role == ModuleRole::VisionEncoder);
    if let Some(name) = name.filter(|_| !has_encoder(model)) {
        add(&name, model, keys, settings);
    }
    if !has_encoder(model) {
        if settings.frozen.contains(&ModuleRole::Backbone) {
            keys.not_modelled(
                "The language model is frozen, and the part that is trained is left out. The backward pass is not counted: time and \
                 memory are lower bounds.",
            );
        }
        return;
    }
    tiles(keys);
    resize(model, keys);
    if settings.vision.has_adapters {
        keys.not_modelled(
            "Adapters of the vision encoder are left out. Its weights are frozen, so memory and time are lower bounds.",
        );
    }
    let is_projected = model.modules.iter().any(planner::model::Module::has_projection);
    if settings.vision.has_frozen_projector && is_projected {
        keys.not_modelled(
            "The frozen projector is read as trained: memory is an upper bound, by its gradients and optimizer state.",
        );
    }
}

fn add(name: &str, model: &mut Model, keys: &mut Keys, settings: &Settings) {
    let Some(at) = model.modules.iter().position(|module| module.role == ModuleRole::Backbone) else { return };
    let width = model.modules[at].hidden;
    let kind = keys.text(&["mm_projector_type"], "projector").unwrap_or_default();
    // LLaVA has one product by default, and scripts state an MLP. InternVL has an MLP.
    let inner_width = (kind.starts_with("mlp") || keys.has("vision_path")).then_some(width);
    let known = vision_names::find(name);
    let encoder = match known {
        Some(encoder) => encoder,
        // Without an encoder, the backward pass through the frozen language model is left out.
        None if settings.frozen.contains(&ModuleRole::Backbone) => {
            keys.not_modelled(
                "The vision encoder is read as CLIP ViT-L/14 with images of 336 x 336 pixels: the sizes of the stated one are not \
                 known.",
            );
            vision_names::CLIP_LARGE_336
        }
        None => {
            keys.not_modelled("The vision encoder is left out: the arguments do not state its sizes.");
            return;
        }
    };
    let ratio = keys.number(&["down_sample_ratio"], "merged patches").ok().flatten().filter(|ratio| *ratio > 0.0);
    let default = if keys.has("vision_path") { 2 } else { 1 };
    let merge = ratio.map_or(default, |ratio| (1.0 / ratio).round() as u32);
    if known.is_some() {
        keys.assume(format!("The sizes of the vision encoder are those of {}, known by its name.", base_name(name)));
    }
    if kind.is_empty() && inner_width.is_none() {
        keys.assume("The projector is not stated. It is read as a linear one, the default of LLaVA.");
    }
    let resampler = keys.peek("mm_resampler_type").is_some_and(|kind| !matches!(kind.trim(), "" | "None"));
    if resampler || !(kind.is_empty() || kind == "linear" || kind.starts_with("mlp")) {
        keys.not_modelled(
            "The projector is read as one that keeps the number of image tokens. A resampler shortens the sequence, so time and \
             memory are upper bounds.",
        );
    }
    keys.ignore(|key| key.starts_with("mm_resampler") || key.starts_with("mm_spatial_pool"));
    model.modules.insert(at, encoder.module((width, inner_width), merge));
}

/// Gives the images the size that InternVL states, with the same number of patches for a token.
fn resize(model: &mut Model, keys: &mut Keys) {
    let stated = keys.count(&["force_image_size"], "image size").ok().flatten();
    keys.text(&["down_sample_ratio"], "merged patches");
    let patch = model.modules.iter_mut().find_map(|module| module.patch.as_mut());
    let (Some(px), Some(patch)) = (stated, patch) else { return };
    let side = (px / patch.patch_px.max(1)).max(1);
    let merged = (patch.patches_per_image / patch.tokens_per_image.max(1)).max(1);
    patch.patches_per_image = side.saturating_mul(side);
    patch.tokens_per_image = (patch.patches_per_image / merged).max(1);
}

/// Reports that a sample has several tiles of an image.
fn tiles(keys: &mut Keys) {
    let is_any = keys.peek("image_aspect_ratio").is_some_and(|kind| kind.starts_with("anyres"));
    let is_dynamic = keys.flag(&["dynamic_image_size"], "tiles").unwrap_or(false);
    if is_any || is_dynamic {
        let name = keys.file_name(if is_any { "image_aspect_ratio" } else { "dynamic_image_size" });
        keys.not_modelled(format!(
            "An image is read as one tile. With {name} it has several, so the time and memory of the encoder are lower bounds."
        ));
    }
    // LLaVA-NeXT and scripts for Qwen-VL.
    if ["frames_upbound", "video_max_frames", "video_fps"].iter().any(|name| keys.has(name)) {
        keys.not_modelled(super::programs::VIDEOS);
    }
}

/// Returns the last part of a path.
fn base_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}
