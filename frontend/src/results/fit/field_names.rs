//! Changes in the words of the form: label, current value and new value of each field.

use api::planner::fit::{Change, ChangeKind, FieldChange};
use api::planner::scenario::{FreeSetting, PlannerKind};
use serde_json::Value;

use crate::editor::{ATTENTION, EXECUTION, MOMENTS};
use crate::field_errors::pointer_label;
use crate::{format, pointer};

/// How the form shows a value.
enum Shown {
    /// Words of a list, by value.
    Words(&'static [(&'static str, &'static str)]),
    /// Words of a list, by number.
    Numbered(&'static [(u64, &'static str)]),
    /// A switch, and whether the form shows it as on without a value.
    Switch(bool),
    /// A share, shown in percent. An empty field is 0.
    Share,
    /// A number with its unit, and the text of an empty field.
    Number(&'static str, &'static str),
}

use Shown::{Number, Numbered, Share, Switch, Words};

/// Pointer, label of the form, and form of the value.
const FIELDS: [(&str, &str, Shown); 24] = [
    (
        "/training/recompute",
        "Recompute",
        Words(&[
            ("none", "None"),
            ("selective", "Attention"),
            ("operators", "Every second matrix product"),
            ("full", "Whole layers"),
        ]),
    ),
    ("/training/recompute_layers", "Recomputed", Number("layers per stage", "automatic")),
    ("/training/activation_offload", "Activations on the host", Share),
    ("/training/optimizer_offload", "Optimizer state on the host", Share),
    ("/training/parameter_offload", "Weights and gradients on the host", Switch(false)),
    (
        "/training/zero",
        "ZeRO stage",
        Numbered(&[(0, "0 (nothing)"), (1, "1 (optimizer)"), (2, "2 (+ gradients)"), (3, "3 (+ weights)")]),
    ),
    ("/training/moments", "Moments", Words(&MOMENTS)),
    ("/training/gradients", "Gradients", Words(&[("fp32", "fp32"), ("bf16", "bf16")])),
    ("/training/attention", "Attention", Words(&ATTENTION)),
    ("/training/execution", "Execution", Words(&EXECUTION)),
    ("/training/sequence_parallel", "Sequence parallel", Switch(true)),
    ("/training/tensor_overlap", "TP communication overlapped", Share),
    ("/training/data_overlap", "DP communication overlapped", Share),
    (
        "/workload/packing",
        "Packing",
        Words(&[("packed", "Packed, first fit"), ("single", "One per sequence"), ("padded", "Padded")]),
    ),
    ("/layout/tensor", "Tensor parallel", Number("", "search")),
    ("/layout/pipeline", "Pipeline stages", Number("", "search")),
    ("/layout/chunks", "Chunks per rank", Number("", "search")),
    ("/layout/microbatch", "Microbatch", Number("sequences", "search")),
    ("/training/context_parallel", "Context parallel", Number("", "1")),
    ("/training/expert_parallel", "Expert parallel", Number("", "1")),
    ("/training/expert_tensor_parallel", "Expert tensor parallel", Numbered(&[(1, "1 (whole experts)")])),
    ("/cluster/nodes", "Nodes", Number("", "")),
    ("/cluster/intra_node/gb_per_s", "Link in a node", Number("GB/s", "")),
    ("/cluster/inter_node/gb_per_s", "Network", Number("GB/s", "")),
];
/// Exchange of a context-parallel group. The form has no field for it.
const EXCHANGE: (&str, &str, Shown) =
    ("/training/context_exchange", "Context exchange", Words(&[("ring", "ring"), ("all_to_all", "all-to-all")]));

/// Section of the form with the fields of a change.
pub(super) const fn section(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Layout => "Layout",
        ChangeKind::Training => "Training",
        ChangeKind::Cluster => "Cluster",
        ChangeKind::Workload => "Workload",
    }
}

/// Returns one line for each field that the change gives another value, for example
/// "Tensor parallel: 8 → 4".
pub(crate) fn lines(change: &Change, document: &Value) -> Vec<String> {
    change.fields.iter().flat_map(|field| field_lines(field, document)).collect()
}

