//! Origin of the device's cost model: fitted timings, values from a similar device, or defaults.

use api::planner::cluster::{Calibration, Cluster};
use leptos::prelude::*;

use crate::catalogue::use_catalogue;
use crate::explore::use_explore;
use crate::{format, pointer};

/// Calibration status of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FitStatus {
    /// True if the device has fitted timings.
    is_fitted: bool,
    /// Status in one line.
    label: String,
    /// Source of the timings.
    source: String,
}

impl FitStatus {
    fn from_calibration(calibration: Option<&Calibration>) -> Self {
        match calibration {
            Some(calibration) if calibration.samples() > 0 => {
                Self { is_fitted: true, label: fitted(calibration), source: calibration.source.clone() }
            }
            Some(calibration) => {
                Self { is_fitted: false, label: format::capitalised(&calibration.source), source: String::new() }
            }
            None => Self {
                is_fitted: false,
                label: "Not measured: curves of a typical device".to_owned(),
                source: String::new(),
            },
        }
    }
}

fn fitted(calibration: &Calibration) -> String {
    let kinds = [
        (calibration.matmul, "matrix products"),
        (calibration.attention, "attention"),
        (calibration.streaming, "memory-bound"),
        (calibration.collective, "collectives"),
    ];
    let kinds = kinds.into_iter().filter(|(count, _)| *count > 0);
    let kinds: Vec<_> = kinds.map(|(count, kind)| format!("{} {kind}", format::count(count.into()))).collect();
    format!(
        "Fitted on {} timings ({}), mean residual {}",
        format::count(calibration.samples().into()),
        kinds.join(", "),
        format::percent(calibration.residual)
    )
}

/// Compares floats exactly, including NaN.
fn differ(is: f64, was: f64) -> bool {
    is.total_cmp(&was).is_ne()
}

/// Names of edited device parameters. The cost model is fitted only for the preset values of these
/// parameters.
fn edited(cluster: &Cluster, preset: &Cluster) -> Vec<&'static str> {
    let (is, was) = (&cluster.device, &preset.device);
    let (link, link_was) = (&cluster.intra_node, &preset.intra_node);
    let differences = [
        (differ(is.peak_tflops, was.peak_tflops), "peak"),
        (differ(is.matmul_efficiency, was.matmul_efficiency), "matrix products"),
        (differ(is.attention_efficiency, was.attention_efficiency), "attention"),
        (differ(is.memory_gb_per_s, was.memory_gb_per_s), "memory bandwidth"),
        (differ(is.memory_efficiency, was.memory_efficiency), "memory efficiency"),
        (is.multiprocessors != was.multiprocessors, "multiprocessors"),
        (differ(is.launch_us, was.launch_us), "kernel launch"),
        (is.curves != was.curves, "curves"),
        (link != link_was, "link in a node"),
    ];
    differences.into_iter().filter(|(differs, _)| *differs).map(|(_, name)| name).collect()
}

/// Calibration status of the device, with a warning if the values are edited or not fitted.
#[component]
pub(super) fn CalibrationStatus() -> impl IntoView {
    let explore = use_explore();
    let catalogue = use_catalogue();
    let cluster = Memo::new(move |_| {
        let value = explore.scenario.with(|scenario| pointer::get(scenario, "/cluster").cloned())?;
        serde_json::from_value::<Cluster>(value).ok()
    });
    let fit_status = Memo::new(move |_| {
        cluster.with(|cluster| {
            let device = &cluster.as_ref()?.device;
            Some(FitStatus::from_calibration(device.curves.as_ref().map(|curves| &curves.calibration)))
        })
    });
    let note = Memo::new(move |_| cluster.with(|cluster| cluster.as_ref()?.device.note.clone()));
    let changes = Memo::new(move |_| {
        let presets = catalogue.presets.get();
        cluster.with(|cluster| {
            let cluster = cluster.as_ref()?;
            let named = |candidate: &&api::gallery::ClusterOption| candidate.cluster.name == cluster.name;
            let preset = presets.as_ref()?.clusters.iter().find(named)?;
            Some(edited(cluster, &preset.cluster)).filter(|changes| !changes.is_empty())
        })
    });
    let status = move || {
        fit_status.get().map(|FitStatus { is_fitted, label, source }| {
            let changed = changes.get().filter(|_| is_fitted);
            let is_doubtful = !is_fitted || changed.is_some();
            view! {
                <div class="calibration" class:warning=is_doubtful data-testid="calibration">
                    <p>{label}"."</p>
                    {changed.map(|changes| view! { <p data-testid="calibration-edited"><b>"Edited: no longer as fitted"</b>{format!(" ({}).", changes.join(", "))}</p> })}
                    {(!source.is_empty()).then(|| view! { <details class="advanced"><summary>"Sources"</summary><p>{source}</p></details> })}
                    <p><a href="/accuracy">"Accuracy of the predictions"</a></p>
                </div>
            }
        })
    };
    view! {
        {move || note.get().map(|note| view! { <p class="caution" data-testid="device-note"><b>"Caution: "</b>{note}"."</p> })}
        {status}
    }
}

#[cfg(test)]
mod tests {
    use api::planner::cluster::presets;

    use super::*;

    fn preset_status(id: &str) -> FitStatus {
        let cluster = presets::cluster(id).unwrap();
        let status = FitStatus::from_calibration(cluster.device.curves.as_ref().map(|curves| &curves.calibration));
        FitStatus { label: status.label.replace('\u{202f}', " "), ..status }
    }

    #[test]
    fn a_fitted_device_counts_its_timings() {
        let calibration = Calibration {
            source: "someone".to_owned(),
            matmul: 12_723,
            attention: 0,
            streaming: 424,
            collective: 7_234,
            residual: 0.0441,
        };
        let expected = "Fitted on 20,381 timings (12,723 matrix products, 424 memory-bound, 7,234 collectives), \
                        mean residual 4.41 %";
        let status = FitStatus::from_calibration(Some(&calibration));
        assert_eq!((status.is_fitted, status.label.replace('\u{202f}', " ").as_str()), (true, expected));
        assert!(preset_status("a100-80gb").is_fitted);
    }

    #[test]
    fn a_device_that_nobody_measured_says_so() {
        let status = preset_status("ascend-910b");
        assert!(!status.is_fitted && status.label.starts_with("Not measured: "), "{status:?}");
        assert_eq!(FitStatus::from_calibration(None).label, "Not measured: curves of a typical device");
    }

    #[test]
    fn only_edits_that_change_predictions_are_reported() {
        let preset = presets::cluster("a100-80gb").unwrap();
        let mut cluster = preset.clone();
        cluster.nodes = 16;
        cluster.device.memory_gib = 40.0;
        cluster.inter_node.gb_per_s = 12.5;
        assert!(edited(&cluster, &preset).is_empty());
        cluster.device.matmul_efficiency = 0.5;
        cluster.intra_node.latency_us = 9.0;
        assert_eq!(edited(&cluster, &preset), ["matrix products", "link in a node"]);
    }
}
