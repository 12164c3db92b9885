//! Table of column names with meaning and unit, used by CSV, JSON, JSONL, Parquet, Arrow and
//! Hugging Face statistics.
//!
//! The comparison uses only letters and digits, in lower case: `num_tokens`, `Num Tokens` and
//! `numTokens` are equal.

mod packing;
mod parts;
mod table;
mod totals;
mod unit;

pub(super) use packing::{DECODER, INPUTS, Packing, counts_packed, holds_lengths, packing, reads_numbers};
pub(super) use parts::{Counted, Side, counted, is_section, sample_part};
pub(super) use totals::{
    is_anonymous, is_batch_size, is_group, is_step, is_steps, is_total_tokens, is_training_metric, may_be_total,
    names_rows,
};
pub(super) use unit::Quantity;

use super::media::Field;
use super::{Meaning, Unit};
use table::{ENDINGS, LABELS, NAMES, SPLITS};

/// Returns the meaning of a name and its rank in the table; a lower rank is preferred. A unit in
/// the name has priority over other words.
pub(super) fn meaning(name: &str) -> (Meaning, usize) {
    let known = plain(name);
    let by_unit = unit::split(name).and_then(|(base, quantity)| unit::meaning(plain(base).0, quantity));
    let is_length = |meaning: Meaning| matches!(meaning, Meaning::Length(_) | Meaning::Prompt | Meaning::Completion);
    match by_unit {
        // `prompt_tokens` is in the table, `size (tokens)` is not.
        Some(meaning) if !(is_length(meaning) && is_length(known.0)) => (meaning, usize::MAX),
        _ => known,
    }
}

/// Returns meaning and rank of a name without a unit.
fn plain(name: &str) -> (Meaning, usize) {
    let letters = letters(name);
    // pandas writes an empty name for the row number column.
    if name.trim().is_empty() {
        return (Meaning::Identifier, 0);
    }
    let known = NAMES
        .iter()
        .find_map(|(meaning, names)| names.iter().position(|known| *known == letters).map(|rank| (*meaning, rank)));
    if let Some(known) = known {
        return known;
    }
    if LABELS.contains(&letters.as_str()) {
        return (Meaning::Label, 0);
    }
    if Field::from_name(name).is_some() {
        return (Meaning::Media, 0);
    }
    (ending(name), usize::MAX)
}

/// Returns whether a nested name counts tokens, as in `usage.prompt_tokens`.
pub(super) fn counts_tokens(name: &str) -> bool {
    letters(name).contains("token")
        && matches!(meaning(name).0, Meaning::Length(Unit::Tokens) | Meaning::Prompt | Meaning::Completion)
}

/// Returns whether a name denotes a share or a cumulative count.
pub(super) fn is_share(name: &str) -> bool {
    let shares = [
        "percentile",
        "quantile",
        "percent",
        "percentage",
        "pct",
        "cdf",
        "ecdf",
        "ccdf",
        "cumulative",
        "cumulativecount",
        "cumulativeshare",
        "cumsum",
        "cumcount",
        "cumpct",
        "cum",
        "proportion",
        "fraction",
        "share",
        "probability",
        "prob",
        "density",
        "pdf",
    ];
    shares.contains(&letters(name).as_str())
}

/// Returns whether a name denotes a dataset split, with or without a size word: `train`,
/// `val_count`, `n_test`.
pub(super) fn is_split(name: &str) -> bool {
    let name = name.trim().to_lowercase();
    let mut terms = name
        .split(['_', ' ', '-', '.'])
        .filter(|word| !["", "n", "num", "count", "counts", "samples", "rows", "docs"].contains(word));
    terms.next().is_some_and(|word| SPLITS.contains(&word)) && terms.next().is_none()
}

/// Returns whether a name denotes a shard or a batch, which always contains several samples.
pub(super) fn is_shard(name: &str) -> bool {
    let name = letters(name);
    ["shard", "shards", "batch"]
        .iter()
        .any(|known| name.strip_prefix(known).is_some_and(|rest| ["", "id", "idx", "index"].contains(&rest)))
}

/// Kinds of media in names such as `image_tokens`.
const MEDIA: [&str; 9] = ["image", "images", "audio", "vision", "visual", "video", "speech", "sound", "music"];

/// Returns whether a name denotes media tokens without text tokens.
pub(super) fn is_media_tokens(name: &str) -> bool {
    let letters = letters(last(name));
    let media = letters.strip_prefix("num").or_else(|| letters.strip_prefix('n')).unwrap_or(&letters);
    media.strip_suffix("tokens").is_some_and(|kind| MEDIA.contains(&kind))
}

