//! Terminal table.

use std::fmt::Write;

use crate::Accuracy;
use crate::set::{Listing, Row, Set};
use crate::statistics::Statistics;

/// Formats a line per set, followed by rows and residuals.
pub fn table(accuracy: &Accuracy) -> String {
    let mut text = format!("{:<28} {HEAD}\n", "set");
    for set in &accuracy.sets {
        line(&mut text, set.id, &set.statistics());
    }
    for set in &accuracy.sets {
        details(&mut text, set);
    }
    text
}

const HEAD: &str = " rows   mean %  median     p90     max    bias  spearman";

fn line(text: &mut String, name: &str, statistics: &Statistics) {
    let spearman = statistics.spearman.map_or("-".to_owned(), |rank| format!("{rank:.3}"));
    let Statistics { count, mean_abs_pct: mean, median_abs_pct: median, p90_abs_pct: p90, max_abs_pct: max, .. } =
        statistics;
    // `write!` to a string cannot fail.
    let _ = writeln!(
        text,
        "{name:<28} {count:>5} {mean:>8.2} {median:>7.2} {p90:>7.2} {max:>7.2} {:>+7.2} {spearman:>9}",
        statistics.bias_pct
    );
}

fn details(text: &mut String, set: &Set) {
    let _ = writeln!(text, "\n{}: {}", set.id, set.title);
    if set.listing == Listing::Rows {
        for row in &set.rows {
            let Row { label, measured, predicted, note, left_out, .. } = row;
            let aside = left_out.map_or(String::new(), |why| format!(" [not counted: {why}]"));
            let error = row.error() * 100.0;
            let _ = writeln!(text, "  {label:<42} {measured:>9.3} {predicted:>9.3} {error:>+7.2} %  {note}{aside}");
        }
    }
    for variant in &set.variants {
        line(text, &format!("  {}", variant.title), &variant.statistics);
    }
    for (name, groups) in set.groups() {
        for group in groups {
            line(text, &format!("  {name} {}", group.value), &group.statistics);
        }
    }
    for finding in &set.findings {
        let _ = writeln!(text, "  {finding}");
    }
}
