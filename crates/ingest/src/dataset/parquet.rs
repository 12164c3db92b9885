//! Reads Parquet files with the crate `parquet`: the footer, then the chosen columns, row group by
//! row group.
//!
//! [`guard`] bounds the memory, and [`contain`] converts panics of the crate to errors.

mod footer;
mod guard;
mod plan;
mod sparse;

use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::reader::ChunkReader;

pub use footer::{Footer, FooterColumn};
pub use plan::Plan;
pub use sparse::Sparse;

use super::arrow::value::{self, Reading};
use super::contain::contain;
use super::profile::Column;
use super::reader::Reader;
use super::value::{Location, Row, Value};
use super::{ImportError, Imported, Kind, MAX_ROWS, Options, names, token_ids};
use footer::sample;
use guard::{Budget, Guarded};

/// First and last bytes of a file.
pub(super) const MAGIC: &[u8] = b"PAR1";
/// First and last bytes of a file with an encrypted footer.
pub(super) const ENCRYPTED: &[u8] = b"PARE";
const FORMAT: &str = "Parquet file";
/// Approximate decompressed size of a row batch, in bytes.
const BATCH_BYTES: u64 = 4 << 20;
/// Maximum number of rows in a batch.
const BATCH_ROWS: u64 = 8192;

/// Maximum bytes of text that are measured; a dictionary may repeat a long text for each row.
const MAX_TEXT: usize = 64 << 30;
/// Number of rows used to select the columns.
const HEAD_ROWS: usize = 2000;
/// Maximum size of these rows, in bytes.
const HEAD_BYTES: usize = 16 << 20;
/// Maximum number of columns; further columns are ignored.
const MAX_COLUMNS: usize = 1000;

fn broken(detail: impl Into<String>) -> ImportError {
    ImportError::Broken { format: FORMAT, detail: detail.into() }
}

/// A byte source for a file. Parts of the file may be missing.
pub trait Source: ChunkReader + 'static {
    /// Returns whether the byte at an offset is available.
    fn has(&self, _offset: u64) -> bool {
        true
    }
}

impl Source for Bytes {}
impl Source for std::fs::File {}

impl Source for Sparse {
    fn has(&self, offset: u64) -> bool {
        self.has(offset)
    }
}

/// Returns whether the bytes start a Parquet file.
pub fn is(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC) || bytes.starts_with(ENCRYPTED)
}

/// Reads a file.
pub(super) fn import(bytes: &[u8], options: &Options<'_>) -> Result<Imported, ImportError> {
    import_from(Bytes::copy_from_slice(bytes), options)
}

/// Reads a byte source: a file, or the parts of it that [`Footer::plan`] lists.
pub fn import_from<R: Source>(source: R, options: &Options<'_>) -> Result<Imported, ImportError> {
    contain(FORMAT, || Rows::open(source)?.import(options))
}

fn row_location(number: u64) -> Location {
    Location { item: "row", number }
}

/// Rows of a Parquet file.
struct Rows<R> {
    source: Arc<R>,
    footer: Footer,
}

impl<R: Source> Rows<R> {
    /// Reads the footer of a source.
    fn open(source: R) -> Result<Self, ImportError> {
        let footer = Footer::from_source(&source)?;
        Ok(Self { source: Arc::new(source), footer })
    }

    fn import(&self, options: &Options<'_>) -> Result<Imported, ImportError> {
        let all = self.footer.rows();
        let Some(first) = (0..self.footer.groups().len()).find(|&group| self.is_any_at_hand(group)) else {
            return Err(if all == 0 { ImportError::NoNumbers { format: FORMAT } } else { broken("no row was sent") });
        };
        let mut head = self.head(first);
        let columns = self.footer.columns().into_iter().take(MAX_COLUMNS).zip(&head).map(|(column, head)| {
            // A text column may contain numbers, so the values decide its kind.
            let is_text = column.kind == Kind::Text && head.is_ok();
            Column { name: column.name, kind: (!is_text).then_some(column.kind) }
        });
        let mut reader = Reader::typed(options, columns.collect());
        let head_rows = head.iter().flatten().map(Vec::len).min().unwrap_or(0);
        for row in 0..head_rows {
            let cells = head.iter_mut().map(|column| match column {
                Ok(values) => std::mem::replace(&mut values[row], Value::Missing),
                Err(_) => Value::Missing,
            });
            reader.push(row_location(row as u64 + 1), Row::Cells(cells.collect()))?;
        }
        if head_rows as u64 == all
            && let Some(histogram) = reader.bins(FORMAT)
        {
            return histogram;
        }
        reader.decide()?;
        let needed: Vec<usize> = (0..head.len()).filter(|&column| reader.is_needed(column)).collect();
        for &column in &needed {
            if let Err(error) = &head[column] {
                return Err(error.clone());
            }
        }
        drop(head);
        let columns = self.footer.columns();
        let has_ids = reader.reads_ids();
        let readings: Vec<Reading> = columns.iter().map(|column| value::reading(&column.name, has_ids)).collect();
        let (mut rows, mut groups, mut text) = (head_rows as u64, 1, 0);
        let max_rows = if options.as_histogram { u64::MAX } else { MAX_ROWS as u64 };
        let selected = sample(self.footer.groups().len(), all, max_rows);
        for group in std::iter::once(first).chain(selected.into_iter().filter(|&group| group != first)) {
            if rows >= max_rows || text >= MAX_TEXT || !self.is_at_hand(group, &needed) {
                continue;
            }
            let mut skipped = if group == first { head_rows } else { 0 };
            groups += usize::from(group != first);
            self.read(group, &needed, |batch| {
                for row in skipped.min(batch.num_rows())..batch.num_rows() {
                    let mut cells = vec![Value::Missing; needed.last().map_or(0, |last| last + 1)];
                    for (&column, array) in needed.iter().zip(batch.columns()) {
                        cells[column] = readings[column](array, row);
                        text += cells[column].bytes();
                    }
                    rows += 1;
                    reader.push(row_location(rows), Row::Cells(cells))?;
                    if rows >= max_rows || text >= MAX_TEXT {
                        return Ok(false);
                    }
                }
                skipped -= skipped.min(batch.num_rows());
                Ok(true)
            })?;
        }
        let mut imported = reader.finish(FORMAT)?;
        if rows < all {
            let total_groups = self.footer.groups().len();
            imported
                .report
                .warnings
                .push(format!("a sample: {rows} of {all} rows were read, from {groups} of {total_groups} row groups"));
        }
        Ok(imported)
    }

