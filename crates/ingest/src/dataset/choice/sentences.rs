//! Warnings about the assumptions behind a choice.

use super::super::media::{self, Field, listed};
use super::super::names::{Counted, Side};
use super::super::profile::Profile;
use super::super::text;
use super::super::value::{Row, Value};
use super::super::{Kind, Meaning, Options, Unit, names, token_ids};
use super::automatic::media_tokens;
use super::texts::{self, left_out};
use super::{Measure, Part, TextPart, is_length_list, writing};

/// Returns the assumptions of a choice. `repeated` lists columns whose text another part repeats;
/// `head` contains the first rows.
pub(super) fn sentences(
    profiles: &[Profile],
    parts: &[Part],
    repeated: &[usize],
    head: &[&Row<'_>],
    options: &Options<'_>,
) -> Vec<String> {
    let mut found = Vec::new();
    let meaning = |part: &Part| profiles[part.index].meaning;
    let is_prompt = |part: &Part| {
        meaning(part) == Meaning::Prompt
            || matches!(names::sample_part(&part.name), Some(Side::Prompt | Side::InPrompt))
    };
    if options.column.is_none() {
        match parts {
            [prompt, .., completion]
                if token_ids::are_pair(&prompt.name, &completion.name)
                    || (is_prompt(prompt)
                        && (meaning(completion) == Meaning::Completion || token_ids::are_listed(&completion.name))) =>
            {
                let cached = parts.iter().filter(|part| names::is_cache_tokens(&part.name)).count();
                let are_two = parts.len() - cached == 2;
                found.push(if are_two {
                    "Prompt and completion are added: training reads both. To read one of them, choose its column."
                        .to_owned()
                } else {
                    let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
                    format!("{} are added: training reads all parts of a sample.", names.join(" + "))
                });
            }
            [encoder, decoder] if names::DECODER.iter().any(|name| names::is_same(&decoder.name, name)) => {
                found.push(format!(
                    "{} + {}: their lists differ in length, as those of an encoder and its decoder. Both are counted.",
                    encoder.name, decoder.name
                ));
            }
            [only]
                if only.measure == Measure::Text
                    && meaning(only) == Meaning::PromptText
                    && texts::is_prompt_name(&only.name)
                    && !profiles[only.index].has_replies =>
            {
                found.push(format!("Only {} is counted: no column holds an answer.", only.name));
            }
            [only] if meaning(only) == Meaning::Prompt => {
                found.push(prompt_alone(profiles));
            }
            [only] if meaning(only) == Meaning::Completion => {
                found.push(
                    "Only the tokens of the completion are counted: no column holds those of the prompt.".to_owned(),
                );
            }
            _ => {}
        }
        found.extend(name_sentences(profiles, parts));
    }
    found.extend(unused(parts, options));
    let per_token = options.characters_per_token;
    let texts = parts.iter().any(|part| part.measure == Measure::Text);
    if texts && options.tokenizer.is_none() {
        found.push(format!(
            "Characters are divided by {per_token} characters per token. Choose the tokenizer.json of the model for exact counts."
        ));
    }
    if options.tokenizer.is_none() {
        found.extend(writing::sentence(parts, head));
    }
    let is_chat = |part: &&Part| part.measure == Measure::Text && profiles[part.index].kind == Kind::Chat;
    if let Some(chat) = parts.iter().find(is_chat) {
        found.push(template(chat, head));
    }
    for part in parts {
        if let Measure::Number(_, unit @ (Unit::Characters | Unit::Bytes)) = part.measure {
            found.push(format!(
                "{} counts {}. They are divided by {per_token} characters per token.",
                part.name,
                unit.id()
            ));
        }
        if part.measure == Measure::Elements && profiles[part.index].kind == Kind::TextList {
            found.push(format!("The elements of {} are counted as tokens.", part.name));
        }
    }
    found.extend(doubts(profiles, parts, repeated, head));
    if options.column.is_none() {
        found.extend(totals(profiles, parts));
    }
    // Media sizes, frames and durations have separate advice.
    let media = media::columns(profiles, head);
    let has_clips = media.iter().any(|column| column.field == Field::Clips);
    let is_advised =
        |profile: &Profile| !media.is_empty() && (has_clips || !profile.name.to_lowercase().contains("audio"));
    for profile in profiles.iter().filter(|profile| profile.meaning == Meaning::Media && profile.has_values) {
        let is_file =
            matches!(profile.kind, Kind::Text | Kind::TextList | Kind::Object | Kind::ObjectList | Kind::Binary);
        if is_file && !is_advised(profile) {
            found.push(format!(
                "{} is not counted: no column has its frames or its duration under a known name, such as num_frames with width and height, \
                 or audio_s.",
                profile.name
            ));
        }
    }
    if media.is_empty() {
        found.extend(clips(profiles, parts, head));
    }
    found
}

/// Returns the warning for a prompt without a completion.
fn prompt_alone(profiles: &[Profile]) -> String {
    let is_completion = |profile: &&Profile| {
        profile.has_values
            && matches!(profile.kind, Kind::NumberList | Kind::NestedList)
            && (profile.meaning == Meaning::Completion || names::sample_part(&profile.name) == Some(Side::Completion))
    };
    let start = "Only the tokens of the prompt are counted";
    profiles.iter().find(is_completion).map_or_else(
        || format!("{start}: no column holds those of the completion."),
        |lists| {
            format!(
                "{start}: {} holds lists, such as several completions of a prompt. Upload a row per completion.",
                lists.name
            )
        },
    )
}

/// Returns warnings about video and sound inside messages and in columns of any media. A column of its
/// own has another warning.
fn clips(profiles: &[Profile], parts: &[Part], head: &[&Row<'_>]) -> Vec<String> {
    /// Number of rows compared.
    const ROWS: usize = 200;
    let values = |index: usize| {
        let name = profiles[index].name.as_str();
        head.iter().take(ROWS).map(move |row| row.value(index, name))
    };
    let mut found = Vec::new();
    for medium in ["video", "audio"] {
        let has_column = profiles.iter().any(|profile| {
            profile.meaning == Meaning::Media && profile.has_values && profile.name.to_lowercase().contains(medium)
        });
        let mut texts = parts.iter().filter(|part| part.measure == Measure::Text && !has_column);
        if let Some(part) = texts.find(|part| values(part.index).any(|value| text::has_medium(value, medium))) {
            found.push(format!(
                "The {medium} inside {} is not counted: the file does not hold its frames or its duration.",
                part.name
            ));
        }
    }
    let of_any = profiles.iter().enumerate().filter(|(_, profile)| names::holds_any_media(&profile.name));
    found.extend(of_any.filter(|(index, _)| values(*index).any(listed::has_clips)).map(|(_, profile)| {
        format!(
            "The video or sound of {} is not counted: the file does not hold its frames or its duration.",
            profile.name
        )
    }));
    found
}

/// Returns warnings for user options that have no effect.
fn unused(parts: &[Part], options: &Options<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let names = parts.iter().map(|part| part.name.as_str()).collect::<Vec<&str>>().join(", ");
    let has_text = parts.iter().any(|part| part.measure == Measure::Text);
    let has_numbers = parts.iter().any(|part| matches!(part.measure, Measure::Number(..)));
    if options.tokenizer.is_some() && !has_text {
        found.push(format!(
            "The tokenizer is not used: {names} holds the lengths. To count a text with the tokenizer, choose its column."
        ));
    }
    if let Some(unit @ (Unit::Characters | Unit::Bytes)) = options.unit.filter(|_| !has_numbers) {
        found.push(format!("The unit {} is not used: {names} holds no numbers.", unit.id()));
    }
    found
}

/// Returns warnings about token counts of media, caches and further parts.
fn name_sentences(profiles: &[Profile], parts: &[Part]) -> Vec<String> {
    let mut found = Vec::new();
    let matching_names = |is_known: &dyn Fn(&str) -> bool| {
        parts.iter().map(|part| part.name.as_str()).filter(|name| is_known(name)).collect::<Vec<&str>>().join(", ")
    };
    let cached = matching_names(&names::is_cache_tokens);
    if !cached.is_empty() {
        found.push(format!("The prompt is the sum of the tokens without the cache and those of it: {cached}."));
    }
    let media = matching_names(&names::is_media_tokens);
    let sections = matching_names(&|name| names::counted(name) == Some(Counted::Section));
    if parts.len() > 1 && media.is_empty() && !sections.is_empty() {
        found.push(format!(
            "{sections} are added: they are sections of one sample. To read one of them, choose its column."
        ));
    }
    if !media.is_empty() {
        found.push(format!("Tokens of text and of media are added: {media}."));
    }
    let Some(first) = parts.first().filter(|part| matches!(part.measure, Measure::Number(..))) else { return found };
    let is_left = |index: &usize| parts.iter().all(|part| part.index != *index);
    // A nested media count is a part of a total.
    let is_total = names::is_total_tokens(&first.name) || first.name.contains('.');
    let left: Vec<&str> = media_tokens(profiles, &first.name)
        .into_iter()
        .filter(|index| !is_total && is_left(index))
        .map(|index| profiles[index].name.as_str())
        .collect();
    let is_part = |index: usize| {
        matches!(profiles[index].meaning, Meaning::Prompt | Meaning::Completion)
            || names::sample_part(&profiles[index].name).is_some()
    };
    if parts.iter().all(|part| is_part(part.index)) {
        let further = |(index, profile): &(usize, &Profile)| {
            let counts_tokens = (profile.name.to_lowercase().ends_with("tokens")
                && !names::is_total_tokens(&profile.name))
                || names::sample_part(&profile.name).is_some();
            profile.kind == Kind::Number && profile.has_values && is_left(index) && counts_tokens
        };
        let further: Vec<&str> =
            profiles.iter().enumerate().filter(further).map(|(_, profile)| profile.name.as_str()).collect();
        if !further.is_empty() {
            found.push(format!(
                "Not added: {}. They are taken as parts of the other numbers. If they are further parts of the sample, upload one column with the sum.",
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

/// Returns whether many samples lack this part.
fn is_optional(name: &str) -> bool {
    let known = ["system", "system_prompt", "system_message", "input", "tools", "functions", "history", "context"];
    known.iter().any(|known| names::is_same(name, known))
        || names::is_media_tokens(name)
        || names::is_cache_tokens(name)
        || matches!(names::sample_part(name), Some(Side::InPrompt | Side::InCompletion))
}

/// Returns a warning if more than one row in ten has no value for a part.
fn empty(part: &Part, head: &[&Row<'_>]) -> Option<String> {
    let is_empty = |row: &&&Row<'_>| text::is_void(row.value(part.index, &part.name));
    let (empty, all) = (head.iter().filter(is_empty).count(), head.len());
    (empty * 10 > all)
        .then(|| format!("{} has no value in {empty} of the first {all} rows. They are counted without it.", part.name))
}

/// Returns warnings about ambiguities in the values.
fn doubts(profiles: &[Profile], parts: &[Part], repeated: &[usize], head: &[&Row<'_>]) -> Vec<String> {
    let mut found = Vec::new();
    // An object counts as read if a nested column is read.
    let is_read = |index: usize| {
        let object = format!("{}.", profiles[index].name);
        repeated.contains(&index) || parts.iter().any(|part| part.index == index || part.name.starts_with(&object))
    };
    for part in parts {
        let profile = &profiles[part.index];
        if part.measure == Measure::Elements && is_length_list(profile) && !names::holds_lengths(&profile.name) {
            found.push(format!(
                "The elements of each list of {} are counted. If they are lengths themselves, upload them as one list of numbers.",
                part.name
            ));
        }
        match part.rule.text {
            TextPart::First => found.push(format!(
                "Only the first text of {} is counted. If each text is an answer of its own, upload a row per answer.",
                part.name
            )),
            TextPart::Inside => {
                found.push(format!("All texts inside {} are counted, as one sample per row.", part.name));
            }
            TextPart::Full | TextPart::Json => {}
        }
        if part.measure == Measure::Text && !profile.unread_members.is_empty() {
            found.push(format!(
                "Other text in the messages of {} is not counted: {}.",
                part.name,
                profile.unread_members.join(", ")
            ));
        }
        if profile.has_replies {
            found.push(format!(
                "{} holds trees of messages. Of several replies only the first is counted; upload a row per conversation.",
                part.name
            ));
        }
        if parts.len() > 1 && !is_optional(&part.name) {
            found.extend(empty(part, head));
        }
        if matches!(part.measure, Measure::Number(..)) && profile.is_fractional {
            found.push(format!("Most numbers of {} have decimals. They are rounded.", part.name));
        }
        if is_general(&part.name) && profile.kind == Kind::Number && profiles.len() > 1 {
            found.push(format!("{} is read as a number of tokens, by its name alone.", part.name));
        }
    }
    let sections: Vec<&Part> =
        parts.iter().filter(|part| names::counted(&part.name) == Some(Counted::Section)).collect();
    let has_texts = |part: &Part| part.measure == Measure::Text || profiles[part.index].kind == Kind::TextList;
    if parts.iter().any(has_texts) || !sections.is_empty() {
        let mut left = left_out(profiles, &is_read);
        // `text_tokens` counts the texts.
        let is_counted = |name: &str| sections.iter().any(|part| names::is_section(&part.name, name));
        left.retain(|name| !is_counted(name));
        if !left.is_empty() {
            found.push(format!("Other text is not counted: {}.", left.join(", ")));
        }
    }
    found
}

/// Returns columns that have a better name but a constant number.
fn totals(profiles: &[Profile], parts: &[Part]) -> Vec<String> {
    let length = Meaning::Length(Unit::Tokens);
    let is_worse = |profile: &Profile| {
        parts.iter().all(|part| {
            let read = &profiles[part.index];
            part.measure == Measure::Text
                || (read.kind == Kind::Number
                    && !read.is_constant
                    && (read.meaning != length || read.rank > profile.rank))
        })
    };
    let is_total = |profile: &&Profile| {
        profile.meaning == length && profile.kind == Kind::Number && profile.is_constant && is_worse(profile)
    };
    let sentence = |profile: &Profile| {
        format!(
            "{} is the same in every row, like a total of the file. It is not used. If it is the length of each row, choose it.",
            profile.name
        )
    };
    profiles.iter().filter(is_total).map(sentence).collect()
}

/// Returns whether a name may count any quantity.
fn is_general(name: &str) -> bool {
    ["length", "lengths", "len", "lens"].iter().any(|known| names::is_same(name, known))
}

/// Tokens that the templates of ChatML, Llama 3 and Gemma add to a message: start, role, line feed, end and line feed.
const TEMPLATE_TOKENS: f64 = 5.0;

/// Returns the sentence on the chat template, with the messages of the first rows.
fn template(chat: &Part, head: &[&Row<'_>]) -> String {
    let count = |row: &&Row<'_>| match row.value(chat.index, &chat.name) {
        Value::List(list) => Some(list.count as f64),
        Value::Text(json) => match text::messages(json)? {
            Value::List(list) => Some(list.count as f64),
            _ => None,
        },
        _ => None,
    };
    let counts: Vec<f64> = head.iter().filter_map(count).collect();
    let start = "Tokens of the chat template are not counted: about 5 per message in ChatML, Llama 3 and Gemma.";
    if counts.is_empty() {
        return start.to_owned();
    }
    let messages = counts.iter().sum::<f64>() / counts.len() as f64;
    format!(
        "{start} The first rows have {messages:.1} messages on average, so about {:.0} tokens per sample are missing.",
        messages * TEMPLATE_TOKENS
    )
}
