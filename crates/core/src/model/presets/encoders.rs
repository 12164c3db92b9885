//! Image and audio encoders.

use super::language::Llama;
use crate::model::{Audio, Bias, Mask, Module, ModuleRole, Norm, Patch};

/// A ViT-style encoder: full attention, layer norms, biases, an MLP without gate, no vocabulary.
fn vit(name: &str, layers: u32, hidden: u32, heads: u32, ffn: u32, patch: Patch) -> Module {
    let dimensions = Llama { layers, hidden, heads, kv_heads: heads, ffn, vocab: 0 };
    Module {
        role: ModuleRole::VisionEncoder,
        gated: false,
        mask: Mask::Full,
        norm: Norm::Layer,
        bias: Bias::All,
        learned_positions: patch.patches_per_image,
        patch: Some(patch),
        ..dimensions.named(name)
    }
}

/// Images for ViT 2B, 5B and 22B, so that vision-language models with different sizes use the same
/// data. PipeWeaver specifies 169 tokens per image, but no patch size. Assumption: images with 728
/// x 728 pixels, 52 x 52 patches with 14 pixels, merged 4 x 4.
const fn images_with_169_tokens() -> Patch {
    Patch {
        patch_px: 14,
        patches_per_image: 2704,
        tokens_per_image: 169,
        projected_width: None,
        deepstack: 0,
        inner_width: None,
        pooled: false,
    }
}

/// PipeWeaver Table 1 specifies only the size. Assumption: 40 layers with hidden size 2,048 and an
/// MLP width of 4 h.
pub(super) fn vit_2b() -> Module {
    vit("ViT 2B", 40, 2048, 16, 8192, images_with_169_tokens())
}

/// PipeWeaver Table 3. The figures give 4.3 billion parameters with two MLP matrices and 6.0 with
/// three.
pub(super) fn vit_5b() -> Module {
    vit("ViT 5B", 63, 1792, 16, 15_360, images_with_169_tokens())
}

/// PipeWeaver Table 3, after Dehghani et al. 2023.
pub(super) fn vit_22b() -> Module {
    vit("ViT 22B", 48, 6144, 48, 24_576, images_with_169_tokens())
}

/// InternViT-6B at 448 pixels with 48 layers, as released: RMS norms, no query, key and value
/// biases. The preset omits biases in all layers. 32 x 32 patches are merged 2 x 2 to 256 tokens
/// (InternVL 1.2 and later).
pub(super) fn internvit_6b() -> Module {
    let patch = Patch {
        patch_px: 14,
        patches_per_image: 1024,
        tokens_per_image: 256,
        projected_width: None,
        deepstack: 0,
        inner_width: None,
        pooled: false,
    };
    Module { norm: Norm::Rms, bias: Bias::None, ..vit("InternViT-6B", 48, 3200, 25, 12_800, patch) }
}

/// InternViT-300M in InternVL2.5 and InternVL3 (released configurations), with a projection to
/// `backbone_width`. A video frame is one 448 x 448 tile: 32 x 32 patches, merged 2 x 2 to 256
/// tokens.
pub(super) fn internvit_300m(backbone_width: u32) -> Module {
    let patch = Patch {
        patch_px: 14,
        patches_per_image: 1024,
        tokens_per_image: 256,
        projected_width: Some(backbone_width),
        deepstack: 0,
        inner_width: None,
        pooled: false,
    };
    vit("InternViT-300M", 24, 1024, 16, 4096, patch)
}

/// Encoder in Qwen3-VL-2B and 4B (SigLIP2 Large; released configurations). Two video frames form an
/// image. Assumption: 448 x 448 pixels, so 28 x 28 patches with 16 pixels, merged 2 x 2 to 196
/// tokens.
pub(super) fn qwen3_vl_encoder_300m(backbone_width: u32, deepstack: u32) -> Module {
    vit("Qwen3-VL ViT 300M", 24, 1024, 16, 4096, frame_pairs(backbone_width, deepstack))
}

