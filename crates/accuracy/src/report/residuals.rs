//! Describes dependencies of the errors in sentences.

use crate::set::{Group, Row, Set};
use crate::statistics::spearman;

/// Minimum rank correlation to report.
const NOTABLE: f64 = 0.5;

/// Returns sentences about the largest errors, the mean error by property, and properties
/// correlated with errors.
pub fn sentences(set: &Set) -> Vec<String> {
    let counted = set.counted().count();
    let mut sentences = vec![max_errors(set)];
    for (name, groups) in set.groups() {
        if groups.len() < counted {
            sentences.push(by(name, &groups));
        }
        sentences.extend(trend(set, name, counted));
    }
    sentences
}

fn max_errors(set: &Set) -> String {
    let mut rows: Vec<&Row> = set.counted().collect();
    rows.sort_by(|a, b| b.error().abs().total_cmp(&a.error().abs()));
    let named = |row: &&Row| format!("{} {:+.1} %", row.label, row.error() * 100.0);
    format!("Largest errors: {}.", rows.iter().take(3).map(named).collect::<Vec<_>>().join("; "))
}

fn by(name: &str, groups: &[Group]) -> String {
    let summary =
        |group: &Group| format!("{} {:+.1} % ({})", group.value, group.statistics.bias_pct, group.statistics.count);
    format!("Mean signed error by {name} (rows): {}.", groups.iter().map(summary).collect::<Vec<_>>().join(", "))
}

/// Describes the correlation of errors with a numeric property.
fn trend(set: &Set, name: &'static str, counted: usize) -> Option<String> {
    let points: Vec<(f64, f64)> = set
        .counted()
        .flat_map(|row| row.facets.iter().filter(|facet| facet.name == name).map(move |facet| (facet, row.error())))
        .filter_map(|(facet, error)| facet.value.parse().ok().map(|value| (value, error)))
        .collect();
    if points.len() < counted || counted < 4 {
        return None;
    }
    let (values, errors): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
    let rank = spearman(&values, &errors).filter(|rank| rank.abs() >= NOTABLE)?;
    let direction = if rank > 0.0 { "slower" } else { "faster" };
    Some(format!("Predictions become {direction} against measurements as {name} grows (rank correlation {rank:+.2})."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::{Facet, Goal, Listing};

    #[test]
    fn errors_that_grow_with_a_property_are_named() {
        let row = |pipeline: u32, predicted: f64| Row {
            label: format!("PP {pipeline}"),
            measured: 1.0,
            predicted,
            note: String::new(),
            facets: vec![Facet::new("PP", pipeline)],
            setup: vec![],
            left_out: None,
            step: None,
        };
        let set = Set {
            id: "",
            title: "",
            source: "",
            unit: "s",
            goal: Goal { mean: 1.0, largest: None },
            peer: "",
            assumptions: vec![],
            rows: vec![row(1, 1.0), row(8, 1.08), row(8, 1.1), row(64, 1.2)],
            variants: vec![],
            findings: vec![],
            listing: Listing::Rows,
        };
        let sentences = sentences(&set);
        assert_eq!(sentences[0], "Largest errors: PP 64 +20.0 %; PP 8 +10.0 %; PP 8 +8.0 %.");
        assert_eq!(sentences[1], "Mean signed error by PP (rows): 1 +0.0 % (1), 8 +9.0 % (2), 64 +20.0 % (1).");
        assert!(sentences[2].starts_with("Predictions become slower against measurements as PP grows"));
    }
}
