//! Histograms in tables: lengths with counts, bins, cumulative counts, percentiles.

use csv::{ReaderBuilder, StringRecord, Trim};

use super::super::{ImportError, Imported};
use super::bins::{self, Bin, Form};
use super::{interval, number, percentiles, refuse};

/// Names of lower edges.
const LEFT: [&str; 14] = [
    "left",
    "lower",
    "low",
    "lo",
    "from",
    "start",
    "bin_start",
    "bin_left",
    "left_edge",
    "lower_edge",
    "bin_lower",
    "lower_bound",
    "min_length",
    "bin_min",
];
/// Names of upper edges.
const RIGHT: [&str; 14] = [
    "right",
    "upper",
    "high",
    "hi",
    "to",
    "end",
    "bin_end",
    "bin_right",
    "right_edge",
    "upper_edge",
    "bin_upper",
    "upper_bound",
    "max_length",
    "bin_max",
];
/// Names of lengths that stand beside a count.
const LENGTHS: [&str; 17] = [
    "length",
    "lengths",
    "len",
    "seq_len",
    "seqlen",
    "sequence_length",
    "tokens",
    "num_tokens",
    "n_tokens",
    "total_tokens",
    "num_total_tokens",
    "token_count",
    "text_tokens",
    "input_length",
    "input_len",
    "value",
    "bin",
];
/// Names of numbers of samples, or of their share.
const COUNTS: [&str; 24] = [
    "count",
    "counts",
    "n",
    "freq",
    "frequency",
    "frequencies",
    "weight",
    "weights",
    "num_samples",
    "samples",
    "n_samples",
    "cnt",
    "occurrences",
    "num_docs",
    "docs",
    "documents",
    "rows",
    "count_star()",
    "count(*)",
    "hist",
    "proportion",
    "share",
    "fraction",
    "probability",
];
/// Names of cumulative counts or shares.
const CUMULATIVE: [&str; 14] = [
    "cumulative",
    "cum",
    "cumsum",
    "cum_count",
    "cumcount",
    "cumulative_count",
    "cum_freq",
    "cumulative_frequency",
    "cum_pct",
    "cumulative_share",
    "cdf",
    "ecdf",
    "percentile",
    "quantile",
];
/// Rows that decide about the form.
const HEAD: usize = 50;

/// Columns of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Columns {
    /// Lengths and their counts.
    Points { lengths: usize, counts: usize },
    /// Edges and counts; without an upper edge the next lower edge ends the bin.
    Edges { left: usize, right: Option<usize>, counts: usize },
    /// Bins as text, and counts.
    Intervals { bins: usize, counts: usize },
    /// Lengths and the samples up to them.
    Cumulative { lengths: usize, cumulative: usize },
    /// Names and values of percentiles.
    Percentiles { names: usize, values: usize },
    /// A row of percentiles, named by the header.
    PercentileRow,
}

/// Reads a table of text. `column` is the column that the user chose: such a table is no histogram, except for `describe()`.
pub(super) fn read(text: &str, delimiter: u8, column: Option<&str>) -> Option<Result<Imported, ImportError>> {
    let mut reader = ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .trim(Trim::All)
        .from_reader(text.as_bytes());
    let mut rows =
        reader.records().map_while(Result::ok).map(|record: StringRecord| record.iter().map(str::to_owned).collect());
    let header: Vec<String> = rows.next()?;
    read_rows("CSV", &header, &mut rows, column)
}

/// Reads rows under a header. `None` if they are no histogram.
pub(super) fn read_rows(
    format: &str,
    header: &[String],
    rows: &mut dyn Iterator<Item = Vec<String>>,
    column: Option<&str>,
) -> Option<Result<Imported, ImportError>> {
    let names: Vec<String> = header.iter().map(|name| super::normal(name)).collect();
    // A header of numbers is a row.
    if names.len() < 2 || header.iter().all(|name| number(name).is_some()) {
        return None;
    }
    let head: Vec<Vec<String>> = (&mut *rows).take(HEAD).collect();
    let columns = match columns(&names, &head, column) {
        Ok(columns) => columns?,
        Err(error) => return Some(Err(error)),
    };
    let all = head.into_iter().chain(rows);
    Some(read_columns(format, header, &columns, all))
}