fn field_lines(FieldChange { pointer: place, value }: &FieldChange, document: &Value) -> Vec<String> {
    let new = (!value.is_null()).then_some(value);
    let old = pointer::get(document, place);
    match place.as_str() {
        "/layout" => return vec!["Layout: search all of them".to_owned()],
        "/free" => return freed(old, value),
        "/planners" => return schedule(value),
        // A schedule without chunks has none to replace.
        "/layout/chunks" if old.is_none() => return vec![format!("Chunks per rank: {}", value_text(new))],
        // A change clears fixed stages when it frees them, which is a line of its own.
        "/layers_per_stage" if value.as_array().is_none_or(Vec::is_empty) => return Vec::new(),
        _ if old == new => return Vec::new(),
        _ => {}
    }
    let known = FIELDS.iter().chain([&EXCHANGE]).find(|(known, ..)| known == place);
    let Some((_, label, shown)) = known else {
        let label = format::capitalised(&pointer_label(place));
        return vec![format!("{label}: {}", value_text(new))];
    };
    let (old, new) = (shown.text(old), shown.with_unit(new));
    if old == new {
        return Vec::new();
    }
    // Two numbers stay in one line.
    let space = if matches!(shown, Number(..) | Share) { '\u{a0}' } else { ' ' };
    let arrow = if old.is_empty() { String::new() } else { format!("{old}{space}→{space}") };
    vec![format!("{label}: {arrow}{new}")]
}

/// Names the schedule of the first planner.
fn schedule(planners: &Value) -> Vec<String> {
    let first = planners.get(0).and_then(Value::as_str).and_then(PlannerKind::from_id);
    first.map(|planner| format!("Schedule: {}", planner.short_title())).into_iter().collect()
}

/// Names the settings that become free.
fn freed(old: Option<&Value>, new: &Value) -> Vec<String> {
    let contains = |list: Option<&Value>, setting: FreeSetting| {
        let setting = serde_json::json!(setting);
        list.and_then(Value::as_array).is_some_and(|list| list.contains(&setting))
    };
    let is_freed = |setting: &FreeSetting| contains(Some(new), *setting) && !contains(old, *setting);
    let freed = FreeSetting::ALL.into_iter().filter(is_freed);
    freed.map(|setting| format!("{}: free", format::capitalised(setting.title()))).collect()
}

