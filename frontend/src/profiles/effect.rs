//! Describes the changes that a profile makes to a scenario.

use api::planner::cluster::Cluster;
use api::planner::cost::overrides::{CostOverride, OverridePhase};
use api::profile::ProfileEffect;
use leptos::prelude::*;
use serde_json::Value;

use crate::catalogue::use_catalogue;
use crate::format;

#[component]
pub(crate) fn EffectSummary(effect: ProfileEffect) -> impl IntoView {
    match effect {
        ProfileEffect::Cluster { cluster } => {
            let lines = cluster_parameters(&cluster)
                .into_iter()
                .map(|(name, value)| view! { <div><dt>{name}</dt><dd>{value}</dd></div> });
            let lines = lines.collect_view();
            view! {
                <div data-testid="effect">
                    <p>"A scenario with this profile has the fitted device and links. Its number of devices does not change."</p>
                    <AgainstPreset cluster=*cluster />
                    <details class="advanced">
                        <summary>"All figures of device and links"</summary>
                        <dl class="fitted">{lines}</dl>
                    </details>
                    <p class="hint">"The 80 % intervals keep their width relative to the prediction: it is that of published runs on measured devices. It becomes wider if the fit differs from the timings by more than 20 % on average."</p>
                </div>
            }
            .into_any()
        }
        ProfileEffect::Overrides { overrides } => {
            let none = overrides.is_empty().then_some("It changes nothing: prediction and measurement agree already.");
            let lines = overrides.iter().map(|given| view! { <li>{override_text(given)}</li> });
            view! {
                <div data-testid="effect">
                    <p>"A scenario that uses it takes these times in place of the model's:"</p>
                    {none}
                    <ul>{lines.collect_view()}</ul>
                </div>
            }
            .into_any()
        }
    }
}

/// Table of the figures that differ from the preset of the same name.
#[component]
fn AgainstPreset(cluster: Cluster) -> impl IntoView {
    let catalogue = use_catalogue();
    move || {
        let presets = catalogue.presets.get()?;
        let preset = presets.clusters.iter().find(|preset| preset.cluster.name == cluster.name)?;
        let changes = changes(&preset.cluster, &cluster);
        (!changes.is_empty()).then(|| view! { <ChangeTable changes=changes now="preset" /> })
    }
}

