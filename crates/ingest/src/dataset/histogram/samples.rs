//! Distinguishes rows that are samples from rows that represent several samples.

use super::super::names;
use super::normal;
use super::shares::is_full_sum;

/// Maximum sample length that is accepted without user confirmation, in tokens.
const MAX: f64 = 1e6;

/// Returns whether rows of a length and a number are samples, and not counts by length. The
/// decision uses the number's name and the values. A table of counts has one row per length; a
/// number such as `weight` or `n` may also be a property of each sample.
pub(in super::super) fn are(name: &str, rows: &[(f64, f64)]) -> bool {
    let mut lengths: Vec<f64> = rows.iter().map(|(length, _)| *length).collect();
    lengths.sort_by(f64::total_cmp);
    lengths.dedup_by(|current, next| current.total_cmp(next).is_eq());
    let has_repeats = lengths.len() < rows.len();
    let has_fractions = rows.iter().any(|(_, number)| number.fract() != 0.0);
    if ["weight", "weights", "n"].contains(&normal(name).as_str()) {
        return has_repeats || (has_fractions && !is_full_sum(rows.iter().map(|(_, number)| number).sum()));
    }
    has_repeats && (has_fractions || lengths.len() * 2 < rows.len())
}

/// Returns whether the length of a row is the token total of all its samples, and not the length of
/// each sample.
pub(in super::super) fn are_totals(name: &str, rows: &[(f64, f64)]) -> bool {
    if is_long(rows.iter().map(|(length, _)| *length)) {
        return true;
    }
    if !names::may_be_total(name) || rows.len() < 3 {
        return false;
    }
    // Packs with equal sample counts.
    let is_constant = rows.iter().all(|(_, count)| count.total_cmp(&rows[0].1).is_eq());
    if is_constant && rows.iter().all(|&(length, count)| count > 1.0 && length >= count) {
        return true;
    }
    if rows.iter().any(|&(length, count)| count <= 1.0 || length < count) {
        return false;
    }
    let spread = |values: &dyn Fn(&(f64, f64)) -> f64| {
        let lower = rows.iter().map(values).fold(f64::INFINITY, f64::min);
        rows.iter().map(values).fold(0.0, f64::max) / lower
    };
    // The tokens grow with the sample count, so the mean per row is nearly constant.
    spread(&|row| row.0) >= 2.0 && spread(&|row| row.0 / row.1) <= 2.0
}

/// Interpretation of numbers that increase in equal steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Numbering {
    /// The numbers may be counts.
    None,
    /// Row numbers, from 0 or 1.
    Rows,
    /// Row numbers or counts.
    Unclear,
}

/// Returns whether the second numbers, in file order, are row numbers.
pub(in super::super) fn numbering(rows: &[(f64, f64)]) -> Numbering {
    // The last row may contain sums.
    if let [first @ .., _] = rows
        && first.len() > 4
        && numbers_rows(first) != Numbering::None
    {
        return match numbers_rows(rows) {
            Numbering::Rows => Numbering::Rows,
            _ => Numbering::Unclear,
        };
    }
    numbers_rows(rows)
}

fn numbers_rows(rows: &[(f64, f64)]) -> Numbering {
    let numbers = || rows.iter().map(|(_, number)| *number);
    let Some(first) = numbers().next() else { return Numbering::None };
    if rows.len() < 3 || numbers().any(|number| number.fract() != 0.0) {
        return Numbering::None;
    }
    let is_unity = |number: f64| number.total_cmp(&1.0).is_eq();
    let lengths_rise = rows.array_windows().all(|[previous, next]| previous.0 < next.0);
    let lengths_fall = rows.array_windows().all(|[previous, next]| previous.0 > next.0);
    let step = |sorted: &[f64]| {
        let mut steps = sorted.array_windows().map(|[previous, next]| next - previous);
        let first = steps.next().unwrap_or_default();
        (first > 0.0 && steps.all(|step| step.total_cmp(&first).is_eq())).then_some(first)
    };
    let in_order: Vec<f64> = numbers().collect();
    if let Some(step) = step(&in_order) {
        let are_rows = is_unity(step) && (first == 0.0 || is_unity(first));
        return if are_rows && !lengths_rise && !lengths_fall { Numbering::Rows } else { Numbering::Unclear };
    }
    let mut sorted = in_order;
    let rises = sorted.array_windows().all(|[previous, next]| previous < next);
    sorted.sort_by(f64::total_cmp);
    let from_start = sorted.first().is_some_and(|&first| first == 0.0 || is_unity(first));
    let is_shuffled =
        rows.len() >= 5 && step(&sorted).is_some_and(|step| (from_start && is_unity(step)) || rows.len() >= 8);
    // Row numbers of a filtered table have gaps.
    let has_gaps = rows.len() >= 10 && rises && !lengths_rise && !lengths_fall;
    if is_shuffled || has_gaps { Numbering::Unclear } else { Numbering::None }
}

/// Returns whether rows of lengths and counts look like a table of counts although the file has
/// further columns. In that case the lengths increase, or each length occurs once per group.
pub(in super::super) fn is_table(rows: &[(f64, f64)]) -> bool {
    let rises = rows.array_windows().all(|[previous, next]| previous.0 < next.0);
    let mut lengths: Vec<f64> = rows.iter().map(|(length, _)| *length).collect();
    lengths.sort_by(f64::total_cmp);
    let is_repeated = lengths.chunk_by(|previous, next| previous.total_cmp(next).is_eq()).all(|same| same.len() > 1);
    let are_counts = rows.iter().all(|(_, count)| count.fract() == 0.0) && rows.iter().any(|(_, count)| *count > 1.0);
    rows.len() > 2 && are_counts && numbering(rows) == Numbering::None && (rises || is_repeated)
}

