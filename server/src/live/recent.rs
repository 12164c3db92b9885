//! Running median of recent values.

use std::collections::VecDeque;

/// Window size.
const CAPACITY: usize = 1001;

/// The most recent 1001 values, in arrival order and sorted.
#[derive(Debug, Clone, Default)]
pub(super) struct Recent {
    came: VecDeque<f64>,
    sorted: Vec<f64>,
}

impl Recent {
    /// Adds a value and evicts the oldest if the window is full.
    pub(super) fn push(&mut self, value: f64) {
        if self.came.len() == CAPACITY
            && let Some(oldest) = self.came.pop_front()
        {
            let at = self.sorted.partition_point(|known| known.total_cmp(&oldest).is_lt());
            self.sorted.remove(at);
        }
        self.came.push_back(value);
        let at = self.sorted.partition_point(|known| known.total_cmp(&value).is_lt());
        self.sorted.insert(at, value);
    }

    /// Returns the median: the middle value, or the mean of the two middle values.
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
    fn median_over_recent_values() {
        let mut recent = Recent::default();
        assert_eq!(recent.median(), None);
        for (value, median) in [(5.0, 5.0), (1.0, 3.0), (2.0, 2.0), (9.0, 3.5)] {
            recent.push(value);
            assert_eq!(recent.median(), Some(median), "{value}");
        }
        // 1001 equal values replace the full window.
        for _ in 0..CAPACITY {
            recent.push(7.0);
        }
        assert_eq!((recent.median(), recent.sorted.len()), (Some(7.0), CAPACITY));
        assert_eq!(recent.sorted, vec![7.0; CAPACITY]);
    }
}
