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
const SIDE_TERMS: [(Side, &[&str]); 4] = [
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
const COUNTS: [&str; 9] = ["tokens", "token", "len", "length", "toks", "tok", "tokencount", "lens", "lengths"];
/// Words without separate meaning.
const FILLERS: [&str; 6] = ["num", "n", "count", "number", "of", "nb"];

/// Returns the sample part whose tokens a column counts, by the column name.
pub(in super::super) fn sample_part(name: &str) -> Option<Side> {
    let terms = split_terms(last(name));
    let mut parts = terms.iter().filter(|word| !COUNTS.contains(&word.as_str()) && !FILLERS.contains(&word.as_str()));
    let part = parts.next()?;
    if parts.next().is_some() || !terms.iter().any(|word| COUNTS.contains(&word.as_str())) {
        return None;
    }
    SIDE_TERMS.iter().find(|(_, known)| known.contains(&part.as_str())).map(|(side, _)| *side)
}

/// What a number of tokens counts, by the column name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Counted {
    /// All tokens of a sample: `num_tokens`.
    Sample,
    /// A section of a sample, or its media: `title_tokens`, `speech_tokens`.
    Section,
    /// A subset of other tokens, or a statistic: `max_tokens`, `cached_tokens`.
    Subset,
    /// Anything else: `web_tokens`.
    Other,
}

/// Sections of one sample.
const SECTIONS: [&str; 38] = [
    "text",
    "document",
    "story",
    "passage",
    "dialogue",
    "title",
    "headline",
    "abstract",
    "summary",
    "highlights",
    "introduction",
    "body",
    "conclusion",
    "article",
    "content",
    "caption",
    "transcript",
    "code",
    "doc",
    "docstring",
    "documentation",
    "comment",
    "comments",
    "image",
    "images",
    "audio",
    "vision",
    "visual",
    "video",
    "speech",
    "sound",
    "music",
    "tool",
    "tools",
    "function",
    "functions",
    "header",
    "footer",
];
/// Words for all tokens of a sample.
const ALL: [&str; 5] = ["total", "all", "overall", "sample", "seq"];
/// Words for subsets of other tokens and for statistics.
const SUBSETS: [&str; 28] = [
    "max",
    "min",
    "avg",
    "mean",
    "median",
    "std",
    "sum",
    "limit",
    "cum",
    "cumulative",
    "share",
    "unique",
    "distinct",
    "special",
    "padding",
    "pad",
    "padded",
    "masked",
    "loss",
    "label",
    "labels",
    "trainable",
    "cached",
    "cache",
    "rejected",
    "chosen",
    "ignored",
    "unk",
];

/// Returns what a column counts; `None` if the name does not contain a word for tokens.
pub(in super::super) fn counted(name: &str) -> Option<Counted> {
    let words = split_terms(last(name));
    let is_token = |word: &String| ["tokens", "token", "toks", "tok", "tokencount"].contains(&word.as_str());
    if !words.iter().any(is_token) {
        return None;
    }
    let ignored = |word: &str| COUNTS.contains(&word) || FILLERS.contains(&word) || ALL.contains(&word);
    let rest: Vec<&str> = words.iter().map(String::as_str).filter(|word| !ignored(word)).collect();
    Some(match rest.as_slice() {
        [] => Counted::Sample,
        rest if rest.iter().any(|word| SUBSETS.contains(word)) => Counted::Subset,
        [section] if SECTIONS.contains(section) => Counted::Section,
        _ if sample_part(name).is_some() => Counted::Subset,
        _ => Counted::Other,
    })
}

/// Returns whether a token count may count the texts of a column: `body_tokens` those of `body`,
/// `text_tokens` those of any column.
pub(in super::super) fn is_section(count: &str, column: &str) -> bool {
    let (count, column) = (split_terms(last(count)), split_terms(last(column)));
    count.contains(&"text".to_owned()) || column.iter().all(|word| count.contains(word))
}

/// Splits a name into lower-case words. A capital letter after a lower-case letter starts a word.
fn split_terms(name: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut is_small = false;
    for letter in name.chars().take(80) {
        if !letter.is_alphanumeric() || (letter.is_uppercase() && is_small) {
            terms.push(String::new());
        }
        is_small = letter.is_lowercase();
        if let (true, Some(word)) = (letter.is_alphanumeric(), terms.last_mut()) {
            word.extend(letter.to_lowercase());
        }
    }
    terms.retain(|word| !word.is_empty());
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_tokens_count_a_sample_or_a_section() {
        for (name, expected) in [
            ("num_tokens", Some(Counted::Sample)),
            ("totalTokens", Some(Counted::Sample)),
            ("text_tokens", Some(Counted::Section)),
            ("n_title_tokens", Some(Counted::Section)),
            ("tool_tokens", Some(Counted::Section)),
            ("prompt_tokens", Some(Counted::Subset)),
            ("max_text_tokens", Some(Counted::Subset)),
            ("web_tokens", Some(Counted::Other)),
            ("title", None),
            ("length", None),
        ] {
            assert_eq!(counted(name), expected, "{name}");
        }
    }

    #[test]
    fn parts_are_recognised_by_term() {
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
            assert_eq!(sample_part(name), expected, "{name}");
        }
    }
}
