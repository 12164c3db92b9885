//! The page docs/measurements.md.

use std::fmt::Write;
use std::path::Path;

use anyhow::Context;
use planner::calibration::PartReport;

use super::device::Device;
use super::fitted::{Calibrated, counts};
use super::{kernels, kinds, layers, rates, runtime};

const INTRODUCTION: &str = "\
# Measured devices

Own measurements with `planscope measure`, and what the simulator predicts for them. `cargo xtask measurements` writes this page from \
the tables in crates/accuracy/measurements (licence: MIT OR Apache-2.0, as the project). No preset and no constant of the model was changed \
for it.

Errors are predicted / measured - 1 in percent: positive is too slow. *Preset* are the constants of the device preset, *calibrated* \
those after `planscope calibrate` on the operators of the same device. Operators are timed in bursts, and both predict bursts: the \
factor `sustained` is 1. For layers and steps the columns without *burst* include that factor, as plans do. Operators are fitted: their \
calibrated errors are residuals. **Layers, training steps and memory are never fitted:** they validate.

Times are medians after a cache flush (products, attention) or of calls with rotating operands. One device, one node; no collectives.
";

/// Returns the page for the devices in a folder, one subfolder each, with `remarks.md` first.
///
/// # Errors
/// A table is missing or malformed, or the planner rejects a row.
pub fn page(folder: &Path) -> anyhow::Result<String> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut folders = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    folders.retain(|path| path.is_dir());
    folders.sort();
    let remarks = folder.join("remarks.md");
    let remarks = std::fs::read_to_string(&remarks).with_context(|| format!("cannot read {}", remarks.display()))?;
    let mut text = format!("{INTRODUCTION}\n{remarks}");
    for path in &folders {
        device(&mut text, &Device::read(path)?)?;
    }
    // Sections and tables both end with an empty line.
    while text.contains("\n\n\n") {
        text = text.replace("\n\n\n", "\n\n");
    }
    Ok(text.trim_end().to_owned() + "\n")
}

fn device(text: &mut String, device: &Device) -> anyhow::Result<()> {
    let calibrated = Calibrated::new(device);
    let header = |name: &str| device.header[name].as_str().unwrap_or("unknown").to_owned();
    let _ = writeln!(
        text,
        "\n## {}\n\nMeasured on {}, {} minutes; PyTorch {}, CUDA {}, cuDNN {}, driver {}, Python {}; {} multiprocessors, power limit {} W, \
         clock at most {} MHz. Preset `{}`. PyTorch selects {} for the attention of layers.\n",
        header("device"),
        header("date").split('T').next().unwrap_or_default(),
        device.header["minutes"],
        header("torch"),
        header("cuda"),
        device.header["cudnn"],
        header("driver"),
        header("python"),
        device.header["multiprocessors"],
        header("power_limit_watts").trim_end_matches(".00"),
        header("max_sm_mhz"),
        device.preset,
        device.selected_attention()
    );
    let _ =
        writeln!(text, "### Calibration\n\nFitted: {}. Mean residual before and after:\n", counts(&calibrated.fitted));
    for PartReport { part, fitted, mean_before, mean_residual, p90_before, p90_residual, .. } in
        &calibrated.fitted.parts
    {
        if *fitted {
            let _ = writeln!(
                text,
                "- {part}: mean {:.1} -> {:.1} %, p90 {:.1} -> {:.1} %",
                mean_before * 100.0,
                mean_residual * 100.0,
                p90_before * 100.0,
                p90_residual * 100.0
            );
        }
    }
    let _ = writeln!(text, "\nConstants that the fit moved:\n\n{}", rates::constants(device, &calibrated));
    let _ = writeln!(text, "### Layers\n\n{}", layers::layers(device, &calibrated));
    let _ = writeln!(text, "### Training steps\n\n{}", layers::steps(device, &calibrated)?);
    text.push_str(&kinds::kinds(device, &calibrated)?);
    let _ = writeln!(
        text,
        "### Memory\n\nModels of 1, 2 and 4 layers in bf16 with gradients in bf16, without an optimizer; activations are those after a \
         forward pass, with the logits. Not compared: AdamW of bf16 parameters without a master copy, and `selective`, which keeps \
         the results of products and attention here and recomputes attention in a plan.\n\n{}",
        layers::memory(device)?
    );
    let _ = writeln!(
        text,
        "### Products\n\n{}{}",
        kernels::products(device, &calibrated),
        kernels::others(device, &calibrated)
    );
    let _ = writeln!(text, "### Attention\n\n{}", kernels::attention(device, &calibrated));
    let _ = writeln!(
        text,
        "Rate = R s / (s + h) over the length s, fitted to equal lengths of 16,384 tokens:\n\n{}",
        rates::attention(device)
    );
    let _ = writeln!(text, "### Sustained rates\n\n{}", runtime::sustained(device));
    let _ = writeln!(text, "### Host\n\n{}", runtime::launch(device));
    let _ = writeln!(text, "### Optimizer\n\n{}", runtime::optimizer(device));
    let _ = writeln!(text, "### Contention\n\n{}", runtime::contention(device));
    let _ = writeln!(text, "### Constants that a calibration does not fit\n\n{}", rates::unfitted(device));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Device;

    /// Every table of the repository is readable and has rows, and the tables are small.
    #[test]
    fn stored_measurements_are_complete() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("measurements");
        let (mut devices, mut bytes) = (0, 0);
        for folder in std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
            let device = Device::read(&folder).unwrap();
            devices += 1;
            bytes +=
                std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum::<u64>();
            let counts = [
                device.products.len(),
                device.experts.len(),
                device.attention.len(),
                device.pointwise.len(),
                device.fp8.len(),
                device.optimizer.len(),
                device.sustained.len(),
                device.launch.len(),
                device.contention.len(),
                device.memory.len(),
                device.validation.len(),
            ];
            assert!(counts.iter().all(|count| *count > 0), "{}: {counts:?}", folder.display());
            assert_eq!(device.header["licence"], "MIT OR Apache-2.0");
        }
        assert!(devices >= 2);
        assert!(bytes <= 400_000, "{bytes}");
    }
}
