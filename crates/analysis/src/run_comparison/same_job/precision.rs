//! Number format of the matrix products, as logs state it.

use super::{Agreement, JobCheck, JobQuantity, LoggedJob, PlannedJob, agreement, consequence};
use planscope_core::training::Precision;

/// Number format of weights and activations outside fp8 products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseFormat {
    /// bfloat16.
    Bf16,
    /// float16.
    Fp16,
    /// One of the two.
    Half,
    /// float32, products in TF32 or fp32.
    Fp32,
}

/// What a log states of the format of its products.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StatedPrecision {
    /// Whether products of linear layers are in fp8.
    pub is_fp8: Option<bool>,
    /// The format otherwise.
    pub base: Option<BaseFormat>,
}

impl StatedPrecision {
    /// These facts; those that are absent come from `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { is_fp8: self.is_fp8.or(other.is_fp8), base: self.base.or(other.base) }
    }

    /// Bits of an element of a product, and the name of the format.
    fn described(self) -> Option<(f64, &'static str)> {
        match (self.is_fp8, self.base) {
            (Some(true), _) => Some((8.0, "fp8")),
            (_, Some(BaseFormat::Bf16)) => Some((16.0, "bf16")),
            (_, Some(BaseFormat::Fp16)) => Some((16.0, "fp16")),
            (_, Some(BaseFormat::Half)) => Some((16.0, "bf16 or fp16")),
            (_, Some(BaseFormat::Fp32)) => Some((32.0, "fp32")),
            (Some(false), None) => Some((16.0, "not fp8")),
            (None, None) => None,
        }
    }

    /// Whether a plan has this format; `None` where the statement is too vague.
    fn is(self, planned: Precision) -> Option<bool> {
        let matches_base = |base: BaseFormat| match planned {
            Precision::Bf16 => base != BaseFormat::Fp32,
            Precision::Fp32 => base == BaseFormat::Fp32,
            Precision::Fp8 => false,
        };
        match (self.is_fp8, self.base, planned) {
            (Some(true), _, _) => Some(planned == Precision::Fp8),
            (Some(false), _, Precision::Fp8) => Some(false),
            // Programs with fp8 products state bf16 for everything else.
            (None, _, Precision::Fp8) => None,
            (_, base, _) => base.map(matches_base),
        }
    }
}

/// The check of the format of products.
pub(super) fn check(log: &LoggedJob, plan: &PlannedJob) -> JobCheck {
    let (planned, planned_name) = match plan.precision {
        Precision::Bf16 => (16.0, "bf16"),
        Precision::Fp8 => (8.0, "fp8"),
        Precision::Fp32 => (32.0, "fp32"),
    };
    let described = log.precision.described();
    let Some(agrees) = log.precision.is(plan.precision) else {
        let missing = match described {
            Some((_, name)) => format!("the log states {name}, which leaves the format of the products open"),
            None => "the log states no number format".to_owned(),
        };
        let quantity = JobQuantity::ProductBits;
        return JobCheck::new(quantity, Agreement::NotChecked, (None, planned), missing, String::new());
    };
    let advice = "Products of another format have another peak: set the precision of the scenario to that of the run.";
    let (bits, name) = described.unwrap_or_default();
    JobCheck {
        measured_name: name.to_owned(),
        planned_name: planned_name.to_owned(),
        ..JobCheck::new(
            JobQuantity::ProductBits,
            agreement(agrees),
            (Some(bits), planned),
            "stated by the log".to_owned(),
            consequence(agrees, advice),
        )
    }
}
