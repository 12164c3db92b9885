//! Known names of histogram columns.

use super::super::names;
use super::super::{Meaning, Unit};
use super::normal;

/// Names of lower edges.
pub(super) const LEFT: [&str; 14] = [
    "left",
    "lower",
    "low",
    "lo",
    "from",
    "start",
    "bin_start",
    "bin_left",
    "left_edge",
    "lower_edge",
    "bin_lower",
    "lower_bound",
    "min_length",
    "bin_min",
];
/// Names of upper edges.
pub(super) const RIGHT: [&str; 14] = [
    "right",
    "upper",
    "high",
    "hi",
    "to",
    "end",
    "bin_end",
    "bin_right",
    "right_edge",
    "upper_edge",
    "bin_upper",
    "upper_bound",
    "max_length",
    "bin_max",
];
/// Names that denote lower and upper edges only as a pair.
pub(super) const PAIRS: [(&str, &str); 10] = [
    ("min", "max"),
    ("ge", "lt"),
    ("gt", "le"),
    ("gte", "lt"),
    ("gt", "lte"),
    ("begin", "end"),
    ("start", "stop"),
    ("min_len", "max_len"),
    ("len_min", "len_max"),
    ("min_tokens", "max_tokens"),
];
/// Names of bin centers.
pub(super) const CENTERS: [&str; 11] = [
    "bin_center",
    "bin_centers",
    "bin_centre",
    "center",
    "centers",
    "centre",
    "bin_mid",
    "bin_middle",
    "bin_midpoint",
    "midpoint",
    "mid",
];
/// Names of lengths in a table with counts.
pub(super) const LENGTHS: [&str; 17] = [
    "length",
    "lengths",
    "len",
    "seq_len",
    "seqlen",
    "sequence_length",
    "tokens",
    "num_tokens",
    "n_tokens",
    "total_tokens",
    "num_total_tokens",
    "token_count",
    "text_tokens",
    "input_length",
    "input_len",
    "value",
    "bin",
];
/// Names of sample counts or shares.
pub(super) const COUNTS: [&str; 36] = [
    "count",
    "counts",
    "n",
    "freq",
    "frequency",
    "frequencies",
    "weight",
    "weights",
    "num_samples",
    "samples",
    "n_samples",
    "number_of_samples",
    "num_sequences",
    "n_sequences",
    "number_of_sequences",
    "sequences",
    "quantity",
    "num_examples",
    "examples",
    "cnt",
    "occurrences",
    "occurrence",
    "num_docs",
    "docs",
    "documents",
    "rows",
    "num_rows",
    "count_star()",
    "count(*)",
    "hist",
    "proportion",
    "share",
    "fraction",
    "probability",
    "percentage",
    "percent",
];
/// Names of cumulative counts or shares.
pub(super) const CUMULATIVE: [&str; 26] = [
    "cumulative",
    "cum",
    "cumsum",
    "cum_count",
    "cumcount",
    "cumulative_count",
    "cum_freq",
    "cumulative_frequency",
    "cum_pct",
    "cumulative_share",
    "cum_percent",
    "cum_%",
    "cum_share",
    "cum_fraction",
    "cumulative_pct",
    "cumulative_percent",
    "cumulative_percentage",
    "cumulative_%",
    "cumulative_fraction",
    "cumulative_proportion",
    "cumulative_probability",
    "cumulative_freq",
    "cdf",
    "ecdf",
    "percentile",
    "quantile",
];
/// Names of complementary cumulative counts or shares (samples longer than a length).
pub(super) const COMPLEMENT: [&str; 5] = ["ccdf", "complementary_cdf", "survival", "survival_function", "exceedance"];
/// Names of shares, in fractions or percent.
const SHARES: [&str; 6] = ["proportion", "share", "fraction", "probability", "percentage", "percent"];
/// Words that denote a column sum.
const TOTALS: [&str; 19] = [
    "итого",
    "всего",
    "合计",
    "合計",
    "总计",
    "totale",
    "suma",
    "somme",
    "subtotal",
    "sub_total",
    "total",
    "totals",
    "sum",
    "all",
    "grand_total",
    "gesamt",
    "summe",
    "insgesamt",
    "overall",
];

/// Words for bins.
const BINS: [&str; 9] = ["bin", "bins", "range", "ranges", "interval", "intervals", "bucket", "buckets", "value"];
/// Names of characters beside a word for bins: `char_bucket`.
const UNIT: [&str; 4] = ["char", "chars", "character", "characters"];

/// Returns whether a name denotes lengths in tokens. Token ID lists do not match.
pub(super) fn is_length(name: &str) -> bool {
    matches!(names::meaning(name).0, Meaning::Length(Unit::Tokens) | Meaning::Prompt | Meaning::Completion)
        && !normal(name).ends_with("ids")
}