    /// Returns the values of the first rows in a row group by column; an error if they are
    /// unavailable or unreadable.
    fn head(&self, group: usize) -> Vec<Result<Vec<Value<'static>>, ImportError>> {
        let columns = self.footer.columns();
        let budget = HEAD_BYTES / columns.len().clamp(1, MAX_COLUMNS);
        let head = |(column, footer_column): (usize, FooterColumn)| {
            if !self.is_at_hand(group, &[column]) {
                return Err(broken(format!("the bytes of column {} were not sent", footer_column.name)));
            }
            let (mut values, mut bytes) = (Vec::new(), 0);
            let read = value::reading(&footer_column.name, true);
            // Values with all list numbers need more memory.
            let has_numbers = names::reads_numbers(&footer_column.name) || token_ids::are_listed(&footer_column.name);
            let budget = if has_numbers { 4 * budget } else { budget };
            self.read(group, &[column], |batch| {
                let Some(array) = batch.columns().first() else { return Ok(false) };
                for row in 0..array.len() {
                    let value = read(array, row).into_owned();
                    bytes += value.bytes();
                    values.push(value);
                    if values.len() >= HEAD_ROWS || bytes >= budget {
                        return Ok(false);
                    }
                }
                Ok(true)
            })?;
            if values.is_empty() {
                Err(broken(format!("the bytes of column {} were not sent", footer_column.name)))
            } else {
                Ok(values)
            }
        };
        columns.into_iter().enumerate().take(MAX_COLUMNS).map(head).collect()
    }

    /// Returns whether the start of a row group is available for all given columns.
    fn is_at_hand(&self, group: usize, columns: &[usize]) -> bool {
        let leaves = self.footer.leaves(columns);
        let group = &self.footer.groups()[group];
        !leaves.is_empty()
            && group.num_rows() > 0
            && leaves.iter().all(|&leaf| self.source.has(group.column(leaf).byte_range().0))
    }

    /// Returns whether the start of a row group is available for any column.
    fn is_any_at_hand(&self, group: usize) -> bool {
        let group = &self.footer.groups()[group];
        group.num_rows() > 0 && group.columns().iter().any(|chunk| self.source.has(chunk.byte_range().0))
    }

    /// Calls `take` with batches of the given columns until it returns false. If only the start of
    /// a row group is available, reading stops at its end.
    fn read(
        &self,
        index: usize,
        columns: &[usize],
        mut take: impl FnMut(&RecordBatch) -> Result<bool, ImportError>,
    ) -> Result<(), ImportError> {
        let leaves = self.footer.leaves(columns);
        let group = &self.footer.groups()[index];
        let budget = Arc::new(Budget::default());
        let source = Guarded { source: Arc::clone(&self.source), budget: Arc::clone(&budget) };
        let batches = ParquetRecordBatchReaderBuilder::new_with_metadata(source, self.footer.metadata.clone())
            .with_row_groups(vec![index])
            .with_projection(self.footer.mask(&leaves))
            .with_batch_size(self.batch_rows(index, &leaves))
            .build()
            .map_err(|error| broken(problem(&error.to_string())))?;
        let mut read = 0;
        for batch in batches {
            let batch = match batch {
                Ok(batch) => batch,
                Err(_) if budget.is_missing() => return Ok(()),
                Err(error) => return Err(broken(problem(&error.to_string()))),
            };
            budget.reset();
            read += batch.num_rows() as u64;
            if !take(&batch)? {
                return Ok(());
            }
        }
        let rows = group.num_rows().unsigned_abs();
        if read == rows || budget.is_missing() {
            return Ok(());
        }
        Err(broken(format!("row group {} has {read} rows, but its footer says {rows}", index + 1)))
    }

    /// Returns the batch size in rows, so that a batch decompresses to about [`BATCH_BYTES`].
    fn batch_rows(&self, group: usize, leaves: &[usize]) -> usize {
        let group = &self.footer.groups()[group];
        let bytes: u64 = leaves
            .iter()
            .map(|&leaf| {
                let chunk = group.column(leaf);
                // Dictionary-encoded values are wider in memory.
                chunk.uncompressed_size().unsigned_abs().max(chunk.num_values().unsigned_abs() * 8)
            })
            .sum();
        let rows = group.num_rows().unsigned_abs().max(1);
        (BATCH_BYTES / (bytes / rows).max(1)).clamp(1, BATCH_ROWS) as usize
    }
}

/// Formats an error of the crate without type names.
fn problem(error: &str) -> String {
    error.trim_start_matches("Parquet argument error: ").trim_start_matches("External: ").to_owned()
}

#[cfg(test)]
mod tests;
