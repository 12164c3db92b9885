//! Work of a step, from the rates and times of a log.

use super::{DEVICES_TOLERANCE, LoggedJob, is_positive};

/// Why a rate times a step time above the plan says nothing.
pub(super) const ABOVE_BY_CLOCK: &str = "rate x step time is above the plan, but the step time is by the clock and contains time between \
                                         the steps that the rate can leave out, for example the loading of data";

/// Medians over the steps of a rate times the time of the step. If steps differ, the product of the medians is the work of no step.
/// `None` if the log has no rate or no step time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StepProducts {
    /// Samples of the job.
    pub samples: Option<f64>,
    /// Tokens of the job.
    pub tokens: Option<f64>,
    /// Tokens of one device.
    pub tokens_per_device: Option<f64>,
    /// TFLOP of one device.
    pub tflop_per_device: Option<f64>,
}

impl LoggedJob {
    /// Product of the medians of a rate and of the step times, if products per step are not known.
    fn by_median(&self, rate: Option<f64>) -> Option<f64> {
        Some(rate? * self.step_s?)
    }

    /// Returns samples per step, and whether the log states them.
    pub(super) fn samples(&self) -> Option<(f64, bool)> {
        self.global_batch
            .map(|samples| (samples, true))
            .or_else(|| Some((self.per_step.samples.or_else(|| self.by_median(self.samples_per_s))?, false)))
            .filter(|(samples, _)| is_positive(*samples))
    }

    /// Devices of the job as a whole number, if the log states them or prints both rates of tokens. Rates have three digits, so a ratio
    /// near the planned number is that number.
    pub(super) fn devices(&self, planned: f64) -> Option<f64> {
        let ratio = || Some(self.tokens_per_s? / self.tokens_per_s_per_device?);
        let devices = self.devices.or_else(ratio).filter(|devices| is_positive(*devices))?;
        let is_near = |candidate: f64| (devices / candidate - 1.0).abs() <= DEVICES_TOLERANCE;
        if self.devices.is_none() && is_near(planned) {
            return Some(planned);
        }
        Some(devices.round().max(1.0)).filter(|integer| is_near(*integer))
    }

    /// Returns tokens per step, and whether they follow from a rate. A rate per device is multiplied by `devices`. Without a rate,
    /// returns samples times the stated sequence length.
    pub(super) fn tokens(&self, devices: f64) -> Option<(f64, bool)> {
        let of_job = self.per_step.tokens.or_else(|| self.by_median(self.tokens_per_s));
        let of_device = || self.per_step.tokens_per_device.or_else(|| self.by_median(self.tokens_per_s_per_device));
        let by_rate = of_job.or_else(|| Some(of_device()? * devices)).map(|tokens| (tokens, true));
        let by_length = || {
            let (samples, is_stated) = self.samples()?;
            Some((samples * self.sequence_length?, !is_stated))
        };
        by_rate.or_else(by_length).filter(|(tokens, _)| is_positive(*tokens))
    }

    /// Returns the operations of a step on one device.
    pub(super) fn flop_per_device(&self) -> Option<f64> {
        let tflop = self.per_step.tflop_per_device.or_else(|| self.by_median(self.tflops_per_device))?;
        Some(tflop * 1e12)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of 2 s and 8 s with 1,024 tokens: 512 and 128 tokens per second. The product of the medians is 1,600.
    #[test]
    fn work_of_a_step_is_not_the_product_of_medians() {
        let job = LoggedJob { step_s: Some(5.0), tokens_per_s: Some(320.0), ..LoggedJob::default() };
        assert_eq!(job.tokens(4.0), Some((1600.0, true)));
        let per_step = StepProducts { tokens: Some(1024.0), tflop_per_device: Some(3.0), ..StepProducts::default() };
        let job = LoggedJob { per_step, tflops_per_device: Some(1.0), ..job };
        assert_eq!((job.tokens(4.0), job.flop_per_device()), (Some((1024.0, true)), Some(3e12)));
        let per_step = StepProducts { tokens_per_device: Some(256.0), ..StepProducts::default() };
        let job = LoggedJob { per_step, tokens_per_s_per_device: Some(80.0), tokens_per_s: None, ..job };
        assert_eq!(job.tokens(4.0), Some((1024.0, true)));
    }
}
