//! Names of keys that differ from known ones by a few letters, and values that hold credentials.

use std::collections::BTreeSet;

/// Returns the known name that a key probably means: the same section, and a last part that differs by few letters.
pub(super) fn find<'a>(key: &str, known: &'a BTreeSet<String>) -> Option<&'a str> {
    let (section, name) = split(key);
    if known.contains(key) {
        return None;
    }
    let plain = |name: &str| name.replace('-', "_").to_lowercase();
    let own = plain(name);
    let distance = |other: &&String| {
        let (other_section, other) = split(other);
        // One letter of eight may differ, up to three.
        let most = (name.len().max(other.len()) / 8).min(3);
        let is_close = most > 0 && other_section == section && other.len().abs_diff(name.len()) <= most;
        // A switch and its opposite are different keys.
        let is_opposite =
            plain(other).strip_prefix("no_") == Some(&own) || own.strip_prefix("no_") == Some(&plain(other));
        (is_close && !is_opposite)
            .then(|| strsim::osa_distance(&own, &plain(other)))
            .filter(|distance| (1..=most).contains(distance))
    };
    let close = known.iter().filter_map(|other| Some((distance(&other)?, other)));
    close.min_by_key(|(distance, _)| *distance).map(|(_, other)| split(other).1)
}

fn split(key: &str) -> (&str, &str) {
    key.rsplit_once('.').unwrap_or(("", key))
}

/// Starts of tokens of Hugging Face, GitHub, GitLab, OpenAI, Slack and AWS.
const TOKENS: [&str; 9] = ["hf_", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "sk-", "xoxb-", "AKIA"];
/// Fewest letters of a token after its start.
const MIN_TOKEN: usize = 8;

/// Replaces credentials in a value: tokens, and user and password of an address.
pub(super) fn without_credentials(value: &str) -> String {
    let mut text = value.to_owned();
    let mut from = 0;
    while let Some(at) = text[from..].find("://").map(|at| from + at + 3) {
        let end =
            text[at..].find(|letter: char| letter.is_whitespace() || letter == '/').map_or(text.len(), |end| at + end);
        if let Some(user) = text[at..end].rfind('@') {
            text.replace_range(at..at + user, "***");
        }
        from = at;
    }
    for start in TOKENS {
        let mut from = 0;
        while let Some(at) = text[from..].find(start).map(|at| from + at) {
            let rest = &text[at + start.len()..];
            // Tokens of Hugging Face have no further underscore: `hf_causal_lm` is a name.
            let has_marks = start != "hf_";
            let is_part = |letter: char| letter.is_ascii_alphanumeric() || (has_marks && "_-".contains(letter));
            let length = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
            let is_word = !text[..at].ends_with(|letter: char| letter.is_ascii_alphanumeric());
            from = at + start.len();
            if is_word && length >= MIN_TOKEN {
                text.replace_range(at..at + start.len() + length, "***");
                from = at + 3;
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names_are_found() {
        let known: BTreeSet<String> = [
            "moe-router-topk",
            "fsdp_config.activation_checkpointing",
            "zero_optimization.offload_optimizer",
            "num_key_value_heads",
            "bf16",
        ]
        .map(str::to_owned)
        .into();
        for (key, name) in [
            ("moe-router-topkk", Some("moe-router-topk")),
            ("moe_router_tpok", Some("moe-router-topk")),
            ("fsdp_config.activation_chekpointing", Some("activation_checkpointing")),
            ("fsdp_config.activation_checkpoint", Some("activation_checkpointing")),
            ("zero_optimization.offload_optimzer", Some("offload_optimizer")),
            ("num_key_value_head", Some("num_key_value_heads")),
            ("num_key_value_heads", None),
            ("other.num_key_value_head", None),
            ("bf18", None),
            ("no-moe-router-topk", None),
        ] {
            assert_eq!(find(key, &known), name, "{key}");
        }
    }

    #[test]
    fn credentials_are_replaced() {
        for (value, shown) in [
            ("https://me:ghp_abcdefgh12345@host/x", "https://***@host/x"),
            ("https://ghp_abcdefgh12345@host", "https://***@host"),
            ("meta-llama/Llama-3", "meta-llama/Llama-3"),
            ("hf_abcdefgh12345678", "***"),
            ("a hf_short sk-123456789 b", "a hf_short *** b"),
            ("self_hf_abcdefghijk", "self_***"),
            ("task-sk-", "task-sk-"),
            ("hf_causal_lm", "hf_causal_lm"),
        ] {
            assert_eq!(without_credentials(value), shown, "{value}");
        }
    }
}
