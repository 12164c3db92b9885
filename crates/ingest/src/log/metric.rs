//! Metrics: the point field for a value, and the unit of the value.

mod names;

pub(super) use names::{Unclear, is_step_time, measure, unclear};

use super::Limits;
use super::point::{Memory, Named, Point, StepTimeOrigin};
use super::quantity::{Dimension, unit};
use super::text::clip;

/// Largest integer below which `f64` represents all integers exactly.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// A point field, or a number that determines a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Metric {
    Loss,
    LearningRate,
    GradNorm,
    GlobalBatch,
    ConsumedSamples,
    ConsumedTokens,
    /// Operations per second per device.
    Flops,
    /// Fraction of the peak. Without a unit, values above 1 are percent.
    Mfu,
    StepTime,
    StepRate,
    /// Steps per second, averaged since the start of the run.
    RunStepRate,
    /// Average step time since the run start.
    RunStepTime,
    /// Time since the run start.
    Elapsed,
    /// Tokens per second over all devices.
    TokenRate,
    /// Tokens per second per device.
    DeviceTokenRate,
    SamplesPerSecond,
    Skipped,
    Nan,
    Allocated,
    MaxAllocated,
    Reserved,
    MaxReserved,
    DeviceMemory,
    Step,
    /// Step, counted from 0.
    StepFromZero,
    TotalSteps,
    Epoch,
    /// Epoch, counted from 1.
    EpochFrom1,
    /// Step within the epoch, counted from 0.
    EpochStep,
    /// Steps per epoch.
    EpochSteps,
    /// Time of the training in a step that has other parts, such as the generation of samples.
    TrainingTime,
    /// A number to ignore.
    Ignore,
}

/// A metric, and its units per base unit (second, GiB, TFLOP/s, fraction). Dividing rounds once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Measure {
    pub(super) metric: Metric,
    pub(super) per: f64,
}

impl Measure {
    const fn from_metric(metric: Metric) -> Self {
        Self { metric, per: 1.0 }
    }

    /// Parses a metric name from a table, with a unit after a space: `step_time ms`.
    ///
    /// # Errors
    /// The reason, for table authors.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (name, unit_text) = text.trim().split_once(' ').map_or((text.trim(), None), |(n, u)| (n, Some(u.trim())));
        let Some(&(_, metric)) = NAMES.iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            return Err(format!("there is no metric {name:?}; metrics are {}", known.join(", ")));
        };
        let dimension = metric.dimension();
        let Some(unit_text) = unit_text else { return Ok(Self::from_metric(metric)) };
        match (unit(unit_text), dimension) {
            (Some((parsed, per)), Some(wanted)) if parsed == wanted => Ok(Self { metric, per }),
            (_, Some(wanted)) => Err(format!("{unit_text:?} is no unit of {name}; use {}", wanted.units())),
            (_, None) => Err(format!("{name} has no unit, but {unit_text:?} is given")),
        }
    }
}

impl Dimension {
    const fn units(self) -> &'static str {
        match self {
            Self::Time => "s, ms, us, ns, min or h",
            Self::Memory => "GiB, MiB, KiB, GB, MB or bytes",
            Self::Flops => "TFLOP/s, GFLOP/s, PFLOP/s or FLOP/s",
            Self::Share => "% or fraction",
        }
    }
}

/// Metric names in tables.
const NAMES: [(&str, Metric); 32] = [
    ("step", Metric::Step),
    ("step_from_zero", Metric::StepFromZero),
    ("total_steps", Metric::TotalSteps),
    ("epoch", Metric::Epoch),
    ("epoch_from_one", Metric::EpochFrom1),
    ("epoch_step", Metric::EpochStep),
    ("epoch_steps", Metric::EpochSteps),
    ("step_time", Metric::StepTime),
    ("training_time", Metric::TrainingTime),
    ("steps_per_s", Metric::StepRate),
    ("average_step_time", Metric::RunStepTime),
    ("average_steps_per_s", Metric::RunStepRate),
    ("elapsed", Metric::Elapsed),
    ("tokens_per_s", Metric::TokenRate),
    ("tokens_per_s_per_device", Metric::DeviceTokenRate),
    ("samples_per_s", Metric::SamplesPerSecond),
    ("flops_per_device", Metric::Flops),
    ("mfu", Metric::Mfu),
    ("loss", Metric::Loss),
    ("learning_rate", Metric::LearningRate),
    ("grad_norm", Metric::GradNorm),
    ("global_batch", Metric::GlobalBatch),
    ("consumed_samples", Metric::ConsumedSamples),
    ("consumed_tokens", Metric::ConsumedTokens),
    ("skipped_iterations", Metric::Skipped),
    ("nan_iterations", Metric::Nan),
    ("allocated", Metric::Allocated),
    ("max_allocated", Metric::MaxAllocated),
    ("reserved", Metric::Reserved),
    ("max_reserved", Metric::MaxReserved),
    ("device_memory", Metric::DeviceMemory),
    ("ignore", Metric::Ignore),
];

