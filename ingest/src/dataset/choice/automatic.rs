//! Columns that are chosen by their names.

use super::super::number::Notation;
use super::super::profile::Profile;
use super::super::text::{Extent, Meter};
use super::super::value::Row;
use super::super::{Kind, Meaning, Unit, names};
use super::{Choice, Length, Measure, Part, measure};

/// The columns by their names.
pub(super) fn automatic(profiles: &[Profile], head: &[&Row<'_>], meter: Meter<'_>) -> Option<Vec<Part>> {
    let part = |index: usize, unit: Unit| {
        let own = &profiles[index];
        Some(Part { index, name: own.name.clone(), measure: measure(own, unit)? })
    };
    let best = |test: &dyn Fn(&Profile) -> bool| {
        let of = profiles.iter().enumerate().filter(|(_, own)| test(own));
        of.min_by_key(|(_, own)| own.rank).map(|(index, _)| index)
    };
    let counts = |own: &Profile, meaning: Meaning| {
        own.meaning == meaning
            && match own.kind {
                // Which of two readings is right decides over decimals too.
                Kind::Number => !own.is_fractional || own.notation.is_err(),
                Kind::ListOfNumbers => true,
                Kind::ListOfTexts => names::counts_tokens(&own.name),
                _ => false,
            }
    };
    let texts = texts(profiles);
    if let Some(length) = best(&|own| counts(own, Meaning::Length(Unit::Tokens))) {
        let own = part(length, Unit::Tokens)?;
        let is_certain = profiles[length].kind != Kind::Number || profiles[length].name.to_lowercase().contains("tok");
        if is_certain || texts.is_empty() {
            return Some(vec![own]);
        }
        let of_texts: Vec<Part> = texts.iter().filter_map(|&index| part(index, Unit::Tokens)).collect();
        return Some(if counts_tokens(&own, &of_texts, head, meter) { vec![own] } else { of_texts });
    }
    let prompt = best(&|own| counts(own, Meaning::Prompt));
    let completion = best(&|own| counts(own, Meaning::Completion));
    match (prompt, completion) {
        (Some(prompt), Some(completion)) => {
            return Some(vec![part(prompt, Unit::Tokens)?, part(completion, Unit::Tokens)?]);
        }
        (Some(only), None) | (None, Some(only)) if texts.is_empty() => return Some(vec![part(only, Unit::Tokens)?]),
        _ => {}
    }
    if !texts.is_empty() {
        return texts.into_iter().map(|index| part(index, Unit::Tokens)).collect();
    }
    if let Some(characters) = best(&|own| counts(own, Meaning::Length(Unit::Characters))) {
        return Some(vec![part(characters, Unit::Characters)?]);
    }
    // A known name over values that cannot be read: every row is named in the report.
    let known = best(&|own| own.meaning == Meaning::Length(Unit::Tokens) && own.kind == Kind::Text)?;
    let own = &profiles[known];
    let measure = Measure::Number(Notation::Point, Unit::Tokens);
    Some(vec![Part { index: known, name: own.name.clone(), measure }])
}

/// Columns of text that make a sample: a conversation, an instruction with its answer, a preferred answer, or a document.
fn texts(profiles: &[Profile]) -> Vec<usize> {
    let textual = |name: &str| profiles.iter().position(|own| own.is_textual() && names::is_same(&own.name, name));
    let any = |names: &[&str]| names.iter().find_map(|name| textual(name));
    let best = |meaning: Meaning| {
        let of = profiles.iter().enumerate().filter(|(_, own)| own.is_textual() && own.meaning == meaning);
        of.min_by_key(|(_, own)| own.rank).map(|(index, _)| index)
    };
    let is_chat = |index: &usize| profiles[*index].kind == Kind::Chat;
    let around = [any(&["system", "system_prompt"]), any(&["tools"])];
    let with_system =
        |parts: &[Option<usize>]| -> Vec<usize> { around.iter().chain(parts).copied().flatten().collect() };
    let named_chat = best(Meaning::Chat);
    if let Some(chat) = named_chat {
        // A preferred answer of one message follows the conversation.
        let answer = textual("chosen").filter(|index| profiles[*index].is_one_message);
        return with_system(&[Some(chat), answer]);
    }
    // A preferred conversation repeats the prompt.
    if let Some(chosen) = textual("chosen").filter(is_chat) {
        return vec![chosen];
    }
    let answer = best(Meaning::AnswerText);
    let question = any(&["instruction", "prompt", "question", "query", "problem", "input"]);
    if let (Some(question), Some(answer)) = (question, answer) {
        let is_instruction = names::is_same(&profiles[question].name, "instruction");
        let input = if is_instruction { textual("input") } else { None };
        return with_system(&[any(&["history"]), any(&["context"]), Some(question), input, Some(answer)]);
    }
    if let Some(text) = best(Meaning::Text) {
        return vec![text];
    }
    if let Some(chosen) = textual("chosen") {
        return vec![chosen];
    }
    // Messages are a conversation under any name, if there is one such column.
    let mut chats = profiles.iter().enumerate().filter(|(_, own)| own.kind == Kind::Chat).map(|(index, _)| index);
    match (chats.next(), chats.next()) {
        (Some(only), None) => vec![only],
        _ => Vec::new(),
    }
}

/// Whether a column that is called "length" counts tokens of the texts in the same rows, and not their characters, bytes, or turns.
fn counts_tokens(length: &Part, texts: &[Part], head: &[&Row<'_>], meter: Meter<'_>) -> bool {
    let own = Choice::of(vec![length.clone()]);
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
    // A turn or a paragraph has more characters than any token.
    !is_one(characters) && !is_one(bytes) && characters.is_none_or(|ratio| ratio <= 15.0)
}
