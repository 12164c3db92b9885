//! SQLite exports of Nsight Systems (`nsys export --type sqlite`).
//!
//! | table | becomes |
//! |---|---|
//! | `CUPTI_ACTIVITY_KIND_KERNEL`, `_MEMCPY`, `_MEMSET`, `_GRAPH_TRACE` | slices of a stream; a device of a process is a process |
//! | `CUPTI_ACTIVITY_KIND_RUNTIME` | runtime calls of a thread, and an arrow to the slice with the same correlation number |
//! | `NVTX_EVENTS` | annotations of a thread; marks have no duration and are counted |
//! | `StringIds`, `TARGET_INFO_GPU`, `TARGET_INFO_CUDA_DEVICE`, `ThreadNames`, `PROCESSES` | names |
//! | `TARGET_INFO_SESSION_START_TIME` | the wall clock at time zero |
//! | `MPI_RANKS` | the rank, if it is the only one |
//!
//! Times are integer nanoseconds. A thread number contains the process: the lower 24 bits are the
//! thread, the next 24 bits the process.

mod device;
mod host;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::Read;

use super::build::Builder;
use super::kind::Kind;
use super::table::{Distributed, Format};
use super::{Limits, Trace, TraceError};
use crate::sqlite::{Database, Row, SqliteError, Table, Value};

/// Tables with slices.
const SLICES: [&str; 6] = [
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "NVTX_EVENTS",
];
/// Table of texts, which the others reference by number.
const STRINGS: &str = "StringIds";

impl From<SqliteError> for TraceError {
    fn from(error: SqliteError) -> Self {
        Self::Sqlite { detail: error.to_string() }
    }
}

/// Reads an SQLite file into memory, then its tables.
pub(super) fn read(source: impl Read, limits: &Limits) -> Result<Trace, TraceError> {
    let limit = limits.bytes.min(limits.sqlite_bytes);
    let mut file = Vec::new();
    let end = source.take(limit + 1).read_to_end(&mut file);
    if file.len() as u64 > limit {
        return Err(TraceError::TooLarge { limit });
    }
    let database = Database::open(&file)?;
    let mut builder = Builder::new(limits);
    builder.report.cut = database.cut || end.is_err();
    if let Err(error) = end {
        builder.report.assume(&format!("the file breaks off after {} unpacked bytes ({error})", file.len()));
    }
    check_tables(&database)?;
    let mut export = Export {
        texts: Texts::read(&database, limits)?,
        launched: HashSet::new(),
        devices: BTreeSet::new(),
        database: &database,
        builder,
    };
    export.clock()?;
    export.rank()?;
    export.devices()?;
    export.threads()?;
    let mut builder = export.builder;
    builder.report.bytes = file.len() as u64;
    builder.finish(Format::Nsight)
}

/// Refuses a file without any table of slices, or without the table of their names.
fn check_tables(database: &Database<'_>) -> Result<(), TraceError> {
    let has = |name: &str| database.table(name).is_some();
    let missing = if SLICES.iter().all(|name| !has(name)) {
        format!("all tables {}", SLICES.join(", "))
    } else if has(STRINGS) {
        return Ok(());
    } else {
        format!("the table {STRINGS}")
    };
    let mut names: Vec<&str> = database.tables.iter().take(12).map(|table| table.name.as_str()).collect();
    names.sort_unstable();
    let found = match database.tables.len() {
        0 => "no table".to_owned(),
        count if count > names.len() => format!("{count} tables, among them {}", names.join(", ")),
        _ => format!("the tables {}", names.join(", ")),
    };
    Err(TraceError::Tables { missing, found })
}

/// A text and the kind of a kernel with this name.
struct Text {
    text: Box<str>,
    /// Name index, once the text is used.
    name: Option<u32>,
}

/// Texts by number.
struct Texts(HashMap<i64, Text>);

impl Texts {
    fn read(database: &Database<'_>, limits: &Limits) -> Result<Self, TraceError> {
        let mut texts = HashMap::new();
        let Some(table) = database.table(STRINGS) else { return Ok(Self(texts)) };
        let [id, value] = columns(table, ["id", "value"])?;
        let mut bytes = 0;
        database.scan(table, |row| {
            let (Some(id), Some(text)) = (row.get(id).integer(), row.get(value).text()) else { return };
            let text: Box<str> = text.chars().take(limits.name_bytes).collect::<String>().into();
            if bytes + text.len() <= limits.names_bytes {
                bytes += text.len();
                texts.insert(id, Text { text, name: None });
            }
        })?;
        Ok(Self(texts))
    }

