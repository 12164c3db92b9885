//! torchtitan: `step: 20  loss: 11.83506  grad_norm:  9.6669  memory: 48.87GiB(51.44%)  tps: 4,376
//! ...`.
//!
//! tps (wps in older versions) is tokens per second per device. No step time is printed.

use super::Limits;
use super::clock::time_us;
use super::metric::{Measure, Metric, measure};
use super::pace::Job;
use super::point::{Memory, Named, Note, NoteKind, Point, Source};
use super::reading::{Draft, Reading, Tear};
use super::steps::Mark;
use super::text::{clip, leading_digits, number, number_with_commas};

/// Parses a step line or validation line.
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
        return Some(Reading::Torn(Tear::Mixed));
    }
    let Some(step) = step.parse::<u64>().ok().filter(|&step| step < 1 << 53) else {
        return Some(Reading::Skipped("the number of the step is beyond 2^53"));
    };
    let mut draft =
        Draft::new(Point { source: Source::Torchtitan, step, time_us: time_us(before), ..Point::default() });
    let mut terms = rest.split_whitespace();
    while let Some(word) = terms.next() {
        let Some(name) = word.strip_suffix(':') else { return Some(Reading::Torn(Tear::Value)) };
        let Some(value) = terms.next() else { return Some(Reading::Torn(Tear::Cut)) };
        if !take(&mut draft, name, value, rank, limits) {
            return Some(Reading::Torn(Tear::Value));
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

/// Parses the job size before the first step: `local batch size 8, global batch size 64, gradient
/// accumulation steps 1, sequence length 8192, total steps 1000` and `Building 2-D device mesh with
/// ['pp', 'tp'], [2, 4]`.
pub(super) fn job(text: &str) -> Option<Job> {
    let after = |word: &str| leading_digits(text.split_once(word)?.1)?.0.parse::<u64>().ok().filter(|&count| count > 0);
    let mut job = Job::default();
    if let Some((_, mesh)) = text.split_once("device mesh with") {
        let (_, sizes) = mesh.rsplit_once('[')?;
        let sizes: Option<Vec<u64>> =
            sizes.split_once(']')?.0.split(',').map(|size| size.trim().parse().ok()).collect();
        job.devices = sizes?.into_iter().try_fold(1_u64, u64::checked_mul).filter(|&devices| devices > 0);
        return Some(job);
    }
    job.global_batch = after("global batch size");
    job.sequence = after("sequence length");
    (job.global_batch.is_some() && job.sequence.is_some()).then_some(job)
}

/// Sets a value. Returns false if it is not a number.
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
    let preferred = matches!(&*name, "tps" | "wps").then_some(Measure { metric: Metric::DeviceTokenRate, per: 1.0 });
    // Ranks without the last pipeline stage have no loss and print -1.
    if name == "loss" && value.is_some_and(|loss| loss.to_bits() == (-1.0_f64).to_bits()) {
        return true;
    }
    value.map(|value| draft.set_as(preferred.or_else(|| measure(&name)), &name, value, limits)).is_some()
}
