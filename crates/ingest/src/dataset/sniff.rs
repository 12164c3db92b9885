//! Detects the file format from the content.

use std::borrow::Cow;

use super::number::Notation;
use super::{ImportError, json_text, number};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// Numbers separated by white space or commas.
    Numbers,
    /// Table cells.
    Table(Delimiter),
    /// One JSON document.
    Json,
    /// One JSON document per line.
    JsonLines,
}

/// Separator between table cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delimiter {
    /// A character.
    Byte(u8),
    /// A single column.
    None,
    /// Bars between cells and at both line ends.
    Bar,
    /// One or more blanks.
    Blank,
}

const TEXT: &str = "upload lengths as plain numbers, CSV, JSON or JSONL";
const UNPACK: &str = "unpack it and upload the text file inside";

const PICKLE: &str = "pickles are never opened; convert it where you trust it: python -c \"import pickle,json,sys;\
                      json.dump(pickle.load(open(sys.argv[1],'rb')),sys.stdout)\" in.pkl > out.json";

/// First bytes of files that are often uploaded by mistake.
const MAGIC: [(&[u8], &str, &str); 16] = [
    (b"\xff\xfe\0\0", "text in UTF-32", "save it as UTF-8"),
    (b"\0\0\xfe\xff", "text in UTF-32", "save it as UTF-8"),
    (
        b"version https://git-lfs.github.com/spec/",
        "a pointer of Git LFS, which stands for a file that was not downloaded",
        "run git lfs pull, and upload the file itself",
    ),
    (b"\x89PNG\r\n\x1a\n", "a PNG image", TEXT),
    (b"\xff\xd8\xff", "a JPEG image", TEXT),
    (b"GIF8", "a GIF image", TEXT),
    (b"%PDF", "a PDF document", TEXT),
    (b"\x1f\x8b", "a gzip archive", UNPACK),
    (b"PK\x03\x04", "a zip archive (or an office document, or a torch checkpoint)", UNPACK),
    (b"\x28\xb5\x2f\xfd", "a zstd archive", UNPACK),
    (b"BZh", "a bzip2 archive", UNPACK),
    (b"\xfd7zXZ", "an xz archive", UNPACK),
    (b"\x80\x02", "a Python pickle", PICKLE),
    (b"\x80\x03", "a Python pickle", PICKLE),
    (b"\x80\x04", "a Python pickle", PICKLE),
    (b"\x80\x05", "a Python pickle", PICKLE),
];

/// Decodes the text of a file: removes the byte order mark, decodes UTF-16 and replaces invalid
/// characters. Rejects other file types by name.
pub(super) fn text(bytes: &[u8]) -> Result<Cow<'_, str>, ImportError> {
    for (magic, looks_like, remedy) in MAGIC {
        if bytes.starts_with(magic) {
            return Err(ImportError::Binary { looks_like, remedy });
        }
    }
    let text = if let Some(text) = utf_16(bytes) {
        Cow::Owned(text)
    } else {
        let body = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        if body[..body.len().min(8192)].contains(&0) {
            return Err(ImportError::Binary { looks_like: "binary data", remedy: TEXT });
        }
        String::from_utf8_lossy(body)
    };
    let start: String = text.trim_start().chars().take(15).collect::<String>().to_ascii_lowercase();
    if start.starts_with("<!doctype html") || start.starts_with("<html") {
        let remedy = "download the file itself: the link may need a login, or lead to a page about the file";
        return Err(ImportError::Binary { looks_like: "an HTML page", remedy });
    }
    if ["<table", "<div", "<style"].iter().any(|element| start.starts_with(element)) {
        return Err(ImportError::Binary { looks_like: "an HTML table", remedy: "write the table with to_csv()" });
    }
    if start.starts_with("<?xml") || start.starts_with("<svg") {
        return Err(ImportError::Binary { looks_like: "an XML file", remedy: TEXT });
    }
    if text.trim().is_empty() { Err(ImportError::Empty) } else { Ok(text) }
}

