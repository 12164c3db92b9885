//! Which format a file has, by its content.

use std::borrow::Cow;

use serde::de::IgnoredAny;

use super::{ImportError, number};

/// A format of length files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// Numbers between white space or commas.
    Numbers,
    /// Cells between the delimiter.
    Table(u8),
    /// One JSON document.
    Json,
    /// One JSON document per line.
    JsonLines,
}

const TEXT: &str = "upload lengths as plain numbers, CSV, JSON or JSONL";
const UNPACK: &str = "unpack it and upload the text file inside";

const PICKLE: &str = "pickles are never opened; convert it where you trust it: python -c \"import pickle,json,sys;\
                      json.dump(pickle.load(open(sys.argv[1],'rb')),sys.stdout)\" in.pkl > out.json";

/// First bytes of files that are often uploaded by mistake.
const MAGIC: [(&[u8], &str, &str); 13] = [
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

/// The text of a file: byte order mark stripped, invalid UTF-8 replaced, binary files refused by name.
pub(super) fn text(bytes: &[u8]) -> Result<Cow<'_, str>, ImportError> {
    for (magic, looks_like, remedy) in MAGIC {
        if bytes.starts_with(magic) {
            return Err(ImportError::Binary { looks_like, remedy });
        }
    }
    for (mark, encoding) in [(&b"\xff\xfe"[..], "UTF-16 (little-endian)"), (b"\xfe\xff", "UTF-16 (big-endian)")] {
        if bytes.starts_with(mark) {
            return Err(ImportError::WideText { encoding });
        }
    }
    let body = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let head = &body[..body.len().min(8192)];
    if head.contains(&0) {
        // ASCII in two bytes has a zero in every other place; anything else with zeros is not text.
        let [even, odd] = [0, 1].map(|first| head.iter().skip(first).step_by(2).filter(|&&byte| byte == 0).count());
        let half = head.len() / 2;
        return Err(match (even * 10 >= half * 9, odd * 10 >= half * 9) {
            (false, true) => ImportError::WideText { encoding: "UTF-16 (little-endian)" },
            (true, false) => ImportError::WideText { encoding: "UTF-16 (big-endian)" },
            _ => ImportError::Binary { looks_like: "binary data", remedy: TEXT },
        });
    }
    let text = String::from_utf8_lossy(body);
    if text.trim().is_empty() { Err(ImportError::Empty) } else { Ok(text) }
}

/// The format of a text that is not empty.
pub(super) fn format(text: &str) -> Format {
    let start = text.trim_start();
    if start.starts_with(['{', '[']) {
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let first = lines.next().unwrap_or_default();
        let complete = serde_json::from_str::<IgnoredAny>(first).is_ok();
        return if complete && lines.next().is_some() { Format::JsonLines } else { Format::Json };
    }
    let head: Vec<&str> = data_lines(text).take(50).collect();
    let Some(first) = head.first() else { return Format::Numbers };
    let Some(delimiter) = delimiter(first) else {
        // Without a delimiter a header is a first line that starts with something else than a number.
        let headed = first.split_whitespace().next().is_some_and(|word| number::read(word).is_none());
        return if headed { Format::Table(b',') } else { Format::Numbers };
    };
    let widths: Vec<usize> = head.iter().map(|line| line.matches(char::from(delimiter)).count()).collect();
    let numeric = head.iter().all(|line| {
        line.split(|c: char| c == ',' || c.is_whitespace()).all(|word| word.is_empty() || number::read(word).is_some())
    });
    // A list that was wrapped: numbers only, on one line or on lines of different width. A comma at the end
    // of a line is a list too.
    let list = delimiter == b','
        && numeric
        && (head.len() == 1
            || widths.iter().any(|&width| width != widths[0])
            || head.iter().all(|line| line.trim_end().ends_with(',')));
    if list { Format::Numbers } else { Format::Table(delimiter) }
}

/// Lines that hold data: neither blank nor a comment.
pub(super) fn data_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| {
        let line = line.trim_start();
        !line.is_empty() && !line.starts_with('#')
    })
}

/// The delimiter that stands most often outside quotes in a line.
fn delimiter(line: &str) -> Option<u8> {
    let mut quoted = false;
    let mut counts = [(b',', 0_usize), (b';', 0), (b'\t', 0)];
    for byte in line.trim_end().bytes() {
        quoted ^= byte == b'"';
        if let Some(entry) = counts.iter_mut().find(|(delimiter, _)| !quoted && *delimiter == byte) {
            entry.1 += 1;
        }
    }
    // The first of equals wins, and commas are listed first.
    counts.into_iter().rev().max_by_key(|&(_, count)| count).filter(|&(_, count)| count > 0).map(|(byte, _)| byte)
}
