//! Selects the column of a summary: `describe()` of one or several columns, upright or transposed.
//!
//! The table of names selects the column, as for rows. Percentiles of two columns cannot be added,
//! because the correspondence between samples is unknown.

use planner::outcome::HistogramColumns;
use planner::workload::Dataset;

use super::super::choice::{Measure, Part, Selection};
use super::super::profile::{Column, Profile};
use super::super::{Candidate, ImportError, Imported, Kind, Meaning, Options, Unit, candidate, names, statistics};
use super::bins::Form;
use super::{known, number, percentiles, refuse, scale};

/// A summary: the columns that it describes, and a value per statistic and column.
#[derive(Debug, Default)]
pub(super) struct Summary {
    /// Names of the columns; empty for a summary of one column without a name.
    pub(super) columns: Vec<String>,
    /// Names of the statistics, and a value per column; `None` for a column without the statistic.
    pub(super) entries: Vec<(String, Vec<Option<f64>>)>,
}

/// Names of the column with the names of the statistics.
const STATISTICS: [&str; 10] =
    ["percentile", "quantile", "statistic", "statistics", "stat", "stats", "summary", "describe", "metric", "measure"];
/// Names of the column with the names of the described columns.
const COLUMNS: [&str; 7] = ["column", "column_name", "col", "field", "feature", "variable", "name"];

/// Returns the summary of a table that has the names of the statistics in the first column, or in the
/// header; `None` for other tables.
pub(super) fn of_table(header: &[String], rows: &[Vec<String>]) -> Result<Option<Summary>, ImportError> {
    let first = super::normal(header.first().map_or("", String::as_str));
    let labels = || rows.iter().filter_map(|row| row.first()).map(String::as_str);
    let is_index = known::is_index(&first);
    if header.len() > 1 && rows.len() > 1 && (is_index || STATISTICS.contains(&first.as_str())) {
        if percentiles::are(labels()) {
            let values = |row: &Vec<String>| (1..header.len()).map(|index| number(row.get(index)?)).collect();
            let entries = rows.iter().map(|row| (row.first().cloned().unwrap_or_default(), values(row))).collect();
            return Ok(Some(Summary { columns: header[1..].to_vec(), entries }));
        }
        if let Some(names) = percentiles::from_fractions(labels()).filter(|_| is_index) {
            let values = |row: &Vec<String>| (1..header.len()).map(|index| number(row.get(index)?)).collect();
            let entries = names.into_iter().zip(rows).map(|(name, row)| (name, values(row))).collect();
            return Ok(Some(Summary { columns: header[1..].to_vec(), entries }));
        }
        if percentiles::lacks(labels()) {
            return Err(refuse(percentiles::TOO_FEW));
        }
    }
    let names_columns = COLUMNS.contains(&first.as_str());
    // SUMMARIZE of DuckDB has further figures of each column.
    let is_statistic = |name: &&str| !names_columns || percentiles::is_known(name);
    let statistics = || header.iter().skip(1).map(String::as_str).filter(is_statistic);
    let is_transposed = header.len() > 3
        && !rows.is_empty()
        && (is_index || names_columns)
        && percentiles::are(statistics())
        && labels().all(|label| !label.is_empty() && number(label).is_none());
    Ok(is_transposed.then(|| {
        let is_kept = |index: &usize| *index == 0 || is_statistic(&header[*index].as_str());
        let kept: Vec<usize> = (0..header.len()).filter(is_kept).collect();
        let cell = |row: &Vec<String>, index: usize| row.get(index).cloned().unwrap_or_default();
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| kept.iter().map(|&index| cell(row, index)).collect()).collect();
        transposed(&statistics().collect::<Vec<_>>(), &rows.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }))
}

/// Builds the summary of rows with the name of a column and a value per statistic each.
pub(super) fn transposed<C: AsRef<str>>(statistics: &[&str], rows: &[&[C]]) -> Summary {
    let value = |row: &[C], index: usize| number(row.get(index + 1)?.as_ref());
    let entries = statistics.iter().enumerate();
    Summary {
        columns: rows.iter().filter_map(|row| row.first()).map(|name| name.as_ref().to_owned()).collect(),
        entries: entries
            .map(|(index, name)| ((*name).to_owned(), rows.iter().map(|row| value(row, index)).collect()))
            .collect(),
    }
}

