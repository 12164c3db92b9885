//! Megatron-LM and derived projects (`training_log` in megatron/training/training.py, BLOOM,
//! Megatron-DeepSpeed), and NeMo 2, which uses the same step line format.

use super::Limits;
use super::clock::time_us;
use super::metric::Measure;
use super::point::{Memory, Named, Note, NoteKind, Point, RankTime, Source, Timer};
use super::quantity::{duration_s, quantity};
use super::reading::{Draft, Reading, Table, Tear};
use super::steps::Mark;
use super::text::{clip, leading_digits, number};

/// Maximum step number. JSON readers round larger integers.
const MAX_STEPS: u64 = 1 << 53;

/// Start position and numbers of a step line.
struct Header<'a> {
    before: &'a str,
    step: &'a str,
    total: &'a str,
    after: &'a str,
}

/// Finds the first `iteration 10/ 1000 |`.
fn header(text: &str) -> Option<Header<'_>> {
    const WORD: &str = "iteration";
    let mut from = 0;
    while let Some(found) = text[from..].find(WORD) {
        let at = from + found;
        from = at + WORD.len();
        let parts = leading_digits(&text[from..]).and_then(|(step, rest)| {
            let rest = rest.trim_start().strip_prefix('/')?;
            let (total, rest) = leading_digits(rest)?;
            Some((step, total, rest.trim_start().strip_prefix('|')?))
        });
        if let Some((step, total, after)) = parts {
            return Some(Header { before: &text[..at], step, total, after });
        }
    }
    None
}

/// Parses a step line.
pub(super) fn step(text: &str, limits: &Limits) -> Option<Reading> {
    let Header { before, step, total, after } = header(text)?;
    if header(after).is_some() {
        return Some(Reading::Torn(Tear::Mixed));
    }
    // NeMo counts from zero, including the last step number.
    let nemo = before.trim_end().ends_with(',') && before.contains("Training epoch");
    let step_offset = u64::from(nemo);
    let Some(step) = step.parse::<u64>().ok().filter(|&step| step < MAX_STEPS) else {
        return Some(Reading::Skipped("the number of the iteration is beyond 2^53"));
    };
    let source = if nemo { Source::Nemo2 } else { Source::Megatron };
    let total = total.parse::<u64>().ok().map(|total| total.saturating_add(step_offset)).filter(|&total| total > 0);
    let mut draft = Draft::new(Point {
        source,
        step: step + step_offset,
        total_steps: total,
        time_us: time_us(before),
        ..Point::default()
    });
    // GPT-NeoX prints samples/sec before the iteration.
    if let Some((_, rate)) = before.rsplit_once("samples/sec:") {
        draft.set_text("samples/sec", rate.trim_end_matches([' ', '|']), None, limits);
    }
    let (mut is_read, mut is_unread) = (false, false);
    for (name, value) in pairs(after) {
        let Some(value) = value else { return Some(Reading::Torn(Tear::Cut)) };
        draft.point.is_megatron_flops |= name.ends_with("(TFLOP/s/GPU)");
        // Primus prints the average after the value: `435.3 (avg 435.1)`.
        let value = value.split_once(" (avg ").map_or(value, |(value, _)| value);
        // These trainers never group thousands, so a comma indicates text from another line.
        if is_missing(value) || (!value.contains(',') && draft.set_text(name, value, None, limits)) {
            is_read = true;
            continue;
        }
        // ms-swift prints `remaining time: 1h 3m 4s`.
        if let Some(seconds) = duration_s(value) {
            draft.set_text(&format!("{name} (s)"), &seconds.to_string(), None, limits);
            is_read = true;
            continue;
        }
        // Primus prints the step value and the average: 2701.3/2712.7.
        if slashed(&mut draft, name, value, limits) {
            is_read = true;
        } else {
            is_unread = true;
            draft.leave_out();
        }
    }
    // Without any readable value, the text between the bars is of another writer.
    if is_unread && !is_read {
        return Some(Reading::Torn(Tear::Value));
    }
    // NeMo resets the iteration each epoch but not the global step. Both count from zero.
    let global = draft.point.others.iter().find(|other| nemo && other.name == "global_step").map(|other| other.value);
    if let Some(global) = global.filter(|global| (0.0..9e15).contains(global)) {
        let step = global as u64 + 1;
        if step != draft.point.step {
            (draft.point.step, draft.point.total_steps) = (step, None);
        }
    }
    Some(draft.step(Mark::Named))
}

