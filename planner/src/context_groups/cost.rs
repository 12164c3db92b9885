//! What a context-parallel group costs: DHP's formulas of time and memory.

use crate::units::Bytes;

/// One sequence to be trained on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sequence {
    /// Its length.
    pub tokens: u64,
    /// The mask factor: 0 for causal attention, 1 for full attention, in between the share of tokens that attend to all.
    pub eta: f64,
}

impl Sequence {
    /// A sequence of `tokens` under a causal mask.
    pub const fn causal(tokens: u64) -> Self {
        Self { tokens, eta: 0.0 }
    }
}

/// How the ranks of a group exchange what attention needs of each other's tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exchange {
    /// Keys and values travel round a ring of any size while blocks of attention are computed (Ring Attention).
    Ring,
    /// Tokens are traded for heads before attention and back after it; nothing is computed meanwhile (DeepSpeed-Ulysses).
    AllToAll,
}

/// The sums of a group that its time depends on.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    /// Sum of (1 + eta) |s|², in tokens squared.
    pub squares: f64,
    /// Sum of |s|, in tokens.
    pub tokens: u64,
}

impl Load {
    /// Of one sequence.
    pub fn of(sequence: Sequence) -> Self {
        let length = sequence.tokens as f64;
        Self { squares: (1.0 + sequence.eta) * length * length, tokens: sequence.tokens }
    }

    /// Of two groups together.
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

/// Coefficients of a group's time (DHP, Eq. 8 to 10).
///
/// With d the degree, v the bandwidth between neighbours, Q the sum of (1 + eta) |s|² and S the sum of |s|:
///
/// - computation: T_cp = (a1 Q + a2 S) / d + b1;
/// - communication for d > 1, ring: T_cm = a3 S / v + b2, all-to-all: T_cm = a3 S (d - 1) / (d² v) + b2;
/// - overlapped for d > 1, ring: min(a1 Q / d, a3 S / v), all-to-all: 0;
/// - together: T = T_cp + T_cm - overlapped.
///
/// The paper leaves the division by d to its profile, which holds one set of coefficients per degree; the published code
/// divides as above. What overlaps is the attention, the part of T_cp that is quadratic, and the transfer; the constants
/// never do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupCost {
    /// Seconds of attention per token squared on one rank, under a causal mask.
    pub a1: f64,
    /// Seconds of everything else per token on one rank.
    pub a2: f64,
    /// Bytes sent to a neighbour per token; of an all-to-all, bytes traded per token.
    pub a3: f64,
    /// Seconds of every microbatch.
    pub b1: f64,
    /// Further seconds of every microbatch in a group of more than one rank.
    pub b2: f64,
    /// Bytes per second between two ranks of a node.
    pub within_node: f64,
    /// Bytes per second between two ranks of different nodes.
    pub across_nodes: f64,
    /// Ranks of one node; larger groups cross nodes.
    pub ranks_per_node: u32,
    /// How the group communicates.
    pub exchange: Exchange,
}

/// The parts of a group's time, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupTime {
    /// T_cp.
    pub computation: f64,
    /// T_cm.
    pub communication: f64,
    /// What of both happens at the same time.
    pub overlapped: f64,
}

impl GroupTime {
    /// T, in seconds.
    pub fn total(self) -> f64 {
        self.computation + self.communication - self.overlapped
    }
}

impl GroupCost {
    /// Bandwidth in a group of `degree` ranks that stands on as few nodes as it can, in bytes per second.
    pub fn bandwidth(&self, degree: u32) -> f64 {
        if degree <= self.ranks_per_node { self.within_node } else { self.across_nodes }
    }

    /// Parts of the time of a group on as few nodes as it can stand on.
    pub fn parts(&self, load: Load, degree: u32) -> GroupTime {
        self.parts_at(load, degree, self.bandwidth(degree))
    }

    /// Parts of the time of a group whose slowest link has `bandwidth` bytes per second.
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

    /// Seconds of a group on as few nodes as it can stand on.
    pub fn seconds(&self, load: Load, degree: u32) -> f64 {
        self.parts(load, degree).total()
    }

    /// Seconds of computation of one rank that does it all alone, the constant left out.
    pub fn work(&self, load: Load) -> f64 {
        self.a1 * load.squares + self.a2 * load.tokens as f64
    }

    /// Names of coefficients that are negative, not finite or, for rates, zero.
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

/// Memory of one rank (DHP, Eq. 3 and 7).
///
/// Model states are sharded over all ranks (ZeRO-3), so every rank holds its share whatever its group is, and a group of d
/// ranks holds tokens for d (E - M_ms) bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankMemory {
    /// E: what a rank may hold.
    pub budget: Bytes,
    /// M_ms: parameters, gradients and optimizer states of a rank.
    pub states: Bytes,
    /// M_token: activations per token, in bytes.
    pub per_token: f64,
}

impl RankMemory {
    /// Tokens that fit beside the states of a rank; 0 where the states alone are too large.
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

    /// 1000 tokens, causal: attention 1e-9 * 1e6 = 1 ms, the rest 1e-6 * 1000 = 1 ms, constant 10 ms; on one rank 12 ms.
    /// On two of a node: 0.5 + 0.5 + 10 ms; transfer 1000 * 1000 / 1e8 = 10 ms + 2 ms; 0.5 ms overlap: 22.5 ms.
    /// On five, across nodes: 0.2 + 0.2 + 10; transfer 100 + 2; 0.2 overlap: 112.2 ms.
    /// All-to-all on two: 11 ms; 10 ms * 1/4 + 2 ms: 15.5 ms.
    #[test]
    fn a_group_computes_sends_and_overlaps() {
        let load = Load::of(Sequence::causal(1000));
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
        let full = Load::of(Sequence { tokens: 300, eta: 1.0 });
        assert!((full.squares - 180_000.0).abs() < 1e-9);
        assert_eq!(full.and(Load::of(Sequence::causal(10))), Load { squares: 180_100.0, tokens: 310 });
    }

    /// (60 - 20) GiB at 1 MiB a token are 40 * 1024 tokens.
    #[test]
    fn tokens_share_what_the_states_leave() {
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
