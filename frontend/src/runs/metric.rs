//! What a log may say of a step, and how it is called.

use api::run::{Quantity, RunPoint};

/// A figure of a step that is drawn over the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Metric {
    /// Time of a step, in s.
    StepTime,
    /// Tokens per second of the whole job.
    Tokens,
    /// Tokens per second of one device.
    TokensPerDevice,
    /// Samples per second of the whole job.
    Samples,
    /// TFLOP/s per device.
    Tflops,
    /// Loss.
    Loss,
    /// Memory of the fullest device, in GiB.
    Memory,
    /// Norm of the gradient.
    GradNorm,
    /// Learning rate.
    LearningRate,
}

impl Metric {
    /// How many there are.
    pub(crate) const COUNT: usize = 9;
    /// All of them, in the order of the page.
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

    /// Name in links.
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

    /// The metric of a name in links.
    pub(crate) fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.id() == id)
    }

    /// Name on the page.
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

    /// Unit behind a value; empty where the title says it.
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

    /// Whether it is shown where nobody chose: the rest is a click away.
    pub(crate) const fn is_usual(self) -> bool {
        !matches!(self, Self::Samples | Self::GradNorm | Self::LearningRate)
    }

    /// Whether a slow step makes it an exception: those are marked and left out of medians.
    pub(crate) const fn follows_step_time(self) -> bool {
        matches!(self, Self::StepTime | Self::Tokens | Self::TokensPerDevice | Self::Samples | Self::Tflops)
    }

    /// What is predicted of it.
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

    /// What a prediction is of.
    pub(crate) const fn of_quantity(quantity: Quantity) -> Self {
        match quantity {
            Quantity::StepTime => Self::StepTime,
            Quantity::TokensPerSecond => Self::Tokens,
            Quantity::TflopsPerDevice => Self::Tflops,
            Quantity::TokensPerSecondPerDevice => Self::TokensPerDevice,
            Quantity::Memory => Self::Memory,
        }
    }

    /// A value with its unit: "1.62 s", "17,900 tokens/s".
    pub(crate) fn text(self, value: f64) -> String {
        match self {
            Self::StepTime => crate::format::seconds(value),
            Self::LearningRate => format!("{value:.3e}"),
            _ if self.unit().is_empty() => crate::format::three_digits(value),
            _ => format!("{}\u{202f}{}", crate::format::three_digits(value), self.unit()),
        }
    }

    /// What a point says of it.
    pub(crate) fn of(self, point: &RunPoint) -> Option<f64> {
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
                assert_eq!(Metric::of_quantity(quantity), metric);
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
