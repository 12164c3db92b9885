//! Detects the columns of a histogram table by their names and the first rows.

use super::super::{ImportError, Meaning};
use super::known::{self, CENTERS, COMPLEMENT, COUNTS, CUMULATIVE, LEFT, LENGTHS, RIGHT, is_index};
use super::{interval, number, percentiles, refuse};

/// Columns of a histogram table, by index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Columns {
    /// Lengths and counts.
    Points { lengths: usize, counts: usize },
    /// Edges and counts. Without an upper edge, the next lower edge ends the bin.
    Edges { left: usize, right: Option<usize>, counts: usize },
    /// Bin centers and counts.
    Centers { centers: usize, counts: usize },
    /// Bins as text, and counts.
    Intervals { bins: usize, counts: usize },
    /// Lengths and cumulative counts.
    Cumulative { lengths: usize, cumulative: usize },
    /// A row of percentiles, named by the header.
    PercentileRow,
}

impl Columns {
    /// Returns the indices of the number columns.
    pub(super) fn numbers(&self) -> Vec<usize> {
        match *self {
            Self::Points { lengths: first, counts: other }
            | Self::Centers { centers: first, counts: other }
            | Self::Cumulative { lengths: first, cumulative: other } => vec![first, other],
            Self::Edges { left, right, counts } => [Some(left), right, Some(counts)].into_iter().flatten().collect(),
            Self::Intervals { counts: only, .. } => vec![only],
            Self::PercentileRow => Vec::new(),
        }
    }

    /// Returns the index of the column with the lengths or the edges.
    pub(super) const fn lengths(&self) -> Option<usize> {
        match *self {
            Self::Points { lengths: index, .. }
            | Self::Edges { left: index, .. }
            | Self::Centers { centers: index, .. }
            | Self::Intervals { bins: index, .. }
            | Self::Cumulative { lengths: index, .. } => Some(index),
            Self::PercentileRow => None,
        }
    }
}

/// Detects the histogram columns; returns `None` if the table is not a histogram.
pub(super) fn columns(names: &[String], head: &[Vec<String>]) -> Result<Option<Columns>, ImportError> {
    let find = |known: &[&str]| known.iter().find_map(|known| names.iter().position(|name| name == known));
    let cells = |index: usize| head.iter().map(move |row| row.get(index).map_or("", String::as_str));
    let is_numeric = |index: usize| !head.is_empty() && cells(index).all(|cell| number(cell).is_some());
    if head.len() == 1 && percentiles::are(names.iter().map(String::as_str)) {
        return Ok(Some(Columns::PercentileRow));
    }
    let is_count = |name: &String| super::super::names::meaning(name).0 == Meaning::Weight;
    let counts = find(&COUNTS).or_else(|| names.iter().position(is_count));
    if let Some(intervals) = intervals(names, head, counts)? {
        return Ok(Some(intervals));
    }
    // pandas writes an index column without a name.
    let index = is_index(&names[0]);
    if let (Some((left, right)), Some(counts)) = (pair(names), counts)
        && names.len() - usize::from(index) == 3
        && head.len() > 1
        && is_numeric(left)
    {
        return Ok(Some(Columns::Edges { left, right: Some(right), counts }));
    }
    let is_side = |name: &String| known::is_share(name) || CUMULATIVE.contains(&name.as_str()) || is_index(name);
    if let (Some(left), right, Some(counts)) = (find(&LEFT), find(&RIGHT), counts)
        && names.len() <= 4
        && is_numeric(left)
        // Without upper edges, the table may contain only lower edges, counts and count shares.
        && (right.is_some() || names.iter().enumerate().all(|(position, name)| [left, counts].contains(&position) || is_side(name)))
    {
        return Ok(Some(Columns::Edges { left, right, counts }));
    }
    if let (Some(centers), Some(counts)) = (find(&CENTERS), counts)
        && names.len() - usize::from(index) == 2
        && is_numeric(centers)
    {
        return Ok(Some(Columns::Centers { centers, counts }));
    }
    let lengths = find(&LENGTHS).or_else(|| names.iter().position(|name| known::counts_characters(name)));
    let is_narrow = names.len() - usize::from(index && lengths != Some(0)) == 2;
    if let (Some(lengths), None) = (lengths, counts)
        && is_narrow
    {
        if let Some(complement) = find(&COMPLEMENT) {
            return Err(refuse(format!(
                "{} is the share of longer samples. Write the share of samples up to each length, 1 - {0}, and name the column cdf",
                names[complement]
            )));
        }
        if let Some(cumulative) = find(&CUMULATIVE).filter(|cumulative| *cumulative != lengths) {
            return Ok(Some(Columns::Cumulative { lengths, cumulative }));
        }
    }
    let with_cumulative = find(&CUMULATIVE).is_some() && names.len() == 3;
    match (lengths, counts) {
        (Some(lengths), Some(counts)) if is_narrow || with_cumulative => Ok(Some(Columns::Points { lengths, counts })),
        (None, Some(1)) if index && names.len() == 2 && is_numeric(0) => {
            Ok(Some(Columns::Points { lengths: 0, counts: 1 }))
        }
        (Some(1) | None, None) if index && names.len() == 2 && is_numeric(0) && is_numeric(1) => {
            let counts_rows = cells(0).enumerate().all(|(row, cell)| number(cell) == Some(row as f64));
            // value_counts sorts by count, in descending order.
            let falls = cells(1).filter_map(number).is_sorted_by(|previous, next| previous >= next);
            if counts_rows || !falls || head.len() < 2 {
                return Ok(None);
            }
            Err(refuse(format!(
                "its first column has no name, and {:?} holds either lengths (after a row index) or counts (value_counts writes the lengths \
                 into the first column). Name both columns, for example length,count, or remove the first one",
                names[1]
            )))
        }
        _ => Ok(None),
    }
}

