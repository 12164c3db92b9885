//! Compares errors with the committed results.

use super::json::Document;

/// Maximum increase of a set's mean error in percentage points.
pub const ALLOWED_POINTS: f64 = 1.0;

/// Set with an increased error.
#[derive(Debug, Clone, PartialEq)]
pub struct Worse {
    /// Set identifier.
    pub set: String,
    /// Committed mean absolute error in percent.
    pub committed: f64,
    /// Current mean absolute error in percent. `None` if the set is no longer measured.
    pub now: Option<f64>,
}

impl std::fmt::Display for Worse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { set, committed, now } = self;
        match now {
            Some(now) => write!(f, "{set}: mean error {now:.2} %, committed {committed:.2} %"),
            None => write!(f, "{set}: committed but no longer measured"),
        }
    }
}

/// Returns sets whose mean error increased by more than [`ALLOWED_POINTS`], and missing sets.
pub fn worse(committed: &Document, now: &Document) -> Vec<Worse> {
    let mut worse = Vec::new();
    for before in &committed.sets {
        let after = now.sets.iter().find(|set| set.id == before.id).map(|set| set.statistics.mean_abs_pct);
        let committed = before.statistics.mean_abs_pct;
        if after.is_none_or(|after| after > committed + ALLOWED_POINTS) {
            worse.push(Worse { set: before.id.clone(), committed, now: after });
        }
    }
    worse
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::json::tests::document;

    #[test]
    fn a_point_more_is_allowed_and_a_set_may_not_vanish() {
        let committed = document(&[("a", 3.0), ("b", 3.0), ("c", 3.0)]);
        let now = document(&[("a", 3.9), ("b", 4.1), ("d", 50.0)]);
        let lines: Vec<_> = worse(&committed, &now).iter().map(ToString::to_string).collect();
        assert_eq!(lines, ["b: mean error 4.10 %, committed 3.00 %", "c: committed but no longer measured"]);
    }
}
