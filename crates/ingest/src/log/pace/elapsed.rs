//! Times without a unit that may count from the start of the run: `elapsed`, `wall_time`.

use crate::log::metric::{Unclear, unclear};
use crate::log::point::Point;
use crate::log::report::Report;

/// Maximum ratio between the time per step since the start and since the previous point. The first
/// steps take longer.
const NEAR: f64 = 5.0;
/// Maximum step time in seconds. Larger numbers are milliseconds.
const MAX_STEP_S: f64 = 1000.0;

/// The time of the previous point.
#[derive(Debug, Clone, Default)]
pub(super) struct Elapsed {
    before: Option<Before>,
}

#[derive(Debug, Clone)]
struct Before {
    name: String,
    segment: u32,
    step: u64,
    value: f64,
    /// True if the times rise in all points of the segment.
    rises: bool,
}

impl Elapsed {
    /// Sets the time since the start if the time of a point rises with its step as such a time does.
    /// Returns the time of the previous point.
    pub(super) fn read(&mut self, point: &mut Point, report: &mut Report) -> Option<f64> {
        if point.elapsed_s.is_some() || point.step_counted {
            return None;
        }
        let found = point.others.iter().find(|other| unclear(&other.name) == Some(Unclear::Elapsed))?;
        let now = Before {
            name: found.name.clone(),
            segment: point.segment,
            step: point.step,
            value: found.value,
            rises: true,
        };
        let before = self.before.replace(now.clone());
        let before = before.filter(|before| before.segment == now.segment && before.name == now.name)?;
        let rises = before.rises && now.value > before.value && now.step > before.step;
        if let Some(stored) = &mut self.before {
            stored.rises = rises;
        }
        let recent = (now.value - before.value) / now.step.saturating_sub(before.step) as f64;
        let since_start = now.value / now.step as f64;
        let is_near = (1.0 / NEAR..=NEAR).contains(&(recent / since_start));
        if !rises || !is_near || recent > MAX_STEP_S {
            return None;
        }
        report.assume(&format!("{} has no unit: it is read as the seconds since the start of the run", now.name));
        point.elapsed_s = Some(now.value);
        Some(before.value)
    }
}
