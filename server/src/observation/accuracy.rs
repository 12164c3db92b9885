//! Prediction error of the simulator on published step times for similar clusters.

use std::sync::LazyLock;

use api::accuracy::{Accuracy, AccuracySet};
use planner::cluster::Cluster;

/// Sets of step times, with their devices and maximum device count.
const SETS: [(&str, &[&str], u32); 5] = [
    ("vtrain_single", &["A100", "A800"], 8),
    ("korthikanti22_table5", &["A100", "A800"], u32::MAX),
    ("megatron_sc21_table1", &["A100", "A800"], u32::MAX),
    ("megatron_sc21_table2_mtnlg", &["A100", "A800"], u32::MAX),
    ("megatron_h100_weak_scaling", &["H100", "H800"], u32::MAX),
];

/// The report of measured sets, as JSON.
pub(crate) const ACCURACY_JSON: &str = include_str!("../../../docs/accuracy.json");

static ACCURACY: LazyLock<Accuracy> =
    LazyLock::new(|| serde_json::from_str(ACCURACY_JSON).expect("tested where it is embedded"));

/// Returns the simulator's relative error for steps on a cluster, and a description. The error is
/// the 90th percentile in the set with the highest value among those for the same devices. If there
/// is none, all sets are used.
pub(super) fn prediction_error(cluster: &Cluster) -> (f64, String) {
    let sets = |wanted: &dyn Fn(&[&str], u32) -> bool| -> Vec<&'static AccuracySet> {
        let ids = SETS.iter().filter(|(_, devices, max_devices)| wanted(devices, *max_devices)).map(|(id, ..)| *id);
        ids.filter_map(|id| ACCURACY.sets.iter().find(|set| set.id == id)).collect()
    };
    let is_here = |devices: &[&str]| devices.iter().any(|device| cluster.name.contains(device));
    let small = cluster.devices() <= 8;
    let mut matching = sets(&|devices, max_devices| {
        is_here(devices) && (max_devices >= cluster.devices()) && (!small || max_devices <= 8)
    });
    if matching.is_empty() {
        matching = sets(&|devices, _| is_here(devices));
    }
    let (selected, is_matching) = if matching.is_empty() { (sets(&|_, _| true), false) } else { (matching, true) };
    let widest = selected.into_iter().max_by(|a, b| a.statistics.p90_abs_pct.total_cmp(&b.statistics.p90_abs_pct));
    let Some(set) = widest else { return (0.0, "no published steps to compare with".to_owned()) };
    let p90 = set.statistics.p90_abs_pct;
    let whose = if is_matching { "" } else { ", the widest set, as none is of these devices" };
    (
        p90 / 100.0,
        format!("widened by {p90:.1} %, within which nine of ten steps of \"{}\" were predicted{whose}", set.title),
    )
}

#[cfg(test)]
mod tests {
    use planner::cluster::presets;

    use super::*;

    #[test]
    fn every_set_is_in_the_document_and_every_cluster_has_an_error() {
        for (id, ..) in SETS {
            assert!(ACCURACY.sets.iter().any(|set| set.id == id), "{id}");
        }
        for preset in presets::clusters() {
            let (error, reason) = prediction_error(&preset.cluster);
            assert!(error > 0.0 && error < 1.0, "{reason}");
        }
        let mut a100 = presets::cluster("a100-80gb").unwrap();
        (a100.nodes, a100.devices_per_node) = (1, 8);
        assert!(prediction_error(&a100).1.contains("2 to 8 A100"), "{}", prediction_error(&a100).1);
        a100.nodes = 4;
        assert!(!prediction_error(&a100).1.contains("2 to 8 A100"));
    }
}
