//! Reads Arrow IPC: streams as Hugging Face `save_to_disk` writes them, files, and Feather 2. The
//! messages are read sequentially, so that a file of any size needs the memory of one batch.
//!
//! A message is `0xffffffff | header length | header (flatbuffer) | body`. A file is `ARROW1` and
//! two bytes, then a stream, then a footer, which this reader ignores.

pub(super) mod schema;
pub(super) mod value;

use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_ipc::{MessageHeader, MetadataVersion, RecordBatch as Packed, root_as_message};
use arrow_schema::{Schema, SchemaRef};

use super::contain::contain;
use super::profile::Column;
use super::reader::Reader;
use super::value::{Location, Row, Value};
use super::{ImportError, Imported, Kind, Options};

const MAGIC: &[u8] = b"ARROW1\0\0";
const CONTINUATION: [u8; 4] = [0xff; 4];
const FORMAT: &str = "Arrow file";
/// Maximum number of 8-byte words before the first message of a file.
const MAX_START: usize = 8192;
/// Maximum size of a message header, in bytes.
const MAX_HEADER: u64 = 16 << 20;
/// Maximum size of a message body, compressed and decompressed, in bytes.
const MAX_BODY: u64 = 1 << 30;

fn broken(detail: impl Into<String>) -> ImportError {
    ImportError::Broken { format: FORMAT, detail: detail.into() }
}

/// Returns whether the bytes start an Arrow file or stream.
pub fn is(bytes: &[u8]) -> bool {
    // The first message contains the schema header; its length is a multiple of 8 or 4.
    let is_stream = bytes.starts_with(&CONTINUATION)
        && bytes[4..].first_chunk().is_some_and(|&length| (8..MAX_HEADER as u32).contains(&u32::from_le_bytes(length)));
    bytes.starts_with(MAGIC) || is_stream
}

/// Reads a file or a stream from a source of bytes.
pub fn import_from(source: impl Read, options: &Options<'_>) -> Result<Imported, ImportError> {
    contain(FORMAT, || {
        let mut messages = Messages::open(source)?;
        let columns = messages.schema.fields().iter().map(|field| {
            // A text column may contain numbers, so the values decide its kind.
            let kind = Some(schema::kind(field.data_type())).filter(|kind| *kind != Kind::Text);
            Column { name: field.name().clone(), kind }
        });
        let mut reader = Reader::typed(options, columns.collect());
        let mut number = 0;
        while let Some(body) = messages.next_rows()? {
            let all = messages.schema.fields().len();
            let needed: Vec<usize> =
                (0..all).filter(|&column| !reader.is_decided() || reader.is_needed(column)).collect();
            let batch = messages.batch(&body, &needed)?;
            let has_ids = reader.reads_ids();
            let fields = messages.schema.fields();
            let readings: Vec<value::Reading> =
                needed.iter().map(|&column| value::reading(fields[column].name(), has_ids)).collect();
            for row in 0..batch.num_rows() {
                number += 1;
                let mut cells = vec![Value::Missing; all];
                for ((&column, array), read) in needed.iter().zip(batch.columns()).zip(&readings) {
                    if !reader.is_decided() || reader.is_needed(column) {
                        cells[column] = read(array, row);
                    }
                }
                reader.push(Location { item: "row", number }, Row::Cells(cells))?;
            }
        }
        reader.finish(FORMAT)
    })
}

/// The messages of a stream.
struct Messages<S> {
    source: S,
    schema: SchemaRef,
    version: MetadataVersion,
    dictionaries: HashMap<i64, ArrayRef>,
}

struct Message {
    header: Vec<u8>,
    body: Buffer,
}

impl<S: Read> Messages<S> {
    fn open(mut source: S) -> Result<Self, ImportError> {
        let mut start = [0; 8];
        source.read_exact(&mut start).map_err(|error| cut(&error))?;
        let [a, b, c, d, length @ ..] = start;
        let first = if start == *MAGIC {
            // The first message begins at a multiple of 8 bytes; writers put zeros or a header of their own in front of it.
            let mut word_count = 0;
            let length = loop {
                let [a, b, c, d, length @ ..] = start;
                if word_count > 0 && [a, b, c, d] == CONTINUATION {
                    break length;
                }
                word_count += 1;
                if word_count > MAX_START {
                    return Err(broken("it has no schema"));
                }
                source.read_exact(&mut start).map_err(|error| cut(&error))?;
            };
            read(&mut source, Some(length))?
        } else if [a, b, c, d] == CONTINUATION {
            read(&mut source, Some(length))?
        } else {
            return Err(broken("its first message is none"));
        };
        let Some(first) = first else { return Err(broken("it has no schema")) };
        let message = root_as_message(&first.header).map_err(|error| broken(error.to_string()))?;
        let schema = message.header_as_schema().ok_or_else(|| broken("its first message is not a schema"))?;
        let schema: Schema = try_fb_to_schema(schema).map_err(|error| broken(error.to_string()))?;
        Ok(Self { source, schema: Arc::new(schema), version: message.version(), dictionaries: HashMap::new() })
    }

