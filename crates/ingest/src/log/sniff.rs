//! Detects the file type from content.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::json_lines::finite;
use super::utf16::Decoder;
use super::{Limits, LogError, header, listed, rows, step_csv, tensorboard};
use crate::gzip;

/// Detected file type.
pub(super) enum Content {
    /// Text log.
    Text,
    JsonLines,
    /// JSON lines with one metric value per line.
    LongLines,
    /// Hugging Face trainer state.
    TrainerState(Value),
    /// Curves of several metrics over steps.
    Curves(Map<String, Value>),
    /// Weights & Biases panel with columns for several runs.
    PanelCsv,
    /// TensorBoard CSV with one scalar.
    ScalarCsv,
    /// Table with a step column, and its delimiter.
    StepCsv(u8),
    /// JSON lines extracted from a document with a list of rows.
    Listed(String),
    /// MLflow metric file: time, value and step.
    MlflowMetric,
    /// TensorBoard event file.
    Tensorboard,
}

const TEXT: &str = "send the text that the trainer prints";

/// Magic bytes of unsupported files that users upload by mistake.
const MAGIC: [(&[u8], &str, &str); 10] = [
    (b"\x89PNG", "a PNG image", TEXT),
    (b"%PDF", "a PDF document", TEXT),
    (b"PK\x03\x04", "a zip archive", "unpack it and send the file inside"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive", "unpack it and send the file inside"),
    (b"BZh", "a bzip2 archive", "unpack it and send the file inside"),
    (b"\xfd7zXZ", "an xz archive", "unpack it and send the file inside"),
    (b"PAR1", "a Parquet file", "export the history as JSON lines"),
    (b"\x80\x04", "a Python pickle", "pickles are never opened; write the history with json.dump"),
    (b"\x80\x05", "a Python pickle", "pickles are never opened; write the history with json.dump"),
    (
        b":W&B",
        "a .wandb file of Weights & Biases",
        "write its history with `wandb sync`, then export it as JSON lines or CSV",
    ),
];

/// Decompresses gzip data; other data is unchanged.
pub(super) fn unpack<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Cow<'a, [u8]>, LogError> {
    let limit = limits.file_bytes;
    match gzip::unpack(bytes, limit) {
        Ok(bytes) if bytes.len() > limit => Err(LogError::TooLarge { limit }),
        Ok(bytes) => Ok(bytes),
        Err(gzip::GzipError::TooLarge) => Err(LogError::TooLarge { limit }),
        Err(gzip::GzipError::Nested) => {
            Err(LogError::NotALog { looks_like: "a gzip archive inside another", remedy: "unpack it once" })
        }
        Err(gzip::GzipError::Broken { unpacked, detail }) => Err(LogError::Gzip { unpacked: unpacked.len(), detail }),
    }
}

/// Converts UTF-16 text to UTF-8.
pub(super) fn narrow(bytes: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    let mut decoder = Decoder::default();
    match decoder.decode(&bytes) {
        Some(text) if decoder.is_wide() => Cow::Owned(text),
        _ => bytes,
    }
}

/// Detects the file type.
pub(super) fn content(bytes: &[u8], limits: &Limits) -> Result<Content, LogError> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(LogError::Empty);
    }
    if tensorboard::is_event_file(bytes) {
        return Ok(Content::Tensorboard);
    }
    if let Some(&(_, looks_like, remedy)) = MAGIC.iter().find(|(magic, ..)| bytes.starts_with(magic)) {
        return Err(LogError::NotALog { looks_like, remedy });
    }
    let body = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let head = String::from_utf8_lossy(&body[..body.len().min(64 << 10)]);
    let first = head.trim_start().lines().next().unwrap_or_default().trim_end();
    let is_array = first.strip_prefix('[').is_some_and(|rest| rest.trim_start().starts_with('{'));
    // A time or a level in brackets begins a line of a log.
    if first.starts_with('{') || is_array || (first.starts_with('[') && !first.contains("] ")) {
        let row = serde_json::from_str::<Value>(&finite(first)).ok();
        if let Some(lines) = row.as_ref().and_then(listed::lines).filter(|_| head.trim().lines().count() == 1) {
            return Ok(Content::Listed(lines));
        }
        let row = row.as_ref().and_then(Value::as_object);
        if row.is_some_and(|row| !row.contains_key("log_history") && !rows::are_curves(row)) {
            return Ok(if row.is_some_and(step_csv::is_long_row) { Content::LongLines } else { Content::JsonLines });
        }
        if row.is_some() || is_array {
            return document(body, limits);
        }
        if head.contains("\"log_history\"") || head.contains("\"step_interval\"") || matches!(first, "{" | "[") {
            return document(body, limits);
        }
    }
    if first == "Wall time,Step,Value" {
        return Ok(Content::ScalarCsv);
    }
    if header::is_panel(first) {
        return Ok(Content::PanelCsv);
    }
    if let Some(delimiter) = header::delimiter(first) {
        return Ok(Content::StepCsv(delimiter));
    }
    if let Some(lines) = listed::is_log_table(first).then(|| listed::table(body)).flatten() {
        return Ok(Content::Listed(lines));
    }
    if header::is_mlflow_metric(&head) {
        return Ok(Content::MlflowMetric);
    }
    Ok(Content::Text)
}

fn document(body: &[u8], limits: &Limits) -> Result<Content, LogError> {
    // The parsed document needs several times its size in memory.
    let limit = (256 << 20).min(limits.file_bytes);
    if body.len() > limit {
        return Err(LogError::TooLarge { limit });
    }
    let text = String::from_utf8_lossy(body);
    match serde_json::from_str(&finite(&text)).map_err(|error| LogError::Json { detail: error.to_string() })? {
        Value::Object(object) if rows::are_curves(&object) => Ok(Content::Curves(object)),
        document => Ok(listed::lines(&document).map_or_else(|| Content::TrainerState(document), Content::Listed)),
    }
}
