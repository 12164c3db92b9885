//! Selects the column with the number of samples per row.

use super::super::histogram;
use super::super::histogram::samples::{self, Numbering};
use super::super::number::{Notation, Number};
use super::super::profile::{self, Profile};
use super::super::value::{Row, Value};
use super::super::{Kind, Meaning, names};
use super::{Measure, Part};

/// Result of the search for the weight column.
pub(super) enum Weight {
    None,
    Column(usize),
    /// A column has a weight name, and the table has further columns.
    Doubtful(usize),
    /// The rows look like a distribution table, or the number may be a property of each sample.
    Unclear,
    /// The lengths may be totals over all samples of a row.
    Totals,
}

/// Returns the weight column of a table of lengths. `head` contains the first rows.
pub(super) fn weight(profiles: &[Profile], parts: &[Part], head: &[&Row<'_>]) -> Weight {
    if parts.is_empty() || !parts.iter().all(|part| matches!(part.measure, Measure::Number(..))) {
        return Weight::None;
    }
    let others: Vec<(usize, &Profile)> = profiles
        .iter()
        .enumerate()
        .filter(|(other, profile)| {
            parts.iter().all(|part| part.index != *other)
                && profile.has_values
                && profile.meaning != Meaning::Identifier
        })
        .collect();
    let is_distribution = |profile: &Profile| {
        matches!(profile.meaning, Meaning::Score | Meaning::BinEdge)
            || names::is_share(&profile.name)
            || names::is_token_share(&profile.name)
    };
    let is_weight = |profile: &Profile| profile.meaning == Meaning::Weight && profile.kind == Kind::Number;
    // Counts for parts of a dataset, such as `train` and `val`.
    let is_counted =
        |profile: &Profile| is_weight(profile) || (profile.kind == Kind::Number && names::is_split(&profile.name));
    let columns = others.iter().filter(|(_, profile)| is_counted(profile)).count();
    let are_counts = others.iter().all(|(_, profile)| is_counted(profile) || is_distribution(profile));
    let weight =
        others.iter().filter(|(_, profile)| is_weight(profile)).min_by_key(|(_, profile)| profile.rank).copied();
    if are_counts && (columns > 1 || (columns == 1 && weight.is_none())) {
        return Weight::Unclear;
    }
    if let Some((weight, profile)) = weight {
        let pairs = pairs(head, profiles, parts, weight);
        let numbering = samples::numbering(&pairs);
        let has_groups = profiles.iter().any(|profile| profile.has_values && names::is_group(&profile.name));
        return if let [only] = parts
            && (samples::are_totals(&only.name, &pairs) || (has_groups && names::may_be_total(&only.name)))
        {
            Weight::Totals
        } else if !are_counts && samples::is_table(&pairs) {
            Weight::Unclear
        } else if !are_counts || numbering == Numbering::Rows {
            Weight::Doubtful(weight)
        } else if numbering == Numbering::Unclear || samples::are(&profile.name, &pairs) {
            Weight::Unclear
        } else {
            Weight::Column(weight)
        };
    }
    let [Part { index, .. }] = parts else { return Weight::None };
    if others
        .iter()
        .any(|(other, profile)| holds_bins(head, profiles, parts, *other) || names::is_token_share(&profile.name))
    {
        return Weight::Unclear;
    }
    // Lower and upper edges.
    let is_edge = |profile: &Profile| profile.meaning == Meaning::BinEdge && profile.kind == Kind::Number;
    if others.len() > 1 && others.iter().all(|(_, profile)| is_edge(profile)) {
        return Weight::Totals;
    }
    // One row per shard or batch.
    let is_shard = |profile: &Profile| profile.strictly_sorted > 1 && names::is_shard(&profile.name);
    let is_batch =
        |profile: &Profile| profile.kind == Kind::Number && profile.has_values && names::is_batch_size(&profile.name);
    if names::may_be_total(&profiles[*index].name)
        && profiles.iter().any(|profile| is_shard(profile) || is_batch(profile))
    {
        return Weight::Totals;
    }
    if others.iter().any(|(_, profile)| profile.kind == Kind::Number && names::is_anonymous(&profile.name)) {
        return Weight::Unclear;
    }
    let is_index = |profile: &Profile| profile.meaning == Meaning::Unknown && profile.name.starts_with("Unnamed: ");
    if others.iter().any(|(_, profile)| profile.kind == Kind::Number && is_index(profile)) {
        return Weight::Unclear;
    }
    // A distribution table has few rows, which are sorted; a dataset with a number per sample is
    // not sorted. Columns without a header are numbered.
    let has_names = others.iter().all(|(_, profile)| profile.name.parse::<u32>().is_err());
    let min_rows = if has_names { 3 } else { 5 };
    let is_number = |profile: &Profile| {
        profile.kind == Kind::Number
            && (is_distribution(profile) || matches!(profile.meaning, Meaning::Unknown | Meaning::Chat | Meaning::Text))
    };
    // `value_counts()` sorts by count.
    let falls = || {
        let [(other, _)] = others.as_slice() else { return false };
        let pairs = pairs(head, profiles, parts, *other);
        pairs.len() >= min_rows && samples::are_sorted_counts(&pairs)
    };
    // Sequence lengths by training step, and counts in thousands.
    let is_scaled = |name: &str| names::is_steps(name) || names::is_scaled_count(name);
    if others.iter().any(|(_, profile)| profile.kind == Kind::Number && is_scaled(&profile.name)) {
        return Weight::Unclear;
    }
    let is_sorted = profiles[*index].strictly_sorted >= min_rows || falls();
    if is_sorted && !others.is_empty() && others.iter().all(|(_, profile)| is_number(profile)) {
        return Weight::Unclear;
    }
    // Distribution shares sum to 1 or 100, in any row order.
    if let [(other, profile)] = others.as_slice()
        && names::is_share(&profile.name)
        && profile.kind == Kind::Number
        && samples::are_shares(&pairs(head, profiles, parts, *other))
    {
        return Weight::Unclear;
    }
    Weight::None
}

/// Returns whether the values are bins, such as `0-512`, that do not contain the lengths.
fn holds_bins(head: &[&Row<'_>], profiles: &[Profile], parts: &[Part], index: usize) -> bool {
    let profile = &profiles[index];
    if profile.meaning != Meaning::BinEdge || profile.kind != Kind::Text {
        return false;
    }
    let is_outside = |row: &&Row<'_>| match row.value(index, &profile.name) {
        Value::Text(bin) => {
            length(row, profiles, parts).and_then(|length| histogram::is_inside(bin, length)) == Some(false)
        }
        _ => false,
    };
    head.iter().any(is_outside)
}

/// Returns pairs of length and number of another column, for first rows with both values.
fn pairs(head: &[&Row<'_>], profiles: &[Profile], parts: &[Part], other: usize) -> Vec<(f64, f64)> {
    head.iter().filter_map(|row| Some((length(row, profiles, parts)?, number(row, profiles, other)?))).collect()
}

/// Returns the row length. For several length columns, returns a distinct number per combination.
fn length(row: &Row<'_>, profiles: &[Profile], parts: &[Part]) -> Option<f64> {
    parts.iter().try_fold(0.0, |length, part| Some(length * f64::from(1 << 21) + number(row, profiles, part.index)?))
}

fn number(row: &Row<'_>, profiles: &[Profile], index: usize) -> Option<f64> {
    let profile = &profiles[index];
    let notation = *profile.notation.as_ref().unwrap_or(&Notation::Point);
    profile::number(row.value(index, &profile.name), notation).map(Number::value)
}
