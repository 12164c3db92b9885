//! Fits measurement files and creates a profile.

use std::collections::BTreeSet;

use api::profile::{FittedPart, FittedPoint, ProfileEffect, ProfileSource};
use ingest::profile::layers::{self, LayerProfile};
use ingest::profile::schemes::{self, SchemeProfile};
use ingest::profile::{self as kernels, Hints};
use planner::calibration::{CoefficientReport, Fitted, Outcome, PartResiduals, Sample, residuals};
use planner::cluster::{Cluster, presets};
use planner::model::Model;
use planner::run_comparison::median;
use serde::{Deserialize, Serialize};

use super::ProfileError;
use crate::calibration::profiles::{Measured, Measurements};
use crate::calibration::start::{self, Start};
use crate::calibration::told;
use crate::store::{NewProfile, ProfileContent, ProfileFile, profile_address};

/// Maximum points in a residual plot.
pub(super) const MAX_POINTS: usize = 2000;
/// Limits per profile: file count, and total size in MiB.
const MAX_FILES: usize = 64;
const MAX_MEBIBYTES: usize = 64;

/// Factor between the median time of a part and that of the device above which the device or the unit is in doubt.
const FAR: f64 = 10.0;
/// Mean residual above which a fit at its bounds does not describe the measurements.
const UNEXPLAINED: f64 = 0.5;

/// Inputs of a fit in addition to the files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub(crate) struct Base {
    /// Base cluster, if specified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cluster: Option<Cluster>,
    /// Name of the base cluster.
    #[serde(default)]
    pub(crate) name: String,
    /// Model with the timed modules, if a scenario is specified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<Model>,
    /// Tensor-parallel degree of the layers, if specified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tensor: Option<u32>,
    /// Whether files of another device, or with times far from those of the device, are fitted all the same.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) confirmed: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
const fn is_false(value: &bool) -> bool {
    !*value
}

impl Base {
    /// Returns the base for a device preset.
    pub(crate) fn preset(id: &str) -> Result<Self, ProfileError> {
        let cluster = presets::cluster(id).ok_or_else(|| ProfileError::NoPreset(id.to_owned(), start::preset_ids()))?;
        Ok(Self { cluster: Some(cluster), name: id.to_owned(), ..Self::default() })
    }
}

enum Read {
    Kernels(Measurements),
    Layers(String, LayerProfile),
    Schemes(String, SchemeProfile),
}

/// Parses files and fits the measurements. May run for several seconds. The profile is still
/// unnamed.
pub(crate) fn fit(base: &Base, files: Vec<ProfileFile>) -> Result<NewProfile, ProfileError> {
    let bytes: usize = files.iter().map(|file| file.content.len()).sum();
    if files.len() > MAX_FILES || bytes > MAX_MEBIBYTES << 20 {
        return Err(ProfileError::TooMuch(MAX_FILES, MAX_MEBIBYTES));
    }
    let mut kernel_files = Vec::new();
    let mut layer_files = Vec::new();
    let mut scheme_files = Vec::new();
    for file in &files {
        match read(file)? {
            Read::Kernels(measured) => kernel_files.push(measured),
            Read::Layers(name, profile) => layer_files.push((name, profile)),
            Read::Schemes(name, profile) => scheme_files.push((name, profile)),
        }
    }
    let timed_file = layer_files.first().map(|(name, _)| name).or(scheme_files.first().map(|(name, _)| name));
    let fitted = match (kernel_files.first(), timed_file) {
        (Some(kernels), Some(layers)) => {
            return Err(ProfileError::Mixed { kernels: kernels.name.clone(), layers: layers.clone() });
        }
        (Some(_), None) => cluster(base, &Measured { files: kernel_files })?,
        (None, _) if scheme_files.is_empty() => super::layers::fit(base, &layer_files)?,
        (None, _) => match layer_files.first() {
            Some((layers, _)) => {
                let (schemes, layers) = (scheme_files[0].0.clone(), layers.clone());
                return Err(ProfileError::MixedTimings { schemes, layers });
            }
            None => super::schemes::fit(base, &scheme_files)?,
        },
    };
    let base = serde_json::to_string(base).expect("a base has only text keys");
    let id = profile_address(&fitted.source, &fitted.content.effect, Some(&base), &files);
    Ok(NewProfile { id, files, base: Some(base), ..fitted })
}

