//! Recipes of fp8 products: how values are scaled, and what the conversion of a product's operands reads and writes.

use serde::{Deserialize, Serialize};

use super::{Framework, Precision, Training};
use crate::cluster::Device;
use crate::model::Model;

/// Limit between the bf16 peak of Hopper and those of later devices, in TFLOP/s.
const HOPPER_PEAK: f64 = 1200.0;

/// Scaling of fp8 values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Fp8Recipe {
    /// A scale per tensor, from the largest values of earlier steps. The kernels before a product write fp8.
    Delayed,
    /// A scale per tensor, from its largest value now (current scaling).
    Tensorwise,
    /// A scale per row of each operand.
    Rowwise,
    /// A scale per 1 x 128 values of activations and per 128 x 128 weights.
    Blockwise,
    /// A scale per 32 values (MXFP8).
    Mxfp8,
}

impl Fp8Recipe {
    /// All recipes.
    pub const ALL: [Self; 5] = [Self::Delayed, Self::Tensorwise, Self::Rowwise, Self::Blockwise, Self::Mxfp8];

    /// Returns the stable identifier, as in JSON.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Delayed => "delayed",
            Self::Tensorwise => "tensorwise",
            Self::Rowwise => "rowwise",
            Self::Blockwise => "blockwise",
            Self::Mxfp8 => "mxfp8",
        }
    }

    /// Returns the recipe that a word of a framework names, for example "`current`" or "`float8_rowwise`".
    pub fn named(text: &str) -> Option<Self> {
        let plain: String = text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        let names = [
            ("delayed", Self::Delayed),
            ("fp8ds", Self::Delayed),
            ("fp8cs", Self::Tensorwise),
            ("fp8sc", Self::Blockwise),
            ("mx", Self::Mxfp8),
            ("tensor", Self::Tensorwise),
            ("current", Self::Tensorwise),
            ("rowwise", Self::Rowwise),
            ("perrow", Self::Rowwise),
            ("block", Self::Blockwise),
            ("subchannel", Self::Blockwise),
        ];
        names.into_iter().find(|(name, _)| plain.contains(name)).map(|(_, recipe)| recipe)
    }

    /// Returns the kernels that convert the operands of the three products of a linear layer, in the order forward,
    /// input gradient, weight gradient. With a single copy, no transpose is written.
    pub const fn conversions(self, framework: Framework, has_single_copy: bool) -> [Conversion; 3] {
        const NONE: Conversion = Conversion { kernels: 0.0, left_bytes: 0.0, right_bytes: 0.0 };
        const fn both(kernels: f64, bytes: f64) -> Conversion {
            Conversion { kernels, left_bytes: bytes, right_bytes: bytes }
        }
        /// The gradient is new in the backward; the weight is not.
        const fn left(kernels: f64, bytes: f64) -> Conversion {
            Conversion { kernels, left_bytes: bytes, right_bytes: 0.0 }
        }
        match self {
            Self::Delayed => [NONE; 3],
            // The largest value reads 2 bytes per value; the conversion reads 2 and writes 1. The weight gradient of
            // torchao reuses the values and transposes both operands. Transformer Engine writes values and transpose in
            // one pass.
            Self::Tensorwise if framework.converts_with_torchao() => [both(2.0, 5.0), both(2.0, 5.0), both(2.0, 2.0)],
            Self::Tensorwise if has_single_copy => [both(4.0, 5.0), left(2.0, 5.0), NONE],
            Self::Tensorwise => [both(4.0, 6.0), left(2.0, 6.0), NONE],
            // One pass per operand. Every product reduces along another dimension, so it needs scales of its own.
            Self::Rowwise => [both(2.0, 3.0); 3],
            // One pass writes the values for both directions.
            Self::Blockwise | Self::Mxfp8 => [both(2.0, 4.0), left(1.0, 4.0), NONE],
        }
    }
}

/// Kernels that convert the operands of a product, beside the product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conversion {
    /// Number of kernels.
    pub kernels: f64,
    /// Bytes read and written per value of the left operand: activations or their gradients.
    pub left_bytes: f64,
    /// Bytes read and written per value of the right operand.
    pub right_bytes: f64,
}

impl Framework {
    /// True if torchao converts values to fp8, otherwise Transformer Engine.
    pub const fn converts_with_torchao(self) -> bool {
        matches!(self, Self::Torchtitan | Self::Fsdp | Self::HuggingFace)
    }

