//! Diffusion transformers for images or video.

use super::language::Llama;
use crate::model::{Bias, Diffusion, Mask, Module, ModuleRole, Norm, Patch, Video};

/// DiT-XL/2 on 32 x 32 latents: 256 patches with 2 x 2 values. Class-conditional, therefore no
/// cross-attention.
pub(super) fn dit_xl_2() -> Module {
    let dimensions = Llama { layers: 28, hidden: 1152, heads: 16, kv_heads: 16, ffn: 4608, vocab: 0 };
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
            inner_width: None,
            pooled: false,
        }),
        diffusion: Some(Diffusion { text_tokens: 0, modulation: true }),
        ..dimensions.named("DiT-XL/2")
    }
}

/// PipeWeaver Table 3.
pub(super) fn dit_5b() -> Module {
    video_dit("DiT 5B", 28, 3584, 28, 10_240)
}

/// PipeWeaver Table 3.
pub(super) fn dit_30b() -> Module {
    video_dit("DiT 30B", 48, 6144, 48, 24_576)
}

/// A diffusion transformer after Movie Gen (Polyak et al. 2024): RMS norms, no biases, full
/// attention within a clip, cross-attention to the text. All layers share norm scales and shifts,
/// which are therefore not counted. The published MLP widths give the published sizes with two
/// matrices.
///
/// The latent grid is an assumption, derived from Movie Gen's description at 256 pixels: 16 frames
/// per second, a compression factor of 8 in time, height and width, 16 channels, 2 x 2 patches.
/// This gives 512 tokens per second with 64 values each ([`Video`]). Positions are learned
/// separately per axis: 16 rows, 16 columns, 32 time steps in 16 s. Clips attend to text padded to
/// 512 tokens, which is also an assumption.
fn video_dit(name: &str, layers: u32, hidden: u32, heads: u32, ffn: u32) -> Module {
    let dimensions = Llama { layers, hidden, heads, kv_heads: heads, ffn, vocab: 0 };
    Module {
        role: ModuleRole::Generator,
        gated: false,
        mask: Mask::Full,
        norm: Norm::Rms,
        bias: Bias::None,
        learned_positions: 16 + 16 + 32,
        video: Some(Video { tokens_per_second: 512, values_per_token: 64 }),
        diffusion: Some(Diffusion { text_tokens: 512, modulation: false }),
        ..dimensions.named(name)
    }
}
