//! Reads the Parquet footer: columns, row groups, and the byte ranges that are needed for the
//! lengths.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{Field, Fields, Schema};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_schema};
use parquet::basic::{ConvertedType, Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader, ParquetStatisticsPolicy, RowGroupMetaData,
};
use parquet::file::reader::ChunkReader;

use super::super::arrow::schema;
use super::super::contain::contain;
use super::super::{ImportError, Kind};
use super::guard::varint;
use super::{ENCRYPTED, FORMAT, MAGIC, broken};

/// Size of the file tail that contains the footer length, in bytes.
const TAIL: u64 = 8;
/// Maximum footer size, in bytes.
const MAX_FOOTER: u64 = 32 << 20;
/// Maximum number of columns, including nested fields.
const MAX_COLUMNS: u64 = 20_000;
/// Maximum width of a fixed-width value, in bytes.
const MAX_WIDTH: i32 = 64;

/// The footer of a Parquet file.
#[derive(Debug, Clone)]
pub struct Footer {
    pub(super) metadata: ArrowReaderMetadata,
}

/// A column of a Parquet file. A nested column counts as one column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FooterColumn {
    /// Its name.
    pub name: String,
    /// Kind of the values, by logical type.
    pub kind: Kind,
    /// Compressed size in all row groups, in bytes.
    pub bytes: u64,
}

impl Footer {
    /// Returns the number of bytes at the file end that [`Footer::read`] needs. `tail` contains at
    /// least the last 8 bytes of the file.
    pub fn bytes(tail: &[u8], file_length: u64) -> Result<u64, ImportError> {
        let Some((rest, magic)) = tail.split_last_chunk::<4>() else {
            return Err(broken("it is shorter than 8 bytes"));
        };
        if magic == ENCRYPTED {
            return Err(broken("the file is encrypted; write it without encryption"));
        }
        if magic != MAGIC {
            return Err(broken("it does not end with PAR1: the file is cut"));
        }
        let length = rest.last_chunk().map_or(0, |&length| u64::from(u32::from_le_bytes(length)));
        if length + TAIL + MAGIC.len() as u64 > file_length {
            return Err(broken(format!("its footer of {length} bytes is longer than the file: the file is cut")));
        }
        if length > MAX_FOOTER {
            return Err(broken(format!(
                "its footer has {length} bytes; at most {MAX_FOOTER} are read. Write fewer columns or larger row groups"
            )));
        }
        Ok(length + TAIL)
    }

