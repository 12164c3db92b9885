//! `planscope lengths`: reads length files of any size on a cluster, and writes or uploads their
//! histogram.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use api::dataset::Uploaded;
use ingest::dataset::{
    CHARACTERS_PER_TOKEN_RANGE, ImportError, Imported, Options, Report, Stream, Tokenizer, Unit, arrow, from_rows,
    import, merge, parquet,
};
use planner::workload::Dataset;
use serde_json::json;

use crate::config::LengthsArguments;
use crate::remote::Remote;

/// Bytes per read.
const PIECE: usize = 1 << 20;
/// Maximum size in bytes of a file read into memory.
const MAX_BUFFERED: u64 = 4 << 30;
/// Interval between progress reports.
const PROGRESS: Duration = Duration::from_secs(2);

/// Reads the files and writes or uploads the histogram.
pub fn run(arguments: &LengthsArguments) -> anyhow::Result<ExitCode> {
    let tokenizer = arguments.tokenizer.as_deref().map(tokenizer).transpose()?;
    let unit = match arguments.unit.as_deref() {
        None => None,
        Some(id) => {
            Some(Unit::from_id(id).with_context(|| format!("--unit is {id:?}; it is tokens, characters or bytes"))?)
        }
    };
    let options = Options {
        column: arguments.column.as_deref(),
        add: arguments.add.as_deref(),
        weight: arguments.weight.as_deref(),
        unit,
        tokenizer: tokenizer.as_ref(),
        characters_per_token: arguments.characters_per_token,
        ..Options::default()
    };
    if !CHARACTERS_PER_TOKEN_RANGE.contains(&options.characters_per_token) {
        bail!("--characters-per-token is {}; it is a number from 0.1 to 100", options.characters_per_token);
    }
    let imported = read_all(&arguments.files, &options)?;
    print_report(&imported.report);
    let document = document(&imported.dataset);
    match (&arguments.out, &arguments.server) {
        (None, None) => print(&document)?,
        (out, server) => {
            if let Some(server) = server {
                upload(server, arguments, document.clone())?;
            }
            if let Some(out) = out {
                std::fs::write(out, document + "\n").with_context(|| format!("cannot write {}", out.display()))?;
                tell(&format!("written to {}", out.display()));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes to standard output. A closed pipe, for example to `head`, is not an error.
fn print(document: &str) -> anyhow::Result<()> {
    let mut output = io::stdout().lock();
    match writeln!(output, "{document}").and_then(|()| output.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// Writes a line to standard error, which may be closed.
fn tell(line: &str) {
    // If standard error is closed, there is no reader.
    let _closed = writeln!(io::stderr(), "{line}");
}

fn tokenizer(path: &Path) -> anyhow::Result<Tokenizer> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Tokenizer::read(&bytes).with_context(|| path.display().to_string())
}

/// Imports the lengths from all files. Rows without images are counted per length, so the number of
/// rows is not limited.
fn read_all(files: &[PathBuf], options: &Options<'_>) -> anyhow::Result<Imported> {
    let mut shards = Vec::with_capacity(files.len());
    let mut empty = Vec::new();
    for (index, path) in files.iter().enumerate() {
        let name =
            path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
        tell(&format!("reading {} of {}: {name}", index + 1, files.len()));
        let imported = match read(path, options) {
            Err(ReadError::Content(ImportError::TooManyRows)) => {
                read(path, &Options { as_histogram: true, ..options.clone() })
            }
            read => read,
        };
        match imported {
            // Some writers create empty shards. A single empty file is refused.
            Err(ReadError::Content(error @ (ImportError::Empty | ImportError::NoNumbers { .. })))
                if files.len() > 1 =>
            {
                tell(&format!("{name} is left out: {error}"));
                empty.push(name);
            }
            imported => {
                let imported = imported.map_err(anyhow::Error::from).with_context(|| path.display().to_string())?;
                shards.push((name, from_rows(imported)?));
            }
        }
    }
    let mut merged = merge(shards)?;
    if !empty.is_empty() {
        merged.report.warnings.push(format!(
            "{} of {} files hold no rows: {}",
            empty.len(),
            files.len(),
            names(&empty)
        ));
    }
    Ok(merged)
}

/// Formats the first few names.
fn names(all: &[String]) -> String {
    const MAX_NAMES: usize = 5;
    let first: Vec<&str> = all.iter().take(MAX_NAMES).map(String::as_str).collect();
    first.join(", ") + if all.len() > MAX_NAMES { ", ..." } else { "" }
}

/// Reason for refusing a file.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("cannot be read")]
    File(#[from] io::Error),
    #[error(transparent)]
    Content(#[from] ImportError),
}

fn read(path: &Path, options: &Options<'_>) -> Result<Imported, ReadError> {
    let mut start = Vec::new();
    let mut file = File::open(path)?;
    Read::by_ref(&mut file).take(16).read_to_end(&mut start)?;
    let length = file.metadata()?.len();
    if parquet::is(&start) {
        return Ok(parquet::import_from(file, options)?);
    }
    let rest = Progress { source: file, read: start.len() as u64, length, next: Instant::now() + PROGRESS };
    let mut source = io::Cursor::new(start.clone()).chain(rest);
    if arrow::is(&start) {
        return Ok(arrow::import_from(io::BufReader::with_capacity(PIECE, source), options)?);
    }
    // Text files cannot start with these bytes. Arrays and index files are read into memory.
    let is_text =
        start.first().is_none_or(|&byte| byte < 0x80) && !start.contains(&0) && !start.starts_with(b"MMIDIDX");
    if !is_text && !Stream::is_packed(&start) && length <= MAX_BUFFERED {
        let mut bytes = Vec::new();
        source.read_to_end(&mut bytes)?;
        return Ok(import(&bytes, options)?);
    }
    let mut stream = Stream::new(options, u64::MAX);
    let mut piece = vec![0; PIECE];
    loop {
        match source.read(&mut piece)? {
            0 => return Ok(stream.finish()?),
            bytes => stream.push(&piece[..bytes])?,
        }
    }
}

/// Reports the reading progress to standard error.
struct Progress {
    source: File,
    read: u64,
    length: u64,
    next: Instant,
}

impl Read for Progress {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.source.read(buffer)?;
        self.read += bytes as u64;
        if Instant::now() >= self.next {
            self.next = Instant::now() + PROGRESS;
            tell(&format!(
                "  {:.0} % of {} MiB",
                self.read as f64 * 100.0 / self.length.max(1) as f64,
                self.length >> 20
            ));
        }
        Ok(bytes)
    }
}

fn print_report(report: &Report) {
    tell(&format!("{}: {}", report.format, report.source));
    tell(&format!("{} rows read, {} repaired, {} left out", report.parsed, report.repaired, report.skipped));
    if let Some(problem) = &report.first_problem {
        tell(&format!("first problem: {problem}"));
    }
    for warning in &report.warnings {
        tell(&format!("note: {warning}"));
    }
}

/// Serializes the dataset in a format accepted by the server.
fn document(dataset: &Dataset) -> String {
    match dataset {
        Dataset::Histogram { edges, counts } => {
            json!({"schema": "hist/1", "unit": "tokens", "edges": edges, "counts": counts})
        }
        Dataset::Rows { text_tokens, images, .. } => json!({"text_tokens": text_tokens, "images": images}),
    }
    .to_string()
}

fn upload(server: &str, arguments: &LengthsArguments, document: String) -> anyhow::Result<()> {
    let first =
        arguments.files.first().and_then(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned());
    let name = arguments.name.clone().or(first).unwrap_or_default();
    let remote = Remote::new(server, arguments.token.as_deref().filter(|token| !token.is_empty()));
    let path = format!("{}?name={}", api::path::DATASETS, encoded(&name));
    let uploaded: Uploaded = remote.post(&path, "application/octet-stream", document)?;
    tell(&format!("uploaded to {server} as {}: {} samples", uploaded.dataset.id, uploaded.dataset.samples));
    Ok(())
}

/// Encodes text for a query string.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}
