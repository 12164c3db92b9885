//! Reads execution plan files.
//!
//! Only the structure is validated here. The checker validates the content.

use planner::execution_file::{ExecutionFile, FORMAT, VERSION};
use serde::Deserialize;

/// Maximum file size in bytes.
pub const MAX_BYTES: usize = 512 << 20;

/// Reason why a file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecutionFileError {
    /// The file is too large.
    #[error("the file is larger than {} MiB", MAX_BYTES >> 20)]
    TooLarge,
    /// The file is not JSON.
    #[error("the file is not JSON: {0}")]
    NotJson(String),
    /// The file has another format.
    #[error("the field \"format\" is {found}, not \"{FORMAT}\"")]
    Format {
        /// Value of the field.
        found: String,
    },
    /// The file has another version.
    #[error("the field \"version\" is {found}; this program reads version {VERSION}")]
    Version {
        /// Value of the field.
        found: String,
    },
    /// A field is missing, unknown or has an invalid value.
    #[error("{path}: {detail}")]
    Field {
        /// Path of the field.
        path: String,
        /// Description with line and column.
        detail: String,
    },
}

/// Fields that are read first, so that a file of another version is named as such.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    format: serde_json::Value,
    #[serde(default)]
    version: serde_json::Value,
}

/// Longest quoted value in an error.
const QUOTED: usize = 60;

/// Reads an execution plan file.
///
/// # Errors
/// The file is too large, is not JSON, has another format or version, or has an invalid field.
pub fn read(bytes: &[u8]) -> Result<ExecutionFile, ExecutionFileError> {
    if bytes.len() > MAX_BYTES {
        return Err(ExecutionFileError::TooLarge);
    }
    let head: Head = serde_json::from_slice(bytes).map_err(|error| ExecutionFileError::NotJson(error.to_string()))?;
    if head.format != FORMAT {
        return Err(ExecutionFileError::Format { found: quote(&head.format) });
    }
    if head.version != VERSION {
        return Err(ExecutionFileError::Version { found: quote(&head.version) });
    }
    serde_json::from_slice(bytes).map_err(|_| {
        // The path is found in a second pass, because it costs time.
        let mut reader = serde_json::Deserializer::from_slice(bytes);
        match serde_path_to_error::deserialize::<_, ExecutionFile>(&mut reader) {
            Err(error) => {
                ExecutionFileError::Field { path: error.path().to_string(), detail: error.inner().to_string() }
            }
            // Only content after the document is left.
            Ok(_) => ExecutionFileError::NotJson("content after the document".to_owned()),
        }
    })
}

fn quote(value: &serde_json::Value) -> String {
    if value.is_null() { "missing".to_owned() } else { value.to_string().chars().take(QUOTED).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        read(text.as_bytes()).unwrap_err().to_string()
    }

    fn with_runs(runs: &str) -> String {
        format!(
            r#"{{"format": "{FORMAT}", "version": {VERSION}, "engine": "e", "scenario": "s", "planner": "1f1b", "iteration": 0,
            "devices": 1, "modules": [], "layout": {{"tensor": 1, "context": 1, "expert": 1, "pipeline": 1, "data": 1,
            "chunks": 1, "microbatch": 1}}, "activations": {{"recompute": "none", "activation_offload": 0}},
            "iteration_ns": 1, "peak_bytes": [], "runs": {runs}, "replicas": []}}"#
        )
    }

    #[test]
    fn other_files_are_named() {
        assert_eq!(message("[1"), "the file is not JSON: EOF while parsing a list at line 1 column 2");
        assert_eq!(message("{}"), "the field \"format\" is missing, not \"planscope-execution-plan\"");
        let other = format!(r#"{{"format": "{FORMAT}", "version": 7}}"#);
        assert_eq!(message(&other), "the field \"version\" is 7; this program reads version 1");
        let deep = "[".repeat(100_000);
        assert!(message(&deep).contains("recursion limit"), "{}", message(&deep));
    }

    #[test]
    fn fields_are_named_with_their_path() {
        assert!(read(with_runs("[]").as_bytes()).is_ok());
        assert!(
            message(&with_runs("[{}]")).starts_with("runs[0]: missing field `buffers`"),
            "{}",
            message(&with_runs("[{}]"))
        );
        let run = |ranks: &str| {
            with_runs(&format!(
                r#"[{{"buffers": {{"receive": null, "send": null}}, "overlapped_ppm": 1000000, "stages": [],
                "microbatches": [], "ranks": {ranks}}}]"#
            ))
        };
        assert!(read(run("[]").as_bytes()).is_ok());
        let negative = message(&run(r#"[{"devices": 1, "sync_group": 0, "static_bytes": -5}]"#));
        assert!(negative.starts_with("runs[0].ranks[0].static_bytes: invalid value: integer `-5`"), "{negative}");
        let huge = message(&run(r#"[{"devices": 99999999999, "sync_group": 0}]"#));
        assert!(huge.starts_with("runs[0].ranks[0].devices: invalid value"), "{huge}");
        let unknown = message(&run(r#"[{"device": 1}]"#));
        assert!(unknown.contains("unknown field `device`"), "{unknown}");
    }
}
