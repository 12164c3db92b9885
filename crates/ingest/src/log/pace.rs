//! Completes points: determines missing units, and derives step times from other values.

mod doubts;
mod elapsed;
mod plausible;

use doubts::Doubts;
use elapsed::Elapsed;
pub(super) use plausible::sequences;

use super::Limits;
use super::metric::{Measure, Metric, Unclear, unclear};
use super::point::{Point, Source, StepTimeOrigin};
use super::report::Report;

/// Minimum interval for clocks with whole seconds, in seconds.
const COARSE_INTERVAL_S: f64 = 20.0;
const UNIT_IS_OPEN: &str = "a step time has no unit, and neither its value nor the clocks show it: it is not used; a table of patterns can \
                            give the unit";
/// Step times without a unit up to this value are in seconds.
const MAX_SECONDS: f64 = 10.0;
/// Minimum step time for which a clock with whole seconds is preferred to a progress bar, in
/// seconds.
const MIN_CLOCK_S: f64 = 3.0;
/// Maximum interval between two points, in seconds. It is shorter than a month, because the order
/// of day and month can be unknown.
const MAX_INTERVAL_S: f64 = 20.0 * 86_400.0;
/// Step times without a unit from this value are in milliseconds.
const MIN_MILLIS: f64 = 1000.0;
/// Maximum plausible TFLOP/s per device.
const MAX_TFLOPS: f64 = 20_000.0;
/// Minimum plausible step time, in seconds. Kernel launches alone take longer.
const MIN_STEP_S: f64 = 1e-4;
/// Maximum ratio of a step time to a precise clock. Pauses occur between steps.
const NEAR: f64 = 4.0;
/// Maximum ratio of a step time to a clock with whole seconds.
const NEAR_COARSE: f64 = 31.0;

/// State for the next points.
#[derive(Debug, Clone, Default)]
pub(super) struct Pace {
    before: Option<Before>,
    /// True if the log prints step times.
    printed: bool,
    /// Units per second for a step time without a unit, once known.
    per_second: Option<f64>,
    /// True if a step time without a unit is not used.
    is_unit_open: bool,
    /// Job size from lines before the steps.
    job: Job,
    elapsed: Elapsed,
    doubts: Doubts,
}

/// Step size from lines before the first step.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Job {
    /// Sequences per step.
    pub(super) global_batch: Option<u64>,
    /// Tokens per sequence.
    pub(super) sequence: Option<u64>,
    /// Number of devices.
    pub(super) devices: Option<u64>,
}

