//! Visible time range and its mapping to pixels.

use super::TimeWindow;

/// Minimum window width. In a narrower window, a nanosecond would be wider than a span label.
pub(crate) const NARROWEST_NS: f64 = 100.0;

impl TimeWindow {
    /// Window for the full extent.
    pub(crate) fn fit(extent_ns: u64) -> Self {
        Self { start_ns: 0.0, end_ns: (extent_ns as f64).max(NARROWEST_NS) }
    }

    pub(crate) fn width_ns(self) -> f64 {
        self.end_ns - self.start_ns
    }

    pub(crate) fn centre_ns(self) -> f64 {
        f64::midpoint(self.start_ns, self.end_ns)
    }

    /// Pixel position of a time in a plot with width `width_px`.
    pub(crate) fn x_at(self, ns: f64, width_px: f64) -> f64 {
        (ns - self.start_ns) / self.width_ns() * width_px
    }

    /// Time at a pixel position in a plot with width `width_px`.
    pub(crate) fn ns_at(self, x: f64, width_px: f64) -> f64 {
        self.start_ns + x / width_px.max(1.0) * self.width_ns()
    }

    /// Scales the window by `factor`. The time `about_ns` remains at its screen position.
    #[must_use]
    pub(crate) fn zoomed(self, about_ns: f64, factor: f64, extent_ns: u64) -> Self {
        let full_width = Self::fit(extent_ns).width_ns();
        let width = (self.width_ns() * factor).clamp(NARROWEST_NS, full_width);
        let share = (about_ns - self.start_ns) / self.width_ns();
        let start_ns = about_ns - share * width;
        Self { start_ns, end_ns: start_ns + width }.clamped(extent_ns)
    }

    /// Shifts the window within the extent.
    #[must_use]
    pub(crate) fn panned(self, by_ns: f64, extent_ns: u64) -> Self {
        Self { start_ns: self.start_ns + by_ns, end_ns: self.end_ns + by_ns }.clamped(extent_ns)
    }

    /// Nearest window inside the extent with at least the minimum width.
    #[must_use]
    pub(crate) fn clamped(self, extent_ns: u64) -> Self {
        let full = Self::fit(extent_ns);
        if !self.start_ns.is_finite() || !self.end_ns.is_finite() {
            return full;
        }
        let width = self.width_ns().clamp(NARROWEST_NS, full.width_ns());
        let start_ns = self.start_ns.clamp(0.0, full.end_ns - width);
        Self { start_ns, end_ns: start_ns + width }
    }

    /// Shifts the window by the minimum distance that makes a span visible with a margin. Widens
    /// the window only if necessary.
    #[must_use]
    pub(crate) fn revealing(self, start_ns: f64, end_ns: f64, extent_ns: u64) -> Self {
        if start_ns >= self.start_ns && end_ns <= self.end_ns {
            return self;
        }
        let width = self.width_ns().max((end_ns - start_ns) * 1.25);
        let margin = ((width - (end_ns - start_ns)) / 2.0).min(width * 0.15);
        let moved = if start_ns < self.start_ns { start_ns - margin } else { end_ns + margin - width };
        Self { start_ns: moved, end_ns: moved + width }.clamped(extent_ns)
    }

    /// Window centred on a span, three times as wide.
    pub(crate) fn around(start_ns: f64, end_ns: f64, extent_ns: u64) -> Self {
        let margin = (end_ns - start_ns).max(NARROWEST_NS / 3.0);
        Self { start_ns: start_ns - margin, end_ns: end_ns + margin }.clamped(extent_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(start_ns: f64, end_ns: f64) -> TimeWindow {
        TimeWindow { start_ns, end_ns }
    }

    fn assert_near(actual: TimeWindow, start_ns: f64, end_ns: f64) {
        assert!(
            (actual.start_ns - start_ns).abs() < 1e-6 && (actual.end_ns - end_ns).abs() < 1e-6,
            "{actual:?} is not {start_ns} .. {end_ns}"
        );
    }

    #[test]
    fn pixels_and_times_are_inverse() {
        let visible = window(1_000.0, 3_000.0);
        for x in [0.0, 1.0, 333.3, 800.0] {
            assert!((visible.x_at(visible.ns_at(x, 800.0), 800.0) - x).abs() < 1e-9);
        }
        assert!((visible.x_at(2_000.0, 800.0) - 400.0).abs() < 1e-9);
    }

    #[test]
    fn zooming_keeps_the_point_under_the_pointer() {
        // The fixed time is at 1/4 of the window, and the new window is half as wide: 1500 - 0.25 x
        // 1000 = 1250.
        assert_near(window(1_000.0, 3_000.0).zoomed(1_500.0, 0.5, 10_000), 1_250.0, 2_250.0);
    }

    #[test]
    fn zooming_stops_at_the_extent_and_at_the_narrowest() {
        assert_near(window(1_000.0, 3_000.0).zoomed(2_000.0, 100.0, 10_000), 0.0, 10_000.0);
        assert_near(window(1_000.0, 3_000.0).zoomed(2_000.0, 1e-9, 10_000), 1_950.0, 2_050.0);
    }

    #[test]
    fn panning_stops_at_both_ends() {
        assert_near(window(1_000.0, 3_000.0).panned(-5_000.0, 10_000), 0.0, 2_000.0);
        assert_near(window(1_000.0, 3_000.0).panned(9_000.0, 10_000), 8_000.0, 10_000.0);
        assert_near(window(1_000.0, 3_000.0).panned(500.0, 10_000), 1_500.0, 3_500.0);
    }

    #[test]
    fn invalid_window_becomes_full_range() {
        assert_near(window(f64::NAN, 3.0).clamped(500), 0.0, 500.0);
        assert_near(window(0.0, 0.0).clamped(0), 0.0, NARROWEST_NS);
    }

    #[test]
    fn revealing_moves_only_hidden_ranges() {
        let visible = window(1_000.0, 2_000.0);
        assert_near(visible.revealing(1_200.0, 1_300.0, 10_000), 1_000.0, 2_000.0);
        // Span of 100 ns to the right; the margin is 15 % of 1000.
        assert_near(visible.revealing(2_500.0, 2_600.0, 10_000), 1_750.0, 2_750.0);
        assert_near(visible.revealing(500.0, 600.0, 10_000), 350.0, 1_350.0);
    }

    #[test]
    fn a_window_around_a_span_gives_it_a_third() {
        assert_near(TimeWindow::around(4_000.0, 5_000.0, 10_000), 3_000.0, 6_000.0);
    }
}