/// Returns whether a name denotes files of any medium: images, videos or sound.
pub(super) fn holds_any_media(name: &str) -> bool {
    let known = ["media", "medias", "mediapath", "mediapaths", "mediafile", "mediafiles"];
    known.contains(&letters(name).as_str())
}

/// Returns whether a name denotes cached prompt tokens, which `input_tokens` does not include.
pub(super) fn is_cache_tokens(name: &str) -> bool {
    let known = ["cachereadinputtokens", "cachecreationinputtokens", "cachewriteinputtokens"];
    known.contains(&letters(last(name)).as_str())
}

/// Returns whether a name denotes a share of tokens or a cumulative count: `token_share`,
/// `cum_tokens`.
pub(super) fn is_token_share(name: &str) -> bool {
    let name = name.trim().to_lowercase();
    let terms: Vec<&str> = name.split(['_', ' ', '-', '.']).collect();
    let has = |known: &[&str]| terms.iter().any(|word| known.contains(word));
    terms.len() > 1
        && (has(&["cum", "cumulative", "cumsum"])
            || (has(&["share", "fraction", "proportion", "pct", "percent", "percentage"])
                && has(&["token", "tokens", "tok"])))
}

/// Returns whether a name denotes the unit of other columns.
pub(super) fn is_unit(name: &str) -> bool {
    ["unit", "units"].contains(&letters(name).as_str())
}

/// Returns the quantity of a unit such as `px` or `characters`; `None` for other words.
pub(super) fn unit_quantity(word: &str) -> Option<Quantity> {
    unit::quantity(word)
}

/// Returns whether a name denotes a sample count in thousands or millions: `count (thousands)`,
/// `count_k`.
pub(super) fn is_scaled_count(name: &str) -> bool {
    let lower = name.to_lowercase();
    let name = lower.trim_end_matches(|c: char| !c.is_alphanumeric());
    let factors = ["k", "m", "thousand", "thousands", "million", "millions"];
    let base = factors.iter().find_map(|factor| name.strip_suffix(factor)?.strip_suffix(['_', ' ', '(', '[', '-']));
    base.is_some_and(|base| letters(base).len() > 1 && plain(base).0 == Meaning::Weight)
}

/// Returns whether a name ends with a unit that is not converted to tokens: `length_k`,
/// `length_ms`.
pub(super) fn has_other_unit(name: &str) -> bool {
    let is_log = name.to_lowercase().starts_with("log");
    is_log || unit::split(name).is_some_and(|(_, quantity)| !matches!(quantity, Quantity::Length(_)))
}

/// Returns whether the last word of a name denotes a length: `chosen_len`, `rejected_tokens`.
pub(super) fn ends_as_length(name: &str) -> bool {
    let name = name.trim().to_lowercase();
    let last = name.rsplit(['_', ' ', '-', '.']).next().unwrap_or_default();
    ["len", "length", "lengths", "lens", "tokens", "tok", "toks", "size"].contains(&last)
}

/// Returns whether a text is a token unit.
pub(super) fn is_tokens(unit: &str) -> bool {
    ["tokens", "token", "tok", "toks"].contains(&unit.trim().to_lowercase().as_str())
}

/// Returns the last part of a nested name.
fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// Returns whether two names have equal letters and digits.
pub(super) fn is_same(first: &str, other: &str) -> bool {
    letters(first) == letters(other)
}

/// Returns letters and digits in lower case.
pub(super) fn letters(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).take(80).collect()
}

