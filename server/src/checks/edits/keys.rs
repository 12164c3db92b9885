//! Replaces and adds keys of JSON, YAML and TOML, and of overrides in a script.

use api::check::{Edit, EditAction};
use ingest::job_config::{Notation, Place, Places};
use serde_json::{Value, json};

use super::edit;
use crate::checks::syntax::word;

/// Indentation of a new YAML section.
const INDENT: &str = "  ";

/// Replaces the value at a place; `None` if it is a section or has several lines.
pub(super) fn replace(file: &str, notation: Notation, place: &Place, value: &Value) -> Option<Edit> {
    let range = place.value.clone()?;
    let (_, name) = split(&place.key);
    let text = match notation {
        Notation::Yaml if range.is_empty() => format!(" {}", word(value)),
        Notation::Yaml | Notation::Overrides => word(value),
        Notation::Json | Notation::Toml => value.to_string(),
    };
    let name = if notation == Notation::Overrides { &place.key } else { name };
    Some(edit(file, EditAction::Replace, &setting(notation, name, value), (range.start, range.end), text))
}

/// Adds a key; `None` if there is no place for it.
pub(super) fn add(file: &str, places: &Places, key: &str, value: &Value) -> Option<Edit> {
    let Places { notation, places } = places;
    match notation {
        Notation::Toml => Some(add_to_section(file, places, key, value)),
        Notation::Overrides => {
            let anchor = anchor(places.iter())?;
            let end = anchor.value.as_ref()?.end;
            let at = end + usize::from(file[end..].starts_with(['"', '\'']));
            let setting = setting(Notation::Overrides, key, value);
            Some(edit(file, EditAction::Add, &setting, (at, at), format!(" {setting}")))
        }
        Notation::Json | Notation::Yaml => add_beside(file, *notation, places, (key, key), value),
    }
}

/// Returns a setting in the syntax of the file.
fn setting(notation: Notation, name: &str, value: &Value) -> String {
    match notation {
        Notation::Json => format!("{}: {value}", json!(name)),
        Notation::Yaml => format!("{name}: {}", word(value)),
        Notation::Toml => format!("{name} = {value}"),
        Notation::Overrides => format!("{name}={}", word(value)),
    }
}

/// Splits a dotted path into section and name.
fn split(key: &str) -> (&str, &str) {
    key.rsplit_once('.').unwrap_or(("", key))
}

/// Returns the place after which a key is added: a size of a batch, or the last one with a value.
fn anchor<'a>(places: impl DoubleEndedIterator<Item = &'a Place> + Clone) -> Option<&'a Place> {
    let mut places = places.filter(|place| place.value.is_some());
    let is_batch = |place: &&Place| place.key.contains("batch_size") && !place.key.contains("eval");
    places.clone().find(is_batch).or_else(|| places.next_back())
}

/// Adds a TOML key after the header of its section, beside a dotted key of its section, or in a new section at the end of
/// the file.
fn add_to_section(file: &str, places: &[Place], key: &str, value: &Value) -> Edit {
    let (section, name) = split(key);
    let line = setting(Notation::Toml, name, value);
    let named = format!("[{section}] {line}");
    let header = places.iter().find(|place| place.key == section && place.value.is_none());
    let dotted = places.iter().filter(|place| split(&place.key).0 == section).find_map(|place| {
        let written = file[place.start..].split('=').next()?.trim_end();
        let (before, _) = written.rsplit_once('.')?;
        Some((place.value.as_ref()?.end, format!("{before}.{line}")))
    });
    let (at, text) = match (header, dotted) {
        (Some(header), _) => (line_end(file, header.start), format!("{}{line}", newline(file))),
        (None, Some((end, dotted))) => (line_end(file, end), format!("{}{dotted}", newline(file))),
        (None, None) => (file.len(), format!("{0}[{section}]{0}{line}{0}", newline(file))),
    };
    edit(file, EditAction::Add, &named, (at, at), text)
}