/// Parses values separated by slashes: either with a name for each value (`mem usage/free/total:
/// 150GB/41GB/191GB`), or a value and its average. Returns false if a value is not a number.
fn slashed(draft: &mut Draft, name: &str, value: &str, limits: &Limits) -> bool {
    // Primus: `tokens/s/GPU inst/harmonic mean: 4993.4/4991.5`.
    let name = name.split_once(" inst/").map_or(name, |(name, _)| name);
    let values: Vec<&str> = value.split('/').collect();
    if values.len() < 2 || values.iter().any(|value| quantity(value).is_none()) {
        return false;
    }
    let (names, device) = (name.split('/').collect::<Vec<_>>(), Measure::parse("device_memory GB").ok());
    if names.len() == values.len() && !name.contains('(') {
        for (name, value) in names.iter().zip(values) {
            let preferred = device.filter(|_| name.ends_with("mem usage"));
            draft.set_text(name, value, preferred, limits);
        }
    } else {
        draft.set_text(name, values[0], None, limits);
        draft.set_text(&format!("{name} average"), values[1], None, limits);
    }
    true
}

/// Parses the line that Megatron-Bridge prints before a step line: `Step Time : 3.28s GPU utilization: 435.5MODEL_TFLOP/s/GPU`.
pub(super) fn bridge(text: &str, limits: &Limits) -> Option<Reading> {
    let (before, rest) = text.split_once("Step Time :")?;
    let (seconds, rest) = rest.split_once("GPU utilization:")?;
    let unit = ["MODEL_TFLOP/s/GPU", "TFLOP/s/GPU"].into_iter().find_map(|unit| rest.split_once(unit));
    let (Some(seconds), Some(tflops)) =
        (seconds.trim().strip_suffix('s').and_then(number), unit.and_then(|(value, _)| number(value.trim())))
    else {
        return Some(Reading::Torn(Tear::Cut));
    };
    let mut draft = Draft::new(Point { source: Source::Megatron, time_us: time_us(before), ..Point::default() });
    draft.set("iteration-time", seconds, limits);
    draft.set("tflops", tflops, limits);
    draft.point.is_megatron_flops = true;
    Some(Reading::BeforeStep(Box::new(draft.point)))
}

/// Parses the FLOPS line that Megatron-DeepSpeed prints after a step.
pub(super) fn flops(text: &str, limits: &Limits) -> Option<Reading> {
    let (_, rest) = text.split_once("Effective Tera Flops per GPU:")?;
    let value = rest.split_whitespace().next().and_then(number);
    let Some(value) = value else { return Some(Reading::Torn(Tear::Value)) };
    let mut draft = Draft::new(Point::default());
    draft.set("tflops", value, limits);
    Some(draft.step(Mark::Open))
}

/// Parses memory per rank in MiB: `[Rank 22] (after 1 iterations) memory (MB) | allocated: ...`.
pub(super) fn memory(text: &str) -> Option<Reading> {
    let (before, after) = text.split_once("memory (MB)")?;
    let after = after.trim_start().strip_prefix('|')?;
    let rank = before.split_once("[Rank ").and_then(|(_, rest)| leading_digits(rest)?.0.parse().ok());
    let step = before.split_once("after ").and_then(|(_, rest)| leading_digits(rest)?.0.parse().ok());
    let mut memory = Memory { rank, ..Memory::default() };
    for (name, value) in pairs(after) {
        let Some(gib) = value.and_then(number).filter(|value| value.is_finite()).map(|mebibytes| mebibytes / 1024.0)
        else {
            return Some(Reading::Torn(Tear::Value));
        };
        let slot = match name {
            "allocated" => &mut memory.allocated_gib,
            "max allocated" => &mut memory.max_allocated_gib,
            "reserved" => &mut memory.reserved_gib,
            "max reserved" => &mut memory.max_reserved_gib,
            "total device memory used" => &mut memory.device_gib,
            _ => continue,
        };
        *slot = Some(gib);
    }
    Some(if memory.is_empty() { Reading::Torn(Tear::Cut) } else { Reading::Memory { step, memory } })
}

