//! `planscope trace`: time by kernel, phase and step, difference between two traces, and the
//! straggler of a run.

mod text;

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use ingest::trace::{Limits, Problem, TimeUnit, read, recorded};
use planner::trace_comparison::{self, Recorded};
use serde::Serialize;

use crate::config::{TraceArguments, Unit};
use crate::traces::tables::{self, Table};

/// Returns the activity of a rank in a trace.
pub(crate) fn activity(file: &Path, rank: Option<u32>) -> anyhow::Result<Recorded> {
    let ranks = load(file, Unit::Us)?.ranks;
    // The only device has the rank that the user states.
    let wanted = rank.filter(|_| ranks.len() > 1);
    one(ranks, wanted)
}

/// Reads the traces and writes tables to standard output.
pub fn run(arguments: &TraceArguments) -> anyhow::Result<ExitCode> {
    let mut ranks = Vec::new();
    for file in &arguments.files {
        let found = load(file, arguments.unit)?;
        ranks.push(found);
    }
    let mut out = std::io::stdout().lock();
    if arguments.ranks {
        let ranks = numbered(ranks)?;
        let most = if arguments.csv.is_some() { usize::MAX } else { arguments.rows };
        let report = trace_comparison::ranks(&ranks, most)?;
        return show(&mut out, arguments, &report, tables::ranks(&report), &text::straggler(&report));
    }
    let ranks: Vec<Vec<Recorded>> = ranks.into_iter().map(|file| file.ranks).collect();
    if arguments.compare {
        let [before, after] = <[Vec<Recorded>; 2]>::try_from(ranks)
            .map_err(|files| anyhow::anyhow!("--compare takes two traces, not {}", files.len()))?;
        let (before, after) = (one(before, arguments.rank)?, one(after, arguments.rank)?);
        let difference = trace_comparison::difference(&before, &after);
        return show(&mut out, arguments, &difference, tables::difference(&difference), &text::difference(&difference));
    }
    let all = ranks.iter().flatten().filter(|rank| arguments.rank.is_none_or(|number| number == rank.rank));
    let times: Vec<_> = all.map(trace_comparison::times).collect();
    if times.is_empty() {
        bail!("no file has kernels or copies of a device{}", arguments.rank.map_or("", |_| " of this rank"));
    }
    show(&mut out, arguments, &times, tables::times(&times), &text::times(&times))
}

