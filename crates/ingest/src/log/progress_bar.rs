//! Progress bars with metrics, as printed by NeMo 1, Lightning and composer: `Epoch 0:   1%| | 795/77225
//! [9:07:58<878:01:48, 41.36s/it, loss=3.1, v_num=, global_step=794.0]`.
//!
//! The bar's time per iteration is smoothed. A timing among the metrics has priority.

use super::Limits;
use super::point::{Point, Source, StepTimeOrigin};
use super::prefix;
use super::quantity::duration_s;
use super::reading::{Draft, Reading, Tear};
use super::steps::Mark;
use super::text::{leading_digits, number};

/// Parses a bar with metrics. Bars without metrics are ignored.
pub(super) fn step(text: &str, limits: &Limits) -> Option<Reading> {
    // A prefix can contain brackets and colons.
    let text = prefix::strip(text).text;
    // The title can contain brackets: `Train epoch [1/2]:`.
    let start = text.find("%|").map(|at| at + 1).or_else(|| text.find('|'))?;
    let (title, rest) = (&text[..start], &text[start..]);
    let (bar, inside) = rest.split_once('[')?;
    let counts = bar.rsplit_once('|')?.1;
    let title = title.trim_start();
    let is_phase = |phase: &str| title.get(..phase.len()).is_some_and(|start| start.eq_ignore_ascii_case(phase));
    if ["validat", "sanity", "test", "predict", "eval"].iter().any(|phase| is_phase(phase)) {
        return None;
    }
    let (done, total) = counts.trim().split_once('/')?;
    let (done, total): (u64, u64) = (done.parse().ok()?, total.parse().ok()?);
    let content = inside.trim_end().strip_suffix(']');
    let (_, parts) = content.unwrap_or(inside).split_once(", ")?;
    // VeOmni prints `loss: 2.10`. Bars of other programs have colons too.
    let separator = if parts.contains('=') { "=" } else { ": " };
    if !parts.contains(separator) || (separator == ": " && !parts.contains("loss: ")) {
        return None;
    }
    if parts.contains("%|") {
        return Some(Reading::Torn(Tear::Mixed));
    }
    if content.is_none() {
        return Some(Reading::Torn(Tear::Cut));
    }
    let stated_epoch = title.split_once("Epoch ").and_then(|(_, rest)| leading_digits(rest)?.0.parse::<u64>().ok());
    let epoch = stated_epoch.unwrap_or_default();
    let mut smoothed = None;
    let mut global = None;
    let mut draft = Draft::new(Point { source: Source::ProgressBar, ..Point::default() });
    for part in parts.split(", ") {
        let Some((name, value)) = part.split_once(separator) else {
            smoothed = smoothed.or_else(|| time_per_iteration(part));
            continue;
        };
        match (name.trim(), number(value)) {
            ("global_step", Some(step)) if (0.0..9e15).contains(&step) => global = Some(step as u64 + 1),
            ("v_num" | "epoch", _) | (_, None) => {}
            (name, Some(value)) => draft.set(name, value, limits),
        }
    }
    // Without a global step, all epochs are assumed to have equal length.
    let step = global.or_else(|| epoch.checked_mul(total)?.checked_add(done)).filter(|&step| step < 1 << 53)?;
    if step == 0 {
        return None;
    }
    draft.point.step = step;
    // The bar of an epoch has the length of the epoch. NeMo prints the global step in its only epoch.
    let is_run = stated_epoch.is_none() || (epoch == 0 && global.is_some());
    draft.point.total_steps = Some(total).filter(|&total| total > 0 && is_run);
    if let Some(smoothed) = smoothed {
        draft.point.set_step_time(smoothed, StepTimeOrigin::ProgressBar);
    }
    Some(draft.step(Mark::Named))
}

/// Parses `41.36s/it` or `2.5it/s`, in composer `3.66s/ba`, and returns seconds.
fn time_per_iteration(text: &str) -> Option<f64> {
    let text = text.trim();
    let strip = |suffixes: [&str; 2]| suffixes.into_iter().find_map(|suffix| text.strip_suffix(suffix));
    let time = match strip(["s/it", "s/ba"]) {
        Some(seconds) => number(seconds)?,
        None => 1.0 / number(strip(["it/s", "ba/s"])?)?,
    };
    time.is_finite().then_some(time)
}

/// A tqdm bar without metrics and title, as in the Hugging Face trainer: ` 32%|███▏ | 283/873
/// [22:29<47:08,  4.79s/it]`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bar {
    /// Completed steps.
    pub(super) done: u64,
    /// Total steps.
    pub(super) total: u64,
    /// Time since the bar started, in whole seconds.
    pub(super) elapsed_s: Option<f64>,
    /// Moving average of the step time in seconds.
    pub(super) step_s: Option<f64>,
}

/// Parses the last bar in a text.
pub(super) fn bar(text: &str) -> Option<Bar> {
    let (before, after) = prefix::strip(text).text.rsplit_once("%|")?;
    let percent = before.trim_end_matches(|c: char| c.is_ascii_digit());
    // Bars of other loops have a title before the percentage.
    if percent.len() == before.len() || percent.trim_end().ends_with(':') {
        return None;
    }
    let (_, rest) = after.split_once('|')?;
    let (counts, inside) = rest.split_once('[')?;
    let (done, total) = counts.trim().split_once('/')?;
    let (done, total) = (done.parse::<u64>().ok()?, total.parse::<u64>().ok()?);
    let (inside, _) = inside.split_once(']')?;
    let (times, rate) = inside.split_once(',').unwrap_or((inside, ""));
    let elapsed_s = times.split('<').next().and_then(duration_s);
    let step_s = time_per_iteration(rate.split(',').next().unwrap_or_default()).filter(|&time| time > 0.0);
    let is_steps = rate.contains("it/s") || rate.contains("s/it");
    (is_steps && done < 1 << 53 && total > 0).then_some(Bar { done, total, elapsed_s, step_s })
}
