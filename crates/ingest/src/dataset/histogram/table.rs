//! Reads histograms from tables: lengths with counts, bins, cumulative counts, percentiles.

use csv::{ReaderBuilder, StringRecord, Trim};
use planner::workload::Dataset;

use super::super::commas::Commas;
use super::super::number::{Notation, Number};
use super::super::stated::Stated;
use super::super::{ImportError, Imported, Options, Unit, names, stated};
use super::bins::{self, Form};
use super::columns::{Columns, columns};
use super::edges::{self, at, edges, intervals, parsed};
use super::samples::Numbering;
use super::shares::{self, Signs};
use super::{interval, known, number, percentiles, refuse, samples, scale, summary};

/// Number of rows used to detect the format.
const HEAD: usize = 50;

/// Reads a text table. With a column that the user chooses, only a summary is read as a histogram.
pub(super) fn read(text: &str, delimiter: u8, options: &Options<'_>) -> Option<Result<Imported, ImportError>> {
    let mut reader = ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .trim(Trim::All)
        .from_reader(text.as_bytes());
    let mut rows = reader
        .records()
        .map_while(Result::ok)
        .map(|record: StringRecord| record.iter().map(str::to_owned).collect::<Vec<String>>());
    let header: Vec<String> = rows.next()?;
    let head: Vec<Vec<String>> = (&mut rows).take(HEAD).collect();
    let cells = |index: usize| head.iter().filter_map(move |row| row.get(index)).map(String::as_str);
    let known: Vec<_> = (0..header.len()).map(|index| Notation::detect(cells(index))).collect();
    // For each column, the first ambiguous number.
    let ambiguous: Vec<Option<String>> = known
        .iter()
        .enumerate()
        .map(|(index, notation)| match notation {
            Err(ambiguous) => Some(ambiguous.value.clone()),
            Ok(_) if delimiter == b';' => {
                let mut commas = Commas::default();
                cells(index).for_each(|cell| commas.see(cell));
                commas.ambiguous().map(str::to_owned)
            }
            Ok(_) => None,
        })
        .collect();
    let notations: Vec<Notation> = known.into_iter().map(Result::unwrap_or_default).collect();
    let mut all = head.clone().into_iter().chain(rows).map(|row| with_points(row, &notations));
    read_known("CSV", &header, &mut all, options, &ambiguous)
}

/// Reads a summary between bars, as Markdown, polars and Spark print it; `None` for other tables.
pub(super) fn read_bars(text: &str, options: &Options<'_>) -> Option<Result<Imported, ImportError>> {
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    let is_rule = |line: &&str| line.bytes().all(|byte| matches!(byte, b'-' | b'=' | b'|' | b'+' | b':' | b' '));
    let lines = text.lines().map(str::trim).filter(|line| line.starts_with('|') && !is_rule(line));
    let mut rows = lines.take(HEAD + 1).map(cells);
    let header: Vec<String> = rows.next()?;
    let rows: Vec<Vec<String>> = rows.collect();
    let found = summary::of_table(&header, &rows).transpose()?;
    Some(found.and_then(|summary| summary.read("table between bars, percentiles", "percentiles", options)))
}

/// Rewrites the numbers with decimal points and without thousands separators.
fn with_points(mut row: Vec<String>, notations: &[Notation]) -> Vec<String> {
    for (cell, notation) in row.iter_mut().zip(notations) {
        if *notation == Notation::Comma
            && let Some(Number::Repaired(number)) = notation.read(cell)
        {
            *cell = number.to_string();
        }
    }
    row
}

/// Reads rows with a header; returns `None` if they are not a histogram.
pub(super) fn read_rows(
    format: &str,
    header: &[String],
    rows: &mut dyn Iterator<Item = Vec<String>>,
    options: &Options<'_>,
) -> Option<Result<Imported, ImportError>> {
    read_known(format, header, rows, options, &[])
}

