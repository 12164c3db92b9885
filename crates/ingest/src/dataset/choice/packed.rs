//! Sample lengths in a row that contains several samples, or one padded sample.

use super::super::names::{self, Packing};
use super::super::number::Number;
use super::super::profile::{self, Profile};
use super::super::value::{List, Row, Value};
use super::super::{Kind, Meaning, token_ids};
use super::separators::{self, Found, Separator};
use super::{Measure, Part};

/// A column that defines the sample boundaries within a row.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Packed {
    /// Column index.
    pub(super) index: usize,
    pub(in super::super) name: String,
    /// Index and name of the token ID column.
    ids: usize,
    ids_name: String,
    form: Form,
    /// True if each row contains one sample, whose tokens a mask marks.
    is_single: bool,
    /// True if any of the first rows has padding.
    has_padding: bool,
}

/// Representation of the sample lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A list in a separate column.
    Column(Packing),
    /// A list of token ID lists.
    Inner,
    /// A list of lengths, without token IDs.
    Lengths,
    /// A token ID that starts or ends each sample.
    Separator(Separator),
}

impl Packed {
    /// Returns the column that gives the lengths, if the first rows confirm it. For a column that
    /// the user chooses, only padding is removed.
    pub(super) fn detect(profiles: &[Profile], parts: &[Part], head: &[&Row<'_>], is_selected: bool) -> Option<Self> {
        let [ids] = parts else { return None };
        if ids.measure != Measure::Elements {
            return None;
        }
        let by_column = Self::from_lists(&profiles[ids.index], ids.index).or_else(|| {
            let mut confirmed = columns(profiles, ids).filter_map(|packed| packed.confirmed(ids, head));
            confirmed.find(|packed| packed.is_single || !is_selected)
        });
        match separators::find(&ids.name, ids.index, head) {
            Some(Found::Clear(separator)) if !is_selected && by_column.as_ref().is_none_or(Self::is_single) => {
                let form = Form::Separator(separator);
                Some(Self {
                    form,
                    ..Self::by_name(&profiles[ids.index], ids.index, Packing::Lengths, ids.index, &ids.name)
                })
            }
            _ => by_column,
        }
    }

    /// Creates the entry for a column whose lists are the lengths or the samples.
    pub(in super::super) fn from_lists(profile: &Profile, index: usize) -> Option<Self> {
        let form = match profile.kind {
            Kind::NestedList if token_ids::are_listed(&profile.name) => Form::Inner,
            Kind::NumberList if names::holds_lengths(&profile.name) => Form::Lengths,
            _ => return None,
        };
        let name = || profile.name.clone();
        Some(Self { index, name: name(), ids: index, ids_name: name(), form, is_single: false, has_padding: false })
    }

    /// Creates the entry for a column by the meaning of the name.
    fn by_name(profile: &Profile, index: usize, packing: Packing, ids: usize, ids_name: &str) -> Self {
        let (name, ids_name) = (profile.name.clone(), ids_name.to_owned());
        Self { index, name, ids, ids_name, form: Form::Column(packing), is_single: false, has_padding: false }
    }

    /// Returns the sample lengths of a row; `None` if the values do not define them.
    pub(in super::super) fn lengths(&self, row: &Row<'_>) -> Option<Vec<i128>> {
        let value = row.value(self.index, &self.name);
        if let Form::Separator(separator) = self.form {
            return Some(separator.lengths(&separators::read(value)?));
        }
        let printed;
        let list = match value {
            Value::List(list) => list,
            Value::Text(text) => {
                printed = printed_list(text)?;
                &printed
            }
            // A row without a mask has no padding.
            Value::Missing if self.form == Form::Column(Packing::Mask) => {
                return Some(vec![count(row.value(self.ids, &self.ids_name))? as i128]);
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
        if self.form == Form::Column(Packing::Ranges)
            || matches!(list.items.first(), Some(Value::List(_) | Value::Object(_)))
        {
            return ranges(list);
        }
        let numbers = numbers(list)?;
        let Form::Column(packing) = self.form else { return Some(numbers) };
        match packing {
            Packing::Lengths => Some(numbers.into_iter().filter(|&length| length != 0).collect()),
            Packing::Places => runs(&numbers),
            Packing::Sums => (numbers.first() == Some(&0)).then(|| differences(&numbers)),
            Packing::Starts => {
                let end = count(row.value(self.ids, &self.ids_name))? as i128;
                let ends = numbers.iter().copied().chain([end]).collect::<Vec<_>>();
                (numbers.first() == Some(&0)).then(|| differences(&ends))
            }
            Packing::Ranges => None,
            Packing::Cuts => {
                let count = count(row.value(self.ids, &self.ids_name))? as i128;
                let inner = numbers.iter().copied().filter(|&cut| cut != 0 && cut != count);
                let all: Vec<i128> = std::iter::once(0).chain(inner).chain([count]).collect();
                Some(all.array_windows().map(|[start, end]| end - start).collect())
            }
            // A mask of zeros and ones may have gaps.
            Packing::Mask if numbers.iter().all(|&number| number == 0 || number == 1) => {
                Some(vec![numbers.iter().sum()])
            }
            // The first sample may have number 0; elsewhere 0 and -1 mean padding.
            Packing::Mask | Packing::Numbers | Packing::Types => {
                let runs = numbers.chunk_by(|previous, next| previous == next).enumerate();
                let is_sample =
                    |at: usize, number: i128| number > 0 || (at == 0 && number == 0 && packing != Packing::Mask);
                Some(runs.filter(|(at, run)| is_sample(*at, run[0])).map(|(_, run)| run.len() as i128).collect())
            }
        }
    }

    /// Returns the column if the sample lengths of each row sum to the row length, or to less in a
    /// padded row. The column must also be a mask, or a row must contain several samples.
    fn confirmed(mut self, ids: &Part, head: &[&Row<'_>]) -> Option<Self> {
        let (mut has_rows, mut has_several) = (false, false);
        // Two parts may be a pair of sentences.
        let mut is_numbered = self.form != Form::Column(Packing::Types);
        for row in head {
            let Some(all) = count(row.value(ids.index, &ids.name)) else { continue };
            let lengths = self.lengths(row)?;
            let sum: i128 = lengths.iter().sum();
            if lengths.iter().any(|&length| length < 1) || sum > all as i128 {
                return None;
            }
            has_rows = true;
            has_several |= lengths.len() > 1;
            is_numbered |= lengths.len() > 2;
            self.has_padding |= sum < all as i128;
        }
        self.is_single = has_rows && !has_several && self.form == Form::Column(Packing::Mask);
        (is_numbered && (has_several || self.is_single)).then_some(self)
    }

    /// Returns whether each row is a list of samples.
    pub(super) fn is_inner(&self) -> bool {
        self.form == Form::Inner
    }

    /// Returns whether the token IDs separate the samples.
    pub(in super::super) const fn reads_ids(&self) -> bool {
        matches!(self.form, Form::Separator(_))
    }

    /// Returns whether each row is one sample.
    pub(super) const fn is_single(&self) -> bool {
        self.is_single
    }

    /// Returns a sentence that describes the lengths; `None` if they are element counts.
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
            Form::Separator(separator) => format!(
                "Each row holds several samples: {} in {name}. To count rows, choose the column {name}.",
                separator.clause()
            ),
            Form::Column(_) if self.is_single => {
                format!("{ids_name} is padded. Only the tokens that {name} marks are counted.")
            }
            Form::Column(_) => format!("Each row holds several samples. Their lengths are those of {name}."),
        })
    }
}

/// Returns the element count of a list, or of a list written as text.
fn count(value: &Value<'_>) -> Option<usize> {
    match value {
        Value::List(list) => Some(list.count),
        Value::Text(text) => profile::elements(text).or_else(|| profile::bare_elements(text)),
        _ => None,
    }
}

/// Returns the integers of a list that is written as text, as CSV files have it: `[512, 300]`.
fn printed_list(text: &str) -> Option<List<'static>> {
    let inner = profile::inner(text).unwrap_or(text);
    let words = inner.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty());
    let number = |word: &str| Some(Value::Number(Number::Integer(word.parse().ok()?)));
    let items: Vec<Value<'static>> = words.map(number).collect::<Option<_>>()?;
    Some(List { count: items.len(), items, ..List::default() })
}

