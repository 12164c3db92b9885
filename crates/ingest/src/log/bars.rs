//! Progress bars of a log that has no step lines: with a long logging interval, the bar is all that a trainer prints for hours.

use super::Limits;
use super::point::{Point, Source, StepTimeOrigin};
use super::progress_bar::Bar;
use super::report::Location;

/// Note about steps of a bar.
pub(super) const NOTE: &str = "no step line is read: steps are those of the progress bar that runs longest";
/// Most lengths of bars that are distinguished. Each loop of a program has its own length.
const MAX_LOOPS: usize = 16;
/// Fewest different steps of a bar. Shorter loops load files.
const MIN_STEPS: usize = 2;

/// Bars by their length.
#[derive(Debug, Clone, Default)]
pub(super) struct Bars {
    loops: Vec<(u64, Vec<(Bar, Location)>)>,
}

impl Bars {
    /// Stores the first bar of each step.
    pub(super) fn push(&mut self, bar: Bar, location: Location, limits: &Limits) {
        if bar.done == 0 || bar.step_s.is_none() {
            return;
        }
        let at = self.loops.iter().position(|(total, _)| *total == bar.total);
        let Some(at) = at.or_else(|| {
            (self.loops.len() < MAX_LOOPS).then(|| self.loops.push((bar.total, Vec::new())))?;
            Some(self.loops.len() - 1)
        }) else {
            return;
        };
        let bars = &mut self.loops[at].1;
        // Bars are drawn again for the same step.
        if bars.len() < limits.points && bars.last().is_none_or(|(last, _)| bar.done != last.done) {
            bars.push((bar, location));
        }
    }

    /// Returns the points of the loop that runs longest. Empty if it is not the steps of a training.
    pub(super) fn steps(self) -> Vec<Point> {
        let seconds = |bars: &[(Bar, Location)]| {
            bars.iter().filter_map(|(bar, _)| bar.elapsed_s).max_by(f64::total_cmp).unwrap_or_default()
        };
        let loops = self.loops.into_iter().filter(|(_, bars)| bars.len() >= MIN_STEPS);
        let longest = loops.max_by(|(_, a), (_, b)| seconds(a).total_cmp(&seconds(b)));
        let point = |(bar, location): (Bar, Location)| {
            let mut point = Point {
                source: Source::ProgressBar,
                step: bar.done,
                total_steps: Some(bar.total),
                elapsed_s: bar.elapsed_s,
                line: location.line,
                offset: location.offset,
                ..Point::default()
            };
            if let Some(step_s) = bar.step_s {
                point.set_step_time(step_s, StepTimeOrigin::ProgressBar);
            }
            point
        };
        longest.map(|(_, bars)| bars.into_iter().map(point).collect()).unwrap_or_default()
    }
}
