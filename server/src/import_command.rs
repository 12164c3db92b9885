//! `planscope import`: merges the output of sweep shards.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use api::sweep::{Gathered, StoredSweep};
use planner::sweep::{Sheet, Sweep, ranges, runs};

use crate::changes::{COMMAND_LINE, Change};
use crate::clock::{Clock, SystemClock};
use crate::config::ImportArguments;
use crate::remote::Remote;
use crate::store::{DatabaseLock, Store, StoreError, TenancyError};
use crate::sweeps::gathering::{self, Lines};

/// Exit code if points are still missing.
const MISSING: u8 = 3;
/// Number of lines to store or send per batch.
const BATCH: usize = 1_000;
/// Maximum line length in bytes. A heading contains its scenario.
const MAX_LINE: u64 = 16 << 20;
/// Maximum request size in bytes.
const MAX_REQUEST: usize = 8 << 20;

/// Merges files.
pub fn run(arguments: &ImportArguments) -> anyhow::Result<ExitCode> {
    let mut target = match &arguments.server {
        Some(server) => {
            let token = arguments.token.as_deref().filter(|token| !token.is_empty());
            Target::Server(Remote::new(server, token))
        }
        None => Target::Database(Box::new(Database::open(&arguments.database)?)),
    };
    let gathered = gather(&arguments.files, &mut target);
    target.close();
    let Some((sweep, added, shards)) = gathered? else { bail!("the files are empty") };
    println!("sweep {}: {added} new points", sweep.sweep);
    if sweep.missing.is_empty() {
        println!("all {} points are there", sweep.points);
        return Ok(ExitCode::SUCCESS);
    }
    println!("missing points: {}", ranges(&sweep.missing));
    if let Some(shard_count) = shards {
        let missing: std::collections::BTreeSet<u32> =
            sweep.missing.iter().flat_map(|&[first, last]| first..=last).map(|point| point % shard_count + 1).collect();
        println!("missing shards of {shard_count}: {}", ranges(&runs(missing)));
    }
    Ok(ExitCode::from(MISSING))
}

/// Stores the lines from all files. Returns the state of the sweep, the number of new rows, and the
/// shard count if it is unique.
fn gather(files: &[std::path::PathBuf], target: &mut Target) -> anyhow::Result<Option<(Gathered, u64, Option<u32>)>> {
    let mut first: Option<(Sweep, String)> = None;
    let mut last = None;
    let mut added = 0;
    let mut shares = std::collections::BTreeSet::new();
    for path in files {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut reader = BufReader::new(file);
        let Some(heading) = next_line(&mut reader, path, 1)? else { continue };
        let sheet = Sheet::open(&heading).with_context(|| format!("{}: line 1", path.display()))?;
        let (sweep, engine) = first.get_or_insert_with(|| (sheet.sweep.clone(), sheet.heading.engine.clone()));
        if sweep.id() != sheet.sweep.id() {
            bail!("{}: line 1 belongs to the sweep {}, not to {}", path.display(), sheet.sweep.id(), sweep.id());
        }
        if *engine != sheet.heading.engine {
            bail!("{}: line 1 was made by {}, not by {engine}", path.display(), sheet.heading.engine);
        }
        shares.insert(sheet.shard.count());
        let mut lines = Lines::new(sheet);
        let (mut number, mut bytes) = (1_usize, 0);
        loop {
            number += 1;
            let line = next_line(&mut reader, path, number)?;
            if let Some(line) = &line {
                bytes += line.len();
                if let Err(error) = lines.push(line) {
                    // The preceding lines are valid.
                    target.store(&mut lines)?;
                    return Err(error).with_context(|| format!("{}: line {number}", path.display()));
                }
            }
            if line.is_none() || lines.len() >= BATCH || bytes > MAX_REQUEST {
                let gathered = target.store(&mut lines)?;
                added += gathered.added;
                last = Some(gathered);
                bytes = 0;
            }
            if line.is_none() {
                break;
            }
        }
    }
    // Missing shards can be listed only if all files have the same shard count.
    let shard_count = shares.first().copied().filter(|count| shares.len() == 1 && *count > 1);
    Ok(last.map(|gathered| (gathered, added, shard_count)))
}

/// Reads the next complete line. An incomplete line is skipped with a warning.
fn next_line(reader: &mut impl BufRead, path: &Path, number: usize) -> anyhow::Result<Option<String>> {
    let mut line = Vec::new();
    std::io::Read::take(&mut *reader, MAX_LINE).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.pop() != Some(b'\n') {
        eprintln!("{}: line {number} is cut and left out; planscope sweep --resume writes it again", path.display());
        return Ok(None);
    }
    let text = String::from_utf8(line).map_err(|_| anyhow::anyhow!("{}: line {number} is no text", path.display()))?;
    Ok(Some(text))
}

/// Destination of the points.
enum Target {
    Database(Box<Database>),
    Server(Remote),
}

/// A database file without other writers.
struct Database {
    _tenancy: DatabaseLock,
    runtime: tokio::runtime::Runtime,
    store: Store,
    clock: SystemClock,
}

impl Database {
    fn open(path: &Path) -> anyhow::Result<Self> {
        // Lock the database before opening it, because opening migrates the tables.
        let tenancy = DatabaseLock::take(path).map_err(|error| match error {
            error @ TenancyError::OperatorTime(_) => anyhow::Error::new(error)
                .context("nothing was gathered; give --server with the address of a server that has it"),
            error => error.into(),
        })?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let opened = runtime.block_on(Store::open(tenancy.database()));
        let store = opened.with_context(|| format!("cannot open the database {}", path.display()))?;
        Ok(Self { _tenancy: tenancy, runtime, store, clock: SystemClock::start() })
    }
}

impl Target {
    /// Stores the collected lines and clears them.
    fn store(&mut self, lines: &mut Lines) -> anyhow::Result<Gathered> {
        let gathered = match self {
            Self::Database(database) => {
                let now = database.clock.now();
                let change = Change::for_command("points", "sweep", lines.sheet().sweep.id().to_string());
                database.runtime.block_on(async {
                    let gathered = gathering::store(&database.store, lines, now).await?;
                    database.store.writer().record_change(COMMAND_LINE, &change, now).await?;
                    Ok::<_, StoreError>(gathered)
                })?
            }
            Self::Server(remote) => {
                let sweep = lines.sheet().sweep.to_json();
                let stored: StoredSweep = remote.post(api::path::SWEEPS, "application/json", sweep)?;
                remote.post(&api::path::sweep_points(&stored.id), "application/jsonl", lines.text())?
            }
        };
        lines.clear();
        Ok(gathered)
    }

    fn close(self) {
        if let Self::Database(database) = self {
            database.runtime.block_on(database.store.close());
        }
    }
}
