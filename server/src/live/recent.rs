//! The median of the last values.

use std::collections::VecDeque;

/// How many values count.
const KEPT: usize = 1001;

/// The last values, at most 1001, in the order they came and in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Recent {
    came: VecDeque<f64>,
    sorted: Vec<f64>,
}

impl Recent {
    /// Takes a value; the oldest goes where there are too many.
    pub(super) fn push(&mut self, value: f64) {
        if self.came.len() == KEPT
            && let Some(oldest) = self.came.pop_front()
        {
            let at = self.sorted.partition_point(|known| known.total_cmp(&oldest).is_lt());
            self.sorted.remove(at);
        }
        self.came.push_back(value);
        let at = self.sorted.partition_point(|known| known.total_cmp(&value).is_lt());
        self.sorted.insert(at, value);
    }

    /// The value in the middle, the mean of both where there are two.
    pub(super) fn median(&self) -> Option<f64> {
        let middle = self.sorted.len() / 2;
        let upper = *self.sorted.get(middle)?;
        Some(if self.sorted.len() % 2 == 1 { upper } else { f64::midpoint(self.sorted[middle - 1], upper) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_the_last_values() {
        let mut recent = Recent::default();
        assert_eq!(recent.median(), None);
        for (value, median) in [(5.0, 5.0), (1.0, 3.0), (2.0, 2.0), (9.0, 3.5)] {
            recent.push(value);
            assert_eq!(recent.median(), Some(median), "{value}");
        }
        // 1001 sevens push everything else out, whatever was in the middle before.
        for _ in 0..KEPT {
            recent.push(7.0);
        }
        assert_eq!((recent.median(), recent.sorted.len()), (Some(7.0), KEPT));
        assert_eq!(recent.sorted, vec![7.0; KEPT]);
    }
}