/// Returns the indices of two edge columns whose names denote edges only as a pair.
fn pair(names: &[String]) -> Option<(usize, usize)> {
    let index_by_name = |known: &str| names.iter().position(|name| name == known);
    known::PAIRS.iter().find_map(|(left, right)| Some((index_by_name(left)?, index_by_name(right)?)))
}

/// Returns the columns of text bins and their counts.
fn intervals(names: &[String], head: &[Vec<String>], counts: Option<usize>) -> Result<Option<Columns>, ImportError> {
    let cells = |index: usize| head.iter().map(move |row| row.get(index).map_or("", String::as_str));
    let is_bins = |index: &usize| !head.is_empty() && cells(*index).all(|cell| interval::read(cell).is_some());
    let is_numeric = |index: usize| cells(index).all(|cell| super::count(cell).is_some());
    let Some(bins) = (0..names.len()).find(is_bins) else { return Ok(None) };
    let only_other = || {
        let others: Vec<usize> = (0..names.len()).filter(|&other| other != bins && is_numeric(other)).collect();
        if let [only] = others.as_slice() { Some(*only) } else { None }
    };
    let counts = counts.filter(|&counts| counts != bins).or_else(|| only_other().filter(|_| is_index(&names[bins])));
    let tokens =
        || (0..names.len()).find(|&other| other != bins && known::is_length(&names[other]) && is_numeric(other));
    if counts.is_none()
        && known::is_bins(&names[bins])
        && let Some(tokens) = tokens().filter(|&tokens| !are_inside(head, bins, tokens))
    {
        return Err(refuse(format!(
            "{} may hold the tokens of all samples of each bin. Write the number of samples of each bin in a column named count",
            names[tokens]
        )));
    }
    let Some(counts) = counts else { return Ok(None) };
    // pandas writes the series name above the counts.
    let is_series =
        is_index(&names[bins]) && !known::is_neutral(&names[counts]) && !COUNTS.contains(&names[counts].as_str());
    let name = if is_series { &names[counts] } else { &names[bins] };
    // Output of polars' hist().
    let is_polars = name == "category" && names.iter().any(|name| name == "breakpoint");
    if known::is_bins(name) || is_polars {
        return Ok(Some(Columns::Intervals { bins, counts }));
    }
    // In a table with a length column, a range is a property of each sample.
    let has_lengths = names.iter().enumerate().any(|(index, name)| index != bins && known::is_length(name));
    if has_lengths { Ok(None) } else { Err(refuse(known::unknown(name))) }
}

/// Returns whether each number is inside its bin, which means that the bin is a property of a
/// sample.
fn are_inside(head: &[Vec<String>], bins: usize, numbers: usize) -> bool {
    head.iter().all(|row| {
        let cell = |index: usize| row.get(index).map_or("", String::as_str);
        number(cell(numbers)).and_then(|number| super::is_inside(cell(bins), number)) == Some(true)
    })
}
