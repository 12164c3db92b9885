//! Lengths of the samples of a row that holds several of them, or one with padding.

use super::super::names::{self, Packing};
use super::super::profile::Profile;
use super::super::value::{List, Row, Value};
use super::super::{Kind, Meaning, token_ids};
use super::{Measure, Part};

/// A column that says where the samples of a row end.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Packed {
    /// Place among the columns.
    pub(super) index: usize,
    pub(in super::super) name: String,
    /// Place and name of the column of identifiers.
    ids: usize,
    ids_name: String,
    form: Form,
    /// Each row holds one sample, whose tokens a mask marks.
    is_single: bool,
    /// Any of the first rows has padding.
    has_padding: bool,
}

/// How a column gives the lengths of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A list in another column than the identifiers.
    Column(Packing),
    /// A list of lists of identifiers.
    Inner,
    /// A list of lengths, without identifiers.
    Lengths,
}

impl Packed {
    /// The column that gives the lengths, if the first rows confirm it. Of a column that the user chooses only padding is left out.
    pub(super) fn of(profiles: &[Profile], parts: &[Part], head: &[&Row<'_>], is_chosen: bool) -> Option<Self> {
        let [ids] = parts else { return None };
        if ids.measure != Measure::Elements {
            return None;
        }
        Self::of_lists(&profiles[ids.index], ids.index).or_else(|| {
            let mut confirmed = columns(profiles, ids).filter_map(|packed| packed.confirmed(ids, head));
            confirmed.find(|packed| packed.is_single || !is_chosen)
        })
    }

    /// A column of lists that are the lengths, or the samples.
    pub(in super::super) fn of_lists(own: &Profile, index: usize) -> Option<Self> {
        let form = match own.kind {
            Kind::ListOfLists if token_ids::are_listed(&own.name) => Form::Inner,
            Kind::ListOfNumbers if names::holds_lengths(&own.name) => Form::Lengths,
            _ => return None,
        };
        let name = || own.name.clone();
        Some(Self { index, name: name(), ids: index, ids_name: name(), form, is_single: false, has_padding: false })
    }

    /// A column by the meaning of its name.
    fn by_name(own: &Profile, index: usize, packing: Packing, ids: usize, ids_name: &str) -> Self {
        let (name, ids_name) = (own.name.clone(), ids_name.to_owned());
        Self { index, name, ids, ids_name, form: Form::Column(packing), is_single: false, has_padding: false }
    }

    /// Lengths of the samples of a row; `None` if its values do not give them.
    pub(in super::super) fn lengths(&self, row: &Row<'_>) -> Option<Vec<i128>> {
        let list = match row.value(self.index, &self.name) {
            Value::List(list) => list,
            // A row without a mask has no padding.
            Value::Missing if self.form == Form::Column(Packing::Mask) => {
                let Value::List(ids) = row.value(self.ids, &self.ids_name) else { return None };
                return Some(vec![ids.count as i128]);
            }
            _ => return None,
        };
        if list.items.len() != list.count {
            return None;
        }
        if self.form == Form::Inner {
            let count = |item: &Value<'_>| match item {
                Value::List(inner) => Some(inner.count as i128),
                _ => None,
            };
            return list.items.iter().map(count).collect();
        }
        let numbers = numbers(list)?;
        let Form::Column(packing) = self.form else { return Some(numbers) };
        match packing {
            Packing::Lengths => Some(numbers.into_iter().filter(|&length| length != 0).collect()),
            Packing::Places => runs(&numbers),
            Packing::Sums => (numbers.first() == Some(&0)).then(|| differences(&numbers)),
            Packing::Starts => {
                let Value::List(ids) = row.value(self.ids, &self.ids_name) else { return None };
                let ends = numbers.iter().copied().chain([ids.count as i128]).collect::<Vec<_>>();
                (numbers.first() == Some(&0)).then(|| differences(&ends))
            }
            // A mask of zeros and ones may have gaps.
            Packing::Mask if numbers.iter().all(|&number| number == 0 || number == 1) => {
                Some(vec![numbers.iter().sum()])
            }
            // The first sample may have the number 0; elsewhere 0 is padding.
            Packing::Mask | Packing::Numbers => {
                let runs = numbers.chunk_by(|one, next| one == next).enumerate();
                let is_sample = |at: usize, number: i128| number != 0 || (at == 0 && packing == Packing::Numbers);
                Some(runs.filter(|(at, run)| is_sample(*at, run[0])).map(|(_, run)| run.len() as i128).collect())
            }
        }
    }