/// Writes JSON, one table as CSV, or all tables as text after an introduction.
fn show(
    out: &mut impl Write,
    arguments: &TraceArguments,
    document: &impl Serialize,
    tables: Vec<Table>,
    introduction: &str,
) -> anyhow::Result<ExitCode> {
    if arguments.json {
        serde_json::to_writer_pretty(&mut *out, document)?;
        writeln!(out)?;
    } else if let Some(id) = &arguments.csv {
        let table = tables::chosen(tables, id).map_err(anyhow::Error::msg)?;
        write!(out, "{}", table.csv())?;
    } else {
        write!(out, "{introduction}")?;
        for table in tables.iter().filter(|table| !table.rows.is_empty()) {
            write!(out, "\n{}", table.text(arguments.rows))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Ranks of a file.
struct Loaded {
    name: String,
    ranks: Vec<Recorded>,
    /// Rank that the file or its name states.
    stated: Option<u32>,
}

fn load(file: &Path, unit: Unit) -> anyhow::Result<Loaded> {
    let unit = match unit {
        Unit::Us => TimeUnit::Microseconds,
        Unit::Ms => TimeUnit::Milliseconds,
        Unit::Ns => TimeUnit::Nanoseconds,
    };
    let name = file.file_name().map_or_else(|| file.display().to_string(), |name| name.to_string_lossy().into_owned());
    let source = File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
    let trace = read(source, unit, &Limits::default()).with_context(|| file.display().to_string())?;
    if trace.report.cut {
        eprintln!("{}: the file is truncated; the part before the end was read", file.display());
    }
    for Problem { reason, count, .. } in &trace.report.problems {
        eprintln!("{}: {reason} ({count} times)", file.display());
    }
    if trace.report.overflowed > 0 {
        eprintln!(
            "{}: {} slices overlap on one thread or stream; several ranks or devices in one file need their own process",
            file.display(),
            trace.report.overflowed
        );
    }
    let stated = trace.distributed.as_ref().and_then(|job| job.rank);
    let stated = stated.or_else(|| rank_in(&name));
    let found = recorded(&trace, &name, stated);
    if found.is_empty() {
        eprintln!("{}: no kernels or copies of a device", file.display());
    }
    Ok(Loaded { name, ranks: found, stated })
}

/// Returns the number after "rank" in a file name.
fn rank_in(name: &str) -> Option<u32> {
    let lower = name.to_ascii_lowercase();
    let after = lower.split("rank").nth(1)?.trim_start_matches(['-', '_', '.', ' ']);
    let digits = after.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(after.len());
    after[..digits].parse().ok()
}

/// Returns all ranks. Files that state no rank have the rank 0, so equal ranks are replaced by
/// positions.
///
/// # Errors
/// Two files state the same rank.
fn numbered(files: Vec<Loaded>) -> anyhow::Result<Vec<Recorded>> {
    for (position, file) in files.iter().enumerate() {
        let same = files[..position].iter().find(|other| file.stated.is_some() && other.stated == file.stated);
        if let (Some(rank), Some(other)) = (file.stated, same) {
            bail!(
                "{} and {} both state rank {rank}: they are of the same rank, or of different runs",
                other.name,
                file.name
            );
        }
    }
    let is_stated = files.iter().any(|file| file.stated.is_some());
    let mut ranks: Vec<Recorded> = files.into_iter().flat_map(|file| file.ranks).collect();
    if !is_stated && ranks.len() > 1 && ranks.iter().all(|rank| rank.rank == 0) {
        for (position, rank) in (0..).zip(&mut ranks) {
            rank.rank = position;
        }
    }
    Ok(ranks)
}

/// Returns a rank, by default the only one or the first.
fn one(mut ranks: Vec<Recorded>, rank: Option<u32>) -> anyhow::Result<Recorded> {
    let numbers: Vec<String> = ranks.iter().map(|rank| rank.rank.to_string()).collect();
    if ranks.is_empty() {
        bail!("a file has no kernels or copies of a device");
    }
    let position = match rank {
        Some(rank) => ranks.iter().position(|recorded| recorded.rank == rank),
        None => Some(0),
    };
    let Some(position) = position else {
        bail!("{} has the ranks {}", ranks[0].name, numbers.join(", "));
    };
    if rank.is_none() && ranks.len() > 1 {
        eprintln!("{}: rank {} of the ranks {}; choose with --rank", ranks[0].name, numbers[0], numbers.join(", "));
    }
    Ok(ranks.swap_remove(position))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_state_ranks() {
        for (name, rank) in [
            ("rank3.pt.trace.json.gz", Some(3)),
            ("job_Rank-12.Apr.json", Some(12)),
            ("rank_007.sqlite", Some(7)),
            ("rank.json", None),
            ("trace.json", None),
        ] {
            assert_eq!(rank_in(name), rank, "{name}");
        }
    }

    #[test]
    fn ranks_without_numbers_are_numbered() {
        let with = |rank| vec![Recorded { rank, ..Recorded::default() }];
        let loaded =
            |(ranks, stated): (Vec<Recorded>, Option<u32>)| Loaded { name: "trace.json".to_owned(), ranks, stated };
        let all = |files: Vec<(Vec<Recorded>, Option<u32>)>| numbered(files.into_iter().map(loaded).collect());
        let ranks = |files: Vec<Vec<Recorded>>| {
            let files = files.into_iter().map(|ranks| (ranks, None)).collect();
            all(files).expect("different ranks").iter().map(|rank| rank.rank).collect::<Vec<_>>()
        };
        let same = all(vec![(with(0), Some(0)), (with(0), Some(0))]).expect_err("one rank").to_string();
        assert!(same.contains("both state rank 0"), "{same}");
        assert_eq!(ranks(vec![with(0), with(0), with(0)]), [0, 1, 2]);
        assert_eq!(ranks(vec![with(5), with(2)]), [5, 2]);
        let two = || [with(5), with(2)].concat();
        assert_eq!(one(two(), Some(2)).expect("rank 2").rank, 2);
        assert_eq!(one(two(), None).expect("the first").rank, 5);
        assert!(one(two(), Some(7)).expect_err("no rank 7").to_string().contains("5, 2"));
    }
}
