//! Mixtures of sample sources as JSON values of a scenario.

use serde_json::{Value, json};

/// Dataset in a mixture.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WeightedDataset {
    pub(crate) id: String,
    /// Relative weight, in samples.
    pub(crate) weight: f64,
}

/// Creates a mixture of datasets.
pub(crate) fn source_from_datasets(parts: &[WeightedDataset]) -> Value {
    let part = |part: &WeightedDataset| json!({"weight": part.weight, "source": {"kind": "dataset", "id": part.id}});
    json!({"kind": "mixture", "parts": parts.iter().map(part).collect::<Vec<_>>()})
}

/// Adds a source to a mixture. A source that is not a mixture becomes the first part of a new
/// mixture.
pub(crate) fn with_part(samples: &Value, source: Value) -> Value {
    let added = json!({"weight": 1.0, "source": source});
    let mut parts = match samples["parts"].as_array() {
        Some(parts) if samples["kind"] == "mixture" => parts.clone(),
        _ => vec![json!({"weight": 1.0, "source": samples})],
    };
    parts.push(added);
    json!({"kind": "mixture", "parts": parts})
}

/// Removes a mixture part. A single remaining part replaces the mixture.
pub(crate) fn without_part(samples: &Value, index: usize) -> Value {
    let mut parts = samples["parts"].as_array().cloned().unwrap_or_default();
    if index < parts.len() && parts.len() > 1 {
        parts.remove(index);
    }
    match parts.as_slice() {
        [only] => only["source"].clone(),
        _ => json!({"kind": "mixture", "parts": parts}),
    }
}

/// Normalized weights. Returns zeros if the sum is not positive.
pub(crate) fn shares(weights: &[f64]) -> Vec<f64> {
    let sum: f64 = weights.iter().sum();
    let is_usable = sum.is_finite() && sum > 0.0;
    weights.iter().map(|weight| if is_usable { weight / sum } else { 0.0 }).collect()
}

/// Formats datasets and weights as a query value: `ID:WEIGHT,ID:WEIGHT`.
pub(crate) fn write_query(parts: &[WeightedDataset]) -> String {
    parts.iter().map(|part| format!("{}:{}", part.id, part.weight)).collect::<Vec<_>>().join(",")
}

/// Parses the output of [`write_query`]. Skips invalid parts.
pub(crate) fn read_query(text: &str) -> Vec<WeightedDataset> {
    let part = |part: &str| {
        let (id, weight) = part.split_once(':').unwrap_or((part, "1"));
        let weight = weight.parse::<f64>().ok().filter(|weight| weight.is_finite() && *weight > 0.0)?;
        (!id.is_empty()).then(|| WeightedDataset { id: id.to_owned(), weight })
    };
    text.split(',').filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_added_and_removed() {
        let (first, two) = (json!({"kind": "dataset", "id": "one"}), json!({"kind": "dataset", "id": "two"}));
        let both = with_part(&first, two.clone());
        assert_eq!(
            both,
            json!({"kind": "mixture", "parts": [{"weight": 1.0, "source": first}, {"weight": 1.0, "source": two}]})
        );
        let three = with_part(&both, first.clone());
        assert_eq!(three["parts"].as_array().map(Vec::len), Some(3));
        assert_eq!(without_part(&three, 2), both);
        assert_eq!(without_part(&both, 0), two);
        assert_eq!(without_part(&both, 7), both);
    }

    #[test]
    fn weights_become_shares() {
        assert_eq!(shares(&[1.0, 3.0]), [0.25, 0.75]);
        assert_eq!(shares(&[0.0, 0.0]), [0.0, 0.0]);
        assert_eq!(shares(&[]), Vec::<f64>::new());
    }

    #[test]
    fn a_query_is_read_as_it_is_written() {
        let parts = [("abc", 0.7), ("def", 2.0)].map(|(id, weight)| WeightedDataset { id: id.to_owned(), weight });
        assert_eq!(write_query(&parts), "abc:0.7,def:2");
        assert_eq!(read_query("abc:0.7,def:2"), parts);
        assert_eq!(read_query("abc:x,:1,,def:-1,ghi"), [WeightedDataset { id: "ghi".to_owned(), weight: 1.0 }]);
    }
}
