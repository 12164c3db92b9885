//! Validates the model: modules, combinations, inputs.

mod layers;

use super::Ranges;
use planscope_core::model::{Audio, Model, Module, ModuleRole, Patch, Video};

pub(super) fn check(model: &Model, ranges: &mut Ranges<'_>) {
    if model.modules.is_empty() || model.modules.len() > 8 {
        ranges.refuse("/model/modules", "a model has one to eight modules".to_owned());
        return;
    }
    for (index, part) in model.modules.iter().enumerate() {
        module(part, &format!("/model/modules/{index}"), ranges);
    }
    together(model, ranges);
}

/// Allows at most one module per type, in data-flow order: encoders, backbone, generator.
fn together(model: &Model, ranges: &mut Ranges<'_>) {
    let count = |role: ModuleRole| model.modules.iter().filter(|module| module.role == role).count();
    let last = model.modules.len() - 1;
    let ends = |role: ModuleRole| model.modules[last].role == role;
    let backbones = count(ModuleRole::Backbone);
    let before_generator =
        last > 0 && ends(ModuleRole::Generator) && model.modules[last - 1].role == ModuleRole::Backbone;
    if backbones > 1 || (backbones == 1 && !ends(ModuleRole::Backbone) && !before_generator) {
        let detail = "the backbone is one module, behind encoders and before a generator";
        ranges.refuse("/model/modules", detail.to_owned());
    }
    if backbones == 0 && model.modules.len() > 1 {
        let detail =
            "several modules need a backbone that reads what the encoders make or encodes text for the generator";
        ranges.refuse("/model/modules", detail.to_owned());
    }
    for (role, name) in [
        (ModuleRole::VisionEncoder, "vision encoder"),
        (ModuleRole::AudioEncoder, "audio encoder"),
        (ModuleRole::Generator, "generator"),
    ] {
        if count(role) > 1 {
            ranges.refuse("/model/modules", format!("at most one {name}"));
        }
    }
    let makes_images = |module: &Module| module.role == ModuleRole::Generator && module.patch.is_some();
    if count(ModuleRole::VisionEncoder) > 0 && model.modules.iter().any(makes_images) {
        let detail =
            "images are either read by a vision encoder or made by a generator; beside the encoder it makes video";
        ranges.refuse("/model/modules", detail.to_owned());
    }
    if let Some(index) = model.modules[..last].iter().position(|module| module.video.is_some()) {
        ranges.refuse(&format!("/model/modules/{index}/video"), "a generator of video is the last module".to_owned());
    }
}

fn module(module: &Module, at: &str, ranges: &mut Ranges<'_>) {
    ranges.integer(&format!("{at}/layers"), module.layers, 1, 1024, "");
    ranges.integer(&format!("{at}/hidden"), module.hidden, 16, 131_072, "");
    ranges.integer(&format!("{at}/heads"), module.heads, 1, 1024, "");
    ranges.integer(&format!("{at}/kv_heads"), module.kv_heads, 1, 1024, "");
    ranges.integer(&format!("{at}/ffn"), module.ffn, 16, 1_048_576, "");
    ranges.integer(&format!("{at}/vocab"), module.vocab, 0, 4_194_304, "");
    ranges.integer(&format!("{at}/learned_positions"), module.learned_positions, 0, 16_777_216, "");
    let (h, a, kv) = (module.hidden, module.heads, module.kv_heads);
    if let Some(size) = module.head_size {
        ranges.integer(&format!("{at}/head_size"), size, 1, 4096, "");
    }
    if a > 0 && h % a != 0 && module.head_size.is_none() {
        ranges.refuse(&format!("{at}/heads"), format!("{a} heads do not divide the hidden size {h}"));
    }
    // Skip the key-value heads if the number of heads is invalid.
    if !ranges.any_under(&format!("{at}/heads")) && kv > 0 && (kv > a || a % kv != 0) {
        ranges.refuse(&format!("{at}/kv_heads"), format!("{kv} key-value heads do not divide {a} query heads"));
    }
    if module.headless && module.role != ModuleRole::Backbone {
        ranges.refuse(&format!("{at}/headless"), "only a backbone has an output head to leave out".to_owned());
    }
    if module.headless && module.tied_embeddings {
        let detail = "without an output head there is nothing to tie the embeddings to";
        ranges.refuse(&format!("{at}/tied_embeddings"), detail.to_owned());
    }
    items(module, at, ranges);
    layers::check(module, at, ranges);
}

