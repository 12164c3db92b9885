//! Vision encoder of the multimodal example of Megatron-LM (`examples/multimodal/train.py`).

use planner::model::{ModuleRole, Patch};

use super::JobConfigError;
use super::keys::Keys;
use super::settings::Settings;
use super::vision_names::{self, CLIP_LARGE, INTERNVIT_6B, INTERNVIT_300M, SIGLIP_SO400M, Sizes};

/// Arguments of the multimodal example that no other program has.
const MARKS: [&str; 5] = ["vision-model-type", "freeze-lm", "freeze-vit", "language-model-type", "patch-dim"];

/// Sizes of an encoder that the example builds by name.
const ENCODERS: [(&str, Sizes); 5] = [
    ("clip", CLIP_LARGE),
    ("siglip", SIGLIP_SO400M),
    ("internvit", INTERNVIT_6B),
    ("internvit300M", INTERNVIT_300M),
    ("radio", [32, 1280, 16, 5120]),
];

/// Reads the frozen parts of the model, and adds the encoder to it.
pub(super) fn read(keys: &mut Keys, settings: &mut Settings) -> Result<(), JobConfigError> {
    if !MARKS.iter().any(|name| keys.has(name)) {
        return Ok(());
    }
    for (name, role) in [("freeze-lm", ModuleRole::Backbone), ("freeze-vit", ModuleRole::VisionEncoder)] {
        if keys.flag(&[name], "frozen modules").unwrap_or(false) {
            settings.frozen.push(role);
        }
    }
    let kind = keys.text(&["vision-model-type"], "vision encoder").unwrap_or_else(|| {
        keys.assume("The vision encoder is not stated. The default of examples/multimodal/train.py is CLIP ViT-L.");
        "clip".to_owned()
    });
    let patch = patch(keys)?;
    if keys.flag(&["use-tiling"], "tiles").unwrap_or(false) {
        keys.not_modelled("An image is read as one tile. With --use-tiling it has up to --max-num-tiles tiles.");
    }
    keys.ignore(is_without_effect);
    let sizes = ENCODERS.iter().find(|(name, _)| name.eq_ignore_ascii_case(kind.trim())).map(|(_, sizes)| *sizes);
    let backbone = settings.model.as_mut().filter(|model| model.modules.len() == 1);
    let (Some(sizes), Some(model)) = (sizes, backbone) else {
        keys.not_modelled("The vision encoder is left out: its sizes are not known.");
        return Ok(());
    };
    let language = &model.modules[0];
    let patch = Patch { projected_width: Some(language.hidden), inner_width: Some(language.ffn), ..patch };
    let encoder = vision_names::module(sizes, patch);
    keys.assume(format!("The sizes of the vision encoder are those of {kind} in examples/multimodal/config.py."));
    model.modules.insert(0, encoder);
    Ok(())
}

/// Reads the patches of an image. The class token is a patch of its own.
fn patch(keys: &mut Keys) -> Result<Patch, JobConfigError> {
    let mut pixels = |name: &'static str, default: u32| {
        keys.count(&[name], "image size").map(|size| size.filter(|&size| size > 0).unwrap_or(default))
    };
    let (patch_px, height, width) = (pixels("patch-dim", 14)?, pixels("img-h", 336)?, pixels("img-w", 336)?);
    let has_class = !keys.flag(&["disable-vision-class-token"], "class token").unwrap_or(false);
    let patches = (height / patch_px).max(1).saturating_mul((width / patch_px).max(1));
    let patches = patches.saturating_add(u32::from(has_class));
    // Four patches become a token.
    let merged = if keys.flag(&["pixel-shuffle"], "merged patches").unwrap_or(false) { 4 } else { 1 };
    Ok(Patch {
        patch_px,
        patches_per_image: patches,
        tokens_per_image: (patches / merged).max(1),
        projected_width: None,
        inner_width: None,
        deepstack: 0,
        pooled: false,
    })
}

/// True for paths, prompts and options of the data loader.
fn is_without_effect(key: &str) -> bool {
    const PREFIXES: [&str; 12] = [
        "img-",
        "language-model-type",
        "disable-vision",
        "max-num-tiles",
        "use-thumbnail",
        "num-frames",
        "image-",
        "tokenizer-prompt",
        "dataloader-seq",
        "prompt-path",
        "allow-missing-vision",
        "pixel-",
    ];
    PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use crate::job_config::read as read_job;

    /// Sizes of a small language model on one device.
    const LANGUAGE: &str = "python examples/multimodal/train.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 \
                            --ffn-hidden-size 14336 --seq-length 2048 --max-position-embeddings 4096 --micro-batch-size 1 \
                            --global-batch-size 256 --tensor-model-parallel-size 4 --vocab-size 32000";

    #[test]
    fn the_encoder_of_the_example_is_known_by_name() {
        let of = |options: &str| read_job("x", format!("{LANGUAGE} {options}").as_bytes()).unwrap();
        let job = of("--freeze-LM --freeze-ViT --patch-dim 14 --img-h 336 --img-w 336 --disable-vision-class-token");
        let [encoder, language] = job.scenario.model.modules.as_slice() else { panic!("two modules") };
        assert_eq!((encoder.layers, encoder.hidden, encoder.ffn), (24, 1024, 4096));
        let patch = encoder.patch.unwrap();
        assert_eq!((patch.tokens_per_image, patch.projected_width, patch.inner_width), (576, Some(4096), Some(14_336)));
        assert!(encoder.frozen && language.frozen);
        let job =
            of("--vision-model-type internvit --img-h 448 --img-w 448 --pixel-shuffle --disable-vision-class-token");
        let encoder = &job.scenario.model.modules[0];
        assert_eq!((encoder.layers, encoder.patch.unwrap().tokens_per_image, encoder.frozen), (45, 256, false));
        let job = of("--vision-model-type huggingface");
        assert_eq!(job.scenario.model.modules.len(), 1);
        assert!(job.not_modelled.iter().any(|sentence| sentence.contains("its sizes are not known")));
        assert_eq!(of("").scenario.model.modules.len(), 1);
    }
}