fn read(file: &ProfileFile) -> Result<Read, ProfileError> {
    let hints = Hints { name: file.name.clone(), ranks: file.ranks, ranks_per_node: None };
    let name = file.name.clone();
    if schemes::is(&file.content) {
        return match schemes::read(&file.content) {
            Ok(profile) => Ok(Read::Schemes(name, profile)),
            Err(error) => Err(ProfileError::File { name, reason: error.to_string() }),
        };
    }
    let kernel_error = match kernels::read(&file.content, &hints) {
        Ok(profile) => return Ok(Read::Kernels(Measurements { name, read: Ok(profile) })),
        Err(rejection) => rejection,
    };
    match layers::read(&file.content, &hints) {
        Ok(profile) => Ok(Read::Layers(name, profile)),
        // The file is not a usable kernel or layer profile. The layer error is reported only if the
        // file contains layers.
        Err(kernels::ProfileError::NothingUsable { format, report }) => {
            let reason = kernels::ProfileError::NothingUsable { format, report }.to_string();
            Err(ProfileError::File { name, reason })
        }
        Err(_) => Err(ProfileError::File { name, reason: kernel_error.to_string() }),
    }
}

/// Returns the base cluster: the given cluster, or the single preset for the device in the files.
/// Files from a different device require confirmation.
fn start_cluster(base: &Base, measured: &Measured) -> Result<Start, ProfileError> {
    let known = start::preset_ids;
    let start = if let Some(cluster) = base.cluster.clone() {
        Start { cluster, name: base.name.clone() }
    } else {
        let (file, device) = measured.devices().next().ok_or_else(|| ProfileError::NoBase(known()))?;
        let (file, device) = (file.to_owned(), device.to_owned());
        Start::from_device(&device).ok_or_else(|| ProfileError::NoDevicePreset { file, device, known: known() })?
    };
    let other = measured.devices().find(|(_, device)| !start.may_be(device));
    if let Some((file, device)) = other.filter(|_| !base.confirmed) {
        let (file, device, selected) = (file.to_owned(), device.to_owned(), start.cluster.name);
        return Err(ProfileError::OtherDevice { file, device, selected, known: known() });
    }
    Ok(start)
}

/// Fits the curves of a cluster.
fn cluster(base: &Base, measured: &Measured) -> Result<NewProfile, ProfileError> {
    let start = start_cluster(base, measured)?;
    let samples: Vec<Sample> = measured.samples();
    let fitted = planner::calibration::fit(&start.cluster, &samples, &measured.source());
    let mut report = lines(|out| told::files(out, measured, &start));
    let report_lines = lines(|out| told::parts(out, &fitted));
    if !fitted.parts.iter().any(|part| part.fitted) {
        // Refused rows are the likely reason.
        report.extend(unfitted_lines(&fitted, &report_lines));
        return Err(ProfileError::Nothing(report.join("; ")));
    }
    start::check(&fitted.cluster).map_err(|error| ProfileError::InvalidCluster(error.to_string()))?;
    if let Some(doubt) = doubt(&start.cluster, &fitted, &samples).filter(|_| !base.confirmed) {
        return Err(ProfileError::Implausible(doubt));
    }
    report.extend(lines(|out| told::changes(out, &start.cluster, &fitted.cluster)));
    let plots = residuals(&fitted.cluster, &samples, MAX_POINTS);
    let parts = fitted
        .parts
        .iter()
        .map(|part| {
            let plot = plots.iter().find(|plot| plot.part == part.part);
            let detail = report_lines
                .iter()
                .skip_while(|line| !line.starts_with(part.part))
                .enumerate()
                .take_while(|(index, line)| *index == 0 || line.starts_with(' '))
                .map(|(_, line)| line.trim().to_owned())
                .collect::<Vec<_>>()
                .join("; ");
            FittedPart {
                name: part.part.to_owned(),
                samples: part.samples as u64,
                fitted: part.fitted,
                detail,
                residual: part.fitted.then_some(part.mean_residual),
                size_name: plot.map_or_else(String::new, |plot| plot.size.to_owned()),
                points: plot.map(points).unwrap_or_default(),
            }
        })
        .collect();
    let residual = fitted.cluster.device.curves.as_ref().map(|curves| curves.calibration.residual);
    let formats: BTreeSet<&str> =
        measured.files.iter().filter_map(|file| file.read.as_ref().ok()).map(|profile| profile.format.name()).collect();
    Ok(NewProfile {
        id: String::new(),
        name: String::new(),
        source: ProfileSource::Files { formats: formats.into_iter().map(str::to_owned).collect() },
        measurements: samples.len() as u64,
        residual,
        base: None,
        content: ProfileContent {
            effect: ProfileEffect::Cluster { cluster: Box::new(fitted.cluster) },
            parts,
            report,
            factors: Vec::new(),
        },
        files: Vec::new(),
    })
}

