//! Layer timings as overrides of the cost model.

use std::collections::BTreeSet;

use api::profile::{FittedPart, FittedPoint, ProfileEffect, ProfileSource};
use ingest::profile::layers::{LayerProfile, LayerTable, Part, tables};
use planner::cost::overrides::{CostOverride, LAYER, OverridePhase, TimeTable};
use planner::model::{Model, ModuleRole};

use super::ProfileError;
use super::fit::{Base, MAX_POINTS};
use crate::store::{NewProfile, ProfileContent};

/// Maximum points per table in a scenario.
const MAX_SIZES: usize = 1024;

/// Fits tables of time over tokens for the modules in the files.
pub(super) fn fit(base: &Base, files: &[(String, LayerProfile)]) -> Result<NewProfile, ProfileError> {
    let profiles: Vec<LayerProfile> = files.iter().map(|(_, profile)| profile.clone()).collect();
    let built = tables(&profiles, base.tensor);
    let mut report: Vec<String> = files.iter().map(|(name, profile)| read(name, profile)).collect();
    report.extend(built.notes.iter().cloned());
    if let Some(tensor) = built.tensor {
        report.push(format!("The tables are of layers cut over TP {tensor}: use them in scenarios of that degree."));
    }
    let mut overrides = Vec::new();
    let mut parts = Vec::new();
    for table in &built.tables {
        let (target, points) = match placed(table, base.model.as_ref()) {
            Ok(placed) => placed,
            Err(why) => {
                report.push(why);
                continue;
            }
        };
        parts.push(part(table)?);
        overrides.push(CostOverride {
            module: target,
            operator: LAYER.to_owned(),
            phase: Some(if table.backward { OverridePhase::Backward } else { OverridePhase::Forward }),
            table_us: Some(points),
            ..CostOverride::default()
        });
    }
    if overrides.is_empty() {
        return Err(ProfileError::Nothing(report.join("; ")));
    }
    if overrides.iter().all(|given| given.phase == Some(OverridePhase::Forward)) {
        report.push("Only forwards were timed: backwards keep the model's times.".to_owned());
    }
    let measurements = built.tables.iter().map(|table| table.measured.len() as u64).sum();
    let (sum, count) = parts
        .iter()
        .filter_map(|part: &FittedPart| part.residual)
        .fold((0.0, 0.0), |sums, residual| (sums.0 + residual, sums.1 + 1.0));
    let formats: BTreeSet<&str> = files.iter().map(|(_, profile)| profile.format.name()).collect();
    Ok(NewProfile {
        id: String::new(),
        name: String::new(),
        source: ProfileSource::Files { formats: formats.into_iter().map(str::to_owned).collect() },
        measurements,
        residual: (count > 0.0).then(|| sum / count),
        base: None,
        content: ProfileContent { effect: ProfileEffect::Overrides { overrides }, parts, report, factors: Vec::new() },
        files: Vec::new(),
    })
}

fn read(name: &str, profile: &LayerProfile) -> String {
    let report = &profile.report;
    let rejected: Vec<String> = report
        .refused
        .iter()
        .map(|refusal| format!("; refused: {} x {}, first {}", refusal.count, refusal.reason, refusal.first))
        .collect();
    let assumed: Vec<String> = report.assumptions.iter().map(|assumption| format!("; assumed: {assumption}")).collect();
    let (format, values, used) = (profile.format.name(), report.values, report.used);
    format!("{name}: {format}; {values} values, {used} used{}{}", rejected.concat(), assumed.concat())
}

/// Returns the table's module (`None` for the backbone of any model) and the table's points over
/// tokens.
fn placed(table: &LayerTable, model: Option<&Model>) -> Result<(Option<String>, Vec<[f64; 2]>), String> {
    let every = table.points.len().div_ceil(MAX_SIZES).max(1);
    let thinned = || table.points.iter().copied().step_by(every);
    if table.part != Part::Vision {
        let backbone = model.and_then(Model::backbone).map(|module| module.name.clone());
        return Ok((backbone, thinned().collect()));
    }
    let Some(model) = model else {
        return Err(
            "Layers of a vision encoder are timed by images: ?scenario= says how many tokens one has.".to_owned()
        );
    };
    let encoder = model.modules.iter().find(|module| module.role == ModuleRole::VisionEncoder);
    let Some(encoder) = encoder.filter(|encoder| encoder.tokens_per_item() > 0) else {
        return Err(format!("{} has no vision encoder: its layers are left out.", model.name));
    };
    let tokens = f64::from(encoder.tokens_per_item());
    Ok((Some(encoder.name.clone()), thinned().map(|[images, micros]| [images * tokens, micros]).collect()))
}

fn part(table: &LayerTable) -> Result<FittedPart, ProfileError> {
    let line = TimeTable::new(&table.points).map_err(|error| ProfileError::Nothing(error.to_string()))?;
    let point = |&[size, measured_s]: &[f64; 2]| FittedPoint { size, measured_s, fitted_s: line.micros(size) * 1e-6 };
    let all: Vec<FittedPoint> = table.measured.iter().map(point).collect();
    let off: f64 = all.iter().map(|point| (point.fitted_s / point.measured_s - 1.0).abs()).sum();
    let every = all.len().div_ceil(MAX_POINTS).max(1);
    let subject = match table.part {
        Part::Vision => "vision encoder",
        _ => "language model",
    };
    let pass = if table.backward { "backward" } else { "forward" };
    Ok(FittedPart {
        name: format!("layer of the {subject}, {pass}"),
        samples: all.len() as u64,
        fitted: true,
        detail: format!("{} sizes from {} timings; straight lines between them", table.points.len(), all.len()),
        residual: Some(off / all.len().max(1) as f64),
        size_name: if table.part == Part::Vision { "images" } else { "tokens" }.to_owned(),
        points: all.into_iter().step_by(every).collect(),
    })
}
