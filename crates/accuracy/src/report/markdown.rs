//! docs/accuracy.md: generated text, with handwritten remarks between the markers of each set.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{certainty, choice, plot, residuals};
use crate::Accuracy;
use crate::certainty::Evaluation;
use crate::choice::choices;
use crate::set::{Listing, MIXED, Row, Set};
use crate::statistics::Statistics;

const BEGIN: &str = "<!-- remarks:";
const END: &str = "<!-- end -->";

const INTRODUCTION: &str = "\
# Accuracy

Errors of the simulator's predictions against published measurements. `cargo xtask accuracy --data DIR` writes this page. It
fails if the mean error of a set grows by more than one percentage point. Only the remarks between markers are written by
hand; the program preserves them.

The simulator is fitted to timings of operators and collectives, and to data sheets of devices. At most 20 rows of
vtrain_single may be used to fit the host overhead. These rows are named and do not count. The host time of nanotron is the
floor of the rows of ultrascale_h100 with TP 4 and 8 and microbatch 1; the attention rate of llm_foundry_a100 is about the one
that its own steps imply. These rows count. The overlap of asynchronous tensor parallelism follows from six rows of torchtitan,
which are named and do not count. No other step time, throughput or memory on this page was used for a fit of the
simulator, but the profiles of the frameworks and the networks of the sets were chosen after a look at the errors. Intervals are fitted to the errors on this page; they do not
change predictions.

Error = predicted / measured - 1. It is positive if the prediction is too slow or too large. Mean, median, p90 and largest
are of absolute errors. The bias is the mean of signed errors. Spearman is the rank correlation of predicted and measured
values: a planner needs the right order. Published throughputs are converted to times first.
";

const UNUSED: &str = "
## Tables that are not used

- trainium1: no preset of the device.
- automodel_ci_h100: sequences of different lengths, models with several modules, adapters.
- torchtune_memory: model and batch of the rows are not published.
- primus_pipeline, pipeline_schedules_quoted: times of single actions, or ratios of schedules.
";

/// Formats the page with the remarks by set.
pub fn page(accuracy: &Accuracy, evaluation: Option<&Evaluation>, remarks: &BTreeMap<String, String>) -> String {
    let mut text = INTRODUCTION.to_owned();
    summary(&mut text, accuracy);
    text.push_str(&choice::section(&choices(accuracy)));
    text.push_str(&evaluation.map_or_else(String::new, certainty::section));
    for set in &accuracy.sets {
        section(&mut text, set, remarks.get(set.id).map_or("", String::as_str));
    }
    text.push_str(UNUSED);
    text
}

/// Extracts the handwritten remarks by set from an existing page.
pub fn remarks(page: &str) -> BTreeMap<String, String> {
    let mut remarks = BTreeMap::new();
    for part in page.split(BEGIN).skip(1) {
        if let Some((set, rest)) = part.split_once(" -->")
            && let Some((written, _)) = rest.split_once(END)
            && !written.trim().is_empty()
        {
            remarks.insert(set.to_owned(), written.trim().to_owned());
        }
    }
    remarks
}

// `writeln!` to a string cannot fail, so results are ignored below.

fn summary(text: &mut String, accuracy: &Accuracy) {
    text.push_str("\n## Summary\n\n");
    text.push_str(
        "| set | rows | mean % | median % | p90 % | largest % | bias % | Spearman | goal | met | best peer |\n",
    );
    text.push_str("|---|---:|---:|---:|---:|---:|---:|---:|---|---|---|\n");
    for set in &accuracy.sets {
        let statistics = set.statistics();
        let met = if set.goal.is_met(&statistics) { "yes" } else { "no" };
        let Set { id, goal, peer, .. } = set;
        let _ = writeln!(text, "| [{id}](#{id}) | {} | {goal} | {met} | {peer} |", cells(&statistics));
    }
}

fn cells(statistics: &Statistics) -> String {
    let spearman = statistics.spearman.map_or("–".to_owned(), |rank| format!("{rank:.3}"));
    format!(
        "{} | {:.2} | {:.2} | {:.2} | {:.2} | {:+.2} | {spearman}",
        statistics.count,
        statistics.mean_abs_pct,
        statistics.median_abs_pct,
        statistics.p90_abs_pct,
        statistics.max_abs_pct,
        statistics.bias_pct
    )
}

fn section(text: &mut String, set: &Set, remarks: &str) {
    let Set { id, title, source, .. } = set;
    let _ = writeln!(text, "\n## {id}\n\n{title}. Source: {source}.\n");
    list(text, "Assumed:", set.assumptions.iter().copied());
    if plot::scatter(set).is_some() {
        let _ = writeln!(text, "![{title}: measured against predicted](accuracy/{id}.svg)\n");
    }
    match set.listing {
        Listing::Rows => rows(text, set),
        Listing::Groups => groups(text, set),
    }
    if !set.variants.is_empty() {
        table(text, "other reading", set.variants.iter().map(|variant| (variant.title.as_str(), variant.statistics)));
    }
    let sentences = residuals::sentences(set);
    list(text, "Residuals:", sentences.iter().map(String::as_str));
    list(text, "Findings:", set.findings.iter().map(String::as_str));
    let separator = if remarks.is_empty() { "" } else { "\n" };
    let _ = writeln!(text, "{BEGIN}{id} -->\n{remarks}{separator}{END}");
}

