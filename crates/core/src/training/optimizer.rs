//! Optimizers and their state.

use serde::{Deserialize, Serialize};

/// Optimizer of the trained parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Optimizer {
    /// Adam or AdamW with two moments in fp32.
    #[default]
    Adam,
    /// Adam with two moments of 8 bits (Dettmers et al., 2022).
    #[serde(rename = "adam_8bit")]
    Adam8Bit,
    /// Muon: a momentum in fp32, orthogonalized by five Newton-Schulz iterations (Jordan et al.,
    /// 2024).
    Muon,
    /// Adafactor: sums over rows and columns in place of moments (Shazeer and Stern, 2018).
    Adafactor,
    /// SGD with a momentum in fp32.
    Sgd,
}

impl Optimizer {
    /// All optimizers.
    pub const ALL: [Self; 5] = [Self::Adam, Self::Adam8Bit, Self::Muon, Self::Adafactor, Self::Sgd];

    /// Returns the stable identifier, as in JSON.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Adam => "adam",
            Self::Adam8Bit => "adam_8bit",
            Self::Muon => "muon",
            Self::Adafactor => "adafactor",
            Self::Sgd => "sgd",
        }
    }

    /// Returns the display name.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Adam => "AdamW",
            Self::Adam8Bit => "AdamW, 8 bit",
            Self::Muon => "Muon",
            Self::Adafactor => "Adafactor",
            Self::Sgd => "SGD with momentum",
        }
    }

    /// Bytes per parameter of moments, without the fp32 master weight. The sums of Adafactor are below
    /// 0.01 bytes.
    pub const fn moment_bytes(self) -> f64 {
        match self {
            Self::Adam => 8.0,
            Self::Adam8Bit => 2.0,
            Self::Muon | Self::Sgd => 4.0,
            Self::Adafactor => 0.0,
        }
    }
}
