//! Allowed group degrees.

/// Constraint on the group degree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DegreeRule {
    /// Any integer: ring attention (DHP).
    Any,
    /// 1, 2, 4, 8, ...: groups that are created once before training (FlexSP, Megatron-LM's hybrid
    /// context parallelism).
    PowersOfTwo,
    /// Divisors of this number of attention heads (DeepSpeed-Ulysses).
    DividesHeads(u32),
}

/// Allowed degrees up to `ranks`, in ascending order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedDegrees {
    list: Vec<u32>,
}

impl AllowedDegrees {
    /// Returns the degrees that satisfy `rule`, up to `ranks` and the optional `max_degree`. Degree 1
    /// is always included.
    pub fn new(rule: DegreeRule, max_degree: Option<u32>, ranks: u32) -> Self {
        let end = ranks.min(max_degree.unwrap_or(ranks)).max(1);
        let list = (1..=end)
            .filter(|&degree| match rule {
                DegreeRule::Any => true,
                DegreeRule::PowersOfTwo => degree.is_power_of_two(),
                DegreeRule::DividesHeads(heads) => degree == 1 || heads % degree == 0,
            })
            .collect();
        Self { list }
    }

    /// Returns the degrees up to `ranks` that satisfy a custom predicate, and 1.
    pub fn that(allowed: impl Fn(u32) -> bool, ranks: u32) -> Self {
        Self { list: (1..=ranks.max(1)).filter(|&degree| degree == 1 || allowed(degree)).collect() }
    }

    /// Returns all degrees in ascending order.
    pub fn list(&self) -> &[u32] {
        &self.list
    }

    /// Returns only the power-of-two degrees.
    #[must_use]
    pub fn powers_of_two(&self) -> Self {
        Self { list: self.list.iter().copied().filter(|degree| degree.is_power_of_two()).collect() }
    }

    /// Returns the maximum degree.
    pub fn max_degree(&self) -> u32 {
        self.list.last().copied().unwrap_or(1)
    }

    /// Returns the index of the first degree >= `needed`, or `None`.
    pub fn position(&self, needed: u64) -> Option<usize> {
        let position = self.list.partition_point(|&degree| u64::from(degree) < needed);
        (position < self.list.len()).then_some(position)
    }

    /// Returns d_min: the smallest degree with capacity for `tokens`, if a rank has capacity for
    /// `tokens_per_rank` (DHP Sec. 4.3).
    pub fn minimum(&self, tokens: u64, tokens_per_rank: u64) -> Option<u32> {
        if tokens_per_rank == 0 {
            return None;
        }
        self.position(tokens.div_ceil(tokens_per_rank)).map(|position| self.list[position])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_give_their_degrees() {
        for (rule, max_degree, ranks, expected) in [
            (DegreeRule::Any, None, 5, vec![1, 2, 3, 4, 5]),
            (DegreeRule::Any, Some(3), 5, vec![1, 2, 3]),
            (DegreeRule::PowersOfTwo, None, 12, vec![1, 2, 4, 8]),
            (DegreeRule::DividesHeads(28), None, 16, vec![1, 2, 4, 7, 14]),
            (DegreeRule::DividesHeads(28), Some(0), 16, vec![1]),
        ] {
            assert_eq!(AllowedDegrees::new(rule, max_degree, ranks).list(), expected, "{rule:?}");
        }
        assert_eq!(AllowedDegrees::that(|degree| degree % 3 == 0, 7).list(), [1, 3, 6]);
    }

    /// At 100 tokens per rank, 250 tokens need three ranks, or four for power-of-two degrees. 1300
    /// tokens do not fit on 12 ranks.
    #[test]
    fn the_minimum_is_the_smallest_allowed_degree_with_capacity() {
        let any = AllowedDegrees::new(DegreeRule::Any, None, 12);
        let powers = AllowedDegrees::new(DegreeRule::PowersOfTwo, None, 12);
        assert_eq!((any.minimum(250, 100), powers.minimum(250, 100)), (Some(3), Some(4)));
        assert_eq!((any.minimum(100, 100), any.minimum(101, 100)), (Some(1), Some(2)));
        assert_eq!((any.minimum(1300, 100), any.minimum(1, 0)), (None, None));
    }
}
