//! Errors of groups of rows.

use std::fmt::Write;

/// Measured, present and calibrated times of a group of rows.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    rows: Vec<[f64; 3]>,
}

impl FromIterator<[f64; 3]> for Group {
    fn from_iter<I: IntoIterator<Item = [f64; 3]>>(rows: I) -> Self {
        Self { rows: rows.into_iter().collect() }
    }
}

impl Group {
    pub(super) const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns predicted / measured - 1 of the present (1) or calibrated (2) constants, in percent.
    fn errors(&self, column: usize) -> Vec<f64> {
        self.rows.iter().map(|row| percent(row[column], row[0])).collect()
    }

    /// Returns cells for count, and median and mean absolute error with present and calibrated constants.
    pub(super) fn cells(&self) -> String {
        let mut text = self.rows.len().to_string();
        for column in [1, 2] {
            let errors = self.errors(column);
            let absolute = errors.iter().map(|error| error.abs()).sum::<f64>() / errors.len().max(1) as f64;
            let _ = write!(text, " | {:+.0} | {absolute:.0}", median(&errors));
        }
        text
    }

    /// Returns the median errors with present and calibrated constants.
    pub(super) fn medians(&self) -> String {
        if self.rows.is_empty() {
            return "–".to_owned();
        }
        format!("{:+.0} / {:+.0}", median(&self.errors(1)), median(&self.errors(2)))
    }
}

/// Returns predicted / measured - 1 in percent.
pub(super) fn percent(predicted: f64, measured: f64) -> f64 {
    (predicted / measured - 1.0) * 100.0
}

/// Returns the median, 0 for no values.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        count => f64::midpoint(sorted[(count - 1) / 2], sorted[count / 2]),
    }
}

/// Returns a table with a line for each group that has rows.
pub(super) fn table(name: &str, groups: impl IntoIterator<Item = (String, Group)>) -> String {
    let mut text = format!(
        "| {name} | rows | preset: median % | mean abs. % | calibrated: median % | mean abs. % |\n|---|---:|---:|---:|---:|---:|\n"
    );
    for (name, group) in groups.into_iter().filter(|(_, group)| !group.is_empty()) {
        let _ = writeln!(text, "| {name} | {} |", group.cells());
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_signed_medians_and_absolute_means() {
        let group: Group = [[10.0, 11.0, 10.0], [10.0, 8.0, 10.0], [10.0, 13.0, 9.0]].into_iter().collect();
        assert_eq!(group.cells(), "3 | +10 | 20 | +0 | 3");
        assert_eq!(group.medians(), "+10 / +0");
        assert!((median(&[1.0, 4.0, 2.0, 3.0]) - 2.5).abs() < 1e-12);
        assert!(!table("x", [("empty".to_owned(), Group::default())]).contains("empty"));
    }
}
