//! What a layer does with its activations, chosen layer by layer (PipeWeaver, section 6.3).

use crate::training::{Recompute, Training};

/// What one layer does with what its backward needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LayerStrategy {
    /// Keeps it.
    Keep,
    /// Computes the attention core again.
    Selective,
    /// Keeps its input and computes everything again.
    Full,
    /// Sends it to the host's memory and fetches it back.
    Offload,
}

impl LayerStrategy {
    /// All of them; their places are the numbers used in [`StrategyMix`].
    pub const ALL: [Self; 4] = [Self::Keep, Self::Selective, Self::Full, Self::Offload];

    /// Stable identifier.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Selective => "selective",
            Self::Full => "full",
            Self::Offload => "offload",
        }
    }

    /// What a layer does, in words.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Keep => "store all activations",
            Self::Selective => "recompute attention",
            Self::Full => "recompute everything",
            Self::Offload => "offload activations",
        }
    }

    /// The settings of a training whose every layer does this.
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

/// Layers of one stage by strategy, in the order of [`LayerStrategy::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct StrategyMix(pub [u16; 4]);

impl StrategyMix {
    /// All layers of a stage.
    pub fn layers(self) -> u32 {
        self.0.iter().map(|&layers| u32::from(layers)).sum()
    }

    /// Takes up to `layers` layers out, those that keep the most first; how many of each strategy.
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
    fn a_mix_is_taken_apart_stage_part_by_stage_part() {
        let mut mix = StrategyMix([3, 0, 2, 1]);
        assert_eq!(mix.layers(), 6);
        assert_eq!(mix.take(4), [3, 0, 1, 0]);
        assert_eq!(mix.take(5), [0, 0, 1, 1]);
        assert_eq!(mix.layers(), 0);
    }
}
