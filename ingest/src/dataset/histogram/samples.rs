//! Tells rows that are samples from rows that stand for several samples.

use super::normal;
use super::shares::is_whole;

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
