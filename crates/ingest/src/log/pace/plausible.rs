//! Corrects metrics that count tokens or all devices, and removes impossible ones.

use super::Job;
use crate::log::point::{Memory, Named, Point};
use crate::log::report::Report;

/// Names of the number of devices.
const DEVICES: [&str; 9] = [
    "world_size",
    "world-size",
    "world size",
    "num_gpus",
    "n_gpus",
    "num_devices",
    "n_devices",
    "num_processes",
    "gpus",
];
/// Names of the sequence length.
const LENGTHS: [&str; 7] =
    ["seq_length", "seq-length", "sequence length", "sequence_length", "seq_len", "max_seq_len", "max_seq_length"];
/// Minimum tokens per step that no training has. 2^26 tokens occur.
const MIN_TOKENS: u64 = 1 << 27;
/// Ratio of a token count to another one that counts as equal.
const NEAR: f64 = 1.25;
/// Maximum TFLOP/s of one device with 16 bits. Devices with 8 bits reach twice this value.
const MAX_TFLOPS: f64 = 2500.0;
/// Maximum memory of one device in GiB.
const MAX_MEMORY_GIB: f64 = 300.0;

/// Returns the batch in sequences if a batch counts tokens: by the token rate, or if it would
/// otherwise be impossible.
pub(in crate::log) fn sequences(batch: u64, sequence: u64, tokens: Option<f64>) -> Option<u64> {
    let is_near = |tokens: f64| (1.0 / NEAR..=NEAR).contains(&(tokens / batch as f64));
    let is_multiple = sequence > 1 && batch >= sequence && batch.is_multiple_of(sequence);
    let is_tokens = tokens.map_or(batch.saturating_mul(sequence) >= MIN_TOKENS, is_near);
    (is_multiple && is_tokens).then_some(batch / sequence)
}

/// Corrects a point. `job` is the job size in lines before the steps.
pub(super) fn correct(point: &mut Point, job: Job, report: &mut Report) {
    let stated = |names: &[&str]| {
        let found =
            point.others.iter().find(|other| names.iter().any(|name| name.eq_ignore_ascii_case(&other.name)))?;
        (found.value.fract() == 0.0 && (1.0..1e7).contains(&found.value)).then_some(found.value as u64)
    };
    let devices = stated(&DEVICES).or(job.devices);
    let sequence = stated(&LENGTHS).or(job.sequence);
    let rate = point
        .tokens_per_s
        .or_else(|| Some(point.tokens_per_s_per_device? * devices? as f64))
        .filter(|&rate| rate > 0.0);
    let tokens = rate.zip(point.step_time_s).map(|(rate, seconds)| rate * seconds);
    let batch = point.global_batch.zip(sequence).and_then(|(batch, sequence)| sequences(batch, sequence, tokens));
    if batch.is_some() {
        point.global_batch = batch;
        report.assume("the global batch size counts tokens: it is divided by the sequence length");
    }
    flops(point, devices, report);
    let mut has_sum = false;
    for memory in &mut point.memory {
        has_sum |= divide_memory(memory, devices, report);
    }
    if has_sum {
        report.assume("the memory is above that of any device: it is read as the sum over all devices and divided by their number");
    }
    point.memory.retain(|memory| !memory.is_empty());
}

fn flops(point: &mut Point, devices: Option<u64>, report: &mut Report) {
    let Some(rate) = point.tflops_per_device.filter(|&rate| rate > MAX_TFLOPS) else { return };
    let per_device = devices.filter(|&devices| devices > 1).map(|devices| rate / devices as f64);
    if let Some(per_device) = per_device.filter(|&rate| rate <= MAX_TFLOPS) {
        point.tflops_per_device = Some(per_device);
        report.assume(
            "the TFLOP/s are above the peak of any device: they are read as the sum over all devices and divided by their number",
        );
    } else if rate > 2.0 * MAX_TFLOPS {
        point.tflops_per_device = None;
        point.others.push(Named { name: "TFLOP/s above any device".to_owned(), value: rate });
        report.assume(
            "the TFLOP/s are above the peak of any device and are not compared: they may be the sum over all devices, whose number \
             the log does not state",
        );
    }
}

/// Divides memory summed over the devices. Returns whether a value was divided. Values that stay
/// impossible are removed.
fn divide_memory(memory: &mut Memory, devices: Option<u64>, report: &mut Report) -> bool {
    let mut has_sum = false;
    let fields = [
        &mut memory.allocated_gib,
        &mut memory.max_allocated_gib,
        &mut memory.reserved_gib,
        &mut memory.max_reserved_gib,
        &mut memory.device_gib,
    ];
    for field in fields {
        let Some(sum) = field.filter(|&sum| sum > MAX_MEMORY_GIB) else { continue };
        let share = devices.map(|devices| sum / devices as f64).filter(|&share| share <= MAX_MEMORY_GIB);
        has_sum |= share.is_some();
        if share.is_none() {
            report.assume(
                "the memory is above that of any device and is not compared: it may be the sum over all devices, whose number the log \
                 does not state",
            );
        }
        *field = share;
    }
    has_sum
}

#[cfg(test)]
mod tests {
    use super::sequences;

    #[test]
    fn batches_of_sequences_stay() {
        // BLOOM, DeepSeek-V3 and a batch of 67 million tokens.
        for (batch, sequence) in [(2048, 2048), (15_360, 4096), (16_384, 4096), (512, 4096), (4096, 1)] {
            assert_eq!(sequences(batch, sequence, None), None, "{batch} {sequence}");
        }
        assert_eq!(sequences(4_194_304, 4096, None), Some(1024));
        assert_eq!(sequences(524_288, 1024, None), Some(512));
        assert_eq!(sequences(65_536, 1024, Some(66_000.0)), Some(64));
        assert_eq!(sequences(2048, 2048, Some(4_200_000.0)), None);
        assert_eq!(sequences(524_288, 1024, Some(5.3e8)), None);
    }
}
