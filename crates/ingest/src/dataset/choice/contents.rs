//! Compares lengths with the content of the same rows.

use super::super::profile::Profile;
use super::super::text::{Extent, Meter};
use super::super::value::{Row, Value};
use super::super::{Kind, Meaning, Unit, names, token_ids};
use super::{Length, Measure, Part, Selection};

/// Number of rows compared.
const ROWS: usize = 1000;
/// Names of features of sound and images, whose number is not a number of tokens.
const FEATURES: [&str; 14] = [
    "input_features",
    "input_values",
    "audio_features",
    "speech_features",
    "features",
    "fbank",
    "mel",
    "mels",
    "mel_spectrogram",
    "log_mel",
    "spectrogram",
    "waveform",
    "pixel_values",
    "audio_values",
];

/// Returns the reason if the numbers count another quantity of the same rows than tokens.
pub(super) fn contradiction(profiles: &[Profile], parts: &[Part], texts: &[Part], head: &[&Row<'_>]) -> Option<String> {
    let is_feature = |profile: &&Profile| {
        matches!(profile.kind, Kind::NumberList | Kind::NestedList)
            && FEATURES.iter().any(|name| names::is_same(&profile.name, name))
    };
    let names_tokens = parts.iter().all(|part| part.name.to_lowercase().contains("tok"));
    let features = profiles.iter().find(is_feature);
    let is_sound = |profile: &&Profile| {
        let is_duration =
            ["duration", "durations", "audio_duration"].iter().any(|name| names::is_same(&profile.name, name));
        profile.has_values && (profile.meaning == Meaning::Media || is_duration)
    };
    let sound = profiles.iter().filter(|_| parts.len() == 1).find(is_sound);
    if let Some(profile) = features.or(sound).filter(|_| !names_tokens) {
        return Some(format!("the numbers may count samples or frames of {}, not tokens", profile.name));
    }
    let ratio = |measure: fn(&Extent) -> u64| equal(parts, texts, head, measure);
    let names = || texts.iter().map(|part| part.name.as_str()).collect::<Vec<&str>>().join(" + ");
    if ratio(|extent| extent.characters) || ratio(|extent| extent.bytes) {
        return Some(format!("the numbers are the numbers of characters of {}, not of tokens", names()));
    }
    None
}

/// Returns whether the numbers equal a measure of the texts in nearly all rows.
fn equal(parts: &[Part], texts: &[Part], head: &[&Row<'_>], measure: fn(&Extent) -> u64) -> bool {
    let is_equal = |extent: &Extent, number: f64| measure(extent) > 0 && (measure(extent) as f64 - number).abs() < 0.5;
    agrees(parts, texts, head, &is_equal)
}

/// Returns whether nearly all rows have a property of their texts and numbers.
fn agrees(parts: &[Part], texts: &[Part], head: &[&Row<'_>], has: &dyn Fn(&Extent, f64) -> bool) -> bool {
    let meter =
        Meter { characters_per_token: super::super::CHARACTERS_PER_TOKEN, tokenizer: None, has_word_count: true };
    let numbers = Selection::from_parts(parts.to_vec());
    let (mut all, mut same) = (0, 0);
    for row in head.iter().take(ROWS) {
        let Length::Tokens(number) = numbers.sample(row, &meter).length else { continue };
        let mut extent = Extent::default();
        for part in texts {
            meter.add(row.value(part.index, &part.name), &mut extent);
        }
        all += 1;
        same += usize::from(has(&extent, number.value()));
    }
    all > 1 && same * 10 >= all * 9
}

/// Returns warnings about lengths that differ from the content, and about texts that look cut.
pub(super) fn sentences(profiles: &[Profile], parts: &[Part], texts: &[Part], head: &[&Row<'_>]) -> Vec<String> {
    let mut found: Vec<String> = parts.iter().filter_map(|part| cut(part, head)).collect();
    if let [Part { index, name, measure: Measure::Number(_, Unit::Tokens), .. }] = parts {
        found.extend(differing(profiles, (*index, name), head));
        if equal(parts, texts, head, |extent| extent.word_count) {
            found.push(format!("{name} equals the number of words. A tokenizer of a model gives more tokens."));
        }
        // A character has at most four bytes, and a token at least one.
        if agrees(parts, texts, head, &|extent, number| extent.bytes > 0 && number > 2.0 * extent.bytes as f64) {
            found.push(format!(
                "{name} is larger than the number of bytes of the texts. The texts may be cut, or the numbers include media."
            ));
        }
    }
    found
}

/// Returns a warning if the numbers differ from the lengths of the token ID lists beside them.
fn differing(profiles: &[Profile], length: (usize, &str), head: &[&Row<'_>]) -> Option<String> {
    let is_list = |profile: &Profile| {
        profile.kind == Kind::NumberList
            && profile.meaning == Meaning::Length(Unit::Tokens)
            && token_ids::are_listed(&profile.name)
    };
    let list = profiles.iter().position(is_list)?;
    let name = &profiles[list].name;
    let pairs = head.iter().take(ROWS).filter_map(|row| match (row.value(length.0, length.1), row.value(list, name)) {
        (Value::Number(number), Value::List(ids)) => Some((number.value(), ids.count as f64)),
        _ => None,
    });
    let (mut all, mut larger) = (0, 0);
    for (number, count) in pairs {
        all += 1;
        larger += usize::from(number > count);
    }
    (larger * 10 > all).then(|| {
        format!(
            "{} is larger than the number of elements of {name} in {larger} of the first {all} rows. If {name} is cut, training reads fewer tokens; choose {name}.",
            length.1
        )
    })
}

/// Returns a warning if many texts have the same maximum length, or end with dots.
fn cut(part: &Part, head: &[&Row<'_>]) -> Option<String> {
    /// Minimum number of characters of a limit.
    const LIMIT: usize = 100;
    if part.measure != Measure::Text {
        return None;
    }
    let texts: Vec<&str> = head
        .iter()
        .take(ROWS)
        .filter_map(|row| match row.value(part.index, &part.name) {
            Value::Text(text) => Some(&**text),
            _ => None,
        })
        .collect();
    let lengths: Vec<usize> = texts.iter().map(|text| text.chars().count()).collect();
    let limit = *lengths.iter().max()?;
    let equal = lengths.iter().filter(|&&length| length == limit).count();
    let are_different = texts.iter().any(|text| *text != texts[0]);
    let is_dotted = |text: &&&str| text.trim_end().ends_with("...") || text.trim_end().ends_with('\u{2026}');
    let dotted = texts.iter().filter(is_dotted).count();
    let name = &part.name;
    if limit >= LIMIT && equal > 2 && equal * 5 >= lengths.len() && are_different {
        return Some(format!(
            "{equal} of the first {} texts of {name} have exactly {limit} characters, as texts that are cut. Samples may be longer.",
            lengths.len()
        ));
    }
    (dotted > 2 && dotted * 2 >= texts.len()).then(|| {
        format!(
            "{dotted} of the first {} texts of {name} end with dots, as texts that are cut. Samples may be longer.",
            texts.len()
        )
    })
}