/// Returns whether a name denotes numbers of characters: `num_chars`, `char_count`.
pub(super) fn counts_characters(name: &str) -> bool {
    unit(name) == Unit::Characters
}

/// Returns the unit of lengths or bins of lengths by their name. Sizes in bytes are not taken.
pub(super) fn unit(name: &str) -> Unit {
    let name = normal(name);
    let other_words = || name.split('_').filter(|word| !BINS.contains(word)).collect::<Vec<_>>().join("_");
    let meaning = |name: &str| names::meaning(name).0;
    let is_characters = |name: &str| meaning(name) == Meaning::Length(Unit::Characters) || UNIT.contains(&name);
    if is_characters(&name) || is_characters(&other_words()) { Unit::Characters } else { Unit::Tokens }
}

/// Returns whether a name gives no information about the values: an index name, or a generic name.
pub(super) fn is_neutral(name: &str) -> bool {
    is_index(&normal(name)) || ["0", "1", "value", "values"].contains(&normal(name).as_str())
}

/// Returns whether a normalized name is a pandas index name.
pub(super) fn is_index(name: &str) -> bool {
    name.is_empty() || name == "index" || name == "unnamed:_0"
}

/// Returns whether a name denotes length bins: `bin`, `range`, `length_bucket`.
pub(super) fn is_bins(name: &str) -> bool {
    let name = normal(name);
    if is_index(&name) || is_length(&name) {
        return true;
    }
    if counts_characters(&name) {
        return true;
    }
    let is_bin = |word: &&str| BINS.contains(word);
    let (bins, others): (Vec<&str>, Vec<&str>) = name.split('_').partition(is_bin);
    let others = others.join("_");
    !bins.is_empty() && (others.is_empty() || others == "token" || is_length(&others))
}

/// Returns whether a name denotes shares.
pub(super) fn is_share(name: &str) -> bool {
    SHARES.contains(&normal(name).as_str())
}

/// Returns whether a text is a word for a sum.
pub(super) fn is_total(text: &str) -> bool {
    TOTALS.contains(&normal(text.trim_end_matches(':')).as_str())
}

/// Returns the label of a sum row, which contains a word for a sum, and numbers.
pub(super) fn total(row: &[String]) -> Option<&str> {
    let is_number = |cell: &str| super::count(cell).is_some();
    let mut others = row.iter().filter(|cell| !cell.is_empty() && !is_number(cell));
    let label = others.next().filter(|label| is_total(label))?;
    (others.next().is_none() && row.iter().any(|cell| is_number(cell))).then_some(label.as_str())
}

/// Returns the reason why a name is not a length name. A name of another quantity is not to be called
/// `num_tokens`.
pub(super) fn unknown(name: &str) -> String {
    let normalized = normal(name);
    let quantity: Vec<&str> = normalized.split('_').filter(|word| !BINS.contains(word)).collect();
    // `duration_bin` is a duration.
    let meaning = match names::meaning(name).0 {
        Meaning::Unknown | Meaning::BinEdge => names::meaning(&quantity.join("_")).0,
        known => known,
    };
    let name: String = name.chars().take(80).collect();
    match meaning {
        Meaning::Length(unit @ (Unit::Characters | Unit::Bytes)) => {
            format!("{name:?} counts {}, not tokens; convert the numbers first", unit.id())
        }
        Meaning::Unknown | Meaning::Length(Unit::Tokens) | Meaning::Prompt | Meaning::Completion
            if !names::has_other_unit(&name) =>
        {
            format!(
                "{name:?} is not a known name of lengths. If it holds lengths in tokens, name it num_tokens; if it holds numbers of characters, \
                 name it num_chars. Then upload the file again"
            )
        }
        _ => format!(
            "{name:?} is not a known name of lengths in tokens; its name states another quantity. Upload lengths in tokens"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bin_and_length_names() {
        for name in ["bin", "Range", "length", "length_range", "token bucket", "seq_len_bin", "", "index", "interval"] {
            assert!(is_bins(name), "{name}");
        }
        for name in ["age_group", "score_range", "price_bin", "group", "date", "range_of_age"] {
            assert!(!is_bins(name), "{name}");
        }
        for name in ["num_tokens", "Sequence length (tokens)", "prompt_tokens", "len"] {
            assert!(is_length(name), "{name}");
        }
        for name in ["age", "price", "input_ids", "prompt_token_ids", "num_chars", "length (s)", "tokens (%)"] {
            assert!(!is_length(name), "{name}");
        }
    }
}
