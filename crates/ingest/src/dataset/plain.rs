//! Reads plain texts: documents with a token between them, as `TinyStories` and corpora of language
//! models have it.

use std::borrow::Cow;

use csv::ReaderBuilder;

use super::choice::document_ends;
use super::reader::Reader;
use super::sniff::{self, Format};
use super::value::{Location, Row, Value};
use super::{ImportError, Imported, Meaning, Options, names};

/// Number of lines that decide about a text.
const HEAD: usize = 200;

/// A token between documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Separator(&'static str);

impl Separator {
    /// Returns the separator of a plain text; `None` for tables, JSON, and texts without a separator.
    pub(super) fn find(text: &str) -> Option<Self> {
        let start = text.trim_start();
        if start.starts_with(['{', '[']) || !start.contains('<') || sniff::format(text) == Format::JsonLines {
            return None;
        }
        let separator = document_ends(text)?;
        (!is_table(text)).then_some(Self(separator))
    }

    /// Returns the end of the last complete document, in bytes.
    pub(super) fn end(self, bytes: &[u8]) -> Option<usize> {
        let token = self.0.as_bytes();
        bytes.windows(token.len()).rposition(|part| part == token).map(|at| at + token.len())
    }

    /// Reads complete documents. `before` is the number of preceding documents; returns the new number.
    pub(super) fn push(self, reader: &mut Reader<'_>, before: u64, text: &str) -> Result<u64, ImportError> {
        let mut number = before;
        for document in super::choice::documents(text, self.0) {
            number += 1;
            let row = Row::Single(Value::Text(Cow::Borrowed(document.trim())));
            reader.push(Location { item: "document", number }, row)?;
        }
        Ok(number)
    }

    /// Returns the dataset, with a sentence about the separator.
    pub(super) fn finish(self, reader: Reader<'_>) -> Result<Imported, ImportError> {
        let mut imported = reader.finish("plain text")?;
        imported.report.warnings.insert(0, format!("The text is split at {}: each document is one sample.", self.0));
        Ok(imported)
    }

    /// Reads a complete text.
    pub(super) fn import(self, text: &str, options: &Options<'_>) -> Result<Imported, ImportError> {
        let mut reader = Reader::new(options);
        self.push(&mut reader, 0, text)?;
        self.finish(reader)
    }
}

/// Returns the error for a text without separators; `None` for other files.
pub(super) fn refuse(text: &str) -> Option<ImportError> {
    is_prose(text).then_some(ImportError::Binary {
        looks_like: "plain text without numbers and without a separator of documents",
        remedy: "write one JSON line per document, {\"text\": \"..\"}, or put <|endoftext|> between the documents",
    })
}

/// Returns whether a text has lines of words, and no table, no JSON and few numbers.
fn is_prose(text: &str) -> bool {
    let start = text.trim_start();
    // `<|` begins a token, `<` an element of markup.
    let is_markup = start.starts_with('<') && !start.starts_with("<|");
    if is_markup || start.starts_with(['{', '[', '|']) || is_table(text) {
        return false;
    }
    let (mut all, mut numbers, mut lines, mut sentences) = (0_usize, 0_usize, 0_usize, 0_usize);
    for line in head(text) {
        let terms = line.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '|' | '=')).take(1000);
        for word in terms.filter(|word| word.chars().any(char::is_alphanumeric)) {
            all += 1;
            numbers += usize::from(word.contains(|c: char| c.is_ascii_digit()));
        }
        lines += 1;
        sentences += usize::from(line.ends_with(['.', '!', '?', '"', '”', '。', '！', '？']));
    }
    // Sentences may have numbers.
    let are_sentences = all >= 6 * lines && sentences * 2 > lines;
    all >= 2 * lines && numbers * if are_sentences { 3 } else { 10 } <= all
}

/// Returns the first lines that are not blank.
fn head(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).take(HEAD)
}