/// Reads rows with a header. `ambiguous` contains an ambiguous number per column.
fn read_known(
    format: &str,
    header: &[String],
    rows: &mut dyn Iterator<Item = Vec<String>>,
    options: &Options<'_>,
    ambiguous: &[Option<String>],
) -> Option<Result<Imported, ImportError>> {
    let names: Vec<String> = header.iter().map(|name| super::normal(name)).collect();
    // A header that contains only numbers is a row.
    if names.len() < 2 || header.iter().all(|name| number(name).is_some()) {
        return None;
    }
    let head: Vec<Vec<String>> = (&mut *rows).take(HEAD).collect();
    let samples: Vec<Vec<String>> = head.iter().filter(|row| known::total(row).is_none()).cloned().collect();
    match summary::of_table(header, &head) {
        Ok(Some(summary)) => {
            // A value with two readings is a doubt about each column, because the column is not yet known.
            let doubt = ambiguous.iter().enumerate().skip(1).find_map(|(index, value)| Some((index, value.clone()?)));
            if let Some((index, value)) = doubt {
                return Some(Err(ImportError::TwoReadings { column: header[index].clone(), value }));
            }
            return Some(summary.read(&format!("{format}, percentiles"), "percentiles", options));
        }
        Ok(None) => {}
        Err(error) => return Some(Err(error)),
    }
    if options.column.is_some() {
        return None;
    }
    let columns = match columns(&names, &samples) {
        Ok(columns) => columns?,
        Err(error) => return Some(Err(error)),
    };
    let stated_unit = match other_unit(header, &samples).map(|unit| (unit, stated::parse(unit))) {
        None => None,
        Some((_, Stated::Unit(Unit::Characters))) => Some(Unit::Characters),
        Some((unit, _)) => {
            return Some(Err(refuse(format!("unit must be \"tokens\", not {unit:?}; convert the lengths first"))));
        }
    };
    let counts_characters = |(name, text): &(&str, &str)| stated::names_characters(name, text);
    let stated_unit = stated_unit
        .or_else(|| constants(header, &samples).any(|text| counts_characters(&text)).then_some(Unit::Characters));
    let used = columns.numbers();
    let (subject, unit) = columns.lengths().map_or((String::new(), Unit::Tokens), |index| {
        let name = header.get(index).map_or("", String::as_str);
        let subject = if stated_unit.is_some() { "The table" } else { name };
        (subject.to_owned(), options.unit.or(stated_unit).unwrap_or_else(|| known::unit(name)))
    });
    let read_bins = matches!(columns, Columns::Edges { .. } | Columns::Intervals { .. } | Columns::Centers { .. });
    let texts = constants(header, &samples).filter(|text| !counts_characters(text));
    let stated = if read_bins { stated::check(texts) } else { Ok(None) };
    let table = Table { format, header, columns };
    let read = table.read(head.into_iter().chain(rows)).transpose()?;
    let two_readings = |index: usize| {
        let value = ambiguous.get(index)?.clone()?;
        Some(ImportError::TwoReadings { column: table.name(index), value })
    };
    if let (Some(two_readings), Ok(_)) = (used.into_iter().find_map(two_readings), &read) {
        return Some(Err(two_readings));
    }
    Some(read.and_then(|mut imported| {
        imported.report.warnings.extend(stated.map_err(refuse)?);
        scale::by_unit(imported, &subject, unit, options)
    }))
}

/// Returns texts that are equal in all rows, with their column names.
fn constants<'r>(header: &'r [String], rows: &'r [Vec<String>]) -> impl Iterator<Item = (&'r str, &'r str)> {
    header.iter().enumerate().filter_map(move |(index, name)| {
        let first = at(rows.first()?, index);
        let is_text = !first.is_empty() && super::count(first).is_none() && interval::read(first).is_none();
        (is_text && rows.iter().all(|row| at(row, index) == first)).then_some((name.as_str(), first))
    })
}

/// Returns a unit other than tokens from a unit column.
fn other_unit<'r>(header: &[String], rows: &'r [Vec<String>]) -> Option<&'r str> {
    let column = header.iter().position(|name| names::is_unit(name))?;
    rows.iter()
        .map(|row| at(row, column))
        .find(|unit| !unit.is_empty() && number(unit).is_none() && !names::is_tokens(unit))
}

/// A histogram table.
struct Table<'h> {
    format: &'h str,
    header: &'h [String],
    columns: Columns,
}

#[derive(Default)]
struct Rows {
    /// Pairs of length and count.
    pairs: Vec<(f64, f64)>,
    /// Cells of other formats.
    cells: Vec<Vec<String>>,
    /// Percent signs in the counts of the pairs.
    signs: Signs,
    /// Label and count of the sum row.
    total: Option<(String, Option<f64>)>,
}

