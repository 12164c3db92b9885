//! Assumptions behind a choice, as sentences of the report.

use super::super::media;
use super::super::profile::Profile;
use super::super::value::{Row, Value};
use super::super::{Kind, Meaning, Options, Unit, names, token_ids};
use super::automatic::media_tokens;
use super::texts::left_out;
use super::{Measure, Part, TextOf, is_list_of_lengths};

/// Assumptions behind a choice. `head` holds the first rows.
pub(super) fn sentences(profiles: &[Profile], parts: &[Part], head: &[&Row<'_>], options: &Options<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let meaning = |part: &Part| profiles[part.index].meaning;
    if options.column.is_none() {
        match parts {
            [prompt, .., completion]
                if meaning(prompt) == Meaning::Prompt
                    && (meaning(completion) == Meaning::Completion || token_ids::are_listed(&completion.name)) =>
            {
                found.push(
                    "Prompt and completion are added: training reads both. To read one of them, choose its column."
                        .to_owned(),
                );
            }
            [only] if meaning(only) == Meaning::Prompt => {
                found.push(
                    "Only the tokens of the prompt are counted: no column holds those of the completion.".to_owned(),
                );
            }
            [only] if meaning(only) == Meaning::Completion => {
                found.push(
                    "Only the tokens of the completion are counted: no column holds those of the prompt.".to_owned(),
                );
            }
            _ => {}
        }
        found.extend(of_names(profiles, parts));
    }
    let per_token = options.characters_per_token;
    let texts = parts.iter().any(|part| part.measure == Measure::Text);
    if texts && options.tokenizer.is_none() {
        found.push(format!(
            "Characters are divided by {per_token} characters per token. Choose the tokenizer.json of the model for exact counts."
        ));
    }
    if parts.iter().any(|part| part.measure == Measure::Text && profiles[part.index].kind == Kind::Chat) {
        found.push("The chat template adds some tokens per message. They are not counted.".to_owned());
    }
    for part in parts {
        if let Measure::Number(_, unit @ (Unit::Characters | Unit::Bytes)) = part.measure {
            found.push(format!(
                "{} counts {}. They are divided by {per_token} characters per token.",
                part.name,
                unit.id()
            ));
        }
        if part.measure == Measure::Elements && profiles[part.index].kind == Kind::ListOfTexts {
            found.push(format!("The elements of {} are counted as tokens.", part.name));
        }
    }
    found.extend(doubts(profiles, parts, head));
    if options.column.is_none() {
        found.extend(totals(profiles, parts));
    }
    // Sizes, frames and durations of media have advice of their own.
    let has_sizes = !media::columns(profiles).is_empty();
    for own in profiles.iter().filter(|own| own.meaning == Meaning::Media && own.has_values && !has_sizes) {
        let is_file =
            matches!(own.kind, Kind::Text | Kind::ListOfTexts | Kind::Object | Kind::ListOfObjects | Kind::Binary);
        if is_file {
            found.push(format!("{} is not counted: the file does not hold its frames or its duration.", own.name));
        }
    }
    found
}

/// Tokens of media and of caches beside those that are read.
fn of_names(profiles: &[Profile], parts: &[Part]) -> Vec<String> {
    let mut found = Vec::new();
    let names_of = |is_known: &dyn Fn(&str) -> bool| {
        parts.iter().map(|part| part.name.as_str()).filter(|name| is_known(name)).collect::<Vec<&str>>().join(", ")
    };
    let cached = names_of(&names::is_cache_tokens);
    if !cached.is_empty() {
        found.push(format!("The prompt is the sum of the tokens without the cache and those of it: {cached}."));
    }
    let media = names_of(&names::is_media_tokens);
    if !media.is_empty() {
        found.push(format!("Tokens of text and of media are added: {media}."));
    }
    let Some(first) = parts.first().filter(|part| matches!(part.measure, Measure::Number(..))) else { return found };
    let is_left = |index: &usize| parts.iter().all(|part| part.index != *index);
    // A nested number of media is a part of a total.
    let is_total = names::is_total_tokens(&first.name) || first.name.contains('.');
    let left: Vec<&str> = media_tokens(profiles, &first.name)
        .into_iter()
        .filter(|index| !is_total && is_left(index))
        .map(|index| profiles[index].name.as_str())
        .collect();
    let is_part = |index: usize| matches!(profiles[index].meaning, Meaning::Prompt | Meaning::Completion);
    if parts.iter().all(|part| is_part(part.index)) {
        let further = |(index, own): &(usize, &Profile)| {
            let counts_tokens = own.name.to_lowercase().ends_with("tokens") && !names::is_total_tokens(&own.name);
            own.kind == Kind::Number && own.has_values && is_left(index) && counts_tokens
        };
        let further: Vec<&str> =
            profiles.iter().enumerate().filter(further).map(|(_, own)| own.name.as_str()).collect();
        if !further.is_empty() {
            found.push(format!(
                "Not added: {}. If they are further parts of the sample, upload one column with the sum.",
                further.join(", ")
            ));
        }
    }
    if !left.is_empty() {
        found.push(format!(
            "{} is read as the length. Not added: {}. If it does not include them, choose both columns.",
            first.name,
            left.join(", ")
        ));
    }
    found
}

/// What the values of the file leave open.
fn doubts(profiles: &[Profile], parts: &[Part], head: &[&Row<'_>]) -> Vec<String> {
    let mut found = Vec::new();
    let is_read = |index: usize| parts.iter().any(|part| part.index == index);
    for part in parts {
        let own = &profiles[part.index];
        if part.measure == Measure::Elements && is_list_of_lengths(own) {
            found.push(format!(
                "The elements of each list of {} are counted. If they are lengths themselves, upload them as one list of numbers.",
                part.name
            ));
        }
        if part.measure == Measure::Elements
            && let Some(sentence) = padding(profiles, part, head)
        {
            found.push(sentence);
        }
        if part.rule.text == TextOf::First {
            found.push(format!("Only the first text of {} is counted.", part.name));
        }
        if matches!(part.measure, Measure::Number(..)) && own.is_fractional {
            found.push(format!("Most numbers of {} have decimals. They are rounded.", part.name));
        }
        if is_general(&part.name) && own.kind == Kind::Number && profiles.len() > 1 {
            found.push(format!("{} is read as a number of tokens, by its name alone.", part.name));
        }
    }
    if parts.iter().any(|part| part.measure == Measure::Text) {
        let left = left_out(profiles, &is_read);
        if !left.is_empty() {
            found.push(format!("Other text is not counted: {}.", left.join(", ")));
        }
    }
    found
}

/// Columns of a better name whose number is the same in every row.
fn totals(profiles: &[Profile], parts: &[Part]) -> Vec<String> {
    let length = Meaning::Length(Unit::Tokens);
    let is_worse = |own: &Profile| {
        parts.iter().all(|part| {
            let read = &profiles[part.index];
            read.kind == Kind::Number && !read.is_constant && (read.meaning != length || read.rank > own.rank)
        })
    };
    let is_total =
        |own: &&Profile| own.meaning == length && own.kind == Kind::Number && own.is_constant && is_worse(own);
    let sentence = |own: &Profile| {
        format!(
            "{} is the same in every row, like a total of the file. It is not used. If it is the length of each row, choose it.",
            own.name
        )
    };
    profiles.iter().filter(is_total).map(sentence).collect()
}

/// Whether a name may count anything.
fn is_general(name: &str) -> bool {
    ["length", "lengths", "len", "lens"].iter().any(|known| names::is_same(name, known))
}

/// A sentence about lists of one length, which may be padded.
fn padding(profiles: &[Profile], part: &Part, head: &[&Row<'_>]) -> Option<String> {
    /// Samples of one length by chance are fewer.
    const MANY: usize = 10;
    let mask = profiles.iter().find(|own| own.has_values && names::is_same(&own.name, "attention_mask"));
    let counts: Vec<usize> = head
        .iter()
        .filter_map(|row| match row.value(part.index, &part.name) {
            Value::List(list) => Some(list.count),
            _ => None,
        })
        .collect();
    let (first, rest) = counts.split_first()?;
    if rest.is_empty() || rest.iter().any(|count| count != first) {
        return None;
    }
    let Some(mask) = mask else {
        let is_padded = counts.len() >= MANY || (*first > 1 && ends_alike(part, head));
        return is_padded.then(|| {
            format!(
                "Every list of {} has {first} elements. If shorter samples are padded, or several are packed, upload the lengths of the samples.",
                part.name
            )
        });
    };
    Some(format!(
        "Every list of {} has {first} elements, and {} is not read. If shorter samples are padded, their padding is counted; upload the lengths without it.",
        part.name, mask.name
    ))
}

/// Whether half of the lists end in the same identifier twice, as padded ones do.
fn ends_alike(part: &Part, head: &[&Row<'_>]) -> bool {
    let lists = head.iter().filter_map(|row| match row.value(part.index, &part.name) {
        Value::List(list) if list.items.len() == list.count => Some(list),
        _ => None,
    });
    let (mut all, mut alike) = (0, 0);
    for list in lists {
        all += 1;
        if let [.., one, last] = list.items.as_slice() {
            alike += usize::from(one == last);
        }
    }
    all > 1 && alike > 0 && alike * 2 >= all
}