/// Parses held-out losses: ` validation loss at iteration 1000 | lm loss value: 2.5 | lm loss PPL:
/// 12.2 |`.
pub(super) fn validation(text: &str, limits: &Limits) -> Option<Reading> {
    let (_, rest) = text.split_once("validation loss at ")?;
    let (title, rest) = rest.split_once('|')?;
    let step = title.split_once("iteration ").and_then(|(_, rest)| leading_digits(rest)?.0.parse().ok());
    let mut values = Vec::new();
    for (name, value) in pairs(rest).take(limits.values) {
        match value.and_then(number) {
            Some(value) if value.is_finite() => values.push(Named { name: clip(name, limits.name_chars), value }),
            Some(_) => {}
            None => return Some(Reading::Torn(Tear::Value)),
        }
    }
    let name = clip(&format!("loss at {}", title.trim()), limits.name_chars);
    let time_us = time_us(text);
    Some(Reading::Note(Note { kind: NoteKind::Validation, name, step, time_us, values, text: None }))
}

/// Parses the timers of the printing rank: `time (ms) | forward-compute: 247.63 | ...`.
pub(super) fn timers(text: &str, limits: &Limits) -> Option<Reading> {
    let rest = text.trim_start().strip_prefix("time (ms)")?;
    let mut timers = Vec::new();
    for (name, value) in pairs(rest) {
        let Some(time) = value.and_then(number) else { return Some(Reading::Torn(Tear::Value)) };
        timers.push(Timer {
            name: clip(name, limits.name_chars),
            time_s: finite(time).map(|time| time / 1e3),
            ..Timer::default()
        });
    }
    Some(Reading::Timers(timers))
}

/// Parses the header line of a timer table.
pub(super) fn table(text: &str) -> Option<Table> {
    let title = text.trim().strip_suffix("across ranks (ms):")?.trim_end();
    [("(min, max) time", Table::MinMax), ("max time", Table::Max), ("times", Table::Ranks)]
        .into_iter()
        .find_map(|(form, table)| title.ends_with(form).then_some(table))
}

/// Parses a row of a timer table.
pub(super) fn row(text: &str, table: &Table, limits: &Limits) -> Option<Reading> {
    let text = text.trim();
    let timer =
        |name: &str| Timer { name: clip(name.trim_end_matches(['.', ' ']), limits.name_chars), ..Timer::default() };
    match table {
        Table::None => None,
        Table::MinMax => {
            let (name, values) = text.strip_suffix(')')?.rsplit_once(": (")?;
            let (min, max) = values.split_once(',')?;
            let [min_s, max_s] = [number(min)?, number(max)?].map(|time| finite(time).map(|time| time / 1e3));
            Some(Reading::Timers(vec![Timer { min_s, max_s, ..timer(name) }]))
        }
        Table::Max => {
            let (name, value) = text.rsplit_once(": ")?;
            let max_s = finite(number(value)?).map(|time| time / 1e3);
            // Row names are padded with dots, unless the name leaves no space for padding.
            (name.ends_with('.') || name.len() >= 47).then(|| Reading::Timers(vec![Timer { max_s, ..timer(name) }]))
        }
        Table::Ranks => {
            if let Some((rank, value)) = text.strip_prefix("rank").and_then(|rest| rest.split_once(':')) {
                let (rank, time) = (rank.trim().parse().ok()?, number(value)?);
                return Some(Reading::RankTime(finite(time).map(|time| RankTime { rank, time_s: time / 1e3 })));
            }
            let name = text.strip_suffix(':').filter(|name| !name.is_empty() && !name.contains(' '))?;
            Some(Reading::Timers(vec![timer(name)]))
        }
    }
}

/// Splits text at bars into names and values. Early versions of Megatron-LM print a blank in place of
/// the colon. Other parts without a colon have no value.
fn pairs(text: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    text.split('|').map(str::trim).filter(|part| !part.is_empty()).map(|part| {
        match part.rsplit_once(": ").or_else(|| part.rsplit_once(':')) {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => match part.rsplit_once(' ') {
                Some((name, value)) if number(value).is_some() => (name.trim(), Some(value)),
                _ => (part, None),
            },
        }
    })
}

fn is_missing(value: &str) -> bool {
    matches!(value, "None" | "N/A")
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
