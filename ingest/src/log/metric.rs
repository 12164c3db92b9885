//! Names that trainers give their figures, and the field of a point that each fills.

use super::Limits;
use super::point::{Memory, Named, Point, Scope, TokenRate};
use super::text::clip;

/// Largest whole number that every `f64` below it counts exactly.
const WHOLE: f64 = 9_007_199_254_740_992.0;
/// GiB in a byte.
const GIB: f64 = 1.0 / 1_073_741_824.0;

/// A field of a point.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Field {
    Loss,
    LearningRate,
    GradNorm,
    GlobalBatch,
    ConsumedSamples,
    ConsumedTokens,
    Tflops,
    /// A time, and how many of its unit are a second: dividing rounds once.
    StepTime(f64),
    TokenRate(Scope),
    SamplesPerSecond,
    Skipped,
    Nan,
    /// Bytes in GiB.
    Allocated(f64),
    MaxAllocated(f64),
    MaxReserved(f64),
}

/// The field that a name means, whatever its case.
fn field(name: &str) -> Option<Field> {
    use Field::{
        Allocated, ConsumedSamples, ConsumedTokens, GlobalBatch, GradNorm, LearningRate, Loss, MaxAllocated,
        MaxReserved, Nan, SamplesPerSecond, Skipped, StepTime, Tflops,
    };
    let lower = name.to_ascii_lowercase();
    // TensorBoard and W&B put a group before the name.
    let plain = lower.strip_prefix("train/").or_else(|| lower.strip_prefix("train_")).unwrap_or(&lower);
    Some(match plain {
        "loss"
        | "lm loss"
        | "lm-loss"
        | "lm_loss"
        | "reduced_train_loss"
        | "training_loss"
        | "reduced_loss"
        | "loss_metrics/global_avg_loss"
        | "lm-loss-training/lm loss" => Loss,
        "learning rate" | "learning_rate" | "learning-rate" | "lr" | "learning-rate/learning-rate" => LearningRate,
        "grad norm" | "grad_norm" | "grad-norm" | "gradient_norm" | "grad-norm/grad-norm" => GradNorm,
        "global batch size" | "global_batch_size" | "global-batch-size" | "batch-size" | "batch-size/batch-size" => {
            GlobalBatch
        }
        "consumed samples" | "consumed_samples" | "consumed-samples" => ConsumedSamples,
        "consumed tokens" | "consumed_tokens" | "consumed-tokens" | "num_input_tokens_seen" => ConsumedTokens,
        "throughput per gpu (tflop/s/gpu)" | "tflops" | "tflops_per_gpu" | "tflops per gpu" | "throughput" => Tflops,
        "elapsed time per iteration (ms)" | "step_time_ms" => StepTime(1e3),
        "elapsed time per iteration (s)"
        | "train_step_timing in s"
        | "step_timing in s"
        | "iteration-time"
        | "iteration-time/iteration-time"
        | "iter time (s)"
        | "step_time"
        | "step_time_s"
        | "time_metrics/end_to_end(s)" => StepTime(1.0),
        "tps"
        | "wps"
        | "throughput(tps)"
        | "tokens_per_gpu_per_second"
        | "tokens per gpu per second (tgs)"
        | "tokens_per_second_per_gpu"
        | "tokens-per-second-per-gpu"
        | "tokens/sec/gpu"
        | "tgs" => Field::TokenRate(Scope::Device),
        "tokens_per_second" | "tokens_per_sec" | "tokens/sec" | "tokens per second" | "tokens/s" => {
            Field::TokenRate(Scope::Job)
        }
        "samples per second" | "samples_per_second" | "samples_per_sec" | "samples/sec" | "currsamplespersec" => {
            SamplesPerSecond
        }
        "number of skipped iterations" | "skipped" => Skipped,
        "number of nan iterations" => Nan,
        "mem-allocated-bytes" => Allocated(GIB),
        "mem-max-allocated-bytes" => MaxAllocated(GIB),
        "memory/max_active(gib)" => MaxAllocated(1.0),
        "memory/max_reserved(gib)" => MaxReserved(1.0),
        _ => return None,
    })
}