    /// Returns the recipe that the framework uses if the job states none: torchao scales each tensor by its largest
    /// value, Transformer Engine by those of earlier steps.
    pub const fn fp8_recipe(self) -> Fp8Recipe {
        match self {
            Self::Torchtitan | Self::Fsdp => Fp8Recipe::Tensorwise,
            Self::Megatron
            | Self::MegatronDeepspeed
            | Self::Nanotron
            | Self::HuggingFace
            | Self::Deepspeed
            | Self::Internevo => Fp8Recipe::Delayed,
        }
    }
}

impl Training {
    /// Returns the recipe of fp8 products, or `None` in another precision.
    pub fn used_recipe(&self) -> Option<Fp8Recipe> {
        (self.precision == Precision::Fp8).then(|| self.fp8_recipe.unwrap_or(self.framework.fp8_recipe()))
    }

    /// Bytes per weight of the layers in a gather: 1 with fp8 weights, otherwise as activations.
    pub fn layer_weight_bytes(&self) -> f64 {
        if self.fp8_weights && self.precision == Precision::Fp8 { 1.0 } else { self.width() }
    }

    /// True if the inputs of fp8 products are stored in fp8 for the weight gradients, as Transformer Engine does. torchao
    /// stores them in bf16 and converts them again.
    pub fn stores_fp8_inputs(&self) -> bool {
        self.precision == Precision::Fp8 && !self.framework.converts_with_torchao()
    }

    /// True if the input of an MLP's activation function is stored in fp8.
    pub fn stores_fp8_activation_input(&self) -> bool {
        self.fp8_activation_input && self.precision == Precision::Fp8
    }

    /// True if fp8 weights have one copy in memory. Tensor cores before Blackwell read the second operand of an fp8 product
    /// in one order only, and scales of rows and blocks differ by direction: then a transposed copy is stored too, and the
    /// memory is that of bf16.
    pub fn has_single_fp8_copy(&self, device: &Device) -> bool {
        let is_scaled_by_tensor = matches!(self.used_recipe(), Some(Fp8Recipe::Delayed | Fp8Recipe::Tensorwise));
        is_scaled_by_tensor && device.peak_tflops > HOPPER_PEAK
    }

    /// Mean bytes per weight of a model. Embeddings and output heads are not in fp8.
    pub fn mean_weight_bytes(&self, model: &Model) -> f64 {
        let (mut layers, mut ends) = (0.0, 0.0);
        for module in &model.modules {
            layers += module.range_parameters(0, module.layers).total() as f64;
            ends += (module.input_parameters() + module.output_parameters()) as f64;
        }
        (layers * self.layer_weight_bytes() + ends * self.width()) / (layers + ends).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_frameworks_name_recipes() {
        for (text, recipe) in [
            ("delayed", Fp8Recipe::Delayed),
            ("current_scaling", Fp8Recipe::Tensorwise),
            ("TENSORWISE", Fp8Recipe::Tensorwise),
            ("rowwise_with_gw_hp", Fp8Recipe::Rowwise),
            ("Float8BlockScaling", Fp8Recipe::Blockwise),
            ("bf16_with_fp8_subchannel_scaling_mixed", Fp8Recipe::Blockwise),
            ("MXFP8BlockScaling", Fp8Recipe::Mxfp8),
            ("mxfp8", Fp8Recipe::Mxfp8),
        ] {
            assert_eq!(Fp8Recipe::named(text), Some(recipe), "{text}");
        }
        assert_eq!(Fp8Recipe::named("hybrid"), None);
        for recipe in Fp8Recipe::ALL {
            assert_eq!(Fp8Recipe::named(recipe.id()), Some(recipe));
        }
    }

    #[test]
    fn another_precision_has_no_recipe() {
        let training = Training { fp8_recipe: Some(Fp8Recipe::Rowwise), fp8_weights: true, ..Training::default() };
        assert_eq!(training.used_recipe(), None);
        assert!((training.layer_weight_bytes() - 2.0).abs() < f64::EPSILON);
        let fp8 = Training { precision: Precision::Fp8, ..training };
        assert_eq!(fp8.used_recipe(), Some(Fp8Recipe::Rowwise));
        assert!((fp8.layer_weight_bytes() - 1.0).abs() < f64::EPSILON);
    }
}