/// Validates module inputs: patches for images, frames for sound, seconds for video, none for a
/// backbone.
fn items(module: &Module, at: &str, ranges: &mut Ranges<'_>) {
    let (patch, audio, video) = (format!("{at}/patch"), format!("{at}/audio"), format!("{at}/video"));
    match module.role {
        ModuleRole::VisionEncoder if module.patch.is_none() => {
            ranges.refuse(&patch, "a vision encoder needs patches".to_owned());
        }
        ModuleRole::Generator if module.patch.is_none() && module.video.is_none() => {
            ranges.refuse(&patch, "a generator needs patches or video".to_owned());
        }
        ModuleRole::AudioEncoder if module.audio.is_none() => {
            ranges.refuse(&audio, "an audio encoder needs frames".to_owned());
        }
        ModuleRole::Backbone if module.patch.is_some() => {
            ranges.refuse(&patch, "a backbone has no patches".to_owned());
        }
        ModuleRole::Backbone if module.audio.is_some() => {
            ranges.refuse(&audio, "a backbone has no frames".to_owned());
        }
        _ => {}
    }
    if module.patch.is_some() && module.audio.is_some() {
        ranges.refuse(&audio, "a module has patches or frames, not both".to_owned());
    }
    if module.video.is_some() && module.role != ModuleRole::Generator {
        ranges.refuse(&video, "only a generator makes video".to_owned());
    } else if module.video.is_some() && (module.patch.is_some() || module.audio.is_some()) {
        ranges.refuse(&video, "a generator makes images or video, not both".to_owned());
    }
    if let Some(own) = module.patch {
        let Patch { patch_px, patches_per_image, tokens_per_image, projected_width, inner_width, deepstack, pooled } =
            own;
        ranges.integer(&format!("{patch}/patch_px"), patch_px, 1, 256, " px");
        ranges.integer(&format!("{patch}/patches_per_image"), patches_per_image, 1, 1_048_576, "");
        ranges.integer(&format!("{patch}/tokens_per_image"), tokens_per_image, 1, 1_048_576, "");
        if let Some(width) = projected_width {
            ranges.integer(&format!("{patch}/projected_width"), width, 16, 131_072, "");
        }
        if let Some(width) = inner_width {
            ranges.integer(&format!("{patch}/inner_width"), width, 16, 131_072, "");
            if projected_width.is_none() || pooled {
                let detail =
                    "only the MLP of a projector has an inner width: it needs a projector width, without averaging";
                ranges.refuse(&format!("{patch}/inner_width"), detail.to_owned());
            }
        }
        ranges.integer(&format!("{patch}/deepstack"), deepstack, 0, 64, "");
        if pooled && projected_width.is_none() {
            let detail = "averaged patches are projected to the backbone's width, so a projector width is needed";
            ranges.refuse(&format!("{patch}/pooled"), detail.to_owned());
        }
        if deepstack > 0 && projected_width.is_none() {
            let detail = "DeepStack projects to the backbone's width, so a projector width is needed";
            ranges.refuse(&format!("{patch}/deepstack"), detail.to_owned());
        }
    }
    if let Some(Audio { mel_bins, frames_per_clip, tokens_per_clip }) = module.audio {
        ranges.integer(&format!("{audio}/mel_bins"), mel_bins, 1, 4096, "");
        ranges.integer(&format!("{audio}/frames_per_clip"), frames_per_clip, 2, 1_048_576, "");
        ranges.integer(&format!("{audio}/tokens_per_clip"), tokens_per_clip, 1, 1_048_576, "");
    }
    if let Some(Video { tokens_per_second, values_per_token }) = module.video {
        ranges.integer(&format!("{video}/tokens_per_second"), tokens_per_second, 1, 65_536, "");
        ranges.integer(&format!("{video}/values_per_token"), values_per_token, 1, 65_536, "");
    }
    if let Some(diffusion) = module.diffusion {
        ranges.integer(&format!("{at}/diffusion/text_tokens"), diffusion.text_tokens, 0, 1_048_576, "");
    }
}
