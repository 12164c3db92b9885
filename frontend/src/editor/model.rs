//! Model section: preset and all module fields.

use api::planner::model::{Model, Module};
use leptos::prelude::*;
use serde_json::Value;

use super::field::{CheckField, NumberField, SelectField};
use super::layer_kinds::{AttentionFields, ExpertFields, Parts};
use super::modules::{AddModule, RemoveModule};
use super::preset::{PresetOption, PresetPicker};
use super::section::{Advanced, Section};
use crate::catalogue::use_catalogue;
use crate::explore::modalities::leave_out_unread;
use crate::explore::use_explore;
use crate::{format, pointer};

/// Model section.
#[component]
pub(super) fn ModelSection() -> impl IntoView {
    let explore = use_explore();
    let catalogue = use_catalogue();
    let model = Memo::new(move |_| explore.scenario.with(|scenario| pointer::get(scenario, "/model").cloned()));
    let selected = Memo::new(move |_| {
        let model: Model = serde_json::from_value(model.get()?).ok()?;
        catalogue
            .presets
            .get()?
            .models
            .iter()
            .find(|candidate| candidate.model == model)
            .map(|preset| preset.id.clone())
    });
    let choices = Signal::derive(move || {
        let models = catalogue.presets.get().map(|presets| presets.models.clone()).unwrap_or_default();
        let option =
            |model: api::gallery::ModelOption| PresetOption { id: model.id, title: model.model.name, group: "" };
        models.into_iter().map(option).collect::<Vec<_>>()
    });
    let choose = move |id: String| {
        let preset = catalogue.presets.get_untracked();
        let preset = preset.iter().flat_map(|presets| &presets.models).find(|entry| entry.id == id);
        if let Some(value) = preset.and_then(|model_preset| serde_json::to_value(&model_preset.model).ok()) {
            explore.edit("/model", |scenario| {
                crate::pointer::set(scenario, "/model", value);
                leave_out_unread(scenario);
            });
        }
    };
    let size = move || parameters(&serde_json::from_value(model.get()?).ok()?);
    let notes = move || model.get().and_then(|model| notes(&model));
    let modules = Memo::new(move |_| {
        let modules = model.get().and_then(|model| model.get("modules").and_then(Value::as_array).cloned());
        modules.unwrap_or_default().iter().map(ModuleShape::from_module).collect::<Vec<_>>()
    });
    view! {
        <Section title="Model" pointer="/model" note="">
            <PresetPicker test_id="model-preset" label="Preset" other="Edited" choices=choices selected=selected on_choose=choose />
            <p class="hint">{size}</p>
            <p class="hint">{notes}</p>
            {move || {
                let modules = modules.get();
                let is_single = modules.len() == 1;
                let fields = modules.into_iter().enumerate();
                fields.map(|(index, shape)| view! { <ModuleFields index=index shape=shape is_single=is_single /> }).collect_view()
            }}
            <AddModule />
        </Section>
    }
}

/// Parameter count of the edited model, and per module for multi-module models. `None` if a field
/// is out of range.
fn parameters(model: &Model) -> Option<String> {
    let counts = model.modules.iter().map(Module::checked_parameters).collect::<Option<Vec<u64>>>()?;
    let count_text = |count: u64| format::large(count as f64);
    let total = format!("{}\u{202f}parameters", count_text(counts.iter().sum()));
    if counts.len() < 2 {
        return Some(total);
    }
    let each = model.modules.iter().zip(counts).map(|(module, count)| format!("{} {}", module.name, count_text(count)));
    Some(format!("{total}: {}", each.collect::<Vec<_>>().join(", ")))
}

