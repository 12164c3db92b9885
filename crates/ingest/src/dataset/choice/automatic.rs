//! Selects columns by name.

use super::super::media::Field;
use super::super::names::Packing;
use super::super::number::Notation;
use super::super::profile::Profile;
use super::super::text::{Extent, Meter};
use super::super::value::{Row, Value};
use super::super::{Kind, Meaning, Unit, names, token_ids};
use super::sections::{Sections, sections};
use super::texts::{prompt_column, texts};
use super::{Length, Measure, Part, Selection, measure, sides, text_parts};

pub(super) fn automatic(
    profiles: &[Profile],
    head: &[&Row<'_>],
    meter: Meter<'_>,
    has_rule: bool,
) -> Option<Vec<Part>> {
    let part = |index: usize, unit: Unit| {
        let profile = &profiles[index];
        Some(Part::new(index, profile, measure(profile, unit)?))
    };
    if let Some(inputs) = inputs(profiles) {
        return Some(vec![part(inputs, Unit::Tokens)?]);
    }
    let texts = texts(profiles);
    let of_texts = || text_parts(profiles);
    let (prompt, completion) = sides::sides(profiles);
    if let Some(length) = length(profiles, prompt.is_some() && completion.is_some()) {
        let length_part = part(length, Unit::Tokens)?;
        if profiles[length].kind != Kind::Number {
            let before = prompt.filter(|&prompt| is_rest(&profiles[length], &profiles[prompt]));
            let behind = decoder(profiles, &length_part, head);
            let all = [before, Some(length), behind].into_iter().flatten();
            return all.map(|index| part(index, Unit::Tokens)).collect();
        }
        if names_tokens(&profiles[length]) {
            // If texts differ in length but the number is constant, the number is a file total or a
            // limit.
            if profiles[length].is_constant && differ(&of_texts(), head, meter) {
                return Some(of_texts());
            }
            let all = match sections(profiles, length) {
                Sections::Sum(all) if !has_rule => all,
                Sections::Single | Sections::Sum(_) => vec![length],
                Sections::Unclear => return None,
            };
            return all.into_iter().map(|index| part(index, Unit::Tokens)).collect();
        }
        // In a file with video, sound or durations, a length may count frames, minutes or seconds.
        if profiles.iter().any(has_duration) {
            return None;
        }
        if texts.is_empty() {
            return Some(vec![length_part]);
        }
        let from_texts = of_texts();
        let length_parts = vec![length_part];
        return Some(if counts_tokens(&length_parts, &from_texts, head, meter) { length_parts } else { from_texts });
    }
    match (prompt, completion) {
        (Some(prompt), Some(completion)) => {
            let mut both = with_cache(profiles, prompt, &part)?;
            let further = sides::further(profiles, prompt, completion, head);
            let all = further.iter().chain([&completion]);
            both.extend(all.map(|&index| part(index, Unit::Tokens)).collect::<Option<Vec<Part>>>()?);
            let is_certain = [prompt, completion]
                .iter()
                .all(|&index| profiles[index].kind != Kind::Number || names_tokens(&profiles[index]));
            // Without the prompt column, the texts are not the ones that the two numbers count.
            if is_certain || texts.len() < 2 || prompt_column(profiles).is_none() {
                return Some(both);
            }
            let from_texts = of_texts();
            return Some(if counts_tokens(&both, &from_texts, head, meter) { both } else { from_texts });
        }
        (Some(prompt), None) if texts.is_empty() => return with_cache(profiles, prompt, &part),
        (None, Some(completion)) if texts.is_empty() => return Some(vec![part(completion, Unit::Tokens)?]),
        _ => {}
    }
    if !texts.is_empty() {
        return Some(of_texts());
    }
    if let Some(characters) = best(profiles, Meaning::Length(Unit::Characters)) {
        return Some(vec![part(characters, Unit::Characters)?]);
    }
    // The list contains the lengths of the row's samples.
    let are_lengths =
        |profile: &Profile| profile.kind == Kind::NumberList && names::packing(&profile.name) == Some(Packing::Lengths);
    if let Some(lengths) =
        profiles.iter().position(are_lengths).filter(|&index| names::holds_lengths(&profiles[index].name))
    {
        return Some(vec![part(lengths, Unit::Tokens)?]);
    }
    // The name is known but the values cannot be read: the report names each row.
    let is_known = |profile: &Profile| profile.meaning == Meaning::Length(Unit::Tokens) && profile.kind == Kind::Text;
    let (index, profile) =
        profiles.iter().enumerate().filter(|(_, profile)| is_known(profile)).min_by_key(|(_, profile)| profile.rank)?;
    Some(vec![Part::new(index, profile, Measure::Number(Notation::Point, Unit::Tokens))])
}

/// Returns the column of token IDs that MaxText and grain call `inputs`. Its name denotes a text, unless
/// a column beside it numbers the samples or the positions.
fn inputs(profiles: &[Profile]) -> Option<usize> {
    let is_list = |profile: &Profile| profile.kind == Kind::NumberList;
    let describes = |profile: &&Profile| {
        let name = profile.name.to_lowercase();
        is_list(profile) && name.starts_with(names::INPUTS) && names::packing(&name).is_some()
    };
    profiles.iter().find(describes)?;
    profiles.iter().position(|profile| is_list(profile) && names::is_same(&profile.name, names::INPUTS))
}

/// Returns whether the name says that the column counts tokens.
fn names_tokens(profile: &Profile) -> bool {
    profile.name.to_lowercase().contains("tok")
}

/// Returns whether the column values may be counts with the given meaning.
fn counts(profile: &Profile, meaning: Meaning) -> bool {
    profile.meaning == meaning
        && match profile.kind {
            // Ambiguous notation must be resolved before decimals can be checked.
            Kind::Number => {
                (!profile.is_fractional || profile.notation.is_err()) && !token_ids::is_single(&profile.name)
            }
            // Values of other lists may be lengths themselves.
            Kind::NumberList | Kind::NestedList => token_ids::are_listed(&profile.name),
            Kind::TextList => names::counts_tokens(&profile.name) && !names_numbers(&profile.name),
            _ => false,
        }
}

/// Returns whether the name denotes numbers. A list of texts with such a name contains lengths, not
/// tokens.
fn names_numbers(name: &str) -> bool {
    let name = name.to_lowercase();
    ["num", "count", "len"].iter().any(|word| name.contains(word))
}

/// Returns the column with the best-ranked name for a meaning.
pub(super) fn best(profiles: &[Profile], meaning: Meaning) -> Option<usize> {
    let candidates = profiles.iter().enumerate().filter(|(_, profile)| counts(profile, meaning));
    candidates.min_by_key(|(_, profile)| profile.rank).map(|(index, _)| index)
}

/// Returns the length column. A number that is equal in all rows is a file total if another column
/// can be the length.
fn length(profiles: &[Profile], has_both: bool) -> Option<usize> {
    let meaning = Meaning::Length(Unit::Tokens);
    let first = best(profiles, meaning)?;
    if !profiles[first].is_constant {
        return Some(first);
    }
    let varied = profiles.iter().enumerate().filter(|(_, profile)| counts(profile, meaning) && !profile.is_constant);
    match varied.min_by_key(|(_, profile)| profile.rank) {
        Some((index, _)) => Some(index),
        None if has_both => None,
        None => Some(first),
    }
}

/// Returns the columns of media tokens in the same object as the given column.
pub(super) fn media_tokens(profiles: &[Profile], sibling: &str) -> Vec<usize> {
    among(profiles, sibling, &names::is_media_tokens)
}

/// Returns the prompt tokens, plus cache-read and cache-write tokens if the prompt name does not
/// include them.
fn with_cache(profiles: &[Profile], prompt: usize, part: &dyn Fn(usize, Unit) -> Option<Part>) -> Option<Vec<Part>> {
    let name = &profiles[prompt].name;
    let is_rest = names::is_same(last(name), "input_tokens");
    let cached = if is_rest { among(profiles, name, &names::is_cache_tokens) } else { Vec::new() };
    std::iter::once(prompt).chain(cached).map(|index| part(index, Unit::Tokens)).collect()
}

/// Returns number columns with known names in the same object as the given column.
pub(super) fn among(profiles: &[Profile], sibling: &str, is_known: &dyn Fn(&str) -> bool) -> Vec<usize> {
    let object = |name: &str| name.rsplit_once('.').map(|(object, _)| object.to_owned());
    let is_number = |profile: &Profile| profile.kind == Kind::Number && profile.has_values && !profile.is_fractional;
    (0..profiles.len())
        .filter(|&index| {
            let profile = &profiles[index];
            is_number(profile) && is_known(&profile.name) && object(&profile.name) == object(sibling)
        })
        .collect()
}

/// Returns the last part of a nested name.
fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// Returns whether a list contains the token IDs that follow the prompt.
fn is_rest(profile: &Profile, prompt: &Profile) -> bool {
    prompt.kind == Kind::NumberList
        && token_ids::are_listed(&prompt.name)
        && names::is_same(last(&profile.name), "token_ids")
}

/// Returns the decoder token IDs if their count differs from the encoder's.
fn decoder(profiles: &[Profile], encoder: &Part, head: &[&Row<'_>]) -> Option<usize> {
    if encoder.measure != Measure::Elements || !names::is_same(last(&encoder.name), "input_ids") {
        return None;
    }
    let count = |row: &Row<'_>, index: usize| match row.value(index, &profiles[index].name) {
        Value::List(list) => Some(list.count),
        _ => None,
    };
    let differs = |&index: &usize| {
        let pairs = head.iter().filter_map(|row| Some((count(row, encoder.index)?, count(row, index)?)));
        let (all, other) =
            pairs.fold((0, 0), |(all, other), (first, two)| (all + 1, other + usize::from(first != two)));
        other * 2 > all
    };
    let by_name = |name: &&'static str| {
        let is_list = |profile: &Profile| profile.kind == Kind::NumberList && names::is_same(&profile.name, name);
        profiles.iter().position(is_list).filter(differs)
    };
    names::DECODER.iter().find_map(by_name)
}

