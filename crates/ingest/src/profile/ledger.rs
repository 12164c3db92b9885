//! Collects samples and counts rejected values by reason.

use planner::calibration::Sample;
use planner::cost::kernel::Kernel;

use super::refused::Rejection;
use super::{Format, Kinds, MAX_VALUES, Profile, ProfileError, Refusal, Report, plausible};

#[derive(Debug)]
pub(super) struct Ledger {
    format: Format,
    samples: Vec<Sample>,
    report: Report,
}

impl Ledger {
    pub(super) fn new(format: Format) -> Self {
        Self { format, samples: Vec::new(), report: Report::default() }
    }

    pub(super) const fn format(&self) -> &'static str {
        self.format.name()
    }

    /// Records an assumption once.
    pub(super) fn assume(&mut self, assumption: impl Into<String>) {
        let assumption = assumption.into();
        if !self.report.assumptions.contains(&assumption) {
            self.report.assumptions.push(assumption);
        }
    }

    /// Adds a value as a sample, unless it is invalid or exceeds the capability of any device.
    pub(super) fn take(
        &mut self,
        location: impl Fn() -> String,
        value: Result<Sample, Rejection>,
    ) -> Result<(), ProfileError> {
        if self.report.rows >= MAX_VALUES as u64 {
            return Err(ProfileError::TooManyValues);
        }
        self.report.rows += 1;
        match value.and_then(|sample| plausible::check(sample, &location)) {
            Ok(sample) => {
                self.report.used += 1;
                *self.kind(&sample.kernel) += 1;
                self.samples.push(sample);
            }
            Err(Rejection { reason, first }) => {
                match self.report.refused.iter_mut().find(|refusal| refusal.reason == reason) {
                    Some(refusal) => refusal.count += 1,
                    None => self.report.refused.push(Refusal { reason: reason.to_owned(), count: 1, first }),
                }
            }
        }
        Ok(())
    }

    /// Counts a valid value that is not for a fit.
    pub(super) fn leave_out(&mut self, kind: impl Into<String>) -> Result<(), ProfileError> {
        if self.report.rows >= MAX_VALUES as u64 {
            return Err(ProfileError::TooManyValues);
        }
        self.report.rows += 1;
        *self.report.unfitted.entry(kind.into()).or_default() += 1;
        Ok(())
    }

    /// Returns the profile if it contains a usable value.
    pub(super) fn finish(mut self, device: Option<String>) -> Result<Profile, ProfileError> {
        let format = self.format();
        match (self.report.rows, self.report.used) {
            (0, _) => return Err(ProfileError::NoValues { format }),
            (_, 0) => return Err(ProfileError::NothingUsable { format, report: Box::new(self.report) }),
            (_, 1) => self.assume("1 row only: it says nothing of other shapes"),
            _ => {}
        }
        Ok(Profile { format: self.format, device, samples: self.samples, report: self.report })
    }

    fn kind(&mut self, kernel: &Kernel) -> &mut u64 {
        let Kinds { matmul, attention, streaming, collective } = &mut self.report.by_kind;
        match kernel {
            Kernel::MatMul(_) => matmul,
            Kernel::Attention(_) => attention,
            Kernel::Streaming(_) => streaming,
            Kernel::Collective(_) => collective,
        }
    }
}
