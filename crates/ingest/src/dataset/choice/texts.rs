//! Selects the text columns of a sample.

use super::super::profile::Profile;
use super::super::{Kind, Meaning, names};
use super::{TextPart, rule};

/// Prompt column names, in order of preference.
const QUESTIONS: [&str; 7] = ["instruction", "prompt", "question", "query", "problem", "input", "inputs"];
/// Names of texts between prompt and completion that are part of the training sample.
const REASONING: [&str; 7] =
    ["reasoning", "reasoning_content", "thinking", "thought", "rationale", "cot", "chain_of_thought"];

/// Names of preferred answers, in rows that may hold a rejected one.
const PREFERRED: [&str; 5] = ["chosen", "preferred_output", "preferred_response", "chosen_response", "preferred"];

/// Names of summaries, in rows that also contain the text.
const SUMMARIES: [&str; 5] = ["abstract", "summary", "highlights", "tldr", "summaries"];
/// Names of descriptions, in rows that also contain the code.
const DESCRIPTIONS: [&str; 5] = ["docstring", "doc", "documentation", "func_documentation_string", "nl"];
/// Names of texts of tools, in rows that also contain a text.
const TOOLS: [&str; 6] = ["tools", "functions", "tool_calls", "tool_results", "tool_outputs", "tool_responses"];
/// Names of texts in a markup language.
const MARKUP: [&str; 4] = ["html", "raw_html", "markdown", "md"];
/// Names that denote a text without further evidence. Other names may denote goods or codes.
const CERTAIN: [&str; 16] = [
    "text",
    "texts",
    "raw_text",
    "plain_text",
    "full_text",
    "raw_content",
    "page_content",
    "sentence",
    "paragraph",
    "passage",
    "story",
    "caption",
    "captions",
    "transcript",
    "transcription",
    "review_text",
];

/// Names of objects that contain the complete sample.
const WRAPPERS: [&str; 8] = ["translation", "doc", "sample", "example", "record", "item", "entry", "row"];

/// Returns the text column with the first of the given names that the file contains.
fn any(profiles: &[Profile], known: &[&str]) -> Option<usize> {
    let has = |name: &str| profiles.iter().position(|profile| is_text(profile) && names::is_same(&profile.name, name));
    known.iter().find_map(|name| has(name))
}

/// Returns whether the values are texts, conversations, or objects that are printed as text.
fn is_text(profile: &Profile) -> bool {
    profile.is_textual() || rule::text_part(profile) != TextPart::Full
}

/// Returns whether a name denotes a prompt.
pub(super) fn is_prompt_name(name: &str) -> bool {
    QUESTIONS.iter().any(|known| names::is_same(name, known))
}

/// Returns the column before the completion.
pub(super) fn prompt_column(profiles: &[Profile]) -> Option<usize> {
    any(profiles, &QUESTIONS)
}

/// Returns the columns of a conversation, a prompt with its completion, a preferred completion, or
/// a document.
pub(super) fn texts(profiles: &[Profile]) -> Vec<usize> {
    let any = |known: &[&str]| any(profiles, known);
    let best = |meaning: Meaning| {
        let candidates =
            profiles.iter().enumerate().filter(|(_, profile)| is_text(profile) && profile.meaning == meaning);
        candidates.min_by_key(|(_, profile)| profile.rank).map(|(index, _)| index)
    };
    let system = any(&["system", "system_prompt", "system_message", "system_instruction"]);
    let around = [system, any(&["tools", "functions"])];
    let with_system =
        |parts: &[Option<usize>]| -> Vec<usize> { around.iter().chain(parts).copied().flatten().collect() };
    let preferred_completion = any(&PREFERRED);
    // In files with a solution, the answer column contains only the final number or word.
    let completion = best(Meaning::CompletionText).map(|index| match any(&["solution"]) {
        Some(solution) if names::is_same(&profiles[index].name, "answer") => solution,
        _ => index,
    });
    if let Some(chat) = best(Meaning::Chat) {
        // A preferred completion with one message follows the conversation, as does a completion
        // for a final question.
        let follows = |index: &usize| {
            let answer = &profiles[*index];
            let is_text = answer.kind != Kind::Chat && profiles[chat].ends_with_user;
            answer.is_single_message || answer.starts_with_assistant || is_text
        };
        let preferred = preferred_completion.filter(|index| *index != chat).filter(follows);
        let last = completion.filter(|_| profiles[chat].ends_with_user);
        return with_system(&[Some(chat), preferred.or(last)]);
    }
    let prompt = prompt_column(profiles);
    if let Some(index) = preferred_completion.filter(|&index| profiles[index].kind == Kind::Chat) {
        // A preferred conversation repeats the prompt, unless it starts with a completion.
        let follows = profiles[index].starts_with_assistant || profiles[index].is_single_message;
        return if follows && prompt.is_some() { with_system(&[prompt, Some(index)]) } else { vec![index] };
    }
    if let (Some(prompt), Some(completion)) = (prompt, completion) {
        let is_instruction = names::is_same(&profiles[prompt].name, "instruction");
        let input = if is_instruction { any(&["input"]) } else { None };
        let reasoning = any(&REASONING);
        return with_system(&[any(&["history"]), any(&["context"]), Some(prompt), input, reasoning, Some(completion)]);
    }
    if let Some(text) = best(Meaning::Text).or_else(|| any(&["text_list"])) {
        return match profiles[text].kind {
            Kind::Chat => with_system(&[Some(text)]),
            _ if is_doubtful(profiles, text) => Vec::new(),
            _ => with_companions(profiles, text),
        };
    }
    if let Some(preferred_completion) = preferred_completion {
        return vec![preferred_completion];
    }
    if let Some(prompt) = prompt.filter(|&index| profiles[index].kind == Kind::Chat) {
        return with_system(&[Some(prompt)]);
    }
    // A column of messages is a conversation under any name, if the file has only one such column.
    let mut chats =
        profiles.iter().enumerate().filter(|(_, profile)| profile.kind == Kind::Chat).map(|(index, _)| index);
    match (chats.next(), chats.next()) {
        (Some(only), None) => vec![only],
        (Some(_), Some(_)) => Vec::new(),
        (None, _) => {
            any(&WRAPPERS).filter(|&index| rule::text_part(&profiles[index]) == TextPart::Inside).into_iter().collect()
        }
    }
}