    /// The column, if the samples of each row have as many tokens as the row, or less where it is padded. It is a mask, or any row has
    /// several samples.
    fn confirmed(mut self, ids: &Part, head: &[&Row<'_>]) -> Option<Self> {
        let (mut has_rows, mut has_several) = (false, false);
        for row in head {
            let Value::List(list) = row.value(ids.index, &ids.name) else { continue };
            let lengths = self.lengths(row)?;
            let sum: i128 = lengths.iter().sum();
            if lengths.iter().any(|&length| length < 1) || sum > list.count as i128 {
                return None;
            }
            has_rows = true;
            has_several |= lengths.len() > 1;
            self.has_padding |= sum < list.count as i128;
        }
        self.is_single = has_rows && !has_several && self.form == Form::Column(Packing::Mask);
        (has_several || self.is_single).then_some(self)
    }

    /// Whether each row is a list of samples.
    pub(super) fn is_inner(&self) -> bool {
        self.form == Form::Inner
    }

    /// Whether each row is one sample.
    pub(super) const fn is_single(&self) -> bool {
        self.is_single
    }

    /// What the lengths are, as a sentence; `None` if they are the numbers of elements.
    pub(super) fn sentence(&self) -> Option<String> {
        let Self { name, ids_name, .. } = self;
        if self.is_single && !self.has_padding {
            return None;
        }
        Some(match self.form {
            Form::Inner => format!("{name} holds lists of lists of identifiers. Each inner list is one sample."),
            Form::Lengths => format!(
                "Each number in the lists of {name} is read as the length of one sample. If they are identifiers of tokens, call the column input_ids."
            ),
            Form::Column(_) if self.is_single => {
                format!("{ids_name} is padded. Only the tokens that {name} marks are counted.")
            }
            Form::Column(_) => format!("Each row holds several samples. Their lengths are those of {name}."),
        })
    }
}

/// The whole numbers of a list; `None` if it holds anything else.
fn numbers(list: &List<'_>) -> Option<Vec<i128>> {
    let number = |item: &Value<'_>| match item {
        Value::Number(number) if number.value().fract() == 0.0 => Some(number.value() as i128),
        Value::Boolean(value) => Some(i128::from(*value)),
        _ => None,
    };
    list.items.iter().map(number).collect()
}

/// Other columns that say where samples end, the most exact first.
fn columns(profiles: &[Profile], ids: &Part) -> impl Iterator<Item = Packed> {
    let are_ids = token_ids::are_listed(&ids.name);
    let is_list = |own: &Profile| own.has_values && own.kind == Kind::ListOfNumbers;
    let lists = profiles.iter().enumerate().filter(move |(index, own)| are_ids && *index != ids.index && is_list(own));
    let mut found: Vec<(Packing, usize)> =
        lists.filter_map(|(index, own)| Some((names::packing(&own.name)?, index))).collect();
    found.sort_by_key(|(packing, _)| *packing);
    found.into_iter().map(|(packing, index)| Packed::by_name(&profiles[index], index, packing, ids.index, &ids.name))
}

/// Differences of neighbours; zeros at the end are padding.
fn differences(sums: &[i128]) -> Vec<i128> {
    sums.array_windows().map(|[before, after]| after - before).filter(|&length| length != 0).collect()
}

/// A sentence about a column that may say where samples end and that is not read.
pub(super) fn unread(profiles: &[Profile], parts: &[Part], head: &[&Row<'_>]) -> Option<String> {
    let Some(ids) = parts.iter().find(|part| part.measure == Measure::Elements) else {
        return unread_lists(profiles, parts, head);
    };
    let is_doubtful = |packed: &Packed| {
        let is_hidden = |row: &&Row<'_>| matches!(row.value(packed.index, &packed.name), Value::List(list) if list.items.len() != list.count);
        head.iter().any(is_hidden)
            || packed.clone().confirmed(ids, head).is_some_and(|packed| packed.sentence().is_some())
    };
    let is_mask = |own: &&Profile| {
        own.kind == Kind::ListOfLists && own.has_values && names::packing(&own.name) == Some(Packing::Mask)
    };
    // A number of samples of each row.
    let is_count = |own: &&Profile| {
        let is_one = own.is_constant && own.samples.first().is_some_and(|count| count == "1");
        own.meaning == Meaning::Weight && own.kind == Kind::Number && own.has_values && !is_one
    };
    let name = columns(profiles, ids)
        .find(is_doubtful)
        .map(|packed| packed.name)
        .or_else(|| profiles.iter().find(is_mask).map(|own| own.name.clone()))
        .or_else(|| profiles.iter().find(is_count).map(|own| own.name.clone()))?;
    Some(format!(
        "{name} is not read. If the lists of {} hold several samples or padding, upload the lengths of the samples.",
        ids.name
    ))
}

/// A sentence about lists with several samples in rows whose lengths are numbers.
fn unread_lists(profiles: &[Profile], parts: &[Part], head: &[&Row<'_>]) -> Option<String> {
    let are_numbers = parts.iter().all(|part| matches!(part.measure, Measure::Number(..)));
    let has_several = |packed: &Packed| {
        head.iter().any(|row| {
            packed.lengths(row).is_some_and(|lengths| lengths.iter().filter(|&&length| length > 0).count() > 1)
        })
    };
    let lists = profiles.iter().enumerate().filter(|(_, own)| are_numbers && own.kind == Kind::ListOfNumbers);
    let packed = lists
        .filter_map(|(index, own)| Some(Packed::by_name(own, index, names::packing(&own.name)?, index, &own.name)))
        .find(has_several)?;
    Some(format!("{} is not read. If each row holds several samples, upload the lengths of the samples.", packed.name))
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