/// The columns of a form; `None` if the table is no histogram.
fn columns(names: &[String], head: &[Vec<String>], column: Option<&str>) -> Result<Option<Columns>, ImportError> {
    let find = |known: &[&str]| known.iter().find_map(|known| names.iter().position(|name| name == known));
    let cells = |index: usize| head.iter().map(move |row| row.get(index).map_or("", String::as_str));
    let is_numeric = |index: usize| !head.is_empty() && cells(index).all(|cell| number(cell).is_some());
    if let Some(described) = described(names, head, column)? {
        return Ok(Some(described));
    }
    if column.is_some() {
        return Ok(None);
    }
    if head.len() == 1 && percentiles::are(names.iter().map(String::as_str)) {
        return Ok(Some(Columns::PercentileRow));
    }
    let counts = find(&COUNTS);
    let other_number = |index: usize| {
        let others: Vec<usize> = (0..names.len()).filter(|&other| other != index && is_numeric(other)).collect();
        if let [only] = others.as_slice() { Some(*only) } else { None }
    };
    let bins =
        (0..names.len()).find(|&index| !head.is_empty() && cells(index).all(|cell| interval::read(cell).is_some()));
    if let Some(bins) = bins
        && let Some(counts) =
            counts.filter(|&counts| counts != bins).or_else(|| other_number(bins).filter(|_| is_index(&names[bins])))
    {
        return Ok(Some(Columns::Intervals { bins, counts }));
    }
    if let (Some(left), right, Some(counts)) = (find(&LEFT), find(&RIGHT), counts)
        && names.len() <= 4
        && is_numeric(left)
    {
        return Ok(Some(Columns::Edges { left, right, counts }));
    }
    // An index that pandas wrote has no name.
    let index = is_index(&names[0]);
    let lengths = find(&LENGTHS);
    let is_narrow = names.len() - usize::from(index && lengths != Some(0)) == 2;
    if let (Some(lengths), None, Some(cumulative)) = (lengths, counts, find(&CUMULATIVE))
        && lengths != cumulative
        && is_narrow
    {
        return Ok(Some(Columns::Cumulative { lengths, cumulative }));
    }
    let with_cumulative = find(&CUMULATIVE).is_some() && names.len() == 3;
    match (lengths, counts) {
        (Some(lengths), Some(counts)) if is_narrow || with_cumulative => Ok(Some(Columns::Points { lengths, counts })),
        (None, Some(1)) if index && names.len() == 2 && is_numeric(0) => {
            Ok(Some(Columns::Points { lengths: 0, counts: 1 }))
        }
        (Some(1) | None, None) if index && names.len() == 2 && is_numeric(0) && is_numeric(1) => {
            let counts_rows = cells(0).enumerate().all(|(row, cell)| number(cell) == Some(row as f64));
            // value_counts sorts by count, from the largest.
            let falls = cells(1).filter_map(number).is_sorted_by(|one, next| one >= next);
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

/// Whether a name is that of an index that pandas wrote.
fn is_index(name: &str) -> bool {
    name.is_empty() || name == "index" || name == "unnamed:_0"
}

/// The columns of a table that `describe()` wrote: names of the summary in the first column.
fn described(names: &[String], head: &[Vec<String>], column: Option<&str>) -> Result<Option<Columns>, ImportError> {
    let first = head.iter().filter_map(|row| row.first()).map(String::as_str);
    let named = ["percentile", "quantile", "statistic", ""].contains(&names[0].as_str()) || names[0] == "index";
    if !named || head.len() < 2 || !percentiles::are(first) {
        return Ok(None);
    }
    let values = match column {
        Some(column) => names.iter().position(|name| *name == super::normal(column)),
        None if names.len() == 2 => Some(1),
        None => LENGTHS.iter().find_map(|known| names.iter().position(|name| name == known)),
    };
    match values {
        Some(values) => Ok(Some(Columns::Percentiles { names: 0, values })),
        None => Err(refuse(format!("it describes {}; keep one column of lengths", names[1..].join(", ")))),
    }
}

fn read_columns(
    format: &str,
    header: &[String],
    columns: &Columns,
    rows: impl Iterator<Item = Vec<String>>,
) -> Result<Imported, ImportError> {
    let name = |index: usize| match header.get(index).map(String::as_str) {
        Some("") | None => format!("column {}", index + 1),
        Some(name) => name.to_owned(),
    };
    let mut found: Vec<(f64, f64)> = Vec::new();
    let mut table: Vec<Vec<String>> = Vec::new();
    let (first, second) = match *columns {
        Columns::Points { lengths, counts } => (lengths, counts),
        Columns::Cumulative { lengths, cumulative } => (lengths, cumulative),
        _ => (0, 0),
    };
    let is_pairs = matches!(columns, Columns::Points { .. } | Columns::Cumulative { .. });
    // The header is line 1.
    for (row_number, row) in (2_u64..).zip(rows) {
        let cell = |index: usize| {
            let text = row.get(index).map_or("", String::as_str);
            number(text).ok_or_else(|| refuse(format!("line {row_number}: {} is {text:?}, not a number", name(index))))
        };
        if row.iter().all(String::is_empty) {
            continue;
        }
        if is_pairs {
            found.push((cell(first)?, cell(second)?));
            if found.len() > super::super::MAX_ROWS {
                return Err(ImportError::TooManyRows);
            }
        } else {
            table.push(row);
            if table.len() > super::super::MAX_BINS {
                return Err(refuse(format!("more than {} bins; join neighbours", super::super::MAX_BINS)));
            }
        }
    }
    match *columns {
        Columns::Points { lengths, counts } => {
            let form = Form::new(
                format!("{format}, lengths with counts"),
                format!("columns {} and {}", name(lengths), name(counts)),
            );
            bins::points(form, found)
        }
        Columns::Cumulative { lengths, cumulative } => {
            let source = format!("columns {} and {}", name(lengths), name(cumulative));
            bins::cumulative(Form::new(format!("{format}, cumulative counts"), source), found)
        }
        Columns::Edges { left, right, counts } => {
            let source = format!(
                "columns {}{} and {}",
                name(left),
                right.map(|right| format!(", {}", name(right))).unwrap_or_default(),
                name(counts)
            );
            edges(Form::new(format!("{format}, bins"), source), &table, left, right, counts)
        }
        Columns::Intervals { bins, counts } => {
            let form = Form::new(format!("{format}, bins"), format!("columns {} and {}", name(bins), name(counts)));
            intervals(form, table.iter().map(|row| (at(row, bins), at(row, counts))))
        }
        Columns::Percentiles { names, values } => {
            let form = Form::new(format!("{format}, percentiles"), format!("column {}", name(values)));
            let entries: Result<Vec<_>, _> =
                table.iter().map(|row| Ok((at(row, names), parsed(at(row, values))?))).collect();
            percentiles::read(form, entries?)
        }
        Columns::PercentileRow => {
            let form = Form::new(format!("{format}, percentiles"), format!("columns {}", header.join(", ")));
            let row = table.first().map(Vec::as_slice).unwrap_or_default();
            let entries: Result<Vec<_>, _> =
                header.iter().zip(row).map(|(name, cell)| Ok((name.as_str(), parsed(cell)?))).collect();
            percentiles::read(form, entries?)
        }
    }
}

fn at(row: &[String], index: usize) -> &str {
    row.get(index).map_or("", String::as_str)
}

fn parsed(cell: &str) -> Result<f64, ImportError> {
    number(cell).ok_or_else(|| refuse(format!("{cell:?} is not a number")))
}

fn edges(
    mut form: Form,
    table: &[Vec<String>],
    left: usize,
    right: Option<usize>,
    counts: usize,
) -> Result<Imported, ImportError> {
    let mut found = Vec::with_capacity(table.len());
    for row in table {
        let (left, count) = (parsed(at(row, left))?, parsed(at(row, counts))?);
        let right = match right {
            Some(right) => parsed(at(row, right)).or_else(|error| match at(row, right) {
                "" | "inf" | "Inf" => Ok(f64::INFINITY),
                _ => Err(error),
            })?,
            None => f64::NAN,
        };
        found.push(Bin { left, right, count });
    }
    if right.is_none() {
        found.sort_by(|a, b| a.left.total_cmp(&b.left));
        let lefts: Vec<f64> = found.iter().map(|bin| bin.left).collect();
        for (bin, &next) in found.iter_mut().zip(lefts.iter().skip(1)) {
            bin.right = next;
        }
        let width = found.iter().rev().nth(1).map(|bin| bin.right - bin.left);
        if let Some(last) = found.last_mut() {
            last.right =
                last.left + width.ok_or_else(|| refuse("a single lower edge does not say how wide its bin is"))?;
            form.warn(format!(
                "there are no upper edges: the last bin is as wide as the one before, to {}",
                last.right
            ));
        }
    }
    close(form, found)
}

/// Bins as text with their counts.
pub(super) fn intervals<'a>(
    form: Form,
    rows: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<Imported, ImportError> {
    let found: Result<Vec<Bin>, ImportError> = rows
        .map(|(bin, count)| {
            let read =
                interval::read(bin).ok_or_else(|| refuse(format!("{bin:?} is not a bin such as 0-512 or [0, 512)")))?;
            Ok(Bin { left: read.left, right: read.right.unwrap_or(f64::INFINITY), count: parsed(count)? })
        })
        .collect();
    close(form, found?)
}

/// Ends open bins at twice their lower edge.
fn close(mut form: Form, mut found: Vec<Bin>) -> Result<Imported, ImportError> {
    found.retain(|bin| bin.count != 0.0 || bin.right.is_finite());
    for bin in found.iter_mut().filter(|bin| bin.right == f64::INFINITY) {
        bin.right = 2.0 * bin.left;
        form.warn(format!("the bin from {} has no upper edge: {} is assumed", bin.left, bin.right));
    }
    bins::bins(form, found)
}
