//! Reads series and summaries that pandas prints: `value_counts()` and `describe()`.

use super::super::{ImportError, Imported, Options};
use super::bins::{self, Form};
use super::summary::{self, Summary};
use super::{edges, interval, known, number, percentiles, refuse, scale};

/// Maximum number of lines in a summary.
const MAX_SUMMARY: usize = 50;
/// Maximum line length in a summary, in bytes.
const MAX_LINE: usize = 1000;

/// Reads a printed `value_counts()`: lengths or bins with counts. The length name is above the
/// values or in the last line.
pub(super) fn counts(text: &str, options: &Options<'_>) -> Option<Result<Imported, ImportError>> {
    let footer = text.lines().next_back().filter(|line| line.starts_with("Name: ") || line.starts_with("dtype: "));
    let body = footer.map_or(text, |footer| text.strip_suffix(footer).unwrap_or(text));
    let mut lines = body.lines().filter(|line| !line.trim().is_empty()).peekable();
    let header = lines.next_if(|line| is_header(line, footer.is_some())).map(str::trim);
    if footer.is_none() && header.is_none() {
        return None;
    }
    let footer =
        footer.map(|footer| footer.strip_prefix("Name: ").map_or("", |rest| rest.split(", ").next().unwrap_or("")));
    let mut rows: Vec<(&str, f64)> = Vec::new();
    for line in lines {
        if line.trim_start().starts_with("..") {
            let detail = "the printed table is shortened with \"..\"; write it with to_csv()";
            return footer.map(|_| Err(refuse(detail)));
        }
        let (key, count) = line.trim_end().rsplit_once(char::is_whitespace)?;
        rows.push((key.trim(), number(count)?));
        if rows.len() > super::super::MAX_ROWS {
            return Some(Err(ImportError::TooManyRows));
        }
    }
    let has_counts = footer.is_some_and(|name| ["count", "proportion"].contains(&name));
    // Before pandas 2 the last line names the lengths.
    let name = header.or(footer.filter(|name| !has_counts && !name.is_empty()));
    let read = if rows.iter().all(|(key, _)| interval::read(key).is_some()) {
        intervals(name, &rows)
    } else {
        points(header, footer, has_counts, &rows)
    };
    let name = name.unwrap_or_default();
    let unit = options.unit.unwrap_or_else(|| known::unit(name));
    Some(read?.and_then(|imported| scale::by_unit(imported, name, unit, options)))
}

/// Returns whether a line is the name above the values. Without the last line of pandas, the name
/// must be one word.
fn is_header(line: &str, has_footer: bool) -> bool {
    if has_footer {
        let last = line.trim_end().rsplit(char::is_whitespace).next().unwrap_or_default();
        return number(last).is_none() && !line.trim_start().starts_with("..");
    }
    !line.starts_with(char::is_whitespace) && line.split_whitespace().count() == 1 && number(line).is_none()
}

fn intervals(name: Option<&str>, rows: &[(&str, f64)]) -> Option<Result<Imported, ImportError>> {
    if rows.len() < 2 {
        return None;
    }
    if let Some(name) = name.filter(|name| !known::is_bins(name)) {
        return Some(Err(refuse(known::unknown(name))));
    }
    let mut form = Form::new("printed value_counts, bins", "index and count");
    if name.is_none() {
        form.warn("the series has no name: its bins are read as bins of lengths in tokens");
    }
    let cells: Vec<(&str, String)> = rows.iter().map(|(bin, count)| (*bin, count.to_string())).collect();
    Some(edges::intervals(form, cells.iter().map(|(bin, count)| (*bin, count.as_str()))))
}

fn points(
    header: Option<&str>,
    footer: Option<&str>,
    has_counts: bool,
    rows: &[(&str, f64)],
) -> Option<Result<Imported, ImportError>> {
    let points: Vec<(f64, f64)> =
        rows.iter().map(|&(key, count)| Some((number(key)?, count))).collect::<Option<_>>()?;
    if let Some(name) = footer.filter(|_| !has_counts) {
        return old(header.or(Some(name).filter(|name| !name.is_empty())), points);
    }
    let is_length = |name: &str| known::is_length(name) || known::counts_characters(name);
    let is_known = header.is_none_or(is_length);
    if footer.is_none() {
        let falls = points.array_windows().all(|[previous, next]| previous.1 >= next.1);
        let is_index = points.iter().enumerate().all(|(row, pair)| pair.0.total_cmp(&(row as f64)).is_eq());
        // Without the last line of pandas, a table with row numbers looks the same.
        if points.len() < 2 || !falls || is_index || !is_known {
            return None;
        }
    }
    if let Some(name) = header.filter(|_| !is_known) {
        return Some(Err(refuse(known::unknown(name))));
    }
    let mut form = Form::new("printed value_counts, lengths with counts", "index and count");
    if header.is_none() {
        form.warn("the series has no name: its values are read as lengths in tokens");
    }
    if footer.is_none() {
        form.warn("the first number of each line is read as a length in tokens, and the second one as its count");
    }
    Some(bins::points(form, points))
}

