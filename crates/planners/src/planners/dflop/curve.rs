//! Piecewise linear function of size through measured points.

/// Points (size, value) in ascending size order.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    points: Vec<(f64, f64)>,
}

/// Error for points that do not define a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CurveError {
    /// The list is empty.
    #[error("a table needs at least one point")]
    Empty,
    /// Sizes do not ascend, or a number is not finite.
    #[error("point {point}: sizes and values are finite, sizes ascend")]
    Point {
        /// Index of the point.
        point: usize,
    },
}

impl Curve {
    /// Creates a curve from points in ascending size order.
    ///
    /// # Errors
    /// If `points` is empty, sizes do not ascend, or a number is not finite.
    pub fn new(points: Vec<(f64, f64)>) -> Result<Self, CurveError> {
        if points.is_empty() {
            return Err(CurveError::Empty);
        }
        let wrong = |point: &usize| {
            let (size, value) = points[*point];
            !size.is_finite() || !value.is_finite() || (*point > 0 && size <= points[*point - 1].0)
        };
        match (0..points.len()).find(wrong) {
            Some(point) => Err(CurveError::Point { point }),
            None => Ok(Self { points }),
        }
    }

    /// Creates a constant curve.
    pub fn constant(value: f64) -> Self {
        Self { points: vec![(0.0, value)] }
    }

    /// Returns the value for a size. Outside the measured range, returns the value of the nearest
    /// point.
    pub fn at(&self, size: f64) -> f64 {
        let next = self.points.partition_point(|&(known, _)| known <= size);
        let Some(&(left, low)) = next.checked_sub(1).and_then(|index| self.points.get(index)) else {
            return self.points[0].1;
        };
        let Some(&(right, high)) = self.points.get(next) else { return low };
        low + (high - low) * ((size - left) / (right - left))
    }

    /// Returns the value for a size. Outside the measured range, extrapolates the last segment.
    /// Used for memory, which has no saturation.
    pub fn extended(&self, size: f64) -> f64 {
        let count = self.points.len();
        let outside = size < self.points[0].0 || size > self.points[count - 1].0;
        if count < 2 || !outside {
            return self.at(size);
        }
        let ends = if size < self.points[0].0 { (0, 1) } else { (count - 2, count - 1) };
        let ((left, low), (right, high)) = (self.points[ends.0], self.points[ends.1]);
        low + (high - low) * ((size - left) / (right - left))
    }

    /// Returns the maximum of [`Self::at`] on a size range.
    pub fn max_between(&self, from: f64, to: f64) -> f64 {
        let ends = self.at(from).max(self.at(to));
        self.inside(from, to).fold(ends, f64::max)
    }

    /// Returns the minimum of [`Self::extended`] on a size range.
    pub fn min_between(&self, from: f64, to: f64) -> f64 {
        let ends = self.extended(from).min(self.extended(to));
        self.inside(from, to).fold(ends, f64::min)
    }

    /// Returns the minimum value of all points.
    pub fn min_value(&self) -> f64 {
        self.points.iter().map(|&(_, value)| value).fold(f64::INFINITY, f64::min)
    }

    /// Returns the maximum value of all points.
    pub fn max_value(&self) -> f64 {
        self.points.iter().map(|&(_, value)| value).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Returns the values at points strictly inside a size range.
    fn inside(&self, from: f64, to: f64) -> impl Iterator<Item = f64> + '_ {
        let first = self.points.partition_point(|&(size, _)| size <= from);
        self.points[first..].iter().take_while(move |&&(size, _)| size < to).map(|&(_, value)| value)
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "small sums of numbers that are exact")]
mod tests {
    use super::*;

    #[test]
    fn values_lie_on_the_lines() {
        let curve = Curve::new(vec![(1.0, 10.0), (3.0, 20.0), (4.0, 0.0)]).unwrap();
        for (size, at, extended) in [
            (0.0, 10.0, 5.0),
            (1.0, 10.0, 10.0),
            (2.0, 15.0, 15.0),
            (3.5, 10.0, 10.0),
            (4.0, 0.0, 0.0),
            (5.0, 0.0, -20.0),
        ] {
            assert_eq!((curve.at(size), curve.extended(size)), (at, extended), "{size}");
        }
        assert_eq!(Curve::constant(7.0).at(-1.0), 7.0);
        assert_eq!(Curve::constant(7.0).extended(9.0), 7.0);
    }

    /// The peak at size 3 and the trough at size 4 are inside some ranges only.
    #[test]
    fn range_extremes_are_at_ends_or_points() {
        let curve = Curve::new(vec![(1.0, 10.0), (3.0, 20.0), (4.0, 0.0), (5.0, 8.0)]).unwrap();
        for (from, to, minimum, maximum) in [
            (0.0, 9.0, 0.0, 20.0),
            (1.0, 2.0, 10.0, 15.0),
            (3.0, 3.0, 20.0, 20.0),
            (2.0, 3.5, 10.0, 20.0),
            (4.5, 6.0, 4.0, 8.0),
        ] {
            assert_eq!(
                (curve.min_between(from, to), curve.max_between(from, to)),
                (minimum, maximum),
                "{from} to {to}"
            );
        }
    }

    #[test]
    fn invalid_curves_are_rejected() {
        assert_eq!(Curve::new(Vec::new()), Err(CurveError::Empty));
        for points in
            [vec![(1.0, 1.0), (1.0, 2.0)], vec![(0.0, 0.0), (f64::NAN, 1.0)], vec![(0.0, 0.0), (1.0, f64::INFINITY)]]
        {
            assert_eq!(Curve::new(points), Err(CurveError::Point { point: 1 }));
        }
    }
}
