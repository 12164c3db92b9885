//! Where each rank's row stands: a bar for what it computes, a thin strip below for what it sends.

/// Height of a row with the gap below it, in px.
pub(crate) const ROW: f64 = 20.0;
/// Height of the bar of what a rank computes, in px.
pub(crate) const BAR: f64 = 15.0;
/// Height of the strip of what a rank sends, in px.
pub(crate) const STRIP: f64 = 4.0;
/// Width of the row headers, in px.
pub(crate) const HEADER: f64 = 52.0;
/// Height of the axis below the rows, in px.
pub(crate) const AXIS: f64 = 20.0;
/// More rows than this scroll inside the chart.
pub(crate) const ROWS_WITHOUT_SCROLLING: usize = 32;

/// One of the two lanes of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// What the rank computes.
    Compute,
    /// What the rank sends.
    Communication,
}

/// Top and height of a lane inside its row, in px.
pub(crate) const fn lane_box(lane: Lane) -> (f64, f64) {
    match lane {
        Lane::Compute => (0.0, BAR),
        Lane::Communication => (BAR, STRIP),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_leave_the_gap_free() {
        let (compute_top, compute) = lane_box(Lane::Compute);
        let (strip_top, strip) = lane_box(Lane::Communication);
        assert!(compute_top + compute <= strip_top);
        assert!((ROW - (strip_top + strip) - 1.0).abs() < f64::EPSILON);
    }
}