/// Decodes UTF-16 text, detected by its byte order mark or zero bytes: each second byte of ASCII
/// text in UTF-16 is zero.
fn utf_16(bytes: &[u8]) -> Option<String> {
    let (body, is_little) = match bytes {
        [0xff, 0xfe, rest @ ..] => (rest, true),
        [0xfe, 0xff, rest @ ..] => (rest, false),
        _ => {
            let head = &bytes[..bytes.len().min(8192)];
            let [even, odd] = [0, 1].map(|first| head.iter().skip(first).step_by(2).filter(|&&byte| byte == 0).count());
            let half = head.len() / 2;
            match (half > 0 && even * 10 >= half * 9, half > 0 && odd * 10 >= half * 9) {
                (false, true) => (bytes, true),
                (true, false) => (bytes, false),
                _ => return None,
            }
        }
    };
    let units =
        body.as_chunks().0.iter().map(|&two| if is_little { u16::from_le_bytes(two) } else { u16::from_be_bytes(two) });
    Some(char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}

/// Detects the format of a non-empty text.
pub(super) fn format(text: &str) -> Format {
    let start = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{1e}');
    if start.starts_with(['{', '[']) {
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let first = lines.next().unwrap_or_default().trim_start_matches('\u{1e}');
        let complete = json_text::is_document(json_text::without_comma(first).unwrap_or(first));
        if complete && lines.next().is_some() {
            return Format::JsonLines;
        }
        // NumPy's `print(array)`: one list without commas.
        let is_printed = start.starts_with('[')
            && start.matches('[').count() == 1
            && text
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte.is_ascii_whitespace() || matches!(byte, b'[' | b']' | b'.'))
            && !text.contains("...");
        return if is_printed && !complete { Format::Numbers } else { Format::Json };
    }
    // Lines below or above the column names.
    let is_rule =
        |line: &&str| line.contains(['-', '=']) && line.bytes().all(|byte| matches!(byte, b'-' | b'=' | b' '));
    let head: Vec<&str> = data_lines(text).filter(|line| !is_rule(line)).take(50).collect();
    let Some(first) = head.first() else { return Format::Numbers };
    // One text per line. A one-column table starts with a name.
    let is_text = |line: &&str| serde_json::from_str::<String>(line).is_ok();
    if head.len() > 1 && first.starts_with('"') && first.len() > 40 && first.contains(' ') && head.iter().all(is_text) {
        return Format::JsonLines;
    }
    if head.len() > 1 && head.iter().all(|line| line.trim().starts_with('|')) {
        return Format::Table(Delimiter::Bar);
    }
    if has_thousands(&head) {
        return Format::Table(Delimiter::None);
    }
    let is_number = |word: &str| Notation::Point.read(word).or_else(|| Notation::Comma.read(word)).is_some();
    let Some(delimiter) = delimiter(first).or_else(|| bars(&head)) else {
        let is_item = |line: &&str| line.trim_start().strip_prefix("- ").is_some_and(is_number);
        if head.iter().all(is_item) {
            return Format::Numbers;
        }
        let widths: Vec<usize> = head.iter().map(|line| number::words(line).count()).collect();
        // Without a delimiter, a first line that does not start with a number is a header.
        let headed = number::words(first).next().is_some_and(|word| !is_number(word));
        // A blank inside a number, or before its unit, separates no columns.
        if headed && widths[0] == 1 && are_single_numbers(&head[1..]) {
            return Format::Table(Delimiter::None);
        }
        let rows = &widths[1..];
        let is_even = rows.iter().all(|&width| width == rows[0]);
        // A wrapped list ends with a shorter line of numbers; a printed pandas series ends with a
        // line of words.
        let is_series = widths.len() > 2
            && widths[0] > 1
            && widths[..widths.len() - 1].iter().all(|&width| width == widths[0])
            && !head.iter().all(|line| number::words(line).all(is_number));
        let is_table = !rows.is_empty()
            && is_even
            && if headed {
                let has_numbers = head[1..].iter().all(|line| number::words(line).any(is_number));
                has_numbers && rows[0] > 1 && (rows[0] == widths[0] || rows[0] == widths[0] + 1)
            } else {
                widths[0] == rows[0] && widths[0] > 1
            };
        let is_table = is_table || (is_series && !headed);
        return match (is_table, headed) {
            (true, _) => Format::Table(Delimiter::Blank),
            (false, true) => Format::Table(Delimiter::None),
            (false, false) => Format::Numbers,
        };
    };
    let widths: Vec<usize> = head.iter().map(|line| line.matches(char::from(delimiter)).count()).collect();
    let separators = [',', char::from(delimiter)];
    let numeric = head.iter().all(|line| {
        line.split(|c: char| separators.contains(&c) || c.is_whitespace())
            .all(|word| word.is_empty() || number::read(word).is_some())
    });
    // A wrapped list has only numbers, on one line or on lines with different widths. A line with a
    // trailing comma is also a list.
    let is_wrapped =
        || widths.iter().any(|&width| width != widths[0]) || head.iter().all(|line| line.trim_end().ends_with(','));
    let list = match delimiter {
        b',' => numeric && (head.len() == 1 || is_wrapped()),
        // Commas between semicolons are decimal commas.
        b';' => numeric && head.len() == 1 && !first.contains(','),
        _ => false,
    };
    if list { Format::Numbers } else { Format::Table(Delimiter::Byte(delimiter)) }
}