/// Returns the integers of a list; `None` if any element is not an integer.
fn numbers(list: &List<'_>) -> Option<Vec<i128>> {
    let number = |item: &Value<'_>| match item {
        Value::Number(number) if number.value().fract() == 0.0 => Some(number.value() as i128),
        Value::Boolean(value) => Some(i128::from(*value)),
        _ => None,
    };
    list.items.iter().map(number).collect()
}

/// Returns the lengths of ranges: pairs of start and end, with or without the last token.
fn ranges(list: &List<'_>) -> Option<Vec<i128>> {
    let pair = |item: &Value<'_>| match item {
        Value::List(pair) => <[i128; 2]>::try_from(numbers(pair)?).ok(),
        Value::Object(members) => {
            let edge = |known: &str| members.iter().find(|(name, _)| name == known).map(|(_, edge)| edge);
            match (edge("start")?, edge("end")?) {
                (Value::Number(start), Value::Number(end)) => Some([start.value() as i128, end.value() as i128]),
                _ => None,
            }
        }
        _ => None,
    };
    let pairs: Vec<[i128; 2]> = list.items.iter().map(pair).collect::<Option<_>>()?;
    let joined = |gap: i128| pairs.array_windows().all(|[before, after]| after[0] - before[1] == gap);
    let last = i128::from(pairs.len() > 1 && joined(1));
    Some(pairs.iter().map(|[start, end]| end - start + last).collect())
}

