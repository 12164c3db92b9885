//! Columns that are chosen by their names.

use super::super::media::Field;
use super::super::names::Packing;
use super::super::number::Notation;
use super::super::profile::Profile;
use super::super::text::{Extent, Meter};
use super::super::value::{Row, Value};
use super::super::{Kind, Meaning, Unit, names, token_ids};
use super::texts::{question, texts};
use super::{Choice, Length, Measure, Part, measure, sides};

/// The columns by their names.
pub(super) fn automatic(
    profiles: &[Profile],
    head: &[&Row<'_>],
    meter: Meter<'_>,
    has_rule: bool,
) -> Option<Vec<Part>> {
    let part = |index: usize, unit: Unit| {
        let own = &profiles[index];
        Some(Part::new(index, own, measure(own, unit)?))
    };
    let texts = texts(profiles);
    let of_texts = || texts.iter().filter_map(|&index| part(index, Unit::Tokens)).collect::<Vec<Part>>();
    let (prompt, completion) = sides::sides(profiles);
    if let Some(length) = length(profiles, prompt.is_some() && completion.is_some()) {
        let own = part(length, Unit::Tokens)?;
        if profiles[length].kind != Kind::Number {
            let before = prompt.filter(|&prompt| is_rest(&profiles[length], &profiles[prompt]));
            let behind = decoder(profiles, &own, head);
            let all = [before, Some(length), behind].into_iter().flatten();
            return all.map(|index| part(index, Unit::Tokens)).collect();
        }
        if names_tokens(&profiles[length]) {
            // A constant number in rows with texts of different lengths is a total of the file, or a limit.
            if profiles[length].is_constant && differ(&of_texts(), head, meter) {
                return Some(of_texts());
            }
            let all = if has_rule { vec![length] } else { with_media(profiles, length) };
            return all.into_iter().map(|index| part(index, Unit::Tokens)).collect();
        }
        // Beside video, sound and durations a length is one of frames, minutes or seconds as well.
        if profiles.iter().any(has_duration) {
            return None;
        }
        if texts.is_empty() {
            return Some(vec![own]);
        }
        let of_texts = of_texts();
        let own = vec![own];
        return Some(if counts_tokens(&own, &of_texts, head, meter) { own } else { of_texts });
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
            // Without the question the texts are not those that the two numbers count.
            if is_certain || texts.len() < 2 || question(profiles).is_none() {
                return Some(both);
            }
            let of_texts = of_texts();
            return Some(if counts_tokens(&both, &of_texts, head, meter) { both } else { of_texts });
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
    // Lengths of the samples of each row.
    let are_lengths =
        |own: &Profile| own.kind == Kind::ListOfNumbers && names::packing(&own.name) == Some(Packing::Lengths);
    if let Some(lengths) =
        profiles.iter().position(are_lengths).filter(|&index| names::holds_lengths(&profiles[index].name))
    {
        return Some(vec![part(lengths, Unit::Tokens)?]);
    }
    // A known name over values that cannot be read: every row is named in the report.
    let is_known = |own: &Profile| own.meaning == Meaning::Length(Unit::Tokens) && own.kind == Kind::Text;
    let (index, own) = profiles.iter().enumerate().filter(|(_, own)| is_known(own)).min_by_key(|(_, own)| own.rank)?;
    Some(vec![Part::new(index, own, Measure::Number(Notation::Point, Unit::Tokens))])
}

/// Whether a name says that it counts tokens.
fn names_tokens(own: &Profile) -> bool {
    own.name.to_lowercase().contains("tok")
}

/// Whether the values of a column may be counts of a meaning.
fn counts(own: &Profile, meaning: Meaning) -> bool {
    own.meaning == meaning
        && match own.kind {
            // Which of two readings is right decides over decimals too.
            Kind::Number => (!own.is_fractional || own.notation.is_err()) && !token_ids::is_single(&own.name),
            // The values of other lists may be lengths themselves.
            Kind::ListOfNumbers | Kind::ListOfLists => token_ids::are_listed(&own.name),
            Kind::ListOfTexts => names::counts_tokens(&own.name) && !names_numbers(&own.name),
            _ => false,
        }
}

/// Whether a name is that of numbers: a list of texts under it holds lengths and no tokens.
fn names_numbers(name: &str) -> bool {
    let name = name.to_lowercase();
    ["num", "count", "len"].iter().any(|word| name.contains(word))
}

/// The column of the best name of a meaning.
pub(super) fn best(profiles: &[Profile], meaning: Meaning) -> Option<usize> {
    let of = profiles.iter().enumerate().filter(|(_, own)| counts(own, meaning));
    of.min_by_key(|(_, own)| own.rank).map(|(index, _)| index)
}

/// The column of the length. A number that is the same in every row is a total of the file, if another column can be the length.
fn length(profiles: &[Profile], has_both: bool) -> Option<usize> {
    let meaning = Meaning::Length(Unit::Tokens);
    let first = best(profiles, meaning)?;
    if !profiles[first].is_constant {
        return Some(first);
    }
    let varied = profiles.iter().enumerate().filter(|(_, own)| counts(own, meaning) && !own.is_constant);
    match varied.min_by_key(|(_, own)| own.rank) {
        Some((index, _)) => Some(index),
        None if has_both => None,
        None => Some(first),
    }
}

/// Tokens of the text of a sample and those of its media, or their total. Images that are counted have tokens of their own.
fn with_media(profiles: &[Profile], text: usize) -> Vec<usize> {
    let own = &profiles[text];
    let is_text = names::is_same(last(&own.name), "text_tokens");
    let media = media_tokens(profiles, &own.name);
    if !is_text || media.is_empty() || profiles.iter().any(|own| own.meaning == Meaning::Images && own.has_values) {
        return vec![text];
    }
    let is_total = |own: &Profile| counts(own, Meaning::Length(Unit::Tokens)) && !own.is_constant;
    let total = profiles.iter().position(|own| is_total(own) && names::is_total_tokens(&own.name));
    total.map_or_else(|| std::iter::once(text).chain(media).collect(), |total| vec![total])
}

/// Columns with tokens of media in the object of a column.
pub(super) fn media_tokens(profiles: &[Profile], beside: &str) -> Vec<usize> {
    among(profiles, beside, &names::is_media_tokens)
}

/// Tokens of the prompt, with those that are read from or written to a cache where the name does not include them.
fn with_cache(profiles: &[Profile], prompt: usize, part: &dyn Fn(usize, Unit) -> Option<Part>) -> Option<Vec<Part>> {
    let name = &profiles[prompt].name;
    let is_rest = names::is_same(last(name), "input_tokens");
    let cached = if is_rest { among(profiles, name, &names::is_cache_tokens) } else { Vec::new() };
    std::iter::once(prompt).chain(cached).map(|index| part(index, Unit::Tokens)).collect()
}

/// Columns of numbers by their names, in the object of a column.
pub(super) fn among(profiles: &[Profile], beside: &str, is_known: &dyn Fn(&str) -> bool) -> Vec<usize> {
    let object = |name: &str| name.rsplit_once('.').map(|(object, _)| object.to_owned());
    let is_number = |own: &Profile| own.kind == Kind::Number && own.has_values && !own.is_fractional;
    (0..profiles.len())
        .filter(|&index| {
            let own = &profiles[index];
            is_number(own) && is_known(&own.name) && object(&own.name) == object(beside)
        })
        .collect()
}

/// The last part of a nested name.
fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// Whether a list holds the identifiers behind those of the prompt.
fn is_rest(own: &Profile, prompt: &Profile) -> bool {
    prompt.kind == Kind::ListOfNumbers
        && token_ids::are_listed(&prompt.name)
        && names::is_same(last(&own.name), "token_ids")
}

/// The identifiers of the decoder, if they differ in number from those of the encoder.
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
        let (all, other) = pairs.fold((0, 0), |(all, other), (one, two)| (all + 1, other + usize::from(one != two)));
        other * 2 > all
    };
    let by_name = |name: &&'static str| {
        let is_list = |own: &Profile| own.kind == Kind::ListOfNumbers && names::is_same(&own.name, name);
        profiles.iter().position(is_list).filter(differs)
    };
    names::DECODER.iter().find_map(by_name)
}

