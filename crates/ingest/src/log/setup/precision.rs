//! Parses the number format of matrix products.

use planner::run_comparison::{BaseFormat, StatedPrecision};

use super::words::{flag, values, word};

/// Keys for the fp8 format.
const FP8: [&str; 4] = ["fp8", "fp8_format", "fp8-format", "config param quantization"];
const BF16: [&str; 3] = ["bf16", "bfloat16_enabled", "bf16_enabled"];
const FP16: [&str; 2] = ["fp16", "fp16_enabled"];
/// Keys before a format name.
const FORMATS: [&str; 7] = [
    "params_dtype",
    "compute dtype",
    "mixed precision type",
    "mixed_precision",
    "mixed_precision_param",
    "precision",
    "config param dtype",
];
/// Formats by name prefix.
const NAMES: [(&str, BaseFormat); 8] = [
    ("bf16", BaseFormat::Bf16),
    ("bfloat16", BaseFormat::Bf16),
    ("fp16", BaseFormat::Fp16),
    ("float16", BaseFormat::Fp16),
    ("16-mixed", BaseFormat::Fp16),
    ("fp32", BaseFormat::Fp32),
    ("float32", BaseFormat::Fp32),
    ("32-true", BaseFormat::Fp32),
];
/// Sentences printed by torchtitan, Lightning and the Hugging Face trainer.
const SENTENCES: [(&str, BaseFormat); 3] = [
    ("using bfloat16 automatic mixed precision", BaseFormat::Bf16),
    ("using 16bit automatic mixed precision", BaseFormat::Fp16),
    ("half precision backend", BaseFormat::Half),
];

/// Returns the format of products in a lower-case line.
pub(super) fn read(line: &str) -> StatedPrecision {
    let formats = || values(line, &FORMATS).map(|text| text.strip_prefix("torch.").unwrap_or(text));
    let named = formats().find_map(|text| NAMES.into_iter().find(|(name, _)| text.starts_with(name)));
    let sentence = || SENTENCES.into_iter().find(|(phrase, _)| line.contains(phrase));
    let base = match (flag(line, &BF16), flag(line, &FP16)) {
        (Some(true), _) => Some(BaseFormat::Bf16),
        (_, Some(true)) => Some(BaseFormat::Fp16),
        _ => named.or_else(sentence).map(|(_, base)| base),
    };
    let is_fp8 = if formats().any(|text| text.starts_with("fp8")) { Some(true) } else { fp8(line) };
    StatedPrecision { is_fp8, base }
}

/// Returns whether products use fp8, from the format name or from torchtitan's converter output.
fn fp8(line: &str) -> Option<bool> {
    let is_converter = ["float8", "mxfp8", "mxlinear"].iter().any(|name| line.contains(name));
    if is_converter && (line.contains("training active") || line.contains("swapped to")) {
        return Some(true);
    }
    match word(line, &FP8)? {
        "hybrid" | "e4m3" | "e5m2" | "true" => Some(true),
        // MaxText: `quantization: fp8` and several variants.
        name if name.starts_with("fp8") => Some(true),
        "none" | "false" => Some(false),
        _ => None,
    }
}