/// Returns other columns that define sample boundaries, in descending order of precision.
fn columns(profiles: &[Profile], ids: &Part) -> impl Iterator<Item = Packed> {
    let are_inputs = names::is_same(&ids.name, names::INPUTS);
    let are_ids = token_ids::are_listed(&ids.name) || are_inputs;
    let is_list = |own: &Profile| {
        own.has_values
            && match own.kind {
                Kind::NumberList => true,
                Kind::NestedList | Kind::ObjectList => {
                    matches!(names::packing(&own.name), Some(Packing::Ranges | Packing::Cuts))
                }
                _ => false,
            }
    };
    let lists =
        profiles.iter().enumerate().filter(move |(index, profile)| are_ids && *index != ids.index && is_list(profile));
    let mut found: Vec<(Packing, usize)> =
        lists.filter_map(|(index, profile)| Some((names::packing(&profile.name)?, index))).collect();
    found.sort_by_key(|(packing, _)| *packing);
    // Positions of padding are 0; the numbers of the samples state it.
    if are_inputs && found.iter().any(|(packing, _)| *packing == Packing::Numbers) {
        found.retain(|(packing, _)| *packing != Packing::Places);
    }
    found.into_iter().map(|(packing, index)| Packed::by_name(&profiles[index], index, packing, ids.index, &ids.name))
}

/// Differences between neighbours; trailing zeros are padding.
fn differences(sums: &[i128]) -> Vec<i128> {
    sums.array_windows().map(|[before, after]| after - before).filter(|&length| length != 0).collect()
}

/// Returns a warning about an unread column that may define sample boundaries.
pub(super) fn unread(profiles: &[Profile], parts: &[Part], head: &[&Row<'_>]) -> Option<String> {
    let Some(ids) = parts.iter().find(|part| part.measure == Measure::Elements) else {
        return unread_lists(profiles, parts, head);
    };
    let is_doubtful = |packed: &Packed| {
        let is_hidden = |row: &&Row<'_>| matches!(row.value(packed.index, &packed.name), Value::List(list) if list.items.len() != list.count);
        head.iter().any(is_hidden)
            || packed.clone().confirmed(ids, head).is_some_and(|packed| packed.sentence().is_some())
    };
    let is_mask = |profile: &&Profile| {
        profile.kind == Kind::NestedList && profile.has_values && names::packing(&profile.name) == Some(Packing::Mask)
    };
    // A column with the number of samples per row.
    let is_count = |profile: &&Profile| {
        let is_all_ones = profile.is_constant && profile.samples.first().is_some_and(|count| count == "1");
        let counts = profile.meaning == Meaning::Weight || names::counts_packed(&profile.name);
        counts && profile.kind == Kind::Number && profile.has_values && !is_all_ones
    };
    let is_typed = |packed: &Packed| {
        packed.form == Form::Column(Packing::Types)
            && head.iter().any(|row| packed.lengths(row).is_some_and(|lengths| lengths.len() > 1))
    };
    // The values of a column with such a name are not understood.
    let is_unclear = |packed: &Packed| {
        !matches!(packed.form, Form::Column(Packing::Mask | Packing::Types))
            && packed.clone().confirmed(ids, head).is_none()
            && head.iter().any(|row| packed.lengths(row).is_none_or(|lengths| lengths.len() != 1))
    };
    let name = columns(profiles, ids)
        .find(|packed| is_doubtful(packed) || is_typed(packed) || is_unclear(packed))
        .map(|packed| packed.name)
        .or_else(|| profiles.iter().find(is_mask).map(|profile| profile.name.clone()))
        .or_else(|| profiles.iter().find(is_count).map(|own| own.name.clone()));
    let Some(name) = name else {
        return separators::unread(parts, head);
    };
    Some(format!(
        "{name} is not read. If the lists of {} hold several samples or padding, upload the lengths of the samples.",
        ids.name
    ))
}

/// Returns a warning about lists with several samples if the lengths come from a number column.
fn unread_lists(profiles: &[Profile], parts: &[Part], head: &[&Row<'_>]) -> Option<String> {
    let are_numbers = parts.iter().all(|part| matches!(part.measure, Measure::Number(..)));
    let has_several = |packed: &Packed| {
        head.iter().any(|row| {
            packed.lengths(row).is_some_and(|lengths| lengths.iter().filter(|&&length| length > 0).count() > 1)
        })
    };
    let lists = profiles.iter().enumerate().filter(|(_, profile)| are_numbers && profile.kind == Kind::NumberList);
    let packed = lists
        .filter_map(|(index, profile)| {
            Some(Packed::by_name(profile, index, names::packing(&profile.name)?, index, &profile.name))
        })
        .find(has_several);
    let Some(packed) = packed else {
        // The numbers may be the lengths of packs.
        let mut ids = profiles.iter().enumerate().filter(|_| are_numbers);
        return ids.find_map(|(index, own)| separators::sentence(&own.name, index, head));
    };
    Some(format!("{} is not read. If each row holds several samples, upload the lengths of the samples.", packed.name))
}

/// Lengths of runs of positions that start at 0. Trailing zeros are padding.
fn runs(places: &[i128]) -> Option<Vec<i128>> {
    if places.first() != Some(&0) {
        return None;
    }
    let mut end = places.len();
    if places.ends_with(&[0, 0]) {
        end = places.iter().rposition(|&position| position != 0)? + 1;
    }
    let mut lengths: Vec<i128> = Vec::new();
    for &position in places.get(..end)? {
        match lengths.last_mut() {
            Some(length) if position != 0 => *length += 1,
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
