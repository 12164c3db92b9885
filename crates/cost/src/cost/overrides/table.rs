//! Times as points over tokens.

/// Maximum number of points.
const MAX_POINTS: usize = 1024;

/// A piecewise linear time over tokens. Outside the points, the first and last segments are
/// extrapolated, with a lower limit of zero.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeTable(Vec<[f64; 2]>);

/// Invalid table, with the index of the invalid point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// Fewer than two points, or more than the limit.
    #[error("{0} points: 2 to {MAX_POINTS} are needed")]
    Count(usize),
    /// Not a finite non-negative number.
    #[error("tokens and microseconds are numbers of zero or more")]
    Value(usize),
    /// The tokens are not greater than in the previous point.
    #[error("tokens must rise from point to point")]
    Order(usize),
}

impl TableError {
    /// Returns the index of the invalid point, if any.
    pub const fn point(self) -> Option<usize> {
        match self {
            Self::Count(_) => None,
            Self::Value(index) | Self::Order(index) => Some(index),
        }
    }
}

impl TimeTable {
    /// Creates a table from points (tokens, microseconds).
    pub fn new(points: &[[f64; 2]]) -> Result<Self, TableError> {
        if points.len() < 2 || points.len() > MAX_POINTS {
            return Err(TableError::Count(points.len()));
        }
        let usable = |value: &f64| value.is_finite() && *value >= 0.0;
        if let Some(index) = points.iter().position(|point| !point.iter().all(usable)) {
            return Err(TableError::Value(index));
        }
        if let Some(index) = points.windows(2).position(|pair| pair[1][0] <= pair[0][0]) {
            return Err(TableError::Order(index + 1));
        }
        Ok(Self(points.to_vec()))
    }

    /// Returns microseconds for `tokens`: t1 + (t2 - t1) (n - n1) / (n2 - n1) between the two
    /// adjacent points.
    pub fn micros(&self, tokens: f64) -> f64 {
        let points = &self.0;
        let above = points.partition_point(|point| point[0] < tokens).clamp(1, points.len() - 1);
        let ([n1, t1], [n2, t2]) = (points[above - 1], points[above]);
        (t1 + (t2 - t1) * ((tokens - n1) / (n2 - n1))).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_join_the_points_and_go_on_behind_the_last() {
        let table = TimeTable::new(&[[100.0, 10.0], [200.0, 30.0], [400.0, 20.0]]).unwrap();
        for (tokens, micros) in [
            (100.0, 10.0),
            (150.0, 20.0),
            (200.0, 30.0),
            (300.0, 25.0),
            (400.0, 20.0),
            // The last segment has slope -10 / 200.
            (600.0, 10.0),
            (800.0, 0.0),
            (1000.0, 0.0),
            // The first segment has slope 20 / 100.
            (75.0, 5.0),
            (0.0, 0.0),
        ] {
            assert!((table.micros(tokens) - micros).abs() < 1e-12, "{tokens} tokens");
        }
    }

    #[test]
    fn invalid_tables_are_rejected_with_their_point() {
        let long = vec![[0.0, 0.0]; MAX_POINTS + 1];
        for (points, wrong) in [
            (&[[1.0, 1.0]][..], TableError::Count(1)),
            (&long, TableError::Count(MAX_POINTS + 1)),
            (&[[1.0, 1.0], [2.0, -1.0]], TableError::Value(1)),
            (&[[f64::NAN, 1.0], [2.0, 1.0]], TableError::Value(0)),
            (&[[1.0, 1.0], [2.0, f64::INFINITY]], TableError::Value(1)),
            (&[[1.0, 1.0], [3.0, 1.0], [2.0, 1.0]], TableError::Order(2)),
            (&[[1.0, 1.0], [1.0, 2.0]], TableError::Order(1)),
        ] {
            assert_eq!(TimeTable::new(points), Err(wrong));
        }
    }
}
