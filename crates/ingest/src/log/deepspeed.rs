//! DeepSpeed: step lines with learning rates, the throughput timer, and the pipeline engine.

use super::Limits;
use super::clock::time_us;
use super::point::{Memory, Point, Source, StepTimeOrigin, Timer};
use super::reading::{Draft, Reading, Tear};
use super::steps::Mark;
use super::text::{clip, leading_digits, number};

/// `[Rank 0] step=10, skipped=4, lr=[4.99e-05, 4.99e-05], mom=[(0.9, 0.95)]`.
///
/// `skipped` counts all skips since the start, so it is stored under its name instead of the
/// per-interval field.
pub(super) fn step(text: &str, limits: &Limits) -> Option<Reading> {
    let (before, after) = text.split_once("step=")?;
    if !before.is_empty() && !before.ends_with(' ') {
        return None;
    }
    let (digits, rest) = leading_digits(after)?;
    let rest = rest.strip_prefix(", skipped=")?;
    let Some(step) = step_number(digits) else {
        return Some(Reading::Skipped("the number of the step is beyond 2^53"));
    };
    let mut draft =
        Draft::new(Point { source: Source::DeepspeedStep, step, time_us: time_us(before), ..Point::default() });
    let Some(skipped) = leading_digits(rest).and_then(|(digits, _)| number(digits)) else {
        return Some(Reading::Torn(Tear::Value));
    };
    draft.set("skipped steps in total", skipped, limits);
    if let Some((_, rates)) = rest.split_once("lr=[") {
        let first = rates.split([',', ']']).next().and_then(number);
        let Some(rate) = first else { return Some(Reading::Torn(Tear::Value)) };
        draft.set("lr", rate, limits);
    }
    Some(draft.step(Mark::Named))
}

/// `epoch=0/micro_step=40/global_step=10, RunningAvgSamplesPerSec=25.0, CurrSamplesPerSec=25.7,
/// MemAllocated=4.32GB`.
///
/// Older versions print only epoch and micro-step. The line then belongs to the open step.
pub(super) fn timer(text: &str, limits: &Limits) -> Option<Reading> {
    let at = text.find("RunningAvgSamplesPerSec=")?;
    let (before, after) = text.split_at(at);
    let step = before.rsplit_once("global_step=").and_then(|(_, rest)| leading_digits(rest)?.0.parse().ok());
    let mark = if step.is_some() { Mark::Named } else { Mark::Open };
    let mut draft = Draft::new(Point {
        source: Source::DeepspeedTimer,
        step: step.and_then(|step: u64| (step < 1 << 53).then_some(step)).unwrap_or_default(),
        time_us: time_us(before),
        ..Point::default()
    });
    // DeepSpeed divides sizes by 2^30 although it prints GB.
    let mut memory = Memory::default();
    for part in after.split(", ") {
        let Some((name, value)) = part.trim().split_once('=') else { return Some(Reading::Torn(Tear::Value)) };
        let gib = value.strip_suffix("GB");
        let Some(value) = number(gib.unwrap_or(value)) else { return Some(Reading::Torn(Tear::Value)) };
        match name {
            "MemAllocated" => memory.allocated_gib = Some(value).filter(|value| value.is_finite()),
            "MaxMemAllocated" => memory.max_allocated_gib = Some(value).filter(|value| value.is_finite()),
            _ => draft.set(name, value, limits),
        }
    }
    if !memory.is_empty() {
        draft.point.memory.push(memory);
    }
    Some(draft.step(mark))
}

/// `[Rank 0] time (ms) | fwd: 120.5 | bwd: 240.5 | bwd_inner: 230.0 | step: 12.0`, printed by
/// `wall_clock_breakdown`. Microstep timers do not cover a full step and are companion lines.
///
/// If no other line contains step numbers, these lines are counted as steps, and the step time is
/// the sum for forward, backward and optimizer.
pub(super) fn breakdown(text: &str, limits: &Limits) -> Option<Reading> {
    let (before, after) = text.split_once("time (ms) |")?;
    let names = ["fwd", "bwd", "step", "forward", "backward", "fwd_microstep", "forward_microstep", "optimizer_step"];
    let pairs: Vec<(&str, Option<f64>)> = after
        .split('|')
        .filter_map(|part| part.split_once(':'))
        .map(|(name, value)| (name.trim(), number(value).filter(|value| value.is_finite())))
        .collect();
    if !before.contains("ank ") && !before.contains("rank=") || !pairs.iter().any(|(name, _)| names.contains(name)) {
        return None;
    }
    if pairs.iter().any(|(_, value)| value.is_none()) {
        return Some(Reading::Torn(Tear::Value));
    }
    let timer = |(name, value): &(&str, Option<f64>)| Timer {
        name: clip(name, limits.name_chars),
        time_s: value.map(|millis| millis / 1e3),
        ..Timer::default()
    };
    let timers: Vec<Timer> = pairs.iter().take(limits.timers).map(timer).collect();
    let millis = |keys: [&str; 2]| pairs.iter().find(|(name, _)| keys.contains(name)).and_then(|(_, value)| *value);
    let parts = [["fwd", "forward"], ["bwd", "backward"], ["step", "step"]].map(millis);
    // The optimizer prints its timers before the line of the step.
    if pairs.iter().all(|(name, _)| name.starts_with("optimizer_")) {
        let point = Point { source: Source::DeepspeedStep, timers, ..Point::default() };
        return Some(Reading::BeforeStep(Box::new(point)));
    }
    let [Some(forward), Some(backward), Some(optimizer)] = parts else { return Some(Reading::Timers(timers)) };
    let mut point = Point { source: Source::DeepspeedBreakdown, time_us: time_us(before), timers, ..Point::default() };
    point.set_step_time((forward + backward + optimizer) / 1e3, StepTimeOrigin::Timers);
    Some(Draft::new(point).step(Mark::Counted))
}

/// `steps: 10 loss: 2.3456 iter time (s): 1.234 samples/sec: 51.864`.
pub(super) fn pipeline(text: &str, limits: &Limits) -> Option<Reading> {
    let (before, after) = text.split_once("steps: ")?;
    let (digits, rest) = leading_digits(after)?;
    let rest = rest.strip_prefix(" loss: ")?;
    let (loss, rest) = rest.split_once(" iter time (s): ")?;
    let (time, rate) = rest.split_once(" samples/sec: ")?;
    let Some(step) = step_number(digits) else {
        return Some(Reading::Skipped("the number of the step is beyond 2^53"));
    };
    let mut draft =
        Draft::new(Point { source: Source::DeepspeedPipeline, step, time_us: time_us(before), ..Point::default() });
    for (name, value) in [("loss", loss), ("iter time (s)", time), ("samples/sec", rate)] {
        let Some(value) = number(value) else { return Some(Reading::Torn(Tear::Value)) };
        draft.set(name, value, limits);
    }
    Some(draft.step(Mark::Named))
}

fn step_number(digits: &str) -> Option<u64> {
    digits.parse().ok().filter(|&step| step < 1 << 53)
}
