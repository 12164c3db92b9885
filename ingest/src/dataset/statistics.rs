//! Statistics of a Hugging Face dataset, as its server's `/statistics` gives them: a histogram of ten bins per column.
//!
//! Texts are counted in characters there, and are divided by [`CHARACTERS_PER_TOKEN`]; lists by their elements, which
//! are tokens where the column holds them.

use serde::Deserialize;

use super::column::{self, Column as Named};
use super::{ImportError, Imported, histogram};

/// Characters of a token of English text, about: tokenisers of today's models come to 4 to 4.5.
pub const CHARACTERS_PER_TOKEN: f64 = 4.0;

#[derive(Debug, Deserialize)]
struct Document {
    statistics: Vec<Column>,
    #[serde(default)]
    num_examples: Option<f64>,
    #[serde(default)]
    partial: bool,
}

#[derive(Debug, Deserialize)]
struct Column {
    #[serde(rename = "column_name")]
    name: String,
    #[serde(rename = "column_type")]
    kind: String,
    #[serde(default, rename = "column_statistics")]
    statistics: Statistics,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Statistics {
    nan_count: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    histogram: Option<Bins>,
}

#[derive(Debug, Deserialize)]
struct Bins {
    hist: Vec<f64>,
    bin_edges: Vec<f64>,
}

/// Whether a JSON text looks like it.
pub(super) fn is(text: &str) -> bool {
    text.trim_start().starts_with('{') && text.contains("\"statistics\"") && text.contains("\"column_statistics\"")
}

/// Reads the histogram of a column.
pub(super) fn import(text: &str, asked: Option<&str>) -> Result<Imported, ImportError> {
    let document: Document =
        serde_json::from_str(text).map_err(|error| ImportError::Json { detail: error.to_string() })?;
    let columns: Vec<Named> = document
        .statistics
        .iter()
        .map(|column| {
            let numeric = matches!(column.kind.as_str(), "int" | "float" | "list" | "string_text");
            Named { name: column.name.clone(), numeric }
        })
        .collect();
    let choice = column::choose(&columns, asked)?;
    let Column { name, kind, statistics } = &document.statistics[choice.lengths];
    let (what, per_token) = match kind.as_str() {
        "int" | "float" => ("column", 1.0),
        "list" => ("lengths of the lists of column", 1.0),
        "string_text" => ("characters of column", CHARACTERS_PER_TOKEN),
        other => {
            let detail = format!("column {name} is of type {other:?}, which says nothing of tokens");
            return Err(ImportError::Histogram { detail });
        }
    };
    let Statistics { nan_count, min, max, histogram } = statistics;
    let (edges, counts) = match (histogram, min, max) {
        (Some(bins), ..) => (bins.bin_edges.iter().map(|edge| edge / per_token).collect(), bins.hist.clone()),
        // A column of equal values has no histogram.
        (None, Some(min), Some(max)) => {
            let all = document.num_examples.unwrap_or(1.0) - nan_count.unwrap_or_default();
            (vec![min / per_token, max / per_token], vec![all])
        }
        _ => {
            let detail = format!("column {name} has neither a histogram nor extremes");
            return Err(ImportError::Histogram { detail });
        }
    };
    let mut imported = histogram::import(Some("tokens"), edges, counts)?;
    let report = &mut imported.report;
    "Hugging Face statistics".clone_into(&mut report.format);
    report.source = format!("{what} {name}");
    report.alternatives = choice.alternatives;
    report.skipped = nan_count.unwrap_or_default().max(0.0) as u64;
    let mut told = Vec::new();
    if kind == "string_text" {
        report.repaired = std::mem::take(&mut report.parsed);
        told.push(format!("characters were divided by {CHARACTERS_PER_TOKEN}, which English text has per token"));
    }
    if document.partial {
        told.push("the statistics are of a part of the dataset, its first 5 GB".to_owned());
    }
    if report.skipped > 0 {
        told.push(format!("{} rows have no value", report.skipped));
    }
    report.first_problem = (!told.is_empty()).then(|| told.join("; "));
    Ok(imported)
}

#[cfg(test)]
mod tests {
    use planner::workload::Dataset;

    use super::super::{ImportError, import};

    /// The example of the server's documentation, and columns of other types.
    const FILE: &str = r#"{"num_examples":8551,"statistics":[
        {"column_name":"sentence","column_type":"string_text","column_statistics":{"nan_count":0,"nan_proportion":0,"min":6,"max":231,"mean":40.70074,
            "histogram":{"hist":[2260,4512,1262,380,102,26,6,1,1,1],"bin_edges":[6,29,52,75,98,121,144,167,190,213,231]}}},
        {"column_name":"input_ids","column_type":"list","column_statistics":{"nan_count":3,"min":1,"max":1,"histogram":{"hist":[5,2],"bin_edges":[0,1,1]}}},
        {"column_name":"same","column_type":"int","column_statistics":{"nan_count":51,"min":7,"max":7,"histogram":null}},
        {"column_name":"sound","column_type":"audio","column_statistics":{"min":0.1,"max":9.5,"histogram":{"hist":[5],"bin_edges":[0.1,9.5]}}},
        {"column_name":"class","column_type":"string_label","column_statistics":{"frequencies":{"a":5}}}],"partial":true}"#;

    #[test]
    fn columns_of_every_type() {
        let known = import(FILE.as_bytes(), None).expect("statistics");
        assert_eq!(known.dataset, Dataset::Histogram { edges: vec![0.0, 1.0, 1.0], counts: vec![5.0, 2.0] });
        assert_eq!(
            (known.report.source.as_str(), known.report.skipped),
            ("lengths of the lists of column input_ids", 3)
        );
        assert!(known.report.first_problem.is_some_and(|told| told.contains("part") && told.contains("3 rows")));
        let text = import(FILE.as_bytes(), Some("sentence")).expect("statistics");
        let Dataset::Histogram { edges, counts } = text.dataset else { panic!("a histogram") };
        assert_eq!((edges[0], edges[10], counts.iter().sum::<f64>()), (1.5, 57.75, 8551.0));
        assert!(text.report.first_problem.is_some_and(|told| told.contains("divided by 4")));
        let same = import(FILE.as_bytes(), Some("same")).expect("statistics");
        assert_eq!(same.dataset, Dataset::Histogram { edges: vec![7.0, 7.0], counts: vec![8500.0] });
        for column in ["sound", "class"] {
            assert!(matches!(import(FILE.as_bytes(), Some(column)), Err(ImportError::Histogram { .. })));
        }
        assert!(matches!(import(FILE.as_bytes(), Some("nope")), Err(ImportError::NoSuchColumn { .. })));
    }
}
