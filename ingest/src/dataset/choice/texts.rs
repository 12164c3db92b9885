//! Selects the text columns of a sample.

use super::super::profile::Profile;
use super::super::{Kind, Meaning, names};
use super::{TextOf, rule};

/// Prompt column names, in order of preference.
const QUESTIONS: [&str; 7] = ["instruction", "prompt", "question", "query", "problem", "input", "inputs"];
/// Names of texts between prompt and completion that are part of the training sample.
const REASONING: [&str; 7] =
    ["reasoning", "reasoning_content", "thinking", "thought", "rationale", "cot", "chain_of_thought"];

/// Names of objects that contain the complete sample.
const WRAPPERS: [&str; 8] = ["translation", "doc", "sample", "example", "record", "item", "entry", "row"];

/// Returns the text column with the first of the given names that the file contains.
fn any(profiles: &[Profile], known: &[&str]) -> Option<usize> {
    let has = |name: &str| profiles.iter().position(|own| is_text(own) && names::is_same(&own.name, name));
    known.iter().find_map(|name| has(name))
}

/// Returns whether the values are texts, conversations, or objects that are printed as text.
fn is_text(own: &Profile) -> bool {
    own.is_textual() || rule::text_of(own) != TextOf::Whole
}

/// Returns whether a name denotes a prompt.
pub(super) fn is_question(name: &str) -> bool {
    QUESTIONS.iter().any(|known| names::is_same(name, known))
}

/// Returns the column before the completion.
pub(super) fn question(profiles: &[Profile]) -> Option<usize> {
    any(profiles, &QUESTIONS)
}

/// Returns the columns of a conversation, a prompt with its completion, a preferred completion, or
/// a document.
pub(super) fn texts(profiles: &[Profile]) -> Vec<usize> {
    let any = |known: &[&str]| any(profiles, known);
    let best = |meaning: Meaning| {
        let of = profiles.iter().enumerate().filter(|(_, own)| is_text(own) && own.meaning == meaning);
        of.min_by_key(|(_, own)| own.rank).map(|(index, _)| index)
    };
    let system = any(&["system", "system_prompt", "system_message", "system_instruction"]);
    let around = [system, any(&["tools", "functions"])];
    let with_system =
        |parts: &[Option<usize>]| -> Vec<usize> { around.iter().chain(parts).copied().flatten().collect() };
    let chosen = any(&["chosen"]);
    // In files with a solution, the answer column contains only the final number or word.
    let answer = best(Meaning::AnswerText).map(|index| match any(&["solution"]) {
        Some(solution) if names::is_same(&profiles[index].name, "answer") => solution,
        _ => index,
    });
    if let Some(chat) = best(Meaning::Chat) {
        // A preferred completion with one message follows the conversation, as does a completion
        // for a final question.
        let preferred = chosen.filter(|&index| profiles[index].is_one_message);
        let last = answer.filter(|_| profiles[chat].ends_with_question);
        return with_system(&[Some(chat), preferred.or(last)]);
    }
    let question = question(profiles);
    if let Some(index) = chosen.filter(|&index| profiles[index].kind == Kind::Chat) {
        // A preferred conversation repeats the prompt, unless it starts with a completion.
        let follows = profiles[index].starts_with_answer || profiles[index].is_one_message;
        return if follows && question.is_some() { with_system(&[question, Some(index)]) } else { vec![index] };
    }
    if let (Some(question), Some(answer)) = (question, answer) {
        let is_instruction = names::is_same(&profiles[question].name, "instruction");
        let input = if is_instruction { any(&["input"]) } else { None };
        let reasoning = any(&REASONING);
        return with_system(&[any(&["history"]), any(&["context"]), Some(question), input, reasoning, Some(answer)]);
    }
    if let Some(text) = best(Meaning::Text).or_else(|| any(&["text_list"])) {
        return if profiles[text].kind == Kind::Chat { with_system(&[Some(text)]) } else { vec![text] };
    }
    if let Some(chosen) = chosen {
        return vec![chosen];
    }
    if let Some(question) = question.filter(|&index| profiles[index].kind == Kind::Chat) {
        return with_system(&[Some(question)]);
    }
    // A column of messages is a conversation under any name, if the file has only one such column.
    let mut chats = profiles.iter().enumerate().filter(|(_, own)| own.kind == Kind::Chat).map(|(index, _)| index);
    match (chats.next(), chats.next()) {
        (Some(only), None) => vec![only],
        (Some(_), Some(_)) => Vec::new(),
        (None, _) => {
            any(&WRAPPERS).filter(|&index| rule::text_of(&profiles[index]) == TextOf::Inside).into_iter().collect()
        }
    }
}

/// Returns the unread text columns, for the report.
pub(super) fn left_out<'p>(profiles: &'p [Profile], is_read: &dyn Fn(usize) -> bool) -> Vec<&'p str> {
    let is_text = |own: &Profile| match own.meaning {
        Meaning::Chat | Meaning::Text | Meaning::PromptText | Meaning::AnswerText => own.is_textual() || own.has_text,
        Meaning::Images | Meaning::Media | Meaning::Identifier | Meaning::Time => false,
        _ => own.has_text || (own.is_textual() && names::is_same(&own.name, "rejected")),
    };
    let left = profiles.iter().enumerate().filter(|(index, own)| own.has_values && !is_read(*index) && is_text(own));
    left.map(|(_, own)| own.name.as_str()).take(10).collect()
}