    /// Reads the footer from the last bytes of a file. [`Footer::bytes`] returns the required size.
    pub fn read(tail: &[u8], file_length: u64) -> Result<Self, ImportError> {
        let length = Self::bytes(tail, file_length)? as usize;
        let Some(start) = tail.len().checked_sub(length) else {
            return Err(broken(format!("the last {length} bytes of the file are needed for its footer")));
        };
        let footer = &tail[start..tail.len() - TAIL as usize];
        if schema_elements(footer).is_none_or(|elements| elements > MAX_COLUMNS) {
            return Err(broken(format!("its footer cannot be read, or lists more than {MAX_COLUMNS} columns")));
        }
        let options = ParquetMetaDataOptions::new()
            .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll);
        let metadata = ParquetMetaDataReader::decode_metadata_with_options(footer, Some(&options));
        let metadata = metadata.map_err(|error| broken(format!("its footer cannot be read: {error}")))?;
        check(&metadata, file_length)?;
        let metadata =
            with_views(&Arc::new(metadata)).map_err(|error| broken(format!("its schema cannot be read: {error}")))?;
        Ok(Self { metadata })
    }

    /// Reads the footer of a source.
    pub(super) fn from_source<R: ChunkReader>(source: &R) -> Result<Self, ImportError> {
        let length = source.len();
        let last = |bytes: u64| -> Result<Bytes, ImportError> {
            let bytes = bytes.min(length);
            source.get_bytes(length - bytes, bytes as usize).map_err(|error| broken(error.to_string()))
        };
        let needed = Self::bytes(&last(TAIL)?, length)?;
        Self::read(&last(needed)?, length)
    }

    /// Number of rows in the file.
    pub fn rows(&self) -> u64 {
        self.groups().iter().map(|group| group.num_rows().unsigned_abs()).sum()
    }

    /// Columns of the file.
    pub fn columns(&self) -> Vec<FooterColumn> {
        let fields = self.metadata.schema().fields();
        let mut columns: Vec<FooterColumn> = fields
            .iter()
            .map(|field| FooterColumn { name: field.name().clone(), kind: schema::kind(field.data_type()), bytes: 0 })
            .collect();
        let descriptor = self.metadata.parquet_schema();
        for leaf in 0..descriptor.num_columns() {
            let Some(column) = columns.get_mut(descriptor.get_column_root_idx(leaf)) else { continue };
            column.bytes += self.groups().iter().map(|group| group.column(leaf).byte_range().1).sum::<u64>();
        }
        columns
    }

    pub(super) fn groups(&self) -> &[RowGroupMetaData] {
        self.metadata.metadata().row_groups()
    }

    /// Returns the leaf columns to read. Bytes inside structures, such as encoded images, are
    /// skipped.
    pub(super) fn leaves(&self, columns: &[usize]) -> Vec<usize> {
        let descriptor = self.metadata.parquet_schema();
        let is_opaque = |leaf: usize| {
            let column = descriptor.column(leaf);
            let is_text = column.logical_type_ref().is_some() || column.converted_type() != ConvertedType::NONE;
            match column.physical_type() {
                Type::BYTE_ARRAY => !is_text && column.path().parts().len() > 1,
                Type::FIXED_LEN_BYTE_ARRAY => column.type_length() > MAX_WIDTH,
                _ => false,
            }
        };
        let all = |&leaf: &usize| columns.contains(&descriptor.get_column_root_idx(leaf));
        let (opaque, plain): (Vec<usize>, Vec<usize>) =
            (0..descriptor.num_columns()).filter(all).partition(|&leaf| is_opaque(leaf));
        let has_plain = |root: usize| plain.iter().any(|&leaf| descriptor.get_column_root_idx(leaf) == root);
        let narrow = |&leaf: &usize| descriptor.column(leaf).physical_type() == Type::BYTE_ARRAY;
        let only: Vec<usize> = opaque
            .into_iter()
            .filter(|&leaf| !has_plain(descriptor.get_column_root_idx(leaf)))
            .filter(narrow)
            .collect();
        let mut leaves = [plain, only].concat();
        leaves.sort_unstable();
        leaves
    }

    pub(super) fn mask(&self, leaves: &[usize]) -> ProjectionMask {
        ProjectionMask::leaves(self.metadata.parquet_schema(), leaves.iter().copied())
    }

    /// Returns the row groups to read within a byte budget, and their byte ranges. If the columns
    /// exceed the budget, evenly spaced row groups are read. If one row group exceeds the budget,
    /// only its start is read.
    pub(super) fn select(&self, columns: &[usize], budget: u64) -> (Vec<usize>, Vec<Range<u64>>) {
        let leaves = self.leaves(columns);
        let all_groups = self.groups().len();
        let bytes =
            |group: &RowGroupMetaData| leaves.iter().map(|&leaf| group.column(leaf).byte_range().1).sum::<u64>();
        let total: u64 = self.groups().iter().map(bytes).sum();
        let groups = sample(all_groups, total, budget);
        // Greater than 1 if a single row group exceeds the budget.
        let excess = match groups.as_slice() {
            &[only] => (bytes(&self.groups()[only]) as f64 / budget.max(1) as f64).max(1.0),
            _ => 1.0,
        };
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for &group in &groups {
            for &leaf in &leaves {
                let (start, length) = self.groups()[group].column(leaf).byte_range();
                ranges.push(start..start + (length as f64 / excess) as u64);
            }
        }
        (groups, ranges)
    }
}

/// Returns all row groups, or evenly spaced ones if they exceed the budget.
pub(super) fn sample(groups: usize, total: u64, budget: u64) -> Vec<usize> {
    if total <= budget || groups <= 1 {
        return (0..groups).collect();
    }
    let share = (budget as f64 / total as f64 * groups as f64) as usize;
    let count = share.clamp(1, groups);
    (0..count).map(|index| (2 * index + 1) * groups / (2 * count)).collect()
}

