//! Sources of samples by name: documented synthetic distributions, marked as such.

use super::{Distribution, SampleSource};

/// A named source of samples.
#[derive(Debug, Clone)]
pub struct SamplePreset {
    /// Stable identifier.
    pub id: &'static str,
    /// Shown name.
    pub title: &'static str,
    /// The source.
    pub source: SampleSource,
}

/// Every source preset, in the order in which pickers list them.
pub fn samples() -> Vec<SamplePreset> {
    let text = |id, title, text_tokens| SamplePreset {
        id,
        title,
        source: SampleSource::Drawn { text_tokens, images: Distribution::Constant { value: 0 } },
    };
    vec![
        text("uniform-4096", "Equal sequences, 4,096 tokens", Distribution::Constant { value: 4096 }),
        text(
            "long-documents",
            "Long documents (synthetic, log-normal, median 3,200)",
            Distribution::LogNormal { median: 3200.0, sigma: 0.75, min: 64, max: 65_536 },
        ),
        text(
            "source-code",
            "Source code (synthetic, log-normal, median 900)",
            Distribution::LogNormal { median: 900.0, sigma: 1.35, min: 16, max: 262_144 },
        ),
        SamplePreset {
            id: "image-text",
            title: "Image-text sequences (synthetic, 0 to 32 images)",
            source: SampleSource::Drawn {
                text_tokens: Distribution::Constant { value: 8192 },
                images: Distribution::Uniform { min: 0, max: 32 },
            },
        },
    ]
}
