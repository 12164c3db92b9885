//! Activation strategies per layer (PipeWeaver Sec. 6.3).

use planscope_core::training::{Recompute, Training};

/// Treatment of the activations that a layer's backward requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LayerStrategy {
    /// Stores all activations.
    Keep,
    /// Recomputes the attention core.
    Selective,
    /// Stores only the layer input and recomputes everything else.
    Full,
    /// Offloads activations to host memory and loads them again.
    Offload,
}

impl LayerStrategy {
    /// All strategies. [`StrategyMix`] uses their positions as indices.
    pub const ALL: [Self; 4] = [Self::Keep, Self::Selective, Self::Full, Self::Offload];

    /// Returns the stable identifier.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Selective => "selective",
            Self::Full => "full",
            Self::Offload => "offload",
        }
    }

    /// Returns the display name.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Keep => "store all activations",
            Self::Selective => "recompute attention",
            Self::Full => "recompute everything",
            Self::Offload => "offload activations",
        }
    }

    /// Returns training settings with this strategy for all layers.
    pub fn training(self, training: &Training) -> Training {
        let (recompute, activation_offload) = match self {
            Self::Keep => (Recompute::None, 0.0),
            Self::Selective => (Recompute::Selective, 0.0),
            Self::Full => (Recompute::Full, 0.0),
            Self::Offload => (Recompute::None, 1.0),
        };
        Training { recompute, activation_offload, recompute_layers: None, ..training.clone() }
    }
}

/// Number of layers per strategy in a stage, in the order of [`LayerStrategy::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct StrategyMix(pub [u16; 4]);

impl StrategyMix {
    /// Total number of layers.
    pub fn layers(self) -> u32 {
        self.0.iter().map(|&layers| u32::from(layers)).sum()
    }

    /// Removes up to `layers` layers, in the order of [`LayerStrategy::ALL`]. Returns the removed
    /// layers per strategy.
    pub fn take(&mut self, mut layers: u32) -> [u32; 4] {
        let mut taken = [0; 4];
        for (left, taken) in self.0.iter_mut().zip(&mut taken) {
            *taken = u32::from(*left).min(layers);
            *left -= *taken as u16;
            layers -= *taken;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_is_split_by_stage_part() {
        let mut mix = StrategyMix([3, 0, 2, 1]);
        assert_eq!(mix.layers(), 6);
        assert_eq!(mix.take(4), [3, 0, 1, 0]);
        assert_eq!(mix.take(5), [0, 0, 1, 1]);
        assert_eq!(mix.layers(), 0);
    }
}
