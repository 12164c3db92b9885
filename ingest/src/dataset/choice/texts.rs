//! Columns of text that make a sample.

use super::super::profile::Profile;
use super::super::{Kind, Meaning, names};
use super::{TextOf, rule};

/// Names of questions, the best first.
const QUESTIONS: [&str; 6] = ["instruction", "prompt", "question", "query", "problem", "input"];

/// A column of text by the first of some names that the file has.
fn any(profiles: &[Profile], known: &[&str]) -> Option<usize> {
    let has = |name: &str| profiles.iter().position(|own| is_text(own) && names::is_same(&own.name, name));
    known.iter().find_map(|name| has(name))
}

/// Whether the values are texts, conversations, or objects that are printed as text.
fn is_text(own: &Profile) -> bool {
    own.is_textual() || rule::text_of(own) != TextOf::Whole
}

/// The column in front of the answer.
pub(super) fn question(profiles: &[Profile]) -> Option<usize> {
    any(profiles, &QUESTIONS)
}

/// A conversation, an instruction with its answer, a preferred answer, or a document.
pub(super) fn texts(profiles: &[Profile]) -> Vec<usize> {
    let any = |known: &[&str]| any(profiles, known);
    let best = |meaning: Meaning| {
        let of = profiles.iter().enumerate().filter(|(_, own)| is_text(own) && own.meaning == meaning);
        of.min_by_key(|(_, own)| own.rank).map(|(index, _)| index)
    };
    let around = [any(&["system", "system_prompt", "system_message"]), any(&["tools", "functions"])];
    let with_system =
        |parts: &[Option<usize>]| -> Vec<usize> { around.iter().chain(parts).copied().flatten().collect() };
    let chosen = any(&["chosen"]);
    if let Some(chat) = best(Meaning::Chat) {
        // A preferred answer of one message follows the conversation.
        return with_system(&[Some(chat), chosen.filter(|&index| profiles[index].is_one_message)]);
    }
    let question = question(profiles);
    if let Some(index) = chosen.filter(|&index| profiles[index].kind == Kind::Chat) {
        // A preferred conversation repeats the prompt, unless it begins with an answer.
        let follows = profiles[index].starts_with_answer || profiles[index].is_one_message;
        return if follows && question.is_some() { with_system(&[question, Some(index)]) } else { vec![index] };
    }
    // In files with a solution the answer is its last number or word.
    let answer = best(Meaning::AnswerText).map(|index| match any(&["solution"]) {
        Some(solution) if names::is_same(&profiles[index].name, "answer") => solution,
        _ => index,
    });
    if let (Some(question), Some(answer)) = (question, answer) {
        let is_instruction = names::is_same(&profiles[question].name, "instruction");
        let input = if is_instruction { any(&["input"]) } else { None };
        return with_system(&[any(&["history"]), any(&["context"]), Some(question), input, Some(answer)]);
    }
    if let Some(text) = best(Meaning::Text) {
        return vec![text];
    }
    if let Some(chosen) = chosen {
        return vec![chosen];
    }
    // Messages are a conversation under any name, if there is one such column.
    let mut chats = profiles.iter().enumerate().filter(|(_, own)| own.kind == Kind::Chat).map(|(index, _)| index);
    match (chats.next(), chats.next()) {
        (Some(only), None) => vec![only],
        _ => Vec::new(),
    }
}

/// Columns of text beside those that are read, for a sentence of the report.
pub(super) fn left_out<'p>(profiles: &'p [Profile], is_read: &dyn Fn(usize) -> bool) -> Vec<&'p str> {
    /// Characters that the page shows of a value; a longer one is text rather than a title.
    const LONG: usize = 40;
    let is_long = |own: &Profile| {
        own.meaning == Meaning::Unknown
            && own.samples.iter().any(|sample| sample.chars().count() >= LONG && sample.contains(' '))
    };
    let is_left_out = |own: &Profile| {
        own.has_values
            && own.is_textual()
            && (matches!(own.meaning, Meaning::Chat | Meaning::Text | Meaning::PromptText | Meaning::AnswerText)
                || names::is_same(&own.name, "rejected")
                || is_long(own))
    };
    let left = profiles.iter().enumerate().filter(|(index, own)| !is_read(*index) && is_left_out(own));
    left.map(|(_, own)| own.name.as_str()).take(10).collect()
}
