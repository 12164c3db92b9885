//! Tables with published and computed figures, for the terminal and for docs/papers.md.

use std::fmt::Write;

use api::papers::{Difference, DifferenceUnit, Paper, PaperFigure, PaperPlan, PaperSet, PublishedValue};

use super::Error;

const BEGIN: &str = "<!-- figures: ";
const CLOSE: &str = " -->";
const END: &str = "<!-- end -->";

/// Formats the tables of a paper for the terminal.
pub fn console(paper: &Paper) -> String {
    let mut text = format!("{}\n", paper.title);
    for set in &paper.sets {
        let _ = writeln!(text, "\n{}: {}\n\n{}", set.place, set.title, table(set));
    }
    text
}

/// Replaces the tables between the markers in the page. Other text stays unchanged.
///
/// # Errors
/// Returns an error if the markers of a set are missing.
pub fn fill(page: &str, paper: &Paper) -> Result<String, Error> {
    let mut page = page.to_owned();
    for set in &paper.sets {
        let begin = format!("{BEGIN}{}/{}{CLOSE}\n", paper.id, set.id);
        let missing = || Error::Page(format!("no line {:?} with a line {END:?} behind it", begin.trim_end()));
        let from = page.find(&begin).ok_or_else(missing)? + begin.len();
        let to = from + page[from..].find(END).ok_or_else(missing)?;
        page.replace_range(from..to, &table(set));
    }
    Ok(page)
}

fn table(set: &PaperSet) -> String {
    let mut text = String::new();
    if !set.figures.is_empty() {
        text.push_str(
            "| | published | here | minimum to maximum | seed of the scenario | difference |\n|---|---|---|---|---|---|\n",
        );
    }
    for figure in &set.figures {
        let (limits, own) = seeds(figure);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {limits} | {own} | {} |",
            figure.label,
            figure.published.map_or_else(|| "not given".to_owned(), |published| range(published, &figure.unit)),
            ours(figure),
            figure.difference.map_or_else(String::new, difference),
        );
    }
    if !set.choices.is_empty() {
        text.push_str(if text.is_empty() { "" } else { "\n" });
        text.push_str("| | published | here |\n|---|---|---|\n");
        for choice in &set.choices {
            let published = choice.published.as_deref().unwrap_or("not given");
            let _ = writeln!(text, "| {} | {published} | {} |", choice.label, choice.ours);
        }
    }
    if !set.plans.is_empty() {
        text.push_str(
            "\n| plan | iteration, s | MFU | computing | recomputing | exposed | synchronising | idle | over its bound | \
             peak, GiB |\n|---|---|---|---|---|---|---|---|---|---|\n",
        );
        for plan in &set.plans {
            let _ = writeln!(text, "| {} |", evidence(plan));
        }
    }
    if !set.assumptions.is_empty() {
        text.push_str("\nAssumed:\n");
        for assumption in &set.assumptions {
            let _ = writeln!(text, "- {assumption}");
        }
    }
    text
}

fn ours(figure: &PaperFigure) -> String {
    match (figure.ours, &figure.missing) {
        (Some(value), _) => {
            let value = number(value, &figure.unit);
            figure.opponent.map_or_else(|| value.clone(), |planner| format!("{value} ({})", planner.short_title()))
        }
        (None, Some(why)) => format!("none: {why}"),
        (None, None) => String::new(),
    }
}

/// Returns the limits over the seeds, and the value for the seed of the scenario.
fn seeds(figure: &PaperFigure) -> (String, String) {
    let Some(spread) = figure.spread else {
        let limits = if figure.ours.is_some() { "one seed" } else { "" };
        return (limits.to_owned(), String::new());
    };
    let limits = range(PublishedValue { from: spread.min, to: spread.max }, &figure.unit);
    let limits = match spread.without_value {
        0 => limits,
        without => format!("{limits}, no plan for {without} of {} seeds", spread.seeds + without),
    };
    (limits, number(spread.own, &figure.unit))
}

/// Formats a value with the digits for its unit, without the unit.
fn digits(value: f64, unit: &str) -> String {
    if value.abs() >= 100.0 || value == 0.0 || unit == "images" {
        format!("{value:.0}")
    } else if value.abs() >= 10.0 || unit == "%" {
        format!("{value:.1}")
    } else {
        format!("{value:.3}")
    }
}

fn number(value: f64, unit: &str) -> String {
    let value = digits(value, unit);
    if unit.is_empty() { value } else { format!("{value} {unit}") }
}

fn range(published: PublishedValue, unit: &str) -> String {
    if published.from < published.to {
        format!("{} to {}", digits(published.from, unit), number(published.to, unit))
    } else {
        number(published.from, unit)
    }
}

fn difference(delta: Difference) -> String {
    match delta.of {
        DifferenceUnit::Points if delta.value == 0.0 => "within".to_owned(),
        DifferenceUnit::Points => format!("{:+.1} points", delta.value),
        DifferenceUnit::PerCent => format!("{:+.1} %", delta.value),
    }
}

fn evidence(plan: &PaperPlan) -> String {
    let name = format!("{}, {}", plan.scenario, plan.planner.short_title());
    if let Some(binding) = &plan.binding {
        return format!("{name}: {binding} | | | | | | | | |");
    }
    let share = |part: f64| format!("{:.1} %", 100.0 * part / plan.iteration_s);
    [
        name,
        number(plan.iteration_s, ""),
        format!("{:.3}", plan.mfu),
        share(plan.time.compute_s),
        share(plan.time.recompute_s),
        share(plan.time.exposed_s),
        share(plan.time.sync_s),
        share(plan.time.bubble_s),
        format!("{:.1} %", 100.0 * plan.gap),
        format!("{:.1} of {:.0}", plan.peak_memory_gib, plan.memory_limit_gib),
    ]
    .join(" | ")
}
