//! Names that denote token counts for a part of a sample: `system_tokens`, `tool_tokens`,
//! `reasoning_tokens`.

use super::last;

/// The side of a sample that contains a part, and whether the part is the complete side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Side {
    /// The complete prompt.
    Prompt,
    /// A part of the prompt.
    InPrompt,
    /// The complete completion.
    Completion,
    /// A part of the completion.
    InCompletion,
}

/// Words for the parts of a sample.
const WORDS: [(Side, &[&str]); 4] = [
    (Side::Prompt, &["prompt", "input", "inputs", "request", "prefill", "source", "src"]),
    (
        Side::InPrompt,
        &[
            "system",
            "sys",
            "tool",
            "tools",
            "function",
            "functions",
            "context",
            "contexts",
            "history",
            "question",
            "query",
            "user",
            "human",
            "instruction",
            "passage",
            "document",
            "documents",
            "retrieved",
            "retrieval",
            "examples",
            "demos",
            "fewshot",
            "template",
        ],
    ),
    (
        Side::Completion,
        &[
            "completion",
            "output",
            "outputs",
            "response",
            "answer",
            "assistant",
            "generated",
            "decode",
            "target",
            "tgt",
            "reply",
        ],
    ),
    (
        Side::InCompletion,
        &["reasoning", "thinking", "thoughts", "thought", "think", "cot", "rationale", "scratchpad", "analysis"],
    ),
];

/// Words that mark a name as a token count.
const COUNTS: [&str; 8] = ["tokens", "token", "len", "length", "toks", "tok", "tokencount", "lens"];
/// Words without separate meaning.
const FILLERS: [&str; 6] = ["num", "n", "count", "number", "of", "nb"];

/// Returns the sample part whose tokens a column counts, by the column name.
pub(in super::super) fn part_of_sample(name: &str) -> Option<Side> {
    let words = words(last(name));
    let mut parts = words.iter().filter(|word| !COUNTS.contains(&word.as_str()) && !FILLERS.contains(&word.as_str()));
    let part = parts.next()?;
    if parts.next().is_some() || !words.iter().any(|word| COUNTS.contains(&word.as_str())) {
        return None;
    }
    WORDS.iter().find(|(_, words)| words.contains(&part.as_str())).map(|(side, _)| *side)
}

/// Splits a name into lower-case words. A capital letter after a lower-case letter starts a word.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_small = false;
    for letter in name.chars().take(80) {
        if !letter.is_alphanumeric() || (letter.is_uppercase() && is_small) {
            words.push(String::new());
        }
        is_small = letter.is_lowercase();
        if let (true, Some(word)) = (letter.is_alphanumeric(), words.last_mut()) {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_known_by_their_words() {
        for (name, expected) in [
            ("system_tokens", Some(Side::InPrompt)),
            ("num_tool_tokens", Some(Side::InPrompt)),
            ("sys_len", Some(Side::InPrompt)),
            ("ContextTokens", Some(Side::InPrompt)),
            ("usage.prompt_tokens", Some(Side::Prompt)),
            ("promptTokenCount", Some(Side::Prompt)),
            ("thoughtsTokenCount", Some(Side::InCompletion)),
            ("assistant_tokens", Some(Side::Completion)),
            ("num_tokens", None),
            ("question", None),
            ("max_prompt_tokens", None),
            ("cached_tokens", None),
        ] {
            assert_eq!(part_of_sample(name), expected, "{name}");
        }
    }
}