/// Checks the assumptions of the crate about row groups and chunks.
fn check(metadata: &ParquetMetaData, file_length: u64) -> Result<(), ImportError> {
    let columns = metadata.file_metadata().schema_descr().num_columns();
    for (index, group) in metadata.row_groups().iter().enumerate() {
        let inside = |start: i64, length: i64| {
            let (start, length) = (u64::try_from(start).ok()?, u64::try_from(length).ok()?);
            start.checked_add(length).filter(|&end| end <= file_length)
        };
        let wrong = group.num_columns() != columns
            || group.num_rows() < 0
            || group.columns().iter().any(|chunk| {
                let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
                chunk.num_values() < 0 || inside(start, chunk.compressed_size()).is_none()
            });
        if wrong {
            return Err(broken(format!("row group {} lies outside the file: the file is cut", index + 1)));
        }
        if group.columns().iter().any(|chunk| chunk.file_path().is_some_and(|path| !path.is_empty())) {
            return Err(broken("its columns lie in other files; give these files"));
        }
    }
    Ok(())
}

/// Returns the schema with text as views into pages, and with durations and seconds since 1970 as
/// times. Parquet stores both as integers; only the writer's Arrow schema identifies them.
fn with_views(metadata: &Arc<ParquetMetaData>) -> Result<ArrowReaderMetadata, ParquetError> {
    let plain =
        ArrowReaderMetadata::try_new(Arc::clone(metadata), ArrowReaderOptions::new().with_skip_arrow_metadata(true))?;
    let views = schema::with_views(plain.schema().fields());
    let fields = match written(metadata) {
        Some(written) => schema::with_times(&views, written.fields()),
        None => views.clone(),
    };
    let read = |fields: &Fields| {
        let fields: Vec<Arc<Field>> = fields.iter().cloned().collect();
        let options = ArrowReaderOptions::new().with_schema(Arc::new(Schema::new(fields)));
        ArrowReaderMetadata::try_new(Arc::clone(metadata), options)
    };
    read(&fields).or_else(|_| read(&views))
}

/// Returns the writer's schema; `None` if it cannot be read.
fn written(metadata: &ParquetMetaData) -> Option<Schema> {
    let file = metadata.file_metadata();
    contain(FORMAT, || {
        parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata())
            .map_err(|error| broken(error.to_string()))
    })
    .ok()
}

/// Reads the schema element count from the first footer bytes: the version, then the list of
/// elements.
fn schema_elements(footer: &[u8]) -> Option<u64> {
    const NEXT_I32: u8 = 0x15;
    const NEXT_LIST: u8 = 0x19;
    const STRUCT: u8 = 0x0c;
    let (_, rest) = varint(footer.strip_prefix(&[NEXT_I32])?)?;
    let (&head, rest) = rest.strip_prefix(&[NEXT_LIST])?.split_first()?;
    if head & 0x0f != STRUCT {
        return None;
    }
    match head >> 4 {
        15 => varint(rest).map(|(count, _)| count),
        count => Some(count.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_groups_are_left_out_evenly() {
        assert_eq!(sample(4, 100, 100), [0, 1, 2, 3]);
        assert_eq!(sample(4, 100, 50), [1, 3]);
        assert_eq!(sample(10, 100, 30), [1, 5, 8]);
        assert_eq!(sample(10, 100, 1), [5]);
        assert_eq!(sample(1, 100, 1), [0]);
        assert!(sample(0, 0, 0).is_empty());
    }

    #[test]
    fn file_end_states_the_footer_length() {
        let tail = |length: u32, magic: &[u8; 4]| [&length.to_le_bytes()[..], magic].concat();
        assert_eq!(Footer::bytes(&tail(100, b"PAR1"), 1000), Ok(108));
        for (tail, length, problem) in [
            (tail(100, b"PARE"), 1000, "encrypted"),
            (tail(100, b"PAR2"), 1000, "does not end with PAR1"),
            (tail(100, b"PAR1"), 100, "longer than the file"),
            (tail(u32::MAX, b"PAR1"), u64::MAX, "at most 33554432"),
            (b"PAR".to_vec(), 3, "shorter than 8 bytes"),
        ] {
            let error = Footer::bytes(&tail, length).expect_err(problem).to_string();
            assert!(error.contains(problem), "{problem}: {error}");
        }
    }
}
