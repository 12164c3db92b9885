//! Detects texts that contain several documents, with the token that ends a document between them.

use std::borrow::Cow;

use super::super::text::{Extent, Meter};
use super::super::value::{Row, Value};
use super::{Measure, Part, TextPart};

/// Tokens that end a document.
const ENDS: [&str; 8] = [
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|end_of_document|>",
    "<|end\u{2581}of\u{2581}sentence|>",
    "<|eod|>",
    "<eod>",
    "<eos>",
    "</s>",
];
/// Tokens that start a document.
const STARTS: [&str; 4] = ["<|begin_of_text|>", "<|begin\u{2581}of\u{2581}sentence|>", "<bos>", "<s>"];
/// Tokens that start a turn of a conversation. In such texts `</s>` ends a turn.
const TURNS: [&str; 6] =
    ["[INST]", "<|im_start|>", "<|user|>", "<|assistant|>", "<start_of_turn>", "<|start_header_id|>"];

/// End of a turn or of a document in Llama 3. In a column, it ends a turn.
const END_OF_TURN: &str = "<|eot_id|>";

/// A text column whose rows contain several documents.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Documents {
    index: usize,
    name: String,
    /// Token that ends a document.
    end: &'static str,
}

/// Texts with several documents in the first rows.
pub(super) struct Found {
    documents: Documents,
    /// Number of rows that contain several documents, and number of rows.
    rows: (usize, usize),
}

impl Documents {
    /// Returns the lengths of the documents in a row, in tokens; empty for a row without text.
    pub(in super::super) fn lengths(&self, row: &Row<'_>, meter: &Meter<'_>) -> Vec<f64> {
        let Value::Text(text) = row.value(self.index, &self.name) else { return Vec::new() };
        let tokens = |document: &str| {
            let mut extent = Extent::default();
            meter.add(&Value::Text(Cow::Borrowed(document)), &mut extent);
            meter.tokens(&extent)
        };
        documents(text, self.end).map(tokens).collect()
    }
}

impl Found {
    /// Returns whether most rows contain several documents.
    pub(super) const fn is_clear(&self) -> bool {
        self.rows.0 * 2 >= self.rows.1
    }

    /// Returns the documents and a sentence about them.
    pub(super) fn into_documents(self) -> (Documents, String) {
        let Self { documents: Documents { ref name, end, .. }, .. } = self;
        let sentence = format!(
            "The texts of {name} hold several documents, which {end} ends. Each document is one sample. To count rows, choose the column {name}."
        );
        (self.documents, sentence)
    }

    /// Returns a warning about documents that are not separated.
    pub(super) fn sentence(&self) -> String {
        let (several, rows) = self.rows;
        let Documents { name, end, .. } = &self.documents;
        format!(
            "{end} occurs inside {several} of the first {rows} texts of {name}. Each row is counted as one sample. If it ends documents, upload a row per document."
        )
    }
}

/// Returns the token that ends documents inside the texts of a single column.
pub(super) fn find(parts: &[Part], head: &[&Row<'_>]) -> Option<Found> {
    /// Number of rows compared.
    const ROWS: usize = 1000;
    let [Part { index, name, measure: Measure::Text, rule }] = parts else { return None };
    if rule.text != TextPart::Full {
        return None;
    }
    let texts: Vec<&str> = head
        .iter()
        .take(ROWS)
        .filter_map(|row| match row.value(*index, name) {
            Value::Text(text) => Some(&**text),
            _ => None,
        })
        .collect();
    let found = ENDS.iter().map(|&end| (texts.iter().filter(|text| has_several(text, end)).count(), end));
    let (several, end) = found.max_by_key(|(several, _)| *several)?;
    // A rare `</s>` is a part of a text about markup.
    let minimum = if end == "</s>" { texts.len() / 10 } else { 0 };
    (several > minimum).then(|| Found {
        documents: Documents { index: *index, name: name.clone(), end },
        rows: (several, texts.len()),
    })
}

fn has_several(text: &str, end: &str) -> bool {
    text.contains(end) && documents(text, end).nth(1).is_some() && !(end == "</s>" && is_markup(text, end))
}

/// Returns whether `</s>` ends an element or a turn: HTML has other closing tags, a conversation has
/// turns.
fn is_markup(text: &str, end: &str) -> bool {
    text.match_indices("</").any(|(at, _)| !text[at..].starts_with(end)) || has_turns(text)
}

fn has_turns(text: &str) -> bool {
    TURNS.iter().any(|turn| text.contains(turn))
}

/// Returns the token between the documents of a plain text: it ends them, or it starts the text and
/// each of them.
pub(in super::super) fn document_ends(text: &str) -> Option<&'static str> {
    let is_end = |end: &&&str| text.contains(**end) && !(**end == "</s>" && is_markup(text, end));
    let turn = || Some(END_OF_TURN).filter(|end| text.contains(end) && !has_turns(text));
    let is_start = |start: &&&str| text.trim_start().starts_with(**start);
    ENDS.iter().find(is_end).copied().or_else(turn).or_else(|| STARTS.iter().find(is_start).copied())
}

/// Returns the documents of a text, without the tokens that start or end them.
pub(in super::super) fn documents<'t>(text: &'t str, end: &'t str) -> impl Iterator<Item = &'t str> {
    let plain = |document: &'t str| {
        let document = document.trim();
        STARTS.iter().find_map(|start| document.strip_prefix(start)).unwrap_or(document)
    };
    text.split(end).map(plain).filter(|document| !document.trim().is_empty())
}