impl Table<'_> {
    fn name(&self, index: usize) -> String {
        match self.header.get(index).map(String::as_str) {
            Some("") | None => format!("column {}", index + 1),
            Some(name) => name.to_owned(),
        }
    }

    /// Returns the column indices of lengths and counts if each row is a pair of numbers.
    const fn pair(&self) -> Option<(usize, usize)> {
        match self.columns {
            Columns::Points { lengths, counts } => Some((lengths, counts)),
            Columns::Cumulative { lengths, cumulative } => Some((lengths, cumulative)),
            _ => None,
        }
    }

    fn counts(&self) -> Option<usize> {
        match self.columns {
            Columns::Points { counts, .. }
            | Columns::Edges { counts, .. }
            | Columns::Centers { counts, .. }
            | Columns::Intervals { counts, .. } => Some(counts),
            _ => None,
        }
    }

    /// Reads the histogram; returns `None` if the rows are samples.
    fn read(&self, rows: impl Iterator<Item = Vec<String>>) -> Result<Option<Imported>, ImportError> {
        let Rows { pairs, cells, signs, total } = self.rows(rows)?;
        let Some(mut imported) = self.histogram(pairs, &cells, &signs)? else { return Ok(None) };
        if let Some((label, total)) = total {
            note_total(&mut imported, &label, total);
        }
        Ok(Some(imported))
    }

    fn rows(&self, rows: impl Iterator<Item = Vec<String>>) -> Result<Rows, ImportError> {
        let mut found = Rows::default();
        // The header is line 1.
        for (line, row) in (2_u64..).zip(rows) {
            if row.iter().all(String::is_empty) {
                continue;
            }
            if let Some(label) = known::total(&row) {
                let count = self.counts().and_then(|counts| super::count(at(&row, counts)));
                found.total = Some((label.to_owned(), count));
                continue;
            }
            let Some((lengths, counts)) = self.pair() else {
                found.cells.push(row);
                if found.cells.len() > super::super::MAX_BINS {
                    return Err(refuse(format!("more than {} bins; join neighbours", super::super::MAX_BINS)));
                }
                continue;
            };
            let invalid_cell = |index: usize| {
                refuse(format!("line {line}: {} is {:?}, not a number", self.name(index), at(&row, index)))
            };
            let length = number(at(&row, lengths)).ok_or_else(|| invalid_cell(lengths))?;
            let count = super::count(at(&row, counts)).ok_or_else(|| invalid_cell(counts))?;
            found.signs.see(at(&row, counts));
            found.pairs.push((length, count));
            if found.pairs.len() > super::super::MAX_ROWS {
                return Err(ImportError::TooManyRows);
            }
        }
        Ok(found)
    }

    fn histogram(
        &self,
        mut pairs: Vec<(f64, f64)>,
        cells: &[Vec<String>],
        signs: &Signs,
    ) -> Result<Option<Imported>, ImportError> {
        let form = |kind: &str, source: String| Form::new(format!("{}, {kind}", self.format), source);
        let two = |first: usize, other: usize| format!("columns {} and {}", self.name(first), self.name(other));
        let are_counts = samples::numbering(&pairs) == Numbering::None;
        pairs.sort_by(|previous, next| previous.0.total_cmp(&next.0));
        let read = match self.columns {
            Columns::Points { lengths, counts } => {
                if !are_counts
                    || samples::are(&self.name(counts), &pairs)
                    || samples::are_totals(&self.name(lengths), &pairs)
                {
                    return Ok(None);
                }
                let mut form = form("lengths with counts", two(lengths, counts));
                self.check_lengths(&mut form, lengths, &pairs)?;
                let shares: Vec<f64> = pairs.iter().map(|pair| pair.1).collect();
                let name = self.name(counts);
                shares::check(&mut form, &name, signs.are_percent(&name)?, &shares)?;
                bins::points(form, pairs)
            }
            Columns::Cumulative { lengths, cumulative } => {
                let mut form = form("cumulative counts", two(lengths, cumulative));
                shares::check_end(&mut form, &self.name(cumulative), pairs.last().map_or(0.0, |pair| pair.1));
                bins::cumulative(form, pairs)
            }
            Columns::Edges { left, right, counts } => {
                let source = format!(
                    "columns {}{} and {}",
                    self.name(left),
                    right.map(|right| format!(", {}", self.name(right))).unwrap_or_default(),
                    self.name(counts)
                );
                let mut form = form("bins", source);
                self.check_cells(&mut form, cells, counts)?;
                if right.is_some_and(|right| are_spans(cells, left, right, counts)) {
                    return Err(refuse(format!(
                        "every {} is 1, and each row starts where the row before it ends: the rows may be places of samples in a stream. If so, \
                         write their lengths, end - start, in a column named length. If they are bins, join neighbours",
                        self.name(counts)
                    )));
                }
                edges(form, cells, left, right, counts)
            }
            Columns::Centers { centers, counts } => {
                let mut form = form("bins", two(centers, counts));
                self.check_cells(&mut form, cells, counts)?;
                edges::centers(form, cells, centers, counts)
            }
            Columns::Intervals { bins, counts } => {
                let mut form = form("bins", two(bins, counts));
                self.check_cells(&mut form, cells, counts)?;
                intervals(form, cells.iter().map(|row| (at(row, bins), at(row, counts))))
            }
            Columns::PercentileRow => {
                let form = form("percentiles", format!("columns {}", self.header.join(", ")));
                let row = cells.first().map(Vec::as_slice).unwrap_or_default();
                let entries: Result<Vec<_>, _> =
                    self.header.iter().zip(row).map(|(name, cell)| Ok((name.as_str(), parsed(cell)?))).collect();
                percentiles::read(form, entries?)
            }
        };
        read.map(Some)
    }

    /// Validates lengths under a generic column name. The pairs are sorted by length.
    fn check_lengths(&self, form: &mut Form, lengths: usize, pairs: &[(f64, f64)]) -> Result<(), ImportError> {
        let name = self.name(lengths);
        let is_bin = super::normal(&name) == "bin";
        if !is_bin && !self.is_neutral(lengths) {
            return Ok(());
        }
        let counts_from = |first: f64| {
            pairs.iter().enumerate().all(|(index, pair)| pair.0.total_cmp(&(first + index as f64)).is_eq())
        };
        if counts_from(0.0) || counts_from(1.0) {
            return Err(refuse(format!(
                "{name} counts up by 1, as numbers of bins, rows or ratings do. Write the edges of each bin, for example left,right,count, or \
                 name the column length"
            )));
        }
        form.warn(format!("{name} is read as the length of the samples in tokens"));
        Ok(())
    }

    /// Returns whether a column name is generic.
    fn is_neutral(&self, column: usize) -> bool {
        known::is_neutral(self.header.get(column).map_or("", String::as_str))
    }

    /// Validates bin counts if they are shares.
    fn check_cells(&self, form: &mut Form, cells: &[Vec<String>], counts: usize) -> Result<(), ImportError> {
        let name = self.name(counts);
        let is_percent = Signs::from_cells(cells.iter().map(|row| at(row, counts))).are_percent(&name)?;
        let shares: Vec<f64> = cells.iter().filter_map(|row| super::count(at(row, counts))).collect();
        shares::check(form, &name, is_percent, &shares)
    }
}

/// Returns whether rows may be sample positions in a stream: each row starts at the end of the
/// previous row, and has count 1.
fn are_spans(cells: &[Vec<String>], left: usize, right: usize, counts: usize) -> bool {
    let is = |row: &[String], index: usize, expected: f64| {
        number(at(row, index)).is_some_and(|number| number.total_cmp(&expected).is_eq())
    };
    cells.len() > 1
        && cells.iter().all(|row| is(row, counts, 1.0))
        && cells.array_windows().all(|[row, next]| number(at(row, right)).is_some_and(|end| is(next, left, end)))
}

/// Reports the sum row, which is skipped.
fn note_total(imported: &mut Imported, label: &str, total: Option<f64>) {
    let Dataset::Histogram { counts, .. } = &imported.dataset else { return };
    let sum: f64 = counts.iter().sum();
    let warning = match total {
        Some(total) if (total - sum).abs() > 0.005 * sum => {
            format!("the row {label} is left out; its number {total} differs from the sum of the rows, {sum}")
        }
        _ => format!("the row {label} is left out: it is the sum of the rows"),
    };
    imported.report.warnings.push(warning);
    imported.report.skipped += 1;
}