/// Table of changed figures.
#[component]
pub(crate) fn ChangeTable(
    /// Name, old value, new value.
    changes: Vec<(&'static str, String, String)>,
    /// Title of the column of old values.
    now: &'static str,
) -> impl IntoView {
    let row = |(name, old, new): (&'static str, String, String)| {
        view! { <tr><th scope="row">{name}</th><td class="number">{old}</td><td class="number">{new}</td></tr> }
    };
    let rows = changes.into_iter().map(row).collect_view();
    view! {
        <div class="table-scroll" role="region" aria-label="Figures that change" tabindex="0">
            <table class="list narrow profile-figures">
                <thead><tr><th scope="col">"Figure that changes"</th><th scope="col" class="number">{now}</th><th scope="col" class="number">"with the profile"</th></tr></thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
}

/// Formats an override: "layer of every module, backward: × 1.08".
fn override_text(given: &CostOverride) -> String {
    let target = if given.is_layer() { "whole layer".to_owned() } else { format!("operator {}", given.operator) };
    let module =
        given.module.as_ref().map_or_else(|| "every module".to_owned(), |module| format!("the module {module}"));
    let phase = match given.phase {
        None => "forward and backward",
        Some(OverridePhase::Forward) => "forward",
        Some(OverridePhase::InputGrad) => "gradient of the input",
        Some(OverridePhase::WeightGrad) => "gradient of the weights",
        Some(OverridePhase::Backward) => "backward",
    };
    let price = match (given.scale, &given.formula_us, &given.table_us, &given.timings_us) {
        (Some(scale), ..) => format!("predicted time × {}", format::three_digits(scale)),
        (None, Some(formula), ..) => format!("{formula} µs"),
        (None, None, Some(table), _) => format!("a table of {} points over tokens", table.len()),
        (None, None, None, Some(timings)) => format!("T(l) fitted to {} timings of sequences", timings.len()),
        (None, None, None, None) => "the model's own time".to_owned(),
    };
    let at = given.at.map_or_else(String::new, |at| format!(" at TP {} CP {}", at.tensor, at.context));
    format!("{target} of {module}, {phase}{at}: {price}")
}

/// JSON pointer in the cluster, name and unit.
const PARAMETERS: [(&str, &str, Form); 20] = [
    ("/device/peak_tflops", "Peak rate of GEMMs", Form::Unit("TFLOP/s")),
    ("/device/fp8_tflops", "Peak rate of fp8 GEMMs", Form::Unit("TFLOP/s")),
    ("/device/matmul_efficiency", "GEMM rate, share of the peak", Form::Share),
    ("/device/attention_efficiency", "Attention rate, share of the peak", Form::Share),
    ("/device/memory_gib", "Memory", Form::Unit("GiB")),
    ("/device/memory_gb_per_s", "Memory bandwidth", Form::Unit("GB/s")),
    ("/device/memory_efficiency", "Share of the memory bandwidth", Form::Share),
    ("/device/multiprocessors", "Multiprocessors", Form::Unit("")),
    ("/device/launch_us", "Launch of a kernel", Form::Unit("µs")),
    ("/device/host_gb_per_s", "Bandwidth to the host", Form::Unit("GB/s")),
    ("/device/curves", "Rate by shape", Form::Curve),
    ("/intra_node/gb_per_s", "Bandwidth inside a node", Form::Unit("GB/s")),
    ("/intra_node/efficiency", "Bandwidth share reached inside a node", Form::Share),
    ("/intra_node/latency_us", "Latency inside a node", Form::Unit("µs")),
    ("/intra_node/curve", "Rate by message size inside a node", Form::Curve),
    ("/inter_node/gb_per_s", "Bandwidth between nodes", Form::Unit("GB/s")),
    ("/inter_node/efficiency", "Bandwidth share reached between nodes", Form::Share),
    ("/inter_node/latency_us", "Latency between nodes", Form::Unit("µs")),
    ("/inter_node/curve", "Rate by message size between nodes", Form::Curve),
    ("/name", "Name", Form::Text),
];

/// Number format.
#[derive(Debug, Clone, Copy)]
enum Form {
    Unit(&'static str),
    Share,
    Curve,
    Text,
}

impl Form {
    fn text(self, value: Option<&Value>) -> String {
        let Some(value) = value.filter(|value| !value.is_null()) else {
            return if matches!(self, Self::Curve) { "as of a typical one".to_owned() } else { "–".to_owned() };
        };
        match self {
            Self::Unit("") => format::three_digits(value.as_f64().unwrap_or(f64::NAN)),
            Self::Unit(unit) => format!("{}\u{202f}{unit}", format::three_digits(value.as_f64().unwrap_or(f64::NAN))),
            Self::Share => format::percent(value.as_f64().unwrap_or(f64::NAN)),
            Self::Curve => "a fitted curve".to_owned(),
            Self::Text => value.as_str().unwrap_or_default().to_owned(),
        }
    }
}

/// Returns names and formatted values for all figures present in the cluster.
fn cluster_parameters(cluster: &Cluster) -> Vec<(&'static str, String)> {
    let value = serde_json::to_value(cluster).unwrap_or_default();
    let known = PARAMETERS
        .into_iter()
        .filter(|(field_pointer, ..)| value.pointer(field_pointer).is_some_and(|value| !value.is_null()));
    known.map(|(parameter_pointer, name, form)| (name, form.text(value.pointer(parameter_pointer)))).collect()
}

/// Returns the name and the unit of a field of a cluster, for example "device.launch_us".
pub(crate) fn parameter_name(path: &str) -> Option<(&'static str, &'static str)> {
    let pointer = format!("/{}", path.replace('.', "/"));
    let (_, name, form) = PARAMETERS.into_iter().find(|(field, ..)| *field == pointer)?;
    Some((name, if let Form::Unit(unit) = form { unit } else { "" }))
}

/// Returns the changed cluster figures: name, old value, new value.
pub(crate) fn changes(before: &Cluster, after: &Cluster) -> Vec<(&'static str, String, String)> {
    let value = |cluster: &Cluster| serde_json::to_value(cluster).unwrap_or_default();
    let (before, after) = (value(before), value(after));
    PARAMETERS
        .into_iter()
        .filter(|(field_pointer, ..)| before.pointer(field_pointer) != after.pointer(field_pointer))
        .filter_map(|(parameter_pointer, name, form)| {
            let (old, new) =
                (form.text(before.pointer(parameter_pointer)), form.text(after.pointer(parameter_pointer)));
            match form {
                // Two different curves may have the same text.
                Form::Curve if old == new => Some((name, "curve before the fit".to_owned(), new)),
                _ => (old != new).then_some((name, old, new)),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use api::planner::cost::overrides::AtDegrees;

    use super::*;

    fn override_for(operator: &str) -> CostOverride {
        CostOverride { operator: operator.into(), ..CostOverride::default() }
    }

    #[test]
    fn overrides_are_described_in_text() {
        let layer = CostOverride { scale: Some(1.08), phase: Some(OverridePhase::Backward), ..override_for("layer") };
        assert_eq!(override_text(&layer), "whole layer of every module, backward: predicted time × 1.08");
        let table =
            CostOverride { module: Some("vit".into()), table_us: Some(vec![[1.0, 2.0]]), ..override_for("qkv") };
        assert_eq!(
            override_text(&table),
            "operator qkv of the module vit, forward and backward: a table of 1 points over tokens"
        );
        let at = Some(AtDegrees { tensor: 2, context: 4, exchange: None });
        let timed = CostOverride { at, timings_us: Some(vec![[1.0, 1.0, 2.0]; 9]), ..override_for("layer") };
        assert_eq!(
            override_text(&timed),
            "whole layer of every module, forward and backward at TP 2 CP 4: T(l) fitted to 9 timings of sequences"
        );
    }

    #[test]
    fn only_differing_parameters_are_changes() {
        let cluster: Cluster = serde_json::from_value(serde_json::json!({
            "name": "A", "nodes": 1, "devices_per_node": 8,
            "device": {"memory_gib": 80.0, "peak_tflops": 312.0, "matmul_efficiency": 0.7, "attention_efficiency": 0.5,
                       "memory_gb_per_s": 2039.0, "memory_efficiency": 0.8, "multiprocessors": 108, "launch_us": 2.0},
            "intra_node": {"gb_per_s": 300.0, "efficiency": 0.8, "latency_us": 3.0},
            "inter_node": {"gb_per_s": 25.0, "efficiency": 0.9, "latency_us": 8.0}
        }))
        .unwrap();
        assert_eq!(changes(&cluster, &cluster), []);
        let mut fitted = cluster.clone();
        fitted.device.matmul_efficiency = 0.81;
        // Rounded to three digits, this is no change.
        fitted.intra_node.efficiency = 0.800_01;
        fitted.nodes = 4;
        let plain: Vec<_> = changes(&cluster, &fitted)
            .into_iter()
            .map(|(name, old, new)| format!("{name}: {old} {new}").replace('\u{202f}', " "))
            .collect();
        assert_eq!(plain, ["GEMM rate, share of the peak: 70.0 % 81.0 %"]);
        assert_eq!(cluster_parameters(&cluster).len(), 15, "eight of the device, three of each link, the name");
    }
}