/// Whether texts differ in length by more than a factor of two.
fn differ(texts: &[Part], head: &[&Row<'_>], meter: Meter<'_>) -> bool {
    let characters = |row: &&Row<'_>| {
        let mut extent = Extent::default();
        for part in texts {
            meter.add(row.value(part.index, &part.name), &mut extent);
        }
        extent.characters
    };
    let lengths: Vec<u64> = head.iter().take(200).map(characters).filter(|&characters| characters > 0).collect();
    let (least, most) = (lengths.iter().min(), lengths.iter().max());
    least.zip(most).is_some_and(|(least, most)| lengths.len() > 2 && *most > 2 * *least)
}

/// Whether a column says how long a video, a clip of sound, or an episode is.
fn has_duration(own: &Profile) -> bool {
    let rates = ["frame_rate", "framerate", "fps"];
    own.has_values
        && (matches!(own.meaning, Meaning::Media | Meaning::Duration)
            || rates.iter().any(|name| names::is_same(&own.name, name))
            || Field::of(&own.name).is_some_and(|field| field != Field::Images))
}

/// Whether columns that are called "length" count tokens of the texts in the same rows, and not their characters, bytes, words, or turns.
fn counts_tokens(lengths: &[Part], texts: &[Part], head: &[&Row<'_>], meter: Meter<'_>) -> bool {
    let meter = Meter { counts_words: true, ..meter };
    let own = Choice::of(lengths.to_vec());
    let median = |measure: &dyn Fn(&Extent) -> u64| {
        let mut ratios: Vec<f64> = head
            .iter()
            .take(200)
            .filter_map(|row| {
                let Length::Tokens(length) = own.sample(row, &meter).length else { return None };
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
    let is_one = |ratio: Option<f64>| ratio.is_some_and(|ratio| (0.97..=1.03).contains(&ratio));
    let characters = median(&|extent| extent.characters);
    let bytes = median(&|extent| extent.bytes);
    let words = median(&|extent| extent.words);
    // A turn or a paragraph has more characters than any token.
    !is_one(characters) && !is_one(bytes) && !is_one(words) && characters.is_none_or(|ratio| ratio <= 15.0)
}
