//! What travels between encoder and backbone where they have different numbers of copies: the inter-model communicator of
//! DFLOP (section 4).
//!
//! One rank of the encoder gathers what all copies made of a round of microbatches and scatters it to the copies of the backbone; the
//! gradients go back the same way. The copy that the communicator belongs to needs not send to itself.

/// What is exchanged in a round, one microbatch of every copy of the backbone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Round {
    /// Copies of the encoder, E_dp.
    pub encoder_copies: u32,
    /// Copies of the backbone, L_dp.
    pub backbone_copies: u32,
    /// Tokens that the encoder makes for the backbone, all copies together.
    pub tokens: f64,
    /// Bytes of a token: the backbone's width times two in bf16.
    pub token_bytes: f64,
    /// Ranks of a backbone's first stage that need each token (TP, where sequences are not cut over them).
    pub readers: u32,
}

/// Bytes of a round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Traffic {
    /// Into the communicator, forward: from every copy of the encoder but its own.
    pub gathered: f64,
    /// Out of the communicator, forward: to every copy of the backbone.
    pub scattered: f64,
    /// Inside the copies of the backbone, from the rank that received to the others that read.
    pub spread: f64,
    /// Into the communicator, backward.
    pub gradients_gathered: f64,
    /// Out of the communicator, backward.
    pub gradients_scattered: f64,
}

impl Round {
    /// What travels; items are dealt to the copies of the encoder in equal shares.
    pub fn traffic(&self) -> Traffic {
        let bytes = self.tokens * self.token_bytes;
        let own = bytes / f64::from(self.encoder_copies.max(1));
        Traffic {
            gathered: bytes - own,
            scattered: bytes,
            spread: bytes * f64::from(self.readers.max(1) - 1),
            gradients_gathered: bytes,
            gradients_scattered: bytes - own,
        }
    }

    /// What would travel with direct sends between copies that hold each other's items, of which a copy of the backbone
    /// needs 1 / L_dp: every byte crosses once, and no rank carries all of them.
    pub fn direct(&self) -> f64 {
        2.0 * self.tokens * self.token_bytes
    }
}

impl Traffic {
    /// What the communicator's own link carries, both ways: the bottleneck.
    pub fn through_communicator(&self) -> f64 {
        self.gathered + self.scattered + self.gradients_gathered + self.gradients_scattered
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "small sums of numbers that are exact")]
mod tests {
    use super::*;

    /// The figure of the paper: four copies to two. 8 tokens of 100 bytes: 600 gathered (three of four copies), 800 scattered,
    /// and the reverse.
    #[test]
    fn four_copies_feed_two() {
        let round = Round { encoder_copies: 4, backbone_copies: 2, tokens: 8.0, token_bytes: 100.0, readers: 2 };
        let traffic = round.traffic();
        let expected = Traffic {
            gathered: 600.0,
            scattered: 800.0,
            spread: 800.0,
            gradients_gathered: 800.0,
            gradients_scattered: 600.0,
        };
        assert_eq!(traffic, expected);
        assert_eq!((traffic.through_communicator(), round.direct()), (2800.0, 1600.0));
    }

    #[test]
    fn a_lone_encoder_gathers_nothing() {
        let round = Round { encoder_copies: 1, backbone_copies: 3, tokens: 3.0, token_bytes: 1.0, readers: 1 };
        let traffic = round.traffic();
        assert_eq!((traffic.gathered, traffic.gradients_scattered, traffic.spread), (0.0, 0.0, 0.0));
    }
}