/// Reads a series whose last line names the column. It contains counts by length (`value_counts()`
/// before pandas 2) or lengths by row. Counts decrease, and row numbers increase.
fn old(name: Option<&str>, points: Vec<(f64, f64)>) -> Option<Result<Imported, ImportError>> {
    let name = name.filter(|name| known::is_length(name) || known::counts_characters(name))?;
    let falls = points.array_windows().all(|[previous, next]| previous.1 >= next.1);
    let rises = points.array_windows().all(|[previous, next]| previous.0 < next.0);
    let are_counts = points.iter().all(|(length, _)| *length >= 1.0);
    if points.len() < 3 || !falls || rises || !are_counts {
        return None;
    }
    let mut form = Form::new("printed value_counts, lengths with counts", "index and count");
    form.warn(format!(
        "The first number of each line is read as a length, and the second one as its count, as value_counts() prints {name}. If the second \
         numbers are lengths, upload them alone."
    ));
    Some(bins::points(form, points))
}

/// Reads a summary with a name and a value per line: `describe()` of a series or table, or `p50:
/// 512`. A transposed summary has a column name and a value per statistic in each line.
pub(super) fn summary(text: &str, options: &Options<'_>) -> Option<Result<Imported, ImportError>> {
    if let Some(summary) = transposed(text) {
        return Some(summary.read("percentiles", "one column per line", options));
    }
    let mut header: Option<&str> = None;
    let mut name: Option<&str> = None;
    let mut has_type = false;
    let mut entries: Vec<(&str, Vec<f64>)> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        // describe() names the series column in the last line.
        if let Some(rest) = line.strip_prefix("Name:") {
            name = rest.split(", ").next().map(str::trim);
            continue;
        }
        if line.starts_with("dtype:") {
            has_type = true;
            continue;
        }
        match entry(line) {
            Some(entry) => entries.push(entry),
            None if header.is_none() && entries.is_empty() => header = Some(line),
            None => return None,
        }
        if entries.len() > MAX_SUMMARY {
            return None;
        }
    }
    let names = || entries.iter().map(|(name, _)| *name);
    // quantile() prints a series, whose last line names its type.
    let fractions = if has_type || name.is_some() { percentiles::from_fractions(names()) } else { None };
    if fractions.is_none() && !percentiles::are(names()) {
        let has_lengths = names().any(|name| name.split_whitespace().nth(1).is_some());
        let is_summary = percentiles::lacks(names()) && (header.is_some() || name.is_some() || has_lengths);
        return is_summary.then(|| Err(refuse(percentiles::TOO_FEW)));
    }
    let width = entries.first().map_or(0, |(_, values)| values.len());
    let names: Vec<&str> = match (name, header) {
        (Some(name), _) => vec![name],
        (None, Some(header)) if width == 1 => vec![header],
        (None, Some(header)) => header.split_whitespace().collect(),
        (None, None) => Vec::new(),
    };
    let is_table = entries.iter().all(|(_, values)| values.len() == width) && names.len().max(1) == width;
    if !is_table {
        return Some(Err(refuse("the names above the summary do not fit its columns; write it with to_csv()")));
    }
    if names.is_empty() && options.column.is_some() {
        return None;
    }
    let summary = Summary {
        columns: names.into_iter().map(str::to_owned).collect(),
        entries: entries
            .into_iter()
            .enumerate()
            .map(|(index, (name, values))| {
                let name = fractions.as_ref().and_then(|names| names.get(index)).map_or(name, String::as_str);
                (name.to_owned(), values.into_iter().map(Some).collect())
            })
            .collect(),
    };
    Some(summary.read("percentiles", "one percentile per line", options))
}

/// Returns the summary of lines with a column name and a value per statistic, below a line with the
/// names of the statistics.
fn transposed(text: &str) -> Option<Summary> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).take(MAX_SUMMARY);
    let statistics: Vec<&str> = lines.next().filter(|line| line.len() <= MAX_LINE)?.split_whitespace().collect();
    if statistics.len() < 3 || !percentiles::are(statistics.iter().copied()) {
        return None;
    }
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split_whitespace().collect()).collect();
    let is_row = |row: &Vec<&str>| {
        row.len() == statistics.len() + 1
            && row.iter().skip(1).all(|cell| number(cell).is_some())
            && row.first().is_some_and(|name| number(name).is_none())
    };
    (!rows.is_empty() && rows.iter().all(is_row))
        .then(|| summary::transposed(&statistics, &rows.iter().map(Vec::as_slice).collect::<Vec<_>>()))
}

/// Splits a line into the name and the values.
fn entry(line: &str) -> Option<(&str, Vec<f64>)> {
    if line.len() > MAX_LINE {
        return None;
    }
    let (name, values) = line.split_once([':', '=']).or_else(|| line.split_once(char::is_whitespace))?;
    let values: Vec<f64> = match number(values) {
        Some(value) => vec![value],
        None => values.split_whitespace().map(number).collect::<Option<_>>()?,
    };
    (!values.is_empty()).then_some((name.trim(), values))
}
