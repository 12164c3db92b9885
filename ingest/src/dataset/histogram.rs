//! Histograms of token counts, "hist/1".

use planner::workload::Dataset;

use super::{ImportError, Imported, MAX_BINS, MAX_LENGTH, Report};

/// Name of the histogram format.
pub(super) const SCHEMA: &str = "hist/1";

/// Checks a histogram. Equal neighbouring edges are a point mass.
pub(super) fn import(unit: Option<&str>, edges: Vec<f64>, counts: Vec<f64>) -> Result<Imported, ImportError> {
    let refuse = |detail: String| Err(ImportError::Histogram { detail });
    if unit.is_some_and(|unit| unit != "tokens") {
        return refuse(format!("unit must be \"tokens\", not {:?}; convert the edges first", unit.unwrap_or_default()));
    }
    if counts.is_empty() {
        return refuse("it has no bins".to_owned());
    }
    if counts.len() > MAX_BINS {
        return refuse(format!("{} bins; at most {MAX_BINS} are accepted, join neighbours", counts.len()));
    }
    if edges.len() != counts.len() + 1 {
        return refuse(format!(
            "{} edges for {} counts; there must be one edge more than counts",
            edges.len(),
            counts.len()
        ));
    }
    for (index, &edge) in edges.iter().enumerate() {
        if !edge.is_finite() || edge < 0.0 || edge > f64::from(MAX_LENGTH) {
            return refuse(format!("edge {} is {edge}; edges lie between 0 and {MAX_LENGTH}", index + 1));
        }
        if index > 0 && edge < edges[index - 1] {
            return refuse(format!("edge {} ({edge}) is below the edge before it ({})", index + 1, edges[index - 1]));
        }
    }
    for (index, &count) in counts.iter().enumerate() {
        if !count.is_finite() || count < 0.0 {
            return refuse(format!("count {} is {count}; counts are zero or more", index + 1));
        }
        if count > 0.0 && edges[index + 1] < 1.0 {
            return refuse(format!("bin {} counts samples shorter than one token", index + 1));
        }
    }
    let samples: f64 = counts.iter().sum();
    if samples <= 0.0 {
        return refuse("every count is zero".to_owned());
    }
    if samples > 1e15 {
        return refuse(format!("the counts sum to {samples:e}; at most 1e15 samples are accepted"));
    }
    let report = Report {
        format: format!("histogram {SCHEMA}"),
        source: "edges and counts".to_owned(),
        // Half a sample in all is still a sample.
        parsed: (samples.round() as u64).max(1),
        ..Report::default()
    };
    Ok(Imported { dataset: Dataset::Histogram { edges, counts }, report })
}
