//! Converts Python lists and dictionaries to JSON: `[{'role': 'user', 'content': "it's"}]`.

/// Maximum length of a text that is converted, in bytes.
const MAX_BYTES: usize = 16 << 20;
/// Python words and their JSON equivalents.
const LITERALS: [(&str, &str); 4] = [("None", "null"), ("True", "true"), ("False", "false"), ("nan", "null")];

/// Returns the JSON of a literal; `None` if the text is too long or ends inside a string. NumPy
/// prints no commas between the objects of an array, and writes `array([..], dtype=object)` around
/// it.
pub(super) fn json(text: &str) -> Option<String> {
    if text.len() > MAX_BYTES {
        return None;
    }
    let mut json = String::with_capacity(text.len() + 16);
    let (mut rest, mut is_closed) = (text, false);
    while let Some(first) = rest.chars().next() {
        if let Some(behind) = ["array(", "dtype=object"].iter().find_map(|word| rest.strip_prefix(word)) {
            rest = behind;
            continue;
        }
        if let Some((word, value)) = LITERALS.iter().find(|(word, _)| rest.starts_with(word)) {
            json.push_str(value);
            rest = &rest[word.len()..];
            continue;
        }
        let behind = &rest[first.len_utf8()..];
        rest = match first {
            '\'' | '"' => string(first, behind, &mut json)?,
            '(' | ')' => behind,
            '{' | '[' if is_closed => {
                json.push(',');
                json.push(first);
                behind
            }
            other => {
                json.push(other);
                behind
            }
        };
        is_closed = matches!(first, '}' | ']') || (is_closed && (first.is_whitespace() || first == ')'));
    }
    // The remainder of `, dtype=object)`.
    let end = json.trim_end().trim_end_matches(',').len();
    json.truncate(end);
    Some(json)
}

/// Converts a Python string to a JSON string. Returns the remaining text.
fn string<'t>(quote: char, text: &'t str, json: &mut String) -> Option<&'t str> {
    json.push('"');
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            letter if letter == quote => {
                json.push('"');
                return text.get(at + letter.len_utf8()..);
            }
            '\\' => match letters.next()?.1 {
                '\'' => json.push('\''),
                // Two hexadecimal digits.
                'x' => {
                    json.push_str("\\u00");
                    json.extend([letters.next()?.1, letters.next()?.1]);
                }
                escaped @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' | 'u') => json.extend(['\\', escaped]),
                other => json.extend(['\\', '\\', other]),
            },
            '"' => json.push_str("\\\""),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            other => json.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_literals_are_json() {
        for (text, expected) in [
            (r#"[{'a': "it's", 'b': None}]"#, r#"[{"a": "it's", "b": null}]"#),
            (r#"{'a': 'say "x"\n', 'b': True}"#, r#"{"a": "say \"x\"\n", "b": true}"#),
            ("[{'a': 1}\n {'a': 2}]", "[{\"a\": 1}\n ,{\"a\": 2}]"),
            ("array([{'a': 1}, {'a': 2}], dtype=object)", "[{\"a\": 1}, {\"a\": 2}]"),
            (r"{'a': '\xe4\u00e4'}", r#"{"a": "\u00e4\u00e4"}"#),
        ] {
            assert_eq!(json(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(json("{'a': 'x"), None);
    }
}
