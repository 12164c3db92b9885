//! Optimizers and their state.

use serde::{Deserialize, Serialize};

use super::{Precision, Training};

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

    /// Number of moments per parameter. The sums of Adafactor are below 0.01 bytes.
    pub const fn moments(self) -> f64 {
        match self {
            Self::Adam | Self::Adam8Bit => 2.0,
            Self::Muon | Self::Sgd => 1.0,
            Self::Adafactor => 0.0,
        }
    }

    /// True if the moments have a format of choice. Those of 8-bit Adam are integers, and Adafactor has none.
    pub const fn has_moment_format(self) -> bool {
        matches!(self, Self::Adam | Self::Muon | Self::Sgd)
    }
}

/// Master weights: the copy of the weights that the optimizer updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum MasterWeights {
    /// Four bytes.
    #[default]
    Fp32,
    /// Two bytes (fp16 or bf16).
    Half,
    /// No copy: the optimizer updates the weights in their own format (pure bf16 training).
    None,
}

impl MasterWeights {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Fp32, Self::Half, Self::None];

    /// Returns the stable identifier, as in JSON.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Fp32 => "fp32",
            Self::Half => "half",
            Self::None => "none",
        }
    }
}

/// Number format of the moments of the optimizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum MomentFormat {
    /// Four bytes.
    #[default]
    Fp32,
    /// Two bytes (bf16 or fp16).
    Bf16,
    /// One byte.
    Fp8,
}

impl MomentFormat {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Fp32, Self::Bf16, Self::Fp8];

    /// Returns the stable identifier, as in JSON.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Fp32 => "fp32",
            Self::Bf16 => "bf16",
            Self::Fp8 => "fp8",
        }
    }

    /// Bytes per value.
    const fn bytes(self) -> f64 {
        match self {
            Self::Fp32 => 4.0,
            Self::Bf16 => 2.0,
            Self::Fp8 => 1.0,
        }
    }
}

impl Training {
    /// Bytes per parameter of the master weights. fp32 training has none.
    pub const fn master_bytes(&self) -> f64 {
        match (self.precision, self.master_weights) {
            (Precision::Fp32, _) | (_, MasterWeights::None) => 0.0,
            (_, MasterWeights::Half) => 2.0,
            (_, MasterWeights::Fp32) => 4.0,
        }
    }

    /// Bytes per parameter of the moments.
    pub const fn moment_bytes(&self) -> f64 {
        let format = if matches!(self.optimizer, Optimizer::Adam8Bit) { MomentFormat::Fp8 } else { self.moments };
        self.optimizer.moments() * format.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_and_optimizers_set_the_bytes_of_the_state() {
        let bytes = |optimizer, master_weights, moments, precision| {
            let training = Training { precision, optimizer, master_weights, moments, ..Training::default() };
            training.master_bytes() + training.moment_bytes()
        };
        let (adam, bf16) = (Optimizer::Adam, Precision::Bf16);
        for (state, expected) in [
            (bytes(adam, MasterWeights::Fp32, MomentFormat::Fp32, bf16), 12.0),
            (bytes(adam, MasterWeights::Fp32, MomentFormat::Bf16, bf16), 8.0),
            (bytes(adam, MasterWeights::Half, MomentFormat::Fp8, Precision::Fp8), 4.0),
            (bytes(adam, MasterWeights::None, MomentFormat::Bf16, bf16), 4.0),
            (bytes(adam, MasterWeights::None, MomentFormat::Fp32, Precision::Fp32), 8.0),
            (bytes(Optimizer::Adam8Bit, MasterWeights::Fp32, MomentFormat::Fp32, bf16), 6.0),
            (bytes(Optimizer::Muon, MasterWeights::Fp32, MomentFormat::Bf16, bf16), 6.0),
            (bytes(Optimizer::Adafactor, MasterWeights::None, MomentFormat::Fp32, bf16), 0.0),
        ] {
            assert!((state - expected).abs() < 1e-12, "{state} {expected}");
        }
    }
}
