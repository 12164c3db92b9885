//! Maps metric names used by trainers to metrics.

use super::{Measure, Metric};
use crate::log::quantity::{Dimension, name_and_unit, unit};

/// A metric whose unit is not clear from name or value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::log) enum Unclear {
    /// Rate in tokens, samples or operations.
    Throughput,
    /// Tokens per second, either per device or for the job.
    Tokens,
    /// Time in seconds, milliseconds or microseconds.
    StepTime,
    /// Time since the start of the run, or of a step.
    Elapsed,
}

/// Returns the metric for a name without a unit.
pub(in crate::log) fn unclear(name: &str) -> Option<Unclear> {
    let lower = name.to_ascii_lowercase();
    match plain(&lower) {
        "throughput" => Some(Unclear::Throughput),
        "tps" | "wps" => Some(Unclear::Tokens),
        base if STEP_TIMES.contains(&base) => Some(Unclear::StepTime),
        "elapsed" | "wall_time" | "walltime" | "wall time" | "wall_clock_time" | "time_elapsed" | "total_time" => {
            Some(Unclear::Elapsed)
        }
        _ => None,
    }
}

/// Returns whether a name without a unit is a step time.
pub(in crate::log) fn is_step_time(name: &str) -> bool {
    unclear(name) == Some(Unclear::StepTime)
}

/// Step time names. A unit may follow.
const STEP_TIMES: [&str; 23] = [
    "dt",
    "curr_iter_time",
    "elapsed_time_per_iteration",
    "elapsed time per iteration",
    "step_latency",
    "step_wall_time",
    "iter_duration",
    "iteration_duration",
    "batch_duration",
    "time_per_iter",
    "step_duration",
    "step duration",
    "step_time",
    "step time",
    "step-time",
    "iter_time",
    "iter time",
    "iteration_time",
    "iteration time",
    "time_per_step",
    "time per step",
    "time_per_iteration",
    "batch_time",
];

/// Prefixes added by TensorBoard, Weights & Biases and trainers.
const GROUPS: [&str; 9] =
    ["train/", "train_", "training/", "perf/", "performance/", "speed/", "timing/", "metrics/", "stats/"];

/// Removes up to two prefixes.
fn plain(lower: &str) -> &str {
    let without = |name| GROUPS.iter().find_map(|group| str::strip_prefix(name, group)).unwrap_or(name);
    without(without(lower))
}

/// Returns the metric for a name, ignoring case.
pub(in crate::log) fn measure(name: &str) -> Option<Measure> {
    let lower = name.to_ascii_lowercase();
    let plain = plain(&lower);
    by_name(plain)
        .map(Measure::from_metric)
        .or_else(|| {
            (plain == "throughput/device/flops_per_sec" || plain == "flops_per_sec_per_device").then_some(FLOPS)
        })
        .or_else(|| by_terms(plain))
        .or_else(|| by_steps(plain))
        .or_else(|| by_unit(plain))
}

/// FLOP/s per device without a unit prefix.
const FLOPS: Measure = Measure { metric: Metric::Flops, per: 1e12 };