/// Returns whether the text lengths differ by more than a factor of two.
fn differ(texts: &[Part], head: &[&Row<'_>], meter: Meter<'_>) -> bool {
    let characters = |row: &&Row<'_>| {
        let mut extent = Extent::default();
        for part in texts {
            meter.add(row.value(part.index, &part.name), &mut extent);
        }
        extent.characters
    };
    let lengths: Vec<u64> = head.iter().take(200).map(characters).filter(|&characters| characters > 0).collect();
    let (min, max) = (lengths.iter().min(), lengths.iter().max());
    min.zip(max).is_some_and(|(min, max)| lengths.len() > 2 && *max > 2 * *min)
}

/// Returns whether a column contains the duration of a video, audio clip or episode.
fn has_duration(profile: &Profile) -> bool {
    let rates = ["frame_rate", "framerate", "fps"];
    profile.has_values
        && (matches!(profile.meaning, Meaning::Media | Meaning::Duration)
            || rates.iter().any(|name| names::is_same(&profile.name, name))
            || Field::from_name(&profile.name).is_some_and(|field| field != Field::Images))
}

/// Returns whether "length" columns count the tokens of the texts in the same rows, and not
/// characters, bytes, words or turns.
fn counts_tokens(lengths: &[Part], texts: &[Part], head: &[&Row<'_>], meter: Meter<'_>) -> bool {
    let meter = Meter { has_word_count: true, ..meter };
    let selection = Selection::from_parts(lengths.to_vec());
    let median = |measure: &dyn Fn(&Extent) -> u64| {
        let mut ratios: Vec<f64> = head
            .iter()
            .take(200)
            .filter_map(|row| {
                let Length::Tokens(length) = selection.sample(row, &meter).length else { return None };
                let mut extent = Extent::default();
                for part in texts {
                    meter.add(row.value(part.index, &part.name), &mut extent);
                }
                Some(measure(&extent) as f64 / length.value()).filter(|ratio| ratio.is_finite() && *ratio > 0.0)
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).copied()
    };
    let is_near_unity = |ratio: Option<f64>| ratio.is_some_and(|ratio| (0.97..=1.03).contains(&ratio));
    let characters = median(&|extent| extent.characters);
    let bytes = median(&|extent| extent.bytes);
    let word_ratio = median(&|extent| extent.word_count);
    // Turns and paragraphs have more characters than a token.
    !is_near_unity(characters)
        && !is_near_unity(bytes)
        && !is_near_unity(word_ratio)
        && characters.is_none_or(|ratio| ratio <= 15.0)
}