/// Returns whether each line is a number with commas before each group of three digits. Two-column
/// lines have two numbers each, and the second number does not start with 0. Numbers from one
/// million up are not lengths but lists of three-digit numbers.
fn has_thousands(lines: &[&str]) -> bool {
    let lines = || lines.iter().map(|line| line.trim());
    let is_number = |line: &str| {
        line.bytes().all(|byte| byte.is_ascii_digit() || byte == b',')
            && number::is_grouped(line, ',')
            && line.matches(',').count() < 2
    };
    let is_plain = |line: &str| !line.contains(',');
    let is_padded = |line: &str| line.contains(",0");
    lines().count() > 1
        && lines().all(is_number)
        && !lines().all(is_plain)
        && (lines().any(is_plain) || lines().any(is_padded))
}

/// Returns whether each line is one number although it has blanks: all lines have a unit, or some have thousands such as `1 024`.
fn are_single_numbers(lines: &[&str]) -> bool {
    let is_plain = |line: &str| line.trim().bytes().all(|byte| byte.is_ascii_digit());
    let is_padded = |line: &str| line.contains(" 0");
    (!lines.is_empty() && lines.iter().all(|line| number::has_unit(line)))
        || (lines.iter().all(|line| is_plain(line) || number::is_spaced(line))
            && lines.iter().any(|line| is_padded(line.trim())))
}

/// Returns the lines that are neither blank nor comments.
pub(super) fn data_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| {
        let line = line.trim_start();
        !line.is_empty() && !line.starts_with('#')
    })
}

/// Returns a bar if all lines have an equal number of bars, as in `sqlite3` tables.
fn bars(lines: &[&str]) -> Option<u8> {
    let count = |line: &str| line.matches('|').count();
    let first = count(lines.first()?);
    (first > 0 && lines.len() > 1 && lines.iter().all(|line| count(line) == first)).then_some(b'|')
}

/// Returns the most frequent delimiter outside quotes.
fn delimiter(line: &str) -> Option<u8> {
    let mut quoted = false;
    let mut counts = [(b',', 0_usize), (b';', 0), (b'\t', 0)];
    for byte in line.trim_end().bytes() {
        quoted ^= byte == b'"';
        if let Some(entry) = counts.iter_mut().find(|(delimiter, _)| !quoted && *delimiter == byte) {
            entry.1 += 1;
        }
    }
    // The first of equal counts wins; commas are listed first.
    counts.into_iter().rev().max_by_key(|&(_, count)| count).filter(|&(_, count)| count > 0).map(|(byte, _)| byte)
}
