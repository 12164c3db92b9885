//! Builds a schedule request from flags and files.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use planner::scenario::FieldError;
use planner::schedule::csv::{self, MAX_BYTES};
use planner::schedule::{ChunksRule, ScheduleKind};
use planner::schedule_comparison::{
    ActionTimes, Activations, ImportedTable, Per, PerStage, SCHEMA, ScheduleRequest, parse_times,
};

use crate::config::ScheduleArguments;

/// Tolerance for the sum of --input-grad and --weight-grad relative to --backward.
const ROUNDING: f64 = 1e-6;

/// Error of a schedule request.
#[derive(Debug)]
pub enum RequestError {
    /// Invalid fields of a times file or of the request.
    Fields(Vec<FieldError>),
    Other(anyhow::Error),
}

impl From<Vec<FieldError>> for RequestError {
    fn from(errors: Vec<FieldError>) -> Self {
        Self::Fields(errors)
    }
}

impl From<anyhow::Error> for RequestError {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

/// Builds the request for the given arguments.
pub fn request(arguments: &ScheduleArguments) -> Result<ScheduleRequest, RequestError> {
    check_flags(arguments)?;
    let imported = arguments.import.iter().map(PathBuf::as_path).map(table).collect::<anyhow::Result<Vec<_>>>()?;
    let shape = imported.first().and_then(|table| csv::read(&table.csv).ok());
    let table_size = |size: fn(&csv::Imported) -> usize| shape.as_ref().map(|imported| size(imported) as u32);
    let (ranks, microbatches) = if arguments.kinds.is_empty() {
        // An invalid table is reported later, so default sizes are sufficient here.
        let ranks = arguments.ranks.or_else(|| table_size(|imported| imported.schedule.ranks())).unwrap_or(1);
        (ranks, arguments.microbatches.or_else(|| table_size(|imported| imported.schedule.microbatches)).unwrap_or(1))
    } else {
        let missing = "is needed for the schedules that are to be made";
        (
            arguments.ranks.with_context(|| format!("--ranks {missing}"))?,
            arguments.microbatches.with_context(|| format!("--microbatches {missing}"))?,
        )
    };
    let times = times(arguments)?;
    Ok(ScheduleRequest {
        schema: SCHEMA.to_owned(),
        ranks,
        microbatches,
        chunks: arguments.chunks,
        group: arguments.group,
        times,
        activations: Activations::default(),
        memory_cap: arguments.memory_cap,
        kinds: arguments.kinds.clone(),
        imported,
    })
}

fn check_flags(arguments: &ScheduleArguments) -> anyhow::Result<()> {
    let takes_chunks = |kind: &ScheduleKind| matches!(kind.chunks_rule(), ChunksRule::Any { .. });
    if let Some(chunks) = arguments.chunks {
        let fits = |kind: &ScheduleKind| takes_chunks(kind) || kind.chunks(None) == chunks as usize;
        ensure!(arguments.kinds.iter().any(fits), "--chunks is for schedules with model chunks");
    }
    if arguments.group.is_some() {
        ensure!(arguments.kinds.iter().any(|kind| kind.has_groups()), "--group is for the interleaved schedules");
    }
    Ok(())
}

fn times(arguments: &ScheduleArguments) -> Result<ActionTimes, RequestError> {
    let mut times = match &arguments.times {
        Some(path) => {
            let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            let below = |error: FieldError| FieldError::new(&format!("/times{}", error.pointer), error.detail);
            parse_times(&text).map_err(|errors| errors.into_iter().map(below).collect::<Vec<_>>())?
        }
        None => times_from_flags(arguments)?,
    };
    if let Some(communication) = arguments.communication {
        times.communication = communication;
    }
    if arguments.overlapped.is_some() {
        times.overlapped = arguments.overlapped;
    }
    if arguments.per_rank {
        times.per = Per::Rank;
    }
    Ok(times)
}

fn times_from_flags(arguments: &ScheduleArguments) -> anyhow::Result<ActionTimes> {
    let (input, weight) = match (arguments.backward, arguments.input_grad, arguments.weight_grad) {
        (Some(backward), None, None) => (backward / 2.0, backward / 2.0),
        (None, Some(input), Some(weight)) => (input, weight),
        (Some(backward), Some(input), Some(weight)) => {
            ensure!((input + weight - backward).abs() < ROUNDING, "--backward is not --input-grad plus --weight-grad");
            (input, weight)
        }
        _ => bail!("give --backward, or --input-grad and --weight-grad"),
    };
    Ok(ActionTimes {
        per: Per::Stage,
        forward: PerStage::Equal(arguments.forward.context("--forward is needed")?),
        input_grad: PerStage::Equal(input),
        weight_grad: PerStage::Equal(weight),
        communication: 0.0,
        overlapped: None,
    })
}

fn table(path: &Path) -> anyhow::Result<ImportedTable> {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    Ok(ImportedTable { name, csv: read(path)? })
}

/// Reads a table up to one byte beyond the size limit. A longer table is refused later because of
/// its size.
pub(super) fn read(path: &Path) -> anyhow::Result<String> {
    let limit = MAX_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().take(limit).read_to_end(&mut bytes).context("cannot read standard input")?;
    } else {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        file.take(limit).read_to_end(&mut bytes).with_context(|| format!("cannot read {}", path.display()))?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Maps a field pointer to its flag, or to the file and the pointer inside it.
pub(super) fn field_location(pointer: &str, arguments: &ScheduleArguments) -> String {
    match (pointer.strip_prefix("/times"), &arguments.times) {
        (Some(below), Some(path)) => format!("{} {below}", path.display()),
        (Some(below @ ("/input_grad" | "/weight_grad")), None) if arguments.backward.is_some() => {
            format!("--backward ({})", &below[1..])
        }
        (Some(below), None) if !below.is_empty() => flag(below),
        _ => flag(pointer),
    }
}

fn flag(pointer: &str) -> String {
    let name = pointer.trim_start_matches('/');
    match name.split('/').next() {
        Some("kinds") => "KIND".to_owned(),
        Some("imported") => "--import".to_owned(),
        Some(name @ ("" | "times")) => format!("times {name}").trim_end().to_owned(),
        Some(name) => format!("--{}", name.replace('_', "-")),
        None => pointer.to_owned(),
    }
}