/// Returns a document with its title, its summary, its description or its tools.
fn with_companions(profiles: &[Profile], text: usize) -> Vec<usize> {
    let named = |known: &[&str]| -> Vec<usize> {
        let is_companion =
            |column: &Profile| is_text(column) && known.iter().any(|name| names::is_same(&column.name, name));
        (0..profiles.len()).filter(|&index| index != text && is_companion(&profiles[index])).collect()
    };
    // `text` is all text of a sample by its name.
    let summaries = if is_certain(&profiles[text]) { Vec::new() } else { named(&SUMMARIES) };
    let is_code = names::is_same(&profiles[text].name, "code");
    let titles = if summaries.is_empty() || is_code { Vec::new() } else { named(&["title"]) };
    let behind = if is_code { named(&DESCRIPTIONS) } else { summaries };
    titles.into_iter().chain([text]).chain(behind).chain(named(&TOOLS)).collect()
}

/// Returns two columns that contain one text in different markup languages.
pub(super) fn alternatives(profiles: &[Profile], text: usize) -> Option<[usize; 2]> {
    let is_markup = |index: usize| MARKUP.iter().any(|name| names::is_same(&profiles[index].name, name));
    let other = (0..profiles.len()).find(|&index| index != text && is_text(&profiles[index]) && is_markup(index))?;
    is_markup(text).then_some([text, other])
}

/// Returns whether a column with a general name contains names or codes: its values are short, and
/// another column has an unknown meaning.
pub(super) fn is_doubtful(profiles: &[Profile], text: usize) -> bool {
    let column = &profiles[text];
    let is_unknown = |(index, other): (usize, &Profile)| {
        let is_companion = |name: &&str| names::is_same(&other.name, name);
        let mut companions = SUMMARIES.iter().chain(&DESCRIPTIONS).chain(&TOOLS).chain(&["title"]);
        index != text
            && other.has_values
            && matches!(other.meaning, Meaning::Unknown | Meaning::Score)
            && !companions.any(is_companion)
    };
    column.kind == Kind::Text && !is_certain(column) && !column.has_prose && profiles.iter().enumerate().any(is_unknown)
}

/// Returns whether a name denotes a text without further evidence.
fn is_certain(column: &Profile) -> bool {
    CERTAIN.iter().any(|name| names::is_same(&column.name, name))
}

/// Returns the unread text columns, for the report.
pub(super) fn left_out<'p>(profiles: &'p [Profile], is_read: &dyn Fn(usize) -> bool) -> Vec<&'p str> {
    let is_text = |profile: &Profile| match profile.meaning {
        Meaning::Chat | Meaning::Text | Meaning::PromptText | Meaning::CompletionText => {
            profile.is_textual() || profile.has_text
        }
        Meaning::Images | Meaning::Media | Meaning::Identifier | Meaning::Time => false,
        _ => {
            let mut known = SUMMARIES.iter().chain(&DESCRIPTIONS).chain(&["rejected", "non_preferred_output"]);
            profile.has_text || (profile.is_textual() && known.any(|name| names::is_same(&profile.name, name)))
        }
    };
    let left = profiles
        .iter()
        .enumerate()
        .filter(|(index, profile)| profile.has_values && !is_read(*index) && is_text(profile));
    left.map(|(_, profile)| profile.name.as_str()).take(10).collect()
}
