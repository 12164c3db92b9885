//! Time and memory for a context-parallel group (DHP Sec. 4.2).

use planscope_core::units::Bytes;

/// A training sequence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sequence {
    /// Length in tokens.
    pub tokens: u64,
    /// Mask factor: 0 for causal attention, 1 for full attention. Values in between are the attention work of
    /// tokens under full masks, relative to that under the causal mask.
    pub eta: f64,
}

impl Sequence {
    /// Creates a sequence with a causal mask.
    pub const fn causal(tokens: u64) -> Self {
        Self { tokens, eta: 0.0 }
    }
}

/// Communication method for attention within a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exchange {
    /// Keys and values rotate around a ring of any size, overlapped with attention blocks (Ring
    /// Attention).
    Ring,
    /// All-to-all exchange between tokens and heads before and after attention, without overlap
    /// (DeepSpeed-Ulysses).
    AllToAll,
}

/// Sums of sequence properties that determine the time of a group.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    /// Sum of (1 + eta) |s|², in tokens squared.
    pub squares: f64,
    /// Sum of |s|, in tokens.
    pub tokens: u64,
}

impl Load {
    /// Returns the load of a sequence.
    pub fn from_sequence(sequence: Sequence) -> Self {
        let length = sequence.tokens as f64;
        Self { squares: (1.0 + sequence.eta) * length * length, tokens: sequence.tokens }
    }

    /// Returns the sum of two loads.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { squares: self.squares + other.squares, tokens: self.tokens + other.tokens }
    }
}

impl std::iter::Sum for Load {
    fn sum<I: Iterator<Item = Self>>(loads: I) -> Self {
        loads.fold(Self::default(), Self::and)
    }
}

/// Coefficients for the time of a group.
///
/// With d the degree, v the bandwidth between neighbors, Q the sum of (1 + eta) |s|² and S the sum
/// of |s|:
///
/// - computation (DHP Eq. 8): `T_cp = (a1 Q + a2 S) / d + b1`;
/// - communication for d > 1 (DHP Eq. 9), ring: `T_cm = a3 S / v + b2`, all-to-all:
///   `T_cm = a3 S (d - 1) / (d² v) + b2`;
/// - overlap for d > 1, ring: `min(a1 Q / d, a3 S / v)`, all-to-all: 0;
/// - total (DHP Eq. 10): `T = T_cp + T_cm - overlap`.
///
/// The paper does not divide by d, because it profiles a coefficient set per degree. The published
/// code divides as above. Only attention (the quadratic part of T_cp) and the transfer overlap; the
/// constants do not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupCost {
    /// Attention seconds per token squared on one rank, for a causal mask.
    pub a1: f64,
    /// Seconds per token on one rank for the remaining computation.
    pub a2: f64,
    /// Bytes per token: sent to a neighbor in a ring, or exchanged in an all-to-all.
    pub a3: f64,
    /// Constant seconds per microbatch.
    pub b1: f64,
    /// Additional seconds per microbatch for groups with several ranks.
    pub b2: f64,
    /// Bandwidth between ranks in the same node, bytes per second.
    pub within_node: f64,
    /// Bandwidth across nodes, bytes per second.
    pub across_nodes: f64,
    /// Ranks per node. Larger groups cross nodes.
    pub ranks_per_node: u32,
    /// Communication method.
    pub exchange: Exchange,
}

/// Time components of a group, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupTime {
    /// Computation time T_cp.
    pub computation: f64,
    /// Communication time T_cm.
    pub communication: f64,
    /// Overlap between computation and communication.
    pub overlapped: f64,
}

impl GroupTime {
    /// Returns the total time T in seconds (DHP Eq. 10).
    pub fn total(self) -> f64 {
        self.computation + self.communication - self.overlapped
    }
}

impl GroupCost {
    /// Returns the bandwidth in bytes per second for a group with `degree` ranks on the minimum
    /// number of nodes.
    pub fn bandwidth(&self, degree: u32) -> f64 {
        if degree <= self.ranks_per_node { self.within_node } else { self.across_nodes }
    }

    /// Returns the time components for a group on the minimum number of nodes.
    pub fn parts(&self, load: Load, degree: u32) -> GroupTime {
        self.parts_at(load, degree, self.bandwidth(degree))
    }

    /// Returns the time components for a group and a bottleneck bandwidth in bytes per second.
    pub fn parts_at(&self, load: Load, degree: u32, bandwidth: f64) -> GroupTime {
        let (d, tokens) = (f64::from(degree), load.tokens as f64);
        let attention = self.a1 * load.squares / d;
        let computation = attention + self.a2 * tokens / d + self.b1;
        if degree <= 1 {
            return GroupTime { computation, communication: 0.0, overlapped: 0.0 };
        }
        let (transfer, overlapped) = match self.exchange {
            Exchange::Ring => {
                let transfer = self.a3 * tokens / bandwidth;
                (transfer, attention.min(transfer))
            }
            Exchange::AllToAll => (self.a3 * tokens * (d - 1.0) / (d * d * bandwidth), 0.0),
        };
        GroupTime { computation, communication: transfer + self.b2, overlapped }
    }

