//! Limits the number of values in a JSON document before parsing it.
//!
//! An object with a single field takes 7 bytes in a document and several hundred in memory, so a
//! size limit alone does not limit memory.

use planner::scenario::FieldError;

/// Maximum number of values in a document: twice the number required for a scenario with a list of
/// 100,000 samples.
pub(crate) const MAX_VALUES: usize = 200_000;

/// Returns an error if the document has more than [`MAX_VALUES`] values. The syntax is checked by
/// the parser.
pub(crate) fn check(document: &[u8]) -> Result<(), FieldError> {
    let values = count(document);
    if values <= MAX_VALUES {
        return Ok(());
    }
    Err(FieldError::new(
        "",
        format!("more than {MAX_VALUES} values; upload long lists of samples as a dataset, and name that"),
    ))
}

/// Number of opening brackets and separators outside of strings, up to [`MAX_VALUES`] + 1. The
/// result is between one and three times the number of values.
fn count(document: &[u8]) -> usize {
    let (mut values, mut in_text, mut is_escaped) = (0, false, false);
    for &byte in document {
        if in_text {
            in_text = is_escaped || byte != b'"';
            is_escaped = !is_escaped && byte == b'\\';
            continue;
        }
        match byte {
            b'"' => in_text = true,
            b',' | b'{' | b'[' | b':' => values += 1,
            _ => {}
        }
        if values > MAX_VALUES {
            break;
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_not_counted() {
        for (document, expected) in [
            ("", 0),
            ("5", 0),
            ("[1,2,3]", 3),
            (r#"{"a":{"b":[1,2]},"c":null}"#, 8),
            (r#"{"a,[{:":"\",[{:\\"}"#, 2),
            (r#"["\\","\"",1]"#, 3),
            ("\"never ended, [", 0),
        ] {
            assert_eq!(count(document.as_bytes()), expected, "{document}");
        }
    }

    #[test]
    fn documents_with_too_many_values_are_rejected() {
        let list = |values: usize| format!("[{}1]", "1,".repeat(values - 1));
        assert_eq!(check(list(MAX_VALUES).as_bytes()), Ok(()));
        let error = check(list(MAX_VALUES + 1).as_bytes()).unwrap_err();
        assert!(error.detail.starts_with("more than 200000 values"), "{error}");
        // This document used 100 bytes of memory per input byte.
        assert!(check("{\"\":0},".repeat(70_000).as_bytes()).is_err());
    }
}