impl Job {
    /// Merges another line's values into this size.
    pub(super) fn with(self, later: Self) -> Self {
        Self {
            global_batch: later.global_batch.or(self.global_batch),
            sequence: later.sequence.or(self.sequence),
            devices: later.devices.or(self.devices),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Before {
    segment: u32,
    step: u64,
    counted: bool,
    time_us: Option<i64>,
    elapsed_s: Option<f64>,
}

/// Returns the trainer's FLOP formula, if known.
fn formula(point: &Point) -> Option<&'static str> {
    Some(match point.source {
        Source::Torchtitan => {
            "torchtitan: 6 x parameters without embeddings + 12 x layers x hidden x sequence per token; attention is \
             counted without the causal mask, recomputation is not counted"
        }
        // Only these forks print sample rates or consumed tokens, and call the value TFLOPs.
        Source::Megatron
            if !point.is_megatron_flops && (point.samples_per_s.is_some() || point.consumed_tokens.is_some()) =>
        {
            "Megatron-DeepSpeed and BLOOM: 72 x batch x sequence x layers x hidden^2 x (1 + sequence / (6 x hidden) + \
             vocabulary / (16 x layers x hidden)), times 4/3 where activations are recomputed: recomputation is counted"
        }
        Source::Megatron => "Megatron-LM: operations of the model, forward and backward; recomputation is not counted",
        _ => return None,
    })
}

impl Pace {
    /// Stores the job size from a line before the steps.
    pub(super) fn job(&mut self, job: Job) {
        self.job = self.job.with(job);
    }

    /// Reports conclusions from all points.
    pub(super) fn finish(&self, report: &mut Report) {
        if self.is_unit_open && self.per_second.is_none() {
            report.assume(UNIT_IS_OPEN);
        }
        self.doubts.finish(self.is_unit_open, report);
    }

    /// Completes a point after its last line.
    pub(super) fn complete(&mut self, point: &mut Point, report: &mut Report, limits: &Limits) {
        if let (Some(earlier), Some(before)) = (self.elapsed.read(point, report), &mut self.before) {
            before.elapsed_s = Some(earlier);
        }
        let derived = self.derived(point);
        self.decide_units(point, derived, report, limits);
        self.printed |= point.step_time_origin == Some(StepTimeOrigin::Log);
        if point.step_time_origin != Some(StepTimeOrigin::Log) && !self.printed {
            let best = self.by_tokens(point).or(derived);
            if let Some((seconds, origin, precise)) = best
                && (precise || point.step_time_s.is_none() || is_off(point, seconds))
            {
                (point.step_time_s, point.step_time_origin) = (Some(seconds), Some(origin));
            }
        }
        if point.step_time_s.is_some_and(|seconds| seconds < MIN_STEP_S) {
            (point.step_time_s, point.step_time_origin) = (None, None);
            report.assume(
                "step times below 0.1 ms are left out, as no training step is so short: the log may count samples or tokens in \
                 place of steps",
            );
        }
        if let Some(origin) = point.step_time_origin.filter(|&origin| origin != StepTimeOrigin::Log) {
            report.assume(match origin {
                StepTimeOrigin::Clock if point.source == Source::Tensorboard => {
                    "step times are differences of wall times"
                }
                StepTimeOrigin::Clock => {
                    "no printed step time is read: they are differences of times of day divided by the steps between, with \
                     pauses for evaluation and checkpoints inside"
                }
                StepTimeOrigin::Elapsed => {
                    "no printed step time is read: they are differences of elapsed times divided by the steps between"
                }
                StepTimeOrigin::ProgressBar => {
                    "no printed step time is read: they are the moving average of the progress bar"
                }
                StepTimeOrigin::RunAverage => "step times are averages since the start of the run",
                StepTimeOrigin::TokenRate => "step times are the tokens of a step divided by tokens per second",
                StepTimeOrigin::Timers | StepTimeOrigin::Log => "step times are sums of timers",
            });
        }
        plausible::correct(point, self.job, report);
        if point.tflops_per_device.is_some() && report.flop_formula.is_none() {
            report.flop_formula = formula(point).map(str::to_owned);
        }
        let clock_s = derived.map(|(seconds, _, precise)| {
            let steps = self.before.map_or(1, |before| point.step.saturating_sub(before.step)).max(1);
            let error = if precise { 0.0 } else { 1.0 / steps as f64 };
            seconds - error..=seconds + error
        });
        self.doubts.point(point, clock_s, report);
        self.before = Some(Before {
            segment: point.segment,
            step: point.step,
            counted: point.step_counted,
            time_us: point.time_us,
            elapsed_s: point.elapsed_s,
        });
    }

    /// Returns the step time from the clocks of this point and the previous one, and whether it is
    /// precise.
    fn derived(&self, point: &Point) -> Option<(f64, StepTimeOrigin, bool)> {
        let before = self.before.filter(|before| before.segment == point.segment)?;
        // If the reader counted the steps, the number between two points is unknown.
        let steps = point.step.checked_sub(before.step).filter(|&steps| steps > 0)?;
        if before.counted || point.step_counted {
            return None;
        }
        let by_clock = point.time_us.zip(before.time_us).and_then(|(now, then)| {
            let seconds = now.checked_sub(then).filter(|&micros| micros > 0)? as f64 * 1e-6;
            let is_coarse = now % 1_000_000 == 0 && then % 1_000_000 == 0;
            Some((seconds, StepTimeOrigin::Clock, is_coarse))
        });
        let by_elapsed = || {
            let (now, then) = point.elapsed_s.zip(before.elapsed_s)?;
            let seconds = Some(now - then).filter(|&seconds| seconds > 0.0)?;
            Some((seconds, StepTimeOrigin::Elapsed, now.fract() == 0.0 && then.fract() == 0.0))
        };
        let (seconds, origin, is_coarse) =
            by_clock.or_else(by_elapsed).filter(|&(seconds, ..)| seconds < MAX_INTERVAL_S)?;
        Some((seconds / steps as f64, origin, !is_coarse || seconds >= COARSE_INTERVAL_S))
    }

    /// Returns the step time from the token rate; the job rate is preferred.
    fn by_tokens(&self, point: &Point) -> Option<(f64, StepTimeOrigin, bool)> {
        let Job { global_batch, sequence, devices } = self.job;
        let tokens = global_batch? as f64 * sequence? as f64;
        let device_rate = || Some(point.tokens_per_s_per_device? * devices? as f64);
        let rate = point.tokens_per_s.or_else(device_rate).filter(|&rate| rate > 0.0)?;
        Some((tokens / rate, StepTimeOrigin::TokenRate, true))
    }

    /// Determines missing units from clocks or from the values.
    fn decide_units(
        &mut self,
        point: &mut Point,
        derived: Option<(f64, StepTimeOrigin, bool)>,
        report: &mut Report,
        limits: &Limits,
    ) {
        let has_clock = (point.time_us.is_some() || point.elapsed_s.is_some()) && !point.step_counted;
        let mut at = 0;
        while let Some(other) = point.others.get(at) {
            let (value, decided) = (other.value, unclear(&other.name));
            let measure = match decided {
                None | Some(Unclear::Elapsed) => None,
                // A table can have a second name for the step time.
                Some(Unclear::StepTime) if point.step_time_origin == Some(StepTimeOrigin::Log) => None,
                Some(Unclear::StepTime) => {
                    if self.per_second.is_none() && is_of_trl(point) {
                        report.assume("step_time beside figures of completions is TRL's, in seconds");
                        self.per_second = Some(1.0);
                    }
                    self.per_second = self.per_second.or_else(|| match derived {
                        Some((seconds, _, precise)) => per_second_by_clock(value, seconds, precise),
                        // The next point determines the unit.
                        None if has_clock => None,
                        None => per_second_by_value(value),
                    });
                    self.is_unit_open |= self.per_second.is_none();
                    if self.per_second.is_none() && !has_clock {
                        report.assume(UNIT_IS_OPEN);
                    }
                    self.per_second.map(|per| {
                        report.assume(match (has_clock, per) {
                            (true, 1.0) => "the step time has no unit; by the clocks it is in seconds",
                            (true, 1e3) => "the step time has no unit; by the clocks it is in milliseconds",
                            (true, _) => "the step time has no unit; by the clocks it is in microseconds",
                            (false, 1.0) => "the step time has no unit; by its value it is in seconds",
                            (false, _) => "the step time has no unit; by its value it is in milliseconds",
                        });
                        Measure { metric: Metric::StepTime, per }
                    })
                }
                Some(Unclear::Tokens) => {
                    report.assume(
                        "tps and wps are read as tokens per second of one device, as torchtitan prints them; a table of patterns can \
                         say that they are those of the job",
                    );
                    Some(Measure { metric: Metric::DeviceTokenRate, per: 1.0 })
                }
                Some(Unclear::Throughput) => {
                    let metric = throughput(point, value);
                    if metric.is_none() {
                        report.assume(
                            "throughput has no unit: it may count tokens, samples or operations, so it is not compared; a table \
                             of patterns can give the unit",
                        );
                    }
                    metric.map(|metric| {
                        report.assume(match metric {
                            Metric::Flops => "throughput without a unit is Megatron-LM's: TFLOP/s per device",
                            _ => "throughput without a unit is LLaMA-Factory's: tokens per second of the job",
                        });
                        Measure { metric, per: 1.0 }
                    })
                }
            };
            match measure {
                Some(measure) => {
                    let other = point.others.remove(at);
                    point.set_as(Some(measure), &other.name, other.value, limits);
                    // If the field is set already, the value is appended again.
                    if point.others.last().is_some_and(|last| last.name == other.name) {
                        break;
                    }
                }
                None => at += 1,
            }
        }
    }
}

/// Returns whether a progress bar average contradicts the clock. After a resume the bar divides by
/// earlier steps too.
fn is_off(point: &Point, clock_s: f64) -> bool {
    let is_bar = point.step_time_origin == Some(StepTimeOrigin::ProgressBar);
    is_bar && clock_s >= MIN_CLOCK_S && point.step_time_s.is_some_and(|bar_s| !(0.5..=2.0).contains(&(bar_s / clock_s)))
}

/// Returns whether the trainers of TRL that generate completions printed a dict.
fn is_of_trl(point: &Point) -> bool {
    let is_dict = matches!(point.source, Source::HuggingFaceDict | Source::TrainerState);
    is_dict && point.others.iter().any(|other| other.name.starts_with("completions/"))
}

/// Returns the units per second for a step time, from the elapsed time per step.
fn per_second_by_clock(value: f64, clock_s: f64, precise: bool) -> Option<f64> {
    let tolerance = if precise { NEAR } else { NEAR_COARSE };
    [1.0, 1e3, 1e6].into_iter().find(|per| (1.0 / tolerance..=tolerance).contains(&(value / per / clock_s)))
}

/// Returns the units per second for a step time without clocks, by plausibility.
fn per_second_by_value(value: f64) -> Option<f64> {
    let is_seconds = value > 0.0 && value <= MAX_SECONDS;
    if is_seconds { Some(1.0) } else { (value >= MIN_MILLIS).then_some(1e3) }
}

/// Returns the unit of a throughput, from the other values.
fn throughput(point: &Point, value: f64) -> Option<Metric> {
    // Scalar names that only Megatron-LM uses.
    const MEGATRON_NAMES: [&str; 5] = ["loss-scale", "num-zeros", "params-norm", "world-size", "samples vs steps"];
    if matches!(point.source, Source::HuggingFaceDict | Source::TrainerState) {
        return Some(Metric::TokenRate);
    }
    let is_file = matches!(point.source, Source::Tensorboard | Source::JsonLines | Source::PanelCsv | Source::StepCsv);
    let is_megatron =
        point.others.iter().any(|other| MEGATRON_NAMES.iter().any(|prefix| other.name.starts_with(prefix)));
    (is_file && is_megatron && value < MAX_TFLOPS).then_some(Metric::Flops)
}
