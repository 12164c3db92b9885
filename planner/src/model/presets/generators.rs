//! Diffusion transformers that make images or video.

use super::language::Llama;
use crate::model::{Bias, Diffusion, Mask, Module, ModuleRole, Norm, Patch, Video};

/// DiT-XL/2 on latents of 32 x 32: 256 patches of 2 x 2, class-conditional, so without cross-attention.
pub(super) fn dit_xl_2() -> Module {
    let figures = Llama { layers: 28, hidden: 1152, heads: 16, kv_heads: 16, ffn: 4608, vocab: 0 };
    Module {
        role: ModuleRole::Generator,
        gated: false,
        mask: Mask::Full,
        norm: Norm::Layer,
        bias: Bias::All,
        learned_positions: 256,
        patch: Some(Patch {
            patch_px: 2,
            patches_per_image: 256,
            tokens_per_image: 1,
            projected_width: None,
            deepstack: 0,
        }),
        diffusion: Some(Diffusion { text_tokens: 0, modulation: true }),
        ..figures.named("DiT-XL/2")
    }
}

/// Table 3 of PipeWeaver.
pub(super) fn dit_5b() -> Module {
    video_dit("DiT 5B", 28, 3584, 28, 10_240)
}

/// Table 3 of PipeWeaver.
pub(super) fn dit_30b() -> Module {
    video_dit("DiT 30B", 48, 6144, 48, 24_576)
}

/// A diffusion transformer after Movie Gen (Polyak et al. 2024): RMS norms, no biases, full attention within a clip,
/// cross-attention to the text; scales and shifts of the norms are shared by all layers and therefore not counted. The
/// published widths of the MLP come to the published sizes with two matrices.
///
/// The latent grid is our assumption, from Movie Gen's description at 256 pixels: 16 frames a second, compressed by 8 in
/// time and by 8 in each direction of space to 16 channels, in patches of 2 x 2: 512 tokens a second of 64 numbers each
/// ([`Video`]). Positions are learned for each axis by itself: 16 rows, 16 columns, 32 instants of 16 s. Every clip
/// attends to a text padded to 512 tokens, which is an assumption too.
fn video_dit(name: &str, layers: u32, hidden: u32, heads: u32, ffn: u32) -> Module {
    let figures = Llama { layers, hidden, heads, kv_heads: heads, ffn, vocab: 0 };
    Module {
        role: ModuleRole::Generator,
        gated: false,
        mask: Mask::Full,
        norm: Norm::Rms,
        bias: Bias::None,
        learned_positions: 16 + 16 + 32,
        video: Some(Video { tokens_per_second: 512, values_per_token: 64 }),
        diffusion: Some(Diffusion { text_tokens: 512, modulation: false }),
        ..figures.named(name)
    }
}
