//! Records of a table: one line each, or several where a quoted cell holds line breaks.

use csv::{ReaderBuilder, StringRecord};

/// Maximum number of line breaks in a record. A quote that is never closed must not take in all rows after it, and the
/// search for its end reads at most this many lines.
const MAX_BREAKS: usize = 64;

/// Unread rest of a table.
#[derive(Debug, Clone)]
pub(super) struct Records<'t> {
    rest: &'t str,
    delimiter: u8,
}

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) cells: StringRecord,
    /// True if a quote is not closed. The line is then split without regard to quotes.
    pub(super) torn: bool,
}

impl<'t> Records<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { rest: text, delimiter: delimiter(text) }
    }

    /// Returns the character between cells.
    pub(super) const fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// Returns the next record. Empty lines and lines of empty cells, which spreadsheets append, are skipped. A record of
    /// several lines must have `width` cells; otherwise an unmatched quote joined them, and the record is the first line.
    pub(super) fn next_record(&mut self, width: Option<usize>) -> Option<Record> {
        loop {
            let record = self.next_line(width)?;
            if width.is_none() || record.cells.iter().any(|cell| !cell.trim().is_empty()) {
                return Some(record);
            }
        }
    }

    fn next_line(&mut self, width: Option<usize>) -> Option<Record> {
        self.rest = self.rest.trim_start_matches(['\r', '\n']);
        if self.rest.is_empty() {
            return None;
        }
        let line = self.rest.find(['\r', '\n']).unwrap_or(self.rest.len());
        let complete = end(self.rest, self.delimiter).and_then(|end| {
            let cells = cells(&self.rest[..end], self.delimiter, true);
            (end <= line || width.is_none_or(|width| cells.len() == width)).then_some((end, cells))
        });
        let (end, record) = match complete {
            Some((end, cells)) => (end, Record { cells, torn: false }),
            None => (line, Record { cells: cells(&self.rest[..line], self.delimiter, false), torn: true }),
        };
        self.rest = &self.rest[end..];
        Some(record)
    }
}

/// Returns the end of the first record; `None` if a quote is not closed.
fn end(text: &str, delimiter: u8) -> Option<usize> {
    #[derive(Clone, Copy)]
    enum At {
        Start,
        Plain,
        Quoted,
        /// After a quote inside quotes: the second of a pair follows, or the end.
        Quote,
    }
    let mut at = At::Start;
    let mut breaks = 0;
    for (index, byte) in text.bytes().enumerate() {
        at = match (at, byte) {
            (At::Quoted, b'"') => At::Quote,
            (At::Quoted, b'\n' | b'\r') if breaks == MAX_BREAKS => return None,
            (At::Quoted, _) => {
                breaks += usize::from(byte == b'\n' || byte == b'\r');
                At::Quoted
            }
            (At::Start | At::Quote, b'"') => At::Quoted,
            (_, b'\n' | b'\r') => return Some(index),
            (_, byte) if byte == delimiter => At::Start,
            _ => At::Plain,
        };
    }
    (!matches!(at, At::Quoted)).then_some(text.len())
}

fn cells(record: &str, delimiter: u8, quoting: bool) -> StringRecord {
    let mut reader = ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .quoting(quoting)
        .from_reader(record.as_bytes());
    let mut cells = StringRecord::new();
    // Reading UTF-8 rows of any width from memory cannot fail. A record without cells would have the wrong width.
    let _ = reader.read_record(&mut cells);
    cells
}

/// Returns the most frequent delimiter of the first line.
fn delimiter(text: &str) -> u8 {
    let header = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let count = |delimiter: u8| header.bytes().filter(|&byte| byte == delimiter).count();
    // Of equal counts the last is used, which is the comma.
    [b'\t', b';', b','].into_iter().max_by_key(|&delimiter| count(delimiter)).unwrap_or(b',')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn records(text: &str, width: usize) -> Vec<(Vec<String>, bool)> {
        let mut records = Records::new(text);
        let mut next = || records.next_record(Some(width));
        std::iter::from_fn(&mut next)
            .map(|record| (record.cells.iter().map(Into::into).collect(), record.torn))
            .collect()
    }

    #[test]
    fn unclosed_quote_affects_a_single_row() {
        for (text, expected) in [
            ("a,b\r\n\r\nc,d\re,f", vec![(vec!["a", "b"], false), (vec!["c", "d"], false), (vec!["e", "f"], false)]),
            ("a,\"b\n\"\"c\"\nd,e\n", vec![(vec!["a", "b\n\"c"], false), (vec!["d", "e"], false)]),
            ("a,b\n,\n\" \",\nc,d\n", vec![(vec!["a", "b"], false), (vec!["c", "d"], false)]),
            ("a,\"b\nc,d\n", vec![(vec!["a", "\"b"], true), (vec!["c", "d"], false)]),
            // The quote of the third line would close that of the first, in a record of three cells.
            (
                "\"a,b\nc,d\ne\",f,g\n",
                vec![(vec!["\"a", "b"], true), (vec!["c", "d"], false), (vec!["e\"", "f", "g"], false)],
            ),
        ] {
            let expected: Vec<(Vec<String>, bool)> =
                expected.into_iter().map(|(cells, torn)| (cells.into_iter().map(Into::into).collect(), torn)).collect();
            assert_eq!(records(text, 2), expected, "{text:?}");
        }
    }

    proptest! {
        /// Where every quote closes, records are those of the csv crate.
        #[test]
        fn well_formed_tables_are_read_as_the_library_reads_them(
            rows in prop::collection::vec(prop::collection::vec("[a-c \",;\r\n]{0,6}", 3), 1..8),
        ) {
            let mut writer = csv::WriterBuilder::new().quote_style(csv::QuoteStyle::Always).from_writer(Vec::new());
            rows.iter().try_for_each(|row| writer.write_record(row)).unwrap();
            let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
            let mut read = Records { rest: &text, delimiter: b',' };
            for row in &rows {
                if row.iter().all(|cell| cell.trim().is_empty()) {
                    continue;
                }
                let record = read.next_record(Some(3)).unwrap();
                prop_assert!(!record.torn);
                prop_assert_eq!(record.cells.iter().collect::<Vec<_>>(), row.iter().collect::<Vec<_>>());
            }
            prop_assert_eq!(read.next_record(Some(3)), None);
        }
    }
}
