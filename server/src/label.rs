//! Sanitizes user-supplied names for display.

use planner::scenario::FieldError;

/// Maximum label length in characters.
const MAX: usize = 120;
/// Maximum note length in characters.
const MAX_NOTE: usize = 4000;
/// Maximum number of tags per item, and maximum tag length in characters.
const MAX_TAGS: usize = 32;
const MAX_TAG: usize = 40;

/// Sanitizes a name. A name without printable characters is an error.
pub(crate) fn named(raw: &str, errors: &mut Vec<FieldError>) -> Option<String> {
    let name = clean(raw);
    if name.is_none() {
        errors.push(FieldError { pointer: "/name".to_owned(), detail: "is empty".to_owned() });
    }
    name
}

/// Truncates a note to the maximum length.
pub(crate) fn note(raw: &str) -> String {
    raw.trim().chars().take(MAX_NOTE).collect()
}

/// Sorts and deduplicates tags. Invalid tags are added to `errors`.
pub(crate) fn tags(requested: &[String], errors: &mut Vec<FieldError>) -> Vec<String> {
    let mut tags: Vec<String> = Vec::new();
    for (index, tag) in requested.iter().enumerate() {
        match clean(tag).filter(|tag| tag.chars().count() <= MAX_TAG) {
            Some(tag) => tags.push(tag),
            None => errors.push(FieldError {
                pointer: format!("/tags/{index}"),
                detail: format!("a tag has 1 to {MAX_TAG} characters"),
            }),
        }
    }
    tags.sort();
    tags.dedup();
    if tags.len() > MAX_TAGS {
        errors.push(FieldError { pointer: "/tags".to_owned(), detail: format!("at most {MAX_TAGS} tags") });
    }
    tags
}

/// Removes the path, control characters and bidirectional control characters. Returns `None` if the
/// result is empty.
pub(crate) fn clean(raw: &str) -> Option<String> {
    let invisible = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fffd}')
    };
    let label: String = raw.chars().filter(|&c| !invisible(c)).take(MAX).collect();
    let label = label.trim();
    if label.is_empty() { None } else { Some(label.to_owned()) }
}

/// Label of an uploaded file: the last component of its path.
pub(crate) fn file(raw: &str) -> Option<String> {
    clean(raw.rsplit(['/', '\\']).next().unwrap_or(raw))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_safe_to_show() {
        for (raw, expected) in [
            ("../../etc/passwd", Some("passwd")),
            ("C:\\data\\lengths.csv", Some("lengths.csv")),
            ("a\0b\u{202e}c", Some("abc")),
            ("lengths 📏.csv", Some("lengths 📏.csv")),
            ("<script>", Some("<script>")),
            ("dir/", None),
            (" \u{200b}", None),
        ] {
            assert_eq!(file(raw).as_deref(), expected, "{raw:?}");
        }
        assert_eq!(clean(&"x".repeat(5000)).map(|label| label.len()), Some(MAX));
    }
}
