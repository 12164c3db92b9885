//! Reads text files of any size in pieces: JSONL, CSV and plain numbers, uncompressed or compressed
//! with gzip or zstd.
//!
//! A file with a decompressed size up to [`IN_MEMORY`] is read like an upload. For a larger file,
//! only the lines of the current piece are in memory.

use std::io::Write;

use csv::{ReaderBuilder, StringRecord, Trim};
use flate2::write::MultiGzDecoder;
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::reader::{Reader, cells};
use super::sniff::{self, Delimiter, Format};
use super::table::Table;
use super::value::Location;
use super::{ImportError, Imported, Options, lines, number, numbers, plain, quotes, read_unpacked};

const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
/// Maximum decompressed size of an upload, in bytes.
pub(super) const MAX_UNPACKED: u64 = 2 << 30;
/// Maximum decompressed size of a file that is read at once, in bytes.
const IN_MEMORY: usize = 64 << 20;
/// Compressed bytes per decompression step: 4 KiB decompress to at most 128 MiB.
const STEP: usize = 4 << 10;

/// Returns whether the bytes start a gzip or zstd file.
pub(super) fn is_packed(bytes: &[u8]) -> bool {
    bytes.starts_with(GZIP) || bytes.starts_with(ZSTD)
}

/// Reads a text file in pieces.
pub struct Stream<'o> {
    options: &'o Options<'o>,
    unpacking: Unpacking,
    /// Remaining decompressed bytes that are allowed.
    left: u64,
    /// Maximum decompressed size of a file that is read at once, in bytes.
    memory_limit: usize,
    /// Last bytes of the file.
    end: [u8; 8],
    state: State<'o>,
}

/// Decoder, selected by the first bytes.
enum Unpacking {
    Unknown(Vec<u8>),
    Plain,
    Gzip(MultiGzDecoder<Vec<u8>>),
    Zstd(Zstd),
}

/// Decoder for consecutive zstd frames.
struct Zstd {
    decoder: Decoder<'static>,
    /// True if the bytes so far end at a frame boundary.
    is_frame_end: bool,
}

impl Zstd {
    fn new() -> std::io::Result<Self> {
        Ok(Self { decoder: Decoder::new()?, is_frame_end: false })
    }

    fn unpack(&mut self, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
        let mut input = InBuffer::around(bytes);
        let mut unpacked = Vec::new();
        let mut block = vec![0; 128 << 10];
        loop {
            let mut output = OutBuffer::around(&mut block[..]);
            // Number of bytes that the frame still needs; a new frame starts automatically.
            let needed = self.decoder.run(&mut input, &mut output)?;
            let written = output.pos();
            unpacked.extend_from_slice(&block[..written]);
            self.is_frame_end = needed == 0;
            if input.pos() == bytes.len() && written < block.len() {
                return Ok(unpacked);
            }
        }
    }
}

/// Data read so far.
enum State<'o> {
    /// The complete content, for a small file.
    Buffered(Vec<u8>),
    /// The rows so far, and an incomplete line.
    Rows(Box<Rows<'o>>),
}

struct Rows<'o> {
    kind: Kind<'o>,
    /// Bytes of an incomplete line or record.
    rest: Vec<u8>,
    /// Number of lines before the rest.
    lines: u64,
}

