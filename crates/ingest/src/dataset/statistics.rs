//! Reads statistics of a Hugging Face dataset, the response of the server's `/statistics`: a
//! histogram with ten bins per column. Statistics of TensorFlow Data Validation are converted to this form.
//!
//! Texts are counted in characters, lists by element count.

mod tfdv;

use planner::outcome::HistogramColumns;
use serde::Deserialize;

use super::candidate;
use super::choice::{self, Measure, Part, Selection};
use super::profile::{Column as Named, Profile};
use super::{Candidate, ImportError, Imported, Kind, Meaning, Options, Unit, histogram};

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
    mean: Option<f64>,
    histogram: Option<Bins>,
}

#[derive(Debug, Deserialize)]
struct Bins {
    hist: Vec<f64>,
    bin_edges: Vec<f64>,
}

/// Returns whether a JSON text looks like a statistics response.
pub(super) fn is(text: &str) -> bool {
    let is_hub =
        text.trim_start().starts_with('{') && text.contains("\"statistics\"") && text.contains("\"column_statistics\"");
    is_hub || tfdv::is(text)
}

/// Reads the histogram of a column. The table of names selects the column, as for other formats.
pub(super) fn import(text: &str, options: &Options<'_>) -> Result<Imported, ImportError> {
    let read =
        if tfdv::is(text) { tfdv::document(text) } else { serde_json::from_str(text).map(|hub| (hub, Vec::new())) };
    let (document, others) = read.map_err(|error| ImportError::Json { detail: error.to_string() })?;
    let profiles: Vec<Profile> = document.statistics.iter().map(Column::profile).collect();
    let refuse = |detail: String| Err(ImportError::Histogram { detail });
    // The correspondence between the samples of two columns is unknown.
    if let Some(name) = [options.add, options.weight].into_iter().flatten().find(|name| !name.is_empty()) {
        return refuse(format!(
            "statistics do not relate the rows of {name} to those of another column; choose one column"
        ));
    }
    let options = &Options { add: None, weight: Some(""), ..options.clone() };
    let selection = match Selection::new(&profiles, &[], options) {
        Ok(selection) => selection,
        Err(ImportError::Unclear { .. }) => {
            return Err(ImportError::Unclear { candidates: document.candidates(&profiles, options, None) });
        }
        Err(error) => return Err(error),
    };
    let Some(part) = max_mean_part(&document, &selection) else {
        return Err(ImportError::Unclear { candidates: document.candidates(&profiles, options, None) });
    };
    let column = &document.statistics[part.index];
    let Some((edges, counts)) = column.bins(document.num_examples, part.measure, options) else {
        return refuse(format!("column {} has neither a histogram nor extremes", column.name));
    };
    let mut imported = histogram::import(Some("tokens"), edges, counts)?;
    let report = &mut imported.report;
    let format = if tfdv::is(text) { "TFDV statistics" } else { "Hugging Face statistics" };
    format.clone_into(&mut report.format);
    let prefix = match part.measure {
        Measure::Elements => "lengths of the lists of column",
        Measure::Text => "characters of column",
        Measure::Number(..) => "column",
    };
    report.source = format!("{prefix} {}", column.name);
    report.candidates = document.candidates(&profiles, options, Some(part.index));
    report.skipped = column.statistics.nan_count.unwrap_or_default().max(0.0) as u64;
    report.warnings = vec!["Lengths inside a bin of the statistics are spread evenly.".to_owned()];
    if !others.is_empty() {
        report.warnings.push(format!("Only the first dataset is read, not {}.", others.join(", ")));
    }
    if part.measure == Measure::Text {
        report.repaired = std::mem::take(&mut report.parsed);
        report.warnings.push(format!(
            "The statistics count characters. They are divided by {} characters per token.",
            options.characters_per_token
        ));
    } else if let Measure::Number(_, unit @ (Unit::Characters | Unit::Bytes)) = part.measure {
        report.warnings.push(format!(
            "{} counts {}. They are divided by {} characters per token.",
            column.name,
            unit.id(),
            options.characters_per_token
        ));
    }
    if selection.parts.len() > 1 {
        let others: Vec<&str> =
            selection.parts.iter().filter(|other| other.index != part.index).map(|other| other.name.as_str()).collect();
        report.warnings.push(only(&column.name, &others));
    }
    if document.partial {
        report.warnings.push("The statistics are those of a part of the dataset, its first 5 GB.".to_owned());
    }
    report.first_problem = (report.skipped > 0).then(|| format!("{} rows have no value", report.skipped));
    Ok(imported)
}