/// Encoder in Qwen3-VL-8B (SigLIP2 SO-400M), with the same images as [`qwen3_vl_encoder_300m`].
pub(super) fn qwen3_vl_encoder_400m(backbone_width: u32, deepstack: u32) -> Module {
    vit("Qwen3-VL ViT 400M", 27, 1152, 16, 4304, frame_pairs(backbone_width, deepstack))
}

const fn frame_pairs(backbone_width: u32, deepstack: u32) -> Patch {
    Patch {
        patch_px: 16,
        patches_per_image: 784,
        tokens_per_image: 196,
        projected_width: Some(backbone_width),
        deepstack,
        inner_width: None,
        pooled: false,
    }
}

/// SigLIP-SO400M with 14-pixel patches at 384 pixels: 27 x 27 patches, not merged
/// (LLaVA-OneVision).
pub(super) fn siglip_so400m() -> Module {
    let patch = Patch {
        patch_px: 14,
        patches_per_image: 729,
        tokens_per_image: 729,
        projected_width: None,
        deepstack: 0,
        inner_width: None,
        pooled: false,
    };
    vit("SigLIP-SO400M", 27, 1152, 16, 4304, patch)
}

/// SigLIP as in DFLOP's published configuration (named 6b there): 40 layers, hidden size 2,304, 2.4
/// billion parameters. The 729 patches of a video frame are pooled to 196 tokens. Scenarios must
/// add the additional 533 tokens per image tile.
pub(super) fn dflop_siglip() -> Module {
    let patch = Patch {
        patch_px: 14,
        patches_per_image: 729,
        tokens_per_image: 196,
        projected_width: None,
        deepstack: 0,
        inner_width: None,
        pooled: false,
    };
    vit("SigLIP 2.4B", 40, 2304, 48, 8608, patch)
}

/// Like [`dflop_siglip`], but with SigLIP-SO400M, the encoder released with LLaVA-OneVision.
pub(super) fn siglip_so400m_frames() -> Module {
    let patch = Patch {
        patch_px: 14,
        patches_per_image: 729,
        tokens_per_image: 196,
        projected_width: None,
        deepstack: 0,
        inner_width: None,
        pooled: false,
    };
    vit("SigLIP-SO400M", 27, 1152, 16, 4304, patch)
}

/// InternViT as in DFLOP's published configuration (named 6b there): 30 layers, 16 heads, 3.7
/// billion parameters.
pub(super) fn dflop_internvit() -> Module {
    let patch = Patch {
        patch_px: 14,
        patches_per_image: 1024,
        tokens_per_image: 256,
        projected_width: None,
        deepstack: 0,
        inner_width: None,
        pooled: false,
    };
    Module { norm: Norm::Rms, bias: Bias::None, ..vit("InternViT 3.7B", 30, 3200, 16, 12_800, patch) }
}

/// Qwen2-VL encoder for 448 x 448 pixels: 32 x 32 patches, merged 2 x 2 to 256 tokens with the
/// Qwen2 7B width. Rotary embeddings. The 675 million parameters include the merger.
pub(super) fn qwen2_vl_encoder() -> Module {
    let patch = Patch {
        patch_px: 14,
        patches_per_image: 1024,
        tokens_per_image: 256,
        projected_width: Some(3584),
        deepstack: 0,
        inner_width: None,
        pooled: false,
    };
    Module { learned_positions: 0, ..vit("ViT 675M", 32, 1280, 16, 5120, patch) }
}

/// Whisper large-v3 encoder with 30 s clips. Qwen2-Audio pools 1,500 frames to 750 tokens.
pub(super) fn whisper_large() -> Module {
    let dimensions = Llama { layers: 32, hidden: 1280, heads: 20, kv_heads: 20, ffn: 5120, vocab: 0 };
    Module {
        role: ModuleRole::AudioEncoder,
        gated: false,
        mask: Mask::Full,
        norm: Norm::Layer,
        bias: Bias::All,
        learned_positions: 1500,
        audio: Some(Audio { mel_bins: 128, frames_per_clip: 3000, tokens_per_clip: 750 }),
        ..dimensions.named("Whisper large-v3 encoder")
    }
}
