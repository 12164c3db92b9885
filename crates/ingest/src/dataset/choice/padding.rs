//! Detects token ID lists that look padded and have no mask that is read.

use super::super::value::{Ends, Row, Value};
use super::{Measure, Part};

/// Returns a warning about lists of equal length, or about lists that repeat a number at one end.
pub(super) fn sentence(parts: &[Part], head: &[&Row<'_>]) -> Option<String> {
    parts.iter().filter(|part| part.measure == Measure::Elements).find_map(|part| part_sentence(part, head))
}

fn part_sentence(part: &Part, head: &[&Row<'_>]) -> Option<String> {
    /// Minimum number of samples; fewer samples may have equal length by chance.
    const MANY: usize = 10;
    let lists: Vec<(usize, Ends)> = head.iter().flat_map(|row| lists(row.value(part.index, &part.name))).collect();
    let (&(first, _), rest) = lists.split_first()?;
    let name = &part.name;
    let are_equal = !rest.is_empty() && rest.iter().all(|&(count, _)| count == first);
    let number = padding(&lists);
    match number {
        _ if are_equal && (lists.len() >= MANY || number.is_some()) => Some(format!(
            "Every list of {name} has {first} elements. If shorter samples are padded, or several are packed, upload the lengths of the samples."
        )),
        Some(number) => Some(format!(
            "Many lists of {name} repeat {number} at one end, as padded lists do. If it is padding, it is counted; upload the lengths without it."
        )),
        None => None,
    }
}

/// Returns the list itself, or its inner lists, each with its element count.
fn lists(value: &Value<'_>) -> Vec<(usize, Ends)> {
    let Value::List(list) = value else { return Vec::new() };
    match list.items.first() {
        Some(Value::List(_)) => list.items.iter().flat_map(lists).collect(),
        _ => vec![(list.count, list.ends)],
    }
}

/// Returns the number that many lists repeat at the end or start. Each entry contains a list's
/// element count and end runs.
fn padding(lists: &[(usize, Ends)]) -> Option<i128> {
    let at = |end: fn(&Ends) -> (i128, usize)| {
        // A constant list is not evidence. For a long list only a few numbers at each end are
        // known.
        let is_constant = |ends: &Ends| ends.first.0 == ends.last.0 && ends.first.1 > 1 && ends.last.1 > 1;
        let repeated: Vec<(i128, usize)> = lists
            .iter()
            .filter(|(_, ends)| !is_constant(ends))
            .map(|(count, ends)| (*count, end(ends)))
            .filter(|&(count, (_, run))| run > 1 && run < count)
            .map(|(_, run)| run)
            .collect();
        let &(number, _) = repeated.iter().max_by_key(|(_, run)| *run)?;
        let same = repeated.iter().filter(|(candidate, _)| *candidate == number);
        let (twice, thrice) = (same.clone().count(), same.filter(|(_, run)| *run > 2).count());
        let all = lists.iter().filter(|(count, _)| *count > 0).count();
        (all > 1 && (twice * 2 >= all || (thrice > 1 && thrice * 4 >= all))).then_some(number)
    };
    at(|ends| ends.last).or_else(|| at(|ends| ends.first))
}