/// Returns the warning that the statistics of one column are read and those of others are not added.
pub(super) fn only(name: &str, others: &[&str]) -> String {
    format!(
        "Only {name} is counted. {} belong to the same samples, but statistics of columns cannot be added. Upload a shard for their sum.",
        others.join(", ")
    )
}

/// Returns the part with the maximum mean.
fn max_mean_part<'c>(document: &Document, selection: &'c Selection) -> Option<&'c Part> {
    let mean = |part: &&Part| document.statistics[part.index].statistics.mean.unwrap_or(0.0);
    let has_bins = |part: &&Part| {
        let column = &document.statistics[part.index];
        column.statistics.histogram.is_some() || column.statistics.min.is_some()
    };
    let with_bins = selection.parts.iter().filter(has_bins).max_by(|first, other| mean(first).total_cmp(&mean(other)));
    with_bins.or(selection.parts.first())
}

impl Column {
    /// Builds the column's profile in the common representation. Label texts and message lists have
    /// different types in this format.
    fn profile(&self) -> Profile {
        let kind = match self.kind.as_str() {
            "int" | "float" => Kind::Number,
            "list" => Kind::NumberList,
            "string_text" => Kind::Text,
            "bool" | "class_label" | "string_label" => Kind::Boolean,
            "datetime" => Kind::Timestamp,
            "audio" => Kind::Duration,
            _ => Kind::Binary,
        };
        let mut profile = Profile::new(&Named { name: self.name.clone(), kind: Some(kind) }, std::iter::empty());
        // The elements of a message list are turns; the statistics do not contain the element type.
        if kind == Kind::NumberList
            && !matches!(profile.meaning, Meaning::Length(_) | Meaning::Prompt | Meaning::Completion)
        {
            profile.kind = Kind::ObjectList;
        }
        profile.samples = [("min", self.statistics.min), ("mean", self.statistics.mean), ("max", self.statistics.max)]
            .into_iter()
            .filter_map(|(name, value)| Some(format!("{name} {}", value?)))
            .collect();
        profile
    }

    /// Returns edges and counts of the bins in tokens; `None` if there are none.
    fn bins(&self, num_examples: Option<f64>, measure: Measure, options: &Options<'_>) -> Option<(Vec<f64>, Vec<f64>)> {
        let per_token = match measure {
            Measure::Text | Measure::Number(_, Unit::Characters | Unit::Bytes) => options.characters_per_token,
            Measure::Elements | Measure::Number(_, Unit::Tokens) => 1.0,
        };
        let Statistics { nan_count, min, max, histogram, .. } = &self.statistics;
        match (histogram, min, max) {
            (Some(bins), ..) => Some((bins.bin_edges.iter().map(|edge| edge / per_token).collect(), bins.hist.clone())),
            // A constant column has no histogram.
            (None, Some(min), Some(max)) => {
                let all = num_examples.unwrap_or(1.0) - nan_count.unwrap_or_default();
                Some((vec![min / per_token, max / per_token], vec![all]))
            }
            _ => None,
        }
    }
}

impl Document {
    /// Returns the candidate columns, each with its bins as preview.
    fn candidates(&self, profiles: &[Profile], options: &Options<'_>, without: Option<usize>) -> Vec<Candidate> {
        let mut candidates = candidate::candidates(profiles, &[], options, &[]);
        for (index, (candidate, column)) in candidates.iter_mut().zip(&self.statistics).enumerate() {
            let unit = if let Meaning::Length(unit) = candidate.meaning { unit } else { Unit::Tokens };
            let bins = choice::measure(&profiles[index], unit)
                .and_then(|measure| column.bins(self.num_examples, measure, options));
            candidate.preview = bins
                .filter(|(edges, counts)| edges.len() == counts.len() + 1)
                .and_then(|(edges, counts)| HistogramColumns::from_bins(&edges, &counts));
        }
        if let Some(index) = without.filter(|index| *index < candidates.len()) {
            candidates.remove(index);
        }
        candidates
    }
}