fn ending(name: &str) -> Meaning {
    let name = name.trim();
    if name.starts_with("is_") || name.starts_with("has_") {
        return Meaning::Label;
    }
    let lower = name.to_lowercase();
    for (ending, meaning) in ENDINGS {
        let Some(start) = lower.strip_suffix(ending) else { continue };
        let separated = start.ends_with(['_', ' ', '-', '.', '/']);
        // `pageId`: the suffix starts with a capital letter after a lower-case letter.
        let capital = name.len() == lower.len()
            && name.is_char_boundary(start.len())
            && name[start.len()..].starts_with(|c: char| c.is_ascii_uppercase())
            && name[..start.len()].ends_with(|c: char| c.is_ascii_lowercase());
        if separated || capital {
            return meaning;
        }
    }
    Meaning::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_every_notation() {
        for (name, expected) in [
            ("num_total_tokens", Meaning::Length(Unit::Tokens)),
            ("Total tokens", Meaning::Length(Unit::Tokens)),
            ("numTokens", Meaning::Length(Unit::Tokens)),
            ("ContextTokens", Meaning::Prompt),
            ("Request tokens", Meaning::Prompt),
            ("GeneratedTokens", Meaning::Completion),
            ("input_length", Meaning::Prompt),
            ("count(*)", Meaning::Weight),
            ("count_star()", Meaning::Weight),
            ("num_samples", Meaning::Weight),
            ("size_bytes", Meaning::Length(Unit::Bytes)),
            ("num_chars", Meaning::Length(Unit::Characters)),
            ("text_chars", Meaning::Length(Unit::Characters)),
            ("question_id", Meaning::Identifier),
            ("pageId", Meaning::Identifier),
            ("paid", Meaning::Unknown),
            ("Unnamed: 0", Meaning::Identifier),
            ("year", Meaning::Time),
            ("created_at", Meaning::Time),
            ("stars", Meaning::Score),
            ("punsafe", Meaning::Score),
            ("label", Meaning::Label),
            ("is_duplicate", Meaning::Label),
            ("duration", Meaning::Duration),
            ("image_width", Meaning::Media),
            ("messages", Meaning::Chat),
            ("instruction", Meaning::PromptText),
            ("chosen", Meaning::CompletionText),
            ("whatever", Meaning::Unknown),
            ("num_sequences", Meaning::Weight),
            ("Number of samples", Meaning::Weight),
            ("quantity", Meaning::Weight),
            ("n_samples", Meaning::Weight),
            ("percentage", Meaning::Score),
            ("ccdf", Meaning::Score),
        ] {
            assert_eq!(meaning(name).0, expected, "{name}");
        }
        for name in ["train", "val_count", "n_test", "Train samples"] {
            assert!(is_split(name), "{name}");
        }
        for name in ["count", "train_val", "training_time", "tests", ""] {
            assert!(!is_split(name), "{name}");
        }
        for (name, expected) in [("count_k", true), ("count (thousands)", true), ("n_chars", false), ("count", false)] {
            assert_eq!(is_scaled_count(name), expected, "{name}");
        }
        assert!(counts_tokens("prompt_tokens") && !counts_tokens("length") && !counts_tokens("tokenizer"));
    }

    #[test]
    fn a_unit_decides_the_meaning() {
        for (name, expected) in [
            ("Length (s)", Meaning::Duration),
            ("length_s", Meaning::Duration),
            ("length_sec", Meaning::Duration),
            ("length_ms", Meaning::Duration),
            ("Length [ms]", Meaning::Duration),
            ("sequence length (seconds)", Meaning::Duration),
            ("length_mb", Meaning::Unknown),
            ("size_kb", Meaning::Unknown),
            ("size (MB)", Meaning::Unknown),
            ("tokens (M)", Meaning::Unknown),
            ("length_m", Meaning::Unknown),
            ("length (mm)", Meaning::Unknown),
            ("length (words)", Meaning::Unknown),
            ("length/s", Meaning::Unknown),
            ("tokens/length", Meaning::Unknown),
            ("tokens (%)", Meaning::Score),
            ("tokens_pct", Meaning::Score),
            ("tokens %", Meaning::Score),
            ("% tokens", Meaning::Score),
            ("Length [px]", Meaning::Media),
            ("length (frames)", Meaning::Media),
            ("Length (chars)", Meaning::Length(Unit::Characters)),
            ("text (characters)", Meaning::Length(Unit::Characters)),
            ("Length (bytes)", Meaning::Length(Unit::Bytes)),
            ("Length (tokens)", Meaning::Length(Unit::Tokens)),
            ("Sequence length (tokens)", Meaning::Length(Unit::Tokens)),
            ("size (tokens)", Meaning::Length(Unit::Tokens)),
            ("Prompt (tokens)", Meaning::Prompt),
            ("Response [tokens]", Meaning::Completion),
            ("prompt_length (chars)", Meaning::Unknown),
            ("lengths", Meaning::Length(Unit::Tokens)),
            ("count(*)", Meaning::Weight),
        ] {
            assert_eq!(meaning(name).0, expected, "{name}");
        }
        assert_eq!(meaning("size_bytes").1, 0, "a name of the table keeps its place");
    }

    #[test]
    fn names_have_unique_meanings() {
        let all: Vec<&str> = NAMES.iter().flat_map(|(_, names)| names.iter().copied()).chain(LABELS).collect();
        for (index, name) in all.iter().enumerate() {
            assert!(!all[..index].contains(name), "{name} is twice in the table");
            assert_eq!(letters(name), *name, "names of the table hold small letters and digits only");
        }
    }
}
