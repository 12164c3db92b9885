//! Layer timings by sequence length and scheme as T(l) overrides of the cost model.

use api::profile::{FittedPart, FittedPoint, ProfileEffect, ProfileSource};
use ingest::profile::schemes::{FORMAT, SchemeProfile, TimedScheme, schemes};
use planner::cost::overrides::{AtDegrees, CostOverride, LAYER, SequenceTimes};
use planner::training::ContextExchange;

use super::ProfileError;
use super::fit::{Base, MAX_POINTS};
use crate::store::{NewProfile, ProfileContent};

/// Maximum number of degrees per profile: the override limit per scenario minus a reserve for other
/// overrides.
const MAX_SCHEMES: usize = 56;
/// Maximum timings per scheme in a scenario.
const MAX_TIMINGS: usize = 1024;

/// Fits T(l) of a layer for all degrees in the files.
pub(super) fn fit(base: &Base, files: &[(String, SchemeProfile)]) -> Result<NewProfile, ProfileError> {
    let timings: Vec<_> = files.iter().flat_map(|(_, profile)| profile.timings.iter().copied()).collect();
    let mut report: Vec<String> = files.iter().map(|(name, profile)| read(name, profile)).collect();
    let module = base.model.as_ref().and_then(|model| model.backbone()).map(|module| module.name.clone());
    let (mut overrides, mut parts) = (Vec::new(), Vec::new());
    for scheme in schemes(&timings) {
        let name = name(scheme.at);
        if overrides.len() == MAX_SCHEMES {
            report.push(format!("{name} and what follows are left out: a profile has {MAX_SCHEMES} degrees at most"));
            break;
        }
        let every = scheme.timings_us.len().div_ceil(MAX_TIMINGS).max(1);
        let sampled: Vec<[f64; 3]> = scheme.timings_us.iter().copied().step_by(every).collect();
        match SequenceTimes::new(&sampled) {
            Ok(times) => {
                parts.push(part(&scheme, &times));
                overrides.push(CostOverride {
                    module: module.clone(),
                    operator: LAYER.to_owned(),
                    at: Some(scheme.at),
                    timings_us: Some(sampled),
                    ..CostOverride::default()
                });
            }
            Err(error) => report.push(format!("{name} is left out: {error}")),
        }
    }
    if overrides.is_empty() {
        return Err(ProfileError::Nothing(report.join("; ")));
    }
    report.push(
        "Other degrees take the model's times, times what the model is off by where layers were timed; that factor is found when a \
         scenario uses the profile."
            .to_owned(),
    );
    let residual = parts.iter().filter_map(|part| part.residual).sum::<f64>() / parts.len() as f64;
    Ok(NewProfile {
        id: String::new(),
        name: String::new(),
        source: ProfileSource::Files { formats: vec![FORMAT.to_owned()] },
        measurements: timings.len() as u64,
        residual: Some(residual),
        base: None,
        content: ProfileContent { effect: ProfileEffect::Overrides { overrides }, parts, report, factors: Vec::new() },
        files: Vec::new(),
    })
}

fn read(name: &str, profile: &SchemeProfile) -> String {
    let report = &profile.report;
    let rejected: Vec<String> = report
        .refused
        .iter()
        .map(|refusal| format!("; refused: {} x {}, first {}", refusal.count, refusal.reason, refusal.first))
        .collect();
    let assumed: Vec<String> = report.assumptions.iter().map(|assumption| format!("; assumed: {assumption}")).collect();
    let (values, used) = (report.values, report.used);
    format!("{name}: {FORMAT}; {values} timings, {used} used{}{}", rejected.concat(), assumed.concat())
}

fn name(at: AtDegrees) -> String {
    let exchange = if at.exchange == Some(ContextExchange::AllToAll) { " by all-to-all" } else { "" };
    format!("layer at TP {} CP {}{exchange}", at.tensor, at.context)
}

fn part(scheme: &TimedScheme, times: &SequenceTimes) -> FittedPart {
    let fit = times.fit();
    let point = |&[tokens, sequences, micros]: &[f64; 3]| FittedPoint {
        size: tokens * sequences,
        measured_s: micros * 1e-6,
        fitted_s: fit.time(tokens * sequences, tokens * tokens * sequences) * 1e-6,
    };
    let every = scheme.timings_us.len().div_ceil(MAX_POINTS).max(1);
    FittedPart {
        name: name(scheme.at),
        samples: scheme.timings_us.len() as u64,
        fitted: true,
        detail: format!(
            "T(l) = a l² + b l + c from {} microbatches: a {:.3} µs a million, b {:.3} µs a thousand tokens, c {:.1} µs; at most {:.1} % off",
            scheme.timings_us.len(),
            fit.a * 1e6,
            fit.b * 1e3,
            fit.c,
            fit.max_error * 100.0
        ),
        residual: Some(fit.mean),
        size_name: "tokens".to_owned(),
        points: scheme.timings_us.iter().step_by(every).map(point).collect(),
    }
}
