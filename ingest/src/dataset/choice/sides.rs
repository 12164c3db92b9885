//! Token counts for the parts of a sample: prompt, completion, and parts that may or may not be
//! included in them.

use super::super::Kind;
use super::super::names::{self, Side};
use super::super::number::{Notation, Number};
use super::super::profile::{self, Profile};
use super::super::value::Row;
use super::super::{Meaning, token_ids};
use super::automatic::{among, best};

/// Returns the prompt column and the completion column.
pub(super) fn sides(profiles: &[Profile]) -> (Option<usize>, Option<usize>) {
    let by_name = |beside: Option<usize>, known: [Side; 2]| {
        let beside = &profiles[beside?].name;
        // A constant number may be a limit.
        let varies = |&index: &usize| !profiles[index].is_constant;
        known.into_iter().find_map(|side| columns(profiles, beside, side).into_iter().find(varies))
    };
    let (prompt, completion) = (best(profiles, Meaning::Prompt), best(profiles, Meaning::Completion));
    if (prompt, completion) == (None, None) {
        let is_list = |own: &Profile, name: &str| own.kind == Kind::ListOfNumbers && names::is_same(&own.name, name);
        let pair = token_ids::pair(|name| profiles.iter().position(|own| is_list(own, name)));
        return pair.map_or((None, None), |(prompt, answer)| (Some(prompt), Some(answer)));
    }
    // The complete prompt is preferred to a part of it.
    let whole = prompt.and_then(|prompt| match names::part_of_sample(&profiles[prompt].name) {
        Some(Side::InPrompt) => columns(profiles, &profiles[prompt].name, Side::Prompt).first().copied(),
        _ => None,
    });
    (
        whole.or(prompt).or_else(|| by_name(completion, [Side::Prompt, Side::InPrompt])),
        completion.or_else(|| by_name(prompt, [Side::Completion, Side::Completion])),
    )
}

/// Returns columns of parts that prompt and completion do not include. This holds if the prompt
/// column counts only a part, or if a part exceeds the complete side.
pub(super) fn further(profiles: &[Profile], prompt: usize, completion: usize, head: &[&Row<'_>]) -> Vec<usize> {
    if profiles[prompt].kind != Kind::Number {
        return Vec::new();
    }
    let is_part = names::part_of_sample(&profiles[prompt].name) == Some(Side::InPrompt);
    let is_larger = |part: usize, whole: usize| {
        head.iter().any(|row| number(row, profiles, part).zip(number(row, profiles, whole)).is_some_and(|(a, b)| a > b))
    };
    let of = |side: Side, whole: usize| {
        let all = columns(profiles, &profiles[whole].name, side).into_iter();
        all.filter(|&part| part != prompt && part != completion).collect::<Vec<usize>>()
    };
    let before = of(Side::InPrompt, prompt).into_iter().filter(|&part| is_part || is_larger(part, prompt));
    let behind = of(Side::InCompletion, completion).into_iter().filter(|&part| is_larger(part, completion));
    before.chain(behind).collect()
}

/// Returns the count columns of one side in the same object as the given column.
fn columns(profiles: &[Profile], beside: &str, side: Side) -> Vec<usize> {
    among(profiles, beside, &|name| names::part_of_sample(name) == Some(side))
}

fn number(row: &Row<'_>, profiles: &[Profile], index: usize) -> Option<f64> {
    let own = &profiles[index];
    let notation = *own.notation.as_ref().unwrap_or(&Notation::Point);
    profile::number(row.value(index, &own.name), notation).map(Number::value)
}
