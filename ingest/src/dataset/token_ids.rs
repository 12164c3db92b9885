//! Names of columns whose lists hold the identifiers of tokens.

use super::names;

/// Names of lists of identifiers of tokens, as tokenizers and inference engines write them.
const LISTS: [&str; 13] = [
    "input_ids",
    "token_ids",
    "tokens",
    "prompt_token_ids",
    "input_token_ids",
    "prompt_ids",
    "context_token_ids",
    "output_token_ids",
    "completion_token_ids",
    "response_token_ids",
    "generated_token_ids",
    "completion_ids",
    "response_ids",
];

/// Whether the lists of a column hold one identifier per token, so that their elements are counted.
pub(super) fn are_listed(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    LISTS.iter().any(|known| names::is_same(last, known))
}

/// Names of lists with the identifiers of the prompt and of the answer, where they have no meaning in the table of names.
const PAIRS: [(&str, &str); 4] = [
    ("prompt_ids", "response_ids"),
    ("prompt_ids", "completion_ids"),
    ("prompt_input_ids", "chosen_input_ids"),
    ("prompt_input_ids", "completion_input_ids"),
];

/// The two columns of prompt and answer among columns of lists, by the place of each name.
pub(super) fn pair(place: impl Fn(&str) -> Option<usize>) -> Option<(usize, usize)> {
    PAIRS.iter().find_map(|(prompt, answer)| Some((place(prompt)?, place(answer)?)))
}

/// Whether two columns hold the identifiers of the prompt and of the answer.
pub(super) fn are_pair(prompt: &str, answer: &str) -> bool {
    PAIRS.iter().any(|(one, other)| names::is_same(prompt, one) && names::is_same(answer, other))
}

/// Whether a number of a column is an identifier and no count. `tokens` is a count in tables.
pub(super) fn is_single(name: &str) -> bool {
    are_listed(name) && !names::is_same(name.rsplit('.').next().unwrap_or(name), "tokens")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_known_by_name() {
        for (name, listed, single) in [
            ("input_ids", true, true),
            ("inputIds", true, true),
            ("outputs.token_ids", true, true),
            ("tokens", true, false),
            ("num_tokens", false, false),
            ("seqlens", false, false),
        ] {
            assert_eq!((are_listed(name), is_single(name)), (listed, single), "{name}");
        }
    }
}
