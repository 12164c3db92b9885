//! Handles unmatched quotation marks in tables, such as `"big disk`. A CSV parser would read all
//! lines up to the next mark as one cell.

use csv::{ReaderBuilder, StringRecord};

use super::number;
use super::sniff::{Delimiter, Format};

/// Replacement for quotation marks that are read as text.
const PLAIN: &str = "\u{201d}";
/// Number of rows used to find number columns.
const HEAD: usize = 50;

/// A table without quotation marks, and the line of the first unmatched mark.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unquoted {
    pub(super) text: String,
    pub(super) line: u64,
}

/// Returns the report sentence about an unmatched mark.
pub(super) fn sentence(line: u64) -> String {
    format!(
        "Line {line} has a quotation mark that begins no quoted cell. The quotation marks of the file are read as plain text."
    )
}

/// Returns the table with its quotation marks as text if a mark is unmatched; `None` for other
/// texts.
pub(super) fn unquote(text: &str, format: Format) -> Option<Unquoted> {
    let Format::Table(Delimiter::Byte(delimiter)) = format else { return None };
    if !text.contains('"') {
        return None;
    }
    let line = stray(text, delimiter)?;
    Some(Unquoted { text: text.replace('"', PLAIN), line })
}

/// Returns the line of the first unmatched mark. The cell of such a mark spans line breaks. Also,
/// the cell does not end before a delimiter, or each line of the file is a complete row.
fn stray(text: &str, delimiter: u8) -> Option<u64> {
    match breaks(text, delimiter) {
        Breaks::None => return None,
        Breaks::Stray(line) => return Some(line),
        Breaks::Quoted => {}
    }
    let mut reader = ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .from_reader(text.as_bytes());
    let records: Vec<StringRecord> = reader.records().take(10_000).map_while(Result::ok).collect();
    let width = records.first()?.len();
    let is_number = |cell: &str| number::read(cell.trim()).is_some();
    let rows = || records.iter().skip(1).filter(|record| !record.iter().any(|cell| cell.contains('\n')));
    let numbers: Vec<usize> = (0..width)
        .filter(|&index| {
            let mut cells = rows().take(HEAD).filter_map(|record| record.get(index)).peekable();
            cells.peek().is_some() && cells.all(is_number)
        })
        .collect();
    let separator = char::from(delimiter);
    let is_row = |line: &str| {
        let cells: Vec<&str> = line.split(separator).collect();
        cells.len() == width && numbers.iter().all(|&index| cells.get(index).is_some_and(|cell| is_number(cell)))
    };
    let broken = records.iter().find(|record| record.iter().any(|cell| cell.contains('\n')))?;
    // Without quoted cells, each line is a row.
    let lines = || text.lines().skip(1).filter(|line| !line.trim().is_empty() && !line.starts_with('#')).take(10_000);
    let wrong = lines().filter(|line| !is_row(line)).count();
    let are_rows = width > 1 && !numbers.is_empty() && wrong * 20 <= lines().count();
    if are_rows { broken.position().map(csv::Position::line) } else { None }
}

/// Line breaks in quoted cells.
enum Breaks {
    /// No quoted cell has a line break.
    None,
    /// Quoted cells with line breaks end at a cell boundary.
    Quoted,
    /// Line of a mark whose quoted cell has a line break, and no end or an end inside a cell.
    Stray(u64),
}

fn breaks(text: &str, delimiter: u8) -> Breaks {
    let bytes = text.as_bytes();
    let ends_cell = |byte: Option<&u8>| byte.is_none_or(|byte| *byte == delimiter || matches!(byte, b'\n' | b'\r'));
    let mut found = Breaks::None;
    let (mut line, mut at, mut is_start) = (1, 0, true);
    while let Some(&byte) = bytes.get(at) {
        if byte == b'"' && is_start {
            let (start, begins) = (line, at);
            at += 1;
            loop {
                match (bytes.get(at), bytes.get(at + 1)) {
                    (None, _) => return if line > start { Breaks::Stray(start) } else { found },
                    (Some(b'"'), Some(b'"')) => at += 1,
                    (Some(b'"'), next) => {
                        let is_padded = matches!(next, Some(b' ')) && text[begins..at].trim().len() > 1;
                        if line > start {
                            if !ends_cell(next) && !is_padded {
                                return Breaks::Stray(start);
                            }
                            found = Breaks::Quoted;
                        }
                        break;
                    }
                    (Some(b'\n'), _) => line += 1,
                    _ => {}
                }
                at += 1;
            }
        }
        line += u64::from(byte == b'\n');
        // Blanks before a quoted cell are not part of it.
        is_start = byte == delimiter || byte == b'\n' || (is_start && byte == b' ');
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::sniff;
    use super::*;

    fn line(text: &str) -> Option<u64> {
        unquote(text, sniff::format(text)).map(|plain| plain.line)
    }

    #[test]
    fn stray_marks_are_found() {
        for (text, expected) in [
            ("id\tnum_tokens\tname\n1\t735\t\"big disk\n2\t512\tb\n3\t300\t\"small\n4\t90\te\n", Some(2)),
            ("id\tnum_tokens\tname\n1\t735\ta\n2\t512\t\"b\n3\t300\tc\n", Some(3)),
            ("id\tnum_tokens\tname\n1\t735\t\"a\n2\t512\tb\"\n3\t300\tc\n", Some(2)),
            ("id,num_tokens,name\n0,5,x\n1,735,\"a\n2,512,b\"\n3,300,c\n", Some(3)),
            ("num_tokens,name\n5,\"disk of 5\"\" size\"\n7,b\n", None),
            ("num_tokens,text\n5,\"one\ntwo, three\nfour\"\n7,\"b\"\n", None),
            ("text\n\"a\nb\"\n", None),
            ("text,num_tokens\n\"a table:\nx,5\ny,7\",12\n\"b, c\",3\n", None),
            ("length,count\n512,3\n", None),
        ] {
            assert_eq!(line(text), expected, "{text}");
        }
    }
}
