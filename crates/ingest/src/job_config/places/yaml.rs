//! Places of the keys of a YAML document.

use yaml_rust2::Event;
use yaml_rust2::parser::Parser;
use yaml_rust2::scanner::{Marker, TScalarStyle};

use super::{Place, path};

/// A mapping or list whose end is not read yet.
#[derive(Debug)]
struct Open {
    /// Path of the mapping; `None` for lists and everything inside them.
    path: Option<String>,
    is_map: bool,
    is_flow: bool,
    /// A key whose value follows.
    key: Option<Key>,
}

#[derive(Debug)]
struct Key {
    path: Option<String>,
    start: usize,
    end: usize,
}

/// Returns the places of a document; `None` if it is malformed.
pub(super) fn places(text: &str) -> Option<Vec<Place>> {
    let mut offsets = Offsets::new(text);
    let mut parser = Parser::new_from_str(text);
    let (mut open, mut places) = (Vec::<Open>::new(), Vec::new());
    loop {
        let (event, marker) = parser.next_token().ok()?;
        let at = offsets.offset(marker);
        match event {
            Event::StreamEnd => return Some(places),
            Event::Scalar(value, style, ..) => {
                let Some(map) = open.last_mut().filter(|open| open.is_map) else { continue };
                let Some(key) = map.key.take() else {
                    let end = scalar_end(text, at, &value, style)?;
                    let path = map.path.as_ref().map(|section| path(section, &value));
                    map.key = Some(Key { path, start: at, end });
                    continue;
                };
                let is_flow = map.is_flow;
                places.extend(scalar(text, key, (at, &value, style), is_flow));
            }
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                let parent = open.last();
                let is_map = matches!(event, Event::MappingStart(..));
                let path = match parent {
                    None => Some(String::new()),
                    Some(Open { key: Some(key), .. }) => key.path.clone(),
                    Some(_) => None,
                };
                let is_flow = text[at..].starts_with(['{', '[']) || parent.is_some_and(|parent| parent.is_flow);
                open.push(Open { path: path.filter(|_| is_map), is_map, is_flow, key: None });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                open.pop();
                // The mapping or list is the value of a key, or a key itself.
                let Some(map) = open.last_mut() else { continue };
                if let Some(Key { path: Some(key), start, .. }) = map.key.take() {
                    places.push(Place { key, start, value: None, is_null: false, is_flow: map.is_flow });
                }
            }
            Event::Alias(_) => return None,
            Event::Nothing | Event::StreamStart | Event::DocumentStart | Event::DocumentEnd => {}
        }
    }
}

/// Returns the place of a key with a scalar value.
fn scalar(text: &str, key: Key, (at, value, style): (usize, &str, TScalarStyle), is_flow: bool) -> Option<Place> {
    let is_plain = style == TScalarStyle::Plain;
    let is_null = is_plain && matches!(value, "" | "~" | "null" | "Null" | "NULL");
    let range = if is_plain && value.is_empty() {
        // The marker of a missing value is that of the next token.
        let after = &text[key.end..];
        let colon = after.find(':').filter(|&colon| after[..colon].trim().is_empty())?;
        let end = key.end + colon + 1;
        Some(end..end)
    } else {
        let quotes = usize::from(!is_plain);
        scalar_end(text, at, value, style).map(|end| at + quotes..end - quotes)
    };
    Some(Place { key: key.path?, start: key.start, value: range, is_null, is_flow })
}

/// Returns the end of a scalar on one line without escapes.
fn scalar_end(text: &str, at: usize, value: &str, style: TScalarStyle) -> Option<usize> {
    let quote = match style {
        TScalarStyle::Plain => "",
        TScalarStyle::SingleQuoted => "'",
        TScalarStyle::DoubleQuoted => "\"",
        TScalarStyle::Literal | TScalarStyle::Folded => return None,
    };
    let inner = text[at..].strip_prefix(quote)?.strip_prefix(value)?;
    inner.starts_with(quote).then_some(at + value.len() + 2 * quote.len())
}

/// Converts markers, whose columns are characters, to bytes. Their index is wrong after block scalars that are not ASCII.
#[derive(Debug)]
struct Offsets<'a> {
    text: &'a str,
    /// First byte of every line.
    starts: Vec<usize>,
    /// Number of the current line, and the first byte of its characters.
    line: usize,
    columns: Vec<usize>,
}

impl<'a> Offsets<'a> {
    fn new(text: &'a str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, starts, line: 0, columns: Vec::new() }
    }

    fn offset(&mut self, marker: Marker) -> usize {
        let Some(&start) = marker.line().checked_sub(1).and_then(|line| self.starts.get(line)) else {
            return self.text.len();
        };
        if self.line != marker.line() {
            let end = self.starts.get(marker.line()).copied().unwrap_or(self.text.len());
            self.columns = self.text[start..end].char_indices().map(|(column, _)| start + column).collect();
            self.line = marker.line();
        }
        self.columns.get(marker.col()).copied().unwrap_or(self.text.len())
    }
}
