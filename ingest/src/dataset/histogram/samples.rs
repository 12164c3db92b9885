//! Tells rows that are samples from rows that stand for several samples.

use super::super::names;
use super::normal;
use super::shares::is_whole;

/// Longest sample that is read without a question, in tokens.
const LONGEST: f64 = 1e6;

/// Whether rows of a length and a number are samples, and not counts by length, by the name of the number and the values. A table of counts
/// has a row per length; a number such as `weight` or `n` may as well be a property of each sample.
pub(in super::super) fn are(name: &str, rows: &[(f64, f64)]) -> bool {
    let mut lengths: Vec<f64> = rows.iter().map(|(length, _)| *length).collect();
    lengths.sort_by(f64::total_cmp);
    lengths.dedup_by(|one, next| one.total_cmp(next).is_eq());
    let has_repeats = lengths.len() < rows.len();
    let has_fractions = rows.iter().any(|(_, number)| number.fract() != 0.0);
    if ["weight", "weights", "n"].contains(&normal(name).as_str()) {
        return has_repeats || (has_fractions && !is_whole(rows.iter().map(|(_, number)| number).sum()));
    }
    has_repeats && (has_fractions || lengths.len() * 2 < rows.len())
}

/// Whether rows of a length and a count hold the tokens of all samples of the row, and not the length of each of them.
pub(in super::super) fn are_totals(name: &str, rows: &[(f64, f64)]) -> bool {
    if is_long(rows.iter().map(|(length, _)| *length)) {
        return true;
    }
    if !names::may_be_total(name)
        || rows.len() < 3
        || rows.iter().any(|&(length, count)| count <= 1.0 || length < count)
    {
        return false;
    }
    let spread = |values: &dyn Fn(&(f64, f64)) -> f64| {
        let least = rows.iter().map(values).fold(f64::INFINITY, f64::min);
        rows.iter().map(values).fold(0.0, f64::max) / least
    };
    // Tokens that grow with the number of samples: the mean of the rows is about the same.
    spread(&|row| row.0) >= 2.0 && spread(&|row| row.0 / row.1) <= 2.0
}

/// Whether most lengths are longer than a sample can be.
pub(in super::super) fn is_long(lengths: impl Iterator<Item = f64>) -> bool {
    let mut lengths: Vec<f64> = lengths.collect();
    lengths.sort_by(f64::total_cmp);
    lengths.get(lengths.len() / 2).is_some_and(|median| *median > LONGEST)
}

/// Whether the second numbers are shares of a distribution: a row per length, and a sum of 1 or 100.
pub(in super::super) fn are_shares(rows: &[(f64, f64)]) -> bool {
    let mut lengths: Vec<f64> = rows.iter().map(|(length, _)| *length).collect();
    lengths.sort_by(f64::total_cmp);
    rows.len() > 1
        && lengths.array_windows().all(|[one, next]| one < next)
        && is_whole(rows.iter().map(|(_, number)| number).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_grow_with_the_number_of_samples() {
        for (name, rows, expected) in [
            ("num_tokens", &[(8_400_123.0, 10_000.0), (8_390_021.0, 10_000.0)][..], true),
            ("length", &[(8_400_123.0, 10_000.0)], true),
            ("num_tokens", &[(8400.0, 10.0), (16_500.0, 20.0), (4100.0, 5.0)], true),
            ("length", &[(8400.0, 10.0), (16_500.0, 20.0), (4100.0, 5.0)], false),
            ("num_tokens", &[(512.0, 3.0), (1024.0, 2.0), (4096.0, 1.0)], false),
            ("num_tokens", &[(512.0, 300.0), (1024.0, 200.0), (4096.0, 100.0)], false),
            ("num_tokens", &[(1000.0, 20.0), (1001.0, 21.0), (1002.0, 20.0)], false),
        ] {
            assert_eq!(are_totals(name, rows), expected, "{name}: {rows:?}");
        }
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