    /// Returns the seconds for a group on the minimum number of nodes.
    pub fn seconds(&self, load: Load, degree: u32) -> f64 {
        self.parts(load, degree).total()
    }

    /// Returns the computation seconds on a single rank, without the constant b1.
    pub fn work(&self, load: Load) -> f64 {
        self.a1 * load.squares + self.a2 * load.tokens as f64
    }

    /// Returns the names of coefficients that are negative, not finite or, for bandwidths, zero.
    pub fn wrong_fields(&self) -> Vec<&'static str> {
        let coefficients = [("a1", self.a1), ("a2", self.a2), ("a3", self.a3), ("b1", self.b1), ("b2", self.b2)];
        let rates = [("bandwidth", self.within_node), ("bandwidth_across", self.across_nodes)];
        let mut wrong: Vec<&'static str> = coefficients
            .into_iter()
            .filter(|(_, value)| !(value.is_finite() && *value >= 0.0))
            .map(|(name, _)| name)
            .collect();
        wrong.extend(rates.into_iter().filter(|(_, value)| value.is_nan() || *value <= 0.0).map(|(name, _)| name));
        if self.ranks_per_node == 0 {
            wrong.push("ranks_per_node");
        }
        wrong
    }
}

/// Memory per rank (DHP Eq. 3, DHP Eq. 7).
///
/// Model states are sharded across all ranks (ZeRO-3), so they do not depend on the group. A group
/// with d ranks has d (E - M_ms) bytes for activations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankMemory {
    /// Memory limit per rank, E.
    pub budget: Bytes,
    /// Parameters, gradients and optimizer states per rank, M_ms.
    pub states: Bytes,
    /// Activation bytes per token, M_token.
    pub per_token: f64,
}

impl RankMemory {
    /// Returns the token capacity per rank; 0 if the states exceed the memory limit.
    pub fn tokens(&self) -> u64 {
        (self.budget.saturating_sub(self.states).get() as f64 / self.per_token) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: GroupCost = GroupCost {
        a1: 1e-9,
        a2: 1e-6,
        a3: 1000.0,
        b1: 0.01,
        b2: 0.002,
        within_node: 1e8,
        across_nodes: 1e7,
        ranks_per_node: 4,
        exchange: Exchange::Ring,
    };

    /// 1000 tokens, causal:
    ///
    /// - On one rank: attention 1e-9 * 1e6 = 1 ms, linear computation 1e-6 * 1000 = 1 ms, constant
    ///   10 ms, total 12 ms.
    /// - On two ranks in a node: 0.5 + 0.5 + 10 ms; transfer 1000 * 1000 / 1e8 = 10 ms + 2 ms;
    ///   overlap 0.5 ms; total 22.5 ms.
    /// - On five ranks across nodes: 0.2 + 0.2 + 10; transfer 100 + 2; overlap 0.2; total 112.2 ms.
    /// - All-to-all on two ranks: 11 ms; 10 ms * 1/4 + 2 ms; total 15.5 ms.
    #[test]
    fn a_group_computes_sends_and_overlaps() {
        let load = Load::from_sequence(Sequence::causal(1000));
        let all_to_all = GroupCost { exchange: Exchange::AllToAll, ..COST };
        for (cost, degree, expected) in
            [(COST, 1, 0.012), (COST, 2, 0.0225), (COST, 5, 0.1122), (all_to_all, 2, 0.0155)]
        {
            let seconds = cost.seconds(load, degree);
            assert!((seconds - expected).abs() < 1e-12, "{degree}: {seconds}");
        }
    }

    #[test]
    fn full_attention_computes_twice_the_squares() {
        let full = Load::from_sequence(Sequence { tokens: 300, eta: 1.0 });
        assert!((full.squares - 180_000.0).abs() < 1e-9);
        assert_eq!(full.and(Load::from_sequence(Sequence::causal(10))), Load { squares: 180_100.0, tokens: 310 });
    }

    /// (60 - 20) GiB at 1 MiB per token gives 40 * 1024 tokens.
    #[test]
    fn tokens_share_memory_left_by_states() {
        let memory =
            RankMemory { budget: Bytes::from_gib(60.0), states: Bytes::from_gib(20.0), per_token: 1_048_576.0 };
        assert_eq!(memory.tokens(), 40_960);
        assert_eq!(RankMemory { states: Bytes::from_gib(61.0), ..memory }.tokens(), 0);
    }

    #[test]
    fn wrong_coefficients_are_named() {
        let cost = GroupCost { a1: -1.0, b2: f64::NAN, across_nodes: 0.0, ranks_per_node: 0, ..COST };
        assert_eq!(cost.wrong_fields(), ["a1", "b2", "bandwidth_across", "ranks_per_node"]);
    }
}