#[cfg(test)]
mod tests {
    use planner::workload::Dataset;

    use super::super::ImportError;
    use super::super::tests::import;

    /// The example from the server's documentation, and columns of other types.
    const FILE: &str = r#"{"num_examples":8551,"statistics":[
        {"column_name":"sentence","column_type":"string_text","column_statistics":{"nan_count":0,"nan_proportion":0,"min":6,"max":231,"mean":40.70074,
            "histogram":{"hist":[2260,4512,1262,380,102,26,6,1,1,1],"bin_edges":[6,29,52,75,98,121,144,167,190,213,231]}}},
        {"column_name":"input_ids","column_type":"list","column_statistics":{"nan_count":3,"min":1,"max":1,"histogram":{"hist":[5,2],"bin_edges":[0,1,1]}}},
        {"column_name":"same","column_type":"int","column_statistics":{"nan_count":51,"min":7,"max":7,"histogram":null}},
        {"column_name":"sound","column_type":"audio","column_statistics":{"min":0.1,"max":9.5,"histogram":{"hist":[5],"bin_edges":[0.1,9.5]}}},
        {"column_name":"class","column_type":"string_label","column_statistics":{"frequencies":{"a":5}}}],"partial":true}"#;

    #[test]
    fn all_column_types() {
        let known = import(FILE.as_bytes(), None).expect("statistics");
        assert_eq!(known.dataset, Dataset::Histogram { edges: vec![0.0, 1.0, 1.0], counts: vec![5.0, 2.0] });
        assert_eq!(
            (known.report.source.as_str(), known.report.skipped),
            ("lengths of the lists of column input_ids", 3)
        );
        assert!(known.report.first_problem.is_some_and(|problem| problem.contains("3 rows")));
        let text = import(FILE.as_bytes(), Some("sentence")).expect("statistics");
        let Dataset::Histogram { edges, counts } = text.dataset else { panic!("a histogram") };
        assert_eq!((edges[0], edges[10], counts.iter().sum::<f64>()), (1.5, 57.75, 8551.0));
        assert!(text.report.warnings.iter().any(|warning| warning.contains("divided by 4")));
        let same = import(FILE.as_bytes(), Some("same")).expect("statistics");
        assert_eq!(same.dataset, Dataset::Histogram { edges: vec![7.0, 7.0], counts: vec![8500.0] });
        for column in ["sound", "class"] {
            assert!(matches!(import(FILE.as_bytes(), Some(column)), Err(ImportError::NoLengths { .. })));
        }
        assert!(matches!(import(FILE.as_bytes(), Some("nope")), Err(ImportError::NoSuchColumn { .. })));
    }

    /// Chat turns, labels, image widths and scores are not lengths; the candidates have previews.
    #[test]
    fn columns_that_are_no_lengths_are_offered() {
        let file = r#"{"num_examples":100,"statistics":[
            {"column_name":"messages","column_type":"list","column_statistics":{"min":2,"max":4,"histogram":{"hist":[90,10],"bin_edges":[2,3,4]}}},
            {"column_name":"label","column_type":"int","column_statistics":{"min":0,"max":2,"histogram":{"hist":[50,40,10],"bin_edges":[0,1,2,2]}}},
            {"column_name":"image","column_type":"image","column_statistics":{"min":64,"max":1024,"mean":500,"histogram":{"hist":[100],"bin_edges":[64,1024]}}},
            {"column_name":"words","column_type":"int","column_statistics":{"min":10,"max":30,"histogram":{"hist":[60,40],"bin_edges":[10,20,30]}}}]}"#;
        let Err(ImportError::Unclear { candidates }) = import(file.as_bytes(), None) else { panic!("unclear") };
        assert_eq!(super::super::tests::names(&candidates), ["messages", "label", "image", "words"]);
        let counts =
            |index: usize| candidates[index].preview.as_ref().map(|preview| preview.counts.iter().sum::<u64>());
        assert_eq!([0, 1, 2, 3].map(counts), [None, Some(100), None, Some(100)]);
        assert!(matches!(import(file.as_bytes(), Some("messages")), Err(ImportError::NoLengths { .. })));
    }
}