/// Returns whether the lengths are distinct and the second numbers are decreasing integers, as in
/// `value_counts()`.
pub(in super::super) fn are_sorted_counts(rows: &[(f64, f64)]) -> bool {
    let mut lengths: Vec<f64> = rows.iter().map(|(length, _)| *length).collect();
    lengths.sort_by(f64::total_cmp);
    lengths.array_windows().all(|[previous, next]| previous < next)
        && rows.array_windows().all(|[previous, next]| previous.1 >= next.1)
        && rows.iter().all(|(_, number)| number.fract() == 0.0 && *number >= 1.0)
        && rows.first().map(|row| row.1) != rows.last().map(|row| row.1)
}

/// Returns the report sentence for lengths weighted by a column.
pub(in super::super) fn weighted(rows: u64, samples: f64) -> String {
    let samples = (samples * 100.0).round() / 100.0;
    let rows = if rows == 1 { "1 row stands".to_owned() } else { format!("{rows} rows stand") };
    format!("Lengths are weighted by the number of samples of each row: {rows} for {samples} samples.")
}

/// Returns whether the majority of lengths exceeds a plausible sample length.
pub(in super::super) fn is_long(lengths: impl Iterator<Item = f64>) -> bool {
    let mut lengths: Vec<f64> = lengths.collect();
    lengths.sort_by(f64::total_cmp);
    lengths.get(lengths.len() / 2).is_some_and(|median| *median > MAX)
}

/// Returns whether the second numbers are distribution shares: one row per length, and a sum of 1
/// or 100.
pub(in super::super) fn are_shares(rows: &[(f64, f64)]) -> bool {
    let mut lengths: Vec<f64> = rows.iter().map(|(length, _)| *length).collect();
    lengths.sort_by(f64::total_cmp);
    rows.len() > 1
        && lengths.array_windows().all(|[previous, next]| previous < next)
        && is_full_sum(rows.iter().map(|(_, number)| number).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_grow_with_sample_count() {
        for (name, rows, expected) in [
            ("num_tokens", &[(8_400_123.0, 10_000.0), (8_390_021.0, 10_000.0)][..], true),
            ("length", &[(8_400_123.0, 10_000.0)], true),
            ("num_tokens", &[(8400.0, 10.0), (16_500.0, 20.0), (4100.0, 5.0)], true),
            ("length", &[(8400.0, 10.0), (16_500.0, 20.0), (4100.0, 5.0)], false),
            ("num_tokens", &[(512.0, 3.0), (1024.0, 2.0), (4096.0, 1.0)], false),
            ("num_tokens", &[(512.0, 300.0), (1024.0, 200.0), (4096.0, 100.0)], false),
            ("num_tokens", &[(1000.0, 20.0), (1001.0, 21.0), (1002.0, 20.0)], false),
            ("num_tokens", &[(3319.0, 4.0), (2100.0, 4.0), (4000.0, 4.0)], true),
            ("length", &[(3319.0, 4.0), (2100.0, 4.0), (4000.0, 4.0)], false),
        ] {
            assert_eq!(are_totals(name, rows), expected, "{name}: {rows:?}");
        }
    }

    #[test]
    fn row_numbers_are_no_counts() {
        for (numbers, expected) in [
            (&[1.0, 2.0, 3.0][..], Numbering::Rows),
            (&[0.0, 1.0, 2.0, 3.0], Numbering::Rows),
            (&[10.0, 20.0, 30.0], Numbering::Unclear),
            (&[3.0, 1.0, 5.0, 2.0, 4.0], Numbering::Unclear),
            (&[3.0, 2.0, 1.0], Numbering::None),
            (&[1.0, 2.0], Numbering::None),
            (&[5.0, 9.0, 7.0, 3.0, 1.0, 2.0], Numbering::None),
            (&[1.0, 2.0, 4.0, 5.0, 8.0, 9.0, 11.0, 12.0, 20.0, 21.0], Numbering::Unclear),
        ] {
            let lengths = [735.0, 512.0, 4448.0, 90.0].into_iter().cycle();
            let rows: Vec<(f64, f64)> = lengths.zip(numbers.iter().copied()).collect();
            assert_eq!(numbering(&rows), expected, "{numbers:?}");
        }
        let sorted: Vec<(f64, f64)> = vec![(512.0, 1.0), (735.0, 2.0), (4448.0, 3.0)];
        assert_eq!(numbering(&sorted), Numbering::Unclear);
    }

    #[test]
    fn a_number_per_sample_is_no_count() {
        for (name, rows, expected) in [
            ("weight", &[(512.0, 3.0), (1024.0, 1.0)][..], false),
            ("weight", &[(512.0, 0.75), (1024.0, 0.25)], false),
            ("weight", &[(512.0, 75.5), (1024.0, 24.5)], false),
            ("weight", &[(512.0, 0.5), (1024.0, 1.5)], true),
            ("weight", &[(512.0, 3.0), (1024.0, 1.0), (512.0, 2.0)], true),
            ("n", &[(512.0, 3.0), (1024.0, 1.0), (512.0, 2.0)], true),
            ("count", &[(512.0, 3.0), (1024.0, 1.0), (512.0, 2.0)], false),
            ("count", &[(512.0, 3.0), (512.0, 1.0), (512.0, 2.0)], true),
            ("count", &[(512.0, 0.5), (1024.0, 1.0), (512.0, 2.0)], true),
        ] {
            assert_eq!(are(name, rows), expected, "{name}: {rows:?}");
        }
    }
}
