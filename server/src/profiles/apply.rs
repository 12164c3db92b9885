//! Applies a profile to a scenario.

use api::profile::{Profile, ProfileEffect, ProfileSource};
use planner::cost::overrides::{CostOverride, LAYER, measured_to_predicted};
use planner::scenario::Scenario;

use super::ProfileError;
use super::fit::lines;
use crate::calibration::told;

/// Maximum title length in characters.
const MAX_TITLE: usize = 200;

/// A scenario with an applied profile, before validation, and a description of the changes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Applied {
    pub(crate) scenario: Scenario,
    /// One line of text per change.
    pub(crate) changes: Vec<String>,
}

/// Applies a profile to a scenario and adds the profile to the scenario's list. A cluster profile
/// replaces the device and the links within a node. Cluster size and inter-node network do not
/// change, because kernel measurements do not cover them.
pub(crate) fn apply(profile: &Profile, scenario: &Scenario) -> Result<Applied, ProfileError> {
    let id = &profile.summary.id;
    if scenario.profiles.contains(id) {
        return Err(ProfileError::UsedAlready);
    }
    let mut changed = scenario.clone();
    let name = &profile.summary.name;
    let mut changes = Vec::new();
    match &profile.effect {
        ProfileEffect::Cluster { cluster } => {
            changed.cluster.device = cluster.device.clone();
            changed.cluster.intra_node = cluster.intra_node;
            if changed.cluster.name != cluster.name {
                changes.push(format!("cluster {} -> {}", changed.cluster.name, cluster.name));
                changed.cluster.name.clone_from(&cluster.name);
            }
            if let Some(curves) = &mut changed.cluster.device.curves {
                let source = &mut curves.calibration.source;
                *source = format!("{source} (profile {name}, {})", &id[..id.len().min(10)]);
            }
            changes.extend(lines(|out| told::changes(out, &scenario.cluster, &changed.cluster)));
        }
        ProfileEffect::Overrides { overrides } => {
            let mut matching = meant(profile, overrides, scenario, &mut changes);
            matching.splice(0..0, untimed_degrees(&matching, scenario));
            if matching.is_empty() {
                return Err(ProfileError::ForOthers(changes.join("; ")));
            }
            let same = |a: &CostOverride, b: &CostOverride| {
                (&a.module, &a.operator, a.phase, a.at) == (&b.module, &b.operator, b.phase, b.at)
            };
            let list = &mut changed.training.overrides;
            let before = list.len();
            // Later overrides have priority, so earlier overrides of the same operator are removed.
            list.retain(|given| !matching.iter().any(|new| same(given, new)));
            if list.len() < before {
                changes.push(format!("{} earlier times for the same layers are replaced", before - list.len()));
            }
            changes.extend(matching.iter().map(describe));
            let (everywhere, timed): (Vec<_>, Vec<_>) = matching
                .into_iter()
                .partition(|given| given.at.is_none() && given.scale.is_some() && given.phase.is_none());
            // Later overrides have priority, so overrides for specific degrees follow overrides for
            // all degrees.
            let index = list.iter().position(|given| given.at.is_some()).unwrap_or(list.len());
            list.splice(index..index, everywhere);
            list.extend(timed);
        }
    }
    changed.profiles.push(id.clone());
    let title = scenario.title.clone().unwrap_or_else(|| scenario.model.name.clone());
    changed.title = Some(format!("{title}, with {name}").chars().take(MAX_TITLE).collect());
    Ok(Applied { scenario: changed, changes })
}

/// Returns the overrides that match modules in the scenario.
fn meant(
    profile: &Profile,
    overrides: &[CostOverride],
    scenario: &Scenario,
    changes: &mut Vec<String>,
) -> Vec<CostOverride> {
    let modules = &scenario.model.modules;
    let mut matching = Vec::new();
    for given in overrides {
        let mut given = given.clone();
        // Layer tables without a module apply to the backbone. Factors from a run apply to all
        // modules.
        if given.module.is_none() && matches!(profile.summary.source, ProfileSource::Files { .. }) {
            given.module = scenario.model.backbone().map(|module| module.name.clone());
        }
        match given.module.as_ref().filter(|name| modules.iter().all(|module| module.name != **name)) {
            Some(name) => changes.push(format!("{} has no module {name}: its time is left out", scenario.model.name)),
            None => matching.push(given),
        }
    }
    matching
}

/// Returns the override for degrees that were not timed: the model's times multiplied by the mean
/// ratio of measured to predicted times. This makes measured and predicted degrees comparable.
fn untimed_degrees(overrides: &[CostOverride], scenario: &Scenario) -> Option<CostOverride> {
    let timed: Vec<&CostOverride> = overrides.iter().filter(|given| given.at.is_some() && given.is_layer()).collect();
    let module =
        scenario.model.modules.iter().find(|module| timed.first().is_some_and(|given| given.is_for(module)))?;
    let (mut sum, mut count) = (0.0, 0.0);
    for (at, timings) in timed.iter().filter_map(|given| Some((given.at?, given.timings_us.as_ref()?))) {
        let ratio = measured_to_predicted(module, &scenario.cluster, &scenario.training, at, timings);
        let weight = timings.len() as f64;
        if ratio.is_finite() && ratio > 0.0 {
            (sum, count) = (sum + weight * ratio.ln(), count + weight);
        }
    }
    let scale = (count > 0.0).then(|| ((sum / count).exp().clamp(0.01, 100.0) * 1e6).round() / 1e6)?;
    let (module, operator) = (Some(module.name.clone()), LAYER.to_owned());
    Some(CostOverride { module, operator, scale: Some(scale), ..CostOverride::default() })
}

fn describe(given: &CostOverride) -> String {
    let module = given.module.as_deref().unwrap_or("every module");
    let phase = match given.phase {
        Some(planner::cost::overrides::OverridePhase::Forward) => "forward",
        Some(_) => "backward",
        None => "forward and backward",
    };
    let how = match (given.scale, &given.formula_us, &given.table_us, &given.timings_us) {
        (Some(scale), ..) => format!("x {scale}"),
        (_, Some(formula), ..) => format!("{formula} µs"),
        (_, _, Some(table), _) => format!("a table of {} sizes", table.len()),
        (.., Some(timings)) => format!("T(l) fitted to {} timings", timings.len()),
        _ => String::new(),
    };
    let at = given.at.map_or_else(String::new, |at| format!(" at TP {} CP {}", at.tensor, at.context));
    format!("{module}, {} {phase}{at}: {how}", given.operator)
}
