//! Lengths of the samples that are packed into one row of identifiers.

use super::super::profile::Profile;
use super::super::value::{Row, Value};
use super::super::{Kind, names, token_ids};
use super::{Measure, Part};

/// A column that tells where the samples of a row end.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Packed {
    /// Place among the columns.
    pub(super) index: usize,
    pub(in super::super) name: String,
    /// Place and name of the column of identifiers.
    ids: usize,
    ids_name: String,
    form: Form,
}

/// How a column tells where the samples of a row end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Form {
    /// Lengths of the samples: `seq_lens`.
    Lengths,
    /// Places of tokens within their samples: `position_ids`.
    Places,
    /// Sums of the lengths so far, from 0 to the length of the row: `cu_seqlens`.
    Sums,
    /// Where each sample starts: `seq_start_id`.
    Starts,
    /// The number of its sample for each token: `segment_ids`; 0 is padding.
    Numbers,
}

impl Packed {
    /// The column of packed samples, if the first rows confirm it.
    pub(super) fn of(profiles: &[Profile], parts: &[Part], head: &[&Row<'_>]) -> Option<Self> {
        let [ids] = parts else { return None };
        if ids.measure != Measure::Elements || !token_ids::are_listed(&ids.name) {
            return None;
        }
        columns(profiles, ids).find(|packed| packed.is_confirmed(ids, head))
    }

    /// Lengths of the samples of a row; `None` if its values do not tell them.
    pub(in super::super) fn lengths(&self, row: &Row<'_>) -> Option<Vec<i128>> {
        let Value::List(list) = row.value(self.index, &self.name) else { return None };
        if list.items.len() != list.count {
            return None;
        }
        let numbers: Vec<i128> = list
            .items
            .iter()
            .map(|item| match item {
                Value::Number(number) if number.value().fract() == 0.0 => Some(number.value() as i128),
                _ => None,
            })
            .collect::<Option<_>>()?;
        match self.form {
            Form::Lengths => Some(numbers.into_iter().filter(|&length| length != 0).collect()),
            Form::Places => runs(&numbers),
            Form::Sums => (numbers.first() == Some(&0)).then(|| differences(&numbers)),
            Form::Starts => {
                let Value::List(ids) = row.value(self.ids, &self.ids_name) else { return None };
                let ends = numbers.iter().copied().chain([ids.count as i128]).collect::<Vec<_>>();
                (numbers.first() == Some(&0)).then(|| differences(&ends))
            }
            Form::Numbers => Some(
                numbers
                    .chunk_by(|one, next| one == next)
                    .filter(|run| run[0] != 0)
                    .map(|run| run.len() as i128)
                    .collect(),
            ),
        }
    }

    /// Whether the samples of each row have as many tokens as the row, or less where it is padded, and any row has several samples.
    fn is_confirmed(&self, ids: &Part, head: &[&Row<'_>]) -> bool {
        let mut has_several = false;
        for row in head {
            let Value::List(list) = row.value(ids.index, &ids.name) else { continue };
            let Some(lengths) = self.lengths(row) else { return false };
            let sum: i128 = lengths.iter().sum();
            if lengths.iter().any(|&length| length < 1) || sum > list.count as i128 {
                return false;
            }
            has_several |= lengths.len() > 1;
        }
        has_several
    }
}

/// Columns by the names of lengths of packed samples, or of places of tokens.
fn columns(profiles: &[Profile], ids: &Part) -> impl Iterator<Item = Packed> {
    let by = |form: Form, is_known: fn(&str) -> bool| {
        let is_known = move |own: &Profile| own.has_values && own.kind == Kind::ListOfNumbers && is_known(&own.name);
        profiles.iter().enumerate().filter(move |(_, own)| is_known(own)).map(move |(index, own)| Packed {
            index,
            name: own.name.clone(),
            ids: ids.index,
            ids_name: ids.name.clone(),
            form,
        })
    };
    by(Form::Lengths, names::holds_packed_lengths)
        .chain(by(Form::Places, names::holds_positions))
        .chain(by(Form::Sums, names::holds_sums))
        .chain(by(Form::Starts, names::holds_starts))
        .chain(by(Form::Numbers, names::holds_sample_numbers))
}

/// Differences of neighbours; zeros at the end are padding.
fn differences(sums: &[i128]) -> Vec<i128> {
    sums.array_windows().map(|[before, after]| after - before).filter(|&length| length != 0).collect()
}

/// A sentence about a column of packed samples whose values are not at hand.
pub(super) fn unread(profiles: &[Profile], parts: &[Part], head: &[&Row<'_>]) -> Option<String> {
    let [ids] = parts else { return None };
    if ids.measure != Measure::Elements || !token_ids::are_listed(&ids.name) {
        return None;
    }
    let is_hidden = |packed: &Packed| {
        head.iter().any(
            |row| matches!(row.value(packed.index, &packed.name), Value::List(list) if list.items.len() != list.count),
        )
    };
    let packed = columns(profiles, ids).find(is_hidden)?;
    Some(format!(
        "{} is not read. If each list of {} holds several samples, upload the lengths of the samples.",
        packed.name, ids.name
    ))
}

/// Lengths of runs of places that start at 0. Zeros at the end are padding.
fn runs(places: &[i128]) -> Option<Vec<i128>> {
    if places.first() != Some(&0) {
        return None;
    }
    let mut end = places.len();
    if places.ends_with(&[0, 0]) {
        end = places.iter().rposition(|&place| place != 0)? + 1;
    }
    let mut lengths: Vec<i128> = Vec::new();
    for &place in places.get(..end)? {
        match lengths.last_mut() {
            Some(length) if place != 0 => *length += 1,
            _ => lengths.push(1),
        }
    }
    Some(lengths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_restart_with_each_sample() {
        for (places, expected) in [
            (&[0, 1, 2, 0, 1][..], Some(vec![3, 2])),
            (&[0, 1, 2], Some(vec![3])),
            (&[0, 1, 0, 1, 2, 0, 0, 0], Some(vec![2, 3])),
            (&[1, 2, 0], None),
            (&[0, 0], None),
            (&[], None),
        ] {
            assert_eq!(runs(places), expected, "{places:?}");
        }
    }
}
