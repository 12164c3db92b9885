//! Reads histograms in plain text: `uniq -c`, printed Python dictionaries and arrays, and pandas
//! output.

use super::super::{ImportError, Imported, Options};
use super::bins::{self, Bin, Form};
use super::{json, keyed, number, printed, refuse};

/// Width of the counts of `uniq -c`: GNU, and BSD.
const UNIQ_WIDTHS: [usize; 2] = [7, 4];

/// Reads a text; returns `None` if it is not a histogram. With a column that the user chooses, only a
/// summary is read.
pub(super) fn read(text: &str, options: &Options<'_>) -> Option<Result<Imported, ImportError>> {
    let text = text.trim_end();
    let start = text.trim_start();
    let is_counter = start.starts_with("Counter(");
    if options.column.is_some() {
        return printed::summary(text, options);
    }
    if start.starts_with("Counter(") || start.starts_with("defaultdict(") || start.starts_with('{') {
        return dictionary(start).or_else(|| literal(start, options).filter(|_| is_counter));
    }
    if start.starts_with("(array(") || start.starts_with("UniqueCountsResult(") {
        return arrays(start);
    }
    printed::summary(text, options).or_else(|| printed::counts(text, options)).or_else(|| uniq(text))
}

/// Reads a printed `Counter` or `dict` of numbers, or a printed DuckDB map: `{512=3, 1024=5}`.
fn dictionary(text: &str) -> Option<Result<Imported, ImportError>> {
    let inside = text.split_once('{')?.1.rsplit_once('}')?.0;
    let entries: Vec<(&str, f64)> = inside
        .split(',')
        .filter(|entry| !entry.trim().is_empty())
        .map(|entry| {
            let (key, value) = entry.split_once([':', '='])?;
            // Quoted keys are JSON.
            let key = key.trim();
            number(key)?;
            Some((key, number(value)?))
        })
        .collect::<Option<_>>()?;
    if text.starts_with("Counter(") {
        let form = Form::new("printed Python dictionary, lengths with counts", "keys and values");
        return keyed::counted(form, &entries);
    }
    keyed::read(if inside.contains('=') { "printed map" } else { "printed Python dictionary" }, &entries)
}

/// Reads a printed Python dictionary whose keys are texts: `{'count': 200, '50%': 512}`,
/// `Counter({'0-512': 3})`.
pub(super) fn literal(text: &str, options: &Options<'_>) -> Option<Result<Imported, ImportError>> {
    let start = text.find('{')?;
    let end = text.rfind('}')? + 1;
    let document = super::super::text::literal(text.get(start..end)?)?;
    json::read(&serde_json::from_str(&document).ok()?, options)
}

/// Reads a printed tuple of numpy's counts and edges.
fn arrays(text: &str) -> Option<Result<Imported, ImportError>> {
    if text.contains("...") {
        return Some(Err(refuse("the printed arrays are shortened with \"...\"; write them with json.dump")));
    }
    let mut lists = text.split('[').skip(1).map(|part| {
        let (inside, _) = part.split_once(']')?;
        inside
            .split(|c: char| c == ',' || c.is_whitespace())
            .filter(|word| !word.is_empty())
            .map(number)
            .collect::<Option<Vec<f64>>>()
    });
    let (counts, edges) = (lists.next()??, lists.next()??);
    if edges.len() == counts.len() {
        // np.unique(lengths, return_counts=True).
        let mut form = Form::new("printed numpy.unique, lengths with counts", "values and counts");
        form.warn("the first array is read as lengths in tokens, and the second one as their counts");
        return Some(bins::points(form, counts.into_iter().zip(edges).collect()));
    }
    if edges.len() != counts.len() + 1 {
        return Some(Err(refuse(format!(
            "{} edges for {} counts; there must be one edge more than counts",
            edges.len(),
            counts.len()
        ))));
    }
    let bins = edges.array_windows().zip(counts).map(|(&[left, right], count)| Bin { left, right, count });
    Some(bins::bins(Form::new("printed numpy histogram", "counts and edges"), bins.collect()))
}

/// Reads `uniq -c` output: right-aligned counts, one blank, and distinct lengths. Other pairs of
/// numbers are table columns.
fn uniq(text: &str) -> Option<Result<Imported, ImportError>> {
    let mut found: Vec<(f64, f64)> = Vec::new();
    let mut width = None;
    let mut is_indented = false;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let (count, length) = uniq_line(line)?;
        let end = line.len() - length.len() - 1;
        // A count with more digits than the column width shifts the length.
        let matching_width =
            UNIQ_WIDTHS.iter().copied().find(|&width| end == width || (end > width && count.len() == end));
        if count.len() < end {
            let known = *width.get_or_insert(end);
            if known != end || !UNIQ_WIDTHS.contains(&end) {
                return None;
            }
        }
        matching_width?;
        is_indented |= line.starts_with(' ');
        found.push((number(length)?, number(count)?));
        if found.len() > super::super::MAX_ROWS {
            return Some(Err(ImportError::TooManyRows));
        }
    }
    let numbered = [0.0, 1.0]
        .iter()
        .any(|base| found.iter().enumerate().all(|(row, pair)| pair.1.total_cmp(&(row as f64 + base)).is_eq()));
    let mut lengths: Vec<f64> = found.iter().map(|pair| pair.0).collect();
    lengths.sort_by(f64::total_cmp);
    let is_distinct = lengths.array_windows().all(|[previous, next]| previous < next);
    if found.len() < 2 || !is_indented || numbered || !is_distinct {
        return None;
    }
    Some(bins::points(Form::new("uniq -c, lengths with counts", "second number of each line"), found))
}

/// Returns count and length of a line with one blank between them.
fn uniq_line(line: &str) -> Option<(&str, &str)> {
    let (count, length) = line.trim_start_matches(' ').split_once(' ')?;
    let is_integer = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    (is_integer(count) && is_integer(length)).then_some((count, length))
}
