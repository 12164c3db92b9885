//! Origin of the device's cost model: fitted timings, values from a similar device, or defaults.

use api::planner::cluster::{Calibration, Cluster};
use leptos::prelude::*;

use crate::catalogue::use_catalogue;
use crate::explore::use_explore;
use crate::{format, pointer};

/// Calibration status of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Standing {
    /// True if the device has fitted timings.
    is_fitted: bool,
    /// Status in one line.
    words: String,
    /// Source of the timings.
    source: String,
}

impl Standing {
    fn of(calibration: Option<&Calibration>) -> Self {
        match calibration {
            Some(calibration) if calibration.samples() > 0 => {
                Self { is_fitted: true, words: fitted(calibration), source: calibration.source.clone() }
            }
            Some(calibration) => {
                Self { is_fitted: false, words: format::capitalised(&calibration.source), source: String::new() }
            }
            None => Self {
                is_fitted: false,
                words: "Not measured: curves of a typical device".to_owned(),
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
    let kinds: Vec<_> = kinds.map(|(count, what)| format!("{} {what}", format::count(count.into()))).collect();
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
    differences.into_iter().filter(|(differs, _)| *differs).map(|(_, what)| what).collect()
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
    let standing = Memo::new(move |_| {
        cluster.with(|cluster| {
            let device = &cluster.as_ref()?.device;
            Some(Standing::of(device.curves.as_ref().map(|curves| &curves.calibration)))
        })
    });
    let note = Memo::new(move |_| cluster.with(|cluster| cluster.as_ref()?.device.note.clone()));
    let changes = Memo::new(move |_| {
        let presets = catalogue.presets.get();
        cluster.with(|cluster| {
            let cluster = cluster.as_ref()?;
            let named = |choice: &&api::gallery::ClusterChoice| choice.cluster.name == cluster.name;
            let preset = presets.as_ref()?.clusters.iter().find(named)?;
            Some(edited(cluster, &preset.cluster)).filter(|changes| !changes.is_empty())
        })
    });
    let status = move || {
        standing.get().map(|Standing { is_fitted, words, source }| {
            let changed = changes.get().filter(|_| is_fitted);
            let is_doubtful = !is_fitted || changed.is_some();
            view! {
                <div class="calibration" class:warning=is_doubtful data-testid="calibration">
                    <p>{words}"."</p>
                    {changed.map(|changes| view! { <p data-testid="calibration-edited"><b>"Edited: no longer as fitted"</b>{format!(" ({}).", changes.join(", "))}</p> })}
                    {(!source.is_empty()).then(|| view! { <details class="advanced"><summary>"Sources"</summary><p>{source}</p></details> })}
                    <p><a href="/accuracy">"How accurate predictions are"</a></p>
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

    fn words(id: &str) -> Standing {
        let cluster = presets::cluster(id).unwrap();
        let standing = Standing::of(cluster.device.curves.as_ref().map(|curves| &curves.calibration));
        Standing { words: standing.words.replace('\u{202f}', " "), ..standing }
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
        let standing = Standing::of(Some(&calibration));
        assert_eq!((standing.is_fitted, standing.words.replace('\u{202f}', " ").as_str()), (true, expected));
        assert!(words("a100-80gb").is_fitted);
    }

    #[test]
    fn a_device_that_nobody_measured_says_so() {
        let standing = words("ascend-910b");
        assert!(!standing.is_fitted && standing.words.starts_with("Not measured: "), "{standing:?}");
        assert_eq!(Standing::of(None).words, "Not measured: curves of a typical device");
    }

    #[test]
    fn edits_that_move_predictions_are_told_from_those_that_do_not() {
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
