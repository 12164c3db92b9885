//! Names of columns whose lists contain token IDs.

use super::names;

/// Names of token ID lists, as tokenizers and inference engines write them.
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

/// Returns whether the column's lists contain one ID per token, so that the elements are counted.
pub(super) fn are_listed(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    // Fast rejection by the last letter of the name.
    let is_possible = last.trim_end_matches(|c: char| !c.is_alphanumeric()).ends_with(['s', 'S']);
    is_possible && LISTS.iter().any(|known| names::is_same(last, known))
}

/// Names of prompt and completion ID lists that have no meaning in the table of names.
const PAIRS: [(&str, &str); 4] = [
    ("prompt_ids", "response_ids"),
    ("prompt_ids", "completion_ids"),
    ("prompt_input_ids", "chosen_input_ids"),
    ("prompt_input_ids", "completion_input_ids"),
];

/// Returns the prompt column and the completion column of ID lists. `place` returns the column
/// index for a name.
pub(super) fn pair(index: impl Fn(&str) -> Option<usize>) -> Option<(usize, usize)> {
    PAIRS.iter().find_map(|(prompt, completion)| Some((index(prompt)?, index(completion)?)))
}

/// Returns whether two columns contain the token IDs of prompt and completion.
pub(super) fn are_pair(prompt: &str, completion: &str) -> bool {
    PAIRS.iter().any(|(first, other)| names::is_same(prompt, first) && names::is_same(completion, other))
}

/// Returns whether a number in the column is a token ID and not a count. `tokens` is a count in
/// tables.
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
