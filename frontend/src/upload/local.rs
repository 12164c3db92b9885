//! Slices of local files. A slice is a reference; its bytes are read from disk during the upload.

use api::dataset::FileRanges;
use js_sys::{Array, Uint8Array};
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::JsFuture;
use web_sys::{Blob, File};

use crate::client::RequestError;

/// Maximum size in bytes of Parquet files that are sent completely.
const SMALL_PARQUET: f64 = (8 << 20) as f64;
/// Maximum Parquet footer length in bytes.
const MAX_FOOTER: u32 = 63 << 20;
/// Size in bytes above which files are probed first. Otherwise a wrong column is detected only at
/// the end of the upload.
pub(super) const LARGE: f64 = (64 << 20) as f64;
/// Bytes from the beginning of a large file used to detect columns.
const PROBE: f64 = (4 << 20) as f64;

/// Footer of a large Parquet file.
pub(super) struct Footer {
    /// End of the file: footer, footer length, magic bytes.
    pub(super) tail: Blob,
    /// File offset of the first byte.
    offset: f64,
}

/// Returns the footer of a large Parquet file. Returns `None` for other files.
pub(super) async fn footer(file: &File) -> Result<Option<Footer>, RequestError> {
    let size = file.size();
    if size <= SMALL_PARQUET || bytes(&slice(file, 0.0, 4.0)?).await? != b"PAR1" {
        return Ok(None);
    }
    let end = bytes(&slice(file, size - 8.0, size)?).await?;
    let length = end.first_chunk().copied().map_or(0, u32::from_le_bytes);
    if length > MAX_FOOTER {
        let detail =
            format!("the footer of this Parquet file has {length} bytes: the file is damaged, or has too many columns");
        return Err(RequestError::Unreadable(detail));
    }
    // A corrupt length may point before the file start. The server reports the error.
    let offset = (size - 8.0 - f64::from(length)).max(0.0);
    Ok(Some(Footer { tail: slice(file, offset, size)?, offset }))
}

/// Returns footer and ranges of a Parquet file as a [`api::dataset::RANGES_MEDIA_TYPE`] body.
pub(super) fn parts(file: &File, footer: &Footer, ranges: &FileRanges) -> Result<Blob, RequestError> {
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

/// Returns the first lines of a large text file. Returns `None` for small files, compressed files
/// and files without lines.
pub(super) async fn probe(file: &File) -> Result<Option<Blob>, RequestError> {
    if file.size() <= LARGE {
        return Ok(None);
    }
    let beginning = bytes(&slice(file, 0.0, PROBE)?).await?;
    let end = beginning.iter().rposition(|&byte| byte == b'\n').filter(|_| !beginning.contains(&0));
    end.map(|end| slice(file, 0.0, (end + 1) as f64)).transpose()
}

fn slice(file: &File, start: f64, end: f64) -> Result<Blob, RequestError> {
    file.slice_with_f64_and_f64(start, end).map_err(|error| unreadable(&error))
}

async fn bytes(blob: &Blob) -> Result<Vec<u8>, RequestError> {
    let buffer = JsFuture::from(blob.array_buffer()).await.map_err(|error| unreadable(&error))?;
    Ok(Uint8Array::new(&buffer).to_vec())
}

/// Error for an unreadable file, for example a file that changed or disappeared after selection.
fn unreadable(error: &JsValue) -> RequestError {
    let message = js_sys::Reflect::get(error, &"message".into()).ok().and_then(|message| message.as_string());
    let detail = message.unwrap_or_else(|| format!("{error:?}"));
    RequestError::Unreadable(format!("The browser cannot read the file: {detail}. Choose it again."))
}
