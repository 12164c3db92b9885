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
    let by_name = |sibling: Option<usize>, known: [Side; 2]| {
        let sibling_name = &profiles[sibling?].name;
        // A constant number may be a limit.
        let varies = |&index: &usize| !profiles[index].is_constant;
        known.into_iter().find_map(|side| columns(profiles, sibling_name, side).into_iter().find(varies))
    };
    let (prompt, completion) = (best(profiles, Meaning::Prompt), best(profiles, Meaning::Completion));
    if (prompt, completion) == (None, None) {
        let is_list =
            |profile: &Profile, name: &str| profile.kind == Kind::NumberList && names::is_same(&profile.name, name);
        let pair = token_ids::pair(|name| profiles.iter().position(|profile| is_list(profile, name)));
        return pair.map_or((None, None), |(prompt, response)| (Some(prompt), Some(response)));
    }
    // The complete prompt is preferred to a part of it.
    let full_prompt = prompt.and_then(|prompt| match names::sample_part(&profiles[prompt].name) {
        Some(Side::InPrompt) => columns(profiles, &profiles[prompt].name, Side::Prompt).first().copied(),
        _ => None,
    });
    (
        full_prompt.or(prompt).or_else(|| by_name(completion, [Side::Prompt, Side::InPrompt])),
        completion.or_else(|| by_name(prompt, [Side::Completion, Side::Completion])),
    )
}

/// Returns columns of parts that prompt and completion do not include. This holds if the prompt
/// column counts only a part, or if a part exceeds the complete side.
pub(super) fn further(profiles: &[Profile], prompt: usize, completion: usize, head: &[&Row<'_>]) -> Vec<usize> {
    if profiles[prompt].kind != Kind::Number {
        return Vec::new();
    }
    let is_part = names::sample_part(&profiles[prompt].name) == Some(Side::InPrompt);
    let is_larger = |part: usize, full_side: usize| {
        head.iter()
            .any(|row| number(row, profiles, part).zip(number(row, profiles, full_side)).is_some_and(|(a, b)| a > b))
    };
    let side_columns = |side: Side, full_side: usize| {
        let all = columns(profiles, &profiles[full_side].name, side).into_iter();
        all.filter(|&part| part != prompt && part != completion).collect::<Vec<usize>>()
    };
    let before = side_columns(Side::InPrompt, prompt).into_iter().filter(|&part| is_part || is_larger(part, prompt));
    let behind = side_columns(Side::InCompletion, completion).into_iter().filter(|&part| is_larger(part, completion));
    before.chain(behind).collect()
}

/// Returns the count columns of one side in the same object as the given column.
fn columns(profiles: &[Profile], sibling: &str, side: Side) -> Vec<usize> {
    among(profiles, sibling, &|name| names::sample_part(name) == Some(side))
}

fn number(row: &Row<'_>, profiles: &[Profile], index: usize) -> Option<f64> {
    let profile = &profiles[index];
    let notation = *profile.notation.as_ref().unwrap_or(&Notation::Point);
    profile::number(row.value(index, &profile.name), notation).map(Number::value)
}