/// Returns whether a text is a table: its first line holds names and one of them is known, or all lines
/// have the same number of cells.
fn is_table(text: &str) -> bool {
    let Some(first) = head(text).next() else { return false };
    let is_separator = |c: char| matches!(c, ',' | ';' | '\t' | '|');
    let cells = || first.split(is_separator).map(|cell| cell.trim().trim_matches('"'));
    let is_name = |cell: &str| cell.len() <= 40 && cell.split_whitespace().count() <= 3;
    let is_known = |cell: &str| !cell.is_empty() && names::meaning(cell).0 != Meaning::Unknown;
    if !first.contains("<|") && cells().all(is_name) && cells().any(is_known) {
        return true;
    }
    // The bars of `<|endoftext|>` are no delimiters.
    let bars = |line: &str| line.matches('|').count() - line.matches("<|").count().min(line.matches('|').count());
    let width = bars(first);
    let has_bars =
        width > 0 && !first.contains("<|") && head(text).nth(1).is_some() && head(text).all(|line| bars(line) == width);
    has_bars || [b',', b';', b'\t'].iter().any(|&delimiter| has_columns(text, delimiter))
}

/// Returns whether the first rows have the same number of cells, and more than one. Cells in quotation
/// marks may hold delimiters.
fn has_columns(text: &str, delimiter: u8) -> bool {
    let mut reader =
        ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(text.as_bytes());
    let mut widths = reader.records().take(HEAD).map_while(Result::ok).map(|record| record.len());
    let Some(first) = widths.next().filter(|&width| width > 1) else { return false };
    let mut others = widths.peekable();
    others.peek().is_some() && others.all(|width| width == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_known_by_its_lines() {
        for text in [
            "Once there was a fox.\nIt lived in a wood, near a river.\n",
            " = A title = \n\n It was built in 1932 by a farmer, who lived there for many years.\n It is still in use, and has a garden.\n",
            "There were 3 dogs and 4 cats in the houses.\nIn 1932 and 1945 there were 20 wars, and most of them ended.\n",
            "import os\n\ndef main(path, count):\n    print(path, count)\n",
            "one very long line of words without any break and without a number at its end",
        ] {
            assert!(is_prose(text), "{text}");
        }
        for text in [
            "num_tokens\n512\n300\n",
            "name of the file, size of the file\nfirst file here,5\nsecond file here,7\n",
            "text\nthe first row of a column\nthe second row of a column\n",
            "a.jpg\nb.jpg\n",
            "2025-01-01 10:00:01 INFO loaded document 5 with 512 tokens\n2025-01-01 10:00:02 INFO loaded document 6 with 300 tokens\n",
            "sample 1 has 512 tokens\nsample 2 has 300 tokens\n",
            "{\"text\": \"a text of several words\"}\n",
            "Total samples: 1000\nMean length: 512\n",
        ] {
            assert!(!is_prose(text), "{text}");
        }
    }

    #[test]
    fn separators_are_found() {
        for (text, expected) in [
            ("A story.<|endoftext|>Another, with a comma.<|endoftext|>", Some("<|endoftext|>")),
            ("<s>A story.</s>\n<s>Another.</s>\n", Some("</s>")),
            ("<|begin_of_text|>A story.<|begin_of_text|>Another.", Some("<|begin_of_text|>")),
            ("A story.<|eot_id|>Another.<|eot_id|>", Some("<|eot_id|>")),
            ("A story.<|end_of_text|>\nAnother.", Some("<|end_of_text|>")),
            ("text\nA story.<|endoftext|>Another.\n", None),
            ("id,text\n1,A story.<|endoftext|>Another.\n", None),
            ("row,stuff\n1,\"A story, long.<|endoftext|>Another.\"\n2,\"A<|endoftext|>B\"\n", None),
            ("{\"text\": \"A story.<|endoftext|>Another.\"}", None),
            ("The tag </s> ends a <b>line</b>. And </s> again.", None),
            ("<|start_header_id|>user<|end_header_id|>\nHello<|eot_id|>", None),
            ("A story without separators, and with a <tag>.", None),
        ] {
            assert_eq!(Separator::find(text).map(|found| found.0), expected, "{text}");
        }
    }
}
