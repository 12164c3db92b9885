//! Step metrics that a log may contain.

use api::run::{Quantity, RunPoint};

/// Metric with a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Metric {
    /// Step time in s.
    StepTime,
    /// Tokens per second for the job.
    Tokens,
    /// Tokens per second per device.
    TokensPerDevice,
    /// Samples per second for the job.
    Samples,
    /// TFLOP/s per device.
    Tflops,
    Loss,
    /// Maximum memory over the devices in GiB.
    Memory,
    /// Gradient norm.
    GradNorm,
    LearningRate,
}

impl Metric {
    /// Number of metrics.
    pub(crate) const COUNT: usize = 9;
    /// All metrics in display order.
    pub(crate) const ALL: [Self; Self::COUNT] = [
        Self::StepTime,
        Self::Tokens,
        Self::TokensPerDevice,
        Self::Tflops,
        Self::Loss,
        Self::Memory,
        Self::Samples,
        Self::GradNorm,
        Self::LearningRate,
    ];

    /// Identifier in links.
    pub(crate) const fn id(self) -> &'static str {
        match self {
            Self::StepTime => "step",
            Self::Tokens => "tokens",
            Self::TokensPerDevice => "tokens-device",
            Self::Samples => "samples",
            Self::Tflops => "tflops",
            Self::Loss => "loss",
            Self::Memory => "memory",
            Self::GradNorm => "grad-norm",
            Self::LearningRate => "learning-rate",
        }
    }

    /// Parses an identifier from a link.
    pub(crate) fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.id() == id)
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::StepTime => "Step time",
            Self::Tokens => "Tokens per second",
            Self::TokensPerDevice => "Tokens/s per GPU",
            Self::Samples => "Samples per second",
            Self::Tflops => "TFLOP/s per GPU",
            Self::Loss => "Loss",
            Self::Memory => "Memory",
            Self::GradNorm => "Gradient norm",
            Self::LearningRate => "Learning rate",
        }
    }

    /// Unit suffix. Empty if the title contains the unit.
    pub(crate) const fn unit(self) -> &'static str {
        match self {
            Self::StepTime => "s",
            Self::Memory => "GiB",
            Self::Tflops => "TFLOP/s",
            Self::Tokens | Self::TokensPerDevice => "tokens/s",
            Self::Samples => "samples/s",
            Self::Loss | Self::GradNorm | Self::LearningRate => "",
        }
    }

    /// True if the metric is shown by default.
    pub(crate) const fn is_usual(self) -> bool {
        !matches!(self, Self::Samples | Self::GradNorm | Self::LearningRate)
    }

    /// True if slow steps are outliers for this metric. Outliers are marked and excluded from
    /// medians.
    pub(crate) const fn follows_step_time(self) -> bool {
        matches!(self, Self::StepTime | Self::Tokens | Self::TokensPerDevice | Self::Samples | Self::Tflops)
    }

    /// Predicted quantity for this metric.
    pub(crate) const fn quantity(self) -> Option<Quantity> {
        match self {
            Self::StepTime => Some(Quantity::StepTime),
            Self::Tokens => Some(Quantity::TokensPerSecond),
            Self::Tflops => Some(Quantity::TflopsPerDevice),
            Self::Memory => Some(Quantity::Memory),
            Self::TokensPerDevice => Some(Quantity::TokensPerSecondPerDevice),
            Self::Samples | Self::Loss | Self::GradNorm | Self::LearningRate => None,
        }
    }

    /// Metric for a predicted quantity.
    pub(crate) const fn from_quantity(quantity: Quantity) -> Self {
        match quantity {
            Quantity::StepTime => Self::StepTime,
            Quantity::TokensPerSecond => Self::Tokens,
            Quantity::TflopsPerDevice => Self::Tflops,
            Quantity::TokensPerSecondPerDevice => Self::TokensPerDevice,
            Quantity::Memory => Self::Memory,
        }
    }

    /// Formats a value with unit: "1.62 s", "17,900 tokens/s".
    pub(crate) fn text(self, value: f64) -> String {
        match self {
            Self::StepTime => crate::format::seconds(value),
            Self::LearningRate => format!("{value:.3e}"),
            _ if self.unit().is_empty() => crate::format::three_digits(value),
            _ => format!("{}\u{202f}{}", crate::format::three_digits(value), self.unit()),
        }
    }

    /// Returns the value in a point.
    pub(crate) fn value_at(self, point: &RunPoint) -> Option<f64> {
        match self {
            Self::StepTime => point.step_s,
            Self::Tokens => point.tokens_per_s,
            Self::TokensPerDevice => point.tokens_per_s_per_device,
            Self::Samples => point.samples_per_s,
            Self::Tflops => point.tflops_per_device,
            Self::Loss => point.loss,
            Self::Memory => point.memory_gib,
            Self::GradNorm => point.grad_norm,
            Self::LearningRate => point.learning_rate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_links_lead_back() {
        for (index, metric) in Metric::ALL.into_iter().enumerate() {
            assert_eq!(Metric::from_id(metric.id()), Some(metric));
            assert!(Metric::ALL[..index].iter().all(|other| *other != metric), "each stands once");
            if let Some(quantity) = metric.quantity() {
                assert_eq!(Metric::from_quantity(quantity), metric);
            }
        }
        assert_eq!(Metric::from_id("nothing"), None);
    }

    #[test]
    fn values_carry_their_units() {
        let plain = |metric: Metric, value| metric.text(value).replace('\u{202f}', " ");
        assert_eq!(plain(Metric::StepTime, 1.6234), "1.62 s");
        assert_eq!(plain(Metric::Memory, 71.32), "71.3 GiB");
        assert_eq!(plain(Metric::Loss, 2.3456), "2.35");
        assert_eq!(plain(Metric::LearningRate, 1.5e-4), "1.500e-4");
    }
}
