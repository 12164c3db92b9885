//! Progress bars that carry figures, as NeMo 1 and Lightning draw them:
//! `Epoch 0:   1%| | 795/77225 [9:07:58<878:01:48, 41.36s/it, loss=3.1, v_num=, global_step=794.0]`.
//!
//! The time per iteration of a bar is smoothed; a timing among the figures is preferred.

use super::Limits;
use super::point::{Point, Source};
use super::reading::{Draft, Reading};
use super::steps::Mark;
use super::text::{leading_digits, number};

/// A bar with figures; a bar without any says nothing.
pub(super) fn step(text: &str, limits: &Limits) -> Option<Reading> {
    let (bar, inside) = text.split_once('[')?;
    let (title, counts) = bar.split_once('|').and_then(|(title, _)| Some((title, bar.rsplit_once('|')?.1)))?;
    let title = title.trim_start();
    if ["Validat", "Sanity", "Test", "Predict"].iter().any(|phase| title.starts_with(phase)) {
        return None;
    }
    let (done, total) = counts.trim().split_once('/')?;
    let (done, total): (u64, u64) = (done.parse().ok()?, total.parse().ok()?);
    let figures = inside.trim_end().strip_suffix(']');
    let (_, parts) = figures.unwrap_or(inside).split_once(", ")?;
    if !parts.contains('=') {
        return None;
    }
    // Another bar inside, or a bar that was cut.
    if parts.contains("%|") || figures.is_none() {
        return Some(Reading::Torn);
    }
    let epoch = title
        .split_once("Epoch ")
        .and_then(|(_, rest)| leading_digits(rest)?.0.parse::<u64>().ok())
        .unwrap_or_default();
    let mut point = Point { source: Source::ProgressBar, ..Point::default() };
    let mut smoothed = None;
    let mut global = None;
    let mut draft = {
        point.total_steps = Some(total).filter(|&total| total > 0 && epoch == 0);
        Draft::new(point)
    };
    for part in parts.split(", ") {
        let Some((name, value)) = part.split_once('=') else {
            smoothed = smoothed.or_else(|| time_per_iteration(part));
            continue;
        };
        match (name.trim(), number(value)) {
            ("global_step", Some(step)) if (0.0..9e15).contains(&step) => global = Some(step as u64 + 1),
            ("v_num" | "epoch", _) | (_, None) => {}
            (name, Some(value)) => draft.set(name, value, limits),
        }
    }
    // Without a global step, epochs are taken to be equally long.
    let step = global.or_else(|| epoch.checked_mul(total)?.checked_add(done)).filter(|&step| step < 1 << 53)?;
    if step == 0 {
        return None;
    }
    draft.point.step = step;
    draft.point.step_time_s = draft.point.step_time_s.or(smoothed);
    Some(draft.step(Mark::Named))
}

/// `41.36s/it` or `2.5it/s`, in seconds.
fn time_per_iteration(text: &str) -> Option<f64> {
    let text = text.trim();
    let time = match text.strip_suffix("s/it") {
        Some(seconds) => number(seconds)?,
        None => 1.0 / number(text.strip_suffix("it/s")?)?,
    };
    time.is_finite().then_some(time)
}
