//! Converts Parquet tables to CSV text.

use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use super::{MAX_VALUES, ProfileError};

/// Maximum size of the converted text in bytes.
const MAX_TEXT: usize = 256 << 20;

/// Converts the rows to CSV with a header. Null cells are empty. Commas and line breaks in text are
/// replaced by blanks.
///
/// # Errors
/// The file is corrupt, encrypted or too large. A panic in the Parquet reader is also returned as
/// an error.
pub(super) fn text(bytes: &[u8]) -> Result<String, ProfileError> {
    std::panic::catch_unwind(|| rows(bytes))
        .unwrap_or_else(|_| Err(ProfileError::Table { detail: "Parquet: the file is broken".to_owned() }))
}

fn rows(bytes: &[u8]) -> Result<String, ProfileError> {
    let unreadable = |error: &dyn std::fmt::Display| ProfileError::Table { detail: format!("Parquet: {error}") };
    let reader = SerializedFileReader::new(Bytes::copy_from_slice(bytes)).map_err(|error| unreadable(&error))?;
    let metadata = reader.metadata().file_metadata();
    let rows = usize::try_from(metadata.num_rows()).unwrap_or(usize::MAX);
    if rows > MAX_VALUES {
        return Err(ProfileError::TooManyValues);
    }
    let names: Vec<String> = metadata.schema().get_fields().iter().map(|field| plain(field.name())).collect();
    let mut text = names.join(",");
    text.push('\n');
    for row in reader.get_row_iter(None).map_err(|error| unreadable(&error))? {
        let row = row.map_err(|error| unreadable(&error))?;
        let cells: Vec<String> = row
            .get_column_iter()
            .map(|(_, value)| match value {
                Field::Null => String::new(),
                Field::Str(value) => plain(value),
                // Rust float formatting round-trips.
                Field::Double(value) => value.to_string(),
                Field::Float(value) => value.to_string(),
                other => plain(&other.to_string()),
            })
            .collect();
        text.push_str(&cells.join(","));
        text.push('\n');
        if text.len() > MAX_TEXT {
            return Err(ProfileError::TooManyValues);
        }
    }
    Ok(text)
}

fn plain(text: &str) -> String {
    text.replace([',', ';', '\t', '\n', '\r', '"', '#'], " ")
}
