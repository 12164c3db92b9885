//! Reads consecutive JSON documents, and numbers in Python notation.

use super::super::reader::Reader;
use super::super::sniff::{self, Format};
use super::super::value::{Location, Row};
use super::super::{ImportError, Imported, Options, json_text, lines};
use super::document;

/// Reads a text that is not a single JSON document; returns `None` if it has no known defect.
pub(super) fn read(text: &str, options: &Options<'_>) -> Option<Result<Imported, ImportError>> {
    let plain = json_text::without_nan(text);
    if let Some(plain) = &plain {
        if sniff::format(plain) == Format::JsonLines {
            return Some(lines::import(plain, options));
        }
        match document(plain, options) {
            Err(ImportError::Json { .. }) => {}
            outcome => return Some(outcome),
        }
    }
    documents(plain.as_deref().unwrap_or(text), options)
}

/// Reads consecutive objects that span several lines each.
fn documents(text: &str, options: &Options<'_>) -> Option<Result<Imported, ImportError>> {
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<Row<'_>>();
    let Some(Ok(first @ Row::Object(_))) = documents.next() else { return None };
    let mut reader = Reader::new(options);
    let mut number = 0;
    let mut push = |row: Row<'_>| {
        number += 1;
        reader.push(Location { item: "document", number }, row)
    };
    let mut outcome = push(first);
    for row in documents {
        if outcome.is_err() {
            break;
        }
        outcome = match row {
            Ok(row) => push(row),
            Err(error) => Err(ImportError::Json { detail: error.to_string() }),
        };
    }
    Some(outcome.and_then(|()| reader.finish("JSON documents")))
}
