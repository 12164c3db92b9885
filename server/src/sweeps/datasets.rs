//! Datasets referenced in sweep points.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use planner::scenario::validate::Datasets;
use planner::sweep::Sweep;
use planner::workload::Dataset;
use serde_json::Value;

use crate::dataset_id;

/// Returns possible dataset identifiers in the base workload and in the axis values. An axis can
/// apply to any field.
pub(crate) fn named(sweep: &Sweep) -> Vec<String> {
    let mut names = BTreeSet::new();
    let base = sweep.scenario().pointer("/workload").into_iter();
    for value in base.chain(sweep.axes().iter().flat_map(|axis| &axis.values)) {
        collect(value, &mut names);
    }
    names.into_iter().collect()
}

fn collect(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if dataset_id::is_valid(text) => {
            names.insert(text.clone());
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, names)),
        Value::Object(fields) => fields.values().for_each(|value| collect(value, names)),
        _ => {}
    }
}

/// A point and the missing dataset that it references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) point: u32,
    pub(crate) dataset: String,
}

/// Returns the first point that references a missing dataset. Expands points sequentially; this
/// needs seconds for large sweeps.
pub(crate) fn missing(
    sweep: &Sweep,
    datasets: &dyn Datasets,
    points: impl IntoIterator<Item = u32>,
) -> Option<Missing> {
    points.into_iter().find_map(|point| {
        let recorder = MissingRecorder { datasets, absent: RefCell::default() };
        // The row will report all remaining validation errors.
        let _ = sweep.point(point)?.valid(&recorder);
        Some(Missing { point, dataset: recorder.absent.take()? })
    })
}

/// Records the latest missing dataset.
struct MissingRecorder<'d> {
    datasets: &'d dyn Datasets,
    absent: RefCell<Option<String>>,
}

impl Datasets for MissingRecorder<'_> {
    fn dataset(&self, id: &str) -> Option<Arc<Dataset>> {
        let found = self.datasets.dataset(id);
        if found.is_none() && dataset_id::is_valid(id) {
            self.absent.replace(Some(id.to_owned()));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use planner::scenario::validate::NoDatasets;
    use serde_json::json;

    use super::*;

    fn id(letter: char) -> String {
        letter.to_string().repeat(52)
    }

    fn sweep(samples: &Value, axes: &Value) -> Sweep {
        let scenario = json!({
            "schema": "scenario/1", "model": {"preset": "llama-2-7b"}, "cluster": {"preset": "a100-80gb", "nodes": 1},
            "workload": {"samples": samples, "global_batch": 8, "context_length": 2048, "packing": "single"},
            "planners": ["1f1b"], "iterations": 1
        });
        Sweep::parse(&json!({"schema": "sweep/1", "scenario": scenario, "axes": axes}).to_string()).unwrap()
    }

    #[test]
    fn datasets_are_found_wherever_they_are_named() {
        let samples = |letter: char| json!({"kind": "dataset", "id": id(letter)});
        let swept =
            |pointer: &str, values: &Value| sweep(&samples('a'), &json!([{"pointer": pointer, "values": values}]));
        let parts = [samples('c'), samples('b')].map(|source| json!({"source": source, "weight": 1.0}));
        let mixture = json!({"kind": "mixture", "parts": parts});
        for found in [
            swept("/workload/samples/id", &json!([id('b'), id('c')])),
            swept("/workload/samples", &json!([samples('b'), mixture])),
        ] {
            assert_eq!(named(&found), ["a", "b", "c"].map(|letter| letter.repeat(52)));
        }
    }

    #[test]
    fn missing_datasets_are_reported_unless_replaced() {
        let drawn = json!({"kind": "drawn", "text_tokens": {"kind": "constant", "value": 512},
            "images": {"kind": "constant", "value": 0}});
        let stored = json!({"kind": "dataset", "id": id('b')});
        let swept = sweep(
            &json!({"kind": "dataset", "id": id('a')}),
            &json!([{"pointer": "/workload/samples", "values": [drawn, stored]}]),
        );
        assert_eq!(missing(&swept, &NoDatasets, [0]), None);
        assert_eq!(missing(&swept, &NoDatasets, 0..2), Some(Missing { point: 1, dataset: id('b') }));
    }
}
