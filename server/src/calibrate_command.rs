//! `planscope calibrate`: reads measured operators and collectives, and writes a cluster with
//! fitted curves.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use planner::calibration::fit;
use planner::cluster::Cluster;

use crate::calibration::profiles::Measured;
use crate::calibration::start::{self, Start};
use crate::calibration::told;
use crate::config::CalibrateArguments;

/// Fits a cluster to profiles. Writes the cluster to a file or to standard output, and the report
/// to standard error.
pub fn run(arguments: &CalibrateArguments) -> anyhow::Result<ExitCode> {
    let start = Start::new(arguments.device.as_deref(), arguments.from.as_deref())?;
    let measured = Measured::read(&arguments.profiles, arguments.ranks);
    if let Some((file, device)) = measured.devices().find(|(_, device)| !start.may_be(device))
        && !arguments.confirm_device
    {
        bail!(
            "{file} was measured on {device}, but it is to be fitted to {}: choose its device (presets: {}), or add --confirm-device",
            start.name,
            start::preset_ids()
        );
    }
    let mut out = std::io::stderr().lock();
    told::files(&mut out, &measured, &start)?;
    let unusable = measured.unusable();
    if unusable > 0 {
        let all = measured.files.len();
        bail!("{unusable} of {all} files cannot be used, so nothing was fitted; correct these files or leave them out");
    }
    let samples = measured.samples();
    let fitted = fit(&start.cluster, &samples, &measured.source());
    told::parts(&mut out, &fitted)?;
    if !fitted.parts.iter().any(|part| part.fitted) {
        bail!("no part of the device could be fitted, so no cluster was written");
    }
    told::changes(&mut out, &start.cluster, &fitted.cluster)?;
    start::check(&fitted.cluster).context("the fitted cluster is out of range")?;
    write(&fitted.cluster, arguments.out.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

fn write(cluster: &Cluster, path: Option<&Path>) -> anyhow::Result<()> {
    let mut json = serde_json::to_string_pretty(cluster)?;
    json.push('\n');
    match path.filter(|path| *path != Path::new("-")) {
        Some(path) => std::fs::write(path, json).with_context(|| format!("cannot write {}", path.display())),
        None => Ok(std::io::stdout().lock().write_all(json.as_bytes())?),
    }
}
