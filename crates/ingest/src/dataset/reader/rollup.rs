//! Detects rows that are sums over groups of other rows, as SQL's `GROUP BY ROLLUP` writes them:
//! the group cells are empty or contain "total".

use super::super::histogram;
use super::super::profile;
use super::super::value::Value;

/// Returns whether a row may be a sum: an unread cell has no value, or contains a word for a sum.
pub(super) fn is_marked<'v>(mut unread: impl Iterator<Item = &'v Value<'v>>) -> bool {
    unread.any(|value| {
        profile::is_missing(value) || matches!(value, Value::Text(text) if histogram::is_total(text.trim()))
    })
}

/// Returns whether the marked rows are sums of the others: their total is an integer multiple of
/// the other rows' sum, with one multiple per level.
pub(super) fn are_sums(rows: &[(bool, f64)]) -> bool {
    let sum = |marked: bool| rows.iter().filter(|row| row.0 == marked).map(|row| row.1).sum::<f64>();
    let marked = rows.iter().filter(|row| row.0).count();
    let (sums, others) = (sum(true), sum(false));
    let levels = sums / others;
    marked > 0
        && marked * 2 <= rows.len()
        && rows.len() - marked > 2
        && levels >= 1.0
        && (levels - levels.round()).abs() < 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_sums_are_row_multiples() {
        for (rows, expected) in [
            (&[(false, 5.0), (false, 7.0), (true, 12.0), (false, 1.0), (true, 1.0), (true, 13.0)][..], true),
            (&[(false, 5.0), (false, 7.0), (true, 12.0), (false, 1.0), (false, 2.0), (true, 3.0)], true),
            (&[(false, 5.0), (false, 7.0), (true, 11.0), (false, 1.0), (false, 2.0), (true, 3.0)], false),
            (&[(false, 5.0), (true, 7.0), (true, 12.0)], false),
            (&[(false, 5.0), (false, 7.0)], false),
            (&[(false, 5.0), (false, 7.0), (false, 9.0), (true, 21.0)], true),
            (&[(false, 5.0), (false, 7.0), (true, 12.0)], false),
        ] {
            assert_eq!(are_sums(rows), expected, "{rows:?}");
        }
    }
}