fn value_text(value: Option<&Value>) -> String {
    match value {
        None => "none".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

/// Formats a share in percent, without decimals that are zero.
fn share_text(share: f64) -> String {
    format!("{}\u{a0}%", pointer::write_number(&Value::from((1000.0 * share).round() / 10.0)))
}

impl Shown {
    /// Returns the text of a value; empty if the form shows no word for it.
    fn text(&self, value: Option<&Value>) -> String {
        match self {
            Words(words) => {
                // The first word is that of a scenario without the field.
                let text = value.and_then(Value::as_str).unwrap_or(words[0].0);
                words.iter().find(|(word, _)| *word == text).map_or(text, |(_, title)| title).to_owned()
            }
            Numbered(words) => {
                let Some(number) = value.and_then(Value::as_u64) else { return String::new() };
                words
                    .iter()
                    .find(|(word, _)| *word == number)
                    .map_or_else(|| number.to_string(), |(_, it)| (*it).to_owned())
            }
            Switch(absent) => if value.and_then(Value::as_bool).unwrap_or(*absent) { "on" } else { "off" }.to_owned(),
            Share => share_text(value.and_then(Value::as_f64).unwrap_or(0.0)),
            Number(_, empty) => value.map_or_else(|| (*empty).to_owned(), pointer::write_number),
        }
    }

    fn with_unit(&self, value: Option<&Value>) -> String {
        match self {
            Number(unit, _) if value.is_some() => format!("{} {unit}", self.text(value)).trim_end().to_owned(),
            _ => self.text(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use api::planner::fit::FitResult;
    use serde_json::json;

    use super::*;

    const FORM: &str = concat!(
        include_str!("../../editor.rs"),
        include_str!("../../editor/training.rs"),
        include_str!("../../editor/cluster.rs"),
        include_str!("../../editor/workload.rs"),
    );

    fn change(fields: &[(&str, Value)]) -> Change {
        let fields =
            fields.iter().map(|(place, value)| FieldChange { pointer: (*place).to_owned(), value: value.clone() });
        let result = FitResult {
            layout: None,
            iteration_s: Some(1.0),
            tokens_per_s_per_device: None,
            peak_gib: None,
            stage_layers: Vec::new(),
            binding: None,
        };
        Change {
            title: String::new(),
            kind: ChangeKind::Training,
            fields: fields.collect(),
            result,
            difference_s: None,
            probability_faster: None,
        }
    }

    #[test]
    fn labels_and_options_are_those_of_the_form() {
        for (place, label, shown) in &FIELDS {
            let field =
                FORM.split(&format!("pointer=\"{place}\"")).nth(1).unwrap_or_else(|| panic!("no field {place}"));
            let field = field.split("/>").next().unwrap();
            assert!(field.contains(&format!("label=\"{label}\"")), "{place}: {label} in {field}");
            let shared = [
                ("options=&ATTENTION", &ATTENTION[..]),
                ("options=&EXECUTION", &EXECUTION),
                ("options=&MOMENTS", &MOMENTS),
            ];
            if let Some((_, options)) = shared.iter().find(|(option, _)| field.contains(option)) {
                assert!(matches!(shown, Words(words) if words == options), "{place}");
                continue;
            }
            let options: Vec<String> = match shown {
                Words(words) => words.iter().map(|(word, title)| format!("(\"{word}\", \"{title}\")")).collect(),
                Numbered(words) => words.iter().map(|(word, title)| format!("({word}, \"{title}\")")).collect(),
                Switch(true) => vec!["when_absent=true".to_owned()],
                Switch(false) => {
                    assert!(!field.contains("when_absent"), "{place}: {field}");
                    Vec::new()
                }
                Share => vec!["unit=\"share\"".to_owned(), "placeholder=\"0\"".to_owned()],
                Number(_, empty) if !empty.is_empty() => vec![format!("placeholder=\"{empty}\"")],
                Number(..) => Vec::new(),
            };
            for option in options {
                assert!(field.contains(&option), "{place}: {option} in {field}");
            }
        }
        assert!(FORM.contains("\"Search all of them\"") && !FORM.contains(EXCHANGE.0));
    }

    #[test]
    fn fields_are_named_with_both_values() {
        let document = json!({
            "training": {"recompute": "none", "zero": 1, "context_parallel": 1, "context_exchange": "ring"},
            "layout": {"tensor": 8, "microbatch": 2},
            "cluster": {"nodes": 1},
            "free": ["packing"]
        });
        let text = |fields: &[(&str, Value)]| lines(&change(fields), &document).join("; ").replace('\u{a0}', " ");
        assert_eq!(text(&[("/layout/tensor", json!(4))]), "Tensor parallel: 8 → 4");
        assert_eq!(
            text(&[("/training/recompute", json!("full")), ("/training/recompute_layers", json!(4))]),
            "Recompute: None → Whole layers; Recomputed: automatic → 4 layers per stage"
        );
        assert_eq!(
            text(&[("/training/recompute", json!("selective")), ("/training/recompute_layers", json!(null))]),
            "Recompute: None → Attention"
        );
        assert_eq!(text(&[("/training/zero", json!(3))]), "ZeRO stage: 1 (optimizer) → 3 (+ weights)");
        assert_eq!(text(&[("/training/gradients", json!("bf16"))]), "Gradients: fp32 → bf16");
        assert_eq!(
            text(&[("/training/context_parallel", json!(2)), ("/training/context_exchange", json!("ring"))]),
            "Context parallel: 1 → 2"
        );
        assert_eq!(
            lines(&change(&[("/training/context_exchange", json!("all_to_all"))]), &json!({})),
            ["Context exchange: ring → all-to-all"]
        );
        assert_eq!(text(&[("/layout", json!({}))]), "Layout: search all of them");
        assert_eq!(text(&[("/free", json!(["packing", "layers_per_stage"]))]), "Layers per stage: free");
        assert_eq!(text(&[("/training/activation_offload", json!(0.75))]), "Activations on the host: 0 % → 75 %");
        assert_eq!(text(&[("/training/optimizer_offload", json!(1))]), "Optimizer state on the host: 0 % → 100 %");
        assert_eq!(text(&[("/cluster/nodes", json!(2))]), "Nodes: 1 → 2");
        assert_eq!(text(&[("/layout/microbatch", json!(1))]), "Microbatch: 2 → 1 sequences");
        assert_eq!(text(&[("/training/sequence_parallel", json!(true))]), "", "already on");
        let offloaded = text(&[("/training/parameter_offload", json!(true))]);
        assert_eq!(offloaded, "Weights and gradients on the host: off → on");
        assert_eq!(text(&[("/unknown/field", json!("x"))]), "Unknown, field: x");
    }
}