fn by_name(plain: &str) -> Option<Metric> {
    use Metric::{
        ConsumedSamples, ConsumedTokens, DeviceTokenRate, Elapsed, GlobalBatch, GradNorm, LearningRate, Loss, Mfu, Nan,
        RunStepRate, RunStepTime, SamplesPerSecond, Skipped, StepRate, StepTime, TrainingTime,
    };
    Some(match plain {
        "loss"
        | "lm loss"
        | "lm-loss"
        | "lm_loss"
        | "reduced_train_loss"
        | "training_loss"
        | "training loss"
        | "train loss"
        | "reduced_loss"
        | "crossentropyloss"
        | "ce loss"
        | "loss_step"
        | "loss/train"
        | "loss/train/total"
        | "loss/out"
        | "loss_metrics/global_avg_loss"
        | "lm-loss-training/lm loss" => Loss,
        "learning rate"
        | "learning_rate"
        | "learning-rate"
        | "lr"
        | "optim/lr"
        | "optim/lr (group 0)"
        | "learning-rate/learning-rate" => LearningRate,
        "grad norm"
        | "grad_norm"
        | "grad-norm"
        | "gradient_norm"
        | "gnorm"
        | "grad-norm/grad-norm"
        | "optim/total_grad_norm"
        | "optim/total grad norm" => GradNorm,
        "global batch size" | "global_batch_size" | "global-batch-size" | "batch-size" | "batch-size/batch-size" => {
            GlobalBatch
        }
        "consumed samples" | "consumed_samples" | "consumed-samples" => ConsumedSamples,
        "consumed tokens"
        | "consumed_tokens"
        | "consumed-tokens"
        | "num_input_tokens_seen"
        | "total_tokens"
        | "throughput/total_tokens" => ConsumedTokens,
        // Megatron-LM, NeMo and verl use seconds for these names.
        "iteration-time"
        | "iteration-time/iteration-time"
        | "train_step_timing"
        | "step_timing"
        | "timing_s/step"
        | "throughput/duration"
        | "time_metrics/end_to_end(s)"
        | "s/it"
        | "s/iter"
        | "s/step"
        | "sec/it"
        | "sec/iter"
        | "sec/step"
        | "sec_per_step"
        | "seconds_per_step"
        | "sec_per_iter"
        // Runtimes in dicts of Hugging Face trainers are in seconds.
        | "step_runtime" => StepTime,
        "timing_s/update_actor" => TrainingTime,
        "steps_per_second"
        | "steps_per_sec"
        | "steps/s"
        | "steps/sec"
        | "it/s"
        | "iter/s"
        | "ups"
        | "throughput/batches_per_sec"
        | "throughput/device/batches_per_second"
        | "throughput/device/bps" => StepRate,
        "speed(iter/s)" => RunStepRate,
        "speed(s/it)" | "speed(s/iter)" => RunStepTime,
        "elapsed_s" => Elapsed,
        "mfu" | "throughput/mfu" => Mfu,
        "throughput(tps)"
        | "tokens/train_per_sec_per_gpu"
        | "tokens per gpu per second (tgs)"
        | "tokens per gpu (tokens/s/gpu)"
        | "throughput/device/tps"
        | "tgs" => DeviceTokenRate,
        "currsamplespersec" => SamplesPerSecond,
        "number of skipped iterations" | "skipped" => Skipped,
        "number of nan iterations" => Nan,
        _ => return None,
    })
}

/// Parses rate names in any notation by words: `tokens/s/gpu`, `samples_per_sec`, `TFLOPs per GPU`.
/// An additional word, such as `eval`, makes it a different metric.
fn by_terms(plain: &str) -> Option<Measure> {
    let is_filler = |word: &str| matches!(word, "" | "per" | "throughput" | "step" | "model");
    let terms: Vec<&str> = plain.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !is_filler(word)).collect();
    let is_device = |word: &&&str| matches!(**word, "gpu" | "device" | "npu" | "tpu" | "chip");
    let devices = terms.iter().filter(is_device).count();
    let rest: Vec<&str> = terms.iter().filter(|word| !is_device(word)).copied().collect();
    let (metric, per) = match (&rest[..], devices) {
        (["tflops" | "tflop"] | ["tflops" | "tflop", "s" | "sec" | "second"], _) => (Metric::Flops, 1.0),
        ([count, "s" | "sec" | "second"], 0 | 1) => match (*count, devices) {
            ("tokens" | "token" | "tok" | "toks", 0) => (Metric::TokenRate, 1.0),
            ("tokens" | "token" | "tok" | "toks", _) => (Metric::DeviceTokenRate, 1.0),
            ("ktokens" | "ktok" | "ktoks", 0) => (Metric::TokenRate, 1e-3),
            ("ktokens" | "ktok" | "ktoks", _) => (Metric::DeviceTokenRate, 1e-3),
            ("samples" | "sample", 0) => (Metric::SamplesPerSecond, 1.0),
            _ => return None,
        },
        _ => return None,
    };
    Some(Measure { metric, per })
}

/// Parses steps per time (`iters_per_sec`, `it/min`) and time per step (`ms_per_step`).
fn by_steps(plain: &str) -> Option<Measure> {
    const STEPS: [&str; 9] = ["it", "its", "iter", "iters", "iteration", "iterations", "step", "steps", "batch"];
    let (above, below) = ["/", "_per_", " per ", "-per-"].into_iter().find_map(|per| plain.split_once(per))?;
    let (above, below) = (above.trim(), below.trim());
    let is_steps = |word: &str| STEPS.contains(&word) || matches!(word, "batches" | "updates");
    if let (true, Some((Dimension::Time, per))) = (is_steps(above), unit(below)) {
        // `step/ms` can be a time in the group `step`.
        return (per <= 1.0).then_some(Measure { metric: Metric::StepRate, per: 1.0 / per });
    }
    match unit(above)? {
        (Dimension::Time, per) if is_steps(below) => Some(Measure { metric: Metric::StepTime, per }),
        _ => None,
    }
}