impl Summary {
    /// Reads the percentiles of the selected column. `format` is the format in the report.
    pub(super) fn read(&self, format: &str, noun: &str, options: &Options<'_>) -> Result<Imported, ImportError> {
        let is_unnamed = match self.columns.as_slice() {
            [] => true,
            [only] => known::is_neutral(only),
            _ => false,
        };
        if is_unnamed {
            let source = self.columns.first().map_or_else(|| noun.to_owned(), |name| format!("column {name}"));
            let mut form = Form::new(format, source);
            if let Some(name) = self.columns.first() {
                form.warn(format!("{name} is read as lengths in tokens"));
            }
            return scale::by_unit(self.histogram(form, 0)?, "The summary", options.unit.unwrap_or_default(), options);
        }
        let profiles: Vec<Profile> = (0..self.columns.len()).map(|index| self.profile(index)).collect();
        let options = &Options { add: None, weight: Some(""), ..options.clone() };
        let unclear = || ImportError::Unclear { candidates: self.candidates(&profiles, options) };
        let selection = match Selection::new(&profiles, &[], options) {
            Ok(selection) => selection,
            Err(ImportError::Unclear { .. }) => return Err(unclear()),
            Err(error) => return Err(error),
        };
        let parts = || selection.parts.iter();
        let Some(part) = parts().max_by(|first, other| self.mean(first.index).total_cmp(&self.mean(other.index)))
        else {
            return Err(unclear());
        };
        if options.column.is_none() && is_partial(&profiles, &selection.parts) {
            return Err(unclear());
        }
        let form = Form::new(format, format!("column {}", part.name));
        let mut imported = self.histogram(form, part.index)?;
        if let Measure::Number(_, unit) = part.measure {
            imported = scale::by_unit(imported, &part.name, unit, options)?;
        }
        let report = &mut imported.report;
        report.candidates = self.candidates(&profiles, options);
        report.candidates.retain(|candidate| candidate.name != part.name);
        let others: Vec<&str> =
            parts().filter(|other| other.index != part.index).map(|other| other.name.as_str()).collect();
        if !others.is_empty() {
            report.warnings.push(statistics::only(&part.name, &others));
        }
        if let Some((_, images, ..)) = &selection.images {
            report
                .warnings
                .push(format!("{images} is not counted: a summary does not state the images of each sample."));
        }
        Ok(imported)
    }

    fn histogram(&self, form: Form, column: usize) -> Result<Imported, ImportError> {
        let value = |values: &[Option<f64>]| values.get(column).copied().flatten();
        let entries = self.entries.iter().filter_map(|(name, values)| Some((name.as_str(), value(values)?)));
        percentiles::read(form, entries)
    }

    fn value(&self, statistic: &str, column: usize) -> Option<f64> {
        let (_, values) = self.entries.iter().find(|(name, _)| name.eq_ignore_ascii_case(statistic))?;
        values.get(column).copied().flatten()
    }

    /// Returns the mean or the median of a column, for the comparison of columns.
    fn mean(&self, column: usize) -> f64 {
        let known = ["mean", "avg", "average", "50%", "p50", "median"];
        known.iter().find_map(|name| self.value(name, column)).unwrap_or_default()
    }

    /// Builds the profile of a column. The percentiles of whole numbers have decimals.
    fn profile(&self, index: usize) -> Profile {
        let column = Column { name: self.columns[index].clone(), kind: Some(Kind::Number) };
        let mut profile = Profile::new(&column, std::iter::empty());
        profile.samples = ["min", "mean", "50%", "max"]
            .iter()
            .filter_map(|name| Some(format!("{name} {}", self.value(name, index)?)))
            .collect();
        profile
    }

    /// Returns the columns that the user can choose, each with its percentiles as preview.
    fn candidates(&self, profiles: &[Profile], options: &Options<'_>) -> Vec<Candidate> {
        let mut candidates = candidate::candidates(profiles, &[], options, &[]);
        for candidate in &mut candidates {
            let Some(index) = self.columns.iter().position(|name| *name == candidate.name) else { continue };
            let unit = if let Meaning::Length(unit) = candidate.meaning { unit } else { Unit::Tokens };
            let read = self.histogram(Form::new("", ""), index);
            let read = read.and_then(|imported| scale::by_unit(imported, "", unit, options));
            candidate.preview = match read {
                Ok(Imported { dataset: Dataset::Histogram { edges, counts }, .. }) => {
                    HistogramColumns::from_bins(&edges, &counts)
                }
                _ => None,
            };
        }
        candidates
    }
}

/// Returns whether the summary has a column with an unknown length beside a part of the sample, for
/// example `chosen_len` beside `prompt_len`.
fn is_partial(profiles: &[Profile], parts: &[Part]) -> bool {
    let is_side = |part: &Part| matches!(profiles[part.index].meaning, Meaning::Prompt | Meaning::Completion);
    let is_unknown = |(index, profile): (usize, &Profile)| {
        parts.iter().all(|part| part.index != index)
            && profile.meaning == Meaning::Unknown
            && names::ends_as_length(&profile.name)
    };
    parts.len() == 1 && parts.iter().all(is_side) && profiles.iter().enumerate().any(is_unknown)
}
