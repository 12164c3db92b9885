//! A scenario as it is with a profile.

use api::profile::{Profile, ProfileEffect, ProfileSource};
use planner::cost::overrides::CostOverride;
use planner::scenario::Scenario;

use super::ProfileError;
use super::fit::lines;
use crate::calibrate_command::told;

/// Longest title of a scenario, in characters.
const LONGEST_TITLE: usize = 200;

/// A scenario with a profile, not yet validated, and what it differs in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Applied {
    /// The scenario.
    pub(crate) scenario: Scenario,
    /// What changed, in words.
    pub(crate) changes: Vec<String>,
}

/// Puts a profile into a scenario, which then names it. Of a cluster the device and the links inside a node are replaced: the size
/// and the network between nodes, of which no kernel says anything, stay.
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
            let own = meant(profile, overrides, scenario, &mut changes);
            if own.is_empty() {
                return Err(ProfileError::ForOthers(changes.join("; ")));
            }
            let same = |a: &CostOverride, b: &CostOverride| {
                (&a.module, &a.operator, a.phase) == (&b.module, &b.operator, b.phase)
            };
            let list = &mut changed.training.overrides;
            let before = list.len();
            // The last for one thing counts: what stands before it for the very same thing says nothing any more.
            list.retain(|given| !own.iter().any(|new| same(given, new)));
            if list.len() < before {
                changes.push(format!("{} earlier times for the same layers are replaced", before - list.len()));
            }
            changes.extend(own.iter().map(in_words));
            list.extend(own);
        }
    }
    changed.profiles.push(id.clone());
    let title = scenario.title.clone().unwrap_or_else(|| scenario.model.name.clone());
    changed.title = Some(format!("{title}, with {name}").chars().take(LONGEST_TITLE).collect());
    Ok(Applied { scenario: changed, changes })
}

/// The times of a profile that are for modules of a scenario.
fn meant(
    profile: &Profile,
    overrides: &[CostOverride],
    scenario: &Scenario,
    changes: &mut Vec<String>,
) -> Vec<CostOverride> {
    let modules = &scenario.model.modules;
    let mut own = Vec::new();
    for given in overrides {
        let mut given = given.clone();
        // Tables of layers without a module are the backbone's; factors from a run are every module's.
        if given.module.is_none() && matches!(profile.summary.source, ProfileSource::Files { .. }) {
            given.module = scenario.model.backbone().map(|module| module.name.clone());
        }
        match given.module.as_ref().filter(|name| modules.iter().all(|module| module.name != **name)) {
            Some(name) => changes.push(format!("{} has no module {name}: its time is left out", scenario.model.name)),
            None => own.push(given),
        }
    }
    own
}

fn in_words(given: &CostOverride) -> String {
    let module = given.module.as_deref().unwrap_or("every module");
    let phase = match given.phase {
        Some(planner::cost::overrides::OverridePhase::Forward) => "forward",
        Some(_) => "backward",
        None => "forward and backward",
    };
    let how = match (given.scale, &given.formula_us, &given.table_us) {
        (Some(scale), ..) => format!("x {scale}"),
        (_, Some(formula), _) => format!("{formula} µs"),
        (_, _, Some(table)) => format!("a table of {} sizes", table.len()),
        _ => String::new(),
    };
    format!("{module}, {} {phase}: {how}", given.operator)
}