impl Point {
    /// Sets the field that a name means, or keeps the value by its name; false where there is no more room for it.
    pub(super) fn set(&mut self, name: &str, value: f64, limits: &Limits) -> bool {
        if !value.is_finite() {
            let room = self.not_finite.len() < limits.values;
            if room {
                self.not_finite.push(clip(name, limits.name_chars));
            }
            return room;
        }
        if field(name).is_some_and(|field| self.fill(field, value)) {
            return true;
        }
        let room = self.others.len() < limits.values;
        if room {
            self.others.push(Named { name: clip(name, limits.name_chars), value });
        }
        room
    }

    /// Whether the field took the value: it was empty, and the value makes sense in it.
    fn fill(&mut self, field: Field, value: f64) -> bool {
        let free = |slot: &mut Option<f64>, value: f64| slot.is_none() && slot.replace(value).is_none();
        let count = |slot: &mut Option<u64>| {
            let whole = (0.0..WHOLE).contains(&value) && slot.is_none();
            if whole {
                *slot = Some(value.round() as u64);
            }
            whole
        };
        match field {
            Field::Loss => free(&mut self.loss, value),
            Field::LearningRate => free(&mut self.learning_rate, value),
            Field::GradNorm => free(&mut self.grad_norm, value),
            Field::Tflops => free(&mut self.tflops_per_device, value),
            Field::SamplesPerSecond => free(&mut self.samples_per_s, value),
            Field::StepTime(per_second) => value >= 0.0 && free(&mut self.step_time_s, value / per_second),
            Field::GlobalBatch => count(&mut self.global_batch),
            Field::ConsumedSamples => count(&mut self.consumed_samples),
            Field::ConsumedTokens => count(&mut self.consumed_tokens),
            Field::Skipped => count(&mut self.skipped_iterations),
            Field::Nan => count(&mut self.nan_iterations),
            Field::TokenRate(scope) => {
                let empty = self.token_rate.is_none();
                if empty {
                    self.token_rate = Some(TokenRate { tokens_per_s: value, scope });
                }
                empty
            }
            Field::Allocated(unit) => free(&mut self.own_memory().allocated_gib, value * unit),
            Field::MaxAllocated(unit) => free(&mut self.own_memory().max_allocated_gib, value * unit),
            Field::MaxReserved(unit) => free(&mut self.own_memory().max_reserved_gib, value * unit),
        }
    }

    /// Memory that no rank is named for.
    fn own_memory(&mut self) -> &mut Memory {
        let at = self.memory.iter().position(|memory| memory.rank.is_none()).unwrap_or_else(|| {
            self.memory.push(Memory::default());
            self.memory.len() - 1
        });
        &mut self.memory[at]
    }

    /// Takes over what another line says of the same step, where this one says nothing.
    pub(super) fn merge(&mut self, other: Self, limits: &Limits) {
        fn or<T>(slot: &mut Option<T>, other: Option<T>) {
            if slot.is_none() {
                *slot = other;
            }
        }
        or(&mut self.total_steps, other.total_steps);
        or(&mut self.time_us, other.time_us);
        or(&mut self.step_time_s, other.step_time_s);
        or(&mut self.consumed_samples, other.consumed_samples);
        or(&mut self.consumed_tokens, other.consumed_tokens);
        or(&mut self.global_batch, other.global_batch);
        or(&mut self.token_rate, other.token_rate);
        or(&mut self.samples_per_s, other.samples_per_s);
        or(&mut self.tflops_per_device, other.tflops_per_device);
        or(&mut self.loss, other.loss);
        or(&mut self.learning_rate, other.learning_rate);
        or(&mut self.grad_norm, other.grad_norm);
        or(&mut self.skipped_iterations, other.skipped_iterations);
        or(&mut self.nan_iterations, other.nan_iterations);
        for named in other.others {
            if self.others.len() < limits.values && !self.others.iter().any(|own| own.name == named.name) {
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

    /// Adds the memory of a rank, once for every rank; false where there is no more room for it.
    pub(super) fn add_memory(&mut self, memory: Memory, limits: &Limits) -> bool {
        let known = self.memory.iter().position(|own| own.rank == memory.rank);
        match known {
            Some(known) => self.memory[known] = memory,
            None if self.memory.len() < limits.ranks => self.memory.push(memory),
            None => return false,
        }
        true
    }
}
