//! Names that users give, made safe to show.

/// Longest label, in characters.
const LONGEST: usize = 120;

/// The label without path, control characters and characters that turn the direction of text; `None` where
/// nothing is left.
pub(crate) fn clean(raw: &str) -> Option<String> {
    let invisible = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fffd}')
    };
    let label: String = raw.chars().filter(|&c| !invisible(c)).take(LONGEST).collect();
    let label = label.trim();
    if label.is_empty() { None } else { Some(label.to_owned()) }
}

/// The label of an uploaded file: the last part of its path.
pub(crate) fn file(raw: &str) -> Option<String> {
    clean(raw.rsplit(['/', '\\']).next().unwrap_or(raw))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_safe_to_show() {
        for (raw, shown) in [
            ("../../etc/passwd", Some("passwd")),
            ("C:\\data\\lengths.csv", Some("lengths.csv")),
            ("a\0b\u{202e}c", Some("abc")),
            ("lengths 📏.csv", Some("lengths 📏.csv")),
            ("<script>", Some("<script>")),
            ("dir/", None),
            (" \u{200b}", None),
        ] {
            assert_eq!(file(raw).as_deref(), shown, "{raw:?}");
        }
        assert_eq!(clean(&"x".repeat(5000)).map(|label| label.len()), Some(LONGEST));
    }
}
