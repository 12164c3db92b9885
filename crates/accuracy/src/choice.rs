//! Choice of a layout by prediction: order of the layouts of one model on one cluster, and the time
//! that the choice loses.

use std::collections::BTreeMap;

use crate::Accuracy;
use crate::set::{Row, Set};
use crate::statistics::spearman;

/// Groups with fewer layouts are not used.
const MIN_LAYOUTS: usize = 5;

/// Layouts of one model on one cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Identifier of the set.
    pub set: &'static str,
    /// Number of devices.
    pub devices: u32,
    /// Layers and hidden size of the model.
    pub model: (u32, u32),
    /// Number of layouts.
    pub layouts: usize,
    /// Rank correlation of predicted and measured times; `None` if all times are equal.
    pub spearman: Option<f64>,
    /// Measured time of the layout with the shortest prediction / shortest measured time - 1.
    pub regret: f64,
}

/// Returns the choices of all sets of step times, by number of devices and model.
pub fn choices(accuracy: &Accuracy) -> Vec<Choice> {
    accuracy.sets.iter().filter(|set| ["s", "ms"].contains(&set.unit)).flat_map(of_set).collect()
}

/// Returns the choices of a set.
pub(crate) fn of_set(set: &Set) -> Vec<Choice> {
    let mut groups: BTreeMap<[u32; 7], Vec<&Row>> = BTreeMap::new();
    for row in set.counted() {
        if let Some(step) = row.step {
            groups.entry(step.group).or_default().push(row);
        }
    }
    let groups = groups.into_iter().filter(|(_, rows)| rows.len() >= MIN_LAYOUTS);
    groups
        .filter_map(|([layers, hidden, devices, ..], rows)| {
            let times = |time: fn(&Row) -> f64| rows.iter().map(|row| time(row)).collect::<Vec<_>>();
            let (predicted, measured) = (times(|row| row.predicted), times(|row| row.measured));
            let chosen = rows.iter().min_by(|a, b| a.predicted.total_cmp(&b.predicted))?;
            let best = measured.iter().copied().min_by(f64::total_cmp)?;
            Some(Choice {
                set: set.id,
                devices,
                model: (layers, hidden),
                layouts: rows.len(),
                spearman: spearman(&predicted, &measured),
                regret: chosen.measured / best - 1.0,
            })
        })
        .collect()
}
