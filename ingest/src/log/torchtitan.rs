//! torchtitan: `step: 20  loss: 11.83506  grad_norm:  9.6669  memory: 48.87GiB(51.44%)  tps: 4,376  ...`.
//!
//! tps (of older versions wps) counts the tokens of one device. No step time is printed.

use super::Limits;
use super::point::{Memory, Named, Note, NoteKind, Point, Source};
use super::reading::{Draft, Reading};
use super::steps::Mark;
use super::text::{clip, leading_digits, number, number_with_commas, time_us};

/// A line of a step, or of validation.
pub(super) fn step(text: &str, rank: Option<u32>, limits: &Limits) -> Option<Reading> {
    const WORD: &str = "step:";
    let at = text.match_indices(WORD).map(|(at, _)| at).find(|&at| {
        let word_before = text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let rest = leading_digits(&text[at + WORD.len()..]).map(|(_, rest)| rest.trim_start());
        !word_before && rest.is_some_and(|rest| rest.starts_with("loss:"))
    })?;
    let (before, after) = (&text[..at], &text[at + WORD.len()..]);
    let (step, rest) = leading_digits(after)?;
    if rest.contains(WORD) {
        return Some(Reading::Torn);
    }
    let Some(step) = step.parse::<u64>().ok().filter(|&step| step < 1 << 53) else {
        return Some(Reading::Skipped("the number of the step is beyond 2^53"));
    };
    let mut draft =
        Draft::new(Point { source: Source::Torchtitan, step, time_us: time_us(before), ..Point::default() });
    let mut words = rest.split_whitespace();
    while let Some(word) = words.next() {
        let Some(name) = word.strip_suffix(':') else { return Some(Reading::Torn) };
        let Some(value) = words.next() else { return Some(Reading::Torn) };
        if !take(&mut draft, name, value, rank, limits) {
            return Some(Reading::Torn);
        }
    }
    if before.trim_end().ends_with("validate") {
        let loss = draft.point.loss.map(|value| Named { name: clip("loss", limits.name_chars), value });
        let values = loss.into_iter().collect();
        let (name, time_us) = ("validate".to_owned(), draft.point.time_us);
        return Some(Reading::Note(Note {
            kind: NoteKind::Validation,
            name,
            step: Some(step),
            time_us,
            values,
            text: None,
        }));
    }
    Some(draft.step(Mark::Named))
}

/// Whether the value is one.
fn take(draft: &mut Draft, name: &str, value: &str, rank: Option<u32>, limits: &Limits) -> bool {
    if name == "memory" {
        let Some((reserved, percent)) = value.split_once("GiB(") else { return false };
        let (Some(reserved), Some(percent)) = (number(reserved), percent.strip_suffix("%)").and_then(number)) else {
            return false;
        };
        if reserved.is_finite() {
            draft.point.memory.push(Memory { rank, max_reserved_gib: Some(reserved), ..Memory::default() });
        }
        draft.set("memory (%)", percent, limits);
        return true;
    }
    if value == "N/A" {
        return true;
    }
    let (name, value) = match value.strip_suffix('%') {
        Some(percent) => (format!("{name} (%)"), number(percent)),
        None => (name.to_owned(), number_with_commas(value)),
    };
    value.map(|value| draft.set(&name, value, limits)).is_some()
}
