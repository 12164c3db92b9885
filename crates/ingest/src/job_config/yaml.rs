//! Flattens YAML to dotted keys. Aliases are refused, because a few of them expand to any size.

use yaml_rust2::Event;
use yaml_rust2::parser::Parser;
use yaml_rust2::scanner::TScalarStyle;

use super::JobConfigError;
use super::keys::Keys;

/// Maximum nesting of lists and mappings.
const MAX_DEPTH: usize = 64;
/// Maximum text of a list, in bytes.
const MAX_LIST_BYTES: usize = 4_096;

/// A value in a document.
#[derive(Debug)]
pub(super) enum Node {
    Null,
    Text(String),
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
}

/// A list or mapping whose end is not read yet.
#[derive(Debug)]
enum Open {
    List(Vec<Node>),
    Map { entries: Vec<(String, Node)>, key: Option<String> },
}

/// True if a line at the start of the file is a key of a mapping.
pub(super) fn is_yaml(text: &str) -> bool {
    let is_text = |line: &&str| !line.trim().is_empty() && !line.starts_with('#') && !line.starts_with("---");
    text.lines().filter(is_text).take(1).any(|line| {
        line.split_once(':').is_some_and(|(key, rest)| {
            let is_key = |c: char| c.is_ascii_alphanumeric() || "_-./$\"'".contains(c);
            !key.is_empty() && key.chars().all(is_key) && (rest.is_empty() || rest.starts_with([' ', '\t', '\r']))
        })
    })
}

/// Returns a text without the comments and blank lines at its start.
pub(super) fn without_first_comments(text: &str) -> &str {
    let mut rest = text.trim_start();
    while rest.starts_with('#') {
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest).trim_start();
    }
    rest
}

/// Returns the keys of a document whose root is a mapping. Lists become text.
pub(super) fn keys(text: &str) -> Result<Keys, JobConfigError> {
    let mut keys = Keys::default();
    flatten(&mut keys, "", &document(text)?)?;
    Ok(keys)
}

fn malformed(detail: impl Into<String>) -> JobConfigError {
    JobConfigError::Malformed { format: "YAML", detail: detail.into() }
}

/// True if the first key of a mapping in braces has no quotes, as in YAML and not in JSON.
pub(super) fn has_plain_key(text: &str) -> bool {
    text.strip_prefix('{').is_some_and(|rest| rest.trim_start().starts_with(char::is_alphabetic))
}

/// Returns the root of a document.
pub(super) fn document(text: &str) -> Result<Node, JobConfigError> {
    let mut parser = Parser::new_from_str(text);
    let mut open: Vec<Open> = Vec::new();
    let mut root = None;
    loop {
        let (event, marker) = parser
            .next_token()
            .map_err(|error| malformed(format!("line {}: {}", error.marker().line(), error.info())))?;
        let line = marker.line();
        let node = match event {
            Event::StreamEnd => break,
            Event::Alias(_) => {
                return Err(malformed(format!(
                    "line {line}: aliases (*name) are not read; write their values instead"
                )));
            }
            Event::Scalar(text, style, ..) => scalar(text, style),
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                if open.len() >= MAX_DEPTH {
                    return Err(malformed(format!("line {line}: more than {MAX_DEPTH} levels")));
                }
                let is_list = matches!(event, Event::SequenceStart(..));
                open.push(if is_list { Open::List(Vec::new()) } else { Open::Map { entries: Vec::new(), key: None } });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(items)) => Node::List(items),
                Some(Open::Map { entries, .. }) => Node::Map(entries),
                None => continue,
            },
            Event::Nothing | Event::StreamStart | Event::DocumentStart | Event::DocumentEnd => continue,
        };
        match open.last_mut() {
            None if root.is_some() => return Err(malformed(format!("line {line}: a second document starts"))),
            None => root = Some(node),
            Some(Open::List(items)) => items.push(node),
            Some(Open::Map { entries, key }) => match (key.take(), node) {
                (Some(key), node) => entries.push((key, node)),
                (None, Node::Text(name)) => *key = Some(name),
                (None, _) => return Err(malformed(format!("line {line}: a key is no text"))),
            },
        }
    }
    root.ok_or(JobConfigError::Empty)
}

fn scalar(text: String, style: TScalarStyle) -> Node {
    let is_null = style == TScalarStyle::Plain && matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL");
    if is_null { Node::Null } else { Node::Text(text) }
}

fn flatten(keys: &mut Keys, path: &str, node: &Node) -> Result<(), JobConfigError> {
    match node {
        Node::Map(entries) => entries.iter().try_for_each(|(key, node)| {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            flatten(keys, &path, node)
        }),
        _ if path.is_empty() => Err(JobConfigError::Unknown),
        Node::Null => Ok(()),
        Node::Text(text) => keys.push(path.to_owned(), text.clone()),
        Node::List(_) => {
            let mut text = String::new();
            write(&mut text, node);
            keys.push(path.to_owned(), text)
        }
    }
}

/// Writes a list as text, up to the maximum size.
fn write(text: &mut String, node: &Node) {
    let separate = |text: &mut String, index: usize| text.push_str(if index > 0 { ", " } else { "" });
    if text.len() > MAX_LIST_BYTES {
        return;
    }
    match node {
        Node::Null => text.push_str("null"),
        Node::Text(word) => text.push_str(word),
        Node::List(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                separate(text, index);
                write(text, item);
            }
            text.push(']');
        }
        Node::Map(entries) => {
            text.push('{');
            for (index, (key, item)) in entries.iter().enumerate() {
                separate(text, index);
                text.push_str(key);
                text.push_str(": ");
                write(text, item);
            }
            text.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_become_dotted_keys() {
        let keys = keys("a:\n  b: 500_000 # a comment\n  c: [x, {y: 1}]\nd: null\ne: 'null'\nf:\n- - 1\n").unwrap();
        assert_eq!((keys.peek("a.b"), keys.peek("a.c")), (Some("500_000"), Some("[x, {y: 1}]")));
        assert_eq!((keys.peek("d"), keys.peek("e"), keys.peek("f")), (None, Some("null"), Some("[[1]]")));
    }

    #[test]
    fn hostile_documents_are_refused() {
        let bomb = format!("a: &a [x, x]\n{}", "b: &b [*a, *a]\nc: [*b, *b]\n");
        for (text, message) in [
            (bomb, "line 2: aliases"),
            (format!("a: {}", "[".repeat(1 << 20)), "line 1"),
            ("- ".repeat(1 << 19), "more than 64 levels"),
            (format!("a: {}", "{a: ".repeat(100)), "more than 64 levels"),
            ("a: 1\n---\nb: 2\n".to_owned(), "second document"),
            ("? [a, b]\n: 1\n".to_owned(), "a key is no text"),
            ("a: 'x".to_owned(), "not valid YAML"),
        ] {
            let error = keys(&text).expect_err("an error").to_string();
            assert!(error.contains(message), "{error}");
        }
        let many = (0..=super::super::MAX_KEYS).map(|index| format!("a{index}: 1")).collect::<Vec<_>>().join("\n");
        assert_eq!(keys(&many).expect_err("an error"), JobConfigError::TooManyKeys);
    }
}
