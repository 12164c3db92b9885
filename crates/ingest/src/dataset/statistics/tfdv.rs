//! Reads the statistics of TensorFlow Data Validation, `DatasetFeatureStatisticsList` as JSON.
//!
//! A feature with one number per example has a histogram of the numbers, a list has one of its numbers of values. Buckets without
//! `lowValue` begin at zero, because the JSON of protocol buffers leaves out zeros.

use serde::Deserialize;
use serde_json::Value;

use super::{Bins, Column, Document, Statistics};

#[derive(Debug, Deserialize)]
struct List {
    datasets: Vec<Dataset>,
}

#[derive(Debug, Deserialize)]
struct Dataset {
    #[serde(default)]
    name: String,
    #[serde(default, alias = "num_examples", rename = "numExamples")]
    examples: Value,
    #[serde(default)]
    features: Vec<Feature>,
}

#[derive(Debug, Deserialize)]
struct Feature {
    #[serde(default)]
    name: String,
    #[serde(default)]
    path: Path,
    #[serde(default, alias = "num_stats", rename = "numStats")]
    numbers: Option<Numbers>,
}

#[derive(Debug, Default, Deserialize)]
struct Path {
    #[serde(default)]
    step: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Numbers {
    #[serde(default, alias = "common_stats", rename = "commonStats")]
    common: Common,
    #[serde(default)]
    min: f64,
    #[serde(default)]
    max: f64,
    #[serde(default)]
    mean: f64,
    #[serde(default)]
    histograms: Vec<Histogram>,
}

#[derive(Debug, Default, Deserialize)]
struct Common {
    #[serde(default, alias = "max_num_values", rename = "maxNumValues")]
    most: Value,
    #[serde(default, alias = "avg_num_values", rename = "avgNumValues")]
    mean: f64,
    #[serde(default, alias = "num_values_histogram", rename = "numValuesHistogram")]
    histogram: Option<Histogram>,
}

#[derive(Debug, Default, Deserialize)]
struct Histogram {
    #[serde(default)]
    buckets: Vec<Bucket>,
    /// Empty for the standard type.
    #[serde(default, rename = "type")]
    kind: String,
}

#[derive(Debug, Deserialize)]
struct Bucket {
    #[serde(default, alias = "low_value", rename = "lowValue")]
    low: f64,
    #[serde(default, alias = "high_value", rename = "highValue")]
    high: f64,
    #[serde(default, alias = "sample_count", rename = "sampleCount")]
    count: f64,
}

/// Returns whether a JSON text looks like these statistics.
pub(super) fn is(text: &str) -> bool {
    let has = |names: [&str; 2]| names.iter().any(|name| text.contains(name));
    text.trim_start().starts_with('{')
        && text.contains("\"datasets\"")
        && text.contains("\"features\"")
        && has(["\"numStats\"", "\"num_stats\""])
}

/// Returns the first dataset in the common form, and the names of the others.
pub(super) fn document(text: &str) -> serde_json::Result<(Document, Vec<String>)> {
    let List { datasets } = serde_json::from_str(text)?;
    let mut datasets = datasets.into_iter();
    let first = datasets.next();
    let others = datasets.map(|dataset| dataset.name).collect();
    let examples = first.as_ref().and_then(|dataset| number(&dataset.examples));
    let features = first.map(|dataset| dataset.features).unwrap_or_default();
    let statistics = features.into_iter().filter_map(column).collect();
    Ok((Document { statistics, num_examples: examples, partial: false }, others))
}

/// Returns a number, which the JSON of protocol buffers writes as text if it has 64 bits.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

fn column(feature: Feature) -> Option<Column> {
    let Numbers { common, min, max, mean, histograms } = feature.numbers?;
    let name = if feature.name.is_empty() { feature.path.step.join(".") } else { feature.name };
    let bins = |histogram: &Histogram| {
        let first = histogram.buckets.first()?;
        let edges = std::iter::once(first.low).chain(histogram.buckets.iter().map(|bucket| bucket.high));
        Some(Bins { hist: histogram.buckets.iter().map(|bucket| bucket.count).collect(), bin_edges: edges.collect() })
    };
    let is_list = number(&common.most).is_some_and(|most| most > 1.0);
    let (kind, statistics) = if is_list {
        let histogram = common.histogram.as_ref().and_then(bins);
        ("list", Statistics { mean: Some(common.mean), histogram, ..Statistics::default() })
    } else {
        // Quantiles are a second histogram of the same numbers.
        let standard = histograms.iter().find(|histogram| matches!(histogram.kind.as_str(), "" | "STANDARD"));
        let histogram = standard.or(histograms.first()).and_then(bins);
        ("int", Statistics { min: Some(min), max: Some(max), mean: Some(mean), histogram, ..Statistics::default() })
    };
    Some(Column { name, kind: kind.to_owned(), statistics })
}