    /// Returns the next message with rows, or `None` at the end.
    fn next_rows(&mut self) -> Result<Option<Message>, ImportError> {
        while let Some(message) = read(&mut self.source, None)? {
            let header = root_as_message(&message.header).map_err(|error| broken(error.to_string()))?;
            match header.header_type() {
                MessageHeader::RecordBatch => return Ok(Some(message)),
                MessageHeader::DictionaryBatch => {
                    let batch = header.header_as_dictionary_batch().ok_or_else(|| broken("a dictionary is broken"))?;
                    let data = batch.data().ok_or_else(|| broken("a dictionary is empty"))?;
                    check_size(&data, &message.body)?;
                    read_dictionary(&message.body, batch, &self.schema, &mut self.dictionaries, &self.version)
                        .map_err(|error| broken(error.to_string()))?;
                }
                other => return Err(broken(format!("a message of type {other:?} is not read"))),
            }
        }
        Ok(None)
    }

    /// Decodes the given columns of a record batch.
    fn batch(&self, message: &Message, columns: &[usize]) -> Result<RecordBatch, ImportError> {
        let header = root_as_message(&message.header).map_err(|error| broken(error.to_string()))?;
        let batch = header.header_as_record_batch().ok_or_else(|| broken("a batch of rows is broken"))?;
        check_size(&batch, &message.body)?;
        let schema = Arc::clone(&self.schema);
        read_record_batch(&message.body, batch, schema, &self.dictionaries, Some(columns), &self.version)
            .map_err(|error| broken(error.to_string()))
    }
}

/// Rejects a batch if its compressed buffers declare more than [`MAX_BODY`] decompressed bytes, or
/// if they lie outside the body.
fn check_size(batch: &Packed<'_>, body: &Buffer) -> Result<(), ImportError> {
    let is_packed = batch.compression().is_some();
    let mut unpacked = 0_u64;
    for buffer in batch.buffers().iter().flatten() {
        let start = usize::try_from(buffer.offset()).ok();
        let length = usize::try_from(buffer.length()).ok();
        let bytes = start.zip(length).and_then(|(start, length)| body.get(start..start.checked_add(length)?));
        let Some(bytes) = bytes else {
            return Err(broken("a batch of rows lies outside its message: the file is cut"));
        };
        if is_packed && let Some(&length) = bytes.first_chunk::<8>() {
            // -1 marks an uncompressed buffer.
            unpacked = unpacked.saturating_add(u64::try_from(i64::from_le_bytes(length)).unwrap_or(0));
        }
    }
    if unpacked > MAX_BODY || batch.length().unsigned_abs() > super::MAX_ROWS as u64 * 10 {
        return Err(too_large(unpacked));
    }
    Ok(())
}

fn too_large(bytes: u64) -> ImportError {
    broken(format!("a batch of rows has {bytes} bytes; at most {MAX_BODY} are read. Write smaller batches"))
}

/// Reads a message; returns `None` at the end of the stream. `word` is the first word if it was
/// already read.
fn read(source: &mut impl Read, word: Option<[u8; 4]>) -> Result<Option<Message>, ImportError> {
    let mut length = word.unwrap_or_default();
    if word.is_none() && !fill(source, &mut length)? {
        return Ok(None);
    }
    // Writers before version 0.15 write the length first.
    if length == CONTINUATION && !fill(source, &mut length)? {
        return Ok(None);
    }
    let length = u64::from(u32::from_le_bytes(length));
    if length == 0 {
        return Ok(None);
    }
    if length > MAX_HEADER {
        return Err(broken(format!("a header of {length} bytes; at most {MAX_HEADER} are read")));
    }
    let header = bytes(source, length)?;
    let message = root_as_message(&header).map_err(|error| broken(format!("a header cannot be read: {error}")))?;
    let body = u64::try_from(message.bodyLength()).map_err(|_| broken("a message has a negative length"))?;
    if body > MAX_BODY {
        return Err(too_large(body));
    }
    let body = Buffer::from_vec(bytes(source, body)?);
    Ok(Some(Message { header, body }))
}

/// Fills a word; returns false at the end of the source.
fn fill(source: &mut impl Read, word: &mut [u8; 4]) -> Result<bool, ImportError> {
    match source.read_exact(word) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(cut(&error)),
    }
}

/// Reads `length` bytes. It allocates memory only for bytes that the source contains.
fn bytes(source: &mut impl Read, length: u64) -> Result<Vec<u8>, ImportError> {
    let mut bytes = Vec::new();
    source.by_ref().take(length).read_to_end(&mut bytes).map_err(|error| cut(&error))?;
    if bytes.len() as u64 == length { Ok(bytes) } else { Err(broken("it ends inside a message: the file is cut")) }
}

fn cut(error: &std::io::Error) -> ImportError {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => broken("it ends inside a message: the file is cut"),
        _ => broken(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