/// Returns the lines of the report about parts with timings. Parts without timings say nothing about the file.
fn unfitted_lines(fitted: &Fitted, report_lines: &[String]) -> Vec<String> {
    let mut is_timed = true;
    let mut lines = Vec::new();
    for line in report_lines {
        if !line.starts_with(' ') {
            let part = fitted.parts.iter().find(|part| line.starts_with(part.part));
            is_timed = part.is_none_or(|part| part.samples > 0);
        }
        if is_timed {
            lines.push(line.trim().to_owned());
        }
    }
    if lines.is_empty() {
        lines.push(
            "the file has no timings of matrix products, attention, elementwise kernels or collectives".to_owned(),
        );
    }
    lines
}

/// Why the measurements are not those of the device, or in another unit: half of a part's times are far from those of the device, or no
/// value within the bounds of a fit explains them.
fn doubt(device: &Cluster, fitted: &Fitted, samples: &[Sample]) -> Option<String> {
    let far = residuals(device, samples, MAX_POINTS).into_iter().find_map(|plot| {
        let ratios: Vec<f64> = plot.points.iter().map(|point| point.measured_s / point.predicted_s).collect();
        let ratio = median(&ratios)?;
        let is_far = !(1.0 / FAR..=FAR).contains(&ratio);
        is_far.then(|| format!("{}: the median time is {ratio:.3} times that of the device", plot.part))
    });
    far.or_else(|| {
        fitted.parts.iter().find_map(|part| {
            let at_bound = |coefficient: &&CoefficientReport| matches!(coefficient.outcome, Outcome::Fitted(Some(_)));
            let names: Vec<&str> =
                part.coefficients.iter().filter(at_bound).map(|coefficient| coefficient.name).collect();
            let is_unexplained = part.fitted && part.mean_residual > UNEXPLAINED && !names.is_empty();
            is_unexplained.then(|| {
                let off = 100.0 * part.mean_residual;
                format!(
                    "{}: the residual is {off:.0} %, and the fit ended at the bounds of {}",
                    part.part,
                    names.join(", ")
                )
            })
        })
    })
}

fn points(plot: &PartResiduals) -> Vec<FittedPoint> {
    let point = |residual: &planner::calibration::Residual| FittedPoint {
        size: residual.size,
        measured_s: residual.measured_s,
        fitted_s: residual.predicted_s,
    };
    plot.points.iter().map(point).collect()
}

/// Returns the output of the closure as lines.
pub(super) fn lines(tell: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>) -> Vec<String> {
    let mut buffer = Vec::new();
    tell(&mut buffer).expect("memory takes what is written");
    String::from_utf8_lossy(&buffer).lines().map(str::to_owned).collect()
}
