//! Removes the values of a request from error messages, because a value can be a secret.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Strings in messages of serde, with their escapes.
static STRING: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"string "(?:[^"\\]|\\.)*""#).expect("a fixed expression is valid"));
/// Names that the schema does not have, longer than those that it has.
static LONG_NAME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"unknown (field|variant) `[^`]{41,}`").expect("a fixed expression is valid"));

/// Returns a message of serde without the strings of the input.
pub(crate) fn without_values(message: &str) -> String {
    let message = STRING.replace_all(message, "a string");
    let named = |found: &Captures<'_>| format!("an unknown {}", &found[1]);
    match LONG_NAME.replace_all(&message, named) {
        Cow::Borrowed(text) => text.to_owned(),
        Cow::Owned(text) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_types_instead_of_strings() {
        for (message, expected) in [
            (
                r#"invalid type: string "export T=\"hf_secret\"\nrun", expected struct A at line 1"#,
                "invalid type: a string, expected struct A at line 1",
            ),
            ("invalid type: integer `3`, expected a string", "invalid type: integer `3`, expected a string"),
            ("unknown field `gpus`, expected `devices`", "unknown field `gpus`, expected `devices`"),
        ] {
            assert_eq!(without_values(message), expected);
        }
        let long = format!("unknown variant `{}`, expected `a`", "s".repeat(60));
        assert_eq!(without_values(&long), "an unknown variant, expected `a`");
    }
}
