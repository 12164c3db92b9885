//! The column with the number of samples of each row.

use super::super::number::{Notation, Number};
use super::super::profile::{self, Profile};
use super::super::value::Row;
use super::super::{Kind, Meaning, histogram, names};
use super::{Measure, Part};

/// The column that holds the number of samples of each row.
pub(super) enum Weight {
    None,
    Column(usize),
    /// There is a column by such a name, beside others.
    Doubtful(usize),
    /// The rows look like a table of a distribution, or a number by such a name may be a property of each sample.
    Unclear,
}

/// The column of weights of a table of lengths. `head` holds the first rows.
pub(super) fn weight(profiles: &[Profile], parts: &[Part], head: &[&Row<'_>]) -> Weight {
    let [Part { index, measure: Measure::Number(..), .. }] = parts else { return Weight::None };
    let others: Vec<(usize, &Profile)> = profiles
        .iter()
        .enumerate()
        .filter(|(other, own)| other != index && own.has_values && own.meaning != Meaning::Identifier)
        .collect();
    let is_distribution =
        |own: &Profile| matches!(own.meaning, Meaning::Score | Meaning::BinEdge) || names::is_share(&own.name);
    let is_weight = |own: &Profile| own.meaning == Meaning::Weight && own.kind == Kind::Number;
    // Counts of parts of a dataset, such as `train` and `val`.
    let is_counted = |own: &Profile| is_weight(own) || (own.kind == Kind::Number && names::is_split(&own.name));
    let columns = others.iter().filter(|(_, own)| is_counted(own)).count();
    let are_counts = others.iter().all(|(_, own)| is_counted(own) || is_distribution(own));
    let weight = others.iter().filter(|(_, own)| is_weight(own)).min_by_key(|(_, own)| own.rank).copied();
    if are_counts && (columns > 1 || (columns == 1 && weight.is_none())) {
        return Weight::Unclear;
    }
    if let Some((weight, own)) = weight {
        return if !are_counts {
            Weight::Doubtful(weight)
        } else if histogram::samples::are(&own.name, &pairs(head, &profiles[*index], *index, own, weight)) {
            Weight::Unclear
        } else {
            Weight::Column(weight)
        };
    }
    let is_index = |own: &Profile| own.meaning == Meaning::Unknown && own.name.starts_with("Unnamed: ");
    if others.iter().any(|(_, own)| own.kind == Kind::Number && is_index(own)) {
        return Weight::Unclear;
    }
    // A table of percentiles or bins has few rows; a dataset with a score per sample is not sorted.
    let least = if others.iter().all(|(_, own)| names::is_share(&own.name)) { 3 } else { 5 };
    let is_number =
        |own: &Profile| own.kind == Kind::Number && (is_distribution(own) || own.meaning == Meaning::Unknown);
    let is_sorted = profiles[*index].strictly_sorted >= least;
    if is_sorted && !others.is_empty() && others.iter().all(|(_, own)| is_number(own)) {
        return Weight::Unclear;
    }
    // Shares of a distribution sum to 1 or 100, in any order.
    if let [(other, own)] = others.as_slice()
        && names::is_share(&own.name)
        && own.kind == Kind::Number
        && histogram::samples::are_shares(&pairs(head, &profiles[*index], *index, own, *other))
    {
        return Weight::Unclear;
    }
    Weight::None
}

/// Numbers of two columns in the first rows that hold both.
fn pairs(head: &[&Row<'_>], length: &Profile, index: usize, own: &Profile, other: usize) -> Vec<(f64, f64)> {
    let number = |row: &Row<'_>, profile: &Profile, index: usize| {
        let notation = *profile.notation.as_ref().unwrap_or(&Notation::Point);
        profile::number(row.value(index, &profile.name), notation).map(Number::value)
    };
    head.iter().filter_map(|row| Some((number(row, length, index)?, number(row, own, other)?))).collect()
}
