//! How many values a JSON document has, counted before anything is made of it.
//!
//! An object of one field is 7 bytes in a document and some hundreds in memory, so a limit of bytes alone does not bound memory.

use planner::scenario::FieldError;

/// Most values of a document: a scenario that lists 100,000 samples in full, and as much again.
pub(crate) const MOST_VALUES: usize = 200_000;

/// Refuses a document of more than [`MOST_VALUES`]. Whether it is JSON at all is for the parser to say.
pub(crate) fn check(document: &[u8]) -> Result<(), FieldError> {
    let values = count(document);
    if values <= MOST_VALUES {
        return Ok(());
    }
    Err(FieldError::new(
        "",
        format!("more than {MOST_VALUES} values; upload long lists of samples as a dataset, and name that"),
    ))
}

/// Counts what begins or divides values outside of texts, up to one more than [`MOST_VALUES`]: at least the number of values, and
/// at most three times as many.
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
        if values > MOST_VALUES {
            break;
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_texts_is_not_counted() {
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
    fn a_document_of_too_many_values_is_refused() {
        let list = |values: usize| format!("[{}1]", "1,".repeat(values - 1));
        assert_eq!(check(list(MOST_VALUES).as_bytes()), Ok(()));
        let refused = check(list(MOST_VALUES + 1).as_bytes()).unwrap_err();
        assert!(refused.detail.starts_with("more than 200000 values"), "{refused}");
        // The document that took 100 bytes of memory for each of its own.
        assert!(check("{\"\":0},".repeat(70_000).as_bytes()).is_err());
    }
}
