//! Parts of local files. A slice of a file is a reference: its bytes are read from the disk when they are sent.

use api::dataset::FileRanges;
use js_sys::{Array, Uint8Array};
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::JsFuture;
use web_sys::{Blob, File};

use crate::client::Failure;

/// Parquet files up to this size are sent as they are, in bytes.
const SMALL_PARQUET: f64 = (8 << 20) as f64;
/// Longest footer of a Parquet file that is sent, in bytes.
const MAX_FOOTER: u32 = 63 << 20;
/// Files of more bytes are read as they come; a wrong column would be found only at the end.
pub(super) const LARGE: f64 = (64 << 20) as f64;
/// Bytes from the beginning of a large file by which its columns are recognised.
const PROBE: f64 = (4 << 20) as f64;

/// The footer of a large Parquet file.
pub(super) struct Footer {
    /// The end of the file: footer, its length, and the magic bytes.
    pub(super) tail: Blob,
    /// First byte of the tail.
    offset: f64,
}

/// The footer of a file, if it is a large Parquet file.
pub(super) async fn footer(file: &File) -> Result<Option<Footer>, Failure> {
    let size = file.size();
    if size <= SMALL_PARQUET || bytes(&slice(file, 0.0, 4.0)?).await? != b"PAR1" {
        return Ok(None);
    }
    let end = bytes(&slice(file, size - 8.0, size)?).await?;
    let length = end.first_chunk().copied().map_or(0, u32::from_le_bytes);
    if length > MAX_FOOTER {
        let detail =
            format!("the footer of this Parquet file has {length} bytes: the file is damaged, or has too many columns");
        return Err(Failure::Unreadable(detail));
    }
    // A damaged length may point before the beginning; the server says what is wrong with the file.
    let offset = (size - 8.0 - f64::from(length)).max(0.0);
    Ok(Some(Footer { tail: slice(file, offset, size)?, offset }))
}

/// The footer and the ranges of a Parquet file, as a body of [`api::dataset::RANGES_MEDIA_TYPE`].
pub(super) fn parts(file: &File, footer: &Footer, ranges: &FileRanges) -> Result<Blob, Failure> {
    let body = Array::new();
    let ranges = ranges.ranges.iter().map(|&(start, bytes)| (start as f64, bytes as f64));
    for (start, bytes) in ranges.chain([(footer.offset, file.size() - footer.offset)]) {
        let mut head = [0; 16];
        head[..8].copy_from_slice(&(start as u64).to_le_bytes());
        head[8..].copy_from_slice(&(bytes as u64).to_le_bytes());
        body.push(&Uint8Array::from(&head[..]));
        body.push(slice(file, start, start + bytes)?.as_ref());
    }
    Blob::new_with_blob_sequence(&body).map_err(|error| unreadable(&error))
}

/// The first lines of a large text file; `None` for small files, packed files and files without lines.
pub(super) async fn probe(file: &File) -> Result<Option<Blob>, Failure> {
    if file.size() <= LARGE {
        return Ok(None);
    }
    let beginning = bytes(&slice(file, 0.0, PROBE)?).await?;
    let end = beginning.iter().rposition(|&byte| byte == b'\n').filter(|_| !beginning.contains(&0));
    end.map(|end| slice(file, 0.0, (end + 1) as f64)).transpose()
}

fn slice(file: &File, start: f64, end: f64) -> Result<Blob, Failure> {
    file.slice_with_f64_and_f64(start, end).map_err(|error| unreadable(&error))
}

async fn bytes(blob: &Blob) -> Result<Vec<u8>, Failure> {
    let buffer = JsFuture::from(blob.array_buffer()).await.map_err(|error| unreadable(&error))?;
    Ok(Uint8Array::new(&buffer).to_vec())
}

/// A file that has changed or gone since it was chosen, for example.
fn unreadable(error: &JsValue) -> Failure {
    let message = js_sys::Reflect::get(error, &"message".into()).ok().and_then(|message| message.as_string());
    let detail = message.unwrap_or_else(|| format!("{error:?}"));
    Failure::Unreadable(format!("The browser cannot read the file: {detail}. Choose it again."))
}
