//! Vision encoders by their names on the Hugging Face hub, and the module of an encoder of given sizes.

use planner::model::{Bias, Mask, Module, ModuleRole, Norm, Patch};

/// Layers, width, heads and width of the MLP of an encoder.
pub(super) type Sizes = [u32; 4];

pub(super) const CLIP_LARGE: Sizes = [24, 1024, 16, 4096];
pub(super) const SIGLIP_SO400M: Sizes = [27, 1152, 16, 4304];
pub(super) const INTERNVIT_6B: Sizes = [45, 3200, 25, 12_800];
pub(super) const INTERNVIT_300M: Sizes = [24, 1024, 16, 4096];

/// Word of a name of CLIP or SigLIP that states its size, in lower case. The sizes are those of the `config.json` files.
const VIT: [(&str, Sizes); 10] = [
    ("base", [12, 768, 12, 3072]),
    ("b", [12, 768, 12, 3072]),
    ("large", CLIP_LARGE),
    ("l", CLIP_LARGE),
    ("so400m", SIGLIP_SO400M),
    ("huge", [32, 1280, 16, 5120]),
    ("h", [32, 1280, 16, 5120]),
    ("giant", [40, 1536, 16, 6144]),
    ("g", [40, 1408, 16, 6144]),
    ("bigg", [48, 1664, 16, 8192]),
];

/// An encoder and its images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Encoder {
    pub(super) sizes: Sizes,
    pub(super) patch_px: u32,
    /// Side of an image in pixels.
    pub(super) image_px: u32,
}

/// CLIP ViT-L/14 with images of 336 x 336 pixels, the encoder of LLaVA-1.5.
pub(super) const CLIP_LARGE_336: Encoder = Encoder { sizes: CLIP_LARGE, patch_px: 14, image_px: 336 };

/// Returns the encoder of a name such as `openai/clip-vit-large-patch14-336`. `None` if its sizes are not known.
pub(super) fn find(name: &str) -> Option<Encoder> {
    let name = name.trim().trim_end_matches('/').to_lowercase().replace('_', "-");
    let name = name.rsplit('/').next()?;
    let words: Vec<&str> = name.split('-').collect();
    let number = |word: &&str| word.trim_end_matches("px").parse::<u32>().ok();
    let image_px = words.iter().rev().filter_map(number).find(|&px| (112..=1024).contains(&px));
    if name.contains("internvit") {
        // Version 1.0 has three more layers than later ones.
        let is_first = image_px == Some(224) || name.contains("v1-0");
        let sizes = match () {
            () if words.contains(&"300m") => INTERNVIT_300M,
            () if words.contains(&"6b") && is_first => [48, 3200, 25, 12_800],
            () if words.contains(&"6b") => INTERNVIT_6B,
            () => return None,
        };
        return Some(Encoder { sizes, patch_px: 14, image_px: image_px.unwrap_or(448) });
    }
    let is_vit = name.contains("clip") || (name.contains("siglip") && image_px.is_some());
    let (_, sizes) = VIT.into_iter().find(|(word, _)| is_vit && words.contains(word))?;
    // OpenCLIP states the patch size as a word of its own: `CLIP-ViT-H-14`.
    let patch_px = words.iter().find_map(|word| word.strip_prefix("patch")?.parse().ok());
    let patch_px = patch_px.or_else(|| words.iter().filter_map(number).find(|px| (8..=32).contains(px)))?;
    Some(Encoder { sizes, patch_px, image_px: image_px.unwrap_or(224) })
}

impl Encoder {
    /// Returns the module, with an MLP from its output to the width of the backbone. `merge` patches in each direction become
    /// a token.
    pub(super) fn module(self, (backbone_width, inner_width): (u32, Option<u32>), merge: u32) -> Module {
        let merge = merge.max(1);
        let tokens_per_side = (self.image_px / self.patch_px / merge).max(1);
        let tokens = tokens_per_side.saturating_mul(tokens_per_side);
        let patch = Patch {
            patch_px: self.patch_px,
            patches_per_image: tokens.saturating_mul(merge).saturating_mul(merge),
            tokens_per_image: tokens,
            projected_width: Some(backbone_width),
            inner_width,
            deepstack: 0,
            pooled: false,
        };
        module(self.sizes, patch)
    }
}

/// Returns an encoder with layer norms, biases and an MLP without a gate.
pub(super) fn module([layers, hidden, heads, ffn]: Sizes, patch: Patch) -> Module {
    Module {
        name: "Vision encoder".to_owned(),
        role: ModuleRole::VisionEncoder,
        layers,
        hidden,
        heads,
        kv_heads: heads,
        ffn,
        gated: false,
        mask: Mask::Full,
        norm: Norm::Layer,
        bias: Bias::All,
        vocab: 0,
        tied_embeddings: false,
        learned_positions: 0,
        patch: Some(patch),
        ..Module::decoder()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_state_sizes_patches_and_images() {
        let of = |sizes, patch_px, image_px| Some(Encoder { sizes, patch_px, image_px });
        for (name, expected) in [
            ("openai/clip-vit-large-patch14-336", Some(CLIP_LARGE_336)),
            ("./checkpoints/clip-vit-large-patch14/", of(CLIP_LARGE, 14, 224)),
            ("openai/clip-vit-base-patch32", of([12, 768, 12, 3072], 32, 224)),
            ("laion/CLIP-ViT-H-14-laion2B-s32B-b79K", of([32, 1280, 16, 5120], 14, 224)),
            ("laion/CLIP-ViT-bigG-14-laion2B-39B-b160k", of([48, 1664, 16, 8192], 14, 224)),
            ("google/siglip-so400m-patch14-384", of(SIGLIP_SO400M, 14, 384)),
            ("google/siglip2-giant-opt-patch16-384", of([40, 1536, 16, 6144], 16, 384)),
            ("OpenGVLab/InternViT-300M-448px", of(INTERNVIT_300M, 14, 448)),
            ("./pretrained/InternViT-6B-448px-V1-5", of(INTERNVIT_6B, 14, 448)),
            ("OpenGVLab/InternViT-6B-224px", of([48, 3200, 25, 12_800], 14, 224)),
            ("google/siglip2-so400m-patch16-naflex", None),
            ("mikarbx/mobilenetv2", None),
            ("$VISION_TOWER", None),
        ] {
            assert_eq!(find(name), expected, "{name}");
        }
    }

    #[test]
    fn merged_patches_become_a_token() {
        let patch = CLIP_LARGE_336.module((4096, Some(4096)), 1).patch.unwrap();
        assert_eq!((patch.patches_per_image, patch.tokens_per_image), (24 * 24, 576));
        let patch = Encoder { image_px: 448, ..CLIP_LARGE_336 }.module((4096, None), 2).patch.unwrap();
        assert_eq!((patch.patches_per_image, patch.tokens_per_image), (1024, 256));
    }
}