enum Kind<'o> {
    JsonLines(Reader<'o>),
    Numbers(Reader<'o>),
    Table(Table<'o>, u8),
    /// Plain text, with the number of documents so far.
    Documents(Reader<'o>, plain::Separator, u64),
}

impl<'o> Stream<'o> {
    /// Returns whether the bytes start a gzip or zstd file.
    pub fn is_packed(bytes: &[u8]) -> bool {
        is_packed(bytes)
    }

    /// Creates a stream for a file with at most `most` decompressed bytes.
    pub fn new(options: &'o Options<'o>, max_bytes: u64) -> Self {
        Self {
            options,
            unpacking: Unpacking::Unknown(Vec::new()),
            left: max_bytes,
            memory_limit: IN_MEMORY,
            end: [0xff; 8],
            state: State::Buffered(Vec::new()),
        }
    }

    /// Reads the next bytes of the file.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), ImportError> {
        let piece = if let Unpacking::Unknown(start) = &mut self.unpacking {
            start.extend_from_slice(piece);
            if start.len() < ZSTD.len() {
                return Ok(());
            }
            let start = std::mem::take(start);
            self.unpacking = if start.starts_with(GZIP) {
                Unpacking::Gzip(MultiGzDecoder::new(Vec::new()))
            } else if start.starts_with(ZSTD) {
                Unpacking::Zstd(Zstd::new().map_err(|error| packed("zstd", &error))?)
            } else {
                Unpacking::Plain
            };
            std::borrow::Cow::Owned(start)
        } else {
            std::borrow::Cow::Borrowed(piece)
        };
        for step in piece.chunks(STEP) {
            let unpacked = match &mut self.unpacking {
                Unpacking::Unknown(_) | Unpacking::Plain => {
                    self.take(&piece)?;
                    return Ok(());
                }
                Unpacking::Gzip(decoder) => {
                    self.end = end(self.end, step);
                    decoder.write_all(step).map_err(|error| packed("gzip", &error))?;
                    std::mem::take(decoder.get_mut())
                }
                Unpacking::Zstd(frames) => frames.unpack(step).map_err(|error| packed("zstd", &error))?,
            };
            self.take(&unpacked)?;
        }
        Ok(())
    }

    /// Returns the dataset.
    pub fn finish(mut self) -> Result<Imported, ImportError> {
        let last = match &mut self.unpacking {
            Unpacking::Unknown(start) => std::mem::take(start),
            Unpacking::Gzip(decoder) => {
                decoder.try_finish().map_err(|error| packed("gzip", &error))?;
                let last = std::mem::take(decoder.get_mut());
                let is_empty = last.is_empty() && matches!(&self.state, State::Buffered(bytes) if bytes.is_empty());
                // The decoder treats a truncated header as the end. An empty file ends with a
                // checksum and length 0.
                if is_empty && self.end != [0; 8] {
                    return Err(packed("gzip", &std::io::ErrorKind::UnexpectedEof.into()));
                }
                last
            }
            Unpacking::Zstd(frames) if !frames.is_frame_end => {
                return Err(packed("zstd", &std::io::ErrorKind::UnexpectedEof.into()));
            }
            Unpacking::Plain | Unpacking::Zstd(_) => Vec::new(),
        };
        self.take(&last)?;
        match self.state {
            State::Buffered(bytes) => read_unpacked(&bytes, self.options),
            State::Rows(mut rows) => {
                let rest = std::mem::take(&mut rows.rest);
                rows.kind.push(&String::from_utf8_lossy(&rest), rows.lines)?;
                rows.kind.finish()
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), ImportError> {
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or_else(|| ImportError::Broken {
            format: "packed file",
            detail: format!("it unpacks to more than {} MiB; read it with planscope lengths", MAX_UNPACKED >> 20),
        })?;
        match &mut self.state {
            State::Buffered(buffer) => {
                buffer.extend_from_slice(bytes);
                if buffer.len() > self.memory_limit {
                    let content = std::mem::take(buffer);
                    let mut rows = Rows::begin(&content, self.options)?;
                    rows.push(content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&content))?;
                    self.state = State::Rows(Box::new(rows));
                }
                Ok(())
            }
            State::Rows(rows) => rows.push(bytes),
        }
    }
}

/// Returns the last bytes of the file after a piece is appended.
fn end(before: [u8; 8], piece: &[u8]) -> [u8; 8] {
    let mut end = before;
    for &byte in &piece[piece.len().saturating_sub(8)..] {
        end.rotate_left(1);
        end[7] = byte;
    }
    end
}

fn packed(format: &'static str, error: &std::io::Error) -> ImportError {
    ImportError::Broken {
        format: if format == "gzip" { "gzip file" } else { "zstd file" },
        detail: format!("it is cut or broken: {error}"),
    }
}

impl<'o> Rows<'o> {
    /// Detects the format from the start of a file.
    fn begin(start: &[u8], options: &'o Options<'o>) -> Result<Self, ImportError> {
        let text = sniff::text(start)?;
        let refuse = |found: &str| ImportError::Shape {
            found: format!("{found} of more than {} MiB, which cannot be read row by row", IN_MEMORY >> 20),
        };
        if options.column.is_none()
            && let Some(separator) = plain::Separator::find(&text)
        {
            let kind = Kind::Documents(Reader::new(options), separator, 0);
            return Ok(Self { kind, rest: Vec::new(), lines: 0 });
        }
        let kind = match sniff::format(&text) {
            Format::JsonLines => Kind::JsonLines(Reader::new(options)),
            Format::Numbers => {
                numbers::check_start(&text, options)?;
                Kind::Numbers(Reader::headerless(options, 1))
            }
            Format::Table(delimiter @ Delimiter::Byte(byte)) => Kind::Table(Table::new(options, 0, delimiter), byte),
            Format::Table(Delimiter::None) if options.column.is_none() && plain::refuse(&text).is_some() => {
                return Err(plain::refuse(&text).unwrap_or(ImportError::Empty));
            }
            Format::Table(delimiter @ Delimiter::None) => Kind::Table(Table::new(options, 0, delimiter), 0),
            Format::Table(_) => return Err(refuse("an aligned table")),
            Format::Json => return Err(refuse("one JSON document")),
        };
        Ok(Self { kind, rest: Vec::new(), lines: 0 })
    }

    /// Reads complete lines and stores the rest.
    fn push(&mut self, bytes: &[u8]) -> Result<(), ImportError> {
        self.rest.extend_from_slice(bytes);
        let Some(end) = self.kind.end(&self.rest) else {
            return if self.rest.len() > IN_MEMORY {
                Err(ImportError::Shape { found: format!("a line of more than {} MiB", IN_MEMORY >> 20) })
            } else {
                Ok(())
            };
        };
        let rest = self.rest.split_off(end);
        let complete_lines = std::mem::replace(&mut self.rest, rest);
        let text = String::from_utf8_lossy(&complete_lines);
        self.kind.push(&text, self.lines)?;
        self.lines += text.matches('\n').count() as u64;
        Ok(())
    }
}

impl Kind<'_> {
    /// Returns the end of the last complete line or record; a line break inside quotes does not end
    /// a record.
    fn end(&self, bytes: &[u8]) -> Option<usize> {
        if let Self::Documents(_, separator, _) = self {
            return separator.end(bytes);
        }
        let Self::Table(_, delimiter) = self else {
            return bytes.iter().rposition(|&byte| byte == b'\n').map(|at| at + 1);
        };
        let (mut quoted, mut end) = (false, None);
        for (at, &byte) in bytes.iter().enumerate() {
            quoted ^= byte == b'"' && *delimiter != 0;
            if byte == b'\n' && !quoted {
                end = Some(at + 1);
            }
        }
        end
    }

    /// Reads complete lines. `before` is the number of preceding lines.
    fn push(&mut self, text: &str, before: u64) -> Result<(), ImportError> {
        match self {
            Self::JsonLines(reader) => {
                for (number, line) in (before + 1..).zip(text.lines()) {
                    lines::push(reader, number, line)?;
                }
            }
            Self::Numbers(reader) => {
                for (number, line) in (before + 1..).zip(text.lines()) {
                    if line.trim_start().starts_with('#') {
                        continue;
                    }
                    for word in line
                        .split(|c: char| c == ',' || c == ';' || number::is_blank(c))
                        .filter(|word| !word.is_empty())
                    {
                        reader.push(Location { item: "line", number }, cells(std::iter::once(word)))?;
                    }
                }
            }
            Self::Documents(reader, separator, number) => *number = separator.push(reader, *number, text)?,
            Self::Table(table, delimiter) => {
                let unquoted = quotes::unquote(text, Format::Table(Delimiter::Byte(*delimiter)));
                if let Some(unquoted) = &unquoted {
                    table.note_stray(before + unquoted.line);
                }
                let text = unquoted.as_ref().map_or(text, |unquoted| &unquoted.text);
                let mut records = ReaderBuilder::new()
                    .delimiter(*delimiter)
                    .has_headers(false)
                    .flexible(true)
                    .comment(Some(b'#'))
                    .trim(Trim::All)
                    .from_reader(text.as_bytes());
                let mut record = StringRecord::new();
                while records
                    .read_record(&mut record)
                    .map_err(|error| ImportError::Shape { found: format!("a broken table ({error})") })?
                {
                    let line = record.position().map_or(0, csv::Position::line);
                    table.push(before + line, &record.iter().collect::<Vec<_>>())?;
                }
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Imported, ImportError> {
        match self {
            Self::JsonLines(reader) => reader.finish("JSONL"),
            Self::Numbers(reader) => reader.finish("plain numbers"),
            Self::Table(table, _) => table.finish(),
            Self::Documents(reader, separator, _) => separator.finish(reader),
        }
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use planner::workload::Dataset;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).expect("memory takes every byte");
        encoder.finish().expect("memory takes every byte")
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 1).expect("memory takes every byte")
    }

    fn lengths<'p>(mut pieces: impl Iterator<Item = &'p [u8]>, options: &Options<'_>) -> Result<Vec<u32>, ImportError> {
        let mut stream = Stream { memory_limit: 32 << 10, ..Stream::new(options, u64::MAX) };
        pieces.try_for_each(|piece| stream.push(piece))?;
        match stream.finish()?.dataset {
            Dataset::Rows { text_tokens, .. } => Ok(text_tokens),
            Dataset::Histogram { edges, counts } => panic!("{edges:?} {counts:?}"),
        }
    }

    #[test]
    fn packed_files_are_read_in_any_chunk_size() {
        let text = b"{\"num_tokens\": 5}\n{\"num_tokens\": 3}\n{\"num_tokens\": 7}\n";
        for packed in [text.to_vec(), gzip(text), zstd(text), [gzip(&text[..18]), gzip(&text[18..])].concat()] {
            for size in [1, 7, 1000] {
                assert_eq!(lengths(packed.chunks(size), &Options::default()), Ok(vec![5, 3, 7]));
            }
            assert!(super::super::import(&packed, &Options::default()).is_ok());
        }
        for packed in [gzip(text), zstd(text)] {
            let error = lengths(packed[..packed.len() / 2].chunks(9), &Options::default());
            assert!(error.is_err(), "{error:?}");
        }
        // A file truncated inside its header, and an empty file.
        for (packed, message) in [(gzip(text)[..8].to_vec(), "cut or broken"), (gzip(b""), "file is empty")] {
            let error = super::super::import(&packed, &Options::default()).expect_err(message).to_string();
            assert!(error.contains(message), "{message}: {error}");
        }
        assert!(
            super::super::import(&gzip(&gzip(text)), &Options::default())
                .is_err_and(|error| error.to_string().contains("gzip"))
        );
    }

    /// Files that exceed the limit for reading at once: rows with 1 KiB of spaces.
    #[test]
    fn large_files_are_read_row_by_row() {
        let filler = " ".repeat(1 << 10);
        let rows = 70_u32;
        let length = |row: u32| 1 + row * 37 % 101;
        let expected: Vec<u32> = (1..=rows).map(length).collect();
        let options = Options::default();
        let json = (1..=rows).fold(String::new(), |json, row| {
            json + &format!("{{\"num_tokens\": {}, \"pad\": \"{filler}\"}}\n", length(row))
        });
        assert_eq!(lengths(json.as_bytes().chunks(9999), &options), Ok(expected.clone()));
        let table = (1..=rows)
            .fold("num_tokens,note\n".to_owned(), |table, row| table + &format!("{},\"a\n{filler}\"\n", length(row)));
        assert_eq!(lengths(gzip(table.as_bytes()).chunks(70), &options), Ok(expected.clone()));
        let seconds = format!("# latency_ms\n{}", "512\n".repeat(20_000));
        let result = lengths(seconds.as_bytes().chunks(1 << 10), &options);
        assert!(matches!(result, Err(ImportError::Unclear { .. })), "{result:?}");
        let stray = (1..=rows).fold("name\tnum_tokens\n".to_owned(), |table, row| {
            let name = if row == 3 {
                "\"a"
            } else if row == 9 {
                "\"b"
            } else {
                "c"
            };
            table + &format!("{name}{filler}\t{}\n", length(row))
        });
        assert_eq!(lengths(stray.as_bytes().chunks(70), &options), Ok(expected.clone()));
        let numbers = (1..=rows).fold(String::new(), |numbers, row| numbers + &format!("{filler}{}\n", length(row)));
        assert_eq!(lengths(zstd(numbers.as_bytes()).chunks(10), &options), Ok(expected));
        let grouped = "1\u{202f}024\n512\n".repeat(4000);
        let result = lengths(grouped.as_bytes().chunks(999), &options);
        assert_eq!(result, Ok([1024, 512].repeat(4000)));
        let result = lengths("1 024\n512\n".repeat(4000).as_bytes().chunks(999), &options);
        assert!(matches!(result, Err(ImportError::Unclear { .. })), "{result:?}");
        let documents = (1..=rows).fold(String::new(), |text, row| {
            text + &format!(
                "A {}.{}<|endoftext|>",
                "story ".repeat(length(row) as usize),
                if row % 9 == 0 { "\n" } else { "" }
            )
        });
        // "A ", 6 characters per word, and a point, with 4 characters per token.
        let expected: Vec<u32> = (1..=rows).map(|row| (3 + 6 * length(row)).div_ceil(4)).collect();
        for size in [70, 9999] {
            assert_eq!(lengths(gzip(documents.as_bytes()).chunks(size), &options), Ok(expected.clone()));
        }
        let prose = lengths("A story without a separator.\n".repeat(2000).as_bytes().chunks(1000), &options);
        assert!(prose.is_err_and(|error| error.to_string().contains("one JSON line per document")));
        let document = format!("[{}1]", format!("1,{filler}").repeat(70));
        assert!(
            lengths(document.as_bytes().chunks(1 << 10), &options)
                .is_err_and(|error| error.to_string().contains("row by row"))
        );
        let mut stream = Stream::new(&options, 1 << 10);
        let outcome = zstd(numbers.as_bytes()).chunks(1000).try_for_each(|piece| stream.push(piece));
        assert!(outcome.is_err_and(|error| error.to_string().contains("unpacks to more than")));
    }

    #[test]
    fn rows_can_be_counted_without_a_limit() {
        let options = Options { as_histogram: true, ..Options::default() };
        let imported = super::super::import(b"length\n5\n3\n5\n", &options).expect("a table");
        assert_eq!(
            imported.dataset,
            Dataset::Histogram { edges: vec![3.0, 3.0, 5.0, 5.0], counts: vec![1.0, 0.0, 2.0] }
        );
        assert_eq!(imported.report.parsed, 3);
        let many = "7 ".repeat(super::super::MAX_ROWS + 1);
        let imported = super::super::import(many.as_bytes(), &options).expect("numbers");
        assert_eq!(imported.dataset, Dataset::Histogram { edges: vec![7.0, 7.0], counts: vec![5_000_001.0] });
        let images = super::super::import(b"length,images\n5,1\n", &options);
        assert_eq!(images, Err(ImportError::TooManyRows));
    }
}
