//! The column with the number of samples of each row.

use super::super::profile::Profile;
use super::super::{Kind, Meaning, names};
use super::{Measure, Part};

/// The column that holds the number of samples of each row.
pub(super) enum Weight {
    None,
    Column(usize),
    /// There is a column by such a name, beside others.
    Doubtful(usize),
    /// The rows look like a table of a distribution.
    Unclear,
}

/// The column of weights of a table of lengths.
pub(super) fn weight(profiles: &[Profile], parts: &[Part]) -> Weight {
    let [Part { index, measure: Measure::Number(..), .. }] = parts else { return Weight::None };
    let others: Vec<(usize, &Profile)> = profiles
        .iter()
        .enumerate()
        .filter(|(other, own)| other != index && own.has_values && own.meaning != Meaning::Identifier)
        .collect();
    let is_distribution = |own: &Profile| matches!(own.meaning, Meaning::Score | Meaning::BinEdge);
    let weight = others.iter().filter(|(_, own)| own.meaning == Meaning::Weight && own.kind == Kind::Number);
    if let Some((weight, _)) = weight.min_by_key(|(_, own)| own.rank).copied() {
        let is_table = others.iter().all(|(other, own)| *other == weight || is_distribution(own));
        return if is_table { Weight::Column(weight) } else { Weight::Doubtful(weight) };
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
    Weight::None
}