    /// Returns the text of a column that contains a number or, in old exports, the text itself.
    fn resolve(&self, value: Value<'_>) -> Option<String> {
        match value {
            Value::Integer(id) => self.0.get(&id).map(|text| text.text.as_ref().to_owned()),
            value => value.text().map(Into::into),
        }
    }
}

/// An export that is being converted.
struct Export<'d, 'f, 'l> {
    database: &'d Database<'f>,
    builder: Builder<'l>,
    texts: Texts,
    /// Process and correlation number of all device slices.
    launched: HashSet<(u64, i64)>,
    /// Process and device number of all devices with slices.
    devices: BTreeSet<(u64, i64)>,
}

/// Returns the indices of required columns.
fn columns<const N: usize>(table: &Table, names: [&str; N]) -> Result<[usize; N], TraceError> {
    let missing: Vec<&str> = names.into_iter().filter(|name| table.column(name).is_none()).collect();
    if !missing.is_empty() {
        let missing = format!("the columns {} in the table {}", missing.join(", "), table.name);
        return Err(TraceError::Tables { missing, found: "others".to_owned() });
    }
    Ok(names.map(|name| table.column(name).unwrap_or_default()))
}

/// Returns the value in a column that not all versions of the export have.
fn optional<'r>(row: &Row<'r>, column: Option<usize>) -> Value<'r> {
    column.map_or(Value::Null, |column| row.get(column))
}

/// Returns start and duration; `None` with a reason otherwise.
fn interval(start: Value<'_>, end: Value<'_>) -> Result<(u64, u64), &'static str> {
    if (start, end) == (Value::Integer(0), Value::Integer(0)) {
        // CUPTI writes zeros for times that it could not measure.
        return Err("an event without a time");
    }
    let start = start.integer().ok_or("an event without a time")?;
    let end = end.integer().ok_or("marks have no duration and are not shown")?;
    let start = u64::try_from(start).map_err(|_| "a negative time")?;
    Ok((start, u64::try_from(end).unwrap_or_default().saturating_sub(start)))
}

/// Returns the process and the thread in a thread number.
const fn process_and_thread(global: i64) -> (u64, u64) {
    let global = global.cast_unsigned();
    ((global >> 24) & 0xff_ffff, global & 0xff_ffff)
}

impl Export<'_, '_, '_> {
    /// Sets the wall clock at time zero.
    fn clock(&mut self) -> Result<(), TraceError> {
        let Some(table) = self.database.table("TARGET_INFO_SESSION_START_TIME") else { return Ok(()) };
        let [utc] = columns(table, ["utcEpochNs"])?;
        let base = &mut self.builder.base_ns;
        self.database.scan(table, |row| *base = base.or(row.get(utc).integer()))?;
        Ok(())
    }

    /// Sets the rank if MPI was traced in one process.
    fn rank(&mut self) -> Result<(), TraceError> {
        let Some(table) = self.database.table("MPI_RANKS") else { return Ok(()) };
        let Some(rank) = table.column("rank") else { return Ok(()) };
        let mut ranks = HashSet::new();
        self.database.scan(table, |row| ranks.extend(row.get(rank).integer()))?;
        if let (1, Some(&rank)) = (ranks.len(), ranks.iter().next()) {
            let rank = u32::try_from(rank).ok();
            self.builder.distributed = Some(Distributed { rank, ..Distributed::default() });
        }
        Ok(())
    }

    /// Counts the pages that a truncated file lacks.
    fn count_lost(&mut self, pages: u64, table: &str) {
        if pages > 0 {
            self.builder.report.cut = true;
            self.builder.report.assume(&format!("the file breaks off: {pages} pages of {table} are missing"));
        }
    }

    /// Returns the name index of a text by number.
    fn name(&mut self, id: i64) -> Option<u32> {
        let text = self.texts.0.get_mut(&id)?;
        if text.name.is_none() {
            text.name = Some(self.builder.name(&text.text));
        }
        text.name
    }
}
