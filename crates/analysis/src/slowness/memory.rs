//! Causes and the measured memory of a device.

use super::Slowness;
use planscope_plan::certainty::Interval;

/// A memory this far outside the 80 % interval is not an error of the prediction.
const TOLERANCE: f64 = 1.1;

impl Slowness {
    /// Removes the causes whose memory need does not agree with `measured_gib`. `band` is the 80 % interval of a peak relative to its
    /// prediction. Allocated memory has no lower limit, because the need contains the cache of the allocator.
    pub fn contradict_by_memory(&mut self, measured_gib: f64, band: Interval, is_reserved: bool) {
        let need_gib = |cause: &super::Cause| {
            cause.memory_gib.filter(|gib| {
                measured_gib > TOLERANCE * band.high * gib || (is_reserved && measured_gib * TOLERANCE < band.low * gib)
            })
        };
        let (contradicted, others) =
            std::mem::take(&mut self.causes).into_iter().partition(|cause| need_gib(cause).is_some());
        self.causes = others;
        let contradicted: Vec<super::Cause> = contradicted;
        self.contradicted_by_memory.extend(
            contradicted.iter().filter_map(|it| Some(format!("{} ({:.1}\u{202f}GiB)", it.title, need_gib(it)?))),
        );
    }
}
