//! Assumptions behind a choice, as sentences of the report.

use super::super::media;
use super::super::profile::Profile;
use super::super::{Kind, Meaning, Options, Unit};
use super::{Measure, Part};

/// Assumptions behind a choice.
pub(super) fn sentences(profiles: &[Profile], parts: &[Part], options: &Options<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let meaning = |part: &Part| profiles[part.index].meaning;
    if options.column.is_none() {
        match parts {
            [prompt, completion]
                if meaning(prompt) == Meaning::Prompt && meaning(completion) == Meaning::Completion =>
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
