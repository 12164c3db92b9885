//! Histograms in plain text: `uniq -c`, printed Python dictionaries, arrays, series and summaries.

use super::super::{ImportError, Imported};
use super::bins::{self, Bin, Form};
use super::{number, percentiles, refuse};

/// Lines that decide about the form.
const HEAD: usize = 50;

/// Reads a text. `None` if it is no histogram.
pub(super) fn read(text: &str) -> Option<Result<Imported, ImportError>> {
    let text = text.trim_end();
    let start = text.trim_start();
    if start.starts_with("Counter(") || start.starts_with("defaultdict(") || start.starts_with('{') {
        return dictionary(start);
    }
    if start.starts_with("(array(") {
        return arrays(start);
    }
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    if let Some(summary) = summary(&mut lines()) {
        return Some(summary);
    }
    if let Some(last) = lines().next_back()
        && last.starts_with("Name: ")
        && last.contains("dtype:")
    {
        return series(text, last);
    }
    counted(text).or_else(|| pairs(text))
}

/// A printed `value_counts()` without its last line: a name at the start of the first line, then lengths and counts, the largest count first.
fn counted(text: &str) -> Option<Result<Imported, ImportError>> {
    let (name, rows) = text.split_once('\n')?;
    if name.starts_with(char::is_whitespace) || name.split_whitespace().count() != 1 || number(name).is_some() {
        return None;
    }
    let mut found: Vec<(f64, f64)> = Vec::new();
    for line in rows.lines() {
        let (length, count) = line.split_once(' ')?;
        let (length, count) = (number(length)?, number(count)?);
        if found.last().is_some_and(|&(_, before)| count > before) || found.len() > super::super::MAX_ROWS {
            return None;
        }
        found.push((length, count));
    }
    let is_index = found.iter().enumerate().all(|(row, pair)| pair.0.total_cmp(&(row as f64)).is_eq());
    (found.len() > 1 && !is_index)
        .then(|| bins::points(Form::new("printed value_counts, lengths with counts", "index and count"), found))
}

/// A printed `Counter` or `dict` of whole numbers.
fn dictionary(text: &str) -> Option<Result<Imported, ImportError>> {
    let inside = text.split_once('{')?.1.rsplit_once('}')?.0;
    let points: Vec<(f64, f64)> = inside
        .split(',')
        .filter(|entry| !entry.trim().is_empty())
        .map(|entry| {
            let (key, value) = entry.split_once(':')?;
            // Quoted keys are JSON.
            Some((number(key)?, number(value)?))
        })
        .collect::<Option<_>>()?;
    Some(bins::points(Form::new("printed Python dictionary, lengths with counts", "keys and values"), points))
}

/// A printed tuple of numpy's counts and edges.
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

/// A summary with a name and a value per line: `describe()`, or `p50: 512`.
fn summary(lines: &mut dyn Iterator<Item = &str>) -> Option<Result<Imported, ImportError>> {
    let mut entries = Vec::new();
    for line in lines {
        let line = line.trim();
        // describe() names the column in the last line.
        if line.starts_with("Name:") || line.starts_with("dtype:") {
            continue;
        }
        let (name, value) = line.split_once([':', '=']).or_else(|| line.split_once(char::is_whitespace))?;
        entries.push((name.trim(), number(value)?));
        if entries.len() > HEAD {
            return None;
        }
    }
    percentiles::are(entries.iter().map(|(name, _)| *name))
        .then(|| percentiles::read(Form::new("percentiles", "one percentile per line"), entries))
}

/// A printed `value_counts()` of pandas: lengths and counts, then a line with the name.
fn series(text: &str, last: &str) -> Option<Result<Imported, ImportError>> {
    let rows: Vec<(f64, f64)> = text
        .lines()
        .filter(|line| !line.starts_with("Name: "))
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            match (words.next(), words.next(), words.next()) {
                (Some(length), Some(count), None) => Some((number(length)?, number(count)?)),
                _ => None,
            }
        })
        .collect();
    if text.lines().any(|line| line.trim_start().starts_with("..")) {
        return Some(Err(refuse("the printed table is shortened with \"..\"; write it with to_csv()")));
    }
    let is_count = last.starts_with("Name: count,");
    is_count.then(|| bins::points(Form::new("printed value_counts, lengths with counts", "index and count"), rows))
}

/// `uniq -c`: right-aligned counts, each with a length behind it.
fn pairs(text: &str) -> Option<Result<Imported, ImportError>> {
    let mut found: Vec<(f64, f64)> = Vec::new();
    let mut is_indented = false;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let mut words = line.split_whitespace();
        let (Some(first), Some(second), None) = (words.next(), words.next(), words.next()) else { return None };
        // A comma separates columns or a list.
        if [first, second].iter().any(|word| !word.bytes().all(|byte| byte.is_ascii_digit())) {
            return None;
        }
        is_indented |= line.starts_with(' ');
        found.push((number(first)?, number(second)?));
        if found.len() > super::super::MAX_ROWS {
            return Some(Err(ImportError::TooManyRows));
        }
    }
    if found.len() < 2 {
        return None;
    }
    let numbered = [0.0, 1.0]
        .iter()
        .any(|base| found.iter().enumerate().all(|(row, pair)| pair.0.total_cmp(&(row as f64 + base)).is_eq()));
    if !is_indented || numbered {
        return None;
    }
    let points = found.into_iter().map(|(count, length)| (length, count)).collect();
    Some(bins::points(Form::new("uniq -c, lengths with counts", "second number of each line"), points))
}