impl Metric {
    /// Returns the dimension of the unit. `None` for counts and plain numbers.
    pub(super) const fn dimension(self) -> Option<Dimension> {
        match self {
            Self::StepTime | Self::TrainingTime | Self::RunStepTime | Self::Elapsed => Some(Dimension::Time),
            Self::Flops => Some(Dimension::Flops),
            Self::Mfu => Some(Dimension::Share),
            Self::Allocated | Self::MaxAllocated | Self::Reserved | Self::MaxReserved | Self::DeviceMemory => {
                Some(Dimension::Memory)
            }
            _ => None,
        }
    }
}

impl Point {
    /// Sets the field for a name, or stores the value under its name. Returns false if the limit is
    /// reached.
    pub(super) fn set(&mut self, name: &str, value: f64, limits: &Limits) -> bool {
        self.set_as(measure(name), name, value, limits)
    }

    /// Sets a metric, or stores the value under its name. Returns false if the limit is reached.
    pub(super) fn set_as(&mut self, measure: Option<Measure>, name: &str, value: f64, limits: &Limits) -> bool {
        if measure.is_some_and(|measure| measure.metric == Metric::Ignore) {
            return true;
        }
        if !value.is_finite() {
            let has_capacity = self.not_finite.len() < limits.values;
            if has_capacity {
                self.not_finite.push(clip(name, limits.name_chars));
            }
            return has_capacity;
        }
        if measure.is_some_and(|measure| self.fill(measure, value)) {
            return true;
        }
        let has_capacity = self.others.len() < limits.values;
        if has_capacity {
            self.others.push(Named { name: clip(name, limits.name_chars), value });
        }
        has_capacity
    }

    /// Returns whether the field took the value: it was empty, and the value is plausible.
    fn fill(&mut self, measure: Measure, value: f64) -> bool {
        let free = |slot: &mut Option<f64>, value: f64| slot.is_none() && slot.replace(value).is_none();
        // If a line has several peaks, such as active and allocated bytes, the largest is used.
        let raise = |slot: &mut Option<f64>, value: f64| {
            *slot = Some(slot.map_or(value, |known| known.max(value)));
            true
        };
        let count = |slot: &mut Option<u64>| {
            let is_valid = (0.0..MAX_EXACT).contains(&value) && slot.is_none();
            if is_valid {
                *slot = Some(value.round() as u64);
            }
            is_valid
        };
        let positive = || (value > 0.0).then_some(value);
        match measure.metric {
            Metric::Loss => free(&mut self.loss, value),
            Metric::LearningRate => free(&mut self.learning_rate, value),
            Metric::GradNorm => free(&mut self.grad_norm, value),
            Metric::Flops => free(&mut self.tflops_per_device, value / measure.per),
            Metric::SamplesPerSecond => free(&mut self.samples_per_s, value),
            Metric::Mfu => {
                let per = if measure.per <= 1.0 && value > 1.0 { 100.0 } else { measure.per };
                let share = value / per;
                (0.0..=1.0).contains(&share) && free(&mut self.mfu, share)
            }
            Metric::StepTime => value >= 0.0 && self.set_step_time(value / measure.per, StepTimeOrigin::Log),
            // The time of the whole step does not compare with a training step.
            Metric::TrainingTime => {
                let is_time = value >= 0.0;
                if is_time {
                    self.step_time_s = Some(value / measure.per);
                    self.step_time_origin = Some(StepTimeOrigin::Log);
                }
                is_time
            }
            Metric::StepRate => {
                positive().is_some_and(|rate| self.set_step_time(measure.per / rate, StepTimeOrigin::Log))
            }
            Metric::RunStepTime => {
                positive().is_some_and(|time| self.set_step_time(time / measure.per, StepTimeOrigin::RunAverage))
            }
            Metric::RunStepRate => {
                positive().is_some_and(|rate| self.set_step_time(1.0 / rate, StepTimeOrigin::RunAverage))
            }
            Metric::Elapsed => value >= 0.0 && free(&mut self.elapsed_s, value / measure.per),
            Metric::GlobalBatch => count(&mut self.global_batch),
            Metric::ConsumedSamples => count(&mut self.consumed_samples),
            Metric::ConsumedTokens => count(&mut self.consumed_tokens),
            Metric::TotalSteps => value > 0.0 && count(&mut self.total_steps),
            Metric::Skipped => count(&mut self.skipped_iterations),
            Metric::Nan => count(&mut self.nan_iterations),
            Metric::TokenRate => free(&mut self.tokens_per_s, value / measure.per),
            Metric::DeviceTokenRate => free(&mut self.tokens_per_s_per_device, value / measure.per),
            Metric::Allocated => free(&mut self.unranked_memory().allocated_gib, value / measure.per),
            Metric::MaxAllocated => raise(&mut self.unranked_memory().max_allocated_gib, value / measure.per),
            Metric::Reserved => free(&mut self.unranked_memory().reserved_gib, value / measure.per),
            Metric::MaxReserved => raise(&mut self.unranked_memory().max_reserved_gib, value / measure.per),
            Metric::DeviceMemory => free(&mut self.unranked_memory().device_gib, value / measure.per),
            // The line reader sets the step.
            Metric::Step
            | Metric::StepFromZero
            | Metric::Epoch
            | Metric::EpochFrom1
            | Metric::EpochStep
            | Metric::EpochSteps
            | Metric::Ignore => false,
        }
    }