/// Adds a key beside a key of the same section. If the file does not have the section, adds the section. `name` is the
/// complete path, for the description.
fn add_beside(
    file: &str,
    notation: Notation,
    places: &[Place],
    (key, name): (&str, &str),
    value: &Value,
) -> Option<Edit> {
    let (section, leaf) = split(key);
    let is_sibling = |place: &&Place| split(&place.key).0 == section;
    let is_flow = places.iter().any(|place| is_sibling(&place) && place.is_flow);
    let siblings = places.iter().filter(is_sibling).filter(|place| place.is_flow == is_flow);
    let shown = if key == name { leaf } else { name };
    let described = match value {
        // A new section has the key of the complete path.
        Value::Object(fields) if key != name => fields.values().next()?,
        value => value,
    };
    let described = setting(notation, shown, described);
    let Some(first) = siblings.clone().next() else {
        let is_known = places.iter().any(|place| place.key == section);
        // A nested section is not created.
        let is_nested = value.is_object() || section.is_empty() || is_known;
        return (!is_nested)
            .then(|| add_beside(file, notation, places, (section, name), &json!({ leaf: value })))
            .flatten();
    };
    let anchor = anchor(siblings);
    let place = anchor.unwrap_or(first);
    let end = anchor.and_then(|anchor| anchor.value.as_ref()).map(|range| range.end);
    // A mapping in braces has the members of JSON, also in YAML.
    let (at, text) = if notation == Notation::Json || is_flow {
        let end = end.map(|end| end + usize::from(quoted_value(file, place)));
        member(file, place, end, leaf, value)
    } else {
        mapping_line(file, place, end, leaf, value)?
    };
    Some(edit(file, EditAction::Add, &described, (at, at), text))
}

/// True if the range of a value in YAML leaves out its quotes.
fn quoted_value(file: &str, place: &Place) -> bool {
    place.value.as_ref().is_some_and(|range| {
        let quote = file[..range.start].chars().next_back().filter(|letter| matches!(letter, '"' | '\''));
        quote.is_some_and(|quote| file[range.end..].starts_with(quote))
    })
}

/// Returns a JSON member after the value of a place, or before its key, with its position.
fn member(file: &str, place: &Place, end: Option<usize>, name: &str, value: &Value) -> (usize, String) {
    let blank = &file[file[..place.start].trim_end().len()..place.start];
    let member = format!("{}: {value}", json!(name));
    match end {
        Some(end) => (end, format!(",{blank}{member}")),
        None => (place.start, format!("{member},{blank}")),
    }
}

/// Returns YAML lines after the line of a place, or before that of a section, with their position; `None` if its key does
/// not start its line.
fn mapping_line(file: &str, place: &Place, end: Option<usize>, name: &str, value: &Value) -> Option<(usize, String)> {
    let start = file[..place.start].rfind('\n').map_or(0, |at| at + 1);
    let indent = &file[start..place.start];
    if !indent.trim_start_matches('\u{feff}').trim().is_empty() {
        return None;
    }
    let indent = indent.trim_start_matches('\u{feff}');
    let newline = newline(file);
    let line = match value.as_object().and_then(|fields| fields.iter().next()) {
        Some((below, value)) => format!("{name}:{newline}{indent}{INDENT}{below}: {}", word(value)),
        None => format!("{name}: {}", word(value)),
    };
    Some(match end {
        Some(end) => (line_end(file, end), format!("{newline}{indent}{line}")),
        None if start > 0 => (line_end(file, start - 1), format!("{newline}{indent}{line}")),
        None => (place.start, format!("{line}{newline}")),
    })
}

/// Returns the header of the section that an added text creates; `None` if it creates none.
pub(super) fn header(notation: Notation, text: &str) -> Option<&str> {
    let end = match notation {
        Notation::Yaml => text.find(":\n").or_else(|| text.find(":\r\n"))? + 1,
        Notation::Toml if text.trim_start().starts_with('[') => text.find("]\n").or_else(|| text.find("]\r\n"))? + 1,
        Notation::Json => text.find(": {")? + 3,
        Notation::Toml | Notation::Overrides => return None,
    };
    Some(&text[..end])
}

/// Removes the header of a section that an earlier edit creates; `None` for JSON, whose section is closed.
pub(super) fn without_header(header: &str, text: &str) -> Option<String> {
    let rest = text.strip_prefix(header)?;
    // The text of a section at the start of a file ends its lines.
    let ends_lines = header.ends_with(']') || text.ends_with('\n');
    let below = if ends_lines { rest.trim_start_matches(['\r', '\n']) } else { rest };
    (!header.ends_with('{')).then(|| below.to_owned())
}

/// Returns the end of the line of a byte, before its line break.
fn line_end(file: &str, at: usize) -> usize {
    let start = file[..at].rfind('\n').map_or(0, |at| at + 1);
    let line = file[start..].split('\n').next().unwrap_or_default();
    start + line.trim_end_matches('\r').len()
}

/// Returns the line break of a file.
fn newline(file: &str) -> &'static str {
    if file.contains("\r\n") { "\r\n" } else { "\n" }
}