/// Parses names with a unit suffix.
fn by_unit(plain: &str) -> Option<Measure> {
    let (base, found) = name_and_unit(plain);
    let (dimension, per) = unit(found?)?;
    let metric = match (base, dimension) {
        (base, Dimension::Time) if STEP_TIMES.contains(&base) => Metric::StepTime,
        // `step_min` can be a minimum.
        ("step" | "iter" | "iteration", Dimension::Time) if per >= 1.0 => Metric::StepTime,
        (
            "elapsed time per iteration"
            | "elapsed_time_per_iteration"
            | "train_step_timing"
            | "step_timing"
            | "timing"
            | "iteration-time",
            Dimension::Time,
        ) => Metric::StepTime,
        ("elapsed" | "elapsed time" | "elapsed_time" | "time_elapsed", Dimension::Time) => Metric::Elapsed,
        (
            "throughput per gpu" | "compute per gpu" | "approx flops per gpu" | "throughput" | "tflops",
            Dimension::Flops,
        ) => Metric::Flops,
        ("mfu" | "perf/mfu", Dimension::Share) => Metric::Mfu,
        (base, Dimension::Memory) => memory(base)?,
        _ => return None,
    };
    Some(Measure { metric, per })
}

/// Parses memory names by words: `mem-max-allocated`, `memory/device_reserved`,
/// `step_peak_memory_active`.
fn memory(base: &str) -> Option<Metric> {
    let terms: Vec<&str> = base.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let has = |wanted: &[&str]| terms.iter().any(|word| wanted.contains(word));
    if has(&["cpu", "host", "total", "free", "available", "usage", "delta", "eval", "val"]) {
        return None;
    }
    let is_peak = has(&["max", "peak"]);
    // ms-swift prints peak reserved memory as `memory`.
    Some(if matches!(terms[..], ["memory"]) {
        Metric::MaxReserved
    } else if has(&["reserved", "cached"]) {
        if is_peak { Metric::MaxReserved } else { Metric::Reserved }
    } else if has(&["allocated", "alloc", "active"]) {
        if is_peak { Metric::MaxAllocated } else { Metric::Allocated }
    } else if is_peak && has(&["memory", "mem"]) {
        Metric::MaxAllocated
    } else {
        return None;
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_in_every_notation() {
        for (name, metric) in [
            ("tokens/s/gpu", Some(Metric::DeviceTokenRate)),
            ("tok/s/gpu", Some(Metric::DeviceTokenRate)),
            ("tokens/train_per_sec_per_gpu", Some(Metric::DeviceTokenRate)),
            ("tokens_per_gpu_per_second", Some(Metric::DeviceTokenRate)),
            ("throughput/device/tokens_per_sec", Some(Metric::DeviceTokenRate)),
            ("perf/tokens_per_sec", Some(Metric::TokenRate)),
            ("Throughput (tokens/s)", Some(Metric::TokenRate)),
            ("samples-per-second", Some(Metric::SamplesPerSecond)),
            ("TFLOPs/s/GPU", Some(Metric::Flops)),
            ("model_tflops_per_gpu", Some(Metric::Flops)),
            ("perf/step_time_ms", Some(Metric::StepTime)),
            ("train_step_runtime", Some(Metric::StepTime)),
            ("train_runtime", None),
            ("memory/max_active (GiB)", Some(Metric::MaxAllocated)),
            ("memory/device_reserved (GiB)", Some(Metric::Reserved)),
            ("mem-reserved-bytes", Some(Metric::Reserved)),
            ("cpu_memory_allocated_gb", None),
            ("eval/tokens_per_second", None),
            ("rollout/tokens_per_second", None),
            ("hardware_tflops_per_gpu", None),
            ("tokens_per_step", None),
            ("samples/s/gpu", None),
        ] {
            assert_eq!(measure(name).map(|measure| measure.metric), metric, "{name}");
        }
        assert_eq!(measure("throughput (ktok/s)").map(|measure| measure.per), Some(1e-3));
    }
}