    /// Sets the step time if there is none, or if a printed time replaces an average. Returns
    /// whether it was set.
    pub(super) fn set_step_time(&mut self, seconds: f64, origin: StepTimeOrigin) -> bool {
        let is_average =
            matches!(self.step_time_origin, None | Some(StepTimeOrigin::ProgressBar | StepTimeOrigin::RunAverage));
        let is_weaker = is_average && origin == StepTimeOrigin::Log;
        let empty = (self.step_time_s.is_none() || is_weaker) && seconds.is_finite();
        if empty {
            (self.step_time_s, self.step_time_origin) = (Some(seconds), Some(origin));
        }
        empty
    }

    /// Memory without a rank.
    fn unranked_memory(&mut self) -> &mut Memory {
        let at = self.memory.iter().position(|memory| memory.rank.is_none()).unwrap_or_else(|| {
            self.memory.push(Memory::default());
            self.memory.len() - 1
        });
        &mut self.memory[at]
    }

    /// Adds values from another line for the same step to empty fields.
    pub(super) fn merge(&mut self, other: Self, limits: &Limits) {
        fn or<T>(slot: &mut Option<T>, other: Option<T>) {
            if slot.is_none() {
                *slot = other;
            }
        }
        or(&mut self.total_steps, other.total_steps);
        or(&mut self.time_us, other.time_us);
        if self.step_time_s.is_none() {
            (self.step_time_s, self.step_time_origin) = (other.step_time_s, other.step_time_origin);
        }
        or(&mut self.elapsed_s, other.elapsed_s);
        or(&mut self.consumed_samples, other.consumed_samples);
        if self.consumed_tokens.is_none() {
            (self.consumed_tokens, self.token_rounding) = (other.consumed_tokens, other.token_rounding);
        }
        or(&mut self.global_batch, other.global_batch);
        or(&mut self.tokens_per_s, other.tokens_per_s);
        or(&mut self.tokens_per_s_per_device, other.tokens_per_s_per_device);
        or(&mut self.samples_per_s, other.samples_per_s);
        if self.tflops_per_device.is_none() {
            (self.tflops_per_device, self.is_megatron_flops) = (other.tflops_per_device, other.is_megatron_flops);
        }
        or(&mut self.mfu, other.mfu);
        or(&mut self.loss, other.loss);
        or(&mut self.learning_rate, other.learning_rate);
        or(&mut self.grad_norm, other.grad_norm);
        or(&mut self.skipped_iterations, other.skipped_iterations);
        or(&mut self.nan_iterations, other.nan_iterations);
        for named in other.others {
            if self.others.len() < limits.values && !self.others.iter().any(|known| known.name == named.name) {
                self.others.push(named);
            }
        }
        for name in other.not_finite {
            if self.not_finite.len() < limits.values && !self.not_finite.contains(&name) {
                self.not_finite.push(name);
            }
        }
        for memory in other.memory {
            self.add_memory(memory, limits);
        }
        self.timers.extend(other.timers);
        self.notes.extend(other.notes);
    }

    /// Returns the number of values.
    pub(super) fn values(&self) -> usize {
        let fields = [
            self.step_time_s,
            self.elapsed_s,
            self.tokens_per_s,
            self.tokens_per_s_per_device,
            self.samples_per_s,
            self.tflops_per_device,
            self.mfu,
            self.loss,
            self.learning_rate,
            self.grad_norm,
        ];
        let counts = [
            self.consumed_samples,
            self.consumed_tokens,
            self.global_batch,
            self.skipped_iterations,
            self.nan_iterations,
        ];
        fields.iter().flatten().count() + counts.iter().flatten().count() + self.others.len() + self.memory.len()
    }

    /// Replaces the values of an incomplete line for the same step by those of the complete line.
    pub(super) fn replace_by(&mut self, whole: Self, limits: &Limits) {
        let segment = self.segment;
        let mut cut = std::mem::replace(self, whole);
        self.segment = segment;
        cut.memory.retain(|memory| self.memory.iter().all(|stored| stored.rank != memory.rank));
        self.merge(cut, limits);
    }

    /// Adds the memory of a rank once. Returns false if the limit is reached.
    pub(super) fn add_memory(&mut self, memory: Memory, limits: &Limits) -> bool {
        let known = self.memory.iter().position(|stored| stored.rank == memory.rank);
        match known {
            Some(known) => self.memory[known] = memory,
            None if self.memory.len() < limits.ranks => self.memory.push(memory),
            None => return false,
        }
        true
    }
}