/// Notes on module types, for example "Llama-3 8B: text encoder; DiT 5B: 512 tokens a second of
/// video".
fn notes(model: &Value) -> Option<String> {
    let module_note = |module: &Value| {
        let video = module["video"]["tokens_per_second"].as_u64();
        let note = match video {
            Some(tokens) => format!("{} tokens a second of video", format::count(tokens)),
            None if module["headless"] == true => "text encoder, no output head".to_owned(),
            None if module["pattern"].is_string() => {
                format!("layers {}", module["pattern"].as_str().unwrap_or_default())
            }
            None => return None,
        };
        Some(format!("{}: {note}", module["name"].as_str().unwrap_or("Module")))
    };
    let notes: Vec<String> = model["modules"].as_array()?.iter().filter_map(module_note).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// Module properties that determine which fields are visible.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a part that a module has or has not")]
struct ModuleShape {
    name: String,
    parts: Parts,
    patches: bool,
    sound: bool,
    video: bool,
    diffusion: bool,
}

impl ModuleShape {
    fn from_module(module: &Value) -> Self {
        Self {
            name: module["name"].as_str().unwrap_or("Module").to_owned(),
            parts: Parts::from_module(module),
            patches: module["patch"].is_object(),
            sound: module["audio"].is_object(),
            video: module["video"].is_object(),
            diffusion: module["diffusion"].is_object(),
        }
    }
}

/// Fields of one module.
#[component]
fn ModuleFields(index: usize, shape: ModuleShape, is_single: bool) -> impl IntoView {
    let at = move |field: &str| format!("/model/modules/{index}/{field}");
    let parts = shape.parts;
    let is_expert = parts.experts && !parts.expert_width;
    let (mlp, mlp_unit) = if is_expert { ("Expert width", "f of one expert") } else { ("MLP width", "f") };
    let remove = (!is_single).then(|| {
        view! { <RemoveModule index=index name=shape.name.clone() /> }
    });
    let head =
        parts.backbone.then(|| view! { <CheckField pointer=at("headless") label="No output head (text encoder)" /> });
    view! {
        <Advanced title=shape.name.clone() prefixes=vec![format!("/model/modules/{index}")]>
            <NumberField pointer=at("layers") label="Layers" unit="L" min=1.0 max=1024.0 />
            <NumberField pointer=at("hidden") label="Width" unit="h" min=1.0 max=131_072.0 step=128.0 />
            <NumberField pointer=at("heads") label="Query heads" unit="a" min=1.0 max=1024.0 />
            <NumberField pointer=at("kv_heads") label="Key-value heads" unit="a_kv" min=1.0 max=1024.0 />
            <NumberField pointer=at("head_size") label="Head size" unit="d" min=1.0 max=4096.0 placeholder="h / a" />
            <NumberField pointer=at("ffn") label=mlp unit=mlp_unit min=1.0 max=1_048_576.0 step=128.0 />
            <ExpertFields index=index parts=parts />
            <CheckField pointer=at("gated") label="Gated MLP (SwiGLU)" />
            <SelectField pointer=at("mask") label="Attention mask" options=&[("causal", "Causal"), ("full", "Full")] />
            <SelectField pointer=at("norm") label="Norm" options=&[("rms", "RMS"), ("layer", "Layer")] />
            <SelectField pointer=at("bias") label="Bias" options=&[("none", "None"), ("qkv", "Q, K, V"), ("all", "All")] />
            <CheckField pointer=at("dropout") label="Dropout" />
            <NumberField pointer=at("vocab") label="Vocabulary" unit="V" min=0.0 max=4_000_000.0 />
            {head}
            <CheckField pointer=at("tied_embeddings") label="Tied embeddings" />
            <NumberField pointer=at("learned_positions") label="Learned positions" unit="" min=0.0 max=4_000_000.0 />
            <AttentionFields index=index parts=parts />
            <CheckField pointer=at("frozen") label="Frozen (not trained)" />
            <ItemFields index=index shape=shape />
            {remove}
        </Advanced>
    }
}

/// Fields for image, audio and video inputs of a module.
#[component]
fn ItemFields(index: usize, shape: ModuleShape) -> impl IntoView {
    let at = move |field: &str| format!("/model/modules/{index}/{field}");
    let patches = shape.patches.then(|| {
        view! {
            <NumberField pointer=at("patch/patch_px") label="Patch edge" unit="px" min=1.0 max=256.0 />
            <NumberField pointer=at("patch/patches_per_image") label="Patches per image" unit="" min=1.0 max=1_000_000.0 />
            <NumberField pointer=at("patch/tokens_per_image") label="Tokens per image" unit="backbone" min=0.0 max=1_000_000.0 />
            <NumberField pointer=at("patch/projected_width") label="Projector width" unit="backbone's h" min=16.0 max=131_072.0 step=128.0 placeholder="none" />
            <NumberField pointer=at("patch/inner_width") label="Projector inner width" unit="between its products" min=16.0 max=131_072.0 step=128.0 placeholder="merged patches" />
            <CheckField pointer=at("patch/pooled") label="Patches averaged before the projection" />
            <NumberField pointer=at("patch/deepstack") label="DeepStack mergers" unit="of inner layers" min=0.0 max=64.0 placeholder="0" />
        }
    });
    let sound = shape.sound.then(|| {
        view! {
            <NumberField pointer=at("audio/mel_bins") label="Spectrogram" unit="bins" min=1.0 max=4096.0 />
            <NumberField pointer=at("audio/frames_per_clip") label="Frames per clip" unit="" min=2.0 max=1_048_576.0 />
            <NumberField pointer=at("audio/tokens_per_clip") label="Tokens per clip" unit="backbone" min=1.0 max=1_048_576.0 />
        }
    });
    let video = shape.video.then(|| {
        view! {
            <NumberField pointer=at("video/tokens_per_second") label="Tokens of video" unit="per second" min=1.0 max=65_536.0 />
            <NumberField pointer=at("video/values_per_token") label="Latent of a token" unit="numbers" min=1.0 max=65_536.0 />
        }
    });
    let diffusion = shape.diffusion.then(|| {
        view! { <NumberField pointer=at("diffusion/text_tokens") label="Text attended to" unit="tokens" min=0.0 max=1_048_576.0 /> }
    });
    view! {
        {patches}
        {sound}
        {video}
        {diffusion}
    }
}

#[cfg(test)]
mod tests {
    use api::planner::model::presets::model;

    use super::*;

    #[test]
    fn parameters_are_counted_as_they_are_typed() {
        let plain = |model: &Model| parameters(model).map(|text| text.replace('\u{202f}', " "));
        let mut llama = model("llama-2-7b").unwrap();
        assert_eq!(plain(&llama).unwrap(), "6.74 B parameters");
        llama.modules[0].layers = 16;
        assert_eq!(plain(&llama).unwrap(), "3.50 B parameters", "16 x 202.4 million and 262.1 million");
        llama.modules[0].heads = 0;
        assert_eq!(plain(&llama), None);
        assert!(plain(&model("vlm-s").unwrap()).unwrap().ends_with("Llama-3 8B 8.03 B"));
    }

    #[test]
    fn notes_name_text_encoder_and_video_generator() {
        let notes = |id| notes(&serde_json::to_value(model(id).unwrap()).unwrap());
        assert_eq!(notes("vlm-s"), None);
        assert_eq!(
            notes("t2v-s").as_deref(),
            Some("Llama-3 8B: text encoder, no output head; DiT 5B: 512 tokens a second of video")
        );
    }
}
