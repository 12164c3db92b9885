//! Union of time intervals.

/// Disjoint, sorted intervals in ns. Adjacent intervals are merged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Covered(Vec<(u64, u64)>);

impl Covered {
    /// Creates the union of intervals (start, end) in any order.
    pub fn by(mut intervals: Vec<(u64, u64)>) -> Self {
        intervals.sort_unstable();
        let mut covered: Vec<(u64, u64)> = Vec::new();
        for (start, end) in intervals {
            match covered.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => covered.push((start, end)),
            }
        }
        Self(covered)
    }

    /// Returns the union with `other`.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self::by([&self.0[..], &other.0].concat())
    }

    /// Returns the total length in ns.
    pub fn length_ns(&self) -> u64 {
        self.0.iter().map(|(start, end)| end - start).sum()
    }

    /// Returns minimum start and maximum end; `None` if empty.
    pub fn ends(&self) -> Option<(u64, u64)> {
        Some((self.0.first()?.0, self.0.last()?.1))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The reference counts each nanosecond.
        #[test]
        fn every_moment_counts_once(intervals in prop::collection::vec((0_u64..40, 1_u64..20), 0..20), parted in 0_usize..20) {
            let intervals: Vec<(u64, u64)> = intervals.into_iter().map(|(start, length)| (start, start + length)).collect();
            let all = Covered::by(intervals.clone());
            let moments: Vec<u64> = (0..60).filter(|at| intervals.iter().any(|(start, end)| (start..end).contains(&at))).collect();
            prop_assert_eq!(all.length_ns(), moments.len() as u64);
            prop_assert_eq!(all.ends(), moments.first().map(|first| (*first, moments[moments.len() - 1] + 1)));
            let (some, others) = intervals.split_at(parted.min(intervals.len()));
            prop_assert_eq!(Covered::by(some.to_vec()).or(&Covered::by(others.to_vec())), all);
        }
    }
}
