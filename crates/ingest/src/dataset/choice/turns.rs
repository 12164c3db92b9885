//! Detects rows that are turns of a conversation and not samples.

use super::super::profile::Profile;
use super::super::value::{Row, Value};
use super::super::{Kind, Meaning, names};

/// Names of columns with the author of a turn.
const AUTHORS: [&str; 7] = ["role", "from", "speaker", "author", "sender", "author_role", "message_role"];
/// Authors of turns.
const ROLES: [&str; 18] = [
    "user",
    "assistant",
    "system",
    "human",
    "gpt",
    "prompter",
    "tool",
    "bot",
    "model",
    "agent",
    "customer",
    "client",
    "ai",
    "function",
    "developer",
    "chatbot",
    "chatgpt",
    "observation",
];
/// Names of columns with the number of a turn.
const NUMBERS: [&str; 7] =
    ["turn", "turn_id", "turn_idx", "turn_index", "turn_number", "utterance_id", "utterance_idx"];
/// Names of columns with the conversation of a turn.
const CONVERSATIONS: [&str; 10] = [
    "conversation_id",
    "conversation",
    "conversation_hash",
    "conv_id",
    "dialog_id",
    "dialogue_id",
    "thread_id",
    "chat_id",
    "session_id",
    "message_tree_id",
];

/// Returns the column that marks each row as a turn, and the reason.
pub(super) fn reason(profiles: &[Profile], head: &[&Row<'_>]) -> Option<(usize, String)> {
    let is_sample = |column: &Profile| {
        let meanings = [Meaning::PromptText, Meaning::CompletionText, Meaning::Prompt, Meaning::Completion];
        column.has_values && (column.kind == Kind::Chat || meanings.contains(&column.meaning))
    };
    if profiles.iter().any(is_sample) {
        return None;
    }
    let find = |known: &[&str]| {
        let is_known =
            |column: &Profile| column.has_values && known.iter().any(|name| names::is_same(&column.name, name));
        profiles.iter().position(is_known)
    };
    let conversation = find(&CONVERSATIONS).filter(|&index| is_repeated(index, &profiles[index].name, head));
    let is_author = |column: &Profile| {
        let is_role = |role: &String| ROLES.iter().any(|known| role.eq_ignore_ascii_case(known));
        column.kind == Kind::Text && !column.samples.is_empty() && column.samples.iter().all(is_role)
    };
    let author = find(&AUTHORS).filter(|&index| is_author(&profiles[index]));
    let has_several = author.is_some_and(|index| profiles[index].samples.len() > 1);
    let column = match (conversation, find(&NUMBERS), author) {
        (_, _, Some(author)) if has_several || conversation.is_some() => author,
        (Some(_), Some(number), None) => number,
        _ => return None,
    };
    let advice = conversation.map_or_else(String::new, |index| format!(", by {}", profiles[index].name));
    let reason = format!("each row is one turn of a conversation; upload one row per conversation{advice}");
    Some((column, reason))
}

/// Returns whether neighbours have the same value.
fn is_repeated(index: usize, name: &str, head: &[&Row<'_>]) -> bool {
    head.array_windows().any(|[before, after]| {
        let value = before.value(index, name);
        !matches!(value, Value::Missing) && value == after.value(index, name)
    })
}
