//! Transfers between encoder and backbone for different data-parallel sizes: the inter-model
//! communicator (DFLOP Sec. 4).
//!
//! One encoder rank gathers the outputs from all encoder replicas for a round of microbatches and
//! scatters them to the backbone replicas. Gradients use the reverse path. The encoder replica that
//! contains the communicator does not send to itself.

/// Data exchanged in a round: one microbatch per backbone replica.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Round {
    /// Encoder replicas, E_dp.
    pub encoder_copies: u32,
    /// Backbone replicas, L_dp.
    pub backbone_copies: u32,
    /// Tokens that the encoder produces for the backbone, summed over all replicas.
    pub tokens: f64,
    /// Bytes per token: the backbone's hidden size times two in bf16.
    pub token_bytes: f64,
    /// Ranks in the first backbone stage that need each token (TP without sequence parallelism).
    pub readers: u32,
}

/// Bytes transferred in a round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Traffic {
    /// Forward bytes into the communicator, from all other encoder replicas.
    pub gathered: f64,
    /// Forward bytes from the communicator to all backbone replicas.
    pub scattered: f64,
    /// Bytes within the backbone replicas, from the receiving rank to the other readers.
    pub spread: f64,
    /// Backward bytes into the communicator.
    pub gradients_gathered: f64,
    /// Backward bytes out of the communicator.
    pub gradients_scattered: f64,
}

impl Round {
    /// Returns the bytes in a round. Items are divided equally among the encoder replicas.
    pub fn traffic(&self) -> Traffic {
        let bytes = self.tokens * self.token_bytes;
        let local = bytes / f64::from(self.encoder_copies.max(1));
        Traffic {
            gathered: bytes - local,
            scattered: bytes,
            spread: bytes * f64::from(self.readers.max(1) - 1),
            gradients_gathered: bytes,
            gradients_scattered: bytes - local,
        }
    }

    /// Returns the bytes for direct sends between replicas, forward and backward. A backbone
    /// replica needs 1 / L_dp of the items. Each byte is sent once, and the load is spread over all
    /// ranks.
    pub fn direct(&self) -> f64 {
        2.0 * self.tokens * self.token_bytes
    }
}

impl Traffic {
    /// Returns the bytes on the communicator's link, sent plus received. This link is the
    /// bottleneck.
    pub fn through_communicator(&self) -> f64 {
        self.gathered + self.scattered + self.gradients_gathered + self.gradients_scattered
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "small sums of numbers that are exact")]
mod tests {
    use super::*;

    /// The example in the paper: four encoder replicas and two backbone replicas. With 8 tokens and
    /// 100 bytes per token, the communicator gathers 600 bytes (three of four replicas) and
    /// scatters 800; gradients use the reverse.
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