fn list<'a>(text: &mut String, head: &str, lines: impl Iterator<Item = &'a str>) {
    let lines: String = lines.fold(String::new(), |lines, line| lines + "- " + line + "\n");
    if !lines.is_empty() {
        let _ = writeln!(text, "{head}\n\n{lines}");
    }
}

fn rows(text: &mut String, set: &Set) {
    let unit = if set.unit == MIXED { String::new() } else { format!(" {}", set.unit) };
    let _ = writeln!(text, "| row | measured{unit} | predicted{unit} | error % | note |\n|---|---:|---:|---:|---|");
    for row in &set.rows {
        let Row { label, note, left_out, .. } = row;
        let parts: Vec<String> = [Some(note.clone()), left_out.map(|why| format!("not counted: {why}"))]
            .into_iter()
            .flatten()
            .filter(|part| !part.is_empty())
            .collect();
        let (measured, predicted) = (figure(row.measured), figure(row.predicted));
        let _ = writeln!(
            text,
            "| {label} | {measured} | {predicted} | {:+.2} | {} |",
            row.error() * 100.0,
            parts.join("; ")
        );
    }
    text.push('\n');
}

/// Formats a value with four significant digits, without exponent.
fn figure(value: f64) -> String {
    let decimals = (3.0 - value.abs().log10().floor()).clamp(0.0, 6.0);
    format!("{value:.0$}", if decimals.is_finite() { decimals as usize } else { 3 })
}

fn groups(text: &mut String, set: &Set) {
    for (name, groups) in set.groups() {
        table(text, name, groups.iter().map(|group| (group.value.as_str(), group.statistics)));
    }
    let mut left_out: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for row in &set.rows {
        if let Some(reason) = row.left_out {
            left_out.entry(reason).or_default().push(format!("{} ({:+.1} %)", row.label, row.error() * 100.0));
        }
    }
    for (reason, rows) in left_out {
        let _ = writeln!(text, "Not counted ({reason}): {}.\n", rows.join(", "));
    }
}

fn table<'a>(text: &mut String, head: &str, lines: impl Iterator<Item = (&'a str, Statistics)>) {
    let _ = writeln!(text, "| {head} | rows | mean % | median % | p90 % | largest % | bias % | Spearman |");
    text.push_str("|---|---:|---:|---:|---:|---:|---:|---:|\n");
    for (name, statistics) in lines {
        let _ = writeln!(text, "| {name} | {} |", cells(&statistics));
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::Goal;

    fn accuracy() -> Accuracy {
        let row = Row {
            label: "a row".to_owned(),
            measured: 1.0,
            predicted: 1.1,
            note: String::new(),
            facets: vec![],
            setup: vec![],
            left_out: None,
            step: None,
        };
        let set = |id| Set {
            id,
            title: "Step times",
            source: "a paper",
            unit: "s",
            goal: Goal { mean: 3.0, largest: Some(6.0) },
            peer: "none",
            assumptions: vec!["Nothing."],
            rows: vec![row.clone()],
            variants: vec![],
            findings: vec![],
            listing: Listing::Rows,
        };
        Accuracy { sets: vec![set("first"), set("second")] }
    }

    #[test]
    fn user_remarks_are_preserved() {
        let empty = page(&accuracy(), None, &remarks(""));
        assert!(remarks(&empty).is_empty());
        let written =
            empty.replace("<!-- remarks:second -->", "<!-- remarks:second -->\nThe cause is **this**.\n\nAnd that.");
        let again = page(&accuracy(), None, &remarks(&written));
        assert_eq!(remarks(&again)["second"], "The cause is **this**.\n\nAnd that.");
        assert_eq!(again, page(&accuracy(), None, &remarks(&again)), "a second run changes nothing");
        assert!(!remarks(&again).contains_key("first"));
    }

    #[test]
    fn the_summary_says_whether_the_goal_is_met() {
        let line =
            "| [first](#first) | 1 | 10.00 | 10.00 | 10.00 | 10.00 | +10.00 | – | mean 3 %, largest 6 % | no | none |";
        assert!(page(&accuracy(), None, &BTreeMap::new()).contains(line));
    }

    #[test]
    fn values_have_four_digits() {
        assert_eq!([0.0123, 1.0, 372.16, 102_630.4].map(figure), ["0.01230", "1.000", "372.2", "102630"]);
    }
}
